use ark_bn254::{Fq, Fr};
use ark_ff::{
    AdditiveGroup, BigInt, BigInteger, Field, Fp, MontBackend, MontConfig, PrimeField, UniformRand,
};

use ark_std::rand::RngCore;

use super::tracked::Tracked;
use super::*;

type Of<C> = Fp<MontBackend<C, 4>, 4>;

/// Extreme stored words, then random ones.
fn samples<C: MontConfig<4>>(count: usize) -> Vec<Of<C>> {
    let mut rng = ark_std::test_rng();
    let mut below = C::MODULUS;
    below.sub_with_borrow(&BigInt::from(1u8));
    let words = [
        BigInt::zero(),
        BigInt::one(),
        below,
        BigInt([u64::MAX, 0, 0, 0]),
        BigInt([u64::MAX, u64::MAX, u64::MAX, below.0[3] - 1]),
        BigInt([0, 0, 0, below.0[3]]),
        BigInt([1 << 51, 1 << 51, 0, 0]),
    ];
    let mut out: Vec<Of<C>> = words.map(Fp::new_unchecked).to_vec();
    // The bits at the ends of words and of 52-bit limbs, in the stored form and in the number.
    for bit in [52, 63, 64, 104, 128, 156, 192, 208, 252, 253] {
        let mut word = BigInt::one();
        word <<= bit;
        out.push(Fp::new_unchecked(word));
        word.sub_with_borrow(&BigInt::one());
        out.push(Fp::new_unchecked(word));
        out.extend([Of::<C>::from(word), -Of::<C>::from(word)]);
    }
    let known = out.len();
    out.extend((0..count).map(|_| Of::<C>::rand(&mut rng)));
    // All mixtures of extreme and random words.
    while out.len() < known + 2 * count {
        let mut word = || match rng.next_u64() % 6 {
            0 => 0,
            1 => u64::MAX,
            2 => 1 << 63,
            3 => 1 << (rng.next_u64() % 64),
            _ => rng.next_u64(),
        };
        let number = BigInt([word(), word(), word(), word() % (below.0[3] + 1)]);
        if number <= below {
            out.push(Fp::new_unchecked(number));
        }
    }
    out
}

/// Runs every operation at its largest bounds.
#[inline(always)]
fn exercise<F: Field, L: Lanes<F>>(l: L, a: &[F], b: &[F]) -> Vec<F> {
    let mut out = Vec::new();
    let mut keep = |x: L::V| {
        let mut lanes = vec![F::ZERO; L::N];
        l.store(x, |i, x| lanes[i] = x);
        out.extend(lanes);
    };
    let (x, y) = (l.load(|i| &a[i]), l.load(|i| &b[i]));
    let four = l.add(l.add(l.add(x, y), x), y);
    let three = l.add(l.add(x, y), x);
    keep(x);
    keep(three);
    keep(l.sub(x, y));
    keep(l.sub(y, x));
    keep(l.shl::<1>(x));
    keep(l.shl::<4>(l.weak(y)));
    keep(l.mul(x, y));
    keep(l.weak(l.mul(four, four)));
    keep(l.square(x));
    keep(l.weak(l.square(four)));
    keep(l.weak(four));
    keep(l.mul(l.sub(l.weak(four), l.weak(x)), l.splat(&b[0])));
    keep(l.zero());
    let mut sum = l.wide();
    for _ in 0..19 {
        sum = l.mac(sum, x, y);
    }
    keep(l.weak(l.reduce(sum)));
    let (w, v) = (l.weak(x), l.weak(y));
    sum = l.wide();
    for _ in 0..PRODUCTS {
        sum = l.mac(sum, w, v);
    }
    keep(l.weak(l.reduce(sum)));
    sum = l.mac(l.wide_from(three), x, y);
    keep(l.weak(l.reduce(sum)));
    out.push(l.sum(four));
    out
}

fn agree<C: MontConfig<4>>() {
    let values = samples::<C>(80);
    for shift in 0..values.len() {
        let at =
            |k: usize| -> Vec<Of<C>> { (0..8).map(|i| values[(k + i) % values.len()]).collect() };
        let (a, b) = (at(shift), at(7 * shift));
        let expected = exercise(Tracked, &a, &b);
        #[cfg(target_arch = "x86_64")]
        if let Some(l) = Avx512::detect() {
            assert_eq!(vectorize(l, || exercise(l, &a, &b)), expected);
        }
        // One lane at a time: the same residues in another order.
        for i in 0..8 {
            let one = exercise(Portable, &a[i..], &b[i..]);
            let lane: Vec<Of<C>> = expected
                .chunks(8)
                .take(one.len() - 1)
                .map(|run| run[i])
                .collect();
            let differs = 11; // multiplied by the first lane's factor
            for (k, (x, y)) in one.iter().zip(&lane).enumerate() {
                assert!(k == differs && i > 0 || x == y, "operation {k}, lane {i}");
            }
        }
    }
}

#[test]
fn lanes_agree_with_the_field() {
    agree::<ark_bn254::FrConfig>();
    agree::<ark_bn254::FqConfig>();
}

/// The products by the processor's own instructions and by plain ones, of values up to twice the modulus.
fn products_agree<C: MontConfig<4>>() {
    let mut words: Vec<[u64; 4]> = samples::<C>(40).iter().map(|x| x.0 .0).collect();
    let doubled: Vec<[u64; 4]> = (words.iter())
        .map(|x| {
            let mut x = BigInt(*x);
            x.add_with_carry(&C::MODULUS);
            x.0
        })
        .collect();
    words.extend(doubled);
    for a in &words {
        for b in &words {
            let actual = portable::plain_product::<C>(a, b);
            let mut twice = C::MODULUS;
            twice.mul2();
            assert!(BigInt(actual) < twice);
            let residue = |x: &[u64; 4]| {
                let mut x = BigInt(*x);
                if x >= C::MODULUS {
                    x.sub_with_borrow(&C::MODULUS);
                }
                Of::<C>::new_unchecked(x)
            };
            assert_eq!(residue(&actual), residue(a) * residue(b));
            #[cfg(target_arch = "x86_64")]
            if !cfg!(miri) && adx::detected() {
                // SAFETY: the processor has the instructions.
                let own = unsafe { adx::product(a, b, &C::MODULUS.0, C::INV) };
                assert_eq!(own, actual);
            }
        }
    }
}

#[test]
fn products_of_one_residue_agree() {
    products_agree::<ark_bn254::FrConfig>();
    products_agree::<ark_bn254::FqConfig>();
}

/// Sums of integers' multiples, at the largest bounds.
#[inline(always)]
fn scaled<L: Integers<Fr>>(l: L, integers: &[i64], a: &[Fr]) -> Vec<Fr> {
    let (i, a) = (l.raised(integers), l.load(|i| &a[i]));
    let mut sum = l.wide();
    for _ in 0..PRODUCTS {
        sum = l.scale(sum, i, a);
    }
    let mut out = vec![Fr::ZERO; L::N];
    l.store(l.shorten(sum), |i, x| out[i] = x);
    out
}

#[test]
fn integers_scale_residues() {
    const EXTREME: i64 = 1 << 51;
    let integers = [EXTREME - 1, 0, -1, 1, -EXTREME, 77, 1 << 40, -65_535];
    let values = samples::<ark_bn254::FrConfig>(20);
    for a in values.windows(8) {
        let expected: Vec<Fr> = integers
            .iter()
            .zip(a)
            .map(|(i, a)| {
                let all = Fr::from(*i + EXTREME) * a * Fr::from(PRODUCTS as u64);
                all / Fr::from(1u128 << 104)
            })
            .collect();
        assert_eq!(scaled(Tracked, &integers, a), expected);
        assert_eq!(scaled(Portable, &integers[..1], a), expected[..1]);
        #[cfg(target_arch = "x86_64")]
        if let Some(l) = Avx512::detect() {
            assert_eq!(vectorize(l, || scaled(l, &integers, a)), expected);
        }
    }
}

#[inline(always)]
fn unzipped<L: Lanes<Fr>>(l: L, x: &[Fr]) -> Vec<Fr> {
    let mut out = vec![Fr::ZERO; 2 * L::N];
    let halves = l.unzip(l.load(|i| &x[i]), l.load(|i| &x[L::N + i]));
    for (half, out) in halves.into_iter().zip(out.chunks_mut(L::N)) {
        l.store(half, |i, x| out[i] = x);
    }
    out
}

#[test]
fn unzipping_parts_pairs() {
    let x: Vec<Fr> = (0..16u8).map(Fr::from).collect();
    let expected: Vec<Fr> = (0..16u8).map(|i| Fr::from(2 * (i % 8) + i / 8)).collect();
    assert_eq!(unzipped(Tracked, &x), expected);
    assert_eq!(unzipped(Portable, &x[..2]), x[..2]);
    #[cfg(target_arch = "x86_64")]
    if let Some(l) = Avx512::detect() {
        assert_eq!(vectorize(l, || unzipped(l, &x)), expected);
    }
}

#[test]
fn bounds_hold_for_both_primes() {
    for p in [Fr::MODULUS, Fq::MODULUS] {
        // p < 2^253.7 / 1.0: 2^260 / p > 84.
        let top = p.0[3] as f64 / 2f64.powi(64) * 2f64.powi(256);
        assert!(2f64.powi(260) / (top * (1.0 + 1e-9)) > 84.0);
    }
}

#[test]
#[should_panic(expected = "a value of up to")]
fn a_broken_bound_is_found() {
    let x = [Fr::ONE; 8];
    let v = Tracked.load(|i| &x[i]);
    let twice = |v| Tracked.add(v, v);
    twice(twice(twice(v)));
}
