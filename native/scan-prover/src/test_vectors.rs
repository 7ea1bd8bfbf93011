//! Test vectors in `vectors/v1/scan`: the trace of every kind of run, proofs under fixed nonces with the transcript's
//! states, and the generators. `vectors/scan.py` writes them by running these tests.
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Arc;

use ragaudit_scan_protocol::block::Blocks;
use sha2::{Digest, Sha256};

use crate::answer::tests::{batches, KnownAnswer};
use crate::answer::{Item, Parameters, Record, Slot};
use crate::block::{commit_under, split, Committed, Opened, Rows};
use crate::claims::Bound;
use crate::drawn::tests::seed;
use crate::group::{
    encode_point, encode_points, encode_scalar, query_generators, tables, vector_generators, Fr,
    G1Affine,
};
use crate::index::IndexCommitment;
use crate::malicious::{run, Log, MaliciousProver, Told, Without, REPEATED};
use crate::protocol::{ENCODER_TRACE, POOLED_TRACE, TRACE, VERSION};
use crate::secrets::Nonces;
use crate::session::Column;
use crate::{
    answer, bernoulli, coalition, document_table, drawn, embed, noise, pooled_listing,
    pooled_listing_records, query, row_names,
};

mod encoders;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut out, b| {
        write!(out, "{b:02x}").expect("a string grows");
        out
    })
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for run in bytes.chunks(3) {
        let word =
            run.iter().fold(0u32, |word, b| word << 8 | u32::from(*b)) << (8 * (3 - run.len()));
        for k in 0..4 {
            let digit = DIGITS[(word >> (18 - 6 * k) & 63) as usize];
            out.push(if k <= run.len() { digit as char } else { '=' });
        }
    }
    out
}

/// The value as JSON.
pub(crate) fn hex_text(bytes: &[u8]) -> String {
    format!("\"{}\"", hex(bytes))
}

pub(crate) fn base64_text(bytes: &[u8]) -> String {
    format!("\"{}\"", base64(bytes))
}

fn digest_text(bytes: &[u8]) -> String {
    hex_text(&Sha256::digest(bytes))
}

/// A name with its value as JSON.
pub(crate) type Field = (&'static str, String);

pub(crate) fn element(x: &Fr) -> String {
    hex_text(&encode_scalar(x))
}

pub(crate) fn list<T>(items: impl IntoIterator<Item = T>, text: impl Fn(T) -> String) -> String {
    let items: Vec<String> = items.into_iter().map(text).collect();
    format!("[{}]", items.join(", "))
}

pub(crate) fn object(fields: &[(&str, String)], indent: &str) -> String {
    let lines: Vec<String> = fields
        .iter()
        .map(|(name, value)| format!("{indent} \"{name}\": {value}"))
        .collect();
    format!("{{\n{}\n{indent}}}", lines.join(",\n"))
}

/// Compares a file with the published one, or writes a missing file if the script for vectors requests it.
fn published(name: &str, fields: &[(&str, String)]) {
    let head = [
        ("version", VERSION.to_string()),
        ("vectors", format!("\"scan {name}\"")),
    ];
    let text = object(&[&head, fields].concat(), "") + "\n";
    let folder =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("../../vectors/v{VERSION}/scan"));
    let path = folder.join(format!("{name}.json"));
    if std::env::var_os("RAG_AUDIT_WRITE_VECTORS").is_some() && !path.exists() {
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(&path, &text).unwrap();
    }
    let actual = std::fs::read_to_string(&path).unwrap_or_default();
    let differing = actual.lines().zip(text.lines()).find(|(a, b)| a != b);
    assert!(
        actual == text,
        "{}: the protocol says something else than this version did: raise protocol::VERSION and make new vectors with \
         vectors/scan.py. First line that differs: {:?}",
        path.display(),
        differing.map(|(a, b)| [a, b].map(|line| line.chars().take(300).collect::<String>())),
    );
}

fn of_run(work: impl FnOnce()) -> Log {
    run(Without::Nothing, work).1
}

/// The transcript of a batch of two items with these parts.
fn batch_of(index: Arc<IndexCommitment>, parameters: Parameters, item: Item) {
    let mut batch: answer::Batch<Told> = answer::Batch::new(index, parameters);
    assert_eq!(batch.add(&[item.clone(), item]).len(), 2);
}

fn batch_of_answers() {
    let case = answer::tests::known_answer(false);
    let item = Item::single(case.record, [&[1; 70], &[2; 90]]);
    batch_of(case.index, case.parameters, item);
}

fn batch_of_groups() {
    let case = batches::small();
    let item = Item {
        records: case.records.clone(),
        parts: [&[1; 70], &[2; 90]],
    };
    batch_of(case.index, case.parameters, item);
}

fn batch_of_sampled_answers() {
    let mut case = answer::tests::known_answer(false);
    let sample = Some(case.index.points[..1].to_vec());
    (case.parameters.sample, case.parameters.gains) = (sample, Vec::new());
    let item = Item::single(case.record, [&[], &[2; 90]]);
    batch_of(case.index, case.parameters, item);
}

fn batch_of_pooled_listings() {
    let case = pooled_listing::tests::known_answer();
    let mut batch: pooled_listing_records::Batch<Told> =
        pooled_listing_records::Batch::new(case.shared_index(), case.constants());
    let rows = pooled_listing_records::Rows {
        before: &[1; 32],
        after: &[2; 32],
    };
    let records = [0, 1].map(|k| (case.record(k), rows, &[3u8; 90][..]));
    assert_eq!(batch.add(&records).len(), 2);
}

fn batch_of_embeddings() {
    let case = embed::tests::known_answer();
    let mut batch: embed::Batch<Told> = embed::Batch::new(case.table.clone(), embed::OfTable);
    let records = [
        (case.statement(), &[1u8; 70][..]),
        (case.statement(), &[2u8; 90]),
    ];
    assert_eq!(batch.add(&records).len(), 2);
}

/// A kind of run, its sizes, and the run.
type Run = (&'static str, &'static str, fn());

/// Every kind of run, small and large.
const RUNS: [Run; 33] = [
    ("noise proof", "3 positions, gains 1", || {
        noise::tests::simulate(3, &[1])
    }),
    ("noise proof", "1,000 positions, gains 1, 8", || {
        noise::tests::simulate(1000, &[1, 8])
    }),
    ("noise proof", "300,000 positions, gains 1, 8, 64", || {
        noise::tests::simulate(300_000, &[1, 8, 64])
    }),
    ("query", "3 positions of 2, 2 listed, gains 1", || {
        query::tests::simulate(3, 2, 2, &[1])
    }),
    (
        "query",
        "1,000 positions of 256, 5 listed, gains 1, 8",
        || query::tests::simulate(1000, 256, 5, &[1, 8]),
    ),
    (
        "query",
        "300,000 positions of 70, 10 listed, gains 1, 8, 64",
        || query::tests::simulate(300_000, 70, 10, &[1, 8, 64]),
    ),
    ("embed", "2 tokens of 8, 3 components, A 8,145", || {
        embed::tests::simulate(2, 8, 3, 8145)
    }),
    (
        "embed",
        "64 tokens of 32,000, 256 components, A 8,145",
        || embed::tests::simulate(64, 32_000, 256, 8145),
    ),
    ("coalition records", "2 records of 3", || {
        coalition::tests::simulate_all(2, 3, None)
    }),
    ("coalition records", "600 records of 256", || {
        coalition::tests::simulate_all(600, 256, None)
    }),
    (
        "coalition pairs",
        "1 pair of blocks, 2 records of 3",
        || coalition::tests::simulate_all(2, 3, Some(vec![(0, 0)])),
    ),
    (
        "coalition pairs",
        "6 pairs of blocks, 600 records of 256",
        || {
            let blocks = vec![(0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2)];
            coalition::tests::simulate_all(600, 256, Some(blocks))
        },
    ),
    (
        "batch",
        "2 records, proofs of 70 and 90 bytes",
        batch_of_answers,
    ),
    (
        "embed batch",
        "2 records, proofs of 70 and 90 bytes",
        batch_of_embeddings,
    ),
    (
        "coalition sum",
        "6 records, proofs of 100, 70 and 70 bytes",
        || coalition::tests::weigh_sum(6, 3),
    ),
    ("Bernoulli proof", "3 positions", || {
        bernoulli::tests::simulate(3)
    }),
    ("Bernoulli proof", "1,000 positions", || {
        bernoulli::tests::simulate(1000)
    }),
    ("Bernoulli proof", "300,000 positions", || {
        bernoulli::tests::simulate(300_000)
    }),
    ("query", "3 positions of 2, 2 listed, kept", || {
        query::tests::simulate_any([3, 2, 2], &[], true)
    }),
    ("query", "1,000 positions of 256, 5 listed", || {
        query::tests::simulate_any([1000, 256, 5], &[], false)
    }),
    (
        "query",
        "1,000 positions of 256, 5 listed, kept, gains 1, 8",
        || query::tests::simulate_any([1000, 256, 5], &[1, 8], true),
    ),
    ("query", "300,000 positions of 70, 10 listed, kept", || {
        query::tests::simulate_any([300_000, 70, 10], &[], true)
    }),
    (
        "batch",
        "2 records of a sampled tenant without noise, proofs of 90 bytes",
        batch_of_sampled_answers,
    ),
    (
        "noise proof",
        "3 slots of 1,000 positions, gains 1, 8",
        || batches::simulate_slots(3, 1000, &[1, 8]),
    ),
    (
        "noise proof",
        "16 slots of 100,000 positions, gains 1, 8, 64",
        || batches::simulate_slots(16, 100_000, &[1, 8, 64]),
    ),
    (
        "query",
        "3 records of 1,000 positions of 256, 5 listed",
        || batches::simulate(3, [1000, 256, 5], &[]),
    ),
    (
        "query",
        "16 records of 100,000 positions of 256, 5 listed, gains 1, 8, 64",
        || batches::simulate(16, [100_000, 256, 5], &[1, 8, 64]),
    ),
    (
        "query",
        "5 records of 1,000 positions of 70, 10 listed, gains 1, 8",
        || batches::simulate(5, [1000, 70, 10], &[1, 8]),
    ),
    (
        "batch",
        "2 groups of 3 records, proofs of 70 and 90 bytes",
        batch_of_groups,
    ),
    (
        "document table",
        "3 positions, 2 rows of at most 2, all fresh",
        || document_table::tests::simulate([3, 2, 2, 2], false),
    ),
    (
        "document table",
        "1,000 positions, 300 rows of at most 9, all fresh",
        || document_table::tests::simulate([1000, 300, 9, 300], false),
    ),
    (
        "document table",
        "1,000 positions, 300 rows of at most 9, 20 fresh",
        || document_table::tests::simulate([1000, 300, 9, 20], true),
    ),
    (
        "document table",
        "300,000 positions, 40,000 rows of at most 50, 2,000 fresh",
        || document_table::tests::simulate([300_000, 40_000, 50, 2000], true),
    ),
];

/// The messages of a run's parties, by label and length, and their claims. Each change of these changes the digest in the
/// protocol's name.
#[test]
fn traces_are_the_published_ones() {
    published("trace", &[("what", explained()), ("runs", traces(&RUNS))]);
}

fn explained() -> String {
    "\"one entry a message (its kind, its length in bytes and its label; kinds: 0 start, 1 bytes, 2 integer, 3 \
     scalar, 4 point, 5 challenge) or claim (its name), in order; sha256 is of the entries joined by line feeds\""
        .to_owned()
}

fn traces(runs: &[Run]) -> String {
    let trace = |(kind, sizes, work): &Run| {
        let log = of_run(work);
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for label in &log.trace {
            *counts.entry(label).or_default() += 1;
        }
        let counted = |(label, count): (&&str, &usize)| format!("\"{count} x {label}\"");
        let fields = [
            ("run", format!("\"{kind}\"")),
            ("sizes", format!("\"{sizes}\"")),
            ("entries", log.trace.len().to_string()),
            ("sha256", digest_text(log.trace.join("\n").as_bytes())),
            ("counts", list(&counts, counted)),
        ];
        object(&fields, "  ")
    };
    list(runs, |run| format!("\n  {}", trace(run)))
}

#[test]
fn document_tables_are_the_published_ones() {
    let case = document_table::tests::known_answer();
    published("document-table", &[("table", document_table_of(&case))]);
}

/// The second window's table of a chain, with its proof.
fn document_table_of(case: &document_table::tests::Case) -> String {
    let (made, states) = fixed(|| case.proved(false));
    let (again, _) = fixed(|| case.proved(true));
    assert!(made.proof == again.proof, "in low memory another proof");
    document_table::verify(&case.statement, &made.proof).unwrap();
    let s = &case.statement;
    let values = |column: &Column| small(&column.opening.as_ref().unwrap().values);
    // Each column has one row.
    fn points<'p>(columns: impl Iterator<Item = &'p Vec<G1Affine>>) -> String {
        base64_text(&columns.flat_map(|p| encode_points(p)).collect::<Vec<_>>())
    }
    let previous = s.previous.as_ref().unwrap();
    let of_policy = [
        ("capacity", s.capacity.to_string()),
        ("rows", s.rows.to_string()),
        ("positions_per_row", s.positions_per_row.to_string()),
        ("fresh", s.fresh.to_string()),
        ("bound", s.coins.bound.to_string()),
        ("context", hex_text(&s.context)),
        ("seed", list(&seed().0, element)),
    ];
    let of_table = [
        ("row", values(&case.table.row)),
        ("named", values(&case.table.names.named)),
        ("carried", list(&case.carried, |r| r.to_string())),
        ("table_points", points(s.table.each())),
        ("previous_points", points(previous.each())),
    ];
    let of_proof = [
        ("sample", values(&made.columns.sample)),
        ("kept", values(&made.columns.kept)),
        ("proof", base64_text(&made.proof)),
    ];
    let slot = slot_fields(&s.slot);
    let fields = [&of_policy[..], &slot, &of_table, &of_proof, &states].concat();
    object(&fields, " ")
}

/// Proofs of pooled listing, whose protocol has a name of its own.
const POOLED_LISTINGS: [Run; 7] = [
    (
        "pooled listing",
        "3 positions of 2, 2 rows of at most 2, 2 listed",
        || pooled_listing::tests::simulate([3, 2, 2, 2, 2, 1]),
    ),
    (
        "pooled listing",
        "1,000 positions of 256, 300 rows of at most 9, 5 listed",
        || pooled_listing::tests::simulate([1000, 256, 300, 9, 5, 1]),
    ),
    (
        "pooled listing",
        "3 records of 1,000 positions of 256, 300 rows of at most 9, 5 listed",
        || pooled_listing::tests::simulate([1000, 256, 300, 9, 5, 3]),
    ),
    (
        "pooled listing",
        "300,000 positions of 70, 40,000 rows of at most 50, 10 listed",
        || pooled_listing::tests::simulate([300_000, 70, 40_000, 50, 10, 1]),
    ),
    (
        "pooled batch",
        "2 records, parts of 32, 32 and 90 bytes",
        batch_of_pooled_listings,
    ),
    (
        "pooled document table",
        "1,000 positions, 300 rows of at most 9, 20 fresh",
        || document_table::tests::simulate_pooled([1000, 300, 9, 20]),
    ),
    (
        "pooled document table",
        "300,000 positions, 40,000 rows of at most 50, 2,000 fresh",
        || document_table::tests::simulate_pooled([300_000, 40_000, 50, 2000]),
    ),
];

/// Names of rows, which no protocol's name covers.
const ROW_NAMES: [Run; 3] = [
    ("row names", "3 positions, 2 rows, 2 opened", || {
        row_names::tests::simulate([3, 2, 2])
    }),
    ("row names", "1,000 positions, 300 rows, 10 opened", || {
        row_names::tests::simulate([1000, 300, 10])
    }),
    (
        "row names",
        "300,000 positions, 40,000 rows, 200 opened",
        || row_names::tests::simulate([300_000, 40_000, 200]),
    ),
];

#[test]
fn row_names_are_the_published_ones() {
    let head = [("what", explained()), ("runs", traces(&ROW_NAMES))];
    let proofs = row_names::tests::vectors::fields();
    published("row-names", &[&head[..], &proofs].concat());
}

#[test]
fn pooled_listings_are_the_published_ones() {
    let case = pooled_listing::tests::known_answer();
    let (made, states) = fixed(|| case.made(false));
    let (again, _) = fixed(|| case.made(true));
    assert!(made == again, "in low memory another proof");
    let s = case.statement();
    pooled_listing::verify(&s, &made).unwrap();
    let values = |column: &Column| small(&column.opening.as_ref().unwrap().values);
    let points = |points: &[G1Affine]| base64_text(&encode_points(points));
    let of_policy = [
        ("capacity", s.index.layout.capacity.to_string()),
        ("dimension", s.index.dimension.to_string()),
        ("rows", s.rows.to_string()),
        ("positions_per_row", s.positions_per_row.to_string()),
        ("bound", s.chance.bound.to_string()),
        ("threshold", s.threshold.to_string()),
        ("lo", s.lo.to_string()),
        ("hi", s.hi.to_string()),
        ("lattice", s.lattice.to_string()),
        ("listed", s.listed.to_string()),
        ("context", hex_text(&s.context)),
        ("index", points(&s.index.points)),
        ("index_digest", hex_text(&s.index.digest())),
    ];
    let given = [
        ("row", values(&case.row)),
        ("kept", values(&case.kept)),
        ("before", values(&case.before)),
        ("row_points", points(s.row)),
        ("kept_points", points(s.kept)),
        ("before_points", points(s.before)),
    ];
    let of_records =
        |of: &dyn Fn(&pooled_listing::Record) -> Fr| list(&s.records, |r| element(&of(r)));
    let records = [
        ("c_seed", of_records(&|r| r.slot.c_seed)),
        ("beacon", of_records(&|r| r.slot.beacon)),
        ("slot", of_records(&|r| r.slot.slot)),
        ("cq", of_records(&|r| r.cq)),
        ("htopk", of_records(&|r| r.htopk)),
        ("places", list(&case.requests, |r| small(&r.positions))),
        ("after", list(&case.after, values)),
        (
            "after_points",
            points(
                &case
                    .after
                    .iter()
                    .flat_map(|c| c.rows.clone())
                    .collect::<Vec<_>>(),
            ),
        ),
    ];
    let of_proof = [("proof", base64_text(&made))];
    let fields = [&of_policy[..], &given, &records, &of_proof, &states].concat();
    let table = document_table::tests::pooled_known_answer();
    published(
        "pooled-listing",
        &[
            ("what", explained()),
            ("runs", traces(&POOLED_LISTINGS)),
            ("records", object(&fields, " ")),
            ("table", document_table_of(&table)),
        ],
    );
}

#[test]
fn the_protocol_s_names_are_made_of_the_published_traces() {
    for (name, digest) in [
        ("trace", TRACE),
        ("pooled-listing", POOLED_TRACE),
        ("encoder-embed", ENCODER_TRACE),
    ] {
        let file = format!("../../vectors/v{VERSION}/scan/{name}.json");
        let bytes = std::fs::read(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap();
        assert_eq!(
            hex(&Sha256::digest(&bytes)),
            digest,
            "protocol.rs has the digest of another {name}.json"
        );
    }
}

#[test]
fn generators_are_the_published_ones() {
    let (g, q) = (vector_generators(4096), query_generators(257));
    let all = |points: &[G1Affine]| digest_text(&encode_points(points));
    let point = |p: &G1Affine| hex_text(&encode_point(p));
    published(
        "generators",
        &[
            ("G_first", list(&g[..4], point)),
            ("G_4096_sha256", all(&g[..4096])),
            ("Q_first", list(&q[..4], point)),
            ("Q_257_sha256", all(&q[..257])),
            ("H", point(&tables().h.point)),
            ("U", point(&tables().u.point)),
        ],
    );
}

/// Runs a prover with fixed nonces. Returns its result, and the transcript's states: the first four bytes of each, and the
/// last one whole.
pub(crate) fn fixed<T>(prove: impl FnOnce() -> T) -> (T, [Field; 2]) {
    REPEATED.set(true);
    let (result, log) = run(Without::Nothing, prove);
    REPEATED.set(false);
    let states: Vec<u8> = log.states.iter().flat_map(|s| s[..4].to_vec()).collect();
    let last = log.states.last().expect("a run says something");
    (
        result,
        [
            ("states", base64_text(&states)),
            ("last_state", hex_text(last)),
        ],
    )
}

pub(crate) fn int16_text(values: &[i16]) -> String {
    let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    base64_text(&bytes)
}

/// The table of exp up to its last entry above 0.
pub(crate) fn above_0(exp: &[i16]) -> &[i16] {
    let last = exp.iter().rposition(|e| *e != 0);
    &exp[..last.map_or(0, |last| last + 1)]
}

/// The rows of columns, one column after another.
pub(crate) fn points_text(rows: &[Vec<G1Affine>]) -> String {
    base64_text(&encode_points(&rows.concat()))
}

/// Commits to columns under fixed blindings.
pub(crate) fn fixed_columns(columns: Vec<Vec<i64>>, row_variables: usize) -> Opened {
    let nonces = Nonces::of([7; 64], &[0; 32], b"published columns");
    commit_under(nonces, columns, Bound::Signed(16), row_variables)
}

/// Commits to the places of a block under fixed blindings.
pub(crate) fn committed(of: Rows, values: &[i64]) -> Committed {
    let columns = split(values, Blocks::of(of.width), of.width);
    let (rows, openings) = fixed_columns(columns, of.row_variables);
    Committed {
        rows,
        openings,
        values: values.to_vec().into(),
    }
}

/// A proof of a false statement under the name of its fault.
pub(crate) struct Negative {
    name: &'static str,
    claim: &'static str,
    /// The parts of the statement that differ.
    parts: Vec<Field>,
    proof: Vec<u8>,
}

/// The proof of a prover that omits one claim. A verifier that omits the same claim accepts the proof, and a verifier that
/// omits no claim refuses it, also if the prover makes the claim.
pub(crate) fn negative(
    name: &'static str,
    claim: &'static str,
    columns: &[(&'static str, &[Vec<G1Affine>])],
    prove: impl Fn() -> Vec<u8>,
    accepts: impl Fn(&[u8]) -> bool,
) -> Negative {
    let parts = columns.iter().map(|(n, rows)| (*n, points_text(rows)));
    negative_of(name, claim, parts.collect(), prove, accepts)
}

/// [`negative`] of a statement that differs in these parts.
pub(crate) fn negative_of(
    name: &'static str,
    claim: &'static str,
    parts: Vec<Field>,
    prove: impl Fn() -> Vec<u8>,
    accepts: impl Fn(&[u8]) -> bool,
) -> Negative {
    REPEATED.set(true);
    let party = |without: Without| {
        run(without, || {
            let proof = prove();
            (accepts(&proof), proof)
        })
        .0
    };
    let (accepted, _) = party(Without::Nothing);
    assert!(!accepted, "{name}");
    let (accepted, proof) = party(Without::Claim(claim.to_owned()));
    assert!(accepted, "{name}: not by {claim}");
    assert!(!accepts(&proof), "{name}");
    REPEATED.set(false);
    Negative {
        name,
        claim,
        parts,
        proof,
    }
}

impl Negative {
    /// The same with another field element of the statement.
    pub(crate) fn with(mut self, name: &'static str, value: &Fr) -> Self {
        self.parts.push((name, element(value)));
        self
    }
}

pub(crate) fn negatives(all: &[Negative]) -> String {
    let one = |wrong: &Negative| {
        let fields = [
            ("name", format!("\"{}\"", wrong.name)),
            ("claim", format!("\"{}\"", wrong.claim)),
        ];
        let proof = [("proof", base64_text(&wrong.proof))];
        object(&[&fields[..], &wrong.parts, &proof].concat(), "  ")
    };
    list(all, |wrong| format!("\n  {}", one(wrong)))
}

pub(crate) fn small<T: Copy + Into<i64>>(values: &[T]) -> String {
    list(values, |v| (*v).into().to_string())
}

fn answers(low_memory: bool) -> String {
    let case = answer::tests::known_answer(low_memory);
    let mut fields = answer_fields(&case);
    let p = &case.parameters;
    let of_policy = [
        ("dimension", case.index.dimension.to_string()),
        ("capacity", case.index.layout.capacity.to_string()),
        ("window", hex_text(&p.window)),
        ("gains", small(&p.gains)),
        ("listed", p.listed.to_string()),
        ("lo", p.lo.to_string()),
        ("hi", p.hi.to_string()),
        ("lattice", p.lattice.to_string()),
        ("rows", small(&case.rows)),
        ("index_key", hex_text(&case.key.0)),
        ("index", base64_text(&case.index.encode())),
        ("index_digest", hex_text(&case.index.digest())),
        ("seed", list(&case.seed.0, element)),
    ];
    fields.splice(..0, of_policy);
    fields.extend(answer_proofs(&case, |proof, states| {
        object(
            &[&[("proof", base64_text(proof))][..], states].concat(),
            "  ",
        )
    }));
    object(&fields, " ")
}

/// Tenants that list the exact top K, are sampled, or both sampled and noised; the other values are those of the answer above.
/// The file has digests of the proofs.
fn sampled_answers(low_memory: bool) -> String {
    let cases = answer::tests::known_answer_sampled(low_memory);
    list(cases, |case| {
        let mut fields = vec![("gains", small(&case.parameters.gains))];
        if let Some(bernoulli) = &case.bernoulli {
            let column = &bernoulli.columns[0];
            let bits = &column.opening.as_ref().unwrap().values;
            fields.push(("coins", small(bits)));
            fields.push(("kept", base64_text(&encode_points(&column.rows))));
        }
        fields.extend(answer_fields(&case));
        fields.extend(answer_proofs(&case, |proof, [_, last_state]| {
            let digests = [
                ("proof_bytes", proof.len().to_string()),
                ("proof_sha256", digest_text(proof)),
                last_state.clone(),
            ];
            object(&digests, "  ")
        }));
        object(&fields, " ")
    })
}

fn slot_fields(slot: &Slot) -> [Field; 3] {
    [
        ("c_seed", element(&slot.c_seed)),
        ("beacon", element(&slot.beacon)),
        ("slot", element(&slot.slot)),
    ]
}

fn record_fields(record: &Record) -> Vec<Field> {
    let rest = [
        ("context", element(&record.context)),
        ("cq", element(&record.cq)),
        ("htopk", element(&record.htopk)),
    ];
    [slot_fields(&record.slot), rest].concat()
}

fn answer_fields(case: &KnownAnswer) -> Vec<Field> {
    let answer = &case.answer;
    let of_answer = [
        ("query", small(&answer.query)),
        ("query_salt", element(&answer.query_salt)),
        ("positions", small(&answer.positions)),
        ("list_salt", element(&answer.list_salt)),
    ];
    [&record_fields(&case.record)[..], &of_answer].concat()
}

/// The noise proof, if there is noise, and the query proof.
fn answer_proofs(case: &KnownAnswer, of: impl Fn(&[u8], &[Field; 2]) -> String) -> Vec<Field> {
    let proven = case
        .has_noise()
        .then(|| fixed(|| case.prove_noise().unwrap()));
    let noise_proof = proven.as_ref().map(|(noise_proof, _)| noise_proof);
    let (proof, of_proof) = fixed(|| case.prove(noise_proof));
    let parts = [noise_proof.map_or(&[][..], |c| &c.proof), &proof];
    let item = Item::single(case.record, parts);
    answer::verify(&case.index, &case.parameters, item).unwrap();
    let mut fields = Vec::new();
    if let Some((noise_proof, states)) = &proven {
        fields.push(("certificate", of(&noise_proof.proof, states)));
    }
    fields.push(("query_proof", of(&proof, &of_proof)));
    fields
}

fn embeddings() -> String {
    let case = embed::tests::known_answer();
    let statement = case.statement();
    let (proof, states) =
        fixed(|| embed::prove_as::<MaliciousProver>(&statement, &case.rows, &case.query).unwrap());
    embed::verify_embed(&statement, &proof).unwrap();
    let fields = [
        ("tokens", statement.tokens.to_string()),
        ("vocabulary", (case.table.layout.capacity - 1).to_string()),
        ("dimension", case.table.dimension.to_string()),
        ("norm_factor", statement.norm_factor.to_string()),
        ("rows", small(&case.rows)),
        ("table", base64_text(&case.table.encode())),
        ("table_digest", hex_text(&case.table.digest())),
        ("context", element(&statement.context)),
        ("hq", element(&statement.hq)),
        ("cq", element(&statement.cq)),
        ("query", small(&case.query.tokens)),
        ("query_salt", element(&case.query.query_salt)),
        ("vector_salt", element(&case.query.vector_salt)),
        ("proof", base64_text(&proof)),
    ];
    object(&[&fields[..], &states].concat(), " ")
}

fn coalitions() -> String {
    let case = coalition::tests::known_answer();
    let (s, w) = (&case.statement, &case.secret);
    let ((records, blindings), of_records) = fixed(|| case.records());
    let (pairs, of_pairs) = fixed(|| case.pairs(&records, &blindings));
    coalition::verify_coalition(s, &records, &[&pairs]).unwrap();
    let places = |all: &[usize]| list(all, |x| x.to_string());
    let pair = |all: &[u64; 2]| list(all, |x| x.to_string());
    let of = |proof: &[u8], states: &[(&str, String)]| {
        object(&[&[("proof", base64_text(proof))], states].concat(), "  ")
    };
    object(
        &[
            ("context", hex_text(&s.context)),
            ("dimension", s.dimension.to_string()),
            ("cq", list(&s.cq, element)),
            ("accounts", places(&s.accounts)),
            ("tenants", places(&s.tenants)),
            ("first", places(&s.first)),
            ("theta", pair(&s.theta)),
            ("largest", pair(&s.largest)),
            ("room", s.class_variables.to_string()),
            ("vectors", small(&w.vectors)),
            ("salts", list(&w.salts, element)),
            ("labels", places(&w.labels)),
            ("records", of(&records, &of_records)),
            ("pairs", of(&pairs, &of_pairs)),
        ],
        " ",
    )
}

fn sampling_proof(low_memory: bool) -> String {
    let (seed, s) = bernoulli::tests::known_answer();
    let (noise_proof, states) = fixed(|| {
        drawn::prove_as::<MaliciousProver, _>(&s, std::slice::from_ref(&seed), low_memory).unwrap()
    });
    drawn::verify(&s, &noise_proof.proof).unwrap();
    let column = noise_proof.columns[0].opening.as_ref().unwrap();
    let of_policy = [
        ("capacity", s.capacity.to_string()),
        ("bound", s.distribution.bound.to_string()),
        ("context", hex_text(&s.context)),
        ("seed", list(&seed.0, element)),
    ];
    let of_proof = [
        ("coins", small(&column.values)),
        ("proof", base64_text(&noise_proof.proof)),
    ];
    let slot = slot_fields(&s.slots[0]);
    object(&[&of_policy[..], &slot, &of_proof, &states].concat(), " ")
}

/// A tenant with noise and one without: three records each, with digests of the proofs.
fn batch_answers(low_memory: bool) -> String {
    list([batches::small(), batches::exact()], |case| {
        let (parts, [_, last_state]) = fixed(|| case.prove(low_memory).unwrap());
        answer::verify(&case.index, &case.parameters, case.item(&parts)).unwrap();
        let p = &case.parameters;
        let records = list(case.records.iter().zip(&case.answers), |(r, a)| {
            let of_answer = [
                ("query", small(&a.query)),
                ("positions", small(&a.positions)),
            ];
            object(&[&record_fields(r)[..], &of_answer].concat(), "   ")
        });
        let fields = [
            ("dimension", case.index.dimension.to_string()),
            ("capacity", case.index.layout.capacity.to_string()),
            ("window", hex_text(&p.window)),
            ("gains", small(&p.gains)),
            ("listed", p.listed.to_string()),
            ("index_digest", hex_text(&case.index.digest())),
            ("records", records),
            ("certificate_bytes", parts[0].len().to_string()),
            ("certificate_sha256", digest_text(&parts[0])),
            ("proof_bytes", parts[1].len().to_string()),
            ("proof_sha256", digest_text(&parts[1])),
            last_state,
        ];
        object(&fields, "  ")
    })
}

/// A change of a message's content or weight changes these files; a change of the computation alone does not. The nonces are
/// those of `session::Nonces` with 64 bytes of 7 as the randomness of the operating system.
#[test]
fn proofs_are_the_published_ones() {
    // In low memory no other proof.
    let of = |result: fn(bool) -> String| {
        let [stored, anew] = [false, true].map(result);
        assert!(stored == anew, "in low memory another proof");
        stored
    };
    published(
        "proofs",
        &[
            ("answer", of(answers)),
            ("embed", embeddings()),
            ("coalition", coalitions()),
            ("coins", of(sampling_proof)),
            ("sampled", of(sampled_answers)),
            ("together", of(batch_answers)),
        ],
    );
}

/// The same in a process that does without the processor's wide multiplication.
#[test]
#[ignore = "all published proofs again, on portable lanes (half a minute): make test-full"]
fn proofs_are_the_published_ones_on_portable_lanes() {
    const NAME: &str = "RAG_AUDIT_PORTABLE";
    if std::env::var_os(NAME).is_some() {
        return; // all of this process is
    }
    let done = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "test_vectors::proofs_are_the_published_ones"])
        .env(NAME, "1")
        .env_remove("RAG_AUDIT_WRITE_VECTORS")
        .output()
        .unwrap();
    let log = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success() && log.contains("1 passed"), "{log}");
}
