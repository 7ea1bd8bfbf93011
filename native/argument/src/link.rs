//! One hidden query behind its commitment, the scores' and public functionals of it: `docs/scan/index.md`.
use ark_ff::{AdditiveGroup, Field};

use crate::channel::Channel;
use crate::equation::Equation;
use crate::error::Result;
use crate::expr::Var;
use crate::group::{Fr, G1Affine};
use crate::index::IndexCommitment;
use crate::mle::eq_table;
use crate::numbers::from_small;
use crate::prover::Blindings;
use crate::session::Session;

/// The prover's side of [`Link`].
pub struct LinkSecret<'a> {
    pub query: &'a [i8],
    pub salt: Fr,
    pub blinding: Fr,
    pub index: Blindings<'a>,
}

/// One hidden (q, salt) behind a commitment, the scores' commitment and public linear functionals of it.
pub struct Link<'a> {
    pub index: &'a IndexCommitment,
    /// sum of q_j Q_j + salt Q_d + blinding H, sent before any challenge.
    pub query: G1Affine,
    pub secret: Option<LinkSecret<'a>>,
    /// <weights, (q, salt)> is the value behind the single commitment.
    pub claims: Vec<(Vec<Fr>, Var)>,
}

/// The commitment to the scores' row combination, over G and H only.
pub struct LinkClaim {
    pub point: G1Affine,
    pub blinding: Fr,
}

impl<C: Channel> Session<'_, C> {
    /// The AND-proof of one (q, salt) behind C_q, every claim, and P = sum of q_j D_j + rho H, where D_j is
    /// component j's commitment at the row point. Masks first; the shared responses are sent as they are.
    pub fn prove_link(
        &mut self,
        mut link: Link,
        point: Option<&[Fr]>,
    ) -> Result<(LinkClaim, Vec<Equation>)> {
        let mut numbers = 0..;
        link.claims.retain(|_| {
            let number: Option<usize> = numbers.next();
            number.is_none_or(|k| self.channel.claims("link", Some(&k)))
        });
        let dimension = link.index.dimension;
        let rows = eq_table(&point.unwrap_or_default()[self.row_variables..]);
        let rows = &rows[..link.index.layout.rows()];
        // Factors of the index points for a vector x: x_j e_a.
        let spread = |x: &[Fr]| -> Vec<Fr> {
            x[..dimension]
                .iter()
                .flat_map(|x| rows.iter().map(move |e| *x * e))
                .collect()
        };
        let secret: Option<(Vec<Fr>, Fr)> = link.secret.as_ref().map(|secret| {
            let mut vector: Vec<Fr> = secret
                .query
                .iter()
                .map(|&v| from_small(i64::from(v)))
                .collect();
            vector.push(secret.salt);
            (vector, secret.blinding)
        });
        let mut total_blinding = Fr::ZERO;
        let mut own_blinding = Fr::ZERO;
        let scores = self.commitment("scores", |secrets| {
            let link_secret = link.secret.as_ref().expect("the prover's side");
            let (query, blindings) = (link_secret.query, link_secret.index);
            let (point, drawn) = secrets.scores(link.index, query, rows, blindings);
            [own_blinding, total_blinding] = drawn;
            point
        })?;

        // x: q, the salt, and the blindings of C_q, of P and of every claim's single.
        let (claims, own) = (&link.claims, dimension + 1);
        let singles: Vec<usize> = claims.iter().map(|(_, var)| var.single()).collect();
        let secret = self.channel.secrets().zip(secret);
        let secret = secret.map(|(secrets, (mut vector, blinding))| {
            vector.extend([blinding, own_blinding]);
            vector.extend(singles.iter().map(|i| secrets.opened(*i).1));
            vector
        });
        let map =
            |x: &[Fr]| {
                let mut equations = vec![
                    Equation {
                        query: x[..own].to_vec(),
                        h: x[own],
                        ..Equation::default()
                    },
                    Equation {
                        index: spread(x),
                        h: x[own + 1],
                        ..Equation::default()
                    },
                ];
                equations.extend(claims.iter().zip(&x[own + 2..]).map(|((weights, _), h)| {
                    Equation {
                        u: weights.iter().zip(x).map(|(w, x)| *w * x).sum(),
                        h: *h,
                        ..Equation::default()
                    }
                }));
                equations
            };
        let mut commitments = vec![link.query, scores];
        commitments.extend(singles.iter().map(|i| self.singles[*i]));
        let targets: Vec<Equation> = commitments
            .into_iter()
            .map(|p| Equation {
                points: vec![(p, Fr::ONE)],
                ..Equation::default()
            })
            .collect();
        let length = own + 2 + claims.len();
        let equations =
            self.prove_linear("link", length, secret, map, &targets, &link.index.points)?;
        let claim = LinkClaim {
            point: scores,
            blinding: total_blinding,
        };
        Ok((claim, equations))
    }
}
