//! Opens all columns at one point.
use std::cell::OnceCell;

use ark_ff::{AdditiveGroup, Field};

use super::columns::ToOpen;
use crate::channel::Channel;
use crate::equation::Equation;
use crate::error::{Error, Result};
use crate::group::{Fr, G1Affine};
use crate::mle::eq_table;
use crate::prover::Combination;
use crate::session::Session;

impl<C: Channel> Session<'_, C> {
    /// One inner-product argument for all columns: first the mask, then folding of the vector, which the mask has made
    /// uniform.
    pub fn open_columns(&mut self, opened: &ToOpen) -> Result<Equation> {
        let (low, high) = opened.point.split_at(opened.row_variables);
        let rows = eq_table(high);
        let length = 1usize << opened.row_variables;
        // Only a party that multiplies a vector by it computes this table; a verifier needs only its folds.
        let (tensor, result) = (OnceCell::new(), || eq_table(low));
        let target = self.combined_rows(opened, &rows)?;
        let value = opened.single.single();
        let secret = self.channel.secrets().map(|secrets| {
            let table = opened.table.map(|(part, factor)| {
                let functional = part.functional.as_deref().unwrap_or_default();
                (functional, part.table.layout.rows(), *factor)
            });
            let combination = Combination {
                length,
                rows: &rows,
                factors: opened.factors,
                linked: opened.linked.map_or(Fr::ZERO, |link| link.blinding),
                table,
            };
            let (mut vector, blinding) = secrets.combined_rows(&self.columns, combination);
            vector.extend([blinding, secrets.opened(value).1]);
            vector
        });
        let map = |x: &[Fr]| {
            let column = Equation {
                vector: x[..length].to_vec(),
                h: x[length],
                ..Equation::default()
            };
            let value = Equation {
                u: x.iter()
                    .zip(tensor.get_or_init(result))
                    .map(|(x, t)| *x * t)
                    .sum(),
                h: x[length + 1],
                ..Equation::default()
            };
            vec![column, value]
        };
        let of_value = Equation {
            points: vec![(self.singles[value], Fr::ONE)],
            ..Equation::default()
        };
        let targets = [target, of_value];
        let table = opened.table.map_or(&[][..], |(part, _)| &part.table.points);
        let sent = self.mask("column opening", length + 2, secret, &map, &targets, table)?;
        let (masks, c, known) = (sent.points, sent.challenge, sent.responses);
        let vector_blinding =
            self.response("column blinding", known.as_ref().map(|x| x[length]))?;
        let single_blinding =
            self.response("value blinding", known.as_ref().map(|x| x[length + 1]))?;
        let mu = self.challenge("inner product");

        let mut equation = Equation {
            h: -vector_blinding - mu * single_blinding,
            points: vec![(masks[0], Fr::ONE), (masks[1], mu)],
            ..Equation::default()
        };
        equation.add(&targets[0], c);
        equation.add(&targets[1], mu * c);
        let masked = known.map(|mut x| {
            x.truncate(length);
            x
        });
        self.fold(equation, masked, low, mu)
    }

    /// The commitments to all columns' rows, combined under the weights of the point.
    fn combined_rows(&self, opened: &ToOpen, rows: &[Fr]) -> Result<Equation> {
        let mut points: Vec<(G1Affine, Fr)> = Vec::new();
        let columns = self.columns.iter().zip(opened.factors);
        for (column, factor) in columns.filter(|(_, f)| **f != Fr::ZERO) {
            points.extend(column.rows.iter().zip(rows).map(|(p, e)| (*p, *e * factor)));
            if column.rows.is_empty() && opened.linked.is_none() {
                return Err(Error::Rejected);
            }
        }
        points.extend(opened.linked.map(|link| (link.point, Fr::ONE)));
        let mut index = Vec::new();
        if let Some((part, factor)) = opened.table {
            let rows = &rows[..part.table.layout.rows()];
            for f in &part.factors {
                index.extend(rows.iter().map(|e| *e * f * factor));
            }
        }
        Ok(Equation {
            points,
            index,
            ..Equation::default()
        })
    }

    /// Halves the masked vector until one scalar remains. The opened value is its product with eq of the point.
    fn fold(
        &mut self,
        mut equation: Equation,
        masked: Option<Vec<Fr>>,
        point: &[Fr],
        mu: Fr,
    ) -> Result<Equation> {
        let mut folds = masked.and_then(|masked| self.channel.folds(masked));
        let mut b = folds.as_ref().map_or_else(Vec::new, |_| eq_table(point));
        let mut scale = vec![Fr::ONE];
        // The value of eq after all folds.
        let mut factor = Fr::ONE;
        for (level, x) in point.iter().enumerate().rev() {
            let keep = 1 << level;
            let sides = folds.as_ref().map(|folds| folds.sides(&b, mu));
            let l = self.point("fold", sides.map(|s| s[0]))?;
            let r = self.point("fold", sides.map(|s| s[1]))?;
            let u = self.challenge("fold");
            let inverse = u.inverse().ok_or(Error::Rejected)?;
            equation.points.extend([(l, u), (r, inverse)]);
            factor *= Fr::ONE - x + u * x;
            if let Some(folds) = &mut folds {
                let (b_low, b_high) = b.split_at_mut(keep);
                b_low.iter_mut().zip(b_high).for_each(|(l, h)| *l += u * *h);
                b.truncate(keep);
                folds.fold(u, inverse);
            }
            // Generator i has as its weight the product of u over the levels of its bits; the top level comes first.
            scale = scale.iter().flat_map(|s| [*s, *s * u]).collect();
        }
        let last = folds.map(|folds| folds.last());
        let last = self.response("inner product", last)?;
        equation.vector = scale.iter().map(|s| -*s * last).collect();
        equation.u -= last * factor * mu;
        Ok(equation)
    }
}
