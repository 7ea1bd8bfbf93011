//! The protocols' requests to a prover. A verifier has none of this code, and a reader of the soundness argument can skip this
//! file: for every implementation of these traits, a proof must satisfy the equations of the other files.
use ragaudit_relation::poseidon::{State, WIDTH as WORDS};

use crate::claims::{Bound, Column, ColumnId, Opening};
use crate::digits::Digit;
use crate::expr::{Expr, Var};
use crate::gates::Gate;
use crate::group::{Fr, G1Affine, G1Projective};
use crate::index::IndexCommitment;
use crate::mle::Weight;
use crate::segments::Segment;

/// The blinding of each place of an index commitment.
pub type Blindings<'a> = &'a (dyn Fn(usize) -> Fr + Sync);

/// A combination of columns, each with its factor.
pub type Sum<'c> = Vec<(&'c [i64], Fr)>;

/// A prover's hidden values, and the values that it computes from them.
pub trait ProverWitness: Sync {
    /// A hidden value that was sent.
    fn value(&self, var: Var) -> Fr;

    /// Value and blinding of a single.
    fn opened(&self, single: usize) -> (Fr, Fr);

    /// The commitment to the next message: at most [`crate::group::WIDTH`] values.
    fn message(&mut self, values: &[Fr]) -> G1Projective;

    /// The commitment to the next single.
    fn single(&mut self, value: Fr) -> G1Projective;

    /// A commitment to a value that no expression names, and its blinding.
    fn passing(&mut self, value: Fr) -> (G1Projective, Fr);

    /// Row commitments to columns, in rows of 2^row_variables.
    fn columns(
        &mut self,
        columns: &[(usize, Bound)],
        values: Vec<Vec<i64>>,
        row_variables: usize,
    ) -> Vec<(Vec<G1Affine>, Opening)>;

    /// The sum of factors times columns, row by row up to the longest.
    fn combine(&self, columns: &[(&[i64], Fr)]) -> Vec<Fr>;

    /// sum of values_x weights_x.
    fn dot(&self, values: &[i64], weights: &[Fr]) -> Fr;

    /// The same for each run of as many values as weights.
    fn rows(&self, values: &[i64], weights: &[Fr]) -> Vec<Fr>;

    /// sum of a_x b_x.
    fn inner(&self, a: &[Fr], b: &[Fr]) -> Fr;

    /// sum over J of factors[I][J] table(.., J), for every I.
    fn apply(&self, factors: &[Vec<Fr>], table: &[Fr]) -> Vec<Fr>;

    /// A functional of a column.
    fn functional(&self, weight: &Weight, values: &[i64]) -> Fr;

    /// A sumcheck of a gate over tables.
    fn of_gate<'g>(
        &self,
        gate: Gate<'g>,
        degree: usize,
        tau: &[Fr],
        tables: Vec<Vec<Fr>>,
    ) -> Box<dyn Sums + 'g>;

    /// The same over sums of columns, of each table one a record as [`Known::interleaved`] has them, if this prover need not
    /// make field elements of all their entries for that.
    fn of_integers<'g>(
        &self,
        gate: Gate<'g>,
        degree: usize,
        tau: &[Fr],
        tables: &[Vec<Sum>],
    ) -> Option<Box<dyn Sums + 'g>>;

    /// A sumcheck over the sum of tables, each multiplied by its weighting.
    fn of_products(&self, variables: usize, tables: Vec<(Weighting, Vec<Fr>)>) -> Box<dyn Sums>;

    /// The tree of a lookup, at alpha and beta.
    fn tree<'t>(
        &self,
        columns: &[Column],
        leaves: Leaves<'t>,
        low_memory: Option<Recomputed>,
    ) -> Box<dyn Tree + 't>;

    /// Permutations of so many states, the others up to 2^variables all zeros.
    fn sbox_columns(
        &self,
        variables: usize,
        count: usize,
        state: &(dyn Fn(usize) -> State + Sync),
    ) -> Box<dyn SboxColumns>;

    /// All messages' values, up to `size`.
    fn messages(&self, size: usize) -> Box<dyn Messages>;

    /// The values and the blinding of the messages combined with these factors.
    fn combined_message(&self, factors: &[Fr]) -> (Vec<Fr>, Fr);

    /// The values and the blinding of all rows combined.
    fn combined_rows(&self, columns: &[Column], rows: Combination) -> (Vec<Fr>, Fr);

    /// The commitment to a query and its salt, and its blinding.
    fn query(&mut self, query: &[i8], salt: &Fr) -> (G1Projective, Fr);

    /// The commitment to the scores' rows under these factors, of queries each with its factor; its own blinding, and all of
    /// it.
    fn scores(
        &mut self,
        index: &IndexCommitment,
        queries: &[(&[i8], Fr)],
        rows: &[Fr],
        blindings: Blindings,
    ) -> (G1Projective, [Fr; 2]);
}

/// The factor of a table.
pub enum Weighting<'w> {
    Weight(&'w Weight),
    Table(Vec<Fr>),
}

/// The leaves of a lookup: segments, each with its first place, in a tree of this depth, at alpha and beta.
pub struct Leaves<'t> {
    pub segments: &'t [Segment],
    pub offsets: &'t [usize],
    pub depth: usize,
    pub challenges: [Fr; 2],
}

/// How a prover recomputes the lowest layers of a lookup's tree, which it does not store in low memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recomputed {
    /// Blocks of leaves that are made at a time.
    pub run: usize,
    /// The rounds of a layer's sumcheck that recompute the layer before the next one stores what is left. Each halves it.
    pub rounds: usize,
}

/// Which rows of columns are combined: those of each column with its factor, row by row with these.
pub struct Combination<'c> {
    pub length: usize,
    pub rows: &'c [Fr],
    pub factors: &'c [Fr],
    /// The part of the blinding that comes from the columns without commitments.
    pub linked: Fr,
    /// A public functional that counts too: its rows, and its factor.
    pub table: Option<(&'c [Fr], usize, Fr)>,
}

/// A run as its prover knows it.
#[derive(Clone, Copy)]
pub struct Known<'s> {
    pub secrets: &'s dyn ProverWitness,
    columns: &'s [Column],
}

impl<'s> Known<'s> {
    pub fn new(secrets: &'s dyn ProverWitness, columns: &'s [Column]) -> Self {
        Self { secrets, columns }
    }

    /// The value of an expression.
    pub fn value(&self, expr: &Expr) -> Fr {
        expr.evaluate(|var| self.secrets.value(var))
    }

    /// The values of a column.
    pub fn column(&self, id: ColumnId) -> &'s [i64] {
        let opening = self.columns[id.0].opening.as_ref();
        opening.map_or(&[], |o| o.values.as_slice())
    }

    /// A combination of columns, as far as they go.
    pub fn entries(&self, columns: &[(ColumnId, Fr)]) -> Vec<Fr> {
        let weighted = |(id, f): &(ColumnId, Fr)| (self.column(*id), *f);
        let columns: Vec<(&[i64], Fr)> = columns.iter().map(weighted).collect();
        self.secrets.combine(&columns)
    }

    /// Combinations of columns, one for each record, entry by entry: entry x of record k is in the place x 2^m + k, where m
    /// variables distinguish the records.
    pub fn interleaved(&self, records: Vec<Vec<(ColumnId, Fr)>>) -> Vec<Fr> {
        if let [columns] = &records[..] {
            return self.entries(columns);
        }
        let apart = records.len().next_power_of_two();
        let mut out = Vec::new();
        for (k, columns) in records.iter().enumerate() {
            let entries = self.entries(columns);
            out.resize(out.len().max(entries.len() * apart), Fr::default());
            let places = out.iter_mut().skip(k).step_by(apart);
            places.zip(entries).for_each(|(out, entry)| *out = entry);
        }
        out
    }

    /// A sumcheck of a gate over tables that are each as [`Self::interleaved`] makes them.
    pub fn of_gate<'g>(
        &self,
        gate: Gate<'g>,
        degree: usize,
        tau: &[Fr],
        tables: Vec<Vec<Vec<(ColumnId, Fr)>>>,
    ) -> Box<dyn Sums + 'g> {
        let weighted = |(id, f): &(ColumnId, Fr)| (self.column(*id), *f);
        let record = |columns: &Vec<_>| columns.iter().map(weighted).collect();
        let of = |records: &Vec<Vec<_>>| records.iter().map(record).collect();
        let columns: Vec<Vec<Sum>> = tables.iter().map(of).collect();
        let result = self.secrets.of_integers(gate, degree, tau, &columns);
        result.unwrap_or_else(|| {
            let tables = tables.into_iter().map(|t| self.interleaved(t)).collect();
            self.secrets.of_gate(gate, degree, tau, tables)
        })
    }

    /// [`Self::entries`] over the whole cube.
    pub fn table(&self, columns: &[(ColumnId, Fr)], variables: usize) -> Vec<Fr> {
        let mut out = self.entries(columns);
        out.resize(1 << variables, Fr::default());
        out
    }

    /// A combination of columns, evaluated at a point.
    pub fn at(&self, columns: &[(ColumnId, Fr)], point: &[Fr]) -> Fr {
        self.functional(&Weight::evaluation(point), columns)
    }

    /// The sum of some entries of a column, each multiplied by its weight.
    pub fn of_entries(&self, entries: &[(usize, Fr)], id: ColumnId) -> Fr {
        let column = self.column(id);
        let value = |x: &usize| column.get(*x).copied().unwrap_or_default();
        let (values, weights): (Vec<i64>, Vec<Fr>) =
            entries.iter().map(|(x, w)| (value(x), *w)).unzip();
        self.secrets.dot(&values, &weights)
    }

    /// A functional of a combination of columns.
    pub fn functional(&self, weight: &Weight, columns: &[(ColumnId, Fr)]) -> Fr {
        let one = |(id, factor): &(ColumnId, Fr)| {
            self.secrets.functional(weight, self.column(*id)) * factor
        };
        columns.iter().map(one).sum()
    }
}

/// The prover's knowledge at the beginning of a sumcheck round: sum over the digit's values k of weight_k q(k) = claim.
pub struct Round<'r> {
    pub known: Known<'r>,
    pub claim: &'r Expr,
    pub digit: &'r Digit,
}

/// Tables that are summed, round by round.
pub trait Sums {
    /// c_1, c_2, .. of the round's polynomial.
    fn coefficients(&mut self, round: &Round) -> Vec<Fr>;

    /// Binds the lowest variable, or the lowest digit.
    fn bind(&mut self, r: Fr);

    /// The tables at the point, once all variables are bound.
    fn finals(&self) -> Vec<Fr>;
}

/// All layers of a lookup's fractions.
pub trait Tree {
    /// The root's denominator.
    fn root(&mut self) -> Fr;

    /// The sums of the next layer down, at mu, as [`crate::sumcheck::reduce_digits`] asks for them.
    fn descend(&mut self, height: usize, mu: Fr, digits: [&[Digit]; 2]) -> Box<dyn Sums + '_>;
}

/// The blocks of a stream, record by record within each block: how each weighs in the sum of the outputs.
#[derive(Clone, Copy)]
pub struct Blocks<'b> {
    pub records: usize,
    pub blocks: usize,
    pub record_point: &'b [Fr],
    pub block_point: &'b [Fr],
}

/// The S-box inputs of many permutations.
pub trait SboxColumns {
    /// The sums of the last round: fifth powers under the first factors at blocks as `blocks` weighs them, and under the
    /// second at calls, each as it is weighed.
    fn outputs(
        &self,
        tau: &[Fr],
        blocks: Option<Blocks>,
        calls: &[Fr],
        factors: &[[Fr; WORDS]; 2],
    ) -> Box<dyn Sums + '_>;

    /// The sums of a full round under these factors. See [`crate::sumcheck::reduce_digits`].
    fn full(&self, round: usize, factors: [Fr; WORDS], digits: [&[Digit]; 2])
        -> Box<dyn Sums + '_>;

    /// The sums of a partial round with this factor of its S-box, and with the part of the functional above it in the words
    /// 1..16. `gamma` is the factor of the part of the round above, if that round is partial.
    fn partial(
        &mut self,
        round: usize,
        above: &[Fr; WORDS],
        gamma: Option<Fr>,
        factor: Fr,
        digits: &[Digit],
    ) -> Box<dyn Sums + '_>;
}

/// The values of all messages while one combination of them is proved.
pub trait Messages {
    /// c_1 and c_2 of the sum over the highest variable of factors times values.
    fn coefficients(&self, factors: &[Fr]) -> [Fr; 2];

    /// Binds that variable.
    fn bind(&mut self, r: Fr);
}

/// A vector and the generators that it is committed with, fold by fold.
pub trait Folds {
    /// L and R; `b` is multiplied with the vector, and `mu` times U carries the product.
    fn sides(&self, b: &[Fr], mu: Fr) -> [G1Projective; 2];

    /// x_low + u^-1 x_high, G_low + u G_high.
    fn fold(&mut self, u: Fr, inverse: Fr);

    /// The scalar that is left.
    fn last(&self) -> Fr;
}
