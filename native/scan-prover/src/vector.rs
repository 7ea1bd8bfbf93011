//! The prover's values of the part from sums of rows to a query's vector: `docs/scan/embed.md`.
use ragaudit_field_simd::commitment::NIBBLES_PER_ELEMENT;
use ragaudit_scan_protocol::vector::{slack, Bounds, Columns, Private, LIMB_BITS, ROOT_SHIFT};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::error::{Error, Result};
use crate::group::Fr;
use crate::index::COMPONENT;
use crate::nibbles::NIBBLE_VARIABLES;
use crate::numbers::{from_small, pad, power_of_two};
use crate::prover::columns::count;

/// The values of a vector and of its columns.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub(crate) struct Witness {
    pub(crate) sums: Vec<i64>,
    pub(crate) components: Vec<i64>,
    pub(crate) root: i64,
    /// 2^16 sum e_j^2 - w^2.
    pub(crate) rest: i64,
    /// 2 A e_j - (2 v_j - 1) w and (2 v_j + 1) w - 2 A e_j, with their slack.
    pub(crate) distances: [Vec<i64>; 2],
}

/// The prover's claims about its columns and values, which the constraints bind to them.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub(crate) struct Claimed {
    /// At the random point: e, v and w v.
    pub(crate) at_point: [Vec<i64>; 3],
    pub(crate) packed: Vec<i64>,
    /// The components with squares that are summed.
    pub(crate) squared: Vec<i64>,
    /// w^2.
    pub(crate) root_squared: i64,
    /// 2 w - rest.
    pub(crate) lacking: i64,
}

impl Claimed {
    pub(crate) fn of(witness: &Witness) -> Self {
        let (v, w) = (&witness.components, witness.root);
        let product = v.iter().map(|v| v * w).collect();
        Self {
            at_point: [witness.sums.clone(), v.clone(), product],
            packed: v.clone(),
            squared: witness.sums.clone(),
            root_squared: w * w,
            lacking: 2 * w - witness.rest,
        }
    }

    pub(crate) fn private(&self) -> Private<'_> {
        Private {
            at_point: &self.at_point,
            squared: &self.squared,
        }
    }
}

impl Witness {
    /// # Errors
    /// Sums that are all zero.
    pub(crate) fn new(sums: Vec<i64>, norm_factor: u64, bounds: &Bounds) -> Result<Self> {
        let square = sums.iter().map(|e| e * e).sum::<i64>() << ROOT_SHIFT;
        let root = square.isqrt();
        if root == 0 {
            return Err(Error::Unsatisfied(
                "the rows of the tokens sum to zero".to_owned(),
            ));
        }
        let factor = 2 * norm_factor as i64;
        let component = |e: &i64| {
            let maximum = i64::from(COMPONENT);
            // Divided by 2 w without a division: how many of its multiples there are, up to the largest that counts.
            let numerator = factor * e.abs() + root;
            let magnitude: i64 = (1..=maximum)
                .map(|k| i64::from(numerator >= 2 * k * root))
                .sum();
            e.signum() * magnitude
        };
        let mut witness = Self {
            components: sums.iter().map(component).collect(),
            sums,
            root,
            rest: square - root * root,
            distances: [Vec::new(), Vec::new()],
        };
        witness.measure(factor, bounds.scaled);
        Ok(witness)
    }

    pub(crate) fn measure(&mut self, factor: i64, scaled: i64) {
        let pairs = self.sums.iter().zip(&self.components).map(|(e, v)| {
            let [lower, upper] = slack(*v, scaled);
            [
                factor * e - (2 * v - 1) * self.root + lower,
                (2 * v + 1) * self.root - factor * e + upper,
            ]
        });
        let (lower, upper) = pairs.map(|[a, b]| (a, b)).unzip();
        self.distances = [lower, upper];
    }

    /// The values of the columns, each of 2^variables components.
    pub(crate) fn columns(&self, variables: usize, bounds: &Bounds) -> Columns<Vec<i64>> {
        let vector = pad(&self.components, variables);
        let (lower_slack, upper_slack) = vector
            .iter()
            .map(|v| slack(*v, bounds.scaled).into())
            .unzip();
        // Places after the last component: e = v = 0, so both distances are w - 1.
        let [lower, upper] = self.distances.each_ref().map(|distance| {
            let mut distance = distance.clone();
            distance.resize(1 << variables, self.root - 1);
            let limb = |k| distance.iter().map(|d| limb(*d, k, bounds.limbs)).collect();
            (0..bounds.limbs).map(limb).collect::<Vec<Vec<i64>>>()
        });
        Columns {
            sums: pad(&self.sums, variables),
            vector,
            lower_slack,
            upper_slack,
            lower,
            upper,
        }
    }

    /// All limbs that are looked up.
    pub(crate) fn limbs(
        &self,
        columns: &Columns<Vec<i64>>,
        claimed: &Claimed,
        bounds: &Bounds,
    ) -> Zeroizing<Vec<i64>> {
        let mut limbs = Zeroizing::new(self.root_limbs(claimed, bounds));
        limbs.extend(columns.lower.iter().chain(&columns.upper).flatten());
        limbs
    }

    /// How often each row of the table of steps is looked up.
    pub(crate) fn steps(columns: &Columns<Vec<i64>>) -> Vec<i64> {
        let mut steps = vec![0; 1 << NIBBLE_VARIABLES];
        let vector = columns.vector.iter();
        vector.for_each(|v| count(&mut steps, v + i64::from(COMPONENT)));
        steps
    }

    /// w - 1, the remainder under the root, and the difference between 2 w and the remainder.
    fn root_limbs(&self, claimed: &Claimed, bounds: &Bounds) -> Vec<i64> {
        [self.root - 1, self.rest, claimed.lacking]
            .into_iter()
            .flat_map(|v| (0..bounds.limbs).map(move |k| limb(v, k, bounds.limbs)))
            .collect()
    }

    /// The hidden values in the order of the protocol.
    pub(crate) fn hidden(&self, claimed: &Claimed, bounds: &Bounds) -> Vec<Fr> {
        let root = self.root_limbs(claimed, bounds);
        let mut out: Vec<Fr> = root.into_iter().map(from_small).collect();
        out.push(from_small(claimed.root_squared));
        let packed = |run: &[i64]| {
            let place = |(i, v): (usize, &i64)| from_small(*v) * power_of_two(4 * i);
            run.iter().enumerate().map(place).sum::<Fr>()
        };
        out.extend(claimed.packed.chunks(NIBBLES_PER_ELEMENT).map(packed));
        out
    }
}

/// The last limb has the whole rest; a rest that is too large then has no row in the table of limbs.
fn limb(x: i64, k: usize, limbs: usize) -> i64 {
    let rest = x >> (LIMB_BITS * k);
    if k + 1 < limbs {
        rest & ((1 << LIMB_BITS) - 1)
    } else {
        rest
    }
}
