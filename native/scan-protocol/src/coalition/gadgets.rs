//! Common steps of both kinds of run: products, and numbers by their bits.
use ark_ff::{AdditiveGroup, Field};

use crate::channel::Channel;
use crate::error::Result;
use crate::expr::{Expr, Var};
use crate::gates::Numbers;
use crate::group::Fr;
use crate::mle::{eq_table, evaluate, Weight};
use crate::session::{ColumnId, Session};
use crate::sumcheck::{plain, sumcheck, Gate};

/// Reduces the sum over the cube of the product of two tables to a point. Sends the tables' values there.
pub fn sum_of_products<C: Channel>(
    session: &mut Session<C>,
    label: &'static str,
    variables: usize,
    sum: Expr,
    tables: Option<Vec<Vec<Fr>>>,
) -> Result<(Vec<Fr>, [Var; 2])> {
    let (tau, claim) = plain(variables, sum);
    let reduced = sumcheck(session, label, &tau, claim, 2, tables, Gate::Product)?;
    let values = reduced.finals.map(|f| [f[0], f[1], f[0] * f[1]]);
    let v = session.send(label, 3, values.as_ref().map(|v| &v[..]))?;
    session.constrain_product(label, v[0].into(), v[1].into(), v[2].into());
    session.constrain(label, reduced.claim - v[2].into());
    Ok((reduced.point, [v[0], v[1]]))
}

/// sum over x of weights_x [the bits of x are `at`] = value, where [..] extends to a product over the bits.
pub struct Term {
    pub weights: Vec<Fr>,
    pub at: Vec<Fr>,
    pub value: Expr,
}

/// Proves such sums over numbers with bits in columns, and once that the bits are 0 or 1.
pub fn one_hot<C: Channel>(
    session: &mut Session<C>,
    bits: &[ColumnId],
    variables: usize,
    terms: Vec<Term>,
    boolean: bool,
) -> Result<()> {
    let chi = session.challenge("numbers");
    let powers: Vec<Fr> = std::iter::successors(Some(Fr::ONE), |p| Some(*p * chi))
        .take(terms.len() + bits.len())
        .collect();
    let tau = session.challenges("bits", if boolean { variables } else { 0 });
    let claim = Expr::combination(terms.iter().zip(&powers).map(|(t, p)| (&t.value, *p)));
    let weights: Vec<Vec<Fr>> = terms.iter().map(|t| t.weights.clone()).collect();
    let tables = session.known().map(|known| {
        let mut tables = weights.clone();
        tables.extend(boolean.then(|| eq_table(&tau)));
        let of = |id: &ColumnId| known.table(&[(*id, Fr::ONE)], variables);
        tables.extend(bits.iter().map(of));
        tables
    });
    let factor = |bit: Fr, at: Fr| Fr::ONE - at + bit * (at.double() - Fr::ONE);
    let (of_terms, of_bits) = powers.split_at(terms.len());
    let start = terms.len() + usize::from(boolean);
    let numbers = Numbers {
        points: terms.iter().map(|t| &t.at[..bits.len()]).collect(),
        of_terms,
        of_bits: boolean.then_some(of_bits),
    };
    let (point, claim) = plain(variables, claim);
    let (degree, gate) = ((bits.len() + 1).max(3), Gate::Numbers(&numbers));
    let reduced = sumcheck(session, "numbers", &point, claim, degree, tables, gate)?;

    // The bits at the point, their squares, and each term's product, factor by factor.
    let values = reduced.finals.map(|f| {
        let bits = &f[start..];
        let mut out = bits.to_vec();
        out.extend(bits.iter().filter(|_| boolean).map(Field::square));
        for term in &terms {
            let mut product = Fr::ONE;
            for (bit, at) in bits.iter().zip(&term.at) {
                product *= factor(*bit, *at);
                out.push(product);
            }
        }
        out
    });
    let squares = if boolean { bits.len() } else { 0 };
    let total = bits.len() * (1 + terms.len()) + squares;
    let vars = session.send("numbers", total, values.as_deref())?;
    let mut rest = -reduced.claim;
    if boolean {
        let weight = evaluate(&eq_table(&tau), &reduced.point);
        for (k, p) in of_bits.iter().enumerate() {
            let (bit, square) = (vars[k], vars[bits.len() + k]);
            session.constrain_product("bits", bit.into(), bit.into(), square.into());
            rest.add_term(square, weight * p);
            rest.add_term(bit, -weight * p);
        }
    }
    let products = vars[bits.len() + squares..].chunks(bits.len());
    for ((term, p), chain) in terms.iter().zip(of_terms).zip(products) {
        let mut product = Expr::from(1u64);
        for ((bit, at), next) in vars.iter().zip(&term.at).zip(chain) {
            let slope = at.double() - Fr::ONE;
            let factor = Expr::from(*bit) * slope + (Fr::ONE - at).into();
            session.constrain_product("numbers", product, factor, (*next).into());
            product = (*next).into();
        }
        rest.add_scaled(&product, *p * evaluate(&term.weights, &reduced.point));
    }
    session.constrain("numbers", rest);
    for (id, var) in bits.iter().zip(vars) {
        let weight = Weight::evaluation(&reduced.point);
        session.claim(weight, vec![(*id, Fr::ONE)], var.into());
    }
    Ok(())
}
