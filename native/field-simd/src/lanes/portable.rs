//! One residue at a time, for every processor.
//!
//! A value is a residue's Montgomery form as in `ark-ff`, but it is only below 2 p. As p < 2^254, a product of two such values
//! is below 2 p without its last subtraction, and only stored values are reduced. The steps are the same for all values.
use ark_ff::{BigInt, Fp, MontBackend, MontConfig};

use super::pick::{negative, scan, Words};
use super::{widely, Integers, Lanes, Picks};

#[derive(Clone, Copy, Debug)]
pub struct Portable;

type V = [u64; 4];

/// Constants of one field.
struct Of<C>(std::marker::PhantomData<C>);

impl<C: MontConfig<4>> Of<C> {
    const P: V = C::MODULUS.0;
    const TWO_P: V = {
        let p = C::MODULUS.0;
        [
            p[0] << 1,
            p[1] << 1 | p[0] >> 63,
            p[2] << 1 | p[1] >> 63,
            p[3] << 1 | p[2] >> 63,
        ]
    };
}

#[inline(always)]
fn plus(a: &V, b: &V) -> V {
    let mut out = [0; 4];
    let mut carry = 0;
    for i in 0..4 {
        let sum = u128::from(a[i]) + u128::from(b[i]) + u128::from(carry);
        (out[i], carry) = (sum as u64, (sum >> 64) as u64);
    }
    out
}

/// a - b, and a word with all bits one if the difference is negative.
#[inline(always)]
fn minus(a: &V, b: &V) -> (V, u64) {
    let mut out = [0; 4];
    let mut borrow = 0;
    for i in 0..4 {
        let (difference, first) = a[i].overflowing_sub(b[i]);
        let (difference, second) = difference.overflowing_sub(borrow);
        (out[i], borrow) = (difference, u64::from(first | second));
    }
    (out, borrow.wrapping_neg())
}

/// x if it is below m, else x - m.
#[inline(always)]
fn below(x: &V, m: &V) -> V {
    let (difference, borrowed) = minus(x, m);
    let back = m.map(|word| word & borrowed);
    plus(&difference, &back)
}

/// Montgomery's product of two values below 2 p: below 2 p.
#[inline(always)]
fn product<C: MontConfig<4>>(a: &V, b: &V) -> V {
    #[cfg(target_arch = "x86_64")]
    if !cfg!(miri) && super::adx::detected() {
        // SAFETY: the processor has the instructions.
        return unsafe { super::adx::product(a, b, &Of::<C>::P, C::INV) };
    }
    plain_product::<C>(a, b)
}

/// By rows: as p has two spare bits, every intermediate sum is below 2^320.
#[inline(always)]
pub(super) fn plain_product<C: MontConfig<4>>(a: &V, b: &V) -> V {
    let wide = |x: u64, y: u64, add: u64, carry: u64| {
        let sum = u128::from(x) * u128::from(y) + u128::from(add) + u128::from(carry);
        (sum as u64, (sum >> 64) as u64)
    };
    let p = Of::<C>::P;
    let mut out = [0u64; 4];
    for x in a {
        let (low, mut carry) = wide(*x, b[0], out[0], 0);
        let m = low.wrapping_mul(C::INV);
        let (_, mut reduced) = wide(m, p[0], low, 0);
        for j in 1..4 {
            let next;
            (next, carry) = wide(*x, b[j], out[j], carry);
            (out[j - 1], reduced) = wide(m, p[j], next, reduced);
        }
        out[3] = carry + reduced;
    }
    out
}

impl<C: MontConfig<4>> Lanes<Fp<MontBackend<C, 4>, 4>> for Portable {
    type V = V;
    type W = V;
    type K = V;
    const N: usize = 1;

    #[inline(always)]
    fn run<R>(self, f: impl FnOnce() -> R) -> R {
        widely(f)
    }

    #[inline(always)]
    fn load<'a>(self, of: impl Fn(usize) -> &'a Fp<MontBackend<C, 4>, 4>) -> V {
        of(0).0 .0
    }

    #[inline(always)]
    fn store(self, x: V, mut put: impl FnMut(usize, Fp<MontBackend<C, 4>, 4>)) {
        put(0, Fp::new_unchecked(BigInt(below(&x, &Of::<C>::P))));
    }

    #[inline(always)]
    fn constant(self, x: &Fp<MontBackend<C, 4>, 4>) -> V {
        x.0 .0
    }

    #[inline(always)]
    fn all(self, k: &V) -> V {
        *k
    }

    #[inline(always)]
    fn zero(self) -> V {
        [0; 4]
    }

    #[inline(always)]
    fn unzip(self, a: V, b: V) -> [V; 2] {
        [a, b]
    }

    #[inline(always)]
    fn add(self, a: V, b: V) -> V {
        below(&plus(&a, &b), &Of::<C>::TWO_P)
    }

    #[inline(always)]
    fn sub(self, a: V, b: V) -> V {
        let (difference, borrowed) = minus(&a, &b);
        plus(&difference, &Of::<C>::TWO_P.map(|word| word & borrowed))
    }

    #[inline(always)]
    fn mul(self, a: V, b: V) -> V {
        product::<C>(&a, &b)
    }

    #[inline(always)]
    fn square(self, a: V) -> V {
        product::<C>(&a, &a)
    }

    #[inline(always)]
    fn weak(self, a: V) -> V {
        a
    }

    #[inline(always)]
    fn wide(self) -> V {
        [0; 4]
    }

    #[inline(always)]
    fn wide_from(self, x: V) -> V {
        x
    }

    #[inline(always)]
    fn mac(self, w: V, a: V, b: V) -> V {
        below(&plus(&w, &product::<C>(&a, &b)), &Of::<C>::TWO_P)
    }

    #[inline(always)]
    fn reduce(self, w: V) -> V {
        w
    }
}

impl<C: MontConfig<4>> Integers<Fp<MontBackend<C, 4>, 4>> for Portable {
    type I = V;

    #[inline(always)]
    fn raised(self, of: &[i64]) -> V {
        Fp::<MontBackend<C, 4>, 4>::from(of[0] + (1 << 51)).0 .0
    }

    #[inline(always)]
    fn scale(self, w: V, i: V, a: V) -> V {
        below(&plus(&w, &product::<C>(&i, &a)), &Of::<C>::TWO_P)
    }

    #[inline(always)]
    fn shorten(self, w: V) -> V {
        // 2^152 / 2^256 = 1 / 2^104.
        product::<C>(&w, &[0, 0, 1 << 24, 0])
    }
}

impl<C: MontConfig<4>> Picks<Fp<MontBackend<C, 4>, 4>> for Portable {
    #[inline(always)]
    fn pick(self, words: &Words, digits: &[u8]) -> V {
        scan(words, digits[0])
    }

    #[inline(always)]
    fn signed(self, x: V, digits: &[u8]) -> V {
        let other = Lanes::<Fp<MontBackend<C, 4>, 4>>::sub(self, [0; 4], x);
        let mask = negative(digits[0]);
        let mut out = x;
        for (word, other) in out.iter_mut().zip(other) {
            *word ^= mask & (*word ^ other);
        }
        out
    }
}
