//! Many proofs under one key in one equation.
use ark_bn254::{g1, Bn254, Fq12, Fr, G1Affine, G1Projective};
use ark_ec::pairing::{MillerLoopOutput, Pairing};
use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::{BigInt, One, PrimeField, Zero};
use rayon::prelude::*;

use super::{Proof, Target, VerifyingKey};
use crate::error::Result;
use crate::msm::msm;
use crate::transcript::random_word;

impl VerifyingKey {
    pub(super) fn decode_all<B: AsRef<[u8]> + Sync>(
        &self,
        proofs: &[B],
        inputs: &[B],
    ) -> Vec<Result<(Proof, Vec<Fr>)>> {
        let pairs = proofs.par_iter().zip(inputs);
        let decode = |(proof, inputs): (&B, &B)| self.decode(proof.as_ref(), inputs.as_ref());
        pairs.map(decode).collect()
    }

    /// Indices of the proofs that do not verify, ascending.
    ///
    /// One equation covers all proofs: each proof's equation is raised to a random weight of 128 bits, so a false proof
    /// passes with probability 2^-128 (Bellare, Garay, Rabin 1998). If the equation fails, the function tries halves.
    pub(super) fn wrong(&self, proofs: &[Proof], inputs: &[Vec<Fr>]) -> Result<Vec<usize>> {
        if proofs.len() < 2 {
            return self.alone(proofs, inputs);
        }
        let weights = proofs
            .iter()
            .map(|_| Ok(BigInt([random_word()?, random_word()?, 0, 0])))
            .collect::<Result<Vec<BigInt<4>>>>()?;
        let millers: Vec<MillerLoopOutput<Bn254>> = proofs
            .par_iter()
            .zip(&weights)
            .map(|(p, z)| Bn254::miller_loop(p.a.mul_bigint(&z.0[..2]), p.b))
            .collect();
        let batch = Batch {
            key: self,
            proofs,
            inputs,
            weights,
            millers,
        };
        let mut bad = Vec::new();
        batch.search(0, proofs.len(), &mut bad);
        Ok(bad)
    }
}

struct Batch<'a> {
    key: &'a VerifyingKey,
    proofs: &'a [Proof],
    inputs: &'a [Vec<Fr>],
    weights: Vec<BigInt<4>>,
    /// The Miller loops of (z_i A_i, B_i), which every subset uses.
    millers: Vec<MillerLoopOutput<Bn254>>,
}

impl Batch<'_> {
    fn search(&self, from: usize, to: usize, bad: &mut Vec<usize>) {
        if from == to || self.holds(from, to) {
            return;
        }
        if to - from == 1 {
            bad.push(from);
            return;
        }
        let middle = (from + to) / 2;
        self.search(from, middle, bad);
        self.search(middle, to, bad);
    }

    /// prod e(z A, B) = e(alpha, beta)^(sum z) e(sum z IC(x), gamma) e(sum z C, delta)
    fn holds(&self, from: usize, to: usize) -> bool {
        let weights = &self.weights[from..to];
        let mut scalars = vec![Fr::zero(); self.key.ic.len()];
        for (z, inputs) in weights.iter().zip(&self.inputs[from..to]) {
            let z = Fr::from_bigint(*z).expect("128 bits");
            scalars[0] += z;
            for (sum, x) in scalars[1..].iter_mut().zip(inputs) {
                *sum += z * x;
            }
        }
        let c: Vec<G1Affine> = self.proofs[from..to].iter().map(|p| p.c).collect();
        let plain: Vec<BigInt<4>> = scalars.iter().map(|x| x.into_bigint()).collect();
        let points = [
            -msm::<g1::Config>(&self.key.ic, &plain),
            -msm::<g1::Config>(&c, weights),
            -(self.key.alpha1 * scalars[0]),
        ];
        let product = self.millers[from..to]
            .par_iter()
            .map(|m| m.0)
            .reduce(Fq12::one, |a, b| a * b);
        let rest = Bn254::multi_miller_loop(
            G1Projective::normalize_batch(&points),
            [
                self.key.gamma2.clone(),
                self.key.delta2.clone(),
                self.key.beta2.clone(),
            ],
        );
        Bn254::final_exponentiation(MillerLoopOutput(product * rest.0)) == Some(Target::zero())
    }
}
