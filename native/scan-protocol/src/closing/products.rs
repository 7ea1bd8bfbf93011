//! Reduces all products to one product, and proves it by a Schnorr proof.
use ark_ff::{AdditiveGroup, Field};

use crate::channel::Channel;
use crate::equation::Equation;
use crate::error::Result;
use crate::expr::{Expr, Var};
use crate::group::{Fr, G1Affine};
use crate::mle::eq_table;
use crate::session::Session;
use crate::sumcheck::{sumcheck, Gate};

impl<C: Channel> Session<'_, C> {
    /// A sumcheck over left * right - output; the three final factors have separate commitments.
    pub fn reduce_products(&mut self) -> Result<Option<[Var; 3]>> {
        let products = std::mem::take(&mut self.products);
        if products.is_empty() {
            return Ok(None);
        }
        let size = products.len().next_power_of_two();
        let tables = self.known().map(|known| {
            let table = |k: usize| {
                let values = products.iter().map(|(_, triple)| known.value(&triple[k]));
                let mut table: Vec<Fr> = values.collect();
                table.resize(size, Fr::ZERO);
                table
            };
            [0, 1, 2].map(table).to_vec()
        });
        let tau = self.challenges("products", size.trailing_zeros() as usize);
        let reduced = sumcheck(
            self,
            "products",
            &tau,
            Expr::zero(),
            2,
            tables,
            Gate::Multiplied,
        )?;
        let finals = reduced.finals;
        let left = self.send_single("left factor", finals.as_ref().map(|f| f[0]))?;
        let right = self.send_single("right factor", finals.as_ref().map(|f| f[1]))?;
        let output = self.send_single("product", finals.as_ref().map(|f| f[0] * f[1]))?;
        let eq = eq_table(&reduced.point);
        let at =
            |k: usize| Expr::combination(products.iter().zip(&eq).map(|((_, t), e)| (&t[k], *e)));
        self.constrain("left factor", at(0) - left.into());
        self.constrain("right factor", at(1) - right.into());
        self.constrain("products", reduced.claim - output.into() + at(2));
        Ok(Some([left, right, output]))
    }

    /// Schnorr proof: the value in the third commitment is the product of the values in the first two.
    pub fn prove_product(&mut self, vars: [Var; 3]) -> Result<Vec<Equation>> {
        let index = vars.map(Var::single);
        let [left, right, output] = index.map(|i| self.singles[i]);
        let secret = self.channel.secrets().map(|secrets| {
            let [(l, rho_l), (r, rho_r), (_, rho_o)] = index.map(|i| secrets.opened(i));
            vec![l, rho_l, rho_o - l * rho_r, r, rho_r]
        });
        let equation = |u: Fr, h: Fr, points: Vec<(G1Affine, Fr)>| Equation {
            u,
            h,
            points,
            ..Equation::default()
        };
        // left = l U + .., output = l right + .., right = r U + ..
        let map = |x: &[Fr]| {
            vec![
                equation(x[0], x[1], Vec::new()),
                equation(Fr::ZERO, x[2], vec![(right, x[0])]),
                equation(x[3], x[4], Vec::new()),
            ]
        };
        let targets =
            [left, output, right].map(|p| equation(Fr::ZERO, Fr::ZERO, vec![(p, Fr::ONE)]));
        self.prove_linear("product", 5, secret, map, &targets, &[])
    }
}
