//! The verifiers of both proof systems, as the Python module's bindings call them (`native/python`).
use std::hint::black_box;
use std::iter::successors;
use std::sync::Arc;

use ark_bn254::Fr;
use ark_ff::Field;
use ragaudit_field_simd::field::{elements, exactly};
use ragaudit_groth16::verify::VerifyingKey;
use ragaudit_scan_protocol::answer::{self, Item, Parameters, Record, Slot};
use ragaudit_scan_protocol::batch::{Failures, CHUNK};
use ragaudit_scan_protocol::batch_size;
use ragaudit_scan_protocol::bernoulli::{Bernoulli, BernoulliStatement};
use ragaudit_scan_protocol::coalition::{verify_coalition, Blocks, CoalitionStatement};
use ragaudit_scan_protocol::document_table::{self, DocumentTableStatement, Previous, Table};
use ragaudit_scan_protocol::drawn;
use ragaudit_scan_protocol::embed::{self, verify_embed, EmbedStatement, OfTable};
use ragaudit_scan_protocol::encoder_embed::{verify_encoder_embed, Pins};
use ragaudit_scan_protocol::engine::Engine;
use ragaudit_scan_protocol::group::{decode_points, encode_points, vector_generators, G1Affine};
use ragaudit_scan_protocol::index::{IndexCommitment, Layout};
use ragaudit_scan_protocol::pooled_listing::nothing_listed;
use ragaudit_scan_protocol::pooled_listing_records;
use ragaudit_scan_protocol::transcript::Hash;
use ragaudit_scan_protocol::{prepared, protocol, verifier};

use crate::engine::Web;
use crate::objects::{find, forget, keep, shelf, Shelf};
use crate::wire::{Arguments, Outcome, Results};

/// Points that are summed and points that are decoded ahead of the first proof.
const SUMMED: usize = 2048;
const DECODED: usize = 256;

type Verifier<'p> = verifier::Verifier<'p, Hash, Web>;
type Embedded = (Arc<IndexCommitment>, (usize, u64));

enum Batch {
    Answers(answer::Batch<Hash, Web>),
    Pooled(pooled_listing_records::Batch<Hash, Web>),
    Embeddings(Embedded, embed::Batch<Hash, Web>),
}

thread_local! {
    static INDICES: Shelf<Arc<IndexCommitment>> = shelf();
    static PARAMETERS: Shelf<Parameters> = shelf();
    static POOLED_LISTINGS: Shelf<pooled_listing_records::Constants> = shelf();
    static COALITIONS: Shelf<CoalitionStatement> = shelf();
    static ENCODERS: Shelf<Pins> = shelf();
    static BATCHES: Shelf<Batch> = shelf();
}

/// Runs the function with a name; None if this module has no such function.
pub fn run(name: &str, a: &mut Arguments, out: &mut Results) -> Option<Outcome<()>> {
    Some(match name {
        "index" => index(a, out),
        "index_encode" => of_index(a).map(|index| out.bytes(&index.encode())),
        "index_digest" => of_index(a).map(|index| out.bytes(&index.digest())),
        "index_drop" => INDICES.with(|shelf| forget(shelf, a)),
        "parameters" => parameters(a, out),
        "parameters_drop" => PARAMETERS.with(|shelf| forget(shelf, a)),
        "pooled_listing" => pooled_listing(a, out),
        "pooled_listing_drop" => POOLED_LISTINGS.with(|shelf| forget(shelf, a)),
        "coalition" => coalition(a, out),
        "coalition_runs" => coalition_runs(a, out),
        "coalition_verify" => coalition_verify(a),
        "coalition_drop" => COALITIONS.with(|shelf| forget(shelf, a)),
        "encoder" => encoder(a, out),
        "encoder_digest" => encoder_digest(a, out),
        "encoder_verify" => encoder_verify(a),
        "encoder_drop" => ENCODERS.with(|shelf| forget(shelf, a)),
        "answers" => answers(a, out),
        "max_batch" => max_batch(a, out),
        "pooled" => pooled(a, out),
        "embeddings" => embeddings(a, out),
        "batch_add" => batch(a, out, Step::Add),
        "batch_search" => batch(a, out, Step::Search),
        "batch_holds" => batch(a, out, Step::Holds),
        "batch_retained" => batch(a, out, Step::Retained),
        "batch_drop" => BATCHES.with(|shelf| forget(shelf, a)),
        "chunk" => {
            out.integer(CHUNK as i64);
            Ok(())
        }
        "scan_verify" => scan_verify(a),
        "scan_bits_verify" => bits_verify(a, out),
        "scan_documents_verify" => documents_verify(a, out),
        "scan_embed_verify" => embed_verify(a),
        "scan_listed_empty" => listed_empty(a, out),
        "scan_protocol" => {
            out.bytes(&protocol::name());
            Ok(())
        }
        "scan_encoder_protocol" => {
            out.bytes(&protocol::encoder_name());
            Ok(())
        }
        "scan_pooled_protocol" => {
            out.bytes(&protocol::pooled_name());
            Ok(())
        }
        "scan_limits" => {
            out.list(&protocol::limits(), |out, (name, limit)| {
                out.bytes(name.as_bytes());
                out.integer(*limit as i64);
            });
            Ok(())
        }
        "generators" => generators(a),
        "groth16_verify_batch" => groth16_verify_batch(a, out),
        _ => return None,
    })
}

fn text(reason: impl ToString) -> String {
    reason.to_string()
}

/// Uses prepared generators instead of hashing them.
fn generators(a: &mut Arguments) -> Outcome<()> {
    prepared::take(a.bytes()?).map_err(text)?;
    exercise();
    Ok(())
}

/// Sums and decodes points without a use for the results. A browser recompiles code that runs for a long time, on another
/// thread. This function triggers the recompilation while the reader chooses files, before the first proof.
fn exercise() {
    let points = &vector_generators::<Web>(SUMMED)[..SUMMED];
    let first = Web::hash(&[Fr::ONE]);
    let scalars: Vec<Fr> = successors(Some(first), |x| Some(x.square() + first))
        .take(SUMMED)
        .collect();
    let _ = black_box(Web::msm(points, &scalars));
    let bytes = encode_points(&points[..DECODED]);
    black_box(decode_points::<Web>(&bytes)).expect("generators");
}

fn points(bytes: &[u8]) -> Outcome<Vec<G1Affine>> {
    decode_points::<Web>(bytes).map_err(text)
}

fn index(a: &mut Arguments, out: &mut Results) -> Outcome<()> {
    let (points, dimension, capacity) = (a.bytes()?, a.number()?, a.number()?);
    let result = IndexCommitment::decode::<Web>(points, dimension, capacity).map_err(text)?;
    INDICES.with(|shelf| keep(shelf, Arc::new(result), out));
    Ok(())
}

fn of_index(a: &mut Arguments) -> Outcome<Arc<IndexCommitment>> {
    INDICES.with(|shelf| Ok(Arc::clone(&find(shelf, a)?.borrow())))
}

fn of_parameters(a: &mut Arguments) -> Outcome<Parameters> {
    PARAMETERS.with(|shelf| Ok(find(shelf, a)?.borrow().clone()))
}

fn of_pooled_listing(a: &mut Arguments) -> Outcome<pooled_listing_records::Constants> {
    POOLED_LISTINGS.with(|shelf| Ok(find(shelf, a)?.borrow().clone()))
}

fn parameters(a: &mut Arguments, out: &mut Results) -> Outcome<()> {
    let result = Parameters {
        window: a.array("window")?,
        gains: a.list(Arguments::number)?,
        listed: a.number()?,
        lo: a.integer()?,
        hi: a.integer()?,
        lattice: a.integer()?,
        sample: a.optional(Arguments::bytes)?.map(points).transpose()?,
    };
    PARAMETERS.with(|shelf| keep(shelf, result, out));
    Ok(())
}

fn pooled_listing(a: &mut Arguments, out: &mut Results) -> Outcome<()> {
    let (window, row, kept) = (a.array("window")?, points(a.bytes()?)?, points(a.bytes()?)?);
    let result = pooled_listing_records::Constants {
        window,
        row,
        kept,
        rows: a.number()?,
        positions_per_row: a.number()?,
        chance: Bernoulli { bound: a.number()? },
        threshold: a.integer()?,
        listed: a.number()?,
        lo: a.integer()?,
        hi: a.integer()?,
        lattice: a.integer()?,
    };
    POOLED_LISTINGS.with(|shelf| keep(shelf, result, out));
    Ok(())
}

fn slot(bytes: &[u8]) -> Outcome<Slot> {
    exactly(bytes, "slot").map(Slot::from).map_err(text)
}

fn record(bytes: &[u8]) -> Outcome<Record> {
    exactly(bytes, "record").map(Record::from).map_err(text)
}

fn embed_statement<'a>(
    (table, of_policy): &'a Embedded,
    bytes: &[u8],
) -> Outcome<EmbedStatement<'a>> {
    let (tokens, norm_factor) = *of_policy;
    let [context, hq, cq] = exactly(bytes, "statement").map_err(text)?;
    Ok(EmbedStatement {
        context,
        table,
        tokens,
        norm_factor,
        hq,
        cq,
    })
}

fn scan_verify(a: &mut Arguments) -> Outcome<()> {
    let (index, parameters) = (of_index(a)?, of_parameters(a)?);
    answer::verify::<Web>(&index, &parameters, answered(a)?).map_err(text)
}

/// Records with their noise proof and query proof.
fn answered<'a>(a: &mut Arguments<'a>) -> Outcome<Item<'a>> {
    Ok(Item {
        records: a.list(|a| record(a.bytes()?))?,
        parts: [a.bytes()?, a.bytes()?],
    })
}

fn bits_verify(a: &mut Arguments, out: &mut Results) -> Outcome<()> {
    let capacity = a.number()?;
    let context = a.array("context")?;
    let slot = slot(a.bytes()?)?;
    let bernoulli = Bernoulli { bound: a.number()? };
    let statement = BernoulliStatement::single(context, slot, capacity, bernoulli);
    let columns = drawn::verify::<Verifier, _>(&statement, a.bytes()?).map_err(text)?;
    out.bytes(&encode_points(&columns[0].rows));
    Ok(())
}

fn documents_verify(a: &mut Arguments, out: &mut Results) -> Outcome<()> {
    let context = a.array("context")?;
    let slot = slot(a.bytes()?)?;
    let (capacity, rows, positions_per_row, fresh, bound) = (
        a.number()?,
        a.number()?,
        a.number()?,
        a.number()?,
        a.number()?,
    );
    let table = Table::split(&points(a.bytes()?)?, capacity, rows).map_err(text)?;
    let previous = a.optional(|a| points(a.bytes()?))?;
    let listed = a.number::<u64>()? == 1;
    let split = |points: Vec<_>| Previous::split(&points, capacity, rows, listed).map_err(text);
    let previous = previous.map(split).transpose()?;
    let statement = DocumentTableStatement {
        context,
        slot,
        coins: Bernoulli { bound },
        capacity,
        rows,
        positions_per_row,
        fresh,
        table,
        previous,
    };
    let proven = document_table::verify::<Verifier>(&statement, a.bytes()?).map_err(text)?;
    let columns = [proven.sample, proven.kept, proven.count];
    let columns: Vec<_> = columns.into_iter().chain(proven.listed).collect();
    out.list(&columns, |out, column| {
        out.bytes(&encode_points(&column.rows));
    });
    Ok(())
}

/// A record of a tenant with pooled listing with its commitments and its proof.
fn pooled_record<'a>(a: &mut Arguments<'a>) -> Outcome<pooled_listing_records::Item<'a>> {
    let of = record(a.bytes()?)?;
    let rows = pooled_listing_records::Rows {
        before: a.bytes()?,
        after: a.bytes()?,
    };
    Ok((of, rows, a.bytes()?))
}

fn embed_verify(a: &mut Arguments) -> Outcome<()> {
    let of: Embedded = (of_index(a)?, (a.number()?, a.number()?));
    let statement = embed_statement(&of, a.bytes()?)?;
    verify_embed::<Verifier>(&statement, a.bytes()?).map_err(text)
}

fn listed_empty(a: &mut Arguments, out: &mut Results) -> Outcome<()> {
    let layout = Layout::new(a.number()?).map_err(text)?;
    out.bytes(&encode_points(
        &nothing_listed::<Web>(layout, a.number()?).rows,
    ));
    Ok(())
}

fn coalition(a: &mut Arguments, out: &mut Results) -> Outcome<()> {
    let statement = CoalitionStatement {
        context: a.array("context")?,
        dimension: a.number()?,
        cq: elements(a.bytes()?, "cq").map_err(text)?,
        accounts: a.list(Arguments::number)?,
        tenants: a.list(Arguments::number)?,
        first: a.list(Arguments::number)?,
        theta: [a.number()?, a.number()?],
        largest: [a.number()?, a.number()?],
        class_variables: a.number()?,
        blocks: Blocks::default(),
    };
    statement.runs().map_err(text)?;
    COALITIONS.with(|shelf| keep(shelf, statement, out));
    Ok(())
}

fn coalition_runs(a: &mut Arguments, out: &mut Results) -> Outcome<()> {
    let statement = COALITIONS.with(|shelf| find(shelf, a))?;
    out.integer(statement.borrow().runs().map_err(text)? as i64);
    Ok(())
}

fn coalition_verify(a: &mut Arguments) -> Outcome<()> {
    let statement = COALITIONS.with(|shelf| find(shelf, a))?;
    let (records, pairs) = (a.bytes()?, a.list(Arguments::bytes)?);
    let statement = statement.borrow();
    verify_coalition::<Web>(&statement, records, &pairs).map_err(text)
}

/// The pins of an integer encoder.
fn encoder(a: &mut Arguments, out: &mut Results) -> Outcome<()> {
    let pins = Pins::decode::<Web>(a.bytes()?).map_err(text)?;
    ENCODERS.with(|shelf| keep(shelf, pins, out));
    Ok(())
}

fn encoder_digest(a: &mut Arguments, out: &mut Results) -> Outcome<()> {
    let pins = ENCODERS.with(|shelf| find(shelf, a))?;
    out.bytes(&pins.borrow().digest());
    Ok(())
}

fn encoder_verify(a: &mut Arguments) -> Outcome<()> {
    let pins = ENCODERS.with(|shelf| find(shelf, a))?;
    let of_policy = (a.number()?, a.number()?);
    let public = exactly(a.bytes()?, "statement").map_err(text)?;
    let pins = pins.borrow();
    verify_encoder_embed::<Verifier>(&pins.statement(public, of_policy), a.bytes()?).map_err(text)
}

fn answers(a: &mut Arguments, out: &mut Results) -> Outcome<()> {
    let result = answer::Batch::new(of_index(a)?, of_parameters(a)?);
    BATCHES.with(|shelf| keep(shelf, Batch::Answers(result), out));
    Ok(())
}

fn max_batch(a: &mut Arguments, out: &mut Results) -> Outcome<()> {
    out.integer(batch_size::max_batch(a.number()?, a.number()?) as i64);
    Ok(())
}

fn pooled(a: &mut Arguments, out: &mut Results) -> Outcome<()> {
    let index = of_index(a)?;
    let constants = of_pooled_listing(a)?;
    let result = pooled_listing_records::Batch::new(index, constants);
    BATCHES.with(|shelf| keep(shelf, Batch::Pooled(result), out));
    Ok(())
}

fn embeddings(a: &mut Arguments, out: &mut Results) -> Outcome<()> {
    let of: Embedded = (of_index(a)?, (a.number()?, a.number()?));
    let result = embed::Batch::new(Arc::clone(&of.0), OfTable);
    BATCHES.with(|shelf| keep(shelf, Batch::Embeddings(of, result), out));
    Ok(())
}

#[derive(Clone, Copy)]
enum Step {
    Add,
    Search,
    Holds,
    Retained,
}

/// One step of any kind of batch.
macro_rules! step {
    ($batch:expr, $step:expr, $out:expr, $items:expr) => {
        match $step {
            Step::Add => refused($out, &$batch.add(&$items?)),
            Step::Search => refused($out, &$batch.search(&$items?)),
            Step::Holds => $out.integer(i64::from($batch.holds())),
            Step::Retained => $out.integer($batch.retained() as i64),
        }
    };
}

fn batch(a: &mut Arguments, out: &mut Results, step: Step) -> Outcome<()> {
    let batch = BATCHES.with(|shelf| find(shelf, a))?;
    match &mut *batch.borrow_mut() {
        Batch::Answers(batch) => step!(batch, step, out, a.list(answered)),
        Batch::Pooled(batch) => step!(batch, step, out, a.list(pooled_record)),
        Batch::Embeddings(of, batch) => step!(
            batch,
            step,
            out,
            a.list(|a| { Ok((embed_statement(of, a.bytes()?)?, a.bytes()?)) })
        ),
    }
    Ok(())
}

fn refused(out: &mut Results, bad: &Failures) {
    out.list(bad, |out, (i, reason)| {
        out.integer(*i as i64);
        out.bytes(reason.to_string().as_bytes());
    });
}

/// Verifies each proof by its own equation, because the module draws no weights. The results equal those of a batch.
fn groth16_verify_batch(a: &mut Arguments, out: &mut Results) -> Outcome<()> {
    let key = VerifyingKey::cached(a.text()?).map_err(text)?;
    let (proofs, inputs) = (a.list(Arguments::bytes)?, a.list(Arguments::bytes)?);
    let refused = key.failures(&proofs, &inputs).map_err(text)?;
    out.list(&refused, |out, (i, reason)| {
        out.integer(*i as i64);
        out.list(reason.as_slice(), |out, reason| {
            out.bytes(reason.to_string().as_bytes())
        });
    });
    Ok(())
}
