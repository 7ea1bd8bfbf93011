//! Contributions with secrets that cancel. Only a contributor that chooses its factor can make them.
use super::*;
use crate::ptau;
use crate::secret::Secret;
use crate::testing::{locked, system, Folder, TURN};
use crate::transcript::random_scalar;

/// The error of `verify_key` for a key with these contributions to delta.
fn fault(name: &str, factors: &[Fr]) -> Option<String> {
    let folder = Folder::new(name);
    system(&folder, 5);
    let [r1cs, powers, zkey] = ["c.r1cs", "p.ptau", "k.zkey"].map(|file| folder.0.join(file));
    ptau::new(3, &powers).unwrap();
    let open = PowersOfTau::open(&powers).unwrap();
    let mut key = Key::initial(&R1cs::read(&r1cs).unwrap(), &open).unwrap();
    for factor in factors {
        let base = Secret::draw().unwrap().times(G1Affine::generator());
        let secret = Secret::known(*factor);
        key.multiply(Parameters::named("x"), &secret, base, Key::rescale);
    }
    key.write(&zkey).unwrap();
    match verify_key(&r1cs, &powers, &zkey) {
        Ok(()) => None,
        Err(Error::Mismatch(reason)) => Some(reason),
        Err(e) => panic!("{e}"),
    }
}

#[test]
fn factors_of_delta_that_cancel_are_refused() {
    let _turn = locked(&TURN);
    let draw = || random_scalar().unwrap();
    let inverse = |x: &Fr| ark_ff::Field::inverse(x).unwrap();
    let (x, y) = (draw(), draw());
    assert_eq!(fault("different", &[x, y, draw()]), None);
    for (name, factors, expected) in [
        (
            "inverse",
            vec![x, inverse(&x)],
            "contribution 2 (\"x\"): delta is back where it was before any",
        ),
        (
            "negative",
            vec![x, -inverse(&x)],
            "contribution 2 (\"x\"): delta is back where it was before any",
        ),
        (
            "one",
            vec![Fr::from(1u64)],
            "contribution 1 (\"x\"): delta is back where it was before any",
        ),
        (
            "later",
            vec![y, x, inverse(&x)],
            "contribution 3 (\"x\"): delta is back where it was after contribution 1",
        ),
        (
            "between",
            vec![y, x, inverse(&x), draw()],
            "contribution 3 (\"x\"): delta is back where it was after",
        ),
    ] {
        let actual = fault(name, &factors).expect(name);
        assert!(actual.starts_with(expected), "{name}: {actual}");
    }
}

/// The state after a contribution to `before` with these factors of tau, alpha and beta.
fn contributed(before: &Powers, factors: [Fr; 3]) -> Powers {
    let secrets = factors.map(Secret::known);
    let key = |i: usize| {
        KeyProof::new(&secrets[i], |s, sx| {
            blake2b(&[&[i as u8], &before.challenge, s, sx])
        })
        .unwrap()
    };
    Powers {
        tau1: secrets[0].times(before.tau1),
        tau2: secrets[0].times(before.tau2),
        alpha1: secrets[1].times(before.alpha1),
        beta1: secrets[2].times(before.beta1),
        beta2: secrets[2].times(before.beta2),
        keys: [key(0), key(1), key(2)],
        midstate: [0; 216],
        challenge: blake2b(&[b"next"]),
        parameters: Parameters::named("x"),
    }
}

#[test]
fn factors_of_phase_1_that_cancel_are_refused() {
    let _turn = locked(&TURN);
    let draw = || random_scalar().unwrap();
    let inverse = |x: &Fr| ark_ff::Field::inverse(x).unwrap();
    let start = Powers::start(3);
    for (i, name) in SECRETS.iter().enumerate() {
        let mut been = [(); 3].map(|()| Been::default());
        let factors = [draw(), draw(), draw()];
        let first = contributed(&start, factors);
        assert_eq!(first.follows(&start, &mut been), Ok(()));
        let second = contributed(&first, [draw(), draw(), draw()]);
        assert_eq!(second.follows(&first, &mut been), Ok(()));
        let mut back = [draw(), draw(), draw()];
        let third = contributed(&second, back);
        assert_eq!(third.follows(&second, &mut been), Ok(()));
        back[i] = -inverse(&back[i]);
        let fourth = contributed(&third, back);
        let expected =
            format!("{name} is back where it was after contribution 2: secrets cancel each other");
        assert_eq!(fourth.follows(&third, &mut been), Err(expected));
    }
}
