//! Lanes for tests that carry the bound of every value and panic if a kernel violates a bound.
use ark_ff::{BigInt, Field, Fp, MontBackend, MontConfig};

use super::pick::{negative, scan, Words};
use super::{Integers, Lanes, Picks, BOUND, LOADED, PRODUCTS, STORED, SUM};

/// The same number of lanes as [`Avx512`](super::Avx512), so that kernels take the same path.
#[derive(Clone, Copy, Debug)]
pub struct Tracked;

const N: usize = 8;
/// A lower bound of 2^260 / p for both primes of BN254.
const SPARE: f64 = 84.0;
/// An upper bound of 2^260 / p for both primes of BN254.
const START: f64 = 85.0;

/// Residues, and what all of them are below, in multiples of p.
#[derive(Clone, Copy, Debug)]
pub struct Value<F>([F; N], f64);

/// A sum: its value, the bound and the number of its products.
#[derive(Clone, Copy, Debug)]
pub struct Wide<F>(Value<F>, usize);

fn value<F: Field>(residues: [F; N], bound: f64) -> Value<F> {
    assert!(bound <= BOUND, "a value of up to {bound} p");
    Value(residues, bound)
}

fn both<F: Field>(a: Value<F>, b: Value<F>, f: impl Fn(F, F) -> F) -> [F; N] {
    std::array::from_fn(|i| f(a.0[i], b.0[i]))
}

impl<F: Field> Lanes<F> for Tracked {
    type V = Value<F>;
    type W = Wide<F>;
    type K = F;
    const N: usize = N;

    fn run<R>(self, f: impl FnOnce() -> R) -> R {
        f()
    }

    fn load<'a>(self, of: impl Fn(usize) -> &'a F) -> Value<F> {
        value(std::array::from_fn(|i| *of(i)), LOADED)
    }

    fn store(self, x: Value<F>, mut put: impl FnMut(usize, F)) {
        assert!(x.1 <= STORED, "a stored value of up to {} p", x.1);
        x.0.into_iter().enumerate().for_each(|(i, x)| put(i, x));
    }

    fn constant(self, x: &F) -> F {
        *x
    }

    fn all(self, k: &F) -> Value<F> {
        value([*k; N], 1.0)
    }

    fn zero(self) -> Value<F> {
        value([F::ZERO; N], 0.0)
    }

    fn unzip(self, a: Value<F>, b: Value<F>) -> [Value<F>; 2] {
        let bound = a.1.max(b.1);
        let both = [a.0, b.0].concat();
        [0, 1].map(|first| value(std::array::from_fn(|i| both[2 * i + first]), bound))
    }

    fn add(self, a: Value<F>, b: Value<F>) -> Value<F> {
        value(both(a, b, |a, b| a + b), a.1 + b.1)
    }

    fn sub(self, a: Value<F>, b: Value<F>) -> Value<F> {
        assert!(b.1 <= LOADED, "a subtrahend of up to {} p", b.1);
        value(both(a, b, |a, b| a - b), a.1 + LOADED)
    }

    fn mul(self, a: Value<F>, b: Value<F>) -> Value<F> {
        value(both(a, b, |a, b| a * b), 1.0 + a.1 * b.1 / SPARE)
    }

    fn square(self, a: Value<F>) -> Value<F> {
        self.mul(a, a)
    }

    fn weak(self, a: Value<F>) -> Value<F> {
        value(a.0, 3.0)
    }

    fn wide(self) -> Wide<F> {
        Wide(value([F::ZERO; N], 0.0), 0)
    }

    fn wide_from(self, x: Value<F>) -> Wide<F> {
        Wide(Value(x.0, START * x.1), 1)
    }

    fn mac(self, w: Wide<F>, a: Value<F>, b: Value<F>) -> Wide<F> {
        let bound = w.0 .1 + a.1 * b.1;
        assert!(bound <= SUM, "a sum of up to {bound} p^2");
        assert!(w.1 < PRODUCTS, "a sum of more than {PRODUCTS} products");
        let product = both(a, b, |a, b| a * b);
        Wide(
            Value(both(w.0, Value(product, 0.0), |a, b| a + b), bound),
            w.1 + 1,
        )
    }

    fn reduce(self, w: Wide<F>) -> Value<F> {
        value(w.0 .0, 1.0 + w.0 .1 / SPARE)
    }
}

impl<F: Field> Integers<F> for Tracked {
    type I = [F; N];

    fn raised(self, of: &[i64]) -> [F; N] {
        std::array::from_fn(|i| {
            let raised = of[i] + (1 << 51);
            assert!((0..1 << 52).contains(&raised), "the integer {}", of[i]);
            F::from(raised)
        })
    }

    fn scale(self, w: Wide<F>, i: [F; N], a: Value<F>) -> Wide<F> {
        assert!(a.1 <= LOADED, "a factor of up to {} p", a.1);
        assert!(w.1 < PRODUCTS, "a sum of more than {PRODUCTS} products");
        let product = both(Value(i, 0.0), a, |i, a| i * a);
        let sum = both(w.0, Value(product, 0.0), |a, b| a + b);
        Wide(Value(sum, w.0 .1), w.1 + 1)
    }

    fn shorten(self, w: Wide<F>) -> Value<F> {
        let factor = F::from(1u128 << 104).inverse().expect("not zero");
        value(w.0 .0.map(|x| x * factor), 2.0)
    }
}

impl<C: MontConfig<4>> Picks<Fp<MontBackend<C, 4>, 4>> for Tracked {
    fn pick(self, words: &Words, digits: &[u8]) -> Value<Fp<MontBackend<C, 4>, 4>> {
        let one = |i: usize| Fp::new_unchecked(BigInt(scan(words, digits[i])));
        value(std::array::from_fn(one), LOADED)
    }

    fn signed(
        self,
        x: Value<Fp<MontBackend<C, 4>, 4>>,
        digits: &[u8],
    ) -> Value<Fp<MontBackend<C, 4>, 4>> {
        assert!(x.1 <= LOADED, "a subtrahend of up to {} p", x.1);
        let one = |i: usize| match negative(digits[i]) {
            0 => x.0[i],
            _ => -x.0[i],
        };
        value(std::array::from_fn(one), LOADED)
    }
}
