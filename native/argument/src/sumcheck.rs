//! Sumcheck with hidden round polynomials: `docs/scan/sumcheck.md`.
use ark_ff::Field;

use crate::channel::Channel;
use crate::error::Result;
use crate::expr::Expr;
pub use crate::gates::Gate;
use crate::group::Fr;
use crate::numbers::half;
use crate::prover::{Round, Sums, Weighting};
use crate::session::Session;

/// What a sumcheck leaves to be shown: gate(tables at point) = claim.
pub struct Reduced {
    pub point: Vec<Fr>,
    pub claim: Expr,
    /// The tables at the point, for the prover.
    pub finals: Option<Vec<Fr>>,
}

/// Reduces sum over x of eq(tau, x) gate(tables(x)) = claim to one point, whatever holds the tables.
///
/// The factor of eq in the round's variable is left out of what is sent: q with (1 - t) q(0) + t q(1) = claim, of the
/// given degree, whose constant coefficient follows from the others, so that claim' = claim + sum of c_k (r^k - t).
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
        let coefficients = sums.as_mut().zip(session.known()).map(|(sums, known)| {
            let (claim, t) = (&claim, *t);
            sums.coefficients(&Round { known, claim, t })
        });
        let vars = session.send(label, degree, coefficients.as_deref())?;
        let r = session.challenge(label);
        let mut power = Fr::ONE;
        for var in vars {
            power *= r;
            claim.add_term(var, power - t);
        }
        point.push(r);
        if let Some(sums) = &mut sums {
            sums.bind(r);
        }
    }
    Ok(Reduced {
        point,
        claim,
        finals: sums.map(|sums| sums.finals()),
    })
}

/// The same for a gate of the given degree over tables.
///
/// A table may end early: what is missing is 0, and so is the gate where all tables have ended.
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

/// A plain sum over the cube of the sum of tables multiplied, which may end early: what is missing is 0. The tables'
/// values are those at the end.
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
