//! A secret scalar as two scalars of half its length, by the endomorphism (x, y) -> (beta x, y) of both groups (Gallant, Lambert,
//! Vanstone 2001): k P = k1 P + k2 P', by the same steps for every k.
use ark_bn254::{g1, g2, Fq2, Fr};
use ark_ec::scalar_mul::glv::GLVConfig;
use ark_ff::{BigInt, MontFp, PrimeField};
use ragaudit_field_simd::sums::Point;
use rayon::prelude::*;

use crate::field::Group;

/// Bits of a half's magnitude.
pub const HALF: u8 = 126;

/// A group with a map of points that has the eigenvalue of the first group's endomorphism.
pub trait Halved: Group {
    /// The first coordinate's factor.
    const FACTOR: Self::BaseField;

    /// The points, and after them their images.
    fn with_images(points: &[Point<Self::BaseField>]) -> Vec<Point<Self::BaseField>> {
        let mut all = Vec::with_capacity(2 * points.len());
        all.extend_from_slice(points);
        let image = |p: &Point<Self::BaseField>| Point {
            x: p.x * Self::FACTOR,
            y: p.y,
        };
        all.par_extend(points.par_iter().with_min_len(1 << 10).map(image));
        all
    }
}

impl Halved for g1::Config {
    const FACTOR: Self::BaseField = g1::Config::ENDO_COEFFS[0];
}

impl Halved for g2::Config {
    /// beta^2 = -1 - beta, because the eigenvalue of beta itself is here the square of the first group's eigenvalue.
    const FACTOR: Self::BaseField = Fq2::new(
        MontFp!("2203960485148121921418603742825762020974279258880205651966"),
        MontFp!("0"),
    );
}

/// The lattice of all (x, y) with x + lambda y = 0 has the rows (-A, B) and (-B, -D). Their determinant is r.
const A: u128 = low(&g1::Config::SCALAR_DECOMP_COEFFS[0].1 .0);
const B: u128 = low(&g1::Config::SCALAR_DECOMP_COEFFS[1].1 .0);
const D: u128 = low(&g1::Config::SCALAR_DECOMP_COEFFS[3].1 .0);
/// 2^320 B / r and 2^320 D / r.
const BY_B: [u64; 4] = ratio(B);
const BY_D: [u64; 4] = ratio(D);

const fn low(words: &[u64; 4]) -> u128 {
    words[0] as u128 | (words[1] as u128) << 64
}

/// floor(2^320 x / r), bit by bit.
const fn ratio(x: u128) -> [u64; 4] {
    let r = Fr::MODULUS.0;
    let (mut quotient, mut rest) = ([0u64; 4], [0u64; 4]);
    let mut bit = 128 + 320;
    while bit > 0 {
        bit -= 1;
        let next = if bit >= 320 {
            (x >> (bit - 320)) as u64 & 1
        } else {
            0
        };
        // rest = 2 rest + next, minus r if the difference is not negative.
        let (mut twice, mut less) = ([0u64; 4], [0u64; 4]);
        let (mut carry, mut borrow) = (next, false);
        let mut i = 0;
        while i < 4 {
            twice[i] = rest[i] << 1 | carry;
            carry = rest[i] >> 63;
            let (difference, first) = twice[i].overflowing_sub(r[i]);
            let (difference, second) = difference.overflowing_sub(borrow as u64);
            less[i] = difference;
            borrow = first | second;
            i += 1;
        }
        rest = if borrow { twice } else { less };
        if !borrow {
            quotient[bit / 64] |= 1 << (bit % 64);
        }
    }
    quotient
}

/// The integer nearest to k ratio / 2^320.
fn rounded(k: &[u64; 4], ratio: &[u64; 4]) -> u128 {
    let mut product = [0u64; 8];
    for (i, x) in k.iter().enumerate() {
        let mut carry = 0;
        for (j, y) in ratio.iter().enumerate() {
            let sum = u128::from(*x) * u128::from(*y) + u128::from(product[i + j]) + carry;
            product[i + j] = sum as u64;
            carry = sum >> 64;
        }
        product[i + 4] = carry as u64;
    }
    // Adding half of 2^320 rounds to the nearest integer; its carry is the highest bit of word 4.
    let whole = u128::from(product[5]) | u128::from(product[6]) << 64;
    whole + u128::from(product[4] >> 63)
}

/// (k1, k2) with k = k1 + lambda k2, both below 2^[`HALF`] in magnitude. The pair is (k, 0) minus the nearest point of
/// the lattice, so its coordinates are at most (A + B) / 2 and (B + D) / 2.
pub fn halves(k: &BigInt<4>) -> [i128; 2] {
    let (u, v) = (rounded(&k.0, &BY_D), rounded(&k.0, &BY_B));
    // Both halves are short, so their lowest 128 bits determine them.
    let first = low(&k.0)
        .wrapping_sub(u.wrapping_mul(A))
        .wrapping_sub(v.wrapping_mul(B));
    let second = u.wrapping_mul(B).wrapping_sub(v.wrapping_mul(D));
    [first as i128, second as i128]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::to_plain;
    use ark_ec::short_weierstrass::Affine;
    use ark_ec::{AffineRepr, CurveGroup};
    use ark_ff::{Field, UniformRand};

    fn signed(x: i128) -> Fr {
        let magnitude = Fr::from(x.unsigned_abs());
        if x < 0 {
            -magnitude
        } else {
            magnitude
        }
    }

    #[test]
    fn halves_make_the_scalar_and_are_short() {
        let mut rng = ark_std::test_rng();
        let half = Fr::from_bigint(Fr::MODULUS_MINUS_ONE_DIV_TWO).expect("below r");
        let lambda = g1::Config::LAMBDA;
        let edges = [0u64, 1, 2, 3].map(Fr::from).into_iter();
        let mut all: Vec<Fr> = edges.chain([half, lambda, lambda * half]).collect();
        all.extend((0..253).map(|k| Fr::from(2u8).pow([k])));
        // Scalars near the largest coordinates: halfway between points of the lattice.
        let (a, b, d) = (Fr::from(A / 2), Fr::from(B / 2), Fr::from(D / 2));
        all.extend([
            a + lambda * b,
            b + lambda * d,
            a + b + lambda * (d - b),
            a - b + lambda * (b + d),
        ]);
        all.extend((0..2000).map(|_| Fr::rand(&mut rng)));
        let mut largest = 0;
        for k in all.iter().flat_map(|k| [*k, -*k, *k + Fr::ONE]) {
            let [x, y] = halves(&k.into_bigint());
            assert_eq!(signed(x) + lambda * signed(y), k);
            largest = largest.max(x.unsigned_abs()).max(y.unsigned_abs());
        }
        assert!(
            largest >> HALF == 0 && largest >> (HALF - 1) == 1,
            "{largest}"
        );
        // Rounding leaves at most half of either row, plus the error of the ratios.
        const { assert!((A + B) / 2 + 2 < 1 << HALF && (B + D) / 2 + 2 < 1 << HALF) };
        assert_eq!(halves(&BigInt::from(1u8)), [1, 0]);
        assert_eq!(halves(&(-Fr::ONE).into_bigint()), [-1, 0]);
    }

    fn image<P: Halved>() {
        let point = (P::GENERATOR * Fr::from(5u8)).into_affine();
        let expected = (point * g1::Config::LAMBDA).into_affine();
        let actual = P::with_images(&[to_plain(&point), Point::default()]);
        let plain = [&point, &Affine::zero(), &expected, &Affine::zero()].map(to_plain);
        assert_eq!(actual, plain);
    }

    #[test]
    fn images_are_multiples_by_the_eigenvalue() {
        image::<g1::Config>();
        image::<g2::Config>();
    }
}
