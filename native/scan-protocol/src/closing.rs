//! The end of every run: it proves all claims at once, in zero knowledge. `docs/scan/closing.md`.
use ark_ff::AdditiveGroup;

use crate::channel::Channel;
use crate::equation::Equation;
use crate::error::Result;
use crate::expr::Expr;
use crate::group::Fr;
use crate::index_link::IndexLink;
use crate::session::Session;

mod columns;
mod constraints;
mod opening;
mod products;

use columns::ToOpen;

impl<C: Channel> Session<'_, C> {
    /// Proves every claim, product and constraint of the session. `link` ties the columns without commitments to an index.
    pub fn close(mut self, link: Option<IndexLink>) -> Result<C::Closed> {
        self.refuse_what_does_not_hold()?;
        let mut equations = Vec::new();
        let index_rows = link.as_ref().map(|link| link.index.layout.row_variables);
        let apart = link.as_ref().map_or(&[][..], |link| &link.scores);
        let opened = self.reduce_columns(apart)?;
        let mut scores = None;
        if let Some(link) = link {
            let point = opened.as_ref().map(|o| o.point.as_slice());
            let at_point = opened.as_ref().map_or(&[][..], |o| &o.apart[..]);
            let (joined, of_link) = self.link(link, point, at_point)?;
            scores = Some(joined);
            equations.extend(of_link);
        }
        equations.extend(self.close_values()?);
        if let Some(opened) = &opened {
            let committed = ToOpen {
                point: &opened.point,
                row_variables: self.row_variables,
                factors: &opened.factors,
                linked: None,
                table: opened.table.as_ref(),
                single: opened.single,
            };
            equations.push(self.open_columns(&committed)?);
            if let Some(pinned) = &opened.pinned {
                equations.push(self.open_columns(&ToOpen {
                    row_variables: pinned.row_variables,
                    factors: &pinned.factors,
                    table: None,
                    single: pinned.single,
                    ..committed
                })?);
            }
            if let Some(joined) = scores {
                let mut factors = vec![Fr::ZERO; self.columns.len()];
                for (id, factor) in joined.scores {
                    factors[id.0] = factor;
                }
                let scores = ToOpen {
                    row_variables: index_rows.unwrap_or(self.row_variables),
                    factors: &factors,
                    linked: Some(&joined.claim),
                    table: None,
                    single: joined.single,
                    ..committed
                };
                equations.push(self.open_columns(&scores)?);
            }
        }
        let weight = self.challenge("equation weight");
        self.channel.close(&equations, weight)
    }

    /// Proves all products and constraints.
    fn close_values(&mut self) -> Result<Vec<Equation>> {
        let product = self.reduce_products()?;
        let mut equations = self.prove_constraints()?;
        if let Some(vars) = product {
            equations.extend(self.prove_product(vars)?);
        }
        Ok(equations)
    }

    fn refuse_what_does_not_hold(&self) -> Result<()> {
        let Some(known) = self.known() else {
            return Ok(());
        };
        let value = |e: &Expr| known.value(e);
        let mut constraints = self.constraints.iter();
        let mut products = self.products.iter();
        let constraint = constraints.find(|(_, e)| value(e) != Fr::ZERO);
        let mut product = || products.find(|(_, [l, r, o])| value(l) * value(r) != value(o));
        let label = constraint.map(|(label, _)| label);
        match label.or_else(|| product().map(|(label, _)| label)) {
            Some(label) => {
                let what = format!("the constraint \"{label}\" does not hold");
                self.channel.refuse(what)
            }
            None => Ok(()),
        }
    }
}
