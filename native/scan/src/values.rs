//! What the prover knows of its columns: values of combinations of them, and of functionals.
use ark_ff::AdditiveGroup;

use crate::group::Fr;
use crate::mle::{Weight, Weights};
use crate::session::{ColumnId, Session};
use crate::small;

/// The prover's values of a combination of columns.
pub(crate) fn table_of(session: &Session, columns: &[(ColumnId, Fr)], variables: usize) -> Vec<Fr> {
    let mut out = entries_of(session, columns);
    out.resize(1 << variables, Fr::ZERO);
    out
}

/// The same as far as the columns go.
pub(crate) fn entries_of(session: &Session, columns: &[(ColumnId, Fr)]) -> Vec<Fr> {
    let weighted = |(id, f): &(ColumnId, Fr)| (session.column_values(*id).unwrap_or_default(), *f);
    let columns: Vec<(&[i64], Fr)> = columns.iter().map(weighted).collect();
    let length = columns.iter().map(|(v, _)| v.len()).max().unwrap_or(0);
    let mut out = vec![Fr::ZERO; length];
    small::combine(Fr::ZERO, &columns, &mut out);
    out
}

/// A combination of the prover's columns, evaluated at a point.
pub(crate) fn combination_at(session: &Session, columns: &[(ColumnId, Fr)], point: &[Fr]) -> Fr {
    functional(session, &Weight::evaluation(point), columns)
}

/// A functional of a combination of the prover's columns.
pub(crate) fn functional(session: &Session, weight: &Weight, columns: &[(ColumnId, Fr)]) -> Fr {
    let eq = Weights::new(&weight.point);
    let stride = weight.coefficients.len();
    let one = |(id, factor): &(ColumnId, Fr)| {
        let values = session.column_values(*id).unwrap_or_default();
        let values = &values[..values.len().min(weight.items * stride)];
        let sum: Fr = match stride {
            1 => eq.dot(values) * weight.coefficients[0],
            _ => {
                let parts = weight.coefficients.iter().enumerate().map(|(o, c)| {
                    let part: Vec<i64> = values.iter().skip(o).step_by(stride).copied().collect();
                    eq.dot(&part) * c
                });
                parts.sum()
            }
        };
        sum * factor
    };
    columns.iter().map(one).sum()
}

pub(crate) fn pad(values: &[i64], variables: usize) -> Vec<i64> {
    let mut out = values.to_vec();
    out.resize(1 << variables, 0);
    out
}
