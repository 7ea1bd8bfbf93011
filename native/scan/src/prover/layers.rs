//! The layers of a lookup's tree on the prover's side, from the leaves up, and the sums of each: `docs/scan/lookup.md`.
use ark_ff::{AdditiveGroup, Field};
use ragaudit_argument::prover::{Round, Sums, Tree};
use ragaudit_core::dispatch;
use ragaudit_core::lanes::Lanes;

use crate::group::Fr;
use crate::mle::{eq_table, Weights};
use crate::prover::fractions::{
    above, nodes, spread, weighed, Again, Apart, Cross, Layer, Leaves, Stored, BLOCK, NOT_KEPT, RUN,
};
use crate::prover::polynomials::of_degree_two;
use crate::prover::rounds::Rounds;
use crate::prover::sums::at_zero;
use crate::prover::Known;

/// All layers, or all but the lowest ones where memory is low.
pub(crate) struct Layers<'a> {
    leaves: Leaves<'a>,
    /// From the lowest that is kept.
    layers: Vec<Layer>,
    /// Blocks of leaves that are made at a time.
    size: usize,
}

impl<'a> Layers<'a> {
    /// In `low_memory` leaves are made again where they are needed, so many blocks at a time.
    pub(crate) fn new(
        leaves: Leaves<'a>,
        known: &Known,
        depth: usize,
        low_memory: Option<usize>,
    ) -> Self {
        let (mut layers, mut kept) = (Vec::new(), 0);
        if let Some(size) = low_memory.filter(|_| leaves.bits == BLOCK) {
            kept = NOT_KEPT;
            let mut lowest = Layer::default();
            let [p, q] = leaves.sizes().map(|n| n >> kept);
            lowest.p.reserve_exact(p);
            lowest.q.reserve_exact(q);
            for run in leaves.runs(size) {
                let Layer { p, q } = leaves.layer_at(known, kept, run);
                lowest.p.extend(p);
                lowest.q.extend(q);
            }
            layers.push(lowest);
        } else {
            layers.push(leaves.layer(known, 0..leaves.blocks.len()));
        }
        for k in (0..depth - kept).rev() {
            let below = &layers[layers.len() - 1];
            let mut next = above(&below.p, &below.q);
            if 1 << k == leaves.of {
                next.p = spread(&next.p, &leaves.blocks, leaves.of, Fr::ZERO);
                next.q = spread(&next.q, &leaves.blocks, leaves.of, Fr::ONE);
            }
            layers.push(next);
        }
        let size = low_memory.unwrap_or(RUN);
        Self {
            leaves,
            layers,
            size,
        }
    }
}

impl Tree for Layers<'_> {
    /// The root is let go.
    fn root(&mut self) -> Fr {
        self.layers.pop().map_or(Fr::ONE, |root| root.q[0])
    }

    /// The layer is let go.
    fn descend(&mut self, height: usize, mu: Fr, tau: &[Fr]) -> Box<dyn Sums + '_> {
        let stored = match self.layers.pop() {
            Some(layer) => Stored::Kept(layer),
            None => Stored::Again(&self.leaves, height),
        };
        let leaves = &self.leaves;
        dispatch!(l => Box::new(OfLayer::new(l, leaves, stored, mu, tau, self.size)))
    }
}

/// The nodes of all blocks, and eq of what is left of the point.
type Whole<L> = (Rounds<L, Vec<Vec<Fr>>, Cross>, Weights);

/// sum over x of eq(tau, x) (g(2x) q(2x+1) + g(2x+1) q(2x)).
struct OfLayer<'l, L: Lanes<Fr>> {
    l: L,
    leaves: &'l Leaves<'l>,
    tau: Vec<Fr>,
    /// Variables within a block; those above them number the blocks.
    within: usize,
    point: Vec<Fr>,
    /// What holds the layer: as long as its blocks stand apart, kept or made again; as soon as each is down to one node,
    /// all together.
    apart: Option<Apart<L>>,
    again: Option<Again<'l>>,
    whole: Option<Whole<L>>,
    /// Tables that are not summed yet.
    all: Option<Vec<Vec<Fr>>>,
}

impl<'l, L: Lanes<Fr>> OfLayer<'l, L> {
    fn new(
        l: L,
        leaves: &'l Leaves<'l>,
        stored: Stored<'l>,
        mu: Fr,
        tau: &[Fr],
        size: usize,
    ) -> Self {
        let of_blocks = leaves.of.trailing_zeros() as usize;
        let within = tau.len().saturating_sub(of_blocks);
        let mut sums = Self {
            l,
            leaves,
            tau: tau.to_vec(),
            within,
            point: Vec::with_capacity(tau.len()),
            apart: None,
            again: None,
            whole: None,
            all: None,
        };
        let weigh = || {
            let weights = eq_table(&tau[within..]);
            let outer: Vec<Fr> = leaves.blocks.iter().map(|b| weights[*b]).collect();
            (eq_table(&tau[1..within]), outer)
        };
        match stored {
            Stored::Kept(layer) if within > 0 => {
                let (inner, outer) = weigh();
                sums.apart = Some(Apart::new(l, layer, mu, inner, outer, within));
            }
            Stored::Kept(layer) => sums.all = Some(sums.placed(nodes(&layer, mu))),
            Stored::Again(leaves, height) => {
                let (inner, outer) = weigh();
                sums.again = Some(Again {
                    leaves,
                    height,
                    mu,
                    inner,
                    outer,
                    within,
                    size,
                });
            }
        }
        sums
    }

    /// Nodes of the stored blocks in the places of all.
    fn placed(&self, nodes: Vec<Vec<Fr>>) -> Vec<Vec<Fr>> {
        let Leaves { blocks, of, .. } = self.leaves;
        if self.tau.len() < of.trailing_zeros() as usize {
            return nodes;
        }
        let place = |entries: &Vec<Fr>| spread(entries, blocks, *of, Fr::ONE);
        nodes.iter().map(place).collect()
    }

    fn sums(&mut self, known: &Known) -> [Fr; 2] {
        if let Some(apart) = &mut self.apart {
            return apart.sums();
        }
        if let Some((rounds, weights)) = &mut self.whole {
            let sums = weighed(self.l, rounds, &weights.low, &weights.high);
            weights.bind();
            return [sums[0], sums[1]];
        }
        let again = self.again.as_ref().expect("what holds the layer");
        let (sums, bound) = again.sums(self.l, known, &self.point);
        self.apart = bound;
        sums
    }
}

impl<L: Lanes<Fr>> Sums for OfLayer<'_, L> {
    fn coefficients(&mut self, round: &Round) -> Vec<Fr> {
        let i = self.point.len();
        if i == self.within {
            let nodes = self.apart.take().map(|apart| self.placed(apart.nodes()));
            self.whole = nodes.or(self.all.take()).map(|tables| {
                let weights = Weights::new(&self.tau[i + 1..]);
                (Rounds::new(self.l, Cross, 2, tables), weights)
            });
        }
        let [one, two] = self.sums(&round.known);
        of_degree_two(at_zero(round, one), one, two).to_vec()
    }

    fn bind(&mut self, r: Fr) {
        self.point.push(r);
        if let Some(apart) = &mut self.apart {
            apart.bind(r);
        }
        if let Some((rounds, _)) = &mut self.whole {
            rounds.bind(r);
        }
    }

    /// g and q of the two children.
    fn finals(&self) -> Vec<Fr> {
        let nodes = match (&self.apart, &self.whole) {
            (Some(apart), _) => self.placed(apart.nodes()),
            (_, Some((rounds, _))) => rounds.values(),
            _ => self.all.clone().expect("what holds the layer"),
        };
        nodes.iter().map(|t| t[0]).collect()
    }
}
