//! Provers and verifiers that leave something out of a run: a message out of the hash, or a claim.
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::fmt::Display;
use std::rc::Rc;

use ark_ff::Field;
use ragaudit_field_simd::count;
use ragaudit_scan_protocol::prover::{Folds, ProverWitness};

use crate::channel::{Channel, Mask, Proves, Verifies};
use crate::engine::Fast;
use crate::equation::Equation;
use crate::error::{Error, Result};
use crate::expr::Expr;
use crate::group::{
    query_generators, tables, vector_generators, Fr, G1Affine, G1Projective, WIDTH,
};
use crate::prover::Prover;
use crate::secrets::{Nonces, Secrets};
use crate::transcript::{Hash, Kind, Oracle, State, Transcript};
use crate::verifier::Verifier;

/// The part of the protocol that a run on this thread omits.
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

/// The messages and claims of a run, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log {
    pub(crate) messages: Vec<String>,
    pub(crate) points: Vec<String>,
    pub(crate) challenges: Vec<String>,
    /// The answers of the oracle, by label.
    pub(crate) answers: Vec<(String, Fr)>,
    pub(crate) claims: Vec<String>,
    /// The values in a prover's claims, in order.
    pub(crate) about: Vec<About>,
    /// A prover's hidden values, in messages and in singles.
    pub(crate) values: Vec<Fr>,
    pub(crate) singles: Vec<Fr>,
    /// The points of messages and of single values, by the number of each.
    pub(crate) of_messages: Vec<usize>,
    pub(crate) of_singles: Vec<usize>,
    /// The transcripts of the run, one after another: kind, label and length of each message, and claims by name.
    pub(crate) trace: Vec<String>,
    /// The state after each message, for all transcripts of the run.
    pub(crate) states: Vec<[u8; 32]>,
    /// Steps up to each message and challenge, from the one before.
    pub(crate) work: Vec<[usize; 5]>,
}

/// A claim's expressions, and the prover's values for them.
#[derive(Clone, Debug, Default)]
pub(crate) struct About {
    pub(crate) about: Vec<Expr>,
    pub(crate) values: Vec<Fr>,
}

/// A false value of a prover: the number of the message's point, the place, and the difference.
pub(crate) type False = (usize, usize, Fr);

/// The place of a value that is sent singly.
pub(crate) const SINGLE: usize = WIDTH;

thread_local! {
    /// Proofs of this thread draw the same nonces, so that two ways to the same proof can be compared.
    pub(crate) static REPEATED: Cell<bool> = const { Cell::new(false) };
    static RUN: RefCell<Option<(Without, Log)>> = const { RefCell::new(None) };
    /// Values that this thread's provers say falsely.
    pub(crate) static FALSE: RefCell<Vec<False>> = const { RefCell::new(Vec::new()) };
}

/// Runs a prover or a verifier of this thread.
pub(crate) fn run<T>(without: Without, run: impl FnOnce() -> T) -> (T, Log) {
    RUN.set(Some((without, Log::default())));
    let out = run();
    let (_, log) = RUN.take().expect("a run does not start another");
    (out, log)
}

/// Changes the log of the thread's run.
fn with_run<T>(change: impl FnOnce(&Without, &mut Log) -> T) -> Option<T> {
    RUN.with_borrow_mut(|run| run.as_mut().map(|(without, log)| change(without, log)))
}

/// Whether the thread's run makes a claim.
pub(crate) fn claimed(kind: &str, name: Option<&dyn Display>) -> bool {
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

/// The differences that are added to the values of the message sent last.
fn falsified() -> Vec<(usize, Fr)> {
    let last = with_run(|_, log| log.points.len()).unwrap_or_default();
    let of_last = |all: &Vec<False>| {
        let all = all.iter().filter(|(n, ..)| n + 1 == last);
        all.map(|(_, place, more)| (*place, *more)).collect()
    };
    FALSE.with_borrow(of_last)
}

/// A point as the thread's run sends it.
fn sent(label: &str, point: G1Projective) -> G1Projective {
    let sent = with_run(|without, log| {
        log.points.push(label.to_owned());
        match without {
            Without::Opening(n, other) if *n + 1 == log.points.len() => point + *other,
            _ => point,
        }
    });
    let more = falsified().into_iter();
    let generator = |place: usize| match place {
        SINGLE => tables().u.point,
        _ => tables().g[place].point,
    };
    let more = more.map(|(place, more)| generator(place) * more);
    more.fold(sent.unwrap_or(point), |sum, more| sum + more)
}

/// An oracle that records its inputs in the thread's run, and gives predetermined answers.
#[derive(Clone)]
pub(crate) struct Told {
    /// The label that a weaker hash omits.
    pub(crate) forgotten: Option<String>,
    /// Answers that cheating provers know beforehand, by label.
    pub(crate) predicted: Vec<(&'static str, Fr)>,
    /// The answers that a simulator has chosen, by state.
    pub(crate) programmed: Rc<RefCell<Vec<(State, Fr)>>>,
    /// The chosen answer to the next challenge.
    pub(crate) next: Rc<Cell<Option<Fr>>>,
}

impl Oracle for Told {
    /// A new transcript belongs to another run, so its log starts empty.
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
            forgotten: forgotten.flatten(),
            predicted: Vec::new(),
            programmed: Rc::default(),
            next: Rc::default(),
        }
    }

    fn absorb(&mut self, state: &mut State, kind: Kind, label: &str, data: &[u8]) {
        with_run(|_, log| {
            log.messages.push(label.to_owned());
            log.work.push(count::take());
            log.trace
                .push(format!("{} {} {label}", kind as u8, data.len()));
            if kind == Kind::Challenge {
                log.challenges.push(label.to_owned());
            }
        });
        if self.forgotten.as_deref() == Some(label) {
            return;
        }
        Hash.absorb(state, kind, label, data);
        with_run(|_, log| log.states.push(*state));
    }

    fn answer(&mut self, state: &State, label: &str) -> Fr {
        if let Some(answer) = self.next.take() {
            self.programmed.borrow_mut().push((*state, answer));
        }
        let programmed = self.programmed.borrow();
        let programmed = programmed.iter().find(|(at, _)| at == state);
        let predicted = || self.predicted.iter().find(|(known, _)| *known == label);
        let told = programmed.map(|p| p.1).or_else(|| predicted().map(|p| p.1));
        let answer = told.unwrap_or_else(|| Hash.answer(state, label));
        with_run(|_, log| log.answers.push((label.to_owned(), answer)));
        answer
    }
}

/// A prover without checks, or a weaker verifier: each omits the part that the thread's run names, and has an oracle with
/// predetermined answers.
pub(crate) enum MaliciousProver<'p> {
    Prover(Prover),
    Verifier(Verifier<'p, Told>),
}

/// The result of a malicious party's run.
pub(crate) enum Closed {
    Proof(Vec<u8>),
    Check(Equation),
}

impl From<Closed> for Vec<u8> {
    fn from(closed: Closed) -> Self {
        match closed {
            Closed::Proof(proof) => proof,
            Closed::Check(_) => panic!("of a verifier"),
        }
    }
}

impl From<Closed> for Equation {
    fn from(closed: Closed) -> Self {
        match closed {
            Closed::Check(equation) => equation,
            Closed::Proof(_) => panic!("of a prover"),
        }
    }
}

impl MaliciousProver<'_> {
    /// Another prover at the same place of its run.
    pub(crate) fn copy(&self) -> Self {
        match self {
            Self::Prover(prover) => Self::Prover(Prover {
                secrets: copy_of(&prover.secrets),
                proof: prover.proof.clone(),
            }),
            Self::Verifier(_) => panic!("of a verifier"),
        }
    }
}

/// The same secrets with the same next nonces. Two closings of one run disclose secrets, so only tests have two.
fn copy_of(secrets: &Secrets) -> Secrets {
    let nonces = &secrets.nonces;
    Secrets {
        nonces: Nonces {
            key: nonces.key,
            counter: nonces.counter,
        },
        values: secrets.values.clone(),
        message_blindings: secrets.message_blindings.clone(),
        singles: secrets.singles.clone(),
    }
}

impl Proves for MaliciousProver<'_> {
    fn start(transcript: &Transcript<Told>, witness: &[u8]) -> Result<Self> {
        let statement = transcript.digest();
        let nonces = match REPEATED.get() {
            true => Nonces::of([7; 64], &statement, witness),
            false => Nonces::new(&statement, witness)?,
        };
        Ok(Self::Prover(Prover::new(nonces)))
    }
}

impl<'p> Verifies<'p> for MaliciousProver<'p> {
    fn start(proof: &'p [u8]) -> Self {
        Self::Verifier(Verifies::start(proof))
    }
}

impl Channel for MaliciousProver<'_> {
    type Oracle = Told;
    type Engine = Fast;
    type Closed = Closed;

    fn secrets(&self) -> Option<&dyn ProverWitness> {
        match self {
            Self::Prover(prover) => prover.secrets(),
            Self::Verifier(_) => None,
        }
    }

    fn secrets_mut(&mut self) -> Option<&mut dyn ProverWitness> {
        match self {
            Self::Prover(prover) => prover.secrets_mut(),
            Self::Verifier(_) => None,
        }
    }

    fn commitment(
        &mut self,
        label: &str,
        make: impl FnOnce(&mut dyn ProverWitness) -> G1Projective,
    ) -> Result<G1Affine> {
        match self {
            Self::Prover(prover) => {
                let point = prover.commitment(label, |s| sent(label, make(s)))?;
                let secrets = &mut prover.secrets;
                for (place, more) in falsified() {
                    let first = secrets.values.len() - WIDTH;
                    match (place, secrets.singles.last_mut()) {
                        (SINGLE, single) => single.expect("a single value").0 += more,
                        _ => secrets.values[first + place] += more,
                    }
                }
                let (messages, singles) = (secrets.message_blindings.len(), secrets.singles.len());
                with_run(|_, log| {
                    let last = log.points.len() - 1;
                    log.of_messages.resize(messages, last);
                    log.of_singles.resize(singles, last);
                });
                Ok(point)
            }
            Self::Verifier(verifier) => verifier.commitment(label, make),
        }
    }

    fn point(&mut self, label: &str, point: Option<G1Projective>) -> Result<G1Affine> {
        match self {
            Self::Prover(prover) => prover.point(label, point.map(|p| sent(label, p))),
            Self::Verifier(verifier) => verifier.point(label, point),
        }
    }

    fn scalar(&mut self, scalar: Option<Fr>) -> Result<Fr> {
        match self {
            Self::Prover(prover) => prover.scalar(scalar),
            Self::Verifier(verifier) => verifier.scalar(scalar),
        }
    }

    fn mask(
        &mut self,
        length: usize,
        map: impl Fn(&[Fr]) -> Vec<Equation>,
        targets: &[Equation],
    ) -> Option<Mask> {
        match self {
            Self::Prover(prover) => prover.mask(length, map, targets),
            Self::Verifier(_) => None,
        }
    }

    fn respond(&self, mask: Option<Mask>, c: Fr, secret: Option<Vec<Fr>>) -> Option<Vec<Fr>> {
        match self {
            Self::Prover(prover) => prover.respond(mask, c, secret),
            Self::Verifier(_) => None,
        }
    }

    fn folds(&self, responses: Vec<Fr>) -> Option<Box<dyn Folds>> {
        match self {
            Self::Prover(prover) => prover.folds(responses),
            Self::Verifier(_) => None,
        }
    }

    fn refuse(&self, _: String) -> Result<()> {
        Ok(())
    }

    fn claims(&mut self, kind: &str, name: Option<&dyn Display>, about: &[&Expr]) -> bool {
        if let Self::Prover(prover) = self {
            let value = |expr: &Expr| expr.evaluate(|var| prover.secrets.value(var));
            let values = about.iter().map(|expr| value(expr)).collect();
            let about = about.iter().map(|expr| (*expr).clone()).collect();
            with_run(|_, log| log.about.push(About { values, about }));
        }
        claimed(kind, name)
    }

    fn close(self, equations: &[Equation], weight: Fr) -> Result<Closed> {
        match self {
            Self::Prover(prover) => {
                let secrets = &prover.secrets;
                with_run(|_, log| {
                    log.values.clone_from(&secrets.values);
                    log.singles = secrets.singles.iter().map(|(value, _)| *value).collect();
                });
                prover.close(equations, weight).map(Closed::Proof)
            }
            Self::Verifier(verifier) => verifier.close(equations, weight).map(Closed::Check),
        }
    }
}

type Verdict = std::result::Result<(), Error>;

/// Entries at which a prover is malicious in turn. `make test-full` sets RAG_AUDIT_EVERY_ENTRY and tries each; other runs try
/// the first, the last and every ninth between, because each takes a proof.
pub(crate) fn entries(count: usize) -> impl Iterator<Item = usize> {
    let every = std::env::var_os("RAG_AUDIT_EVERY_ENTRY").is_some();
    (0..count).filter(move |at| every || at % 9 == 0 || at + 1 == count)
}

/// Asserts that a label that only one of the parties omits from its hash leads to a refusal: each label of the statement, the
/// messages and the challenges in turn. The verifier omits it, because that takes no further proof.
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
        let (verdict, _) = run(Without::Message(label.clone()), || verify(&proof));
        assert!(verdict.is_err(), "{label}");
    }
}

/// Asserts that the verifier refuses a prover that cannot open a point that it sends: the first point of each label, or with
/// `each` the first and the last, each with an additional generator of every family in turn.
pub(crate) fn every_point_is_opened(
    prove: impl Fn() -> Vec<u8>,
    verify: impl Fn(&[u8]) -> Verdict,
    each: bool,
) {
    let (proof, log) = run(Without::Nothing, &prove);
    assert_eq!(verify(&proof), Ok(()));
    let (g, q) = (vector_generators(16), query_generators(1));
    let others = [tables().h.point, tables().u.point, g[0], g[15], q[0]];
    let chosen = match each {
        true => ends(&log.points),
        false => firsts(&log.points),
    };
    assert!(chosen.len() > 10, "{chosen:?}");
    for (n, family) in chosen.into_iter().zip((0..others.len()).cycle()) {
        let (proof, _) = run(Without::Opening(n, others[family]), &prove);
        assert!(verify(&proof).is_err(), "{}, {family}", log.points[n]);
    }
}

/// The first index of each name.
fn firsts(names: &[String]) -> BTreeSet<usize> {
    let first = |name: &String| names.iter().position(|n| n == name);
    names.iter().filter_map(first).collect()
}

/// The first and the last index of each name.
fn ends(names: &[String]) -> BTreeSet<usize> {
    let of_name = |name: &String| {
        let first = names.iter().position(|n| n == name);
        [first, names.iter().rposition(|n| n == name)]
    };
    names.iter().flat_map(of_name).flatten().collect()
}

/// Asserts that a claim that only one of the parties makes leads to a refusal: the first claim of each name, or with `each`
/// every claim in turn. The verifier omits it, because that takes no further proof.
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
        false => firsts(&claims),
    };
    assert!(chosen.len() > 10, "{chosen:?}");
    for n in chosen {
        let (verdict, _) = run(Without::NthClaim(n), || verify(&proof));
        assert!(verdict.is_err(), "claim {n}: {}", claims[n]);
    }
}

/// Holds that a false value is refused, and passes where neither party makes the claim that is there to catch it.
pub(crate) fn caught_by(claim: &str, false_value: impl Fn() -> bool) {
    let (accepted, log) = run(Without::Nothing, &false_value);
    assert!(!accepted, "{claim}");
    assert!(
        log.claims.iter().any(|c| c == claim),
        "no claim is called {claim}: {:?}",
        log.claims.iter().collect::<BTreeSet<_>>()
    );
    let (accepted, _) = run(Without::Claim(claim.to_owned()), &false_value);
    assert!(accepted, "refused without the claim {claim} too");
}

/// The oracle's answers under a label, in order.
pub(crate) fn answers(log: &Log, label: &str) -> Vec<Fr> {
    let of_label = log.answers.iter().filter(|(other, _)| other == label);
    of_label.map(|(_, answer)| *answer).collect()
}

/// The point of a run's lookup, whose last layer has a round for each coordinate.
pub(crate) fn lookup_point(log: &Log) -> Vec<Fr> {
    let (joins, layers) = (
        answers(log, "lookup children"),
        answers(log, "lookup layer"),
    );
    let rounds = &layers[layers.len() + 1 - joins.len()..];
    [&joins[joins.len() - 1..], rounds].concat()
}

/// Asserts that the verifier refuses a sumcheck with a false end, and accepts it if both parties omit the claim. The prover
/// sends a false coefficient in the last round, and compensates for it with the value at `place` of the last message of
/// `label`; `factor` multiplies this value in the constraint after the sumcheck.
pub(crate) fn end_is_held_by(
    claim: &str,
    [rounds, label]: [&str; 2],
    place: usize,
    factor: impl Fn(&Log) -> Fr,
    prove: impl Fn() -> Vec<u8>,
    verify: impl Fn(&[u8]) -> Verdict,
) {
    let last = |log: &Log, label: &str| log.points.iter().rposition(|point| point == label);
    REPEATED.set(true);
    let (_, log) = run(Without::Nothing, &prove);
    let (end, compensating) = (last(&log, rounds), last(&log, label));
    let round = end.expect("the message behind the rounds") - 1;
    assert_eq!(log.points[round], rounds);
    let first = (round, 0, Fr::ONE);
    FALSE.set(vec![first]);
    let (_, log) = run(Without::Nothing, &prove);
    // tau, then each round's challenge.
    let of_rounds = answers(&log, rounds);
    let (tau, at) = of_rounds.split_at(of_rounds.len() / 2);
    let error = *at.last().expect("a round") - *tau.last().expect("a round");
    let more = error / factor(&log);
    FALSE.set(vec![first, (compensating.expect("a message"), place, more)]);
    caught_by(claim, || verify(&prove()).is_ok());
    FALSE.set(Vec::new());
    REPEATED.set(false);
}
