//! Multilinear extensions on all lanes: tables of eq stored as products, and the weights of columns' entries.
use ark_ff::{AdditiveGroup, Field};
use ragaudit_field_simd::dispatch;
use ragaudit_field_simd::lanes::Lanes;
use rayon::prelude::*;

pub use ragaudit_scan_protocol::mle::*;

use crate::small;
use ragaudit_scan_protocol::group::Fr;

/// eq(point, x) for all x, stored as a product: low_(x mod size) high_(x / size).
pub(crate) struct Weights {
    point: Vec<Fr>,
    pub(crate) low: Vec<Fr>,
    pub(crate) high: Vec<Fr>,
}

/// Variables of the low factor: between these while there are as many.
const LOW: usize = 9;
const MINIMUM: usize = 4;

/// eq over the variables above the lowest, if there is one.
pub(crate) fn fold(weights: &mut Vec<Fr>) {
    let keep = weights.len() / 2;
    if keep > 0 {
        for x in 0..keep {
            weights[x] = weights[2 * x] + weights[2 * x + 1];
        }
        weights.truncate(keep);
    }
}

impl Weights {
    pub(crate) fn new(point: &[Fr]) -> Self {
        let (low, high) = point.split_at(LOW.min(point.len()));
        Self {
            point: point.to_vec(),
            low: eq_table(low),
            high: eq_table(high),
        }
    }

    /// eq over the variables above the lowest, if there is one.
    pub(crate) fn bind(&mut self) {
        if self.point.is_empty() {
            return;
        }
        self.point.remove(0);
        if self.low.len() > 1 << MINIMUM || self.high.len() == 1 {
            fold(&mut self.low);
        } else {
            *self = Self::new(&self.point);
        }
    }

    /// The first `count` entries.
    pub(crate) fn prefix(&self, count: usize) -> Vec<Fr> {
        let mut out = vec![Fr::ZERO; count];
        out.par_chunks_mut(self.low.len())
            .zip(&self.high)
            .for_each(|(run, outer)| {
                run.iter_mut()
                    .zip(&self.low)
                    .for_each(|(out, inner)| *out = *inner * outer);
            });
        out
    }

    /// The sum of eq(point, x) values_x.
    pub(crate) fn dot(&self, values: &[i64]) -> Fr {
        values
            .par_chunks(self.low.len())
            .zip(&self.high)
            .map(|(run, outer)| small::dot(run, &self.low) * outer)
            .sum()
    }
}

/// Binds the highest variable of a table.
pub(crate) fn bind_highest(table: &mut Vec<Fr>, r: Fr) {
    let keep = table.len() / 2;
    let (low, high) = table.split_at_mut(keep);
    dispatch!(l => bind_on(l, low, high, r));
    table.truncate(keep);
}

/// low + r (high - low) in the place of low.
#[inline(always)]
fn bind_on<L: Lanes<Fr>>(l: L, low: &mut [Fr], high: &[Fr], r: Fr) {
    let factor = l.splat(&r);
    let (mut runs, highs) = (low.chunks_exact_mut(L::N), high.chunks_exact(L::N));
    let rest = highs.remainder();
    for (low, high) in runs.by_ref().zip(highs) {
        let a = l.load(|i| &low[i]);
        let step = l.mul(factor, l.sub(l.load(|i| &high[i]), a));
        l.store(l.add(a, step), |i, x| low[i] = x);
    }
    for (low, high) in runs.into_remainder().iter_mut().zip(rest) {
        *low += r * (*high - *low);
    }
}

/// The weights of all entries that weigh something, from the first.
pub(crate) fn entries(weight: &Weight) -> Vec<Fr> {
    let eq = Weights::new(&weight.point).prefix(weight.items);
    let stride = weight.coefficients.len();
    if let [coefficient] = weight.coefficients[..] {
        if coefficient == Fr::ONE {
            return eq;
        }
    }
    let mut out = vec![Fr::ZERO; weight.items * stride];
    out.par_chunks_mut(stride)
        .zip(&eq)
        .with_min_len(1 << LOW)
        .for_each(|(run, e)| {
            for (w, c) in run.iter_mut().zip(&weight.coefficients) {
                *w = *e * c;
            }
        });
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use ark_ff::UniformRand;
    use ragaudit_field_simd::lanes::{tracked::Tracked, Portable};

    #[test]
    fn the_highest_variable_is_bound() {
        let mut rng = ark_std::test_rng();
        for count in [1, 8, 19] {
            let [low, high]: [Vec<Fr>; 2] =
                [(); 2].map(|()| (0..count).map(|_| Fr::rand(&mut rng)).collect());
            let r = Fr::rand(&mut rng);
            let plain: Vec<Fr> = low
                .iter()
                .zip(&high)
                .map(|(l, h)| *l + r * (*h - l))
                .collect();
            let mut actual = [low.clone(), low.clone(), low];
            bind_on(Portable, &mut actual[0], &high, r);
            bind_on(Tracked, &mut actual[1], &high, r);
            dispatch!(l => bind_on(l, &mut actual[2], &high, r));
            assert!(actual.iter().all(|f| *f == plain));
        }
    }

    #[test]
    fn products_of_tables_are_the_tables() {
        let mut rng = ark_std::test_rng();
        let point: Vec<Fr> = (0..11).map(|_| Fr::rand(&mut rng)).collect();
        let (table, weights) = (eq_table(&point), Weights::new(&point));
        assert_eq!(weights.prefix(1500), table[..1500]);
        let values: Vec<i64> = (0..1500).map(|x| x * x - 999).collect();
        let sum = values
            .iter()
            .zip(&table)
            .map(|(v, e)| crate::numbers::from_small(*v) * e);
        assert_eq!(weights.dot(&values), sum.sum());
        let weight = Weight {
            point,
            coefficients: vec![Fr::from(3u8), -Fr::ONE],
            items: 1500,
        };
        let all: Vec<Fr> = (table[..1500].iter())
            .flat_map(|e| [*e * Fr::from(3u8), -*e])
            .collect();
        assert_eq!(entries(&weight), all);
    }
}
