//! The prover's work in a sumcheck, in lanes: tables are bound and the next round is summed in one pass.
use std::ops::Range;

use ark_ff::{AdditiveGroup, Field};
use ragaudit_field_simd::lanes::Lanes;
use rayon::prelude::*;

use crate::group::Fr;

/// The summand of a sumcheck: a function of several tables' values in one place. Mark its methods `#[inline(always)]`.
pub(crate) trait Kernel: Sync {
    /// One value for each table, and one for each node 1, .., degree: arrays where the numbers are fixed.
    type Tables<V: Copy>: Row<V>;
    type Nodes<W: Copy>: Row<W>;

    /// The constants that `at` receives in all lanes.
    fn constants(&self) -> Vec<Fr> {
        Vec::new()
    }

    /// For constants below p and the tables' values below 16 p; below 16 p itself, and 0 where all tables have ended.
    fn at<L: Lanes<Fr>>(&self, l: L, constants: &[L::V], tables: &[L::V]) -> L::V;
}

/// A vector or an array.
pub(crate) trait Row<T>: AsMut<[T]> {
    /// `count` times x.
    fn filled(x: T, count: usize) -> Self;
}

impl<T: Copy> Row<T> for Vec<T> {
    fn filled(x: T, count: usize) -> Self {
        vec![x; count]
    }
}

impl<T: Copy, const N: usize> Row<T> for [T; N] {
    #[inline(always)]
    fn filled(x: T, count: usize) -> Self {
        assert_eq!(count, N);
        [x; N]
    }
}

impl<G: Kernel> Kernel for &G {
    type Tables<V: Copy> = G::Tables<V>;
    type Nodes<W: Copy> = G::Nodes<W>;

    fn constants(&self) -> Vec<Fr> {
        (**self).constants()
    }

    #[inline(always)]
    fn at<L: Lanes<Fr>>(&self, l: L, constants: &[L::V], tables: &[L::V]) -> L::V {
        (**self).at(l, constants, tables)
    }
}

/// The product of two tables.
#[derive(Clone, Copy)]
pub(crate) struct Product;

impl Kernel for Product {
    type Tables<V: Copy> = [V; 2];
    type Nodes<W: Copy> = [W; 2];

    #[inline(always)]
    fn at<L: Lanes<Fr>>(&self, l: L, _: &[L::V], t: &[L::V]) -> L::V {
        l.mul(t[0], t[1])
    }
}

/// The square of a table.
#[derive(Clone, Copy)]
pub(crate) struct Square;

impl Kernel for Square {
    type Tables<V: Copy> = [V; 1];
    type Nodes<W: Copy> = [W; 2];

    #[inline(always)]
    fn at<L: Lanes<Fr>>(&self, l: L, _: &[L::V], t: &[L::V]) -> L::V {
        l.square(t[0])
    }
}

/// The tables that a round goes over, N pairs of entries at a time: a run.
pub(crate) trait Source<L: Lanes<Fr>>: Sync {
    fn tables(&self) -> usize;
    fn pairs(&self) -> usize;
    /// The entries 2 x and 2 x + 1 of table k for the N numbers x from N run on; 0 after the table's end. Below 3 p.
    fn pair(&self, l: L, run: usize, k: usize) -> [L::V; 2];
}

/// Tables as they are given.
impl<L: Lanes<Fr>> Source<L> for Vec<Vec<Fr>> {
    fn tables(&self) -> usize {
        self.len()
    }

    fn pairs(&self) -> usize {
        let length = self.iter().map(Vec::len).max().unwrap_or(0);
        length.div_ceil(2)
    }

    #[inline(always)]
    fn pair(&self, l: L, run: usize, k: usize) -> [L::V; 2] {
        let (table, start) = (&self[k], 2 * L::N * run);
        let [zero, one] = match table.get(start..start + 2 * L::N) {
            Some(t) => [l.load(|i| &t[2 * i]), l.load(|i| &t[2 * i + 1])],
            None => {
                let entry = |i: usize| table.get(start + i).unwrap_or(&Fr::ZERO);
                [l.load(|i| entry(2 * i)), l.load(|i| entry(2 * i + 1))]
            }
        };
        [l.weak(zero), l.weak(one)]
    }
}

/// Tables in lanes: of every run, two vectors of each table with its entries in order.
struct Packed<V> {
    tables: usize,
    pairs: usize,
    vectors: Vec<V>,
}

impl<L: Lanes<Fr>> Source<L> for Packed<L::V> {
    fn tables(&self) -> usize {
        self.tables
    }

    fn pairs(&self) -> usize {
        self.pairs
    }

    #[inline(always)]
    fn pair(&self, l: L, run: usize, k: usize) -> [L::V; 2] {
        let at = 2 * (run * self.tables + k);
        l.unzip(self.vectors[at], self.vectors[at + 1])
    }
}

/// The weights of runs below 3 p: with `outer`, those of a block of runs, the same in all blocks but for a factor each.
#[derive(Clone, Copy)]
pub(crate) struct Weighing<'w, V> {
    pub(crate) runs: &'w [V],
    pub(crate) outer: Option<&'w [Fr]>,
}

/// Field elements as [`Weighing::runs`].
pub(crate) fn weight_runs<L: Lanes<Fr>>(l: L, weights: &[Fr]) -> Vec<L::V> {
    let mut runs = vec![l.zero(); weights.len().div_ceil(L::N)];
    l.run(
        #[inline(always)]
        || {
            for (run, w) in runs.iter_mut().zip(weights.chunks(L::N)) {
                *run = l.weak(l.load(|i| w.get(i).unwrap_or(&Fr::ZERO)));
            }
        },
    );
    runs
}

/// Pairs of a block at most, which bounds the sums of products.
pub(crate) const BLOCK: usize = 512;

/// a + r (b - a), below 3 p for a and b below 3 p and r below p.
#[inline(always)]
fn between<L: Lanes<Fr>>(l: L, r: L::V, [a, b]: [L::V; 2]) -> L::V {
    l.weak(l.add(a, l.mul(r, l.sub(b, a))))
}

/// The pairs for a round's sums, run by run, each table once.
trait Pairs<L: Lanes<Fr>> {
    fn pair(&mut self, l: L, run: usize, k: usize) -> [L::V; 2];
}

struct Reading<'t, S: ?Sized>(&'t S);

impl<L: Lanes<Fr>, S: Source<L> + ?Sized> Pairs<L> for Reading<'_, S> {
    #[inline(always)]
    fn pair(&mut self, l: L, run: usize, k: usize) -> [L::V; 2] {
        self.0.pair(l, run, k)
    }
}

/// Combines two runs of the tables to one, and stores it in `out`, for the runs from `start` on.
struct Binding<'t, S: ?Sized, V> {
    tables: &'t S,
    r: V,
    start: usize,
    out: &'t mut [V],
}

impl<L: Lanes<Fr>, S: Source<L> + ?Sized> Pairs<L> for Binding<'_, S, L::V> {
    #[inline(always)]
    fn pair(&mut self, l: L, run: usize, k: usize) -> [L::V; 2] {
        let low = between(l, self.r, self.tables.pair(l, 2 * run, k));
        let high = if (2 * run + 1) * L::N < self.tables.pairs() {
            between(l, self.r, self.tables.pair(l, 2 * run + 1, k))
        } else {
            l.zero()
        };
        let at = 2 * ((run - self.start) * self.tables.tables() + k);
        self.out[at..at + 2].copy_from_slice(&[low, high]);
        l.unzip(low, high)
    }
}

/// A sumcheck on the prover's side.
pub(crate) struct Rounds<L: Lanes<Fr>, S, G> {
    core: Core<L, G>,
    /// Until they are bound the first time.
    given: Option<S>,
    packed: Packed<L::V>,
    /// The second buffer, which alternates with `packed`.
    spare: Vec<L::V>,
    /// The value for the lowest variable.
    r: Option<Fr>,
}

struct Core<L: Lanes<Fr>, G> {
    l: L,
    gate: G,
    constants: Vec<L::V>,
    degree: usize,
}

impl<L: Lanes<Fr>, S: Source<L>, G: Kernel> Rounds<L, S, G> {
    pub(crate) fn new(l: L, gate: G, degree: usize, tables: S) -> Self {
        let constants = gate.constants().iter().map(|c| l.splat(c)).collect();
        Self {
            core: Core {
                l,
                gate,
                constants,
                degree,
            },
            given: Some(tables),
            packed: Packed {
                tables: 0,
                pairs: 0,
                vectors: Vec::new(),
            },
            spare: Vec::new(),
            r: None,
        }
    }

    /// Room for tables that are bound already, of `pairs` pairs: see [`Rounds::append`].
    pub(crate) fn bound(l: L, gate: G, degree: usize, tables: S, pairs: usize) -> Self {
        let count = tables.tables();
        let mut rounds = Self::new(l, gate, degree, tables);
        rounds.given = None;
        rounds.packed.tables = count;
        rounds.packed.vectors = Vec::with_capacity(2 * count * (pairs / L::N));
        rounds
    }

    /// Puts the tables of another one of whole runs behind these. Both have been bound, and summed since.
    pub(crate) fn append(&mut self, other: Self) {
        assert!(other.given.is_none() && self.packed.pairs.is_multiple_of(L::N));
        self.packed.pairs += other.packed.pairs;
        self.packed.vectors.extend(other.packed.vectors);
    }

    /// Binds the lowest variable, once the next sums or the values are asked for.
    pub(crate) fn bind(&mut self, r: Fr) {
        self.r = Some(r);
    }

    /// The sums of weight times gate with the lowest variable at 1, .., degree.
    pub(crate) fn sums(&mut self, weights: Weighing<L::V>) -> Vec<Fr> {
        let (core, spare) = (&self.core, std::mem::take(&mut self.spare));
        let (sums, bound) = match (&self.given, self.r) {
            (Some(tables), None) => return core.sums(tables, weights),
            (Some(tables), Some(r)) => core.bind(tables, r, spare, weights),
            (None, r) => core.bind(&self.packed, r.unwrap_or_default(), spare, weights),
        };
        self.spare = match self.given.take() {
            None => std::mem::replace(&mut self.packed, bound).vectors,
            Some(_) => {
                self.packed = bound;
                Vec::new()
            }
        };
        sums
    }

    /// The tables as they are bound.
    pub(crate) fn values(&self) -> Vec<Vec<Fr>> {
        let r = self.r.unwrap_or_default();
        match &self.given {
            Some(tables) => self.core.values(tables, r),
            None => self.core.values(&self.packed, r),
        }
    }
}

impl<L: Lanes<Fr>, G: Kernel> Core<L, G> {
    fn sums<S: Source<L>>(&self, tables: &S, weights: Weighing<L::V>) -> Vec<Fr> {
        let runs = tables.pairs().div_ceil(L::N);
        let task = self.task(weights);
        let sums = (0..runs.div_ceil(task)).into_par_iter().map(|t| {
            let within = t * task..runs.min((t + 1) * task);
            self.l.run(
                #[inline(always)]
                || self.task_sums(tables.tables(), within, weights, &mut Reading(tables)),
            )
        });
        sums.reduce(|| vec![Fr::ZERO; self.degree], add)
    }

    /// The sums of the rest with the lowest variable bound to r; `vectors` receives the rest.
    fn bind<S: Source<L>>(
        &self,
        tables: &S,
        r: Fr,
        mut vectors: Vec<L::V>,
        weights: Weighing<L::V>,
    ) -> (Vec<Fr>, Packed<L::V>) {
        let l = self.l;
        let (count, pairs) = (tables.tables(), tables.pairs().div_ceil(2));
        let runs = pairs.div_ceil(L::N);
        vectors.resize(2 * runs * count, l.zero());
        let task = self.task(weights);
        let out = vectors.par_chunks_mut(2 * task * count).enumerate();
        let sums = out.map(|(t, out)| {
            let start = t * task;
            l.run(
                #[inline(always)]
                || {
                    let mut binding = Binding {
                        tables,
                        r: l.splat(&r),
                        start,
                        out,
                    };
                    let within = start..runs.min(start + task);
                    self.task_sums(count, within, weights, &mut binding)
                },
            )
        });
        let sums = sums.reduce(|| vec![Fr::ZERO; self.degree], add);
        let bound = Packed {
            tables: count,
            pairs,
            vectors,
        };
        (sums, bound)
    }

    fn values<S: Source<L>>(&self, tables: &S, r: Fr) -> Vec<Vec<Fr>> {
        let l = self.l;
        let value = |k| {
            let mut out = vec![Fr::ZERO; tables.pairs()];
            l.run(
                #[inline(always)]
                || {
                    for (run, out) in out.chunks_mut(L::N).enumerate() {
                        let bound = between(l, l.splat(&r), tables.pair(l, run, k));
                        l.store(bound, |i, x| {
                            if let Some(out) = out.get_mut(i) {
                                *out = x;
                            }
                        });
                    }
                },
            );
            out
        };
        (0..tables.tables()).map(value).collect()
    }

    /// Runs of one task: whole blocks, and enough to be worth one.
    fn task(&self, weights: Weighing<L::V>) -> usize {
        let block = match weights.outer {
            Some(_) => weights.runs.len(),
            None => 1,
        };
        block * (BLOCK / L::N / block).max(1)
    }

    #[inline(always)]
    fn task_sums(
        &self,
        count: usize,
        runs: Range<usize>,
        weights: Weighing<L::V>,
        tables: &mut impl Pairs<L>,
    ) -> Vec<Fr> {
        let l = self.l;
        let block = weights.outer.map_or(runs.len(), |_| weights.runs.len());
        assert!(block * L::N <= BLOCK.max(L::N));
        let mut at = G::Tables::filled(l.zero(), count);
        let mut step = G::Tables::filled(l.zero(), count);
        let mut wide = G::Nodes::filled(l.wide(), self.degree);
        let mut sums = G::Nodes::filled(l.zero(), self.degree);
        let (at, step, wide, sums) = (at.as_mut(), step.as_mut(), wide.as_mut(), sums.as_mut());
        let mut start = runs.start;
        while start < runs.end {
            let end = runs.end.min(start + block);
            let (weights, outer) = match weights.outer {
                Some(outer) => (weights.runs, &outer[start / block]),
                None => (&weights.runs[start..], &Fr::ONE),
            };
            wide.fill(l.wide());
            for (run, weight) in (start..end).zip(weights) {
                for (k, (at, step)) in at.iter_mut().zip(step.iter_mut()).enumerate() {
                    let [zero, one] = tables.pair(l, run, k);
                    (*at, *step) = (one, l.weak(l.sub(one, zero)));
                }
                for (node, sum) in wide.iter_mut().enumerate() {
                    if node > 0 {
                        for (at, step) in at.iter_mut().zip(step.iter()) {
                            *at = l.add(*at, *step);
                            if node % 4 == 0 {
                                *at = l.weak(*at);
                            }
                        }
                    }
                    *sum = l.mac(*sum, *weight, self.gate.at(l, &self.constants, at));
                }
            }
            let outer = l.splat(outer);
            for (sum, wide) in sums.iter_mut().zip(wide.iter()) {
                *sum = l.weak(l.add(*sum, l.mul(outer, l.reduce(*wide))));
            }
            start = end;
        }
        sums.iter().map(|s| l.sum(*s)).collect()
    }
}

fn add(mut a: Vec<Fr>, b: Vec<Fr>) -> Vec<Fr> {
    a.iter_mut().zip(b).for_each(|(x, y)| *x += y);
    a
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::mle::Weights;
    use ark_ff::UniformRand;
    use ragaudit_field_simd::dispatch;
    use ragaudit_field_simd::lanes::tracked::Tracked;
    use ragaudit_field_simd::lanes::Portable;

    fn random(count: usize) -> Vec<Fr> {
        let mut rng = ark_std::test_rng();
        (0..count).map(|_| Fr::rand(&mut rng)).collect()
    }

    /// All sums of a sumcheck, and the tables' last values.
    fn run<L: Lanes<Fr>, G: Kernel + Copy>(
        l: L,
        gate: G,
        degree: usize,
        tables: &[Vec<Fr>],
    ) -> Vec<Fr> {
        let variables = 12;
        let (point, at) = (random(variables + 3)[4..].to_vec(), random(variables));
        let mut rounds = Rounds::new(l, gate, degree, tables.to_vec());
        let mut weights = Weights::new(&point);
        let mut out = Vec::new();
        for r in at {
            let runs = weight_runs(l, &weights.low);
            let weighing = Weighing {
                runs: &runs,
                outer: Some(&weights.high),
            };
            out.extend(rounds.sums(weighing));
            rounds.bind(r);
            weights.bind();
        }
        out.extend(rounds.values().concat());
        out
    }

    /// A gate keeps within its bounds and gives the same on all lanes.
    pub(crate) fn agree<G: Kernel + Copy>(gate: G, degree: usize, tables: usize) {
        let given: Vec<Vec<Fr>> = random(3000 * tables)
            .chunks(3000)
            .map(<[Fr]>::to_vec)
            .collect();
        let expected = run(Portable, gate, degree, &given);
        assert_eq!(run(Tracked, gate, degree, &given), expected);
        assert_eq!(dispatch!(l => run(l, gate, degree, &given)), expected);
    }

    #[test]
    fn rounds_sum_what_is_bound() {
        agree(Product, 2, 2);
        agree(Square, 2, 1);
        agree(crate::prover::weighted::Single, 2, 1);
        // Against the definition: the first round's sum at 1 and the tables' values at the end.
        let given = [random(3000), random(6000)[3000..].to_vec()];
        let out = run(Portable, Product, 2, &given);
        let eq = crate::mle::eq_table(&random(15)[4..]);
        let sum = (0..1500).map(|x| given[0][2 * x + 1] * given[1][2 * x + 1] * eq[x]);
        assert_eq!(out[0], sum.sum::<Fr>());
        let extended = given.map(|mut table| {
            table.resize(1 << 12, Fr::ZERO);
            crate::mle::evaluate(&table, &random(12))
        });
        assert_eq!(out[24..], extended);
    }
}
