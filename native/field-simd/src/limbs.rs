//! Montgomery arithmetic on raw limbs, without secret-dependent branches, with sums of products reduced once.
//!
//! `ark-ff` reduces after every product and branches on the final subtraction. Poseidon's matrices are sums of
//! 17 to 20 products, and its input in the noise stream is a secret key, so it uses this module instead. Values
//! are in Montgomery form with radix 2^256. As r < 2^254, a product of two values below 2r is again below 2r
//! without any subtraction, and 512 bits hold the sum of 27 products of values below r.
use ark_bn254::{Fr, FrConfig};
use ark_ff::{BigInt, MontConfig, PrimeField};

use crate::lanes::Lanes;

/// A residue in Montgomery form, below r unless the function that returns it says below 2r.
pub type Limbs = [u64; 4];

const R: Limbs = Fr::MODULUS.0;
const INV: u64 = <FrConfig as MontConfig<4>>::INV;
const R2: Limbs = double(R);
const R4: Limbs = double(R2);

const fn double(x: Limbs) -> Limbs {
    [
        x[0] << 1,
        x[1] << 1 | x[0] >> 63,
        x[2] << 1 | x[1] >> 63,
        x[3] << 1 | x[2] >> 63,
    ]
}

pub fn from_field(x: &Fr) -> Limbs {
    x.0 .0
}

pub fn to_field(x: &Limbs) -> Fr {
    Fr::new_unchecked(BigInt(*x))
}

/// `acc + a * b + carry` as (low, high).
#[inline(always)]
fn mac(acc: u64, a: u64, b: u64, carry: u64) -> (u64, u64) {
    let t = u128::from(a) * u128::from(b) + u128::from(acc) + u128::from(carry);
    (t as u64, (t >> 64) as u64)
}

#[inline(always)]
fn add_carry(a: u64, b: u64, carry: u64) -> (u64, u64) {
    let t = u128::from(a) + u128::from(b) + u128::from(carry);
    (t as u64, (t >> 64) as u64)
}

/// `x` if below `m`, else `x - m`, by mask.
#[inline(always)]
fn subtract_once(x: &Limbs, m: &Limbs) -> Limbs {
    let mut d = [0; 4];
    let mut borrow = 0;
    for i in 0..4 {
        let t = u128::from(x[i])
            .wrapping_sub(u128::from(m[i]))
            .wrapping_sub(u128::from(borrow));
        d[i] = t as u64;
        borrow = (t >> 64) as u64 & 1;
    }
    let keep = borrow.wrapping_neg();
    [
        d[0] ^ keep & (x[0] ^ d[0]),
        d[1] ^ keep & (x[1] ^ d[1]),
        d[2] ^ keep & (x[2] ^ d[2]),
        d[3] ^ keep & (x[3] ^ d[3]),
    ]
}

/// Sum of two values below r; below 2r.
#[inline(always)]
pub fn add_lazy(a: &Limbs, b: &Limbs) -> Limbs {
    let mut out = [0; 4];
    let mut carry = 0;
    for i in 0..4 {
        (out[i], carry) = add_carry(a[i], b[i], carry);
    }
    out
}

/// Product of two values below 2r; below 2r. (Coarsely integrated operand scanning; r's spare bits make the
/// intermediate sums, below 3r, fit.)
#[inline(always)]
fn mul_lazy(a: &Limbs, b: &Limbs) -> Limbs {
    let mut t = [0u64; 4];
    for &ai in a {
        let (low, mut carry) = mac(t[0], ai, b[0], 0);
        let m = low.wrapping_mul(INV);
        let (_, mut reduced) = mac(low, m, R[0], 0);
        for j in 1..4 {
            let (v, c) = mac(t[j], ai, b[j], carry);
            carry = c;
            (t[j - 1], reduced) = mac(v, m, R[j], reduced);
        }
        t[3] = carry + reduced;
    }
    t
}

/// The canonical integer (not in Montgomery form) of a value below 2r.
pub fn to_integer(x: &Limbs) -> Limbs {
    subtract_once(&mul_lazy(x, &[1, 0, 0, 0]), &R)
}

/// A sum of products, reduced once.
#[derive(Clone, Copy)]
pub struct Sum([u64; 8]);

impl Sum {
    /// How many products of values below r one sum may hold.
    pub const CAPACITY: usize = 22;

    #[inline(always)]
    pub fn zero() -> Self {
        Self([0; 8])
    }

    /// Starts from a value instead of zero; it counts as 6 products.
    #[inline(always)]
    pub fn from_value(x: &Limbs) -> Self {
        Self([0, 0, 0, 0, x[0], x[1], x[2], x[3]])
    }

    /// Adds the product of two values below r.
    #[inline(always)]
    pub fn add_product(&mut self, a: &Limbs, b: &Limbs) {
        let mut product = [0u64; 8];
        for i in 0..4 {
            let mut carry = 0;
            for j in 0..4 {
                (product[i + j], carry) = mac(product[i + j], a[i], b[j], carry);
            }
            product[i + 4] = carry;
        }
        let mut carry = 0;
        for (limb, p) in self.0.iter_mut().zip(product) {
            (*limb, carry) = add_carry(*limb, p, carry);
        }
    }

    /// The sum, below r. At most [`Sum::CAPACITY`] products keep the total below 2^512 and the quotient below
    /// 22 r^2 / 2^256 + r < 5.2 r < 2^256; what exceeds r goes in three masked subtractions.
    #[inline(always)]
    pub fn reduce(mut self) -> Limbs {
        let t = &mut self.0;
        let mut overflow = 0;
        for i in 0..4 {
            let m = t[i].wrapping_mul(INV);
            let mut carry = 0;
            for j in 0..4 {
                (t[i + j], carry) = mac(t[i + j], m, R[j], carry);
            }
            (t[i + 4], overflow) = add_carry(t[i + 4], carry, overflow);
        }
        let high = [t[4], t[5], t[6], t[7]];
        subtract_once(&subtract_once(&subtract_once(&high, &R4), &R2), &R)
    }
}

/// One residue at a time with the same steps for all values: [`Lanes`] for secrets on processors without wider lanes. Its
/// bounds are narrower than theirs. `add` takes values below r; the results of `add` and `square` are below 2r and enter a
/// sum only after `weak`. A sum has at most [`Sum::CAPACITY`] products, and a start value counts as 6 of them.
#[derive(Clone, Copy, Debug)]
pub struct Steady;

impl Lanes<Fr> for Steady {
    type V = Limbs;
    type W = Sum;
    type K = Limbs;
    const N: usize = 1;

    #[inline(always)]
    fn run<R>(self, f: impl FnOnce() -> R) -> R {
        f()
    }

    #[inline(always)]
    fn load<'a>(self, of: impl Fn(usize) -> &'a Fr) -> Limbs {
        from_field(of(0))
    }

    #[inline(always)]
    fn store(self, x: Limbs, mut put: impl FnMut(usize, Fr)) {
        put(0, to_field(&self.weak(x)));
    }

    #[inline(always)]
    fn constant(self, x: &Fr) -> Limbs {
        from_field(x)
    }

    #[inline(always)]
    fn all(self, k: &Limbs) -> Limbs {
        *k
    }

    #[inline(always)]
    fn zero(self) -> Limbs {
        [0; 4]
    }

    #[inline(always)]
    fn unzip(self, a: Limbs, b: Limbs) -> [Limbs; 2] {
        [a, b]
    }

    #[inline(always)]
    fn add(self, a: Limbs, b: Limbs) -> Limbs {
        add_lazy(&a, &b)
    }

    #[inline(always)]
    fn sub(self, a: Limbs, b: Limbs) -> Limbs {
        self.add(a, subtract_once(&R, &b))
    }

    #[inline(always)]
    fn mul(self, a: Limbs, b: Limbs) -> Limbs {
        subtract_once(&mul_lazy(&a, &b), &R)
    }

    #[inline(always)]
    fn square(self, a: Limbs) -> Limbs {
        mul_lazy(&a, &a)
    }

    #[inline(always)]
    fn weak(self, a: Limbs) -> Limbs {
        subtract_once(&a, &R)
    }

    #[inline(always)]
    fn wide(self) -> Sum {
        Sum::zero()
    }

    #[inline(always)]
    fn wide_from(self, x: Limbs) -> Sum {
        Sum::from_value(&x)
    }

    #[inline(always)]
    fn mac(self, mut w: Sum, a: Limbs, b: Limbs) -> Sum {
        w.add_product(&a, &b);
        w
    }

    #[inline(always)]
    fn reduce(self, w: Sum) -> Limbs {
        w.reduce()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ark_ff::{AdditiveGroup, Field, UniformRand};

    fn samples() -> Vec<Fr> {
        let mut rng = ark_std::test_rng();
        let mut out = vec![Fr::from(0u8), Fr::from(1u8), -Fr::from(1u8), -Fr::from(2u8)];
        out.extend((0..30).map(|_| Fr::rand(&mut rng)));
        // Residues with an extreme Montgomery form.
        for limbs in [
            [0, 0, 0, 1],
            [R[0] - 1, R[1], R[2], R[3]],
            [u64::MAX, 0, 0, 0],
        ] {
            out.push(to_field(&limbs));
        }
        out
    }

    #[test]
    fn steady_lanes_agree_with_ark() {
        let one = |x: Limbs| {
            let mut out = Fr::ZERO;
            Steady.store(x, |_, x| out = x);
            out
        };
        for a in samples() {
            for b in samples() {
                let (x, y) = (from_field(&a), from_field(&b));
                assert_eq!(one(Steady.add(x, y)), a + b);
                assert_eq!(one(Steady.sub(x, y)), a - b);
                assert_eq!(one(Steady.mul(x, y)), a * b);
                assert_eq!(one(Steady.square(x)), a.square());
                let sum = Steady.add(x, y);
                let fourth = Steady.square(Steady.square(sum));
                assert_eq!(one(Steady.mul(fourth, sum)), (a + b).pow([5]));
                assert_eq!(to_field(&Steady.weak(sum)), a + b);
                let sum = Steady.mac(Steady.wide_from(x), x, y);
                assert_eq!(one(Steady.reduce(sum)), a + a * b);
            }
        }
    }

    #[test]
    fn integer_is_canonical() {
        for x in samples() {
            assert_eq!(to_integer(&from_field(&x)), x.into_bigint().0);
        }
        assert_eq!(to_integer(&R), [0; 4]);
    }

    #[test]
    fn full_sums_agree_with_ark() {
        for a in samples() {
            for b in samples() {
                let mut sum = Sum::zero();
                for _ in 0..Sum::CAPACITY {
                    sum.add_product(&from_field(&a), &from_field(&b));
                }
                assert_eq!(
                    to_field(&sum.reduce()),
                    a * b * Fr::from(Sum::CAPACITY as u64)
                );
                let mut sum = Sum::from_value(&from_field(&a));
                sum.add_product(&from_field(&b), &from_field(&b));
                assert_eq!(to_field(&sum.reduce()), a + b * b);
            }
        }
    }
}
