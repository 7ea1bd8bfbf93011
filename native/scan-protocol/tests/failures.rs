//! Refusals of a verifier: proofs of the right length that prove nothing, bytes that are no proof, bytes where none are
//! allowed.
use std::sync::Arc;

use ark_ff::{AdditiveGroup, Field};
use ragaudit_scan_protocol::answer::{self, Item, Parameters, Record};
use ragaudit_scan_protocol::batch::verify_all;
use ragaudit_scan_protocol::bernoulli::{Bernoulli, BernoulliStatement};
use ragaudit_scan_protocol::claims::Column;
use ragaudit_scan_protocol::coalition::statement::{Blocks, CoalitionStatement};
use ragaudit_scan_protocol::drawn::{self, Slot};
use ragaudit_scan_protocol::embed::{verify_embed, EmbedStatement, OfTable};
use ragaudit_scan_protocol::engine::Plain;
use ragaudit_scan_protocol::equation::Equation;
use ragaudit_scan_protocol::expr::Expr;
use ragaudit_scan_protocol::group::{bases, Fr};
use ragaudit_scan_protocol::index::{IndexCommitment, Layout};
use ragaudit_scan_protocol::mle::Weight;
use ragaudit_scan_protocol::noise::{Noise, NoiseStatement};
use ragaudit_scan_protocol::query::{verify_query, QueryStatement};
use ragaudit_scan_protocol::session::Session;
use ragaudit_scan_protocol::transcript::{Hash, Kind, Oracle, State, Transcript};
use ragaudit_scan_protocol::verifier::Verifier;
use ragaudit_scan_protocol::{Error, Result};

/// The curve's point (1, 2), and the scalar 1.
const WORD: [u8; 32] = {
    let mut word = [0; 32];
    word[31] = 1;
    word
};

/// A proof with the number of words that a verifier reads.
fn empty_words(verify: &dyn Fn(&[u8]) -> Result<()>) -> Vec<u8> {
    let Err(Error::Malformed { at, .. }) = verify(&WORD.repeat(10_000)) else {
        panic!("a proof that is too long")
    };
    WORD.repeat(at / WORD.len())
}

/// The proof of words proves nothing. It is malformed if it is longer or shorter, or has a word without meaning.
fn proves_nothing(verify: &dyn Fn(&[u8]) -> Result<()>) {
    let proof = empty_words(verify);
    let (length, word) = (proof.len(), WORD.len());
    assert!(length > 50 * word);
    assert_eq!(verify(&proof), Err(Error::Rejected));
    let malformed = |proof: &[u8], place: usize| {
        assert!(
            matches!(verify(proof), Err(Error::Malformed { at, .. }) if at == place),
            "{place}: {:?}",
            verify(proof)
        );
    };
    malformed(&[&proof[..], &WORD].concat(), length);
    malformed(&[&proof[..], &[0]].concat(), length);
    malformed(&proof[..length - word], length - word);
    malformed(&proof[..length - 1], length - word);
    malformed(&[], 0);
    // A point of a commitment, and the scalar at the end: a number above both moduli is no encoding of either.
    for place in [0, length - word] {
        let mut other = proof.clone();
        other[place..place + word].fill(0x3f);
        malformed(&other, place);
    }
}

fn index(dimension: usize, capacity: usize) -> Arc<IndexCommitment> {
    let layout = Layout::new(capacity).unwrap();
    let points = vec![bases::<Plain>().u; dimension * layout.rows()];
    Arc::new(IndexCommitment {
        layout,
        dimension,
        points,
    })
}

const CONTEXT: [u8; 32] = [7; 32];

fn slot() -> Slot {
    Slot {
        c_seed: Fr::ONE,
        beacon: Fr::ONE,
        slot: Fr::ONE,
    }
}

fn bernoulli() -> BernoulliStatement {
    BernoulliStatement::single(CONTEXT, slot(), 12, Bernoulli { bound: 1 << 39 })
}

fn noise() -> NoiseStatement {
    let gains = vec![1, 8];
    NoiseStatement::single(CONTEXT, slot(), 12, Noise { gains })
}

fn query(index: &IndexCommitment, records: usize) -> QueryStatement<'_> {
    QueryStatement {
        context: CONTEXT,
        index,
        noise: Vec::new(),
        sample: None,
        gains: Vec::new(),
        records: vec![[Fr::ONE; 2]; records],
        listed: 2,
        lo: 5,
        hi: 60,
        lattice: 32,
    }
}

#[test]
fn a_proof_of_words_proves_nothing() {
    let index = index(3, 12);
    proves_nothing(&|proof| drawn::verify::<Verifier, _>(&bernoulli(), proof).map(drop));
    proves_nothing(&|proof| drawn::verify::<Verifier, _>(&noise(), proof).map(drop));
    for records in [1, 2] {
        let statement = query(&index, records);
        proves_nothing(&|proof| verify_query::<Verifier>(&statement, proof));
    }
    let embed = EmbedStatement {
        context: Fr::ONE,
        table: &index,
        tokens: 4,
        norm_factor: 8145,
        hq: Fr::ONE,
        cq: Fr::ONE,
    };
    proves_nothing(&|proof| verify_embed::<Verifier>(&embed, proof));
}

/// SHA-256, with one challenge replaced by 0.
#[derive(Clone)]
struct Zero;

impl Oracle for Zero {
    fn start() -> Self {
        Self
    }

    fn absorb(&mut self, state: &mut State, kind: Kind, label: &str, data: &[u8]) {
        Hash.absorb(state, kind, label, data);
    }

    fn answer(&mut self, state: &State, label: &str) -> Fr {
        match label {
            "fold" => Fr::ZERO,
            _ => Hash.answer(state, label),
        }
    }
}

#[test]
fn a_challenge_without_inverse_is_refused() {
    let statement = bernoulli();
    let proof = empty_words(&|proof| drawn::verify::<Verifier, _>(&statement, proof).map(drop));
    assert!(drawn::check::<Verifier, _>(&statement, &proof).is_ok());
    let actual = drawn::check::<Verifier<Zero>, _>(&statement, &proof).map(drop);
    assert_eq!(actual, Err(Error::Rejected));
}

/// A column that the index link would commit to, in a run without one.
#[test]
fn a_column_that_nobody_committed_to_is_refused() {
    let close = |rows: usize| {
        let proof = WORD.repeat(10_000);
        let mut session: Session<Verifier> = Session::verifier(Transcript::new("test"), 2, &proof);
        let id = session.add_column(Column {
            variables: 2,
            rows: vec![bases::<Plain>().u; rows],
            opening: None,
        });
        let point = session.challenges("point", 2);
        session.claim(
            Weight::evaluation(&point),
            vec![(id, Fr::ONE)],
            Expr::zero(),
        );
        session.close(None).map(|_: Equation| ())
    };
    // With a commitment the run goes on, to a proof that is too long.
    assert!(matches!(close(1), Err(Error::Malformed { .. })));
    assert_eq!(close(0), Err(Error::Rejected));
}

fn record() -> Record {
    Record {
        slot: slot(),
        context: Fr::ONE,
        cq: Fr::ONE,
        htopk: Fr::ONE,
    }
}

fn exact() -> Parameters {
    Parameters {
        window: CONTEXT,
        gains: Vec::new(),
        listed: 2,
        lo: 5,
        hi: 60,
        lattice: 32,
        sample: None,
    }
}

/// A tenant without noise has no noise proof; without this check a verifier would not read bytes in its place.
#[test]
fn a_noise_proof_where_there_is_no_noise_is_refused() {
    let index = index(3, 12);
    for count in [1, 2] {
        let verify = |parameters: &Parameters, parts: [&[u8]; 2]| {
            let records = vec![record(); count];
            answer::verify::<Plain>(&index, parameters, Item { records, parts })
        };
        let parameters = exact();
        let proof = empty_words(&|proof| verify(&parameters, [&[], proof]));
        assert_eq!(verify(&parameters, [&[], &proof]), Err(Error::Rejected));
        let more = verify(&parameters, [&WORD, &proof]);
        assert!(
            matches!(more, Err(Error::Malformed { at: 0, .. })),
            "{more:?}"
        );
        // A sampled tenant has no proof of several records.
        let sample = Some(vec![bases::<Plain>().u]);
        let actual = verify(
            &Parameters {
                sample,
                ..parameters
            },
            [&[], &proof],
        );
        match count {
            1 => assert!(matches!(actual, Err(Error::Malformed { .. })), "{actual:?}"),
            _ => assert!(matches!(actual, Err(Error::Invalid { .. })), "{actual:?}"),
        }
    }
}

#[test]
fn a_batch_is_of_one_table() {
    let (table, other) = (index(3, 12), index(3, 12));
    let statement = |table| EmbedStatement {
        context: Fr::ONE,
        table,
        tokens: 4,
        norm_factor: 8145,
        hq: Fr::ONE,
        cq: Fr::ONE,
    };
    let proof = empty_words(&|proof| verify_embed::<Verifier>(&statement(&table), proof));
    let items = [
        (statement(&table), &proof[..]),
        (statement(&other), &proof[..]),
    ];
    let actual = verify_all::<_, Plain>(&table, &OfTable, &items);
    assert!(
        matches!(
            &actual[..],
            [(0, Error::Rejected), (1, Error::Invalid { .. })]
        ),
        "{actual:?}"
    );
}

#[test]
fn an_index_has_a_dimension_within_its_limits() {
    let decode = |bytes: &[u8], dimension| IndexCommitment::decode::<Plain>(bytes, dimension, 1);
    assert!(decode(&WORD, 1).is_ok());
    for (bytes, dimension) in [(Vec::new(), 0), (WORD.repeat(4097), 4097)] {
        let actual = decode(&bytes, dimension).map(drop);
        assert!(
            matches!(&actual, Err(Error::Invalid { field, .. }) if field == "dimension"),
            "{actual:?}"
        );
    }
}

#[test]
fn a_coalition_has_an_account_and_a_first_record_for_each_record() {
    let statement = CoalitionStatement {
        context: CONTEXT,
        dimension: 6,
        cq: vec![Fr::ONE; 2],
        accounts: vec![0, 1],
        tenants: vec![0, 0],
        first: vec![0, 0],
        theta: [4, 5],
        largest: [2, 2],
        class_variables: 1,
        blocks: Blocks::SHIPPED,
    };
    assert_eq!(statement.runs(), Ok(1));
    let changes: [fn(&mut CoalitionStatement); 4] = [
        |s| s.accounts.truncate(1),
        |s| s.accounts.push(0),
        |s| s.first.truncate(1),
        |s| s.first.push(0),
    ];
    for change in changes {
        let mut other = statement.clone();
        change(&mut other);
        let actual = other.runs();
        assert!(
            matches!(&actual, Err(Error::Invalid { field, .. }) if field == "records"),
            "{actual:?}"
        );
    }
}

/// Refused before a byte is read, for one slot and for several.
#[test]
fn noise_has_gains_and_no_more_slots_than_a_batch() {
    let of = |gains: &[u32], slots: usize| {
        let gains = gains.to_vec();
        let one = NoiseStatement {
            distribution: Noise { gains },
            ..noise()
        };
        let several = NoiseStatement {
            slots: vec![slot(); slots],
            ..one.clone()
        };
        (one.shape().is_ok(), several.shape().is_ok())
    };
    assert_eq!(of(&[1, 8], 2), (true, true));
    assert_eq!(of(&[], 2), (false, false));
    assert_eq!(of(&[2, 8], 2), (false, false));
    assert_eq!(of(&[1, 1_000_000], 2), (false, false));
    assert_eq!(of(&[1, 8], 0), (true, false));
    assert_eq!(of(&[1, 8], 65), (true, false));
}
