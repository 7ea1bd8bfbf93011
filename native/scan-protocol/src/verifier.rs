//! The verifier's side of a run: it reads a proof. `docs/scan/session.md`.
use std::marker::PhantomData;

use ark_ff::Field;

use crate::channel::{Channel, Mask, Verifies};
use crate::engine::{Engine, Plain};
use crate::equation::Equation;
use crate::error::{Error, Result};
use crate::group::{decode_each, decode_scalar, Fr, G1Affine, G1Projective, ENCODED, NO_POINT};
use crate::prover::ProverWitness;
use crate::transcript::{Hash, Oracle};

/// A party that has a proof, and knows only public values.
pub struct Verifier<'p, O = Hash, E = Plain> {
    proof: Reader<'p>,
    kinds: PhantomData<(O, E)>,
}

impl<'p, O: Oracle, E: Engine> Verifies<'p> for Verifier<'p, O, E> {
    fn start(proof: &'p [u8]) -> Self {
        Self {
            proof: Reader::new(proof),
            kinds: PhantomData,
        }
    }
}

impl<O: Oracle, E: Engine> Channel for Verifier<'_, O, E> {
    type Oracle = O;
    type Engine = E;
    type Closed = Equation;

    fn commitment(
        &mut self,
        _: &str,
        _: impl FnOnce(&mut dyn ProverWitness) -> G1Projective,
    ) -> Result<G1Affine> {
        self.proof.point::<E>()
    }

    fn point(&mut self, _: &str, _: Option<G1Projective>) -> Result<G1Affine> {
        self.proof.point::<E>()
    }

    fn scalar(&mut self, _: Option<Fr>) -> Result<Fr> {
        self.proof.scalar()
    }

    fn mask(
        &mut self,
        _: usize,
        _: impl Fn(&[Fr]) -> Vec<Equation>,
        _: &[Equation],
    ) -> Option<Mask> {
        None
    }

    fn respond(&self, _: Option<Mask>, _: Fr, _: Option<Vec<Fr>>) -> Option<Vec<Fr>> {
        None
    }

    fn close(self, equations: &[Equation], weight: Fr) -> Result<Equation> {
        self.proof.end()?;
        let mut sum = Equation::default();
        let mut power = Fr::ONE;
        for equation in equations {
            sum.add(equation, power);
            power *= weight;
        }
        Ok(sum)
    }
}

/// Proof bytes still to be read.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    /// The points that the words from `first` on encode.
    decoded: Vec<Option<G1Affine>>,
    first: usize,
}

/// The number of words that are decoded at once. Words that encode no point are decoded too, and their result is not used.
const DECODED: usize = 64;

impl<'a> Reader<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            at: 0,
            decoded: Vec::new(),
            first: 0,
        }
    }

    fn take(&mut self) -> Result<[u8; ENCODED]> {
        let end = self.at + ENCODED;
        let slice = self.bytes.get(self.at..end).ok_or(Error::Malformed {
            at: self.at,
            reason: "the proof ends early",
        })?;
        self.at = end;
        let mut out = [0; ENCODED];
        out.copy_from_slice(slice);
        Ok(out)
    }

    fn point<E: Engine>(&mut self) -> Result<G1Affine> {
        let at = self.at;
        self.take()?;
        if (at - self.first) / ENCODED >= self.decoded.len() {
            let (words, _) = self.bytes[at..].as_chunks();
            self.decoded = decode_each::<E>(&words[..words.len().min(DECODED)]);
            self.first = at;
        }
        self.decoded[(at - self.first) / ENCODED].ok_or(Error::Malformed {
            at,
            reason: NO_POINT,
        })
    }

    fn scalar(&mut self) -> Result<Fr> {
        let at = self.at;
        decode_scalar(&self.take()?).ok_or(Error::Malformed {
            at,
            reason: "this is not a canonical scalar",
        })
    }

    fn end(&self) -> Result<()> {
        if self.at == self.bytes.len() {
            return Ok(());
        }
        Err(Error::Malformed {
            at: self.at,
            reason: "there are bytes after the proof's end",
        })
    }
}
