//! The sums of many points against the plain double-and-add of arkworks, and BLAKE2b against RFC 7693.
use ark_bn254::{g1, g2, Fr, G1Affine, G1Projective, G2Affine, G2Projective};
use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::{BigInt, PrimeField, Zero};
use ragaudit_groth16::affine::{differences, segment_sums};
use ragaudit_groth16::combine::{Actions, Columns};
use ragaudit_groth16::msm::{msm, msm_digits, recode, Digits, FixedBase};
use ragaudit_groth16::secret::{invert_all, Chain, Secret};
use ragaudit_groth16::transcript::{blake2b, random_scalar, Blake2b};

/// Zero, units, small, powers of two, the middle of the field and its ends, and random ones.
fn scalars(count: usize) -> Vec<Fr> {
    let two = |k: u64| ark_ff::Field::pow(&Fr::from(2u64), [k]);
    let half = Fr::from_bigint(Fr::MODULUS_MINUS_ONE_DIV_TWO).unwrap();
    let edge = [
        Fr::zero(),
        Fr::from(1u64),
        -Fr::from(1u64),
        Fr::from(2u64),
        -Fr::from(7u64),
        two(63),
        two(64),
        two(127),
        two(128),
        two(252),
        two(253),
        half,
        half + Fr::from(1u64),
        -two(200),
    ];
    (0..count)
        .map(|i| match i % 3 {
            0 => edge[(i / 3) % edge.len()],
            _ => random_scalar().unwrap(),
        })
        .collect()
}

/// Random points with repetitions, opposites and infinity among them.
fn points(count: usize) -> Vec<G1Affine> {
    let mut out: Vec<G1Affine> = Vec::new();
    for i in 0..count {
        out.push(match i % 7 {
            3 => out[i - 1],
            4 => -out[i - 1],
            5 => G1Affine::zero(),
            _ => (G1Affine::generator() * random_scalar().unwrap()).into_affine(),
        });
    }
    out
}

fn plain(scalars: &[Fr]) -> Vec<BigInt<4>> {
    scalars.iter().map(|x| x.into_bigint()).collect()
}

fn naive(points: &[G1Affine], scalars: &[Fr]) -> G1Projective {
    points.iter().zip(scalars).map(|(p, k)| *p * k).sum()
}

#[test]
fn recoding_gives_the_scalar_back() {
    for width in 2..=16 {
        for k in scalars(60) {
            let mut sum = Fr::zero();
            recode(&k.into_bigint(), width, |w, d| {
                assert!(d != 0 && i32::from(d).abs() <= 1 << (width - 1));
                let digit = Fr::from(i64::from(d));
                sum += digit * ark_ff::Field::pow(&Fr::from(2u64), [(w * width) as u64]);
            });
            assert_eq!(sum, k, "width {width}");
        }
    }
}

#[test]
fn sums_of_products() {
    for count in [0, 1, 2, 3, 50, 700] {
        let (p, k) = (points(count), scalars(count));
        let expected = naive(&p, &k);
        assert_eq!(msm::<g1::Config>(&p, &plain(&k)), expected, "{count} terms");
        for width in [2, 7, 16] {
            let digits = Digits::with_width(&plain(&k), width);
            assert_eq!(msm_digits::<g1::Config>(&p, &digits), expected);
        }
    }
}

#[test]
fn sums_in_the_second_group() {
    let k = scalars(100);
    let p: Vec<G2Affine> = (1..=100u64)
        .map(|i| (G2Affine::generator() * Fr::from(i % 40)).into_affine())
        .collect();
    let expected: G2Projective = p.iter().zip(&k).map(|(p, k)| *p * k).sum();
    assert_eq!(msm::<g2::Config>(&p, &plain(&k)), expected);
}

/// One chain multiplies points of either group by any scalar, its ends included.
#[test]
fn multiples_by_one_secret() {
    let p = points(3000);
    let q: Vec<G2Affine> = (1..=20u64)
        .map(|i| (G2Affine::generator() * Fr::from(i % 7)).into_affine())
        .collect();
    for (i, k) in scalars(90).into_iter().enumerate() {
        if k.is_zero() {
            continue;
        }
        let secret = Secret::known(k);
        let count = if i < 2 { p.len() } else { 30 };
        let chain = Chain::<g1::Config>::new(&secret);
        let multiples = chain.multiply(&p[..count]);
        assert!(p.iter().zip(multiples).all(|(p, m)| *p * k == m));
        let multiples = Chain::<g2::Config>::new(&secret).multiply(&q);
        assert!(q.iter().zip(multiples).all(|(q, m)| *q * k == m));
        assert_eq!(secret.times(p[0]), p[0] * k);
        assert_eq!(*secret.inverse().value() * k, Fr::from(1u64));
    }
}

#[test]
fn inverses_of_many() {
    let values: Vec<Fr> = scalars(100);
    let scale = random_scalar().unwrap();
    let mut inverses = values.clone();
    invert_all(&mut inverses, &scale);
    for (x, inverse) in values.iter().zip(inverses) {
        let expected = if x.is_zero() { Fr::zero() } else { scale };
        assert_eq!(*x * inverse, expected);
    }
}

#[test]
fn multiples_of_one_base() {
    let k = scalars(3000);
    for width in [2, 8, 13] {
        let base = FixedBase::<g1::Config>::new(G1Affine::generator(), width);
        for (k, p) in k.iter().zip(base.multiply(&k)) {
            assert_eq!(G1Affine::generator() * k, p);
        }
    }
}

#[test]
fn segments_and_differences() {
    let p = points(40);
    let lengths = [0, 1, 2, 0, 7, 30, 0];
    let sums = segment_sums::<g1::Config>(p.clone(), &lengths, &mut Vec::new());
    let mut start = 0;
    for (n, sum) in lengths.iter().zip(sums) {
        let end = start + *n as usize;
        assert_eq!(p[start..end].iter().sum::<G1Projective>(), sum);
        start = end;
    }
    let q: Vec<G1Affine> = p.iter().rev().copied().collect();
    for ((p, q), d) in p.iter().zip(&q).zip(differences::<g1::Config>(&p, &q)) {
        assert_eq!(*p - q, d.into_group());
    }
}

/// Columns as circuits have them: packed bits (multiples of each other), a heavy wire, empty and unit columns.
#[test]
fn linear_combinations() {
    let p = points(3000);
    let mut k = scalars(40);
    let base = random_scalar().unwrap();
    let packed = k.len() as u32;
    k.extend((0..60u64).map(|j| base * ark_ff::Field::pow(&Fr::from(2u64), [4 * j])));
    k.push(base * random_scalar().unwrap());
    let mut columns: Vec<Vec<(u32, u32)>> =
        vec![vec![], vec![(5, 1)], vec![(7, 2), (7, 2), (8, 1)]];
    for j in 0..61 {
        columns.push(vec![(9, packed + j), (10, 1), (11, packed + j)]);
    }
    columns.push((0..3000).map(|i| (i, i % 40)).collect());
    for i in 0..50u32 {
        columns.push(
            (0..i)
                .map(|j| ((i * 37 + j) % 3000, (i + j) % 40))
                .collect(),
        );
    }
    let sorted = Columns::new(columns.len(), |emit| {
        for (column, terms) in columns.iter().enumerate() {
            for &(point, coefficient) in terms {
                emit(column as u32, point, coefficient);
            }
        }
    });
    let sums = sorted.combine::<g1::Config>(&p, &k, &Actions::new::<g1::Config>(&k));
    for (i, (terms, sum)) in columns.iter().zip(sums).enumerate() {
        let expected: G1Projective = terms
            .iter()
            .map(|&(point, c)| p[point as usize] * k[c as usize])
            .sum();
        assert_eq!(expected, sum, "column {i}");
    }
}

#[test]
fn blake2b_known_answers() {
    let hex = |d: [u8; 64]| d.iter().map(|b| format!("{b:02x}")).collect::<String>();
    // RFC 7693, appendix A
    assert_eq!(
        hex(blake2b(&[b"abc"])),
        "ba80a53f981c4d0d6a2797b69f12f6e94c212f14685ac4b74b12bb6fdbffa2d1\
         7d87c5392aab792dc252d5de4533cc9518d38aa8dbf1925ab92386edd4009923"
    );
    // Python's hashlib over the bytes i mod 256
    let data: Vec<u8> = (0..1000u32).map(|i| i as u8).collect();
    for cut in [0, 1, 127, 128, 129, 256, 999] {
        let mut split = Blake2b::default();
        split.update(&data[..cut]).update(&data[cut..]);
        assert_eq!(
            hex(split.digest()),
            "9fe687126e6566313081b43167cbfa0b4f721b45a5afd4076af327765d63a616\
             478ffbd1cd5fbe4033e8638b8bcf8de6b3978b54a30f1d9d8d68fbe66c2b74cf"
        );
    }
}
