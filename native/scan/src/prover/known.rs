//! What the prover of a run knows: its hidden values and its columns, combinations of them, and functionals.
use ark_ff::AdditiveGroup;

use crate::claims::{Column, ColumnId};
use crate::expr::Expr;
use crate::group::Fr;
use crate::mle::{Weight, Weights};
use crate::secrets::Secrets;
use crate::small;

/// The hidden values and columns of a prover's run, as far as it has come.
#[derive(Clone, Copy)]
pub struct Known<'s> {
    secrets: &'s Secrets,
    columns: &'s [Column],
}

impl<'s> Known<'s> {
    pub(crate) fn new(secrets: &'s Secrets, columns: &'s [Column]) -> Self {
        Self { secrets, columns }
    }

    /// The value of an expression.
    pub fn value(&self, expr: &Expr) -> Fr {
        expr.evaluate(|var| self.secrets.value(var))
    }

    /// The values of a column.
    pub fn column(&self, id: ColumnId) -> &'s [i64] {
        let opening = self.columns[id.0].opening.as_ref();
        opening.map_or(&[], |o| o.values.as_slice())
    }

    /// A combination of columns, as far as they go.
    pub(crate) fn entries(&self, columns: &[(ColumnId, Fr)]) -> Vec<Fr> {
        let weighted = |(id, f): &(ColumnId, Fr)| (self.column(*id), *f);
        let columns: Vec<(&[i64], Fr)> = columns.iter().map(weighted).collect();
        let length = columns.iter().map(|(v, _)| v.len()).max().unwrap_or(0);
        let mut out = vec![Fr::ZERO; length];
        small::combine(Fr::ZERO, &columns, &mut out);
        out
    }

    /// The same over the whole cube.
    pub(crate) fn table(&self, columns: &[(ColumnId, Fr)], variables: usize) -> Vec<Fr> {
        let mut out = self.entries(columns);
        out.resize(1 << variables, Fr::ZERO);
        out
    }

    /// A combination of columns, evaluated at a point.
    pub(crate) fn at(&self, columns: &[(ColumnId, Fr)], point: &[Fr]) -> Fr {
        self.functional(&Weight::evaluation(point), columns)
    }

    /// A functional of a combination of columns.
    pub(crate) fn functional(&self, weight: &Weight, columns: &[(ColumnId, Fr)]) -> Fr {
        let eq = Weights::new(&weight.point);
        let stride = weight.coefficients.len();
        let one = |(id, factor): &(ColumnId, Fr)| {
            let values = self.column(*id);
            let values = &values[..values.len().min(weight.items * stride)];
            let sum: Fr = match stride {
                1 => eq.dot(values) * weight.coefficients[0],
                _ => {
                    let parts = weight.coefficients.iter().enumerate().map(|(o, c)| {
                        let part: Vec<i64> =
                            values.iter().skip(o).step_by(stride).copied().collect();
                        eq.dot(&part) * c
                    });
                    parts.sum()
                }
            };
            sum * factor
        };
        columns.iter().map(one).sum()
    }
}
