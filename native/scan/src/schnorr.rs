//! Schnorr's protocol for linear relations, which ends every run: `docs/scan/closing.md`.
use ark_ff::Field;

use crate::equation::Equation;
use crate::error::Result;
use crate::group::{Fr, G1Affine};
use crate::hooks::Simulator;
use crate::session::{Role, Session};

impl Session<'_> {
    /// Schnorr's protocol for a linear relation: one vector x with map(x) = targets, each an equation's left side.
    /// Masks map(m), a challenge c, responses m + c x. `index` are the points behind the equations' index factors.
    pub(crate) fn prove_linear(
        &mut self,
        label: &'static str,
        length: usize,
        secret: Option<Vec<Fr>>,
        map: impl Fn(&[Fr]) -> Vec<Equation>,
        targets: &[Equation],
        index: &[G1Affine],
    ) -> Result<Vec<Equation>> {
        let (sent, c, known) = self.mask(label, length, secret, &map, targets, index)?;
        let mut responses = Vec::with_capacity(length);
        for k in 0..length {
            responses.push(self.response(label, known.as_ref().map(|x| x[k]))?);
        }
        let mut equations = map(&responses);
        for ((equation, target), point) in equations.iter_mut().zip(targets).zip(sent) {
            equation.add(target, -c);
            equation.points.push((point, -Fr::ONE));
        }
        Ok(equations)
    }

    /// The part of [`Self::prove_linear`] before the responses are sent: the masks' points, the challenge, and the
    /// responses for whoever sends them.
    pub(crate) fn mask(
        &mut self,
        label: &'static str,
        length: usize,
        secret: Option<Vec<Fr>>,
        map: &impl Fn(&[Fr]) -> Vec<Equation>,
        targets: &[Equation],
        index: &[G1Affine],
    ) -> Result<(Vec<G1Affine>, Fr, Option<Vec<Fr>>)> {
        // Uniform, and so are the responses, whatever is secret: sums of points with these factors may take their time.
        let masks = self
            .prover_mut()
            .map(|prover| prover.nonces.draw_many(length));
        let masked = masks.as_ref().map(|masks| map(masks));
        let simulated = self.simulated(length + 1);
        let masked = masked.or_else(|| {
            let responses = simulated.as_ref()?;
            let (c, x) = responses.split_last()?;
            let mut masked = map(x);
            masked
                .iter_mut()
                .zip(targets)
                .for_each(|(m, t)| m.add(t, -*c));
            Some(masked)
        });
        let mut sent = Vec::with_capacity(targets.len());
        for k in 0..targets.len() {
            let point = masked.as_ref().map(|m| m[k].evaluate(index));
            sent.push(self.send_point(label, point)?);
        }
        if let Some(answer) = simulated.as_ref().and_then(|s| s.last()) {
            self.transcript.program(*answer);
        }
        let c = self.challenge(label);
        let known: Option<Vec<Fr>> = match (&masks, &secret) {
            (Some(masks), Some(secret)) => {
                Some(masks.iter().zip(secret).map(|(m, x)| *m + c * x).collect())
            }
            _ => None,
        };
        let known = known.or(simulated);
        Ok((sent, c, known))
    }

    /// Uniform values, for a simulator alone.
    fn simulated(&mut self, count: usize) -> Option<Vec<Fr>> {
        match &mut self.role {
            Role::Simulator(simulator) => Some(simulator.draw(count)),
            _ => None,
        }
    }
}
