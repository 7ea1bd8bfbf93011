//! The Fiat-Shamir transcript: `docs/scan/transcript.md`.
//!
//! A running SHA-256 value absorbs (kind, label, data), each with its length, so that no two sequences of
//! messages give the same input. A challenge hashes the value into 512 bits and becomes a message itself.
use ragaudit_core::field::from_wide;
use sha2::{Digest, Sha256};

use crate::group::{encode_point, encode_scalar, Fr, G1Affine};
use crate::hooks::{Hooks, Party};

const DOMAIN: &[u8] = b"rag-audit/scan/v1";

/// What stands before a message, so that bytes of one kind cannot be read as another.
#[derive(Clone, Copy)]
enum Kind {
    Start = 0,
    Bytes = 1,
    Integer = 2,
    Scalar = 3,
    Point = 4,
    Challenge = 5,
}

#[derive(Clone)]
pub struct Transcript {
    state: [u8; 32],
    pub(crate) party: Party,
}

impl Transcript {
    /// A transcript of the argument `protocol`.
    pub fn new(protocol: &str) -> Self {
        let mut transcript = Self {
            state: [0; 32],
            party: Party::start(),
        };
        transcript.step(Kind::Start, protocol, DOMAIN);
        transcript
    }

    fn step(&mut self, kind: Kind, label: &str, data: &[u8]) {
        if !self.party.hears(kind as u8, label, data.len()) {
            return;
        }
        let mut hash = Sha256::new();
        hash.update(self.state);
        hash.update([kind as u8]);
        hash.update((label.len() as u64).to_le_bytes());
        hash.update(label);
        hash.update((data.len() as u64).to_le_bytes());
        hash.update(data);
        self.state = hash.finalize().into();
        self.party.heard(&self.state);
    }

    pub fn bytes(&mut self, label: &str, data: &[u8]) {
        self.step(Kind::Bytes, label, data);
    }

    pub fn integer(&mut self, label: &str, value: u64) {
        self.step(Kind::Integer, label, &value.to_le_bytes());
    }

    pub fn scalar(&mut self, label: &str, value: &Fr) {
        self.step(Kind::Scalar, label, &encode_scalar(value));
    }

    pub fn point(&mut self, label: &str, value: &G1Affine) {
        self.step(Kind::Point, label, &encode_point(value));
    }

    /// The state, to derive what is not sent: nonces and the weights of a batch.
    pub(crate) fn digest(&self) -> [u8; 32] {
        self.state
    }

    fn squeeze(&mut self, label: &str) -> [u8; 64] {
        self.step(Kind::Challenge, label, &[]);
        let mut wide = [0; 64];
        for (half, out) in wide.chunks_exact_mut(32).enumerate() {
            let mut hash = Sha256::new();
            hash.update(self.state);
            hash.update([Kind::Challenge as u8, half as u8]);
            out.copy_from_slice(&hash.finalize());
        }
        wide
    }

    /// A field element, within 2^-258 of uniform.
    pub fn challenge(&mut self, label: &str) -> Fr {
        if let Some(answer) = self.party.answer(&self.state, label) {
            self.step(Kind::Challenge, label, &[]);
            return answer;
        }
        from_wide(&self.squeeze(label))
    }

    /// Decides what the oracle answers next, where the party may.
    pub(crate) fn program(&mut self, answer: Fr) {
        self.party.program(self.state, answer);
    }

    pub fn challenges(&mut self, label: &str, count: usize) -> Vec<Fr> {
        (0..count).map(|_| self.challenge(label)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn challenge_after(messages: impl Fn(&mut Transcript)) -> Fr {
        let mut transcript = Transcript::new("test");
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
            Transcript::new("a").challenge("c"),
            Transcript::new("b").challenge("c")
        );
    }

    #[test]
    fn challenges_differ() {
        let mut transcript = Transcript::new("test");
        let (a, b) = (transcript.challenge("c"), transcript.challenge("c"));
        assert_ne!(a, b);
    }
}
