//! The end of every run: all claims at once, in zero knowledge. `docs/scan/closing.md`.
use ark_ff::{AdditiveGroup, Field};

use crate::channel::Channel;
use crate::equation::Equation;
use crate::error::{Error, Result};
use crate::expr::Expr;
use crate::group::Fr;
use crate::link::{Link, Links};
use crate::session::Session;

mod columns;
mod constraints;
mod opening;
mod products;

use columns::ToOpen;

impl<C: Channel> Session<'_, C> {
    /// Proves every claim, product and constraint of the session. `link` ties the last column that has no
    /// commitments of its own to an index.
    pub fn close(mut self, link: Option<Link>) -> Result<C::Closed> {
        self.refuse_what_does_not_hold()?;
        let mut equations = Vec::new();
        let opened = self.reduce_columns(&[])?;
        let linked = match link {
            Some(link) => {
                let point = opened.as_ref().map(|o| o.point.as_slice());
                let (linked, of_link) = self.prove_link(link, point)?;
                equations.extend(of_link);
                Some(linked)
            }
            None => None,
        };
        equations.extend(self.close_values()?);
        if let Some(opened) = &opened {
            let columns = self.columns.iter().zip(&opened.factors);
            let unlinked = columns.filter(|(column, _)| column.rows.is_empty());
            let factor: Fr = unlinked.map(|(_, factor)| factor).sum();
            let to_open = ToOpen {
                point: &opened.point,
                row_variables: self.row_variables,
                factors: &opened.factors,
                linked: linked.as_ref().map(|link| (link, factor)),
                table: opened.table.as_ref(),
                single: opened.single,
            };
            equations.push(self.open_columns(&to_open)?);
        }
        let weight = self.challenge("equation weight");
        self.channel.close(&equations, weight)
    }

    /// The same for a run about several queries, whose columns of scores are opened by themselves, in the index's own rows.
    pub fn close_together(mut self, links: Links) -> Result<C::Closed> {
        self.refuse_what_does_not_hold()?;
        let opened = self.reduce_columns(&links.scores)?;
        let opened = opened.ok_or(Error::Rejected)?;
        let row_variables = links.index.layout.row_variables;
        let mut factors = vec![Fr::ZERO; self.columns.len()];
        let (link, joined) = self.join_links(links, &opened.apart)?;
        for (id, factor) in joined.scores {
            factors[id.0] = factor;
        }
        let (linked, mut equations) = self.prove_link(link, Some(&opened.point))?;
        equations.extend(self.close_values()?);
        let committed = ToOpen {
            point: &opened.point,
            row_variables: self.row_variables,
            factors: &opened.factors,
            linked: None,
            table: None,
            single: opened.single,
        };
        equations.push(self.open_columns(&committed)?);
        let scores = ToOpen {
            row_variables,
            factors: &factors,
            linked: Some((&linked, Fr::ONE)),
            single: joined.single,
            ..committed
        };
        equations.push(self.open_columns(&scores)?);
        let weight = self.challenge("equation weight");
        self.channel.close(&equations, weight)
    }

    /// All products and constraints.
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
