//! Multilinear extensions. Variable 0 is the lowest bit of an index, everywhere.
use ark_ff::{AdditiveGroup, Field};
use ragaudit_core::dispatch;
use ragaudit_core::lanes::Lanes;
use rayon::prelude::*;

use crate::group::Fr;
use crate::small;

/// eq(point, x) for every x of the cube.
pub fn eq_table(point: &[Fr]) -> Vec<Fr> {
    let mut table = Vec::with_capacity(1 << point.len());
    table.push(Fr::ONE);
    for p in point {
        let half = table.len();
        for i in 0..half {
            let high = table[i] * p;
            table[i] -= high;
            table.push(high);
        }
    }
    table
}

/// eq(point, x) for all x, kept as a product: low_(x mod size) high_(x / size).
pub(crate) struct Weights {
    point: Vec<Fr>,
    pub(crate) low: Vec<Fr>,
    pub(crate) high: Vec<Fr>,
}

/// Variables of the low factor: between these while there are as many.
const LOW: usize = 9;
const LEAST: usize = 4;

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
        if self.low.len() > 1 << LEAST || self.high.len() == 1 {
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

/// The extension of a table at a point.
pub fn evaluate(table: &[Fr], point: &[Fr]) -> Fr {
    debug_assert_eq!(table.len(), 1 << point.len());
    table.iter().zip(eq_table(point)).map(|(t, e)| *t * e).sum()
}

/// eq(point, x) for one x of the cube.
pub fn eq_at(point: &[Fr], x: usize) -> Fr {
    let bit = |(k, p): (usize, &Fr)| if x >> k & 1 == 1 { *p } else { Fr::ONE - p };
    point.iter().enumerate().map(bit).product()
}

/// sum over x < count of eq(point, x).
pub fn prefix(point: &[Fr], count: usize) -> Fr {
    Weight {
        point: point.to_vec(),
        coefficients: vec![Fr::ONE],
        items: count,
    }
    .evaluate_sum()
}

/// sum over x < count of x eq(point, x).
pub fn prefix_numbers(point: &[Fr], count: usize) -> Fr {
    if count >> point.len() > 0 {
        return point.iter().rev().fold(Fr::ZERO, |acc, p| acc.double() + p);
    }
    // Of the bits so far: the sums of eq and of x eq below count's, and of x eq over all.
    let (mut below, mut numbers, mut all) = (Fr::ZERO, Fr::ZERO, Fr::ZERO);
    for (k, p) in point.iter().enumerate() {
        let high = Fr::from(1u64 << k) * p;
        (below, numbers) = match count >> k & 1 {
            1 => (
                Fr::ONE - p + *p * below,
                (Fr::ONE - p) * all + high * below + *p * numbers,
            ),
            _ => ((Fr::ONE - p) * below, (Fr::ONE - p) * numbers),
        };
        all += high;
    }
    numbers
}

/// A public linear functional on a column: entry `stride i + o` weighs eq(point, i) coefficients_o for i below
/// `items`, with stride the number of coefficients; every other entry weighs nothing.
///
/// With one coefficient 1 and all items it is the evaluation at `point`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Weight {
    pub point: Vec<Fr>,
    pub coefficients: Vec<Fr>,
    pub items: usize,
}

impl Weight {
    pub fn evaluation(point: &[Fr]) -> Self {
        Self {
            point: point.to_vec(),
            coefficients: vec![Fr::ONE],
            items: 1 << point.len(),
        }
    }

    /// The weights of all entries that weigh something, from the first.
    pub(crate) fn entries(&self) -> Vec<Fr> {
        let eq = Weights::new(&self.point).prefix(self.items);
        let stride = self.coefficients.len();
        if let [coefficient] = self.coefficients[..] {
            if coefficient == Fr::ONE {
                return eq;
            }
        }
        let mut out = vec![Fr::ZERO; self.items * stride];
        out.par_chunks_mut(stride)
            .zip(&eq)
            .with_min_len(1 << LOW)
            .for_each(|(run, e)| {
                for (w, c) in run.iter_mut().zip(&self.coefficients) {
                    *w = *e * c;
                }
            });
        out
    }

    fn evaluate_sum(&self) -> Fr {
        let digit = |_: usize, _: usize| Fr::ONE;
        self.walk(self.point.len() + 1, digit)
    }

    /// The extension of [`Weight::table`] at `at`, in O(variables stride): n = stride i + o is read from the
    /// lowest bit upwards by an automaton whose state is the carry and whether i's bits so far are below items'.
    pub fn evaluate(&self, at: &[Fr]) -> Fr {
        let digit = |k: usize, bit: usize| match (at.get(k), bit) {
            (Some(x), 1) => *x,
            (Some(x), _) => Fr::ONE - x,
            (None, 0) => Fr::ONE,
            (None, _) => Fr::ZERO,
        };
        self.walk(at.len().max(self.point.len() + 1), digit)
    }

    fn walk(&self, steps: usize, digit: impl Fn(usize, usize) -> Fr) -> Fr {
        let stride = self.coefficients.len();
        let mut states: Vec<[Fr; 2]> = self.coefficients.iter().map(|c| [*c, Fr::ZERO]).collect();
        for k in 0..steps {
            let mut next = vec![[Fr::ZERO; 2]; stride];
            let of_items = self.items >> k & 1;
            for (carry, weights) in states.iter().enumerate() {
                for bit in 0..=usize::from(k < self.point.len()) {
                    let chosen = match (self.point.get(k), bit) {
                        (Some(p), 1) => *p,
                        (Some(p), _) => Fr::ONE - p,
                        (None, _) => Fr::ONE,
                    };
                    let value = stride * bit + carry;
                    let factor = chosen * digit(k, value & 1);
                    for (below, weight) in weights.iter().enumerate() {
                        let now = if bit == of_items {
                            below
                        } else {
                            usize::from(bit < of_items)
                        };
                        next[value >> 1][now] += factor * weight;
                    }
                }
            }
            states = next;
        }
        states[0][1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ark_ff::UniformRand;
    use ragaudit_core::lanes::{tracked::Tracked, Portable};

    fn point(n: usize) -> Vec<Fr> {
        let mut rng = ark_std::test_rng();
        (0..n).map(|_| Fr::rand(&mut rng)).collect()
    }

    #[test]
    fn table_and_single_values_agree() {
        let p = point(5);
        let table = eq_table(&p);
        assert!((0..32).all(|x| table[x] == eq_at(&p, x)));
        for count in [0, 1, 7, 31, 32] {
            assert_eq!(prefix(&p, count), table[..count].iter().sum::<Fr>());
            let numbers = (0..)
                .zip(&table[..count])
                .map(|(x, e)| Fr::from(x as u64) * e);
            assert_eq!(prefix_numbers(&p, count), numbers.sum::<Fr>());
        }
    }

    #[test]
    fn weights_are_evaluated_without_their_table() {
        for (bits, variables, stride, items) in [
            (5, 5, 1, 32),
            (5, 7, 1, 20),
            (4, 6, 3, 16),
            (4, 6, 5, 11),
            (6, 9, 6, 64),
            (3, 8, 5, 0),
        ] {
            let weight = Weight {
                point: point(bits),
                coefficients: point(stride + 1)[1..].to_vec(),
                items,
            };
            let at = point(variables + 3)[3..].to_vec();
            let mut table = weight.entries();
            table.resize(1 << variables, Fr::ZERO);
            assert_eq!(weight.evaluate(&at), evaluate(&table, &at));
        }
    }

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
            let mut found = [low.clone(), low.clone(), low];
            bind_on(Portable, &mut found[0], &high, r);
            bind_on(Tracked, &mut found[1], &high, r);
            dispatch!(l => bind_on(l, &mut found[2], &high, r));
            assert!(found.iter().all(|f| *f == plain));
        }
    }
}
