//! Tests that all protocols share. Each protocol's own tests define its statement, its witness and its faults.
use crate::batch::{Failures, Kind};
use crate::channel::Channel;
use crate::engine::Fast;
use crate::equation::Equation;
use crate::error::Result;
use crate::group::G1Affine;
use crate::index::IndexCommitment;
use crate::malicious::{
    every_point_is_opened, no_claim_is_skipped, nothing_is_forgotten, run, MaliciousProver, Without,
};
use crate::session::Session;
use crate::simulator::{Simulated, Simulates, Simulator};
use crate::transcript::{Hash, Oracle, Transcript};

/// A statement, and the run about it without a secret.
pub(crate) trait Protocol {
    fn start<O: Oracle>(&self) -> Transcript<O>;

    fn rows(&self) -> Result<usize>;

    /// The points of the index or table in the statement.
    fn points(&self) -> &[G1Affine] {
        &[]
    }

    fn run<'a, C: Channel>(&'a self, session: Session<'a, C>) -> Result<C::Closed>;
}

/// Verifies with the weaker verifier that the thread's run asks for.
pub(crate) fn verify<S: Protocol>(statement: &S, proof: &[u8]) -> Result<()> {
    let rows = statement.rows()?;
    holds(statement, Session::verifier(statement.start(), rows, proof))
}

fn holds<'a, 'p: 'a, S: Protocol>(
    statement: &'a S,
    session: Session<'a, MaliciousProver<'p>>,
) -> Result<()> {
    let equation: Equation = statement.run(session)?.into();
    equation.verify::<Fast>(statement.points())
}

/// Which of a batch's items are refused.
pub(crate) fn numbers(refused: &Failures) -> Vec<usize> {
    refused.iter().map(|(i, _)| *i).collect()
}

/// The state after everything of a batch, before its weights.
pub(crate) fn state_of<K: Kind>(
    index: &IndexCommitment,
    kind: &K,
    items: &[K::Item<'_>],
) -> [u8; 32] {
    let mut transcript: Transcript = kind.transcript(&index.digest());
    kind.absorb(&mut transcript, items);
    transcript.digest()
}

/// A simulator's proof from public values only.
pub(crate) fn simulate<S: Protocol>(public: &S) -> Simulated {
    let session: Session<Simulator> = Session::simulator(public.start(), public.rows().unwrap());
    public.run(session).unwrap()
}

/// Public values only, commitments without a known opening, and an oracle with some answers chosen in advance: the verifier
/// accepts, so a proof tells it only what it could have written itself.
pub(crate) fn simulated<S: Protocol>(public: &S, real: &[u8]) {
    stands_for(&simulate(public), public, real);
}

/// The same for a simulator that also knows other public values.
pub(crate) fn stands_for<S: Protocol>(simulated: &Simulated, public: &S, real: &[u8]) {
    assert_eq!(simulated.proof.len(), real.len());
    assert!(
        verify(public, &simulated.proof).is_err(),
        "under the hash function it is no proof"
    );
    let told = simulated.tell(public.start());
    let session = Session::verifier(told, public.rows().unwrap(), &simulated.proof);
    assert_eq!(holds(public, session), Ok(()));
}

/// A change of a statement.
pub(crate) type Change<'c, S> = Box<dyn Fn(&mut S) + 'c>;

/// Holds that a proof is refused for every changed statement, and that each change is absorbed.
pub(crate) fn only_for<S: Protocol + Clone>(base: &S, proof: &[u8], changes: &[Change<S>]) {
    assert_eq!(verify(base, proof), Ok(()));
    for (i, change) in changes.iter().enumerate() {
        let mut other = base.clone();
        change(&mut other);
        assert!(verify(&other, proof).is_err(), "change {i}");
    }
    absorbed(base, changes);
}

/// Holds that a statement's transcript follows every change.
pub(crate) fn absorbed<S: Protocol + Clone>(base: &S, changes: &[Change<S>]) {
    for (i, change) in changes.iter().enumerate() {
        let mut other = base.clone();
        change(&mut other);
        let [changed, before] = [&other, base].map(|s| s.start::<Hash>().digest());
        assert_ne!(changed, before, "change {i}");
    }
}

/// Asserts that no party can omit a label from its hash ([`nothing_is_forgotten`]). `other` differs from `base` in a field without an
/// equation: if both sides omit it, one proof is valid for two statements.
pub(crate) fn forgets_nothing<S: Protocol>(base: &S, other: &S, prove: impl Fn() -> Vec<u8>) {
    nothing_is_forgotten(&prove, |proof| verify(base, proof));
    let forgets = Without::Message("context".to_owned());
    let (proof, _) = run(forgets.clone(), &prove);
    assert_eq!(run(forgets, || verify(other, &proof)).0, Ok(()));
    assert!(verify(other, &prove()).is_err());
}

/// Asserts that the verifier refuses if one party omits a claim or the prover cannot open a point: the first of each name, or
/// with `each` every claim, and the first and the last point of each name.
pub(crate) fn all_are_needed<S: Protocol>(base: &S, prove: impl Fn() -> Vec<u8>, each: bool) {
    no_claim_is_skipped(&prove, |proof| verify(base, proof), each);
    every_point_is_opened(&prove, |proof| verify(base, proof), each);
}

/// Holds that a proof with a changed bit every so many bytes is refused, and so is one of another length.
pub(crate) fn changes_are_refused<S: Protocol>(base: &S, proof: &[u8], step: usize) {
    for at in (0..proof.len()).step_by(step) {
        let mut bad = proof.to_vec();
        bad[at] ^= 1 << (at % 8);
        assert!(verify(base, &bad).is_err(), "byte {at}");
    }
    let n = proof.len();
    for length in [0, 1, 31, 32, n / 2, n - 32, n - 1] {
        assert!(verify(base, &proof[..length]).is_err(), "{length} bytes");
    }
    assert!(verify(base, &[proof, &[0; 32]].concat()).is_err());
}

/// Length and trace of a proof: its shape.
pub(crate) fn shape(prove: impl FnOnce() -> Vec<u8>) -> (usize, Vec<String>) {
    let (proof, log) = run(Without::Nothing, prove);
    (proof.len(), log.trace)
}

/// A test of each of these for a run. `small` and `of_claims` are cases with `statement` and `prove`, and the statement's
/// `context`, or the field that `context` names, is a field element. One bit changes in every so many bytes of the small case's proof.
macro_rules! run_tests {
    (
        $run:literal,
        small: $small:expr,
        of_claims: $of_claims:expr,
        every: $bytes:literal,
        ignored: $ignored:literal $(,)?
    ) => {
        crate::kit::run_tests!(
            $run,
            context: [context],
            small: $small,
            of_claims: $of_claims,
            every: $bytes,
            ignored: $ignored,
        );
    };
    (
        $run:literal,
        context: [$($context:tt)+],
        small: $small:expr,
        of_claims: $of_claims:expr,
        every: $bytes:literal,
        ignored: $ignored:literal $(,)?
    ) => {
        #[test]
        fn a_transcript_forgets_nothing() {
            let case = $small;
            let (base, mut other) = (case.statement(), case.statement());
            other.$($context)+ += crate::group::Fr::from(1u8);
            crate::kit::forgets_nothing(&base, &other, || case.prove());
        }

        #[test]
        fn claims_and_openings_are_all_needed() {
            let case = $of_claims;
            crate::kit::all_are_needed(&case.statement(), || case.prove(), false);
        }

        #[test]
        #[ignore = $ignored]
        fn every_single_claim_is_needed() {
            let case = $of_claims;
            crate::kit::all_are_needed(&case.statement(), || case.prove(), true);
        }

        /// A prover states a false value and compensates for it in all other claims; the proof is accepted only if one claim
        /// is omitted.
        #[test]
        fn each_claim_stands_against_one_false_value() {
            let case = $of_claims;
            let statement = case.statement();
            crate::malicious_claims::each_claim_excludes_a_false_value(
                $run,
                || case.prove(),
                |proof| crate::kit::verify(&statement, proof),
            );
        }

        #[test]
        fn changed_proofs_are_refused() {
            let case = $small;
            crate::kit::changes_are_refused(&case.statement(), &case.prove(), $bytes);
        }
    };
}
pub(crate) use run_tests;
