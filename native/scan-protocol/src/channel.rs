//! The steps that differ between the parties of a run: `docs/scan/session.md`.
use std::fmt::Display;

use crate::engine::Engine;
use crate::equation::Equation;
use crate::error::{Error, Result};
use crate::expr::Expr;
use crate::group::{Fr, G1Affine, G1Projective};
use crate::prover::{Folds, ProverWitness};
use crate::transcript::{Oracle, Transcript};

/// One party's side of a run. Each protocol is written once, for all parties: a prover sends the messages that
/// [`Verifier`](crate::verifier::Verifier) receives. The provers' tests have two more parties, a simulator and a malicious
/// prover.
pub trait Channel: Sized {
    /// Hashes the run's messages and computes its challenges.
    type Oracle: Oracle;
    /// The arithmetic that dominates a verifier's time, as this party computes it.
    type Engine: Engine;
    /// The result of a closed run: a proof, or the equation that must hold.
    type Closed;

    /// The prover's secrets; None for every other party.
    fn secrets(&self) -> Option<&dyn ProverWitness> {
        None
    }

    fn secrets_mut(&mut self) -> Option<&mut dyn ProverWitness> {
        None
    }

    /// A hiding commitment, which the prover computes from secrets.
    fn commitment(
        &mut self,
        label: &str,
        make: impl FnOnce(&mut dyn ProverWitness) -> G1Projective,
    ) -> Result<G1Affine>;

    /// A point that the sender has already computed.
    fn point(&mut self, label: &str, point: Option<G1Projective>) -> Result<G1Affine>;

    /// A scalar in the clear.
    fn scalar(&mut self, scalar: Option<Fr>) -> Result<Fr>;

    /// The first messages of Schnorr's protocol, from the party that sends: one random vector of this length, and its image
    /// under `map`. `targets` is the image of the secret vector.
    fn mask(
        &mut self,
        length: usize,
        map: impl Fn(&[Fr]) -> Vec<Equation>,
        targets: &[Equation],
    ) -> Option<Mask>;

    /// The responses of Schnorr's protocol to its challenge.
    fn respond(
        &self,
        mask: Option<Mask>,
        challenge: Fr,
        secret: Option<Vec<Fr>>,
    ) -> Option<Vec<Fr>>;

    /// The prover's responses, which it folds together with their generators.
    fn folds(&self, _responses: Vec<Fr>) -> Option<Box<dyn Folds>> {
        None
    }

    /// The prover's values do not satisfy a claim. An honest prover then makes no proof.
    fn refuse(&self, what: String) -> Result<()> {
        Err(Error::Unsatisfied(what))
    }

    /// Whether the party makes this claim about these values. Only a malicious prover omits claims. A claim without a name has
    /// the name of the message before it.
    fn claims(&mut self, _kind: &str, _name: Option<&dyn Display>, _about: &[&Expr]) -> bool {
        true
    }

    /// Ends the run: all `equations` must hold, summed under powers of `weight`.
    fn close(self, equations: &[Equation], weight: Fr) -> Result<Self::Closed>;
}

/// A vector, and its image under a linear map.
pub struct Mask {
    pub vector: Vec<Fr>,
    pub images: Vec<Equation>,
}

/// The channel of a party that produces a proof.
pub trait Proves: Channel<Closed: Into<Vec<u8>>> {
    /// `transcript` has absorbed the whole statement; `witness` is the data that determines the private values.
    fn start(transcript: &Transcript<Self::Oracle>, witness: &[u8]) -> Result<Self>;
}

/// The channel of a party that reads a proof and produces an equation.
pub trait Verifies<'p>: Channel<Closed: Into<Equation>> {
    fn start(proof: &'p [u8]) -> Self;
}
