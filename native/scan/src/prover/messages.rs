//! The prover's sums over the values of all messages, of which one linear combination is proved.
use ark_ff::AdditiveGroup;

use crate::group::Fr;

/// c_1 and c_2 of sum over the lower half of (a + X (a' - a)) (v + X (v' - v)), where a' and v' are in the upper half.
pub(crate) fn coefficients(factors: &[Fr], values: &[Fr]) -> [Fr; 2] {
    let keep = factors.len() / 2;
    let (mut linear, mut square) = (Fr::ZERO, Fr::ZERO);
    for x in 0..keep {
        let (da, dv) = (factors[keep + x] - factors[x], values[keep + x] - values[x]);
        linear += factors[x] * dv + da * values[x];
        square += da * dv;
    }
    [linear, square]
}
