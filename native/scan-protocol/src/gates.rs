//! The summands of sumchecks: functions of several tables' values in one place. A verifier evaluates none of them; it checks
//! each at one point as products of hidden values. This module has them for provers, and for the protocols' definitions.
use ark_ff::{AdditiveGroup, Field};

use crate::group::Fr;

/// A gate over tables t_0, t_1, ..
#[derive(Clone, Copy)]
pub enum Gate<'g> {
    /// t_0 t_1.
    Product,
    /// t_0^2.
    Square,
    /// t_0 t_1 - t_2.
    Multiplied,
    /// (2 c - 1) (T - t) - c - d for the tables c, T, t, d.
    Choice,
    /// c (lead + 2 x) - x - d for the tables c, x, d, with lead = 2 T - 1: the polynomial (2 c - 1) (T + x) - c - d plus T.
    Below { lead: Fr },
    /// s ((2 b - 1) y - 1 + b - d) + chi b (b - s) for the tables b, y, d, s; s is 1 up to the capacity.
    Selection { chi: Fr },
    /// The same + chi^2 (t_4 t_5 - t_6): of the tables behind its own, the last is the product of the other two.
    Sampled { chi: Fr },
    /// t (c + (1 - c) r k (1 - h)) - l + chi (h + (1 - h) l - a) for the tables c, r, k, h, l, a, t.
    List { chi: Fr },
    /// R A + chi (R^2 V + s) + chi^2 (s + t - 2 R V - V) for the tables R, A, V, s, t.
    Root { chi: Fr },
    /// t_0 t_1 t_2.
    Weighed,
    /// N (H + e L) + e r for the tables N, H, e, L, r.
    Normaliser,
    /// [`Numbers`].
    Numbers(&'g Numbers<'g>),
}

/// sum over terms of power_i weight_i prod over bits of (1 - at_(i,k) + b_k (2 at_(i,k) - 1)), and with `of_bits` e sum
/// over bits of power_k (b_k^2 - b_k), for the tables weight_i, e, b_k.
pub struct Numbers<'a> {
    pub points: Vec<&'a [Fr]>,
    pub of_terms: &'a [Fr],
    pub of_bits: Option<&'a [Fr]>,
}

impl Gate<'_> {
    /// The gate of the tables' values in one place.
    pub fn at(&self, t: &[Fr]) -> Fr {
        let one = Fr::ONE;
        let selection = |chi: &Fr| {
            let sign = t[0].double() - one;
            t[3] * (sign * t[1] - one + t[0] - t[2]) + *chi * t[0] * (t[0] - t[3])
        };
        match self {
            Self::Product => t[0] * t[1],
            Self::Square => t[0].square(),
            Self::Multiplied => t[0] * t[1] - t[2],
            Self::Choice => (t[0].double() - one) * (t[1] - t[2]) - t[0] - t[3],
            Self::Below { lead } => t[0] * (*lead + t[1].double()) - t[1] - t[2],
            Self::Selection { chi } => selection(chi),
            Self::Sampled { chi } => selection(chi) + chi.square() * (t[4] * t[5] - t[6]),
            Self::List { chi } => {
                let undisclosed = one - t[3];
                let winner = t[0] + (one - t[0]) * t[1] * t[2] * undisclosed;
                t[6] * winner - t[4] + *chi * (t[3] + undisclosed * t[4] - t[5])
            }
            Self::Root { chi } => {
                let once = t[0] * t[2];
                let slacks = t[3] + t[4] - once.double() - t[2];
                t[0] * t[1] + *chi * (t[0] * once + t[3]) + chi.square() * slacks
            }
            Self::Weighed => t[0] * t[1] * t[2],
            Self::Normaliser => t[0] * (t[1] + t[2] * t[3]) + t[2] * t[4],
            Self::Numbers(numbers) => numbers.at(t),
        }
    }
}

impl Numbers<'_> {
    fn at(&self, t: &[Fr]) -> Fr {
        let (weights, rest) = t.split_at(self.of_terms.len());
        let (eq, bits) = rest.split_at(usize::from(self.of_bits.is_some()));
        let mut sum = Fr::ZERO;
        for ((power, weight), point) in self.of_terms.iter().zip(weights).zip(&self.points) {
            let factor = |(b, a): (&Fr, &Fr)| Fr::ONE - a + *b * (a.double() - Fr::ONE);
            sum += *power * weight * bits.iter().zip(*point).map(factor).product::<Fr>();
        }
        if let (Some(powers), [eq]) = (self.of_bits, eq) {
            let square = |(power, b): (&Fr, &Fr)| *power * (b.square() - b);
            sum += *eq * powers.iter().zip(bits).map(square).sum::<Fr>();
        }
        sum
    }
}
