//! The prover's private state in a run: nonces, and the openings of the points that it has sent. `docs/scan/session.md`.
use ark_ff::AdditiveGroup;
use ragaudit_field_simd::field::from_wide;
use sha2::{Digest, Sha256};
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::error::{Error, Result};
use crate::expr::Var;
use crate::group::{fixed_sum, tables, Fr, G1Projective, WIDTH};

/// Nonces: operating-system randomness hashed with witness and statement, so that a weak generator does not reveal them, and
/// one witness never repeats them.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct Nonces {
    pub(crate) key: [u8; 32],
    pub(crate) counter: u64,
}

impl Nonces {
    /// `statement` is the transcript's state after the whole statement.
    pub fn new(statement: &[u8; 32], witness: &[u8]) -> Result<Self> {
        let mut seed = [0u8; 64];
        getrandom::fill(&mut seed).map_err(|e| Error::Randomness(e.to_string()))?;
        Ok(Self::of(seed, statement, witness))
    }

    pub(crate) fn of(mut seed: [u8; 64], statement: &[u8; 32], witness: &[u8]) -> Self {
        let key = Sha256::new()
            .chain_update(b"rag-audit/scan/v1/nonces")
            .chain_update(seed)
            .chain_update(statement)
            .chain_update(witness)
            .finalize()
            .into();
        seed.zeroize();
        Self { key, counter: 0 }
    }

    /// Values that follow from a secret key: the same for the same key, domain and data.
    pub(crate) fn derived(key: &[u8; 32], domain: &[u8; 32], data: &[u8]) -> Self {
        let key = Sha256::new()
            .chain_update(domain)
            .chain_update(key)
            .chain_update(data)
            .finalize()
            .into();
        Self { key, counter: 0 }
    }

    pub fn draw(&mut self) -> Fr {
        let mut wide = [0u8; 64];
        for half in wide.chunks_exact_mut(32) {
            let hash = Sha256::new()
                .chain_update(self.key)
                .chain_update(self.counter.to_le_bytes());
            half.copy_from_slice(&hash.finalize());
            self.counter += 1;
        }
        let out = from_wide(&wide);
        wide.zeroize();
        out
    }

    pub fn draw_many(&mut self, count: usize) -> Vec<Fr> {
        (0..count).map(|_| self.draw()).collect()
    }
}

/// A prover's nonces and hidden values. Only the prover of a run has any.
pub struct Secrets {
    pub(crate) nonces: Nonces,
    /// Hidden values by slot; a message's unused places hold 0.
    pub(crate) values: Vec<Fr>,
    pub(crate) message_blindings: Vec<Fr>,
    /// Values that were sent singly, each with its blinding.
    pub(crate) singles: Vec<(Fr, Fr)>,
}

impl Drop for Secrets {
    fn drop(&mut self) {
        self.values.zeroize();
        self.message_blindings.zeroize();
        for (value, blinding) in &mut self.singles {
            value.zeroize();
            blinding.zeroize();
        }
    }
}

impl Secrets {
    pub(crate) fn new(nonces: Nonces) -> Self {
        Self {
            nonces,
            values: Vec::new(),
            message_blindings: Vec::new(),
            singles: Vec::new(),
        }
    }

    pub(crate) fn value(&self, var: Var) -> Fr {
        match var {
            Var::Message(slot) => self.values[slot],
            Var::Single(i) => self.singles[i].0,
        }
    }

    /// The next message: at most [`WIDTH`] values.
    pub(crate) fn message(&mut self, values: &[Fr]) -> G1Projective {
        let blinding = self.nonces.draw();
        let parts = tables().g.iter().zip(values);
        let sum = fixed_sum(parts.chain([(&tables().h, &blinding)]));
        self.values.extend(values);
        let whole = self.values.len().div_ceil(WIDTH) * WIDTH;
        self.values.resize(whole, Fr::ZERO);
        self.message_blindings.push(blinding);
        sum
    }

    /// The next single.
    pub(crate) fn single(&mut self, value: Fr) -> G1Projective {
        let pair = (value, self.nonces.draw());
        self.singles.push(pair);
        commit_single(pair)
    }
}

/// value U + blinding H.
pub(crate) fn commit_single((value, blinding): (Fr, Fr)) -> G1Projective {
    fixed_sum([(&tables().u, &value), (&tables().h, &blinding)])
}
