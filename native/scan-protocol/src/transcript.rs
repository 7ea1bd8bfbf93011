//! The Fiat-Shamir transcript: `docs/scan/transcript.md`.
//!
//! A running SHA-256 value absorbs (kind, label, data), each with its length, so that no two sequences of
//! messages give the same input. A challenge hashes the value into 512 bits and becomes a message itself.
//!
//! ```
//! use ark_bn254::Fr;
//! use ragaudit_scan_protocol::transcript::Transcript;
//!
//! let mut transcript: Transcript = Transcript::new("example");
//! transcript.integer("capacity", 10);
//! let mut other = transcript.clone();
//! transcript.scalar("message", &Fr::from(1u8));
//! other.scalar("message", &Fr::from(2u8));
//! assert_ne!(transcript.challenge("point"), other.challenge("point"));
//! ```
use ragaudit_relation::field::from_wide;
use sha2::{Digest, Sha256};

use crate::group::{encode_point, encode_scalar, Fr, G1Affine};

const DOMAIN: &[u8] = b"rag-audit/scan/v1";

/// The kind of a message, which precedes it, so that bytes of one kind cannot be read as another.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Start = 0,
    Bytes = 1,
    Integer = 2,
    Scalar = 3,
    Point = 4,
    Challenge = 5,
}

/// The running value.
pub type State = [u8; 32];

/// The random oracle. Provers and verifiers use [`Hash`]; the simulators and malicious provers of the tests use an oracle
/// whose answers they choose.
pub trait Oracle: Clone {
    /// The oracle of a new transcript.
    fn start() -> Self;

    /// Adds a message to the state.
    fn absorb(&mut self, state: &mut State, kind: Kind, label: &str, data: &[u8]);

    /// Returns the challenge at `state`, which has already absorbed the request for it.
    fn answer(&mut self, state: &State, label: &str) -> Fr;
}

/// SHA-256.
#[derive(Clone)]
pub struct Hash;

impl Oracle for Hash {
    fn start() -> Self {
        Self
    }

    fn absorb(&mut self, state: &mut State, kind: Kind, label: &str, data: &[u8]) {
        let mut hash = Sha256::new();
        hash.update(*state);
        hash.update([kind as u8]);
        hash.update((label.len() as u64).to_le_bytes());
        hash.update(label);
        hash.update((data.len() as u64).to_le_bytes());
        hash.update(data);
        *state = hash.finalize().into();
    }

    /// A field element, within 2^-258 of uniform.
    fn answer(&mut self, state: &State, _: &str) -> Fr {
        let mut wide = [0; 64];
        for (half, out) in wide.chunks_exact_mut(32).enumerate() {
            let mut hash = Sha256::new();
            hash.update(state);
            hash.update([Kind::Challenge as u8, half as u8]);
            out.copy_from_slice(&hash.finalize());
        }
        from_wide(&wide)
    }
}

#[derive(Clone)]
pub struct Transcript<O = Hash> {
    state: State,
    pub oracle: O,
}

impl<O: Oracle> Transcript<O> {
    /// A transcript of the argument `protocol`.
    pub fn new(protocol: &str) -> Self {
        let mut transcript = Self {
            state: State::default(),
            oracle: O::start(),
        };
        transcript.absorb(Kind::Start, protocol, DOMAIN);
        transcript
    }

    fn absorb(&mut self, kind: Kind, label: &str, data: &[u8]) {
        self.oracle.absorb(&mut self.state, kind, label, data);
    }

    pub fn bytes(&mut self, label: &str, data: &[u8]) {
        self.absorb(Kind::Bytes, label, data);
    }

    pub fn integer(&mut self, label: &str, value: u64) {
        self.absorb(Kind::Integer, label, &value.to_le_bytes());
    }

    pub fn scalar(&mut self, label: &str, value: &Fr) {
        self.absorb(Kind::Scalar, label, &encode_scalar(value));
    }

    pub fn point(&mut self, label: &str, value: &G1Affine) {
        self.absorb(Kind::Point, label, &encode_point(value));
    }

    /// Each point as a message of its own.
    pub fn points<'p>(&mut self, label: &str, values: impl IntoIterator<Item = &'p G1Affine>) {
        let values = values.into_iter();
        values.for_each(|point| self.point(label, point));
    }

    /// The state, from which values that are not sent are derived: nonces and the weights of a batch.
    pub fn digest(&self) -> State {
        self.state
    }

    /// A field element, which becomes a message itself.
    pub fn challenge(&mut self, label: &str) -> Fr {
        self.absorb(Kind::Challenge, label, &[]);
        self.oracle.answer(&self.state, label)
    }

    pub fn challenges(&mut self, label: &str, count: usize) -> Vec<Fr> {
        (0..count).map(|_| self.challenge(label)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn challenge_after(messages: impl Fn(&mut Transcript)) -> Fr {
        let mut transcript: Transcript = Transcript::new("test");
        messages(&mut transcript);
        transcript.challenge("c")
    }

    #[test]
    fn every_part_of_a_message_moves_the_challenge() {
        let base = challenge_after(|t| t.bytes("a", b"bc"));
        assert_eq!(base, challenge_after(|t| t.bytes("a", b"bc")));
        assert_ne!(base, challenge_after(|t| t.bytes("ab", b"c")));
        assert_ne!(base, challenge_after(|t| t.bytes("a", b"bc\0")));
        assert_ne!(
            base,
            challenge_after(|t| {
                t.bytes("a", b"b");
                t.bytes("a", b"c");
            })
        );
        let one = 1u64;
        assert_ne!(
            challenge_after(|t| t.integer("a", one)),
            challenge_after(|t| t.bytes("a", &one.to_le_bytes()))
        );
        assert_ne!(
            Transcript::<Hash>::new("a").challenge("c"),
            Transcript::<Hash>::new("b").challenge("c")
        );
    }

    #[test]
    fn challenges_differ() {
        let mut transcript: Transcript = Transcript::new("test");
        let (a, b) = (transcript.challenge("c"), transcript.challenge("c"));
        assert_ne!(a, b);
    }
}
