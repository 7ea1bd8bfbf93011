//! Work that is the same whatever the secrets are: counted, and measured in the manner of dudect (Reparaz, Balasch and
//! Verbauwhede, "Dude, is my code constant time?", 2017). `docs/scan/time.md`.
use ark_ff::{AdditiveGroup, BigInteger, Field, PrimeField, UniformRand};
use ark_std::rand::rngs::StdRng;
use ark_std::rand::{Rng, SeedableRng};
use ragaudit_field_simd::count;
use ragaudit_field_simd::timing::{alone, leak, STEADY, UNSTEADY};

use crate::claims::Bound;
use crate::group::{
    fixed_sum, small_msm, tables, vector_generators, Fr, G1Affine, G1Projective, WIDTH,
};
use crate::index_link::commit_query;
use crate::prover::Prover;
use crate::session::Session;
use crate::transcript::Transcript;

mod whole;

fn rng() -> StdRng {
    StdRng::seed_from_u64(1)
}

/// The least, the largest and random values of a bound, and values that are mostly 0.
fn extremes(bound: Bound, count: usize) -> [Vec<i64>; 5] {
    let mut rng = rng();
    let (minimum, bits) = match bound {
        Bound::Unsigned(bits) => (0, bits),
        Bound::Signed(bits) => (-1i64 << (bits - 1), bits),
    };
    let maximum = minimum.wrapping_add(((1u128 << bits) - 1) as i64);
    let mut drawn = || rng.gen_range(minimum..=maximum);
    let random: Vec<i64> = (0..count).map(|_| drawn()).collect();
    let sparse = random.iter().enumerate();
    let sparse = sparse
        .map(|(i, v)| if i % 50 == 3 { *v } else { 0 })
        .collect();
    [
        vec![0; count],
        vec![minimum; count],
        vec![maximum; count],
        random,
        sparse,
    ]
}

/// Every operation count of a run up to its closing, whose sums are over scalars that masks make uniform.
#[test]
fn work_does_not_depend_on_secrets() {
    let bounds = [
        Bound::Unsigned(1),
        Bound::Unsigned(8),
        Bound::Unsigned(16),
        Bound::Unsigned(17),
        Bound::Signed(8),
        Bound::Signed(14),
        Bound::Unsigned(32),
        Bound::ANY,
    ];
    let columns: Vec<(usize, Bound)> = bounds.iter().map(|bound| (700, *bound)).collect();
    // The first time makes tables.
    let counts: Vec<[usize; 5]> = [0, 0, 1, 2, 3, 4]
        .into_iter()
        .map(|class: usize| {
            let of = |(count, bound): &(usize, Bound)| extremes(*bound, *count)[class].clone();
            let values = columns.iter().map(of).collect();
            let scalar = match class {
                0 => Fr::ZERO,
                1 => Fr::ONE,
                2 => -Fr::ONE,
                3 => Fr::rand(&mut rng()),
                _ => Fr::from(1u64 << 40),
            };
            let query: Vec<i8> = (0..100)
                .map(|i| [0, -7, 7, i % 15 - 7, i8::from(i == 3)][class])
                .collect();
            alone(|| {
                tables();
                let mut session: Session<Prover> =
                    Session::prover(Transcript::new("test"), 8, b"").unwrap();
                count::take();
                session
                    .commit_bounded("columns", &columns, Some(values))
                    .unwrap();
                session.send("message", 20, Some(&[scalar; 20])).unwrap();
                session.send_single("single", Some(scalar)).unwrap();
                let _ = commit_query(&query, &scalar, &Fr::rand(&mut rng()));
                count::take()
            })
        })
        .skip(1)
        .collect();
    assert!(counts.iter().all(|c| *c == counts[0]), "{counts:?}");
    let [additions, _, special, reads, _] = counts[0];
    assert!(
        additions > 15_000 && reads > 1_000_000 && special == 0,
        "{counts:?}"
    );
}

/// Measurements of each class.
const SAMPLES: usize = 500;

/// The former fixed multiples: one byte at a time, without zero bytes.
fn multiple_by_bytes(windows: &[Vec<G1Affine>], x: &Fr) -> G1Projective {
    let mut sum = G1Projective::ZERO;
    for (window, byte) in windows.iter().zip(x.into_bigint().to_bytes_le()) {
        if byte != 0 {
            sum += window[usize::from(byte) - 1];
        }
    }
    sum
}

fn windows(point: &G1Affine) -> Vec<Vec<G1Affine>> {
    let factor = |i: u64| Fr::from(256u64).pow([i]);
    let row = |i| {
        (1..256u64)
            .map(|j| (*point * (factor(i) * Fr::from(j))).into())
            .collect()
    };
    (0..32).map(row).collect()
}

/// Compares columns, messages and queries of zeros with random ones. The test also measures the prover's former code, and must
/// detect its leak: a test that could not detect it would show nothing.
#[test]
#[ignore = "compares the prover's time for secrets of zeros and random secrets (a minute): make test-full"]
fn time_does_not_depend_on_secrets() {
    const ROW: usize = 8;
    let entries = 1 << ROW;
    let column = |random: bool, rng: &mut StdRng| -> Vec<i64> {
        let drawn = (0..entries).map(|_| rng.gen_range(0..1i64 << 16));
        drawn.map(|v| if random { v } else { 0 }).collect()
    };
    let commit = |values: &Vec<i64>| {
        let secret = crate::prover::columns::Secret {
            values,
            blindings: &[Fr::from(u64::MAX)],
            bound: Bound::Unsigned(16),
        };
        crate::prover::columns::commit(&[secret], entries)[0][0]
    };
    let generators = vector_generators(entries);
    let scalars = |random: bool, rng: &mut StdRng| -> Vec<Fr> {
        let drawn = (0..WIDTH).map(|_| Fr::rand(rng));
        drawn.map(|x| if random { x } else { Fr::ZERO }).collect()
    };
    let blinding = -Fr::from(3u64);
    let message = |values: &Vec<Fr>| {
        let parts = tables().g.iter().zip(values);
        fixed_sum(parts.chain([(&tables().h, &blinding)]))
    };
    let before = windows(&generators[0]);
    let query = |random: bool, rng: &mut StdRng| -> (Vec<i8>, Fr) {
        let drawn: Vec<i8> = (0..64).map(|_| rng.gen_range(-7..8)).collect();
        let salt = Fr::rand(rng);
        match random {
            true => (drawn, salt),
            false => (vec![0; 64], Fr::ZERO),
        }
    };
    let steady = [
        ("column", leak(SAMPLES, column, commit)),
        ("message", leak(SAMPLES, scalars, message)),
        (
            "query",
            leak(SAMPLES, query, |(q, salt)| commit_query(q, salt, &blinding)),
        ),
    ];
    let unsteady = [
        (
            "column",
            leak(SAMPLES, column, |v| small_msm(&generators[..entries], v)),
        ),
        (
            "message",
            leak(SAMPLES, scalars, |values| {
                let each = values.iter().map(|x| multiple_by_bytes(&before, x));
                each.sum::<G1Projective>()
            }),
        ),
        (
            "query",
            leak(SAMPLES, query, |(q, salt)| {
                let values: Vec<i64> = q.iter().map(|v| i64::from(*v)).collect();
                small_msm(&generators[..64], &values) + generators[64] * salt
            }),
        ),
    ];
    println!("|t| and the difference of means now {steady:.1?}, before {unsteady:.1?}");
    assert!(steady.iter().all(|(_, [t, _])| *t < STEADY), "{steady:?}");
    assert!(
        unsteady.iter().all(|(_, [t, _])| *t > UNSTEADY),
        "{unsteady:?}"
    );
}
