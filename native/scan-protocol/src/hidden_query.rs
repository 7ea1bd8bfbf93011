//! The hidden query of a run: its commitment, the list with the hash cq, and the range of its components.
//! `docs/scan/query.md`.
use ark_ff::{AdditiveGroup, Field};
use ragaudit_relation::NIBBLES_PER_ELEMENT;

use crate::channel::Channel;
use crate::error::Result;
use crate::expr::{Expr, Var};
use crate::group::{Fr, G1Affine};
use crate::index::COMPONENT;
use crate::lookup::{Count, Entry, Segment};
use crate::nibbles::{nibble_rows, NIBBLE_VARIABLES, TAG_NIBBLE};
use crate::numbers::{from_small, log2_ceil, power_of_two};
use crate::session::{ColumnId, Session};

/// |s| is at most 49 for each component.
pub const SCORE: i64 = COMPONENT as i64 * COMPONENT as i64;

/// The prover's query: int4 components, and the salt of cq.
#[derive(Clone, Copy)]
pub struct HiddenQuery<'a> {
    pub components: &'a [i8],
    pub salt: Fr,
}

/// Sends C_q, which must precede every challenge. Returns C_q and the prover's blinding.
pub fn send_query<C: Channel>(
    session: &mut Session<C>,
    hidden_query: Option<HiddenQuery>,
) -> Result<(G1Affine, Fr)> {
    let mut blinding = Fr::ZERO;
    let point = session.commitment("query", |secrets| {
        let hidden_query = hidden_query.expect("the prover's side");
        let (point, drawn) = secrets.query(hidden_query.components, &hidden_query.salt);
        blinding = drawn;
        point
    })?;
    Ok((point, blinding))
}

/// The elements of cq's list as functionals of (q, salt): the salt, then packed components. Each functional has a constant,
/// which is added to its value.
fn functionals(dimension: usize) -> Vec<(Vec<Fr>, Fr)> {
    let mut salt = vec![Fr::ZERO; dimension + 1];
    salt[dimension] = Fr::ONE;
    let mut out = vec![(salt, Fr::ZERO)];
    let places = places();
    let offset = places.iter().sum::<Fr>() * Fr::from(8u8);
    for start in (0..dimension).step_by(NIBBLES_PER_ELEMENT) {
        let mut weights = vec![Fr::ZERO; dimension + 1];
        let run = weights[start..dimension].iter_mut().zip(&places);
        run.for_each(|(w, p)| *w = *p);
        out.push((weights, offset));
    }
    out
}

/// The values of these functionals.
fn elements(dimension: usize, hidden_query: HiddenQuery) -> Vec<Fr> {
    let (places, mut out) = (places(), vec![hidden_query.salt]);
    for run in hidden_query.components[..dimension].chunks(NIBBLES_PER_ELEMENT) {
        let terms = run.iter().zip(&places);
        out.push(terms.map(|(q, p)| from_small(i64::from(*q)) * p).sum());
    }
    out
}

fn places() -> Vec<Fr> {
    let places = (0..NIBBLES_PER_ELEMENT).map(|i| power_of_two(4 * i));
    places.collect()
}

/// Functionals of (q, salt), each with its hidden value for every record.
pub type Functionals = Vec<(Vec<Fr>, Vec<Var>)>;

/// The list with the hash cq, for each record. The link must show that its salt and packed elements are functionals of the
/// committed (q, salt).
pub fn vector_lists<C: Channel>(
    session: &mut Session<C>,
    dimension: usize,
    count: usize,
    hidden_query: Option<&[HiddenQuery]>,
) -> Result<(Functionals, Vec<Vec<Expr>>)> {
    let functionals = functionals(dimension);
    let each = functionals.len();
    let values: Option<Vec<Fr>> = hidden_query.map(|hidden_query| {
        hidden_query
            .iter()
            .flat_map(|a| elements(dimension, *a))
            .collect()
    });
    let vars = session.send("packed queries", count * each, values.as_deref())?;
    let offsets: Vec<Fr> = functionals.iter().map(|(_, offset)| *offset).collect();
    let list = |run: &[Var]| -> Vec<Expr> {
        let pairs = run.iter().zip(&offsets);
        pairs.map(|(v, o)| Expr::from(*v) + (*o).into()).collect()
    };
    let lists = vars.chunks(each).map(list).collect();
    let of_records = |k: usize| vars.iter().skip(k).step_by(each).copied().collect();
    let numbered = (0..).zip(functionals);
    let claims = numbered.map(|(k, (weights, _))| (weights, of_records(k)));
    Ok((claims.collect(), lists))
}

/// Looks up every component of a query in -7..7.
pub fn component_segment(dimension: usize, hidden_query: Option<HiddenQuery>) -> Segment {
    let values = hidden_query.map(|hidden_query| {
        hidden_query
            .components
            .iter()
            .map(|v| i64::from(*v))
            .collect()
    });
    Segment {
        variables: log2_ceil(dimension),
        tag: TAG_NIBBLE,
        entries: vec![Entry::Query { dimension, values }],
        count: Count::Once,
    }
}

/// -7..7; `multiplicity` counts its rows.
pub fn nibble_table(multiplicity: ColumnId) -> Segment {
    Segment {
        variables: NIBBLE_VARIABLES,
        tag: TAG_NIBBLE,
        entries: vec![Entry::Public(nibble_rows())],
        count: Count::Table(multiplicity),
    }
}

/// Variables of the table of scores.
pub fn score_variables(dimension: usize) -> usize {
    log2_ceil(2 * SCORE as usize * dimension + 1)
}

/// The first column of the table of scores: every score that the components allow, then the largest one, repeated.
///
/// ```
/// use ragaudit_scan_protocol::hidden_query::{score_rows, score_variables};
///
/// // One component: products of -7..7, and the largest once more up to a power of two.
/// let rows = score_rows(1);
/// assert_eq!((rows[0], rows[98], rows.len()), (-49, 49, 1 << score_variables(1)));
/// ```
pub fn score_rows(dimension: usize) -> Vec<i64> {
    let maximum = SCORE * dimension as i64;
    (0..1i64 << score_variables(dimension))
        .map(|row| (row - maximum).min(maximum))
        .collect()
}
