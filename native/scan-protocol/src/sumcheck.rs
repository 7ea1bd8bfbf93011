//! Sumcheck with hidden round polynomials: `docs/scan/sumcheck.md`.
use ark_ff::Field;

use crate::channel::Channel;
use crate::digits::{all_variables, extended, lagrange, moments, of_coordinate, variables, Digit};
use crate::error::Result;
use crate::expr::Expr;
pub use crate::gates::Gate;
use crate::group::Fr;
use crate::numbers::half;
use crate::prover::{Round, Sums, Weighting};
use crate::session::Session;

/// The claim that a sumcheck leaves: gate(tables at point) = claim.
pub struct Reduced {
    pub point: Vec<Fr>,
    pub claim: Expr,
    /// The tables at the point, for the prover.
    pub finals: Option<Vec<Fr>>,
}

/// Reduces sum over x of eq(tau, x) gate(tables(x)) = claim to one point, for any representation of the tables.
///
/// The messages omit the factor of eq in the round's variable: q with (1 - t) q(0) + t q(1) = claim, of the given degree. The
/// constant coefficient follows from the others, so claim' = claim + sum of c_k (r^k - t).
pub fn reduce<C: Channel>(
    session: &mut Session<C>,
    label: &str,
    tau: &[Fr],
    mut claim: Expr,
    degree: usize,
    mut sums: Option<Box<dyn Sums + '_>>,
) -> Result<Reduced> {
    let mut point = Vec::with_capacity(tau.len());
    for t in tau {
        let digit = of_coordinate(*t);
        point.push(round(
            session, label, &digit, &mut claim, degree, &mut sums,
        )?);
    }
    Ok(Reduced {
        point,
        claim,
        finals: sums.map(|sums| sums.finals()),
    })
}

/// The claim that a sumcheck over digits leaves: weight gate(tables at the new digits) = claim.
pub struct ReducedDigits {
    pub digits: Vec<Digit>,
    /// The challenges, one for each digit.
    pub point: Vec<Fr>,
    pub weight: Fr,
    pub claim: Expr,
    /// The tables at the digits, for the prover.
    pub finals: Option<Vec<Fr>>,
}

/// Reduces sum over x of (weight of x under the digits) gate(tables(x)) = claim to one list of digits, one digit per round.
///
/// The digits in `weighed`, above the others, become coordinates: their weights are a factor of the gate, whose degree
/// increases by one, and the extension of that factor is the remaining weight.
pub fn reduce_digits<C: Channel>(
    session: &mut Session<C>,
    label: &str,
    [digits, weighed]: [&[Digit]; 2],
    mut claim: Expr,
    degree: usize,
    mut sums: Option<Box<dyn Sums + '_>>,
) -> Result<ReducedDigits> {
    let (mut new, mut point) = (Vec::new(), Vec::new());
    for digit in digits {
        let s = round(session, label, digit, &mut claim, degree, &mut sums)?;
        new.push(lagrange(variables(digit), s));
        point.push(s);
    }
    let (halves, mut claim) = plain(all_variables(weighed), claim);
    for half in &halves {
        let half = of_coordinate(*half);
        let s = round(session, label, &half, &mut claim, degree + 1, &mut sums)?;
        new.push(of_coordinate(s));
        point.push(s);
    }
    Ok(ReducedDigits {
        weight: extended(weighed, &point[digits.len()..]),
        digits: new,
        point,
        claim,
        finals: sums.map(|sums| sums.finals()),
    })
}

/// One round: q with sum over the digit's values k of weight_k q(k) = claim, with tables of degree 2^v - 1 in the digit. The
/// messages omit the constant coefficient, so claim' = claim + sum of c_j (s^j - sum of weight_k k^j).
fn round<C: Channel>(
    session: &mut Session<C>,
    label: &str,
    digit: &Digit,
    claim: &mut Expr,
    degree: usize,
    sums: &mut Option<Box<dyn Sums + '_>>,
) -> Result<Fr> {
    let count = degree * (digit.len() - 1);
    let coefficients = sums.as_mut().zip(session.known()).map(|(sums, known)| {
        let claim = &*claim;
        sums.coefficients(&Round {
            known,
            claim,
            digit,
        })
    });
    let vars = session.send(label, count, coefficients.as_deref())?;
    let s = session.challenge(label);
    let mut power = Fr::ONE;
    for (var, moment) in vars.into_iter().zip(moments(digit)) {
        power *= s;
        claim.add_term(var, power - moment);
    }
    if let Some(sums) = sums {
        sums.bind(s);
    }
    Ok(s)
}

/// The same for a gate of the given degree over tables.
///
/// A table may end early: missing entries are 0, and the gate is 0 after the end of all tables.
pub fn sumcheck<C: Channel>(
    session: &mut Session<C>,
    label: &str,
    tau: &[Fr],
    claim: Expr,
    degree: usize,
    tables: Option<Vec<Vec<Fr>>>,
    gate: Gate,
) -> Result<Reduced> {
    let known = session.known().zip(tables);
    let sums = known.map(|(known, tables)| known.secrets.of_gate(gate, degree, tau, tables));
    reduce(session, label, tau, claim, degree, sums)
}

/// tau and claim of a plain sum over the cube: every factor of eq is then 1/2.
pub fn plain(variables: usize, claim: Expr) -> (Vec<Fr>, Expr) {
    let half = half();
    (vec![half; variables], claim * half.pow([variables as u64]))
}

/// A plain sum over the cube of the sum of products of tables, which may end early: missing entries are 0. The tables' values
/// are the values at the end.
pub fn products<C: Channel>(
    session: &mut Session<C>,
    label: &str,
    variables: usize,
    claim: Expr,
    tables: Option<Vec<(Weighting, Vec<Fr>)>>,
) -> Result<Reduced> {
    let (tau, claim) = plain(variables, claim);
    let known = session.known().zip(tables);
    let sums = known.map(|(known, tables)| known.secrets.of_products(variables, tables));
    reduce(session, label, &tau, claim, 2, sums)
}
