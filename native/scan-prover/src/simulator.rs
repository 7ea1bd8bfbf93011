//! The zero-knowledge simulator: it knows no secret, and chooses some of the random oracle's answers.
use std::fmt::Display;

use ark_ff::AdditiveGroup;
use ragaudit_scan_protocol::prover::{Folds, ProverWitness};

use crate::channel::{Channel, Mask};
use crate::engine::Fast;
use crate::equation::Equation;
use crate::error::Result;
use crate::expr::Expr;
use crate::group::{encode_scalar, tables, Fr, G1Affine, G1Projective};
use crate::malicious::{claimed, Told};
use crate::prover::channel::put_point;
use crate::prover::opening::Folding;
use crate::secrets::Nonces;
use crate::session::Session;
use crate::transcript::{State, Transcript};

pub(crate) struct Simulator {
    uniform: Nonces,
    proof: Vec<u8>,
    oracle: Told,
}

/// The simulator's proof, and the answers of the oracle under which a verifier accepts it.
pub(crate) struct Simulated {
    pub(crate) proof: Vec<u8>,
    pub(crate) answers: Vec<(State, Fr)>,
}

impl Simulated {
    /// Tells a transcript's oracle to answer as the simulator did.
    pub(crate) fn tell(&self, transcript: Transcript<Told>) -> Transcript<Told> {
        transcript.oracle.programmed.replace(self.answers.clone());
        transcript
    }
}

/// How a simulator starts.
pub(crate) trait Simulates {
    fn simulator(transcript: Transcript<Told>, row_variables: usize) -> Self;
}

impl Simulates for Session<'_, Simulator> {
    fn simulator(transcript: Transcript<Told>, row_variables: usize) -> Self {
        let uniform = Nonces::new(&transcript.digest(), b"no witness").unwrap();
        let simulator = Simulator {
            uniform,
            proof: Vec::new(),
            oracle: transcript.oracle.clone(),
        };
        Self::new(transcript, row_variables, simulator)
    }
}

impl Channel for Simulator {
    type Oracle = Told;
    type Engine = Fast;
    type Closed = Simulated;

    fn commitment(
        &mut self,
        _: &str,
        _: impl FnOnce(&mut dyn ProverWitness) -> G1Projective,
    ) -> Result<G1Affine> {
        let mut point = G1Projective::ZERO;
        tables().h.add_multiple(&mut point, &self.uniform.draw());
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

    /// It chooses responses and challenge first: the points before them follow from the equations.
    fn mask(
        &mut self,
        length: usize,
        map: impl Fn(&[Fr]) -> Vec<Equation>,
        targets: &[Equation],
    ) -> Option<Mask> {
        let (vector, challenge) = (self.uniform.draw_many(length), self.uniform.draw());
        let mut images = map(&vector);
        let pairs = images.iter_mut().zip(targets);
        pairs.for_each(|(image, target)| image.add(target, -challenge));
        self.oracle.next.set(Some(challenge));
        Some(Mask { vector, images })
    }

    fn respond(&self, mask: Option<Mask>, _: Fr, _: Option<Vec<Fr>>) -> Option<Vec<Fr>> {
        mask.map(|mask| mask.vector)
    }

    fn folds(&self, responses: Vec<Fr>) -> Option<Box<dyn Folds>> {
        Some(Folding::boxed(responses))
    }

    fn claims(&mut self, kind: &str, name: Option<&dyn Display>, _: &[&Expr]) -> bool {
        claimed(kind, name)
    }

    fn close(self, _: &[Equation], _: Fr) -> Result<Simulated> {
        Ok(Simulated {
            proof: self.proof,
            answers: self.oracle.programmed.take(),
        })
    }
}
