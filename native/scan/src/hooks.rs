//! Where a party of a run may differ from an honest one: the tests' cheats and simulator. `docs/scan/session.md`.
//!
//! Every build but the tests' has [`Honest`], whose hooks do nothing, and in which nobody can be a simulator.
use std::convert::Infallible;
use std::fmt::Display;

use crate::group::{Fr, G1Projective};

/// What a party does beside the protocol. A transcript has one; what is said of a thread's run is said to the type.
pub trait Hooks: Clone {
    /// Who knows no secret, and decides what the random oracle answers.
    type Simulator: Simulator;

    /// Starts a transcript.
    fn start() -> Self;

    /// A message is about to be hashed, or a challenge to be drawn: whether it is.
    fn hears(&self, _kind: u8, _label: &str, _length: usize) -> bool {
        true
    }

    /// The state after a message.
    fn heard(&self, _state: &[u8; 32]) {}

    /// What the oracle answers at a state, if not what the hash says.
    fn answer(&self, _state: &[u8; 32], _label: &str) -> Option<Fr> {
        None
    }

    /// Decides what it answers at a state.
    fn program(&mut self, _state: [u8; 32], _answer: Fr) {}

    /// The operating system's randomness, of which nonces are made.
    fn randomness(_seed: &mut [u8; 64]) {}

    /// A point as it is sent.
    fn point(_label: &str, point: G1Projective) -> G1Projective {
        point
    }

    /// Whether a claim is made. One without a name of its own has that of the message before it.
    fn claims(_kind: &str, _name: Option<&dyn Display>) -> bool {
        true
    }
}

/// Uniform values, and what was sent.
pub trait Simulator {
    fn draw(&mut self, count: usize) -> Vec<Fr>;
    fn out(&mut self) -> &mut Vec<u8>;
}

/// A prover or verifier that does what the protocol says.
#[derive(Clone)]
pub struct Honest;

impl Hooks for Honest {
    type Simulator = Nobody;

    fn start() -> Self {
        Self
    }
}

/// There is no such value.
#[allow(dead_code)] // in tests, which have somebody
pub struct Nobody(Infallible);

impl Simulator for Nobody {
    fn draw(&mut self, _: usize) -> Vec<Fr> {
        match self.0 {}
    }

    fn out(&mut self) -> &mut Vec<u8> {
        match self.0 {}
    }
}

/// The only place in which the tests' protocol is not what ships.
#[cfg(not(test))]
pub type Party = Honest;
#[cfg(test)]
pub type Party = crate::cheat::Cheat;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::tables;

    #[test]
    fn an_honest_party_changes_nothing() {
        let mut party = Honest::start();
        party.program([1; 32], Fr::from(3u64));
        assert_eq!(party.answer(&[1; 32], "noise"), None);
        assert!((0..=5).all(|kind| party.hears(kind, "noise", 32)));
        assert!(Honest::claims("constraint", None) && Honest::claims("link", Some(&0)));
        let mut seed = [9; 64];
        Honest::randomness(&mut seed);
        assert_eq!(seed, [9; 64]);
        let point = G1Projective::from(tables().u.point);
        assert_eq!(Honest::point("noise", point), point);
    }
}
