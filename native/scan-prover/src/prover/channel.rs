//! The prover's side of a run: it sends the messages that a verifier reads. `docs/scan/session.md`.
use ark_bn254::Fq;
use ark_ff::Field;
use ragaudit_field_simd::g1::normalize;
use ragaudit_scan_protocol::prover::{Folds, ProverWitness};

use crate::channel::{Channel, Mask, Proves};
use crate::engine::Fast;
use crate::equation::Equation;
use crate::error::Result;
use crate::group::{encode_point, encode_scalar, Fr, G1Affine, G1Projective};
use crate::prover::opening::Folding;
use crate::secrets::{Nonces, Secrets};
use crate::transcript::{Hash, Transcript};

/// The party that has the secrets, and writes a proof.
pub struct Prover {
    pub(crate) secrets: Secrets,
    pub(crate) proof: Vec<u8>,
}

impl Prover {
    pub(crate) fn new(nonces: Nonces) -> Self {
        Self {
            secrets: Secrets::new(nonces),
            proof: Vec::new(),
        }
    }
}

impl Proves for Prover {
    fn start(transcript: &Transcript<Hash>, witness: &[u8]) -> Result<Self> {
        Ok(Self::new(Nonces::new(&transcript.digest(), witness)?))
    }
}

impl Channel for Prover {
    type Oracle = Hash;
    type Engine = Fast;
    type Closed = Vec<u8>;

    fn secrets(&self) -> Option<&dyn ProverWitness> {
        Some(&self.secrets)
    }

    fn secrets_mut(&mut self) -> Option<&mut dyn ProverWitness> {
        Some(&mut self.secrets)
    }

    fn commitment(
        &mut self,
        _: &str,
        make: impl FnOnce(&mut dyn ProverWitness) -> G1Projective,
    ) -> Result<G1Affine> {
        let point = make(&mut self.secrets);
        Ok(put_point(&mut self.proof, point))
    }

    fn point(&mut self, _: &str, point: Option<G1Projective>) -> Result<G1Affine> {
        Ok(put_point(&mut self.proof, point.unwrap_or_default()))
    }

    fn scalar(&mut self, scalar: Option<Fr>) -> Result<Fr> {
        let scalar = scalar.unwrap_or_default();
        self.proof.extend(encode_scalar(&scalar));
        Ok(scalar)
    }

    /// Uniform, and so are the responses, whatever is secret: sums of points with these factors may take their time.
    fn mask(
        &mut self,
        length: usize,
        map: impl Fn(&[Fr]) -> Vec<Equation>,
        _: &[Equation],
    ) -> Option<Mask> {
        let vector = self.secrets.nonces.draw_many(length);
        let images = map(&vector);
        Some(Mask { vector, images })
    }

    fn respond(
        &self,
        mask: Option<Mask>,
        challenge: Fr,
        secret: Option<Vec<Fr>>,
    ) -> Option<Vec<Fr>> {
        let pairs = mask?.vector.into_iter().zip(secret?);
        Some(pairs.map(|(m, x)| m + challenge * x).collect())
    }

    fn folds(&self, responses: Vec<Fr>) -> Option<Box<dyn Folds>> {
        Some(Folding::boxed(responses))
    }

    fn close(self, _: &[Equation], _: Fr) -> Result<Vec<u8>> {
        Ok(self.proof)
    }
}

pub(crate) fn put_point(proof: &mut Vec<u8>, point: G1Projective) -> G1Affine {
    // The inversion, if one is needed, takes a time that does not depend on the secrets.
    let point = match point.z == Fq::ONE {
        true => G1Affine::new_unchecked(point.x, point.y),
        false => normalize(&[point])[0],
    };
    proof.extend(encode_point(&point));
    point
}
