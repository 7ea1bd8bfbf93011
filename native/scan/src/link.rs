//! One hidden query behind its commitment, the scores' and public functionals of it: `docs/scan/index.md`.
use ark_ff::{AdditiveGroup, Field};
use rayon::prelude::*;

use crate::channel::Channel;
use crate::equation::Equation;
use crate::error::Result;
use crate::expr::Var;
use crate::group::{Fr, G1Affine};
use crate::index::{IndexCommitment, IndexKey};
use crate::mle::eq_table;
use crate::numbers::from_small;
pub use crate::prover::queries::commit_query;
use crate::prover::queries::commit_scores;
use crate::session::Session;

/// The prover's side of [`Link`].
pub struct LinkSecret<'a> {
    pub query: &'a [i8],
    pub salt: Fr,
    pub blinding: Fr,
    pub key: &'a IndexKey,
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
    pub(crate) point: G1Affine,
    pub(crate) blinding: Fr,
}

impl<C: Channel> Session<'_, C> {
    /// The AND-proof of one (q, salt) behind C_q, every claim, and P = sum of q_j D_j + rho H, where D_j is
    /// component j's commitment at the row point. Masks first; the shared responses are sent as they are.
    pub(crate) fn prove_link(
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
            let (vector, _) = secret.as_ref().expect("the prover's side");
            let key = link.secret.as_ref().expect("the prover's side").key;
            let factors = spread(vector);
            own_blinding = secrets.nonces.draw();
            total_blinding = factors
                .par_iter()
                .enumerate()
                .map(|(place, f)| key.blinding(place) * f)
                .sum::<Fr>()
                + own_blinding;
            let query = link.secret.as_ref().expect("the prover's side").query;
            commit_scores(link.index, query, rows, own_blinding)
        })?;

        // x: q, the salt, and the blindings of C_q, of P and of every claim's single.
        let (claims, own) = (&link.claims, dimension + 1);
        let singles: Vec<usize> = claims.iter().map(|(_, var)| var.single()).collect();
        let secret = self.channel.secrets().zip(secret);
        let secret = secret.map(|(secrets, (mut vector, blinding))| {
            vector.extend([blinding, own_blinding]);
            vector.extend(singles.iter().map(|i| secrets.singles[*i].1));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::{msm, vector_generators};
    use crate::index::commit_index;
    use crate::prover::Prover;
    use crate::transcript::Transcript;
    use crate::verifier::Verifier;
    use ark_ec::{AffineRepr, CurveGroup};

    /// A prover that hides -5 in C_q's G_0 takes 5 from the first score. One equation for C_q and P together would not
    /// see it; one for each does.
    #[test]
    fn a_merged_link_equation_would_let_a_score_through() {
        let key = IndexKey([7; 32]);
        let index = commit_index(&[1, 2, 3, -4, 5, 6], 2, 3, &key).unwrap();
        assert_eq!(index.layout.rows(), 1);
        let (query, salt, blinding) = ([3i8, -2], Fr::from(11u8), Fr::from(13u8));
        let shift = vector_generators(1)[0] * Fr::from(5u8);
        let vector = [3, -2].map(from_small);
        let c_q = commit_query(&query, &salt, &blinding) + shift;
        let p = msm(&index.points, &vector) - shift;
        let accepted = |merged: bool| {
            let map = |x: &[Fr]| {
                let of_query = Equation {
                    query: x[..3].to_vec(),
                    h: x[3],
                    ..Equation::default()
                };
                let of_scores = Equation {
                    index: x[..2].to_vec(),
                    h: x[4],
                    ..Equation::default()
                };
                let mut both = vec![of_query, of_scores];
                if merged {
                    let second = both.remove(1);
                    both[0].add(&second, Fr::ONE);
                }
                both
            };
            let mut targets = vec![c_q.into_affine(), p.into_affine()];
            if merged {
                targets = vec![(c_q + p).into_affine()];
            }
            let targets: Vec<Equation> = targets
                .into_iter()
                .map(|p| Equation {
                    points: vec![(p, Fr::ONE)],
                    ..Equation::default()
                })
                .collect();
            let secret = vec![vector[0], vector[1], salt, blinding, Fr::ZERO];
            let mut prover: Session<Prover> =
                Session::prover(Transcript::new("test"), 4, b"").unwrap();
            prover
                .prove_linear("link", 5, Some(secret), map, &targets, &index.points)
                .unwrap();
            let proof = &prover.channel.proof;
            let mut verifier: Session<Verifier> =
                Session::verifier(Transcript::new("test"), 4, proof);
            let equations = verifier
                .prove_linear("link", 5, None, map, &targets, &index.points)
                .unwrap();
            equations.iter().all(|e| e.holds(&index.points))
        };
        assert!(accepted(true), "merged, the forgery passes");
        assert!(!accepted(false));
        assert!(!p.into_affine().is_zero());
    }
}
