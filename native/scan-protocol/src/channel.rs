//! What the parties to a run do differently: `docs/scan/session.md`.
use std::fmt::Display;

use crate::engine::Engine;
use crate::equation::Equation;
use crate::error::{Error, Result};
use crate::expr::Expr;
use crate::group::{Fr, G1Affine, G1Projective};
use crate::prover::{Folds, Knows};
use crate::transcript::{Oracle, Transcript};

/// One party's side of a run. The protocols are written once, for any of them: a prover sends what
/// [`Verifier`](crate::verifier::Verifier) receives. The provers' tests have two more, a simulator and a cheat.
pub trait Channel: Sized {
    /// What hashes the run's messages and answers its challenges.
    type Oracle: Oracle;
    /// What takes most of a verifier's time, as this party computes it.
    type Engine: Engine;
    /// What a closed run leaves: a proof, or the equation that has to hold.
    type Closed;

    /// What a prover knows; nobody else does.
    fn secrets(&self) -> Option<&dyn Knows> {
        None
    }

    fn secrets_mut(&mut self) -> Option<&mut dyn Knows> {
        None
    }

    /// A hiding commitment: the prover makes it, of secrets.
    fn commitment(
        &mut self,
        label: &str,
        make: impl FnOnce(&mut dyn Knows) -> G1Projective,
    ) -> Result<G1Affine>;

    /// A point that is already made, by whoever sends it.
    fn point(&mut self, label: &str, point: Option<G1Projective>) -> Result<G1Affine>;

    /// A scalar in the clear.
    fn scalar(&mut self, scalar: Option<Fr>) -> Result<Fr>;

    /// What Schnorr's protocol starts from, of whoever sends its points: one vector of this length, and what `map` makes
    /// of it. `targets` are what it makes of the secret one.
    fn mask(
        &mut self,
        length: usize,
        map: impl Fn(&[Fr]) -> Vec<Equation>,
        targets: &[Equation],
    ) -> Option<Mask>;

    /// The responses of that protocol at its challenge.
    fn respond(
        &self,
        mask: Option<Mask>,
        challenge: Fr,
        secret: Option<Vec<Fr>>,
    ) -> Option<Vec<Fr>>;

    /// Such responses, to be folded with their generators, of whoever sends what is folded.
    fn folds(&self, _responses: Vec<Fr>) -> Option<Box<dyn Folds>> {
        None
    }

    /// What a prover knows does not hold: an honest one makes no proof of it.
    fn refuse(&self, what: String) -> Result<()> {
        Err(Error::Unsatisfied(what))
    }

    /// Whether it makes a claim of the run about these values, as every party but a cheating one does. One without a name of
    /// its own has that of the message before it.
    fn claims(&mut self, _kind: &str, _name: Option<&dyn Display>, _about: &[&Expr]) -> bool {
        true
    }

    /// Ends the run: `equations` have to hold, all at once under powers of `weight`.
    fn close(self, equations: &[Equation], weight: Fr) -> Result<Self::Closed>;
}

/// A vector, and what a linear map makes of it.
pub struct Mask {
    pub vector: Vec<Fr>,
    pub images: Vec<Equation>,
}

/// The channel of a party that ends with a proof.
pub trait Proves: Channel<Closed: Into<Vec<u8>>> {
    /// `transcript` has absorbed the whole statement; `witness` is all that determines the private values.
    fn start(transcript: &Transcript<Self::Oracle>, witness: &[u8]) -> Result<Self>;
}

/// The channel of a party that reads a proof and ends with an equation.
pub trait Verifies<'p>: Channel<Closed: Into<Equation>> {
    fn start(proof: &'p [u8]) -> Self;
}
