//! One residue at a time, for every processor.
use ark_ff::Field;

use super::{Integers, Lanes};

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
