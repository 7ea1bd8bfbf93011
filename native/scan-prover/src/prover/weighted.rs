//! The prover's sums of tables that are each multiplied by eq of a point, or by another table.
use ark_ff::{AdditiveGroup, Field};
use ragaudit_field_simd::lanes::Lanes;
use ragaudit_scan_protocol::prover::Weighting;

use crate::group::Fr;
use crate::mle::{entries, Weights};
use crate::prover::rounds::{weight_runs, Kernel, Product, Rounds, Weighing, BLOCK};

/// The factor of a table: eq of a point in the lowest variables, 0 at the other variables' values above 0, or another table.
pub(crate) enum Factor {
    Eq(Vec<Fr>),
    Table(Vec<Fr>),
}

impl Factor {
    pub(crate) fn of(weighting: Weighting) -> Self {
        let weight = match weighting {
            Weighting::Table(table) => return Self::Table(table),
            Weighting::Weight(weight) => weight,
        };
        match weight.coefficients[..] {
            [c] if c == Fr::ONE && weight.items == 1 << weight.point.len() => {
                Self::Eq(weight.point.clone())
            }
            _ => Self::Table(entries(weight)),
        }
    }
}

/// A table without a factor.
#[derive(Clone, Copy)]
pub(crate) struct Single;

impl Kernel for Single {
    type Tables<V: Copy> = [V; 1];
    type Nodes<W: Copy> = [W; 2];

    #[inline(always)]
    fn at<L: Lanes<Fr>>(&self, _: L, _: &[L::V], t: &[L::V]) -> L::V {
        t[0]
    }
}

/// One table with its factor.
pub(crate) enum Weighted<L: Lanes<Fr>> {
    Eq {
        l: L,
        rounds: Rounds<L, Vec<Vec<Fr>>, Single>,
        /// The coordinates left, the lowest variable's last; eq of those bound; and eq of those above the lowest.
        left: Vec<Fr>,
        bound: Fr,
        weights: Weights,
    },
    Table {
        rounds: Rounds<L, Vec<Vec<Fr>>, Product>,
        ones: Vec<L::V>,
        blocks: Vec<Fr>,
    },
}

impl<L: Lanes<Fr>> Weighted<L> {
    pub(crate) fn new(l: L, variables: usize, weighting: Factor, table: Vec<Fr>) -> Self {
        match weighting {
            Factor::Eq(mut point) => {
                point.resize(variables, Fr::ZERO);
                let weights = Weights::new(point.get(1..).unwrap_or_default());
                point.reverse();
                Self::Eq {
                    l,
                    rounds: Rounds::new(l, Single, 2, vec![table]),
                    left: point,
                    bound: Fr::ONE,
                    weights,
                }
            }
            Factor::Table(weighting) => {
                let blocks = vec![Fr::ONE; weighting.len().max(table.len()).div_ceil(2 * BLOCK)];
                Self::Table {
                    rounds: Rounds::new(l, Product, 2, vec![weighting, table]),
                    ones: weight_runs(l, &[Fr::ONE; BLOCK]),
                    blocks,
                }
            }
        }
    }

    /// The sums with the lowest variable at 1 and 2.
    pub(crate) fn sums(&mut self) -> [Fr; 2] {
        match self {
            Self::Eq {
                l,
                rounds,
                left,
                bound,
                weights,
            } => {
                let runs = weight_runs(*l, &weights.low);
                let sums = rounds.sums(Weighing {
                    runs: &runs,
                    outer: Some(&weights.high),
                });
                let p = left.last().copied().unwrap_or_default();
                let three = p.double() + p;
                [*bound * p * sums[0], *bound * (three - Fr::ONE) * sums[1]]
            }
            Self::Table {
                rounds,
                ones,
                blocks,
            } => {
                let sums = rounds.sums(Weighing {
                    runs: ones,
                    outer: Some(blocks),
                });
                [sums[0], sums[1]]
            }
        }
    }

    pub(crate) fn bind(&mut self, r: Fr) {
        match self {
            Self::Eq {
                rounds,
                left,
                bound,
                weights,
                ..
            } => {
                let p = left.pop().unwrap_or_default();
                *bound *= (Fr::ONE - p) * (Fr::ONE - r) + p * r;
                weights.bind();
                rounds.bind(r);
            }
            Self::Table { rounds, .. } => rounds.bind(r),
        }
    }

    pub(crate) fn value(&self) -> Fr {
        let table = match self {
            Self::Eq { rounds, .. } => rounds.values().pop(),
            Self::Table { rounds, .. } => rounds.values().pop(),
        };
        table.and_then(|t| t.first().copied()).unwrap_or_default()
    }
}
