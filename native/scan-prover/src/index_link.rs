//! The link of a run to its hidden query: `docs/scan/index-commitment.md`.
pub use ragaudit_scan_protocol::index_link::*;

pub use crate::prover::queries::commit_query;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Fast;
    use crate::equation::Equation;
    use crate::group::Fr;
    use crate::group::{msm, vector_generators};
    use crate::index::commit_index;
    use crate::index::IndexKey;
    use crate::numbers::from_small;
    use crate::prover::Prover;
    use crate::session::Session;
    use crate::transcript::Transcript;
    use crate::verifier::Verifier;
    use ark_ec::{AffineRepr, CurveGroup};
    use ark_ff::AdditiveGroup;
    use ark_ff::Field;

    /// A prover that hides -5 in C_q's G_0 reduces the first score by 5. One common equation for C_q and P would accept this
    /// proof; separate equations refuse it.
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
            equations.iter().all(|e| e.holds::<Fast>(&index.points))
        };
        assert!(accepted(true), "merged, the forgery passes");
        assert!(!accepted(false));
        assert!(!p.into_affine().is_zero());
    }
}
