//! Hidden queries behind their commitments, the scores' and public functionals of each: `docs/scan/index-commitment.md`.
use ark_ff::{AdditiveGroup, Field};

use crate::channel::Channel;
use crate::equation::Equation;
use crate::error::{Error, Result};
use crate::expr::{Expr, Var};
use crate::group::{Fr, G1Affine};
use crate::hidden_query::{Functionals, HiddenQuery};
use crate::index::IndexCommitment;
use crate::mle::eq_table;
use crate::numbers::from_small;
use crate::prover::Blindings;
use crate::session::{ColumnId, Session};

/// The prover's side of [`IndexLink`].
pub struct IndexLinkSecret<'a> {
    pub hidden_queries: Vec<HiddenQuery<'a>>,
    pub blindings: Vec<Fr>,
    pub index: Blindings<'a>,
}

/// Hidden (q, salt), one a record, each behind a commitment: their scores, and public linear functionals of each.
pub struct IndexLink<'a> {
    pub index: &'a IndexCommitment,
    /// sum of q_j Q_j + salt Q_d + blinding H of each record, sent before any challenge.
    pub queries: Vec<G1Affine>,
    pub secret: Option<IndexLinkSecret<'a>>,
    /// <weights, (q, salt)> is the hidden value of each record.
    pub claims: Functionals,
    /// The columns of their scores, which are opened separately, in the index's own rows.
    pub scores: Vec<ColumnId>,
}

/// The values that remain to be linked after a random combination of the records: one (q, salt), the weighted sum of theirs.
struct Joined<'a> {
    index: &'a IndexCommitment,
    queries: Vec<(G1Affine, Fr)>,
    secret: Option<JoinedSecret<'a>>,
    /// <weights, (q, salt)> is the value behind the single commitment.
    claims: Vec<(Vec<Fr>, Var)>,
}

struct JoinedSecret<'a> {
    /// Each query with its weight.
    queries: Vec<(&'a [i8], Fr)>,
    /// The weighted sum of the salts.
    salt: Fr,
    blinding: Fr,
    index: Blindings<'a>,
}

/// The combination of the scores, which is opened separately.
pub struct JoinedScores {
    pub claim: IndexLinkClaim,
    /// Each column's factor.
    pub scores: Vec<(ColumnId, Fr)>,
    /// The value of the combination at the point.
    pub single: Var,
}

/// The commitment to the scores' row combination, over G and H only.
pub struct IndexLinkClaim {
    pub point: G1Affine,
    pub blinding: Fr,
}

impl<C: Channel> Session<'_, C> {
    /// Replaces the records by one random combination: of the commitments, of each functional's values, and of the scores'
    /// values at the point, which are `at_point`. All of these are sent before the challenge.
    pub fn link(
        &mut self,
        link: IndexLink,
        point: Option<&[Fr]>,
        at_point: &[Var],
    ) -> Result<(JoinedScores, Vec<Equation>)> {
        let e = self.challenge("linked records");
        let powers = std::iter::successors(Some(Fr::ONE), |power| Some(*power * e));
        let weights: Vec<Fr> = powers.take(link.queries.len()).collect();
        // A run without claims about columns has no point to open the scores at.
        if at_point.len() != link.scores.len() {
            return Err(Error::Rejected);
        }
        let single = self.join(at_point, &weights)?;
        let scores = link.scores.into_iter().zip(weights.clone()).collect();
        let mut claims = Vec::new();
        for (functional, vars) in link.claims {
            claims.push((functional, self.join(&vars, &weights)?));
        }
        let dot = |values: &mut dyn Iterator<Item = Fr>| -> Fr {
            values.zip(&weights).map(|(v, w)| v * w).sum()
        };
        let secret = link.secret.map(|secret| {
            let hidden_queries = secret.hidden_queries.iter();
            JoinedSecret {
                salt: dot(&mut hidden_queries.clone().map(|query| query.salt)),
                blinding: dot(&mut secret.blindings.iter().copied()),
                queries: hidden_queries
                    .map(|query| query.components)
                    .zip(weights.clone())
                    .collect(),
                index: secret.index,
            }
        });
        let joined = Joined {
            index: link.index,
            queries: link.queries.into_iter().zip(weights).collect(),
            secret,
            claims,
        };
        let (claim, equations) = self.prove_index_link(joined, point)?;
        let joined = JoinedScores {
            claim,
            scores,
            single,
        };
        Ok((joined, equations))
    }

    /// The sum of hidden values under these weights, as a single.
    fn join(&mut self, vars: &[Var], weights: &[Fr]) -> Result<Var> {
        let sum = Expr::weighted(vars, weights);
        let value = self.known().map(|known| known.value(&sum));
        let single = self.send_single("linked value", value)?;
        self.constrain("linked value", sum - single.into());
        Ok(single)
    }

    /// The AND-proof of one (q, salt) behind C_q, every claim, and P = sum of q_j D_j + rho H, where D_j is
    /// component j's commitment at the row point. Masks first; the shared responses are sent as they are.
    fn prove_index_link(
        &mut self,
        mut link: Joined,
        point: Option<&[Fr]>,
    ) -> Result<(IndexLinkClaim, Vec<Equation>)> {
        let mut numbers = 0..;
        link.claims.retain(|_| {
            let number: Option<usize> = numbers.next();
            number.is_none_or(|k| self.channel.claims("link", Some(&k), &[]))
        });
        let dimension = link.index.dimension;
        let rows = eq_table(&point.unwrap_or_default()[link.index.layout.row_variables..]);
        let rows = &rows[..link.index.layout.rows()];
        // Factors of the index points for a vector x: x_j e_a.
        let spread = |x: &[Fr]| -> Vec<Fr> {
            x[..dimension]
                .iter()
                .flat_map(|x| rows.iter().map(move |e| *x * e))
                .collect()
        };
        let secret: Option<(Vec<Fr>, Fr)> = link.secret.as_ref().map(|secret| {
            let mut vector = vec![Fr::ZERO; dimension];
            for (query, factor) in &secret.queries {
                let components = query.iter().map(|v| from_small(i64::from(*v)) * factor);
                vector.iter_mut().zip(components).for_each(|(x, v)| *x += v);
            }
            vector.push(secret.salt);
            (vector, secret.blinding)
        });
        let mut total_blinding = Fr::ZERO;
        let mut own_blinding = Fr::ZERO;
        let scores = self.commitment("scores", |secrets| {
            let index_link_secret = link.secret.as_ref().expect("the prover's side");
            let (queries, blindings) = (&index_link_secret.queries, index_link_secret.index);
            let (point, drawn) = secrets.scores(link.index, queries, rows, blindings);
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
        let mut commitments = vec![link.queries.clone(), vec![(scores, Fr::ONE)]];
        commitments.extend(singles.iter().map(|i| vec![(self.singles[*i], Fr::ONE)]));
        let targets: Vec<Equation> = commitments
            .into_iter()
            .map(|points| Equation {
                points,
                ..Equation::default()
            })
            .collect();
        let length = own + 2 + claims.len();
        let equations =
            self.prove_linear("link", length, secret, map, &targets, &link.index.points)?;
        let claim = IndexLinkClaim {
            point: scores,
            blinding: total_blinding,
        };
        Ok((claim, equations))
    }
}
