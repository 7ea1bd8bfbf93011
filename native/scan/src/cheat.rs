//! Provers and verifiers that leave something out of a run: a message out of the hash, or a claim.
use std::cell::RefCell;
use std::collections::BTreeSet;

use crate::error::Error;
use crate::group::{query_generators, tables, vector_generators, G1Affine, G1Projective};

/// What a run on this thread leaves out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Without {
    #[default]
    Nothing,
    /// Every message and challenge of this label.
    Message(String),
    /// Every claim of this name.
    Claim(String),
    /// One claim, counted from the first.
    NthClaim(usize),
    /// The opening of one point, counted from the first: it is sent with another one added to it.
    Opening(usize, G1Affine),
}

/// What was said in a run, and claimed, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) messages: Vec<String>,
    pub(crate) points: Vec<String>,
    pub(crate) challenges: Vec<String>,
    pub(crate) claims: Vec<String>,
    /// Of all transcripts of the run, one after another: kind, label and length of each message, and claims by name.
    pub(crate) trace: Vec<String>,
    /// Of all transcripts of the run, the state after each message.
    pub(crate) states: Vec<[u8; 32]>,
}

thread_local! {
    static RUN: RefCell<Option<(Without, Said)>> = const { RefCell::new(None) };
}

/// Runs a prover or a verifier of this thread.
pub(crate) fn run<T>(without: Without, run: impl FnOnce() -> T) -> (T, Said) {
    RUN.set(Some((without, Said::default())));
    let out = run();
    let (_, said) = RUN.take().expect("a run does not start another");
    (out, said)
}

/// Starts a transcript: the label that it forgets. What another one has heard before is not of this run.
pub(crate) fn start() -> Option<String> {
    RUN.with_borrow_mut(|run| {
        let (without, said) = run.as_mut()?;
        *said = Said {
            trace: std::mem::take(&mut said.trace),
            states: std::mem::take(&mut said.states),
            ..Said::default()
        };
        match without {
            Without::Message(label) => Some(label.clone()),
            _ => None,
        }
    })
}

pub(crate) fn message(kind: u8, label: &str, length: usize) {
    RUN.with_borrow_mut(|run| {
        if let Some((_, said)) = run {
            said.messages.push(label.to_owned());
            said.trace.push(format!("{kind} {length} {label}"));
        }
    });
}

pub(crate) fn state(state: &[u8; 32]) {
    RUN.with_borrow_mut(|run| {
        if let Some((_, said)) = run {
            said.states.push(*state);
        }
    });
}

pub(crate) fn challenge(label: &str) {
    RUN.with_borrow_mut(|run| {
        if let Some((_, said)) = run {
            said.challenges.push(label.to_owned());
        }
    });
}

/// A prover's point as it is sent.
pub(crate) fn point(label: &str, point: G1Projective) -> G1Projective {
    RUN.with_borrow_mut(|run| {
        let Some((without, said)) = run else {
            return point;
        };
        said.points.push(label.to_owned());
        match without {
            Without::Opening(n, other) if *n + 1 == said.points.len() => point + *other,
            _ => point,
        }
    })
}

/// Notes a claim, and says whether the run makes it. One without a name of its own has that of the message before it.
pub(crate) fn claim(kind: &str, name: Option<&str>) -> bool {
    RUN.with_borrow_mut(|run| {
        let Some((without, said)) = run else {
            return true;
        };
        let last = said.messages.last().map_or("", String::as_str);
        let name = format!("{kind}: {}", name.unwrap_or(last));
        let left_out = match without {
            Without::Claim(other) => *other == name,
            Without::NthClaim(n) => *n == said.claims.len(),
            _ => false,
        };
        said.trace.push(name.clone());
        said.claims.push(name);
        !left_out
    })
}

type Verdict = Result<(), Error>;

/// Holds that a prover whose hash leaves out a label of the run, the statement's or a message's or a challenge's, is
/// refused, whichever it is.
pub(crate) fn nothing_is_forgotten(prove: impl Fn() -> Vec<u8>, verify: impl Fn(&[u8]) -> Verdict) {
    let (proof, said) = run(Without::Nothing, &prove);
    let (verdict, heard) = run(Without::Nothing, || verify(&proof));
    assert_eq!(verdict, Ok(()));
    let both = |said: &Said| (said.messages.clone(), said.claims.clone());
    assert_eq!(
        both(&said),
        both(&heard),
        "both parties say and claim the same"
    );
    // The last one is the weight of the verifier's equations, which no prover needs.
    let (last, messages) = said.messages.split_last().expect("a run says something");
    assert_eq!(last, "equation weight");
    let labels: BTreeSet<&String> = messages.iter().collect();
    assert!(labels.len() > 20, "{labels:?}");
    for label in labels {
        let (proof, _) = run(Without::Message(label.clone()), &prove);
        assert!(verify(&proof).is_err(), "{label}");
    }
}

/// Holds that a prover is refused who cannot open a point that it sends: the first and the last of each label, each with
/// a generator too many, of every family in turn.
pub(crate) fn every_point_is_opened(
    prove: impl Fn() -> Vec<u8>,
    verify: impl Fn(&[u8]) -> Verdict,
) {
    let (proof, said) = run(Without::Nothing, &prove);
    assert_eq!(verify(&proof), Ok(()));
    let (g, q) = (vector_generators(16), query_generators(1));
    let others = [tables().h.point, tables().u.point, g[0], g[15], q[0]];
    let chosen = ends(&said.points);
    assert!(chosen.len() > 20, "{chosen:?}");
    for (n, family) in chosen.into_iter().zip((0..others.len()).cycle()) {
        let (proof, _) = run(Without::Opening(n, others[family]), &prove);
        assert!(verify(&proof).is_err(), "{}, {family}", said.points[n]);
    }
}

/// Where each name stands first and last.
fn ends(names: &[String]) -> BTreeSet<usize> {
    let of_name = |name: &String| {
        let first = names.iter().position(|n| n == name);
        [first, names.iter().rposition(|n| n == name)]
    };
    names.iter().flat_map(of_name).flatten().collect()
}

/// Holds that a prover who skips a claim of the protocol is refused: each one in turn, or the first and the last of each
/// name.
pub(crate) fn no_claim_is_skipped(
    prove: impl Fn() -> Vec<u8>,
    verify: impl Fn(&[u8]) -> Verdict,
    each: bool,
) {
    let (proof, said) = run(Without::Nothing, &prove);
    assert_eq!(verify(&proof), Ok(()));
    let claims = said.claims;
    let chosen = match each {
        true => (0..claims.len()).collect(),
        false => ends(&claims),
    };
    assert!(chosen.len() > 20, "{chosen:?}");
    for n in chosen {
        let (proof, _) = run(Without::NthClaim(n), &prove);
        assert!(verify(&proof).is_err(), "claim {n}: {}", claims[n]);
    }
}

/// Holds that a lie is refused, and passes where neither party makes the claim that is there to catch it.
pub(crate) fn caught_by(claim: &str, lie: impl Fn() -> bool) {
    let (accepted, said) = run(Without::Nothing, &lie);
    assert!(!accepted, "{claim}");
    assert!(
        said.claims.iter().any(|c| c == claim),
        "no claim is called {claim}: {:?}",
        said.claims.iter().collect::<BTreeSet<_>>()
    );
    let (accepted, _) = run(Without::Claim(claim.to_owned()), &lie);
    assert!(accepted, "refused without the claim {claim} too");
}
