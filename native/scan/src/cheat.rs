//! Provers and verifiers that leave something out of a run: a message out of the hash, or a claim.
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::fmt::Display;

use crate::error::Error;
use crate::group::{query_generators, tables, vector_generators, Fr, G1Affine, G1Projective};
use crate::hooks::{Hooks, Simulator};
use crate::session::{Nonces, Role, Session};
use crate::transcript::Transcript;

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
pub(crate) struct Log {
    pub(crate) messages: Vec<String>,
    pub(crate) points: Vec<String>,
    pub(crate) challenges: Vec<String>,
    pub(crate) claims: Vec<String>,
    /// Of all transcripts of the run, one after another: kind, label and length of each message, and claims by name.
    pub(crate) trace: Vec<String>,
    /// Of all transcripts of the run, the state after each message.
    pub(crate) states: Vec<[u8; 32]>,
}

/// What stands before a challenge in the transcript.
const CHALLENGE: u8 = 5;

thread_local! {
    /// Proofs of this thread draw the same nonces, so that two ways to the same proof can be compared.
    pub(crate) static REPEATED: Cell<bool> = const { Cell::new(false) };
    static RUN: RefCell<Option<(Without, Log)>> = const { RefCell::new(None) };
}

/// Runs a prover or a verifier of this thread.
pub(crate) fn run<T>(without: Without, run: impl FnOnce() -> T) -> (T, Log) {
    RUN.set(Some((without, Log::default())));
    let out = run();
    let (_, log) = RUN.take().expect("a run does not start another");
    (out, log)
}

/// A party that leaves out what its run says, and whose oracle answers what it or its simulator has decided.
#[derive(Clone)]
pub struct Cheat {
    /// What the simulator has decided that the oracle answers, by the state before the challenge.
    pub(crate) programmed: Vec<([u8; 32], Fr)>,
    /// The label of what a weaker hash leaves out.
    pub(crate) forgotten: Option<String>,
    /// Answers that cheating provers know beforehand, by label.
    pub(crate) predicted: Vec<(&'static str, Fr)>,
}

/// Changes what the thread's run has said.
fn with_run<T>(change: impl FnOnce(&Without, &mut Log) -> T) -> Option<T> {
    RUN.with_borrow_mut(|run| run.as_mut().map(|(without, log)| change(without, log)))
}

impl Hooks for Cheat {
    type Simulator = Simulated;

    /// What another transcript has heard before is not of this run.
    fn start() -> Self {
        let forgotten = with_run(|without, log| {
            *log = Log {
                trace: std::mem::take(&mut log.trace),
                states: std::mem::take(&mut log.states),
                ..Log::default()
            };
            match without {
                Without::Message(label) => Some(label.clone()),
                _ => None,
            }
        });
        Self {
            programmed: Vec::new(),
            forgotten: forgotten.flatten(),
            predicted: Vec::new(),
        }
    }

    fn hears(&self, kind: u8, label: &str, length: usize) -> bool {
        with_run(|_, log| {
            log.messages.push(label.to_owned());
            log.trace.push(format!("{kind} {length} {label}"));
            if kind == CHALLENGE {
                log.challenges.push(label.to_owned());
            }
        });
        self.forgotten.as_deref() != Some(label)
    }

    fn heard(&self, state: &[u8; 32]) {
        with_run(|_, log| log.states.push(*state));
    }

    fn answer(&self, state: &[u8; 32], label: &str) -> Option<Fr> {
        let programmed = self.programmed.iter().find(|(at, _)| at == state);
        let predicted = || self.predicted.iter().find(|(known, _)| *known == label);
        programmed.map(|p| p.1).or_else(|| predicted().map(|p| p.1))
    }

    fn program(&mut self, state: [u8; 32], answer: Fr) {
        self.programmed.push((state, answer));
    }

    fn randomness(seed: &mut [u8; 64]) {
        if REPEATED.get() {
            *seed = [7; 64];
        }
    }

    fn point(label: &str, point: G1Projective) -> G1Projective {
        let sent = with_run(|without, log| {
            log.points.push(label.to_owned());
            match without {
                Without::Opening(n, other) if *n + 1 == log.points.len() => point + *other,
                _ => point,
            }
        });
        sent.unwrap_or(point)
    }

    fn claims(kind: &str, name: Option<&dyn Display>) -> bool {
        let claimed = with_run(|without, log| {
            let last = log.messages.last().map_or("", String::as_str);
            let name = format!("{kind}: {}", name.unwrap_or(&last));
            let left_out = match without {
                Without::Claim(other) => *other == name,
                Without::NthClaim(n) => *n == log.claims.len(),
                _ => false,
            };
            log.trace.push(name.clone());
            log.claims.push(name);
            !left_out
        });
        claimed.unwrap_or(true)
    }
}

/// The zero-knowledge simulator.
pub struct Simulated {
    nonces: Nonces,
    out: Vec<u8>,
}

impl Simulator for Simulated {
    fn draw(&mut self, count: usize) -> Vec<Fr> {
        self.nonces.draw_many(count)
    }

    fn out(&mut self) -> &mut Vec<u8> {
        &mut self.out
    }
}

impl Session<'_> {
    pub(crate) fn simulator(transcript: Transcript, row_variables: usize) -> Result<Self, Error> {
        let simulated = Simulated {
            nonces: Nonces::new(&transcript, b"no witness")?,
            out: Vec::new(),
        };
        Ok(Self::new(
            transcript,
            row_variables,
            Role::Simulator(simulated),
        ))
    }
}

type Verdict = Result<(), Error>;

/// Holds that a prover whose hash leaves out a label of the run, the statement's or a message's or a challenge's, is
/// refused, whichever it is.
pub(crate) fn nothing_is_forgotten(prove: impl Fn() -> Vec<u8>, verify: impl Fn(&[u8]) -> Verdict) {
    let (proof, log) = run(Without::Nothing, &prove);
    let (verdict, heard) = run(Without::Nothing, || verify(&proof));
    assert_eq!(verdict, Ok(()));
    let both = |log: &Log| (log.messages.clone(), log.claims.clone());
    assert_eq!(
        both(&log),
        both(&heard),
        "both parties say and claim the same"
    );
    // The last one is the weight of the verifier's equations, which no prover needs.
    let (last, messages) = log.messages.split_last().expect("a run says something");
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
    let (proof, log) = run(Without::Nothing, &prove);
    assert_eq!(verify(&proof), Ok(()));
    let (g, q) = (vector_generators(16), query_generators(1));
    let others = [tables().h.point, tables().u.point, g[0], g[15], q[0]];
    let chosen = ends(&log.points);
    assert!(chosen.len() > 20, "{chosen:?}");
    for (n, family) in chosen.into_iter().zip((0..others.len()).cycle()) {
        let (proof, _) = run(Without::Opening(n, others[family]), &prove);
        assert!(verify(&proof).is_err(), "{}, {family}", log.points[n]);
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
    let (proof, log) = run(Without::Nothing, &prove);
    assert_eq!(verify(&proof), Ok(()));
    let claims = log.claims;
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
    let (accepted, log) = run(Without::Nothing, &lie);
    assert!(!accepted, "{claim}");
    assert!(
        log.claims.iter().any(|c| c == claim),
        "no claim is called {claim}: {:?}",
        log.claims.iter().collect::<BTreeSet<_>>()
    );
    let (accepted, _) = run(Without::Claim(claim.to_owned()), &lie);
    assert!(accepted, "refused without the claim {claim} too");
}
