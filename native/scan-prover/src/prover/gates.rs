//! The gates of `ragaudit_scan_protocol::gates` on all lanes.
use ark_ff::{AdditiveGroup, Field};
use ragaudit_field_simd::lanes::Lanes;
use ragaudit_scan_protocol::gates::{Gate, Numbers};
use ragaudit_scan_protocol::prover::Sums;

use crate::group::Fr;
use crate::prover::rounds::{Kernel, Product, Square};
use crate::prover::sums;

/// A sumcheck of a gate over tables.
pub(crate) fn of_gate<'g>(
    gate: Gate<'g>,
    degree: usize,
    tau: &[Fr],
    tables: Vec<Vec<Fr>>,
) -> Box<dyn Sums + 'g> {
    match gate {
        Gate::Product => sums::of_gate(Product, degree, tau, tables),
        Gate::Square => sums::of_gate(Square, degree, tau, tables),
        Gate::Multiplied => sums::of_gate(Multiplied, degree, tau, tables),
        Gate::Choice => sums::of_gate(Choice, degree, tau, tables),
        Gate::Below { lead } => sums::of_gate(Below { lead }, degree, tau, tables),
        Gate::Selection { chi } => sums::of_gate(Selection { chi }, degree, tau, tables),
        Gate::Sampled { chi } => sums::of_gate(Sampled(Selection { chi }), degree, tau, tables),
        Gate::List { chi } => sums::of_gate(List { chi }, degree, tau, tables),
        Gate::Root { chi } => sums::of_gate(Root { chi }, degree, tau, tables),
        Gate::Weighed => sums::of_gate(Weighed, degree, tau, tables),
        Gate::Normaliser => sums::of_gate(Normaliser, degree, tau, tables),
        Gate::Numbers(numbers) => sums::of_gate(numbers, degree, tau, tables),
    }
}

/// The product of two tables less a third.
#[derive(Clone, Copy)]
pub(crate) struct Multiplied;

impl Kernel for Multiplied {
    type Tables<V: Copy> = [V; 3];
    type Nodes<W: Copy> = [W; 2];

    #[inline(always)]
    fn at<L: Lanes<Fr>>(&self, l: L, _: &[L::V], t: &[L::V]) -> L::V {
        l.weak(l.sub(l.mul(t[0], t[1]), t[2]))
    }
}

/// (2 c - 1) (T - t) - c - d for the tables c, T, t, d.
#[derive(Clone, Copy)]
pub(crate) struct Choice;

impl Kernel for Choice {
    type Tables<V: Copy> = [V; 4];
    type Nodes<W: Copy> = [W; 2];

    fn constants(&self) -> Vec<Fr> {
        vec![Fr::ONE]
    }

    #[inline(always)]
    fn at<L: Lanes<Fr>>(&self, l: L, one: &[L::V], v: &[L::V]) -> L::V {
        let sign = l.sub(l.add(v[0], v[0]), one[0]);
        let distance = l.mul(l.weak(sign), l.sub(v[1], v[2]));
        l.weak(l.sub(l.sub(distance, v[0]), v[3]))
    }
}

/// c (2 T - 1 + 2 x) - x - d for the tables c, x and d: the polynomial (2 c - 1) (T + x) - c - d plus T.
#[derive(Clone, Copy)]
pub(crate) struct Below {
    /// 2 T - 1.
    pub(crate) lead: Fr,
}

impl Kernel for Below {
    type Tables<V: Copy> = [V; 3];
    type Nodes<W: Copy> = [W; 2];

    fn constants(&self) -> Vec<Fr> {
        vec![self.lead]
    }

    #[inline(always)]
    fn at<L: Lanes<Fr>>(&self, l: L, lead: &[L::V], v: &[L::V]) -> L::V {
        let doubled = l.weak(l.add(l.add(v[1], v[1]), lead[0]));
        let product = l.mul(v[0], doubled);
        l.weak(l.sub(l.sub(product, v[1]), v[2]))
    }
}

/// t_3 ((2 b - 1) y - 1 + b - d) + chi b (b - t_3) for the tables b, y, d, and t_3, which is 1 up to the
/// capacity.
#[derive(Clone, Copy)]
pub(crate) struct Selection {
    pub(crate) chi: Fr,
}

impl Kernel for Selection {
    type Tables<V: Copy> = [V; 4];
    type Nodes<W: Copy> = [W; 3];

    fn constants(&self) -> Vec<Fr> {
        vec![self.chi, Fr::ONE]
    }

    #[inline(always)]
    fn at<L: Lanes<Fr>>(&self, l: L, c: &[L::V], t: &[L::V]) -> L::V {
        let (b, one) = (t[0], c[1]);
        let sign = l.weak(l.sub(l.add(b, b), one));
        let rest = l.weak(l.sub(l.sub(b, one), t[2]));
        let compare = l.add(l.mul(sign, t[1]), rest);
        let selected = l.mul(c[0], b);
        let sum = l.mac(l.wide(), t[3], compare);
        l.reduce(l.mac(sum, selected, l.sub(b, t[3])))
    }
}

/// Selection + chi^2 (t_4 t_5 - t_6): of the tables behind its own, the last is the product of the other two.
#[derive(Clone, Copy)]
pub(crate) struct Sampled(pub(crate) Selection);

impl Kernel for Sampled {
    type Tables<V: Copy> = [V; 7];
    type Nodes<W: Copy> = [W; 3];

    fn constants(&self) -> Vec<Fr> {
        let mut constants = self.0.constants();
        constants.push(self.0.chi.square());
        constants
    }

    #[inline(always)]
    fn at<L: Lanes<Fr>>(&self, l: L, c: &[L::V], t: &[L::V]) -> L::V {
        let selection = self.0.at(l, c, t);
        let lacking = l.weak(l.sub(l.mul(t[4], t[5]), t[6]));
        l.weak(l.add(selection, l.mul(c[2], lacking)))
    }
}

/// t (c + (1 - c) r k (1 - h)) - l + chi (h + (1 - h) l - a) for the tables c, r, k, h, l, a and t.
#[derive(Clone, Copy)]
pub(crate) struct List {
    pub(crate) chi: Fr,
}

impl Kernel for List {
    type Tables<V: Copy> = [V; 7];
    type Nodes<W: Copy> = [W; 5];

    fn constants(&self) -> Vec<Fr> {
        vec![self.chi, Fr::ONE]
    }

    #[inline(always)]
    fn at<L: Lanes<Fr>>(&self, l: L, c: &[L::V], t: &[L::V]) -> L::V {
        let undisclosed = l.sub(c[1], t[3]);
        let fresh = l.mul(l.mul(t[1], t[2]), undisclosed);
        let chosen = l.mul(l.sub(c[1], t[0]), fresh);
        let newly = l.mul(undisclosed, t[4]);
        let disclosing = l.sub(l.add(t[3], newly), t[5]);
        let sum = l.mac(l.wide(), l.add(t[0], chosen), t[6]);
        let sum = l.reduce(l.mac(sum, c[0], disclosing));
        l.weak(l.sub(sum, t[4]))
    }
}

/// R A + chi (R^2 V + s) + chi^2 (s + t - 2 R V - V) for the tables R, A, V, s and t.
#[derive(Clone, Copy)]
pub(crate) struct Root {
    pub(crate) chi: Fr,
}

impl Kernel for Root {
    type Tables<V: Copy> = [V; 5];
    type Nodes<W: Copy> = [W; 3];

    fn constants(&self) -> Vec<Fr> {
        vec![self.chi, self.chi.square()]
    }

    #[inline(always)]
    fn at<L: Lanes<Fr>>(&self, l: L, c: &[L::V], t: &[L::V]) -> L::V {
        let once = l.mul(t[0], t[2]);
        let below = l.weak(l.add(l.mul(t[0], once), t[3]));
        let slacks = l.weak(l.sub(l.add(t[3], t[4]), t[2]));
        let slacks = l.weak(l.sub(slacks, l.weak(l.add(once, once))));
        let sum = l.mac(l.wide(), t[0], t[1]);
        let sum = l.mac(sum, c[0], below);
        l.reduce(l.mac(sum, c[1], slacks))
    }
}

/// The product of three tables.
#[derive(Clone, Copy)]
pub(crate) struct Weighed;

impl Kernel for Weighed {
    type Tables<V: Copy> = [V; 3];
    type Nodes<W: Copy> = [W; 3];

    #[inline(always)]
    fn at<L: Lanes<Fr>>(&self, l: L, _: &[L::V], t: &[L::V]) -> L::V {
        l.mul(l.mul(t[0], t[1]), t[2])
    }
}

/// N (H + e L) + e r for the tables N, H, e, L, r.
#[derive(Clone, Copy)]
pub(crate) struct Normaliser;

impl Kernel for Normaliser {
    type Tables<V: Copy> = [V; 5];
    type Nodes<W: Copy> = [W; 3];

    #[inline(always)]
    fn at<L: Lanes<Fr>>(&self, l: L, _: &[L::V], t: &[L::V]) -> L::V {
        let weighed = l.add(t[1], l.mul(t[2], t[3]));
        let sum = l.mac(l.wide(), t[0], l.weak(weighed));
        l.reduce(l.mac(sum, t[2], t[4]))
    }
}

impl Kernel for Numbers<'_> {
    type Tables<V: Copy> = Vec<V>;
    type Nodes<W: Copy> = Vec<W>;

    fn constants(&self) -> Vec<Fr> {
        let factor = |a: &Fr| [Fr::ONE - a, a.double() - Fr::ONE];
        let points = self.points.iter().copied().flatten();
        let powers = self
            .of_terms
            .iter()
            .chain(self.of_bits.into_iter().flatten());
        powers.copied().chain(points.flat_map(factor)).collect()
    }

    #[inline(always)]
    fn at<L: Lanes<Fr>>(&self, l: L, constants: &[L::V], tables: &[L::V]) -> L::V {
        let (of_terms, constants) = constants.split_at(self.of_terms.len());
        let (of_bits, factors) = constants.split_at(self.of_bits.map_or(0, <[Fr]>::len));
        let (weights, tables) = tables.split_at(of_terms.len());
        let (eq, bits) = tables.split_at(usize::from(self.of_bits.is_some()));
        let mut sum = l.wide();
        for (i, (power, weight)) in of_terms.iter().zip(weights).enumerate() {
            let factors = factors[2 * i * bits.len()..].chunks_exact(2);
            let mut product = *power;
            for (b, f) in bits.iter().zip(factors) {
                product = l.mul(product, l.add(f[0], l.mul(f[1], *b)));
            }
            sum = l.mac(sum, *weight, product);
        }
        if let [eq] = eq {
            let mut squares = l.wide();
            for (power, b) in of_bits.iter().zip(bits) {
                squares = l.mac(squares, *power, l.weak(l.sub(l.square(*b), *b)));
            }
            sum = l.mac(sum, *eq, l.reduce(squares));
        }
        l.reduce(sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prover::rounds::tests::agree;
    use ark_ff::UniformRand;
    use ragaudit_field_simd::lanes::Portable;

    /// A kernel stays within its bounds, gives the same results on all lanes, and equals its gate in every place.
    fn is_the_gate<K: Kernel + Copy>(kernel: K, gate: Gate, degree: usize, tables: usize) {
        let mut rng = ark_std::test_rng();
        let constants = kernel.constants();
        for _ in 0..5 {
            let values: Vec<Fr> = (0..tables).map(|_| Fr::rand(&mut rng)).collect();
            let loaded: Vec<_> = values.iter().map(|v| Portable.splat(v)).collect();
            let constants: Vec<_> = constants.iter().map(|c| Portable.splat(c)).collect();
            let mut actual = Fr::ZERO;
            let place = kernel.at(Portable, &constants, &loaded);
            Portable.store(place, |_, x| actual = x);
            assert_eq!(actual, gate.at(&values));
        }
        agree(kernel, degree, tables);
    }

    #[test]
    fn kernels_are_their_gates() {
        let chi = Fr::from(1u128 << 100);
        is_the_gate(Product, Gate::Product, 2, 2);
        is_the_gate(Square, Gate::Square, 2, 1);
        is_the_gate(Multiplied, Gate::Multiplied, 2, 3);
        is_the_gate(Choice, Gate::Choice, 2, 4);
        let lead = -Fr::ONE;
        is_the_gate(Below { lead }, Gate::Below { lead }, 2, 3);
        let selection = Selection { chi };
        is_the_gate(selection, Gate::Selection { chi }, 3, 4);
        is_the_gate(Sampled(selection), Gate::Sampled { chi }, 3, 7);
        is_the_gate(List { chi }, Gate::List { chi }, 5, 7);
        is_the_gate(Root { chi }, Gate::Root { chi }, 3, 5);
        is_the_gate(Weighed, Gate::Weighed, 3, 3);
        is_the_gate(Normaliser, Gate::Normaliser, 3, 5);
    }

    #[test]
    fn kernels_of_numbers_are_their_gates() {
        let mut rng = ark_std::test_rng();
        let random: Vec<Fr> = (0..30).map(|_| Fr::rand(&mut rng)).collect();
        for of_bits in [None, Some(&random[20..23])] {
            let numbers = Numbers {
                points: vec![&random[..3], &random[3..6]],
                of_terms: &random[10..12],
                of_bits,
            };
            let tables = 2 + usize::from(of_bits.is_some()) + 3;
            is_the_gate(&numbers, Gate::Numbers(&numbers), 4, tables);
        }
    }
}
