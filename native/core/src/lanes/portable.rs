//! One residue at a time, for every processor.
use ark_ff::{BigInt, Field, Fp, MontBackend, MontConfig};

use super::pick::{negative, scan, Words};
use super::{Integers, Lanes, Picks};

#[derive(Clone, Copy, Debug)]
pub struct Portable;

impl<F: Field> Lanes<F> for Portable {
    type V = F;
    type W = F;
    type K = F;
    const N: usize = 1;

    #[inline(always)]
    fn run<R>(self, f: impl FnOnce() -> R) -> R {
        f()
    }

    #[inline(always)]
    fn load<'a>(self, of: impl Fn(usize) -> &'a F) -> F {
        *of(0)
    }

    #[inline(always)]
    fn store(self, x: F, mut put: impl FnMut(usize, F)) {
        put(0, x);
    }

    #[inline(always)]
    fn constant(self, x: &F) -> F {
        *x
    }

    #[inline(always)]
    fn all(self, k: &F) -> F {
        *k
    }

    #[inline(always)]
    fn zero(self) -> F {
        F::ZERO
    }

    #[inline(always)]
    fn unzip(self, a: F, b: F) -> [F; 2] {
        [a, b]
    }

    #[inline(always)]
    fn add(self, a: F, b: F) -> F {
        a + b
    }

    #[inline(always)]
    fn sub(self, a: F, b: F) -> F {
        a - b
    }

    #[inline(always)]
    fn mul(self, a: F, b: F) -> F {
        a * b
    }

    #[inline(always)]
    fn square(self, a: F) -> F {
        a.square()
    }

    #[inline(always)]
    fn weak(self, a: F) -> F {
        a
    }

    #[inline(always)]
    fn wide(self) -> F {
        F::ZERO
    }

    #[inline(always)]
    fn wide_from(self, x: F) -> F {
        x
    }

    #[inline(always)]
    fn mac(self, w: F, a: F, b: F) -> F {
        w + a * b
    }

    #[inline(always)]
    fn reduce(self, w: F) -> F {
        w
    }
}

impl<F: Field> Integers<F> for Portable {
    type I = F;

    #[inline(always)]
    fn raised(self, of: &[i64]) -> F {
        F::from(of[0] + (1 << 51))
    }

    #[inline(always)]
    fn scale(self, w: F, i: F, a: F) -> F {
        w + i * a
    }

    #[inline(always)]
    fn shorten(self, w: F) -> F {
        w / F::from(1u128 << 104)
    }
}

impl<C: MontConfig<4>> Picks<Fp<MontBackend<C, 4>, 4>> for Portable {
    #[inline(always)]
    fn pick(self, words: &Words, digits: &[u8]) -> Fp<MontBackend<C, 4>, 4> {
        Fp::new_unchecked(BigInt(scan(words, digits[0])))
    }

    #[inline(always)]
    fn signed(self, x: Fp<MontBackend<C, 4>, 4>, digits: &[u8]) -> Fp<MontBackend<C, 4>, 4> {
        let mut out = x;
        let mask = negative(digits[0]);
        for (word, other) in out.0 .0.iter_mut().zip((-x).0 .0) {
            *word ^= mask & (*word ^ other);
        }
        out
    }
}
