//! The prover's sums over the values of all messages, for the proof of one linear combination.
use ark_ff::AdditiveGroup;
use ragaudit_scan_protocol::prover::Messages;

use crate::group::Fr;
use crate::mle::bind_highest;

/// The values by slot, up to a power of two.
pub(crate) struct Values(pub(crate) Vec<Fr>);

impl Messages for Values {
    /// The coefficients of the sum over the lower half of (a + X (a' - a)) (v + X (v' - v)), with a' and v' in the upper half.
    fn coefficients(&self, factors: &[Fr]) -> [Fr; 2] {
        let (values, keep) = (&self.0, factors.len() / 2);
        let (mut linear, mut square) = (Fr::ZERO, Fr::ZERO);
        for x in 0..keep {
            let (da, dv) = (factors[keep + x] - factors[x], values[keep + x] - values[x]);
            linear += factors[x] * dv + da * values[x];
            square += da * dv;
        }
        [linear, square]
    }

    fn bind(&mut self, r: Fr) {
        bind_highest(&mut self.0, r);
    }
}
