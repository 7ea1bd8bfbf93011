//! The layers of a lookup's tree on the prover's side, from the leaves up, and the sums of each: `docs/scan/lookup.md`.
use ark_ff::{AdditiveGroup, Field};
use ragaudit_field_simd::dispatch;
use ragaudit_field_simd::lanes::Lanes;
use ragaudit_scan_protocol::digits::{all_variables, of_coordinate, table, Digit};
use ragaudit_scan_protocol::prover::{Recomputed, Round, Sums, Tree};

use crate::group::Fr;
use crate::lookup::BELOW;
use crate::numbers::half;
use crate::prover::digits::{bind, gate_sums};
use crate::prover::fractional_sumcheck::{
    above, nodes, spread, Again, Apart, Cross, Layer, Leaves, Stored, LEAST, NOT_STORED,
};
use crate::prover::polynomials::{coefficients, of_degree_two};
use crate::prover::rounds::Kernel;
use crate::prover::sums::at_zero;
use crate::prover::Known;

/// All layers, or all but the lowest ones where memory is low.
pub(crate) struct Layers<'a> {
    leaves: Leaves<'a>,
    /// The layers, from the lowest stored one.
    layers: Vec<Layer>,
    how: Recomputed,
}

impl<'a> Layers<'a> {
    /// With `low_memory` the prover recomputes leaves when it needs them.
    pub(crate) fn new(
        leaves: Leaves<'a>,
        known: &Known,
        depth: usize,
        low_memory: Option<Recomputed>,
    ) -> Self {
        let (mut layers, mut height) = (Vec::new(), 0);
        if let Some(how) = low_memory.filter(|_| leaves.bits >= BELOW) {
            height = NOT_STORED;
            let mut lowest = Layer::default();
            let [p, q] = leaves.sizes().map(|n| n >> height);
            lowest.p.reserve_exact(p);
            lowest.q.reserve_exact(q);
            for run in leaves.runs(how.run) {
                let Layer { p, q } = leaves.layer_at(known, height, run);
                lowest.p.extend(p);
                lowest.q.extend(q);
            }
            layers.push(lowest);
        } else {
            layers.push(leaves.layer(known, 0..leaves.blocks.len()));
        }
        for k in (0..depth - height).rev() {
            let below = &layers[layers.len() - 1];
            let mut next = above(&below.p, &below.q);
            if 1 << k == leaves.of {
                next.p = spread(&next.p, &leaves.blocks, leaves.of, Fr::ZERO);
                next.q = spread(&next.q, &leaves.blocks, leaves.of, Fr::ONE);
            }
            layers.push(next);
        }
        let how = low_memory.unwrap_or(LEAST);
        Self {
            leaves,
            layers,
            how,
        }
    }
}

impl Tree for Layers<'_> {
    /// The root is let go.
    fn root(&mut self) -> Fr {
        self.layers.pop().map_or(Fr::ONE, |root| root.q[0])
    }

    /// The layer is let go.
    fn descend(&mut self, height: usize, mu: Fr, digits: [&[Digit]; 2]) -> Box<dyn Sums + '_> {
        let stored = match self.layers.pop() {
            Some(layer) => Stored::Layer(layer),
            None => Stored::Again(&self.leaves, height),
        };
        let leaves = &self.leaves;
        dispatch!(l => Box::new(OfLayer::new(l, leaves, stored, mu, digits, self.how)))
    }
}

/// sum over x of (weight of x under the digits) (g(2x) q(2x+1) + g(2x+1) q(2x)).
struct OfLayer<'l, L: Lanes<Fr>> {
    l: L,
    leaves: &'l Leaves<'l>,
    /// The digits of the rounds over digits, and of the rounds over coordinates above them.
    digits: Vec<Digit>,
    weighed: Vec<Digit>,
    /// Variables within a block, each a digit; those above them number the blocks.
    within: usize,
    point: Vec<Fr>,
    /// The data of the layer: while its blocks are separate, stored or recomputed; when each block has one node, all blocks in
    /// one table.
    apart: Option<Apart<L>>,
    again: Option<Again<'l>>,
    whole: Option<Vec<Vec<Fr>>>,
}

/// The factor of the gate of [`Cross`], as an additional table before its own.
struct Masked;

impl Kernel for Masked {
    type Tables<V: Copy> = [V; 5];
    type Nodes<W: Copy> = [W; 3];

    #[inline(always)]
    fn at<L: Lanes<Fr>>(&self, l: L, constants: &[L::V], t: &[L::V]) -> L::V {
        l.mul(t[0], Cross.at(l, constants, &t[1..]))
    }
}

impl<'l, L: Lanes<Fr>> OfLayer<'l, L> {
    fn new(
        l: L,
        leaves: &'l Leaves<'l>,
        stored: Stored<'l>,
        mu: Fr,
        [digits, weighed]: [&[Digit]; 2],
        how: Recomputed,
    ) -> Self {
        let of_blocks = leaves.of.trailing_zeros() as usize;
        let all = [digits, weighed].concat();
        let within = all_variables(&all).saturating_sub(of_blocks);
        let mut sums = Self {
            l,
            leaves,
            digits: digits.to_vec(),
            weighed: weighed.to_vec(),
            within,
            point: Vec::with_capacity(all.len()),
            apart: None,
            again: None,
            whole: None,
        };
        let weigh = || {
            let weights = table(&all[within..]);
            let outer: Vec<Fr> = leaves.blocks.iter().map(|b| weights[*b]).collect();
            (table(&all[1..within]), outer)
        };
        match stored {
            Stored::Layer(layer) if within > 0 => {
                let (inner, outer) = weigh();
                sums.apart = Some(Apart::new(l, layer, mu, inner, outer, within));
            }
            Stored::Layer(layer) => sums.whole = Some(sums.placed(nodes(&layer, mu))),
            Stored::Again(leaves, height) => {
                let (inner, outer) = weigh();
                sums.again = Some(Again {
                    leaves,
                    height,
                    mu,
                    inner,
                    outer,
                    within,
                    how,
                });
            }
        }
        sums
    }

    /// Nodes of the stored blocks in the places of all.
    fn placed(&self, nodes: Vec<Vec<Fr>>) -> Vec<Vec<Fr>> {
        let Leaves { blocks, of, .. } = self.leaves;
        let variables = all_variables(&self.digits) + all_variables(&self.weighed);
        if variables < of.trailing_zeros() as usize {
            return nodes;
        }
        let place = |entries: &Vec<Fr>| spread(entries, blocks, *of, Fr::ONE);
        nodes.iter().map(place).collect()
    }

    /// A round within the blocks, at 1 and 2.
    fn apart(&mut self, known: &Known) -> [Fr; 2] {
        if let Some(apart) = &mut self.apart {
            return apart.sums();
        }
        let again = self.again.as_ref().expect("what holds the layer");
        let (sums, bound) = again.sums(self.l, known, &self.point);
        self.apart = bound;
        sums
    }

    /// A round over all blocks, at 1, 2, ..
    fn whole(&mut self, digit: &Digit) -> Vec<Fr> {
        if let Some(apart) = self.apart.take() {
            self.whole = Some(self.placed(apart.nodes()));
        }
        let (i, m) = (self.point.len(), digit.len());
        if i == self.digits.len() {
            // From here on the weights of the digits are a table like the others.
            let tables = self.whole.iter_mut();
            tables.for_each(|tables| tables.insert(0, table(&self.weighed)));
        }
        let tables = self.whole.as_deref().expect("what holds the layer");
        let count = tables[0].len() / m;
        if i < self.digits.len() {
            let above = [&self.digits[i + 1..], &self.weighed[..]].concat();
            return gate_sums(&Cross, tables, &table(&above), m, 2 * (m - 1));
        }
        let each = half().pow([u64::from(count.trailing_zeros())]);
        gate_sums(&Masked, tables, &vec![each; count], m, 3)
    }
}

impl<L: Lanes<Fr>> Sums for OfLayer<'_, L> {
    fn coefficients(&mut self, round: &Round) -> Vec<Fr> {
        if self.point.len() < self.within {
            let [one, two] = self.apart(&round.known);
            return of_degree_two(at_zero(round, &[one, two]), one, two).to_vec();
        }
        let mut values = self.whole(round.digit);
        values.insert(0, at_zero(round, &values));
        coefficients(&values)
    }

    fn bind(&mut self, s: Fr) {
        let i = self.point.len();
        self.point.push(s);
        if let Some(apart) = &mut self.apart {
            apart.bind(s);
        }
        if let Some(tables) = &mut self.whole {
            let half = of_coordinate(half());
            let digit = self.digits.get(i).unwrap_or(&half);
            tables.iter_mut().for_each(|t| *t = bind(t, digit, s));
        }
    }

    /// g and q of the two children.
    fn finals(&self) -> Vec<Fr> {
        let apart = self.apart.as_ref().map(|apart| self.placed(apart.nodes()));
        let nodes = apart.as_ref().or(self.whole.as_ref());
        let nodes = nodes.expect("what holds the layer");
        let first = nodes.len() - 4;
        nodes[first..].iter().map(|t| t[0]).collect()
    }
}
