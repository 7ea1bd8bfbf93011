//! Tests that a ceremony leaves no secret in any readable memory of its own process.
use std::collections::{HashMap, HashSet};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::sync::Mutex;

use ark_bn254::{g1, g2, Fr};
use ark_ff::{BigInt, Field, PrimeField};

use super::decompose;
use crate::ptau;
use crate::testing::{locked, system, Folder, TURN};
use crate::zkey::Key;

/// The next word of the secrets, if a test dictates them.
static NEXT: Mutex<Option<u64>> = Mutex::new(None);
/// One word of a stream that can be drawn again (Steele, Lea, Flood 2014, SplitMix64).
fn word(index: u64) -> u64 {
    let mut z = index.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The dictated words, which `fill` asks for first. They are written only to their destination.
pub(super) fn dictated(words: &mut [u64; 4]) -> bool {
    let mut next = locked(&NEXT);
    let Some(mut index) = *next else {
        return false;
    };
    for out in words {
        *out = word(index);
        index += 1;
    }
    *next = Some(index);
    true
}

/// The dictated secrets that `Secret::draw` takes, in order.
fn drawn(from: u64, to: u64) -> Vec<Fr> {
    let mut out = Vec::new();
    for start in (from..to).step_by(4) {
        let mut limbs = [0, 1, 2, 3].map(|i| word(start + i));
        limbs[3] &= u64::MAX >> 2;
        if BigInt(limbs) < Fr::MODULUS {
            out.push(Fr::new_unchecked(BigInt(limbs)));
        }
    }
    out
}

/// All memory that this process can write to, with stacks and freed memory, as a file.
fn snapshot(folder: &Folder) -> Snapshot {
    let path = folder.0.join("memory");
    let mut out = std::fs::File::create(&path).unwrap();
    let mut memory = std::fs::File::open("/proc/self/mem").unwrap();
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let mut run = vec![0u8; 1 << 16];
    let (mut size, mut places) = (0, Vec::new());
    for line in maps.lines() {
        let mut fields = line.split_whitespace();
        let (range, mode) = (fields.next().unwrap(), fields.next().unwrap());
        if !mode.starts_with("rw") {
            continue;
        }
        let (start, end) = range.split_once('-').unwrap();
        let [start, end] = [start, end].map(|x| u64::from_str_radix(x, 16).unwrap());
        places.push((size, line.to_owned()));
        let mut at = start;
        while at < end {
            let count = run.len().min((end - at) as usize);
            memory.seek(SeekFrom::Start(at)).unwrap();
            // Some mappings (a device's, a guard page) cannot be read.
            if memory.read_exact(&mut run[..count]).is_ok() {
                out.write_all(&run[..count]).unwrap();
                size += count;
            }
            at += count as u64;
        }
    }
    Snapshot { path, places }
}

struct Snapshot {
    path: PathBuf,
    /// The offset in the file at which each mapping starts.
    places: Vec<(usize, String)>,
}

/// The needles that a snapshot contains at any byte, each with its first mapping.
fn occurrences(memory: &Snapshot, needles: &[(String, u64)]) -> Vec<String> {
    let data = std::fs::read(&memory.path).unwrap();
    let wanted: HashSet<u64> = needles.iter().map(|n| n.1).collect();
    let mut seen: HashMap<u64, (usize, usize)> = HashMap::new();
    for (at, window) in data.windows(8).enumerate() {
        let value = u64::from_le_bytes(window.try_into().unwrap());
        if wanted.contains(&value) {
            seen.entry(value).or_insert((at, 0)).1 += 1;
        }
    }
    let named = needles.iter().filter_map(|(name, value)| {
        let (at, times) = seen.get(value)?;
        let place = memory.places.iter().rfind(|place| place.0 <= *at).unwrap();
        Some(format!("{name}: {times} times, first in {}", place.1))
    });
    named.collect()
}

/// Every word of a scalar in each form that the code uses: Montgomery, plain, and the halves under either endomorphism.
fn forms(name: &str, x: Fr, needles: &mut Vec<(String, u64)>) {
    let mut add = |form: &str, limbs: [u64; 4]| {
        for (i, limb) in limbs.into_iter().enumerate() {
            // A short word can occur by chance.
            if limb >= 1 << 40 {
                needles.push((format!("{name}, {form}, word {i}"), limb));
            }
        }
    };
    add("Montgomery form", x.0 .0);
    add("plain", x.into_bigint().0);
    for (group, halves) in [
        ("G1", decompose::<g1::Config>(&x)),
        ("G2", decompose::<g2::Config>(&x)),
    ] {
        for half in halves {
            let magnitude = half.into_bigint().min((-half).into_bigint());
            add(&format!("half in {group}"), magnitude.0);
        }
    }
}

/// Run `work` with dictated secrets from word `first` on, then search for them. Returns their number and the remaining
/// occurrences.
fn leftovers(
    folder: &Folder,
    first: u64,
    work: impl FnOnce(),
    derived: impl FnOnce(&[Fr]) -> Vec<(&'static str, Fr)>,
) -> Vec<String> {
    *locked(&NEXT) = Some(first);
    work();
    let last = locked(&NEXT).take().unwrap();
    let memory = snapshot(folder);
    // From here on, the secrets may be in memory.
    let secrets = drawn(first, last);
    let mut needles = Vec::new();
    for (name, x) in derived(&secrets) {
        forms(name, x, &mut needles);
        forms(&format!("1/{name}"), x.inverse().unwrap(), &mut needles);
    }
    occurrences(&memory, &needles)
}

#[test]
#[cfg(target_os = "linux")]
fn nothing_of_a_contribution_is_left_in_memory() {
    let _turn = locked(&TURN);
    let folder = Folder::new("contribution");
    let r1cs = system(&folder, 3000);
    let mut key = Key::one_party(&r1cs, None).unwrap();
    let left = leftovers(
        &folder,
        1 << 20,
        || key.contribute("party").unwrap(),
        |secrets| {
            assert_eq!(
                secrets.len(),
                2,
                "a factor of delta, and one for the proof's base"
            );
            vec![("delta", secrets[0]), ("the base", secrets[1])]
        },
    );
    assert!(left.is_empty(), "{left:#?}");
}

#[test]
#[cfg(target_os = "linux")]
fn nothing_of_one_party_s_secrets_is_left_in_memory() {
    let _turn = locked(&TURN);
    let folder = Folder::new("one-party");
    let r1cs = system(&folder, 900);
    let path = folder.0.join("p.ptau");
    let derived = |secrets: &[Fr]| {
        assert_eq!(
            secrets.len(),
            8,
            "tau, alpha, beta, three bases; delta, one base"
        );
        let [tau, alpha, beta, .., delta, base] = secrets else {
            unreachable!("eight")
        };
        vec![
            ("tau", *tau),
            ("tau - 1", *tau - Fr::from(1u64)),
            ("tau^2", tau.square()),
            ("tau^1024", tau.pow([1024])),
            ("tau^1024 - 1", tau.pow([1024]) - Fr::from(1u64)),
            ("alpha", *alpha),
            ("alpha tau", *alpha * tau),
            ("beta", *beta),
            ("delta", *delta),
            ("the last base", *base),
        ]
    };
    let work = || drop(Key::one_party(&r1cs, Some(&path)).unwrap());
    let left = leftovers(&folder, 2 << 20, work, derived);
    assert!(left.is_empty(), "{left:#?}");
}

#[test]
#[cfg(target_os = "linux")]
fn nothing_of_powers_of_tau_is_left_in_memory() {
    let _turn = locked(&TURN);
    let folder = Folder::new("powers");
    let path = folder.0.join("p.ptau");
    let left = leftovers(
        &folder,
        3 << 20,
        || ptau::new(9, &path).unwrap(),
        |secrets| {
            assert_eq!(secrets.len(), 6, "tau, alpha, beta and three bases");
            let names = ["tau", "alpha", "beta"];
            names.into_iter().zip(secrets.iter().copied()).collect()
        },
    );
    assert!(left.is_empty(), "{left:#?}");
}

/// The search of the tests above finds copies in freed memory and on an abandoned stack.
#[test]
#[cfg(target_os = "linux")]
fn a_copy_that_is_not_wiped_is_found() {
    let _turn = locked(&TURN);
    let folder = Folder::new("copies");
    let at = 4 << 20;
    let planted = || {
        let mut limbs = [0u64; 4];
        assert!(dictated(&mut limbs));
        limbs[3] &= u64::MAX >> 2;
        let rows = vec![BigInt(limbs); 100];
        drop(std::hint::black_box(rows));
    };
    // A value below r.
    let first = (0..)
        .map(|i| at + 4 * i)
        .find(|&i| drawn(i, i + 4).len() == 1);
    let left = leftovers(&folder, first.unwrap(), planted, |secrets| {
        vec![("x", secrets[0])]
    });
    assert!(left.len() >= 3, "{left:?}");
    assert!(
        left.iter()
            .all(|name| name.starts_with("x, Montgomery form")),
        "{left:?}"
    );
}
