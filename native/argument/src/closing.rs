//! The end of every run: all claims at once, in zero knowledge. `docs/scan/closing.md`.
use ark_ff::AdditiveGroup;

use crate::channel::Channel;
use crate::error::Result;
use crate::expr::Expr;
use crate::group::Fr;
use crate::link::Link;
use crate::session::Session;

mod columns;
mod constraints;
mod opening;
mod products;

impl<C: Channel> Session<'_, C> {
    /// Proves every claim, product and constraint of the session. `link` ties the last column that has no
    /// commitments of its own to an index.
    pub fn close(mut self, link: Option<Link>) -> Result<C::Closed> {
        self.refuse_what_does_not_hold()?;
        let mut equations = Vec::new();
        let opened = self.reduce_columns()?;
        let linked = match link {
            Some(link) => {
                let point = opened.as_ref().map(|o| o.point.as_slice());
                let (linked, of_link) = self.prove_link(link, point)?;
                equations.extend(of_link);
                Some(linked)
            }
            None => None,
        };
        let product = self.reduce_products()?;
        equations.extend(self.prove_constraints()?);
        if let Some(vars) = product {
            equations.extend(self.prove_product(vars)?);
        }
        if let Some(opened) = opened {
            equations.push(self.open_columns(&opened, linked)?);
        }
        let weight = self.challenge("equation weight");
        self.channel.close(&equations, weight)
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
