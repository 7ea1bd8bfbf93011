//! The quadratic extension on lanes: two values of the prime field for one of BN254's Fq2, whose u has the square -1.
//!
//! Bounds apply to both components. They are wider than the prime field's: products are
//! a b = (a0 b0 - a1 b1, a0 b1 + a1 b0), each component reduced once.
use ark_bn254::{Fq, Fq2};

use super::{Lanes, Portable};

/// Lanes of Fq2 over lanes of Fq.
#[derive(Clone, Copy, Debug)]
pub struct Quadratic<L>(L);

/// The lanes of Fq2 for lanes of Fq.
pub trait Extend: Lanes<Fq> {
    type Extended: Lanes<Fq2>;

    fn extended(self) -> Self::Extended;
}

#[cfg(target_arch = "x86_64")]
impl Extend for super::Avx512 {
    type Extended = Quadratic<Self>;

    #[inline(always)]
    fn extended(self) -> Quadratic<Self> {
        Quadratic(self)
    }
}

impl Extend for Portable {
    type Extended = Quadratic<Self>;

    #[inline(always)]
    fn extended(self) -> Quadratic<Self> {
        Quadratic(self)
    }
}

impl Extend for super::tracked::Tracked {
    type Extended = Quadratic<Self>;

    fn extended(self) -> Quadratic<Self> {
        Quadratic(self)
    }
}

impl<L: Lanes<Fq>> Lanes<Fq2> for Quadratic<L> {
    type V = [L::V; 2];
    type W = [L::W; 2];
    type K = [L::K; 2];
    const N: usize = L::N;

    #[inline(always)]
    fn run<R>(self, f: impl FnOnce() -> R) -> R {
        self.0.run(f)
    }

    #[inline(always)]
    fn load<'a>(self, of: impl Fn(usize) -> &'a Fq2) -> [L::V; 2] {
        [self.0.load(|i| &of(i).c0), self.0.load(|i| &of(i).c1)]
    }

    #[inline(always)]
    fn store(self, x: [L::V; 2], mut put: impl FnMut(usize, Fq2)) {
        let mut real = [Fq::new_unchecked(ark_ff::BigInt([0; 4])); 8];
        self.0.store(x[0], |i, x| real[i] = x);
        self.0.store(x[1], |i, y| put(i, Fq2::new(real[i], y)));
    }

    #[inline(always)]
    fn constant(self, x: &Fq2) -> [L::K; 2] {
        [self.0.constant(&x.c0), self.0.constant(&x.c1)]
    }

    #[inline(always)]
    fn all(self, k: &[L::K; 2]) -> [L::V; 2] {
        [self.0.all(&k[0]), self.0.all(&k[1])]
    }

    #[inline(always)]
    fn zero(self) -> [L::V; 2] {
        [self.0.zero(); 2]
    }

    #[inline(always)]
    fn unzip(self, a: [L::V; 2], b: [L::V; 2]) -> [[L::V; 2]; 2] {
        let [real, imaginary] = [self.0.unzip(a[0], b[0]), self.0.unzip(a[1], b[1])];
        [[real[0], imaginary[0]], [real[1], imaginary[1]]]
    }

    #[inline(always)]
    fn add(self, a: [L::V; 2], b: [L::V; 2]) -> [L::V; 2] {
        [self.0.add(a[0], b[0]), self.0.add(a[1], b[1])]
    }

    #[inline(always)]
    fn sub(self, a: [L::V; 2], b: [L::V; 2]) -> [L::V; 2] {
        [self.0.sub(a[0], b[0]), self.0.sub(a[1], b[1])]
    }

    #[inline(always)]
    fn shl<const K: u32>(self, a: [L::V; 2]) -> [L::V; 2] {
        [self.0.shl::<K>(a[0]), self.0.shl::<K>(a[1])]
    }

    /// For b below 16 p: below p + a (b + 16 p) / 84 p, or p + 2 a b / 84 p where that is more.
    #[inline(always)]
    fn mul(self, a: [L::V; 2], b: [L::V; 2]) -> [L::V; 2] {
        if L::N > 1 {
            return self.reduce(self.mac(self.wide(), a, b));
        }
        // Where sums are not reduced once but after each product, three products take less than four.
        let l = self.0;
        let (real, imaginary) = (l.mul(a[0], b[0]), l.mul(a[1], b[1]));
        let both = l.mul(l.add(a[0], a[1]), l.add(b[0], b[1]));
        [l.sub(real, imaginary), l.sub(l.sub(both, real), imaginary)]
    }

    /// For a below 16 p: below p + 2 a (a + 16 p) / 84 p.
    #[inline(always)]
    fn square(self, a: [L::V; 2]) -> [L::V; 2] {
        let l = self.0;
        let (sum, difference) = (l.add(a[0], a[1]), l.sub(a[0], a[1]));
        [l.mul(sum, difference), l.mul(l.add(a[0], a[0]), a[1])]
    }

    #[inline(always)]
    fn weak(self, a: [L::V; 2]) -> [L::V; 2] {
        [self.0.weak(a[0]), self.0.weak(a[1])]
    }

    #[inline(always)]
    fn wide(self) -> [L::W; 2] {
        [self.0.wide(), self.0.wide()]
    }

    #[inline(always)]
    fn wide_from(self, x: [L::V; 2]) -> [L::W; 2] {
        [self.0.wide_from(x[0]), self.0.wide_from(x[1])]
    }

    /// For b below 16 p; it counts as two products of a by b, or by 16 p where that is more.
    #[inline(always)]
    fn mac(self, w: [L::W; 2], a: [L::V; 2], b: [L::V; 2]) -> [L::W; 2] {
        let l = self.0;
        let minus = l.sub(l.zero(), b[1]);
        [
            l.mac(l.mac(w[0], a[0], b[0]), a[1], minus),
            l.mac(l.mac(w[1], a[0], b[1]), a[1], b[0]),
        ]
    }

    #[inline(always)]
    fn reduce(self, w: [L::W; 2]) -> [L::V; 2] {
        [self.0.reduce(w[0]), self.0.reduce(w[1])]
    }
}
