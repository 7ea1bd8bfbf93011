//! The inputs of a prover of coalition proofs, and the columns' values that it computes from them.
use std::collections::HashMap;

use ark_ff::PrimeField;
use ragaudit_field_simd::commitment::pack_nibbles;
use ragaudit_field_simd::poseidon::{State, WIDTH};
use rayon::prelude::*;
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::channel::Proves;
use crate::engine::Fast;
use crate::error::{Error, Result};
use crate::group::{encode_scalar, Fr};
use crate::index::COMPONENT;
use crate::nibbles::{NIBBLE_VARIABLES, TAG_VECTOR};
use crate::numbers::log2_ceil;
use crate::poseidon::start_of_list;
use crate::prover::columns::count;
use crate::ranges::LIMB_BITS;
use crate::session::Session;
use crate::transcript::Transcript;
use ragaudit_scan_protocol::coalition::statement::{
    invalid, CoalitionStatement, Columns, Shape, SALT_BITS, SALT_LIMBS,
};

/// The private side.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct CoalitionSecret {
    /// int4 components, record by record.
    pub vectors: Vec<i8>,
    /// The salt of each record's cq.
    pub salts: Vec<Fr>,
    /// The label of each account, below the number of accounts.
    pub labels: Vec<usize>,
}

/// The values from which the columns are computed.
#[derive(Clone)]
pub(crate) struct Witness {
    /// Component k of record i at 2^component_variables i + k.
    pub(crate) vectors: Vec<i8>,
    pub(crate) salts: Vec<Fr>,
    pub(crate) classes: Vec<usize>,
    pub(crate) labels: Vec<usize>,
    pub(crate) norms: Vec<i64>,
    pub(crate) thresholds: Vec<i64>,
    pub(crate) bounds: Vec<i64>,
    pub(crate) slack: Vec<i64>,
    pub(crate) spare: Vec<i64>,
    pub(crate) spare_in_tenant: Vec<i64>,
}

impl Drop for Witness {
    fn drop(&mut self) {
        self.vectors.zeroize();
        self.salts.zeroize();
        self.classes.zeroize();
        self.labels.zeroize();
    }
}

pub(super) fn norm(vector: &[i8]) -> i64 {
    vector.iter().map(|v| i64::from(*v).pow(2)).sum()
}

/// The number of distinct norms of vectors.
pub fn distinct_norms(vectors: &[i8], dimension: usize) -> usize {
    let norms: std::collections::HashSet<i64> =
        vectors.chunks(dimension.max(1)).map(norm).collect();
    norms.len()
}

impl Witness {
    pub(super) fn new(
        statement: &CoalitionStatement,
        shape: &Shape,
        secret: &CoalitionSecret,
    ) -> Result<Self> {
        let (records, dimension) = (shape.records, statement.dimension);
        if secret.vectors.len() != records * dimension || secret.salts.len() != records {
            let actual = format!(
                "{} components and {} salts",
                secret.vectors.len(),
                secret.salts.len()
            );
            let expected = format!("{} components and {records} salts", records * dimension);
            return invalid("records", expected, actual);
        }
        if let Some(bad) = secret
            .vectors
            .iter()
            .find(|v| v.unsigned_abs() > COMPONENT as u8)
        {
            return invalid(
                "vectors",
                format!("components of -{COMPONENT} to {COMPONENT}"),
                bad,
            );
        }
        let accounts = statement.tenants.len();
        if secret.labels.len() != accounts || secret.labels.iter().any(|l| *l >= accounts) {
            return invalid(
                "labels",
                format!("one label for each of {accounts} accounts, below that number"),
                format!("{} labels, or a larger one", secret.labels.len()),
            );
        }
        let mut vectors = vec![0; records << shape.component_variables];
        let rows = vectors.chunks_mut(shape.components());
        for (row, vector) in rows.zip(secret.vectors.chunks(dimension)) {
            row[..dimension].copy_from_slice(vector);
        }
        let (room, mut numbers, mut norms) =
            (1 << shape.class_variables, HashMap::new(), Vec::new());
        let mut classes = Vec::with_capacity(1 << shape.record_variables);
        for vector in secret.vectors.chunks(dimension) {
            let norm = norm(vector);
            classes.push(*numbers.entry(norm).or_insert_with(|| {
                norms.push(norm);
                norms.len() - 1
            }));
        }
        if norms.len() > room {
            return Err(Error::Unsatisfied(format!(
                "the vectors have more than {room} distinct norms"
            )));
        }
        classes.resize(1 << shape.record_variables, 0);
        norms.resize(room, 0);
        let mut labels = secret.labels.clone();
        labels.resize(1 << shape.account_variables, 0);
        let mut witness = Self {
            vectors,
            salts: secret.salts.clone(),
            classes,
            labels,
            norms,
            thresholds: Vec::new(),
            bounds: Vec::new(),
            slack: Vec::new(),
            spare: Vec::new(),
            spare_in_tenant: Vec::new(),
        };
        witness.set_thresholds(statement);
        witness.set_counts(statement, shape);
        Ok(witness)
    }

    /// Thresholds of all pairs of classes, as their norms say.
    pub(super) fn set_thresholds(&mut self, statement: &CoalitionStatement) {
        let norms = &self.norms;
        let of_pair = |at: usize| {
            let product = norms[at % norms.len()] * norms[at / norms.len()];
            (statement.threshold(product), product)
        };
        let pairs: Vec<(i64, i64)> = (0..norms.len().pow(2))
            .into_par_iter()
            .map(of_pair)
            .collect();
        self.thresholds = pairs.iter().map(|(t, _)| *t).collect();
        self.bounds = self
            .thresholds
            .iter()
            .map(|t| statement.bound(*t))
            .collect();
        let products = pairs.iter().map(|(_, product)| product);
        self.slack = products.zip(&self.bounds).map(|(p, b)| p - b).collect();
    }

    pub(super) fn set_counts(&mut self, statement: &CoalitionStatement, shape: &Shape) {
        let labels = 1 << shape.account_variables;
        let [c, c_tenant] = statement.largest.map(|c| c as i64);
        self.spare = vec![c; labels];
        self.spare_in_tenant = vec![c_tenant; labels << shape.tenant_variables];
        for (label, tenant) in self.labels.iter().zip(&statement.tenants) {
            self.spare[*label] -= 1;
            self.spare_in_tenant[label + labels * tenant] -= 1;
        }
    }

    /// Refuses inputs that the proof could not show.
    pub(super) fn check(&self, statement: &CoalitionStatement) -> Result<()> {
        for (column, c) in [&self.spare, &self.spare_in_tenant]
            .into_iter()
            .zip(statement.largest)
        {
            if column.iter().any(|s| *s < 0) {
                return Err(Error::Unsatisfied(format!(
                    "a label has more than {c} accounts"
                )));
            }
        }
        Ok(())
    }

    /// The values of the columns.
    pub(super) fn columns(
        &self,
        statement: &CoalitionStatement,
        shape: &Shape,
    ) -> Columns<Vec<i64>> {
        let bits =
            |values: &[usize], k: usize| values.iter().map(|v| (v >> k & 1) as i64).collect();
        let mut vectors: Vec<i64> = self.vectors.iter().map(|v| i64::from(*v)).collect();
        vectors.resize(1 << (shape.record_variables + shape.component_variables), 0);
        let mut salts: Vec<i64> = self.salts.iter().flat_map(salt_limbs).collect();
        salts.resize(1 << log2_ceil(SALT_LIMBS * shape.records), 0);
        let slack = [0, 1].map(|k| {
            let limb = |s: &i64| s >> (LIMB_BITS * k) & 0xffff;
            self.slack.iter().map(limb).collect::<Vec<i64>>()
        });
        let (mut range, mut bound_rows, mut nibbles) = (
            vec![0; 1 << LIMB_BITS],
            vec![0; 1 << statement.dot_variables()],
            vec![0; 1 << NIBBLE_VARIABLES],
        );
        [&slack[0], &slack[1], &self.spare, &self.spare_in_tenant]
            .into_iter()
            .flatten()
            .for_each(|v| count(&mut range, *v));
        self.thresholds
            .iter()
            .for_each(|t| count(&mut bound_rows, *t));
        let smallest = i64::from(COMPONENT);
        vectors
            .iter()
            .for_each(|v| count(&mut nibbles, v + smallest));
        Columns {
            vectors,
            salts,
            classes: (0..shape.class_variables)
                .map(|k| bits(&self.classes, k))
                .collect(),
            labels: (0..shape.account_variables)
                .map(|k| bits(&self.labels, k))
                .collect(),
            norms: self.norms.clone(),
            thresholds: self.thresholds.clone(),
            bounds: self.bounds.clone(),
            slack,
            spare: self.spare.clone(),
            spare_in_tenant: self.spare_in_tenant.clone(),
            range,
            bound_rows,
            nibbles,
        }
    }

    /// The input state of the permutation for each record's cq.
    pub(super) fn states(&self, statement: &CoalitionStatement, shape: &Shape) -> Vec<State> {
        let (dimension, elements) = (statement.dimension, statement.elements());
        let start = start_of_list::<Fast>(TAG_VECTOR, 1 + elements);
        let rows = self.vectors.chunks(shape.components()).zip(&self.salts);
        rows.map(|(vector, salt)| {
            let mut state = [Fr::default(); WIDTH];
            (state[1], state[2]) = (start, *salt);
            state[3..3 + elements].copy_from_slice(&pack_nibbles(&vector[..dimension]));
            state
        })
        .collect()
    }

    /// Distances of all pairs of the blocks of a run.
    pub(super) fn run(
        &self,
        statement: &CoalitionStatement,
        shape: &Shape,
        run: usize,
    ) -> Vec<Vec<i64>> {
        let blocks = shape.run(run).iter();
        blocks
            .map(|b| self.distances(statement, shape, *b))
            .collect()
    }

    /// Distances of all pairs of two blocks from the threshold, with their excuses: record il of the earlier block and jl of
    /// the later one at il + 2^block_variables jl.
    pub(super) fn distances(
        &self,
        statement: &CoalitionStatement,
        shape: &Shape,
        (earlier, later): (usize, usize),
    ) -> Vec<i64> {
        let (side, width) = (1 << shape.block_variables, shape.components());
        let room = self.norms.len();
        let row = |i: usize| {
            self.vectors
                .get(i * width..(i + 1) * width)
                .unwrap_or_default()
        };
        let label = |i: usize| statement.accounts.get(i).map(|a| self.labels[*a]);
        let mut out = vec![0; side * side];
        out.par_chunks_mut(side).enumerate().for_each(|(jl, run)| {
            let j = later * side + jl;
            for (il, out) in run.iter_mut().enumerate() {
                let i = earlier * side + il;
                let product = |(a, b): (&i8, &i8)| i32::from(i16::from(*a) * i16::from(*b));
                let dot: i32 = row(i).iter().zip(row(j)).map(product).sum();
                let threshold = self.thresholds[self.classes[i] + room * self.classes[j]];
                let same = i64::from(label(i).is_some() && label(i) == label(j));
                let excuses = same + i64::from(!statement.compared(i, j));
                *out = threshold - i64::from(dot) + excuses * statement.excuse();
            }
        });
        out
    }
}

pub(super) fn salt_limbs(salt: &Fr) -> [i64; SALT_LIMBS] {
    let words = salt.into_bigint().0;
    std::array::from_fn(|k| {
        let (word, shift) = (SALT_BITS * k / 64, SALT_BITS * k % 64);
        let high = words.get(word + 1).map_or(0, |w| u128::from(*w) << 64);
        let both = u128::from(words[word]) | high;
        (both >> shift & ((1 << SALT_BITS) - 1)) as i64
    })
}

pub(super) fn session_of<'a, P: Proves>(
    transcript: Transcript<P::Oracle>,
    shape: &Shape,
    witness: &Witness,
) -> Result<Session<'a, P>> {
    let mut seed: Vec<u8> = witness.vectors.iter().map(|v| *v as u8).collect();
    seed.extend(witness.salts.iter().flat_map(encode_scalar));
    seed.extend(
        witness
            .labels
            .iter()
            .flat_map(|l| (*l as u64).to_le_bytes()),
    );
    let session = Session::prover(transcript, shape.row_variables, &seed)?;
    seed.zeroize();
    Ok(session)
}
