//! Schnorr's protocol for linear relations, which ends every run: `docs/scan/closing.md`.
use ark_ff::Field;

use crate::channel::Channel;
use crate::equation::Equation;
use crate::error::Result;
use crate::group::{Fr, G1Affine};
use crate::session::Session;

/// The messages before the responses, and the prover's values for the responses.
pub struct Committed {
    /// The image of the mask.
    pub points: Vec<G1Affine>,
    pub challenge: Fr,
    pub responses: Option<Vec<Fr>>,
}

impl<C: Channel> Session<'_, C> {
    /// Schnorr's protocol for a linear relation: one vector x with map(x) = targets, each an equation's left side.
    /// Masks map(m), a challenge c, responses m + c x. `index` are the points behind the equations' index factors.
    pub fn prove_linear(
        &mut self,
        label: &'static str,
        length: usize,
        secret: Option<Vec<Fr>>,
        map: impl Fn(&[Fr]) -> Vec<Equation>,
        targets: &[Equation],
        index: &[G1Affine],
    ) -> Result<Vec<Equation>> {
        let sent = self.mask(label, length, secret, &map, targets, index)?;
        let mut responses = Vec::with_capacity(length);
        for k in 0..length {
            let response = sent.responses.as_ref().map(|x| x[k]);
            responses.push(self.response(label, response)?);
        }
        let mut equations = map(&responses);
        for ((equation, target), point) in equations.iter_mut().zip(targets).zip(sent.points) {
            equation.add(target, -sent.challenge);
            equation.points.push((point, -Fr::ONE));
        }
        Ok(equations)
    }

    /// The part of [`Self::prove_linear`] before the responses are sent.
    pub fn mask(
        &mut self,
        label: &'static str,
        length: usize,
        secret: Option<Vec<Fr>>,
        map: &impl Fn(&[Fr]) -> Vec<Equation>,
        targets: &[Equation],
        index: &[G1Affine],
    ) -> Result<Committed> {
        let mask = self.channel.mask(length, map, targets);
        let mut points = Vec::with_capacity(targets.len());
        for k in 0..targets.len() {
            let point = mask
                .as_ref()
                .map(|m| m.images[k].evaluate::<C::Engine>(index));
            points.push(self.point(label, point)?);
        }
        let challenge = self.challenge(label);
        let responses = self.channel.respond(mask, challenge, secret);
        Ok(Committed {
            points,
            challenge,
            responses,
        })
    }
}
