//! Field arithmetic on several residues at a time: eight with AVX-512's 52-bit multiply-add, one elsewhere.
//!
//! A kernel is written once, as an `#[inline(always)]` function generic over [`Lanes`], and called through
//! [`dispatch!`](crate::dispatch), which picks the widest lanes of the processor:
//!
//! ```
//! use ragaudit_field_simd::lanes::Lanes;
//! use ragaudit_field_simd::{dispatch, field::Fr};
//!
//! #[inline(always)]
//! fn scale_lanes<L: Lanes<Fr>>(l: L, xs: &mut [Fr], by: Fr) {
//!     let by_all = l.splat(&by);
//!     let mut runs = xs.chunks_exact_mut(L::N);
//!     for run in &mut runs {
//!         let x = l.load(|i| &run[i]);
//!         l.store(l.mul(x, by_all), |i, x| run[i] = x);
//!     }
//!     runs.into_remainder().iter_mut().for_each(|x| *x *= by);
//! }
//!
//! fn scale(xs: &mut [Fr], by: Fr) {
//!     dispatch!(l => scale_lanes(l, xs, by))
//! }
//! # let mut xs: Vec<Fr> = (0..19u64).map(Fr::from).collect();
//! # scale(&mut xs, Fr::from(3u8));
//! # assert_eq!(xs, (0..19u64).map(|x| Fr::from(3 * x)).collect::<Vec<_>>());
//! ```
//!
//! # Bounds
//! Between load and store, the eight lanes have unreduced values with bounds in multiples of the modulus p. The declaration
//! of each operation states its bounds. p < 2^253.7 and a value has 260 bits, so every number below 64 p is a value. A
//! kernel's bounds are public and independent of the data. The tests run every kernel on [`tracked::Tracked`], which
//! carries a bound with each residue and panics if a bound is violated.
//!
//! All operations take the same steps for all values.
use pick::Words;

#[cfg(target_arch = "x86_64")]
mod adx;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod intrinsics {
    //! The intrinsics that `avx512.rs` calls. Its lemmas compile it with a model instead of this module.
    pub use std::arch::x86_64::*;
}
pub(crate) mod pick;
mod portable;
pub mod quadratic;
pub mod tracked;

#[cfg(target_arch = "x86_64")]
pub use avx512::{vectorize, Avx512};
pub use portable::Portable;

/// Values are below this multiple of p.
pub const BOUND: f64 = 64.0;
/// Loaded values are below this multiple of p.
pub const LOADED: f64 = 16.0;
/// Stored values must be below this multiple of p.
pub const STORED: f64 = 49.0;
/// The maximum number of products in one sum, and the maximum sum of their bounds.
pub const PRODUCTS: usize = 400;
pub const SUM: f64 = 5000.0;

/// Arithmetic on `N` residues at a time. A value of an implementing type is the proof that the processor has it.
pub trait Lanes<F>: Copy + Send + Sync {
    /// N residues.
    type V: Copy + Send + Sync;
    /// N sums of products that are not reduced yet.
    type W: Copy;
    /// A factor of many products, prepared for all lanes.
    type K: Copy + Send + Sync;
    const N: usize;

    /// Runs `f` as code compiled for these lanes, with all functions that are inlined into `f`.
    fn run<R>(self, f: impl FnOnce() -> R) -> R;

    /// Lane i is `*of(i)`; below 16 p.
    fn load<'a>(self, of: impl Fn(usize) -> &'a F) -> Self::V
    where
        F: 'a;
    /// `put(i, lane i)`, reduced, for x below 49 p.
    fn store(self, x: Self::V, put: impl FnMut(usize, F));
    /// The constant for [`all`](Self::all), which is prepared once.
    fn constant(self, x: &F) -> Self::K;
    /// The constant in every lane; below p.
    fn all(self, k: &Self::K) -> Self::V;
    fn zero(self) -> Self::V;
    /// The lanes of a followed by the lanes of b, split into the lanes at even places and the lanes at odd places.
    fn unzip(self, a: Self::V, b: Self::V) -> [Self::V; 2];
    /// Below a + b.
    fn add(self, a: Self::V, b: Self::V) -> Self::V;
    /// For b below 16 p: below a + 16 p.
    fn sub(self, a: Self::V, b: Self::V) -> Self::V;
    /// 2^K a, for K up to 6: below 2^K a.
    #[inline(always)]
    fn shl<const K: u32>(self, mut a: Self::V) -> Self::V {
        for _ in 0..K {
            a = self.add(a, a);
        }
        a
    }
    /// Below p + a b / 84 p.
    fn mul(self, a: Self::V, b: Self::V) -> Self::V;
    /// Below p + a^2 / 84 p.
    fn square(self, a: Self::V) -> Self::V;
    /// The same residue, below 3 p.
    fn weak(self, a: Self::V) -> Self::V;
    fn wide(self) -> Self::W;
    /// A sum that starts from a value: it counts as a product of 85 times x's bound.
    fn wide_from(self, x: Self::V) -> Self::W;
    /// w + a b; at most [`PRODUCTS`] times, the bounds of all products together at most [`SUM`].
    fn mac(self, w: Self::W, a: Self::V, b: Self::V) -> Self::W;
    /// Below p + w / 84 p.
    fn reduce(self, w: Self::W) -> Self::V;

    /// x in every lane; below p.
    #[inline(always)]
    fn splat(self, x: &F) -> Self::V {
        self.all(&self.constant(x))
    }

    /// The sum over the lanes.
    #[inline(always)]
    fn sum(self, x: Self::V) -> F
    where
        F: ark_ff::Field,
    {
        let mut sum = F::ZERO;
        self.store(self.weak(x), |_, x| sum += x);
        sum
    }
}

/// Sums of multiples by short integers.
pub trait Integers<F>: Lanes<F> {
    /// N integers from 0 to 2^52 - 1.
    type I: Copy;

    /// The integers of[i] + 2^51, for of[i] from -2^51 to 2^51 - 1.
    fn raised(self, of: &[i64]) -> Self::I;
    /// w + i a, for a below 16 p; at most [`PRODUCTS`] times.
    fn scale(self, w: Self::W, i: Self::I, a: Self::V) -> Self::W;
    /// w / 2^104 for a sum with only [`Self::scale`] terms: below 2 p.
    fn shorten(self, w: Self::W) -> Self::V;
}

/// Reads of tables at secret places, with the same steps for all places.
pub trait Picks<F>: Lanes<F> {
    /// Lane i is the coordinate of the entry for `digits[i]`, without its sign; below 16 p.
    fn pick(self, words: &Words, digits: &[u8]) -> Self::V;
    /// -x in the lanes with a digit for a negative number, x in the others; below 16 p, for x below 16 p.
    fn signed(self, x: Self::V, digits: &[u8]) -> Self::V;
}

/// Runs `f` as code compiled for AVX2 if the processor has it, with all functions that are inlined into `f`. Scans of tables
/// under masks use it on processors without wider lanes, because compilers vectorise them.
#[inline(always)]
pub fn widely<R>(f: impl FnOnce() -> R) -> R {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2,bmi2")]
        fn run<R>(f: impl FnOnce() -> R) -> R {
            f()
        }
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi2") {
            // SAFETY: the processor has both features.
            return unsafe { run(f) };
        }
    }
    f()
}

/// `dispatch!(l => kernel(l, ..))`: the call with the widest [`Lanes`](crate::lanes::Lanes) of this processor as `l`, or
/// with the lanes `one` of `dispatch!(l or one => ..)` if the processor has none.
#[macro_export]
macro_rules! dispatch {
    ($l:ident => $call:expr) => {
        $crate::dispatch!($l or $crate::lanes::Portable => $call)
    };
    ($l:ident or $one:expr => $call:expr) => {{
        #[cfg(target_arch = "x86_64")]
        {
            if let Some($l) = $crate::lanes::Avx512::detect() {
                $crate::lanes::vectorize(
                    $l,
                    #[inline(always)]
                    || $call,
                )
            } else {
                let $l = $one;
                $call
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        {
            let $l = $one;
            $call
        }
    }};
}

#[cfg(all(test, target_arch = "x86_64"))]
mod lemmas;
#[cfg(test)]
mod tests;
