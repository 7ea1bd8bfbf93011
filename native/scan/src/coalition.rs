//! Coalition certificates: `docs/scan/coalition.md`.
//!
//! One run over the records commits to vectors, labels and thresholds and binds them to what is published. Further
//! runs, independent of each other, prove the pairs of some blocks of records against these commitments.
use std::collections::HashMap;
use std::sync::Arc;

use ark_ff::{AdditiveGroup, Field, PrimeField};
use ragaudit_core::commitment::{pack_nibbles, NIBBLES_PER_ELEMENT};
use ragaudit_core::lanes::Lanes;
use ragaudit_core::poseidon::{LIST_RUN, WIDTH};
use rayon::prelude::*;
use sha2::{Digest, Sha256};
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::batch::{weigh, Sum, CHUNK};
use crate::closing::Closed;
use crate::columns::Bound;
use crate::equation::Equation;
use crate::error::{Error, Result};
use crate::expr::{Expr, Var};
use crate::group::{encode_scalar, Fr};
use crate::index::COMPONENT;
use crate::lookup::{lookups, Count, Entry, Segment};
use crate::mle::{eq_table, evaluate, prefix, Weight};
use crate::noise::{count, in_range, limbs, range_table, table_of, LIMB_BITS};
use crate::numbers::{from_small, log2_ceil, power_of_two};
use crate::poseidon::{hashes, start_of_list};
use crate::query::{nibble_rows, NIBBLE_VARIABLES, TAG_VECTOR};
use crate::session::{Column, ColumnId, Opening, Role, Session};
use crate::sumcheck::{plain, sumcheck, Gate, Product, Square};
use crate::transcript::Transcript;

const TAG_BOUND: u64 = 2;
const TAG_NIBBLE: u64 = 3;
const TAG_PAIR: u64 = 4;
/// Most records of one certificate.
pub const MAX_RECORDS: usize = (1 << LIMB_BITS) - 1;
/// Components that fit one run of a list hash beside the salt.
pub const MAX_COMPONENTS: usize = (LIST_RUN - 1) * NIBBLES_PER_ELEMENT;
/// Largest q of theta = p/q.
pub const MAX_DENOMINATOR: u64 = 1000;
/// Norms that all windows have room for; a window with more of them says so.
const CLASS_VARIABLES: usize = 9;
const MAX_CLASS_VARIABLES: usize = 11;
/// Most norms of one certificate.
pub const MAX_CLASSES: usize = 1 << MAX_CLASS_VARIABLES;
/// Most labels times tenants, each rounded up to a power of two.
pub const MAX_LABELS: usize = 1 << LABEL_VARIABLES;
const LABEL_VARIABLES: usize = 22;
/// Records of a block, and blocks of one run over pairs: small in the tests, so that few records fill several.
const BLOCK_VARIABLES: usize = if cfg!(test) { 2 } else { BLOCKS.0 };
const RUN_BLOCKS: usize = if cfg!(test) { 3 } else { BLOCKS.1 };
/// Both, outside the tests.
const BLOCKS: (usize, usize) = (8, 63);
/// A salt's limbs: any of them is a field element, so none needs a range.
const SALT_LIMBS: usize = 5;
const SALT_BITS: usize = 52;

/// What decides where values stand: see [`crate::protocol`].
pub(crate) const RULES: [u64; 8] = [
    TAG_BOUND,
    TAG_NIBBLE,
    TAG_PAIR,
    CLASS_VARIABLES as u64,
    BLOCKS.0 as u64,
    BLOCKS.1 as u64,
    SALT_LIMBS as u64,
    SALT_BITS as u64,
];

/// What a certificate is about. Every value is rebuilt by the verifier from published entries.
#[derive(Clone, Debug)]
pub struct CoalitionStatement {
    /// Digest of everything else that the certificate is bound to.
    pub context: [u8; 32],
    pub dimension: usize,
    /// Of each record.
    pub cq: Vec<Fr>,
    /// Account of each record.
    pub accounts: Vec<usize>,
    /// Tenant of each account.
    pub tenants: Vec<usize>,
    /// The first record that each one is compared with.
    pub first: Vec<usize>,
    /// The threshold p/q.
    pub theta: [u64; 2],
    /// Most accounts of a label, and of a label in one tenant.
    pub largest: [u64; 2],
    /// log2 of the number of norms that the certificate has room for: see [`CoalitionStatement::class_variables`].
    pub class_variables: usize,
}

/// The private side.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct CoalitionSecret {
    /// int4 components, record by record.
    pub vectors: Vec<i8>,
    /// Of each record's cq.
    pub salts: Vec<Fr>,
    /// Of each account, below the number of accounts.
    pub labels: Vec<usize>,
}

fn variables_of(count: usize) -> usize {
    log2_ceil(count).max(1)
}

fn invalid<T>(field: &str, expected: impl Into<String>, found: impl ToString) -> Result<T> {
    Err(Error::invalid(field, expected, found))
}

/// Sizes, all of them public.
struct Shape {
    records: usize,
    record_variables: usize,
    component_variables: usize,
    account_variables: usize,
    tenant_variables: usize,
    class_variables: usize,
    block_variables: usize,
    /// Pairs of blocks, the earlier first, with a pair of records that is compared.
    blocks: Vec<(usize, usize)>,
    /// How many of them one run over pairs takes.
    run_blocks: usize,
    row_variables: usize,
}

impl CoalitionStatement {
    /// The least room for norms that holds `norms` of them, in a window of `records`.
    pub fn class_variables(records: usize, norms: usize) -> usize {
        let all = variables_of(records);
        all.min(CLASS_VARIABLES.max(variables_of(norms)))
    }

    fn shape(&self) -> Result<Shape> {
        let records = self.cq.len();
        let accounts = self.tenants.len();
        if !(1..=MAX_RECORDS).contains(&records) {
            return invalid("records", format!("1..={MAX_RECORDS}"), records);
        }
        if !(1..=MAX_COMPONENTS).contains(&self.dimension) {
            return invalid("dimension", format!("1..={MAX_COMPONENTS}"), self.dimension);
        }
        if self.accounts.len() != records || self.first.len() != records {
            let found = format!("{} and {}", self.accounts.len(), self.first.len());
            return invalid(
                "records",
                format!("{records} accounts and first records"),
                found,
            );
        }
        if accounts > records || self.accounts.iter().any(|a| *a >= accounts) {
            return invalid(
                "accounts",
                "the records' accounts, numbered from 0",
                accounts,
            );
        }
        if self.tenants.iter().any(|t| *t >= accounts) {
            return invalid(
                "tenants",
                "the accounts' tenants, numbered from 0",
                accounts,
            );
        }
        if self.first.iter().enumerate().any(|(j, f)| *f > j) {
            return invalid(
                "first",
                "no record after the one it is compared with",
                "one",
            );
        }
        let [p, q] = self.theta;
        if !(0 < p && p < q && q <= MAX_DENOMINATOR) {
            return invalid("theta", "0 < p < q <= 1000", format!("{p}/{q}"));
        }
        if !self
            .largest
            .iter()
            .all(|c| (1..=accounts as u64).contains(c))
        {
            return invalid(
                "c",
                format!("1..={accounts}"),
                format!("{:?}", self.largest),
            );
        }
        let least = Self::class_variables(records, 1);
        let most = variables_of(records).min(MAX_CLASS_VARIABLES);
        if !(least..=most).contains(&self.class_variables) {
            let expected = format!("{least}..={most}");
            return invalid("class variables", expected, self.class_variables);
        }
        let record_variables = variables_of(records);
        let component_variables = variables_of(self.dimension);
        let block_variables = BLOCK_VARIABLES.min(record_variables);
        let tenants = self.tenants.iter().max().map_or(1, |t| t + 1);
        let account_variables = variables_of(accounts);
        let tenant_variables = log2_ceil(tenants);
        if account_variables + tenant_variables > LABEL_VARIABLES {
            return invalid(
                "tenants",
                "at most 2^22 labels and tenants together",
                tenants,
            );
        }
        let side = 1 << block_variables;
        let mut blocks = Vec::new();
        for later in 0..records.div_ceil(side) {
            let range = later * side..records.min((later + 1) * side);
            let earliest = range.clone().map(|j| self.first[j]).min().unwrap_or(later);
            let compared = |i: usize| {
                range
                    .clone()
                    .any(|j| self.first[j].max(i * side) < j.min((i + 1) * side))
            };
            blocks.extend(
                (earliest / side..=later)
                    .filter(|i| compared(*i))
                    .map(|i| (i, later)),
            );
        }
        let largest = record_variables + component_variables;
        Ok(Shape {
            records,
            record_variables,
            component_variables,
            account_variables,
            tenant_variables,
            class_variables: self.class_variables,
            block_variables,
            blocks,
            run_blocks: RUN_BLOCKS,
            row_variables: largest.max(2 * self.class_variables).div_ceil(2) + 3,
        })
    }

    /// How many runs over pairs a certificate has.
    pub fn runs(&self) -> Result<usize> {
        Ok(self.shape()?.runs())
    }

    fn absorb(&self, t: &mut Transcript) {
        t.bytes("context", &self.context);
        t.integer("dimension", self.dimension as u64);
        t.integer("records", self.cq.len() as u64);
        t.integer("accounts", self.tenants.len() as u64);
        for ((cq, account), first) in self.cq.iter().zip(&self.accounts).zip(&self.first) {
            t.scalar("cq", cq);
            t.integer("account", *account as u64);
            t.integer("first", *first as u64);
        }
        for tenant in &self.tenants {
            t.integer("tenant", *tenant as u64);
        }
        t.integer("p", self.theta[0]);
        t.integer("q", self.theta[1]);
        t.integer("largest", self.largest[0]);
        t.integer("largest in a tenant", self.largest[1]);
        t.integer("class variables", self.class_variables as u64);
    }

    fn transcript(&self) -> Transcript {
        let mut t = Transcript::new("coalition records");
        self.absorb(&mut t);
        t
    }

    fn run_transcript(&self, records: &[u8], run: usize) -> Transcript {
        let mut t = Transcript::new("coalition pairs");
        self.absorb(&mut t);
        t.bytes("records", &Sha256::digest(records));
        t.integer("run", run as u64);
        t
    }

    /// Of which the weights of the runs' equations are drawn.
    fn sum_transcript(&self, records: &[u8], pairs: &[&[u8]]) -> Transcript {
        let mut t = Transcript::new("coalition sum");
        self.absorb(&mut t);
        for proof in std::iter::once(&records).chain(pairs) {
            t.bytes("proof", proof);
        }
        t
    }

    /// The largest dot product of vectors.
    fn most(&self) -> i64 {
        i64::from(COMPONENT).pow(2) * self.dimension as i64
    }

    /// The product of norms from which on a dot product is below the threshold: 0 for 0, else the least integer above
    /// (q t / p)^2. None that vectors have is above `most`^2, so larger ones need not be told apart.
    fn bound(&self, dot: i64) -> i64 {
        if dot == 0 {
            return 0;
        }
        let [p, q] = self.theta.map(i128::from);
        let most = self.most();
        let least = (q * i128::from(dot)).pow(2) / (p * p) + 1;
        least.min(i128::from(most * most) + 1) as i64
    }

    /// The largest dot product that is below the threshold, for a product of norms.
    fn threshold(&self, product: i64) -> i64 {
        let [p, q] = self.theta.map(i128::from);
        match product {
            0 => 0,
            _ => ((p * p * i128::from(product) - 1) / (q * q)).isqrt() as i64,
        }
    }

    fn dot_variables(&self) -> usize {
        log2_ceil(self.most() as usize + 1)
    }

    /// What an excuse adds to a pair's distance from the threshold, which is never below -`most`.
    fn excuse(&self) -> i64 {
        self.most()
    }

    fn distance_variables(&self) -> usize {
        log2_ceil(4 * self.most() as usize + 1)
    }

    /// Whether records i < j are compared.
    fn compared(&self, i: usize, j: usize) -> bool {
        i < j && j < self.cq.len() && i >= self.first[j]
    }

    /// Offset of a packed element: every nibble is a component plus 8.
    fn offset() -> Fr {
        (0..NIBBLES_PER_ELEMENT)
            .map(|k| power_of_two(4 * k))
            .sum::<Fr>()
            * Fr::from(8u8)
    }

    fn elements(&self) -> usize {
        self.dimension.div_ceil(NIBBLES_PER_ELEMENT)
    }
}

impl Shape {
    fn components(&self) -> usize {
        1 << self.component_variables
    }

    fn run(&self, run: usize) -> &[(usize, usize)] {
        self.blocks
            .chunks(self.run_blocks)
            .nth(run)
            .unwrap_or_default()
    }

    fn runs(&self) -> usize {
        self.blocks.len().div_ceil(self.run_blocks)
    }

    /// Variables of the columns of the run over records, in the order of [`Columns`].
    fn bounded(&self, statement: &CoalitionStatement) -> Vec<(usize, Bound)> {
        let most = statement.most() as usize;
        let pairs = 1 << (2 * self.class_variables);
        let labels = 1 << self.account_variables;
        let in_tenants = labels << self.tenant_variables;
        let components = 1 << (self.record_variables + self.component_variables);
        let bit = |variables: usize| (1 << variables, Bound::Unsigned(1));
        let limb = Bound::Unsigned(LIMB_BITS);
        let [spare, spare_in_tenant] = statement.largest.map(|c| {
            let most = (c as usize).max(self.records);
            Bound::within(most)
        });
        let mut out = vec![
            (components, Bound::within(COMPONENT as usize)),
            (
                1 << log2_ceil(SALT_LIMBS * self.records),
                Bound::Unsigned(SALT_BITS),
            ),
        ];
        out.extend(vec![bit(self.record_variables); self.class_variables]);
        out.extend(vec![bit(self.account_variables); self.account_variables]);
        out.extend([
            (1 << self.class_variables, Bound::up_to(most)),
            (pairs, Bound::up_to(most)),
            (pairs, Bound::up_to(most * most + 1)),
            (pairs, limb),
            (pairs, limb),
            (labels, spare),
            (in_tenants, spare_in_tenant),
            (
                1 << LIMB_BITS,
                Bound::up_to(2 * pairs + labels + in_tenants),
            ),
            (1 << statement.dot_variables(), Bound::up_to(pairs)),
            (1 << NIBBLE_VARIABLES, Bound::up_to(components)),
        ]);
        out
    }

    fn columns<T: Copy>(&self, all: &[T]) -> Columns<T> {
        let (classes, labels) = (2 + self.class_variables, self.account_variables);
        let rest = &all[classes + labels..];
        Columns {
            vectors: all[0],
            salts: all[1],
            classes: all[2..classes].to_vec(),
            labels: all[classes..classes + labels].to_vec(),
            norms: rest[0],
            thresholds: rest[1],
            bounds: rest[2],
            slack: [rest[3], rest[4]],
            spare: rest[5],
            spare_in_tenant: rest[6],
            range: rest[7],
            bound_rows: rest[8],
            nibbles: rest[9],
        }
    }
}

/// The columns of the run over records.
struct Columns<T> {
    /// Component k of record i at 2^component_variables i + k.
    vectors: T,
    salts: T,
    /// Bits of each record's class: records of one norm are of one class.
    classes: Vec<T>,
    /// Bits of each account's label.
    labels: Vec<T>,
    /// Of each class.
    norms: T,
    /// Of two classes u, v at u + 2^class_variables v: the largest dot product below the threshold.
    thresholds: T,
    /// The product of norms that the threshold needs.
    bounds: T,
    /// Limbs of what the product of norms is above that.
    slack: [T; 2],
    /// How many accounts each label lacks of the largest number.
    spare: T,
    /// The same for label l and tenant t, at l + 2^account_variables t.
    spare_in_tenant: T,
    /// How often each row of a table is looked up.
    range: T,
    bound_rows: T,
    nibbles: T,
}

/// What the columns are made of.
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

fn norm(vector: &[i8]) -> i64 {
    vector.iter().map(|v| i64::from(*v).pow(2)).sum()
}

/// The number of distinct norms of vectors.
pub fn distinct_norms(vectors: &[i8], dimension: usize) -> usize {
    let norms: std::collections::HashSet<i64> =
        vectors.chunks(dimension.max(1)).map(norm).collect();
    norms.len()
}

impl Witness {
    fn new(
        statement: &CoalitionStatement,
        shape: &Shape,
        secret: &CoalitionSecret,
    ) -> Result<Self> {
        let (records, dimension) = (shape.records, statement.dimension);
        if secret.vectors.len() != records * dimension || secret.salts.len() != records {
            let found = format!("{} and {}", secret.vectors.len(), secret.salts.len());
            let expected = format!("{} components, {records} salts", records * dimension);
            return invalid("records", expected, found);
        }
        if let Some(bad) = secret
            .vectors
            .iter()
            .find(|v| v.unsigned_abs() > COMPONENT as u8)
        {
            return invalid(
                "vectors",
                format!("components in -{COMPONENT}..{COMPONENT}"),
                bad,
            );
        }
        let accounts = statement.tenants.len();
        if secret.labels.len() != accounts || secret.labels.iter().any(|l| *l >= accounts) {
            return invalid(
                "labels",
                "one an account, numbered from 0",
                secret.labels.len(),
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
                "more than {room} distinct norms"
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
    fn set_thresholds(&mut self, statement: &CoalitionStatement) {
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

    fn set_counts(&mut self, statement: &CoalitionStatement, shape: &Shape) {
        let labels = 1 << shape.account_variables;
        let [c, c_tenant] = statement.largest.map(|c| c as i64);
        self.spare = vec![c; labels];
        self.spare_in_tenant = vec![c_tenant; labels << shape.tenant_variables];
        for (label, tenant) in self.labels.iter().zip(&statement.tenants) {
            self.spare[*label] -= 1;
            self.spare_in_tenant[label + labels * tenant] -= 1;
        }
    }

    /// Refuses what the certificate could not show.
    fn check(&self, statement: &CoalitionStatement) -> Result<()> {
        for (column, c) in [&self.spare, &self.spare_in_tenant]
            .into_iter()
            .zip(statement.largest)
        {
            if column.iter().any(|s| *s < 0) {
                return Err(Error::Unsatisfied(format!(
                    "a label of more than {c} accounts"
                )));
            }
        }
        Ok(())
    }

    /// The values of the columns, in their order.
    fn columns(&self, statement: &CoalitionStatement, shape: &Shape) -> Vec<Vec<i64>> {
        let bits =
            |values: &[usize], k: usize| values.iter().map(|v| (v >> k & 1) as i64).collect();
        let mut vectors: Vec<i64> = self.vectors.iter().map(|v| i64::from(*v)).collect();
        vectors.resize(1 << (shape.record_variables + shape.component_variables), 0);
        let mut salts: Vec<i64> = self.salts.iter().flat_map(salt_limbs).collect();
        salts.resize(1 << log2_ceil(SALT_LIMBS * shape.records), 0);
        let slack = |k: usize| {
            self.slack
                .iter()
                .map(|s| s >> (LIMB_BITS * k) & 0xffff)
                .collect()
        };
        let (mut range, mut bounds, mut nibbles) = (
            vec![0; 1 << LIMB_BITS],
            vec![0; 1 << statement.dot_variables()],
            vec![0; 1 << NIBBLE_VARIABLES],
        );
        let mut out = vec![vectors, salts];
        out.extend((0..shape.class_variables).map(|k| bits(&self.classes, k)));
        out.extend((0..shape.account_variables).map(|k| bits(&self.labels, k)));
        out.extend([
            self.norms.clone(),
            self.thresholds.clone(),
            self.bounds.clone(),
            slack(0),
            slack(1),
            self.spare.clone(),
            self.spare_in_tenant.clone(),
        ]);
        out[out.len() - 4..]
            .iter()
            .flatten()
            .for_each(|v| count(&mut range, *v));
        self.thresholds.iter().for_each(|t| count(&mut bounds, *t));
        let smallest = i64::from(COMPONENT);
        out[0]
            .iter()
            .for_each(|v| count(&mut nibbles, v + smallest));
        out.extend([range, bounds, nibbles]);
        out
    }

    /// Distances of all pairs of the blocks of a run.
    fn run(&self, statement: &CoalitionStatement, shape: &Shape, run: usize) -> Vec<Vec<i64>> {
        let blocks = shape.run(run).iter();
        blocks
            .map(|b| self.distances(statement, shape, *b))
            .collect()
    }

    /// Distances of all pairs of two blocks from the threshold, with what excuses them: record il of the earlier and
    /// jl of the later one at il + 2^block_variables jl.
    fn distances(
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

fn salt_limbs(salt: &Fr) -> [i64; SALT_LIMBS] {
    let words = salt.into_bigint().0;
    std::array::from_fn(|k| {
        let (word, shift) = (SALT_BITS * k / 64, SALT_BITS * k % 64);
        let high = words.get(word + 1).map_or(0, |w| u128::from(*w) << 64);
        let both = u128::from(words[word]) | high;
        (both >> shift & ((1 << SALT_BITS) - 1)) as i64
    })
}

/// The columns that runs over pairs share with the run over records.
struct Shared {
    vectors: Column,
    classes: Vec<Column>,
    labels: Vec<Column>,
    thresholds: Column,
}

impl Shared {
    fn new(columns: &[Column], shape: &Shape) -> Self {
        let numbers: Vec<usize> = (0..columns.len()).collect();
        let ids = shape.columns(&numbers);
        let all = |ids: &[usize]| ids.iter().map(|i| columns[*i].clone()).collect();
        Self {
            vectors: columns[ids.vectors].clone(),
            classes: all(&ids.classes),
            labels: all(&ids.labels),
            thresholds: columns[ids.thresholds].clone(),
        }
    }
}

/// Makes the run over records. The blindings of its columns stay secret; runs over pairs need them.
pub fn prove_records(
    statement: &CoalitionStatement,
    secret: &CoalitionSecret,
) -> Result<(Vec<u8>, Vec<Fr>)> {
    let shape = statement.shape()?;
    let witness = Witness::new(statement, &shape, secret)?;
    witness.check(statement)?;
    let columns = witness.columns(statement, &shape);
    prove_records_with(statement, &witness, columns, true)
}

fn session_of<'a>(
    transcript: Transcript,
    shape: &Shape,
    witness: &Witness,
    honest: bool,
) -> Result<Session<'a>> {
    let mut seed: Vec<u8> = witness.vectors.iter().map(|v| *v as u8).collect();
    seed.extend(witness.salts.iter().flat_map(encode_scalar));
    seed.extend(
        witness
            .labels
            .iter()
            .flat_map(|l| (*l as u64).to_le_bytes()),
    );
    let mut session = Session::prover(transcript, shape.row_variables, &seed)?;
    seed.zeroize();
    if let Role::Prover(prover) = &mut session.role {
        prover.honest = honest;
    }
    Ok(session)
}

fn prove_records_with(
    statement: &CoalitionStatement,
    witness: &Witness,
    columns: Vec<Vec<i64>>,
    honest: bool,
) -> Result<(Vec<u8>, Vec<Fr>)> {
    let shape = statement.shape()?;
    let mut session = session_of(statement.transcript(), &shape, witness, honest)?;
    records(&mut session, statement, &shape, Some((witness, columns)))?;
    let openings = session.columns.iter().filter_map(|c| c.opening.as_ref());
    let blindings = openings.flat_map(|o| o.blindings.iter().copied()).collect();
    match session.close(None)? {
        Closed::Proof(proof) => Ok((proof, blindings)),
        _ => unreachable!("a prover"),
    }
}

/// Makes one of the [`CoalitionStatement::runs`] over pairs, given what [`prove_records`] made.
pub fn prove_pairs(
    statement: &CoalitionStatement,
    secret: &CoalitionSecret,
    records: &[u8],
    blindings: &[Fr],
    run: usize,
) -> Result<Vec<u8>> {
    let shape = statement.shape()?;
    let witness = Witness::new(statement, &shape, secret)?;
    let count = shape.runs();
    if run >= count {
        return invalid("run", format!("below {count}"), run);
    }
    let distances = witness.run(statement, &shape, run);
    if distances.iter().flatten().any(|d| *d < 0) {
        return Err(Error::Unsatisfied("near records of two labels".to_owned()));
    }
    let made = Made {
        records,
        blindings,
        run,
    };
    prove_pairs_with(statement, &witness, distances, &made, true)
}

/// What a run over pairs follows.
struct Made<'a> {
    records: &'a [u8],
    blindings: &'a [Fr],
    run: usize,
}

fn prove_pairs_with(
    statement: &CoalitionStatement,
    witness: &Witness,
    distances: Vec<Vec<i64>>,
    made: &Made,
    honest: bool,
) -> Result<Vec<u8>> {
    let shape = statement.shape()?;
    let mut columns = committed(statement, &shape, made.records)?;
    let expected: usize = columns.iter().map(|c| c.rows.len()).sum();
    if made.blindings.len() != expected {
        return invalid("blindings", expected.to_string(), made.blindings.len());
    }
    let mut rest = made.blindings;
    for (column, values) in columns.iter_mut().zip(witness.columns(statement, &shape)) {
        let (own, others) = rest.split_at(column.rows.len());
        let blindings = own.to_vec();
        column.opening = Some(Arc::new(Opening { values, blindings }));
        rest = others;
    }
    let shared = Shared::new(&columns, &shape);
    let transcript = statement.run_transcript(made.records, made.run);
    let mut session = session_of(transcript, &shape, witness, honest)?;
    let secret = Some((witness, distances));
    pairs(&mut session, statement, &shape, &shared, made.run, secret)?;
    match session.close(None)? {
        Closed::Proof(proof) => Ok(proof),
        _ => unreachable!("a prover"),
    }
}

/// The commitments with which a run over records starts.
fn committed(statement: &CoalitionStatement, shape: &Shape, proof: &[u8]) -> Result<Vec<Column>> {
    let mut session = Session::verifier(statement.transcript(), shape.row_variables, proof);
    session.commit_bounded("records", &shape.bounded(statement), None)?;
    Ok(session.columns)
}

/// Verifies a certificate: the run over records and all runs over pairs, in one sum.
pub fn verify_coalition(
    statement: &CoalitionStatement,
    records_proof: &[u8],
    pairs_proofs: &[&[u8]],
) -> Result<()> {
    let shape = statement.shape()?;
    let runs = shape.runs();
    if pairs_proofs.len() != runs {
        return invalid("runs over pairs", runs.to_string(), pairs_proofs.len());
    }
    let transcript = statement.transcript();
    let mut session = Session::verifier(transcript, shape.row_variables, records_proof);
    records(&mut session, statement, &shape, None)?;
    let shared = Shared::new(&session.columns, &shape);
    let mut weights = statement.sum_transcript(records_proof, pairs_proofs);
    let mut first = Equation::default();
    first.add(&checked(session)?, weights.challenge("weight"));
    let mut sum = Sum::default();
    sum.add(first);
    let weights: Vec<Vec<Fr>> = pairs_proofs
        .iter()
        .map(|_| vec![weights.challenge("weight")])
        .collect();
    for (k, weights) in weights.chunks(CHUNK).enumerate() {
        let (chunk, refused) = weigh(weights, |i| {
            let run = k * CHUNK + i;
            let transcript = statement.run_transcript(records_proof, run);
            let proof = pairs_proofs[run];
            let mut session = Session::verifier(transcript, shape.row_variables, proof);
            pairs(&mut session, statement, &shape, &shared, run, None)?;
            Ok(vec![checked(session)?])
        });
        if let Some((_, reason)) = refused.into_iter().next() {
            return Err(reason);
        }
        sum.add(chunk);
    }
    if sum.holds(&[]) {
        Ok(())
    } else {
        Err(Error::Rejected)
    }
}

fn checked(session: Session) -> Result<Equation> {
    match session.close(None)? {
        Closed::Check(equation) => Ok(equation),
        _ => unreachable!("a verifier"),
    }
}

/// The run over records, for both parties.
fn records(
    session: &mut Session,
    statement: &CoalitionStatement,
    shape: &Shape,
    secret: Option<(&Witness, Vec<Vec<i64>>)>,
) -> Result<()> {
    let (witness, columns) = secret.unzip();
    let ids = session.commit_bounded("records", &shape.bounded(statement), columns)?;
    let ids = shape.columns(&ids);
    ranges(session, statement, shape, &ids)?;
    thresholds(session, shape, &ids)?;
    let of_classes = norms(session, shape, &ids, witness)?;
    one_hot(
        session,
        &ids.classes,
        shape.record_variables,
        vec![of_classes],
        true,
    )?;
    let of_labels = counts(session, statement, shape, &ids)?;
    one_hot(
        session,
        &ids.labels,
        shape.account_variables,
        of_labels,
        true,
    )?;
    openings(session, statement, shape, &ids, witness)
}

fn one(id: ColumnId) -> Entry {
    Entry::Columns(vec![(id, Fr::ONE)])
}

/// Components, limbs and counts are in their ranges, and every threshold has its bound.
fn ranges(
    session: &mut Session,
    statement: &CoalitionStatement,
    shape: &Shape,
    ids: &Columns<ColumnId>,
) -> Result<()> {
    let dots = statement.dot_variables();
    let bounds = (0..1i64 << dots).map(|t| statement.bound(t)).collect();
    let labels = shape.account_variables;
    let mut segments = vec![
        Segment {
            variables: shape.record_variables + shape.component_variables,
            tag: TAG_NIBBLE,
            entries: vec![one(ids.vectors)],
            count: Count::Once,
        },
        Segment {
            variables: NIBBLE_VARIABLES,
            tag: TAG_NIBBLE,
            entries: vec![Entry::Public(nibble_rows())],
            count: Count::Table(ids.nibbles),
        },
        Segment {
            variables: 2 * shape.class_variables,
            tag: TAG_BOUND,
            entries: vec![one(ids.thresholds), one(ids.bounds)],
            count: Count::Once,
        },
        Segment {
            variables: dots,
            tag: TAG_BOUND,
            entries: vec![Entry::Row, Entry::Public(bounds)],
            count: Count::Table(ids.bound_rows),
        },
        range_table(ids.range),
        in_range(ids.spare, labels),
        in_range(ids.spare_in_tenant, labels + shape.tenant_variables),
    ];
    segments.extend(
        ids.slack
            .iter()
            .map(|id| in_range(*id, 2 * shape.class_variables)),
    );
    lookups(session, segments)?;
    Ok(())
}

/// At every pair of classes the product of norms is the threshold's bound and some slack: all are below 2^33, so the
/// equation holds over the integers. Products of norms extend to products.
fn thresholds(session: &mut Session, shape: &Shape, ids: &Columns<ColumnId>) -> Result<()> {
    let r = session.challenges("thresholds", 2 * shape.class_variables);
    let (u, v) = r.split_at(shape.class_variables);
    let mut sum = vec![(ids.bounds, Fr::ONE)];
    sum.extend(limbs(&ids.slack, Fr::ONE));
    let norms = vec![(ids.norms, Fr::ONE)];
    let parts = [(u, &norms), (v, &norms), (&r[..], &sum)];
    let values: Option<Vec<Fr>> = session.proving().then(|| {
        let at = |(point, columns): &(&[Fr], &Vec<(ColumnId, Fr)>)| {
            evaluate(&table_of(session, columns, point.len()), point)
        };
        parts.iter().map(at).collect()
    });
    let vars = session.send("thresholds", 3, values.as_deref())?;
    let [left, right, product] = [0, 1, 2].map(|k| Expr::from(vars[k]));
    session.constrain_product("thresholds", left, right, product);
    for ((point, columns), var) in parts.into_iter().zip(vars) {
        session.claim(Weight::evaluation(point), columns.clone(), var.into());
    }
    Ok(())
}

/// sum over k of a_(i,k)^2 = norm of the class of i, for every record i; beyond them a is 0.
fn norms(
    session: &mut Session,
    shape: &Shape,
    ids: &Columns<ColumnId>,
    witness: Option<&Witness>,
) -> Result<Term> {
    let tau = session.challenges("norms", shape.record_variables);
    let mut weights = eq_table(&tau);
    weights[shape.records..].fill(Fr::ZERO);
    let of_classes = witness.map(|w| {
        let mut sums = vec![Fr::ZERO; w.norms.len()];
        w.classes
            .iter()
            .zip(&weights)
            .for_each(|(class, e)| sums[*class] += e);
        sums
    });
    let norms = witness.map(|_| table_of(session, &[(ids.norms, Fr::ONE)], shape.class_variables));
    let sum = of_classes
        .as_ref()
        .zip(norms.as_ref())
        .map(|(a, b)| dot(a, b));
    let sum = session.send("norms", 1, sum.as_ref().map(std::slice::from_ref))?[0];

    // The left side: a plain sum over components, weighted by eq over records.
    let (mut point, claim) = plain(shape.component_variables, sum.into());
    point.extend(&tau);
    let vectors = vec![(ids.vectors, Fr::ONE)];
    let tables = witness.map(|_| vec![table_of(session, &vectors, point.len())]);
    let reduced = sumcheck(session, "norms", &point, claim, 2, tables, Square)?;
    let values = reduced.finals.map(|f| [f[0], f[0].square()]);
    let v = session.send("component", 2, values.as_ref().map(|v| &v[..]))?;
    session.constrain_product("component", v[0].into(), v[0].into(), v[1].into());
    session.constrain("norms", reduced.claim - v[1].into());
    session.claim(Weight::evaluation(&reduced.point), vectors, v[0].into());

    // The right side, by class.
    let (point, claim) = plain(shape.class_variables, sum.into());
    let tables = norms.zip(of_classes).map(|(a, b)| vec![a, b]);
    let reduced = sumcheck(
        session,
        "norms of classes",
        &point,
        claim,
        2,
        tables,
        Product,
    )?;
    let v = product_of(
        session,
        "norms of classes",
        reduced.finals.as_deref(),
        reduced.claim,
    )?;
    let columns = vec![(ids.norms, Fr::ONE)];
    session.claim(Weight::evaluation(&reduced.point), columns, v[0].into());
    Ok(Term {
        weights,
        at: reduced.point,
        value: v[1].into(),
    })
}

/// Sends the two factors at the end of a sumcheck over their product.
fn product_of(
    session: &mut Session,
    label: &'static str,
    finals: Option<&[Fr]>,
    claim: Expr,
) -> Result<[Var; 2]> {
    let values = finals.map(|f| [f[0], f[1], f[0] * f[1]]);
    let v = session.send(label, 3, values.as_ref().map(|v| &v[..]))?;
    session.constrain_product(label, v[0].into(), v[1].into(), v[2].into());
    session.constrain(label, claim - v[2].into());
    Ok([v[0], v[1]])
}

/// The accounts of each label, and of each label and tenant, with those that it lacks are the largest number.
fn counts(
    session: &mut Session,
    statement: &CoalitionStatement,
    shape: &Shape,
    ids: &Columns<ColumnId>,
) -> Result<Vec<Term>> {
    let r = session.challenges("counts", shape.account_variables + shape.tenant_variables);
    let (label, tenant) = r.split_at(shape.account_variables);
    let (accounts, size) = (statement.tenants.len(), 1 << shape.account_variables);
    let mut all = vec![Fr::ONE; accounts];
    all.resize(size, Fr::ZERO);
    let tenants = eq_table(tenant);
    let mut own: Vec<Fr> = statement.tenants.iter().map(|t| tenants[*t]).collect();
    own.resize(size, Fr::ZERO);
    let parts = [
        (label, ids.spare, all, statement.largest[0]),
        (&r[..], ids.spare_in_tenant, own, statement.largest[1]),
    ];
    let mut terms = Vec::new();
    for (point, id, weights, largest) in parts {
        let columns = vec![(id, Fr::ONE)];
        let value = session
            .proving()
            .then(|| evaluate(&table_of(session, &columns, point.len()), point));
        let var = session.send("counts", 1, value.as_ref().map(std::slice::from_ref))?[0];
        session.claim(Weight::evaluation(point), columns, var.into());
        terms.push(Term {
            weights,
            at: label.to_vec(),
            value: Expr::from(largest) - var.into(),
        });
    }
    Ok(terms)
}

/// Every cq is the hash of its record's salt and packed vector; components beyond the dimension are 0.
fn openings(
    session: &mut Session,
    statement: &CoalitionStatement,
    shape: &Shape,
    ids: &Columns<ColumnId>,
    witness: Option<&Witness>,
) -> Result<()> {
    let (dimension, elements) = (statement.dimension, statement.elements());
    let start = start_of_list(TAG_VECTOR, 1 + elements);
    let states: Option<Vec<[Fr; WIDTH]>> = witness.map(|w| {
        let rows = w.vectors.chunks(shape.components()).zip(&w.salts);
        rows.map(|(vector, salt)| {
            let mut state = [Fr::ZERO; WIDTH];
            (state[1], state[2]) = (start, *salt);
            state[3..3 + elements].copy_from_slice(&pack_nibbles(&vector[..dimension]));
            state
        })
        .collect()
    });
    let (point, words) = hashes(session, &statement.cq, states.as_deref())?;
    let within = prefix(&point, shape.records);
    session.constrain("hash padding", words[0].clone());
    session.constrain(
        "start of a list",
        words[1].clone() - (start * within).into(),
    );
    for word in &words[3 + elements..] {
        session.constrain("end of a list", word.clone());
    }
    let weight = |coefficients: Vec<Fr>| Weight {
        point: point.clone(),
        coefficients,
        items: shape.records,
    };
    let salts = (0..SALT_LIMBS)
        .map(|k| power_of_two(SALT_BITS * k))
        .collect();
    session.claim(weight(salts), vec![(ids.salts, Fr::ONE)], words[2].clone());

    // All elements as one functional, those of components beyond the dimension 0.
    let eta = session.challenge("elements");
    let mut coefficients = vec![Fr::ZERO; shape.components()];
    let (inside, beyond) = coefficients.split_at_mut(dimension);
    let runs = inside
        .chunks_mut(NIBBLES_PER_ELEMENT)
        .chain(beyond.chunks_mut(NIBBLES_PER_ELEMENT));
    let (mut value, mut power) = (Expr::zero(), Fr::ONE);
    for (m, run) in runs.enumerate() {
        for (k, c) in run.iter_mut().enumerate() {
            *c = power_of_two(4 * k) * power;
        }
        if m < elements {
            let offset = Expr::from(CoalitionStatement::offset() * within);
            value.add_scaled(&(words[3 + m].clone() - offset), power);
        }
        power *= eta;
    }
    session.claim(weight(coefficients), vec![(ids.vectors, Fr::ONE)], value);
    Ok(())
}

/// sum over x of weights_x [bits of x say `at`] = value, where [..] extends to a product over the bits.
struct Term {
    weights: Vec<Fr>,
    at: Vec<Fr>,
    value: Expr,
}

/// sum over terms of power_i weight_i prod over bits of (1 - at_(i,k) + b_k (2 at_(i,k) - 1)), and with `of_bits` e sum
/// over bits of power_k (b_k^2 - b_k), for the tables weight_i, e, b_k.
struct Numbers<'a> {
    points: Vec<&'a [Fr]>,
    of_terms: &'a [Fr],
    of_bits: Option<&'a [Fr]>,
}

impl Gate for Numbers<'_> {
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

/// Proves such sums over numbers of which columns hold the bits, and once that the bits are bits.
fn one_hot(
    session: &mut Session,
    bits: &[ColumnId],
    variables: usize,
    terms: Vec<Term>,
    boolean: bool,
) -> Result<()> {
    let chi = session.challenge("numbers");
    let powers: Vec<Fr> = std::iter::successors(Some(Fr::ONE), |p| Some(*p * chi))
        .take(terms.len() + bits.len())
        .collect();
    let tau = session.challenges("bits", if boolean { variables } else { 0 });
    let claim = Expr::combination(terms.iter().zip(&powers).map(|(t, p)| (&t.value, *p)));
    let weights: Vec<Vec<Fr>> = terms.iter().map(|t| t.weights.clone()).collect();
    let tables = session.proving().then(|| {
        let mut tables = weights.clone();
        tables.extend(boolean.then(|| eq_table(&tau)));
        let of = |id: &ColumnId| table_of(session, &[(*id, Fr::ONE)], variables);
        tables.extend(bits.iter().map(of));
        tables
    });
    let factor = |bit: Fr, at: Fr| Fr::ONE - at + bit * (at.double() - Fr::ONE);
    let (of_terms, of_bits) = powers.split_at(terms.len());
    let start = terms.len() + usize::from(boolean);
    let gate = Numbers {
        points: terms.iter().map(|t| &t.at[..bits.len()]).collect(),
        of_terms,
        of_bits: boolean.then_some(of_bits),
    };
    let (point, claim) = plain(variables, claim);
    let degree = (bits.len() + 1).max(3);
    let reduced = sumcheck(session, "numbers", &point, claim, degree, tables, gate)?;

    // The bits there, their squares, and each term's product factor by factor.
    let values = reduced.finals.map(|f| {
        let bits = &f[start..];
        let mut out = bits.to_vec();
        out.extend(bits.iter().filter(|_| boolean).map(Field::square));
        for term in &terms {
            let mut product = Fr::ONE;
            for (bit, at) in bits.iter().zip(&term.at) {
                product *= factor(*bit, *at);
                out.push(product);
            }
        }
        out
    });
    let squares = if boolean { bits.len() } else { 0 };
    let total = bits.len() * (1 + terms.len()) + squares;
    let vars = session.send("numbers", total, values.as_deref())?;
    let mut rest = -reduced.claim;
    if boolean {
        let weight = evaluate(&eq_table(&tau), &reduced.point);
        for (k, p) in of_bits.iter().enumerate() {
            let (bit, square) = (vars[k], vars[bits.len() + k]);
            session.constrain_product("bits", bit.into(), bit.into(), square.into());
            rest.add_term(square, weight * p);
            rest.add_term(bit, -weight * p);
        }
    }
    let products = vars[bits.len() + squares..].chunks(bits.len());
    for ((term, p), chain) in terms.iter().zip(of_terms).zip(products) {
        let mut product = Expr::from(1u64);
        for ((bit, at), next) in vars.iter().zip(&term.at).zip(chain) {
            let slope = at.double() - Fr::ONE;
            let factor = Expr::from(*bit) * slope + (Fr::ONE - at).into();
            session.constrain_product("numbers", product, factor, (*next).into());
            product = (*next).into();
        }
        rest.add_scaled(&product, *p * evaluate(&term.weights, &reduced.point));
    }
    session.constrain("numbers", rest);
    for (id, var) in bits.iter().zip(vars) {
        let weight = Weight::evaluation(&reduced.point);
        session.claim(weight, vec![(*id, Fr::ONE)], var.into());
    }
    Ok(())
}

fn dot(a: &[Fr], b: &[Fr]) -> Fr {
    a.par_iter().zip(b).map(|(a, b)| *a * b).sum()
}

/// A run over pairs, for both parties.
fn pairs(
    session: &mut Session,
    statement: &CoalitionStatement,
    shape: &Shape,
    shared: &Shared,
    run: usize,
    secret: Option<(&Witness, Vec<Vec<i64>>)>,
) -> Result<()> {
    let (witness, distances) = secret.unzip();
    let mut add = |column: &Column| session.add_column(column.clone());
    let (vectors, thresholds) = (add(&shared.vectors), add(&shared.thresholds));
    let classes: Vec<ColumnId> = shared.classes.iter().map(&mut add).collect();
    let labels: Vec<ColumnId> = shared.labels.iter().map(&mut add).collect();
    let blocks = shape.run(run);
    let size = statement.distance_variables();
    let rows = distances.as_ref().map(|distances| {
        let mut rows = vec![0; 1 << size];
        distances
            .iter()
            .flatten()
            .for_each(|d| count(&mut rows, *d));
        vec![rows]
    });
    let pairs = blocks.len() << (2 * shape.block_variables);
    let bounded = [(1 << size, Bound::up_to(pairs))];
    let rows = session.commit_bounded("pairs", &bounded, rows)?[0];

    // Every distance is one of 0, 1, ..
    let mut segments = vec![Segment {
        variables: size,
        tag: TAG_PAIR,
        entries: vec![Entry::Row],
        count: Count::Table(rows),
    }];
    let mut distances = distances.map(Vec::into_iter);
    segments.extend(blocks.iter().map(|_| Segment {
        variables: 2 * shape.block_variables,
        tag: TAG_PAIR,
        entries: vec![Entry::Derived(distances.as_mut().and_then(Iterator::next))],
        count: Count::Once,
    }));
    let derived = lookups(session, segments)?;

    // A combination of all blocks' distances at one point is a form in what both sides' records are there.
    let rho = session.challenge("blocks");
    let point = derived
        .first()
        .map_or(Vec::new(), |(point, _)| point.clone());
    let (earlier, later) = point.split_at(shape.block_variables);
    let side = shape.record_variables - shape.block_variables;
    let mut factors = vec![vec![Fr::ZERO; 1 << side]; 1 << side];
    let (mut claim, mut power) = (Expr::zero(), Fr::ONE);
    let excuse = Fr::from(statement.excuse() as u64);
    let eq = [eq_table(earlier), eq_table(later)];
    for ((i, j), (_, var)) in blocks.iter().zip(&derived) {
        factors[*i][*j] = power;
        claim.add_term(*var, power);
        let open = compared_weight(statement, shape, (*i, *j), &eq);
        claim.constant -= power * excuse * (Fr::ONE - open);
        power *= rho;
    }
    let forms = witness.map(|w| Forms::new(statement, shape, w, &eq));
    let thresholds_sum = forms.as_ref().map(|f| f.thresholds(&factors));
    let sums = forms.as_ref().zip(thresholds_sum.as_ref()).map(|(f, z)| {
        let of_classes = table_of(session, &[(thresholds, Fr::ONE)], 2 * shape.class_variables);
        [
            dot(&of_classes, z),
            form(&factors, &f.components[0], &f.components[1]),
            form(&factors, &f.labels[0], &f.labels[1]),
        ]
    });
    let v = session.send("pairs", 3, sums.as_ref().map(|s| &s[..]))?;
    let [of_classes, of_components, of_labels] = [0, 1, 2].map(|k| Expr::from(v[k]));
    let total = of_classes.clone() - of_components.clone() + of_labels.clone() * excuse;
    session.constrain("pairs", total - claim);
    let at = |ended: &Ended, low: &[Fr]| [low, &ended.block].concat();

    // Dot products: what is left is a component of a record on each side.
    let tables = forms.as_ref().map(|f| f.components.clone());
    let variables = shape.component_variables;
    let [left, right] = bilinear(session, &factors, variables, tables, of_components)?;
    for (ended, low) in [(&left, earlier), (&right, later)] {
        let point = [&ended.low, &at(ended, low)[..]].concat();
        let columns = vec![(vectors, Fr::ONE)];
        session.claim(Weight::evaluation(&point), columns, ended.value.into());
    }

    // Labels: whether an account has a label, weighted by its records.
    let tables = forms.as_ref().map(|f| f.labels.clone());
    let variables = shape.account_variables;
    let ended = bilinear(session, &factors, variables, tables, of_labels)?;
    let terms = ended
        .iter()
        .zip([earlier, later])
        .map(|(ended, low)| {
            let of_records = eq_table(&at(ended, low));
            let mut weights = vec![Fr::ZERO; 1 << shape.account_variables];
            for (account, e) in statement.accounts.iter().zip(of_records) {
                weights[*account] += e;
            }
            Term {
                weights,
                at: ended.low.clone(),
                value: ended.value.into(),
            }
        })
        .collect();
    one_hot(session, &labels, shape.account_variables, terms, false)?;

    // Thresholds: first the pair of classes, then whether a record on each side has its class.
    let (tau, claim) = plain(2 * shape.class_variables, of_classes);
    let columns = vec![(thresholds, Fr::ONE)];
    let tables =
        thresholds_sum.map(|z| vec![table_of(session, &columns, 2 * shape.class_variables), z]);
    let reduced = sumcheck(
        session,
        "thresholds of pairs",
        &tau,
        claim,
        2,
        tables,
        Product,
    )?;
    let v = product_of(
        session,
        "thresholds of pairs",
        reduced.finals.as_deref(),
        reduced.claim,
    )?;
    session.claim(Weight::evaluation(&reduced.point), columns, v[0].into());
    let (u, v_point) = reduced.point.split_at(shape.class_variables);
    let tables = forms.map(|f| {
        let fold = |table: &[Fr], point: &[Fr]| {
            let eq = eq_table(point);
            table.chunks(eq.len()).map(|run| dot(run, &eq)).collect()
        };
        [fold(&f.classes[0], u), fold(&f.classes[1], v_point)]
    });
    let ended = bilinear(session, &factors, 0, tables, v[1].into())?;
    let terms = ended
        .iter()
        .zip([(earlier, u), (later, v_point)])
        .map(|(ended, (low, class))| Term {
            weights: eq_table(&at(ended, low)),
            at: class.to_vec(),
            value: ended.value.into(),
        })
        .collect();
    one_hot(session, &classes, shape.record_variables, terms, false)
}

/// sum of eq(earlier, il) eq(later, jl) over the pairs of two blocks that are compared.
fn compared_weight(
    statement: &CoalitionStatement,
    shape: &Shape,
    (i, j): (usize, usize),
    eq: &[Vec<Fr>; 2],
) -> Fr {
    let side = 1 << shape.block_variables;
    let mut sums = vec![Fr::ZERO];
    for e in &eq[0] {
        sums.push(sums[sums.len() - 1] + e);
    }
    let within = |record: usize| record.clamp(i * side, (i + 1) * side) - i * side;
    let records = (j * side..shape.records.min((j + 1) * side)).zip(&eq[1]);
    records
        .map(|(j, e)| {
            let (from, to) = (within(statement.first[j]), within(j));
            *e * (sums[to.max(from)] - sums[from])
        })
        .sum()
}

/// For the earlier and the later side, by block: sums over the block's records, weighted by eq.
struct Forms {
    /// Of the components: block b, component k at k + 2^component_variables b.
    components: [Vec<Fr>; 2],
    /// Of the records with each label.
    labels: [Vec<Fr>; 2],
    /// Of the records with each class.
    classes: [Vec<Fr>; 2],
}

impl Forms {
    fn new(
        statement: &CoalitionStatement,
        shape: &Shape,
        witness: &Witness,
        eq: &[Vec<Fr>; 2],
    ) -> Self {
        let records = 1 << shape.record_variables;
        let sums = |variables: usize, eq: &[Fr], add: &(dyn Fn(usize, Fr, &mut [Fr]) + Sync)| {
            let mut out = vec![Fr::ZERO; (records >> shape.block_variables) << variables];
            out.par_chunks_mut(1 << variables)
                .enumerate()
                .for_each(|(b, run)| {
                    for (il, e) in eq.iter().enumerate() {
                        add((b << shape.block_variables) + il, *e, run);
                    }
                });
            out
        };
        let component = |i: usize, e: Fr, run: &mut [Fr]| {
            let width = shape.components();
            let multiples: Vec<Fr> = (-7..=7).map(|v| from_small(v) * e).collect();
            let row = witness
                .vectors
                .get(i * width..(i + 1) * width)
                .unwrap_or_default();
            for (sum, v) in run.iter_mut().zip(row) {
                *sum += multiples[(v + COMPONENT) as usize];
            }
        };
        let label = |i: usize, e: Fr, run: &mut [Fr]| {
            if let Some(account) = statement.accounts.get(i) {
                run[witness.labels[*account]] += e;
            }
        };
        let class = |i: usize, e: Fr, run: &mut [Fr]| run[witness.classes[i]] += e;
        let both = |variables: usize, add: &(dyn Fn(usize, Fr, &mut [Fr]) + Sync)| {
            [0, 1].map(|k| sums(variables, &eq[k], add))
        };
        Self {
            components: both(shape.component_variables, &component),
            labels: both(shape.account_variables, &label),
            classes: both(shape.class_variables, &class),
        }
    }

    /// What the thresholds of two classes u, v are weighted with, at u + 2^class_variables v.
    fn thresholds(&self, factors: &[Vec<Fr>]) -> Vec<Fr> {
        let room = self.classes[0].len() / factors.len();
        let right = apply(factors, &self.classes[1]);
        let (left, right): (Vec<_>, Vec<_>) = (
            self.classes[0].chunks(room).collect(),
            right.chunks(room).collect(),
        );
        let mut out = vec![Fr::ZERO; room * room];
        out.par_chunks_mut(room).enumerate().for_each(|(v, run)| {
            for (left, right) in left.iter().zip(&right).filter(|(_, r)| r[v] != Fr::ZERO) {
                run.iter_mut()
                    .zip(*left)
                    .for_each(|(sum, l)| *sum += *l * right[v]);
            }
        });
        out
    }
}

/// sum over J of factors[I][J] table(.., J), for every I.
fn apply(factors: &[Vec<Fr>], table: &[Fr]) -> Vec<Fr> {
    let width = table.len() / factors.len();
    let mut out = vec![Fr::ZERO; table.len()];
    out.par_chunks_mut(width)
        .zip(factors)
        .for_each(|(run, row)| {
            for (part, f) in table
                .chunks(width)
                .zip(row)
                .filter(|(_, f)| **f != Fr::ZERO)
            {
                run.iter_mut().zip(part).for_each(|(sum, x)| *sum += *x * f);
            }
        });
    out
}

fn form(factors: &[Vec<Fr>], left: &[Fr], right: &[Fr]) -> Fr {
    dot(left, &apply(factors, right))
}

/// Where a side of a form has been reduced to.
struct Ended {
    low: Vec<Fr>,
    block: Vec<Fr>,
    value: Var,
}

/// sum over I, J, z of factors[I][J] left(z, I) right(z, J) = claim, reduced to one value of each side; z is the low
/// part of an index.
fn bilinear(
    session: &mut Session,
    factors: &[Vec<Fr>],
    low: usize,
    tables: Option<[Vec<Fr>; 2]>,
    claim: Expr,
) -> Result<[Ended; 2]> {
    let high = log2_ceil(factors.len());
    let (tau, claim) = plain(low + high, claim);
    let (left, right) = tables.map(<(_, _)>::from).unzip();
    let tables = left
        .zip(right.as_ref())
        .map(|(left, right)| vec![left, apply(factors, right)]);
    let reduced = sumcheck(session, "earlier records", &tau, claim, 2, tables, Product)?;
    let v = product_of(
        session,
        "earlier records",
        reduced.finals.as_deref(),
        reduced.claim,
    )?;
    let (z, block) = reduced.point.split_at(low);
    let earlier = Ended {
        low: z.to_vec(),
        block: block.to_vec(),
        value: v[0],
    };

    let eq = eq_table(block);
    let row: Vec<Fr> = (0..factors.len())
        .map(|j| factors.iter().zip(&eq).map(|(f, e)| f[j] * e).sum())
        .collect();
    let (tau, claim) = plain(high, v[1].into());
    let tables = right.map(|right| {
        let eq = eq_table(z);
        vec![
            row.clone(),
            right.chunks(eq.len()).map(|run| dot(run, &eq)).collect(),
        ]
    });
    let reduced = sumcheck(session, "later records", &tau, claim, 2, tables, Product)?;
    let value = reduced.finals.as_ref().map(|f| &f[1..]);
    let value = session.send("later records", 1, value)?[0];
    let weight = evaluate(&row, &reduced.point);
    session.constrain("later records", Expr::from(value) * weight - reduced.claim);
    let later = Ended {
        low: z.to_vec(),
        block: reduced.point,
        value,
    };
    Ok([earlier, later])
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::cheat::{every_point_is_opened, no_claim_is_skipped, nothing_is_forgotten};
    use crate::mutations::refused;
    use ragaudit_core::poseidon::hash_list;

    #[derive(Clone)]
    struct Case {
        statement: CoalitionStatement,
        secret: CoalitionSecret,
    }

    /// Whether two vectors are near, as docs/estimator.md says it.
    fn near(a: &[i8], b: &[i8], [p, q]: [u64; 2]) -> bool {
        let dot: i64 = a
            .iter()
            .zip(b)
            .map(|(a, b)| i64::from(*a) * i64::from(*b))
            .sum();
        let (p, q) = (i128::from(p), i128::from(q));
        dot > 0 && (q * i128::from(dot)).pow(2) >= p * p * i128::from(norm(a) * norm(b))
    }

    impl Case {
        /// Accounts and vectors of the records; salts are numbers. Everything else follows from what is near.
        fn new(accounts: &[usize], tenants: &[usize], vectors: &[&[i8]], tau: usize) -> Self {
            let theta = [4, 5];
            let dimension = vectors[0].len();
            let first: Vec<usize> = (0..accounts.len())
                .map(|j| if tau == 0 { 0 } else { j.saturating_sub(tau) })
                .collect();
            let mut labels: Vec<usize> = (0..tenants.len()).collect();
            for j in 0..accounts.len() {
                for i in first[j]..j {
                    let (a, b) = (labels[accounts[i]], labels[accounts[j]]);
                    if near(vectors[i], vectors[j], theta) {
                        labels.iter_mut().filter(|l| **l == b).for_each(|l| *l = a);
                    }
                }
            }
            let most = |tenant: Option<usize>| {
                let of = |label: usize| {
                    let pairs = labels.iter().zip(tenants);
                    pairs
                        .filter(|(l, t)| **l == label && tenant.is_none_or(|x| x == **t))
                        .count()
                };
                (0..tenants.len()).map(of).max().unwrap_or(0) as u64
            };
            let in_tenant = tenants.iter().map(|t| most(Some(*t))).max().unwrap_or(0);
            let salts: Vec<Fr> = (0..accounts.len())
                .map(|i| -Fr::from(1 + i as u64))
                .collect();
            let cq = vectors
                .iter()
                .zip(&salts)
                .map(|(v, s)| commit(v, s))
                .collect();
            let distinct = distinct_norms(&vectors.concat(), dimension);
            Self {
                statement: CoalitionStatement {
                    context: [9; 32],
                    dimension,
                    cq,
                    accounts: accounts.to_vec(),
                    tenants: tenants.to_vec(),
                    first,
                    theta,
                    largest: [most(None), in_tenant],
                    class_variables: CoalitionStatement::class_variables(accounts.len(), distinct),
                },
                secret: CoalitionSecret {
                    vectors: vectors.concat(),
                    salts,
                    labels,
                },
            }
        }

        fn prove(&self) -> Result<(Vec<u8>, Vec<Vec<u8>>)> {
            let (records, blindings) = prove_records(&self.statement, &self.secret)?;
            let runs = 0..self.statement.runs()?;
            let prove = |run| prove_pairs(&self.statement, &self.secret, &records, &blindings, run);
            let pairs = runs.map(prove).collect::<Result<_>>()?;
            Ok((records, pairs))
        }
    }

    fn commit(vector: &[i8], salt: &Fr) -> Fr {
        let mut list = vec![*salt];
        list.extend(pack_nibbles(vector));
        hash_list(TAG_VECTOR, &list)
    }

    fn verified(
        statement: &CoalitionStatement,
        (records, pairs): &(Vec<u8>, Vec<Vec<u8>>),
    ) -> bool {
        let pairs: Vec<&[u8]> = pairs.iter().map(Vec::as_slice).collect();
        verify_coalition(statement, records, &pairs).is_ok()
    }

    const A: &[i8] = &[7, 1, 0, -2, 3, 0];
    const B: &[i8] = &[7, 2, 0, -2, 3, 1];
    const C: &[i8] = &[4, 6, 1, -2, 3, 1];
    const D: &[i8] = &[-7, 1, 5, 2, -3, 0];
    const E: &[i8] = &[0, 0, 7, 0, 0, 6];
    const F: &[i8] = &[0, -3, 0, 6, 0, 1];

    /// Accounts 0, 1 and 2 are a chain over several blocks: A near B, B near C, A not near C. Account 5 is near to
    /// nobody, accounts 3 and 4 are of the other tenant, and 4 asks what 0 does.
    fn chain() -> Case {
        let accounts = [0, 3, 1, 0, 3, 3, 5, 5, 2, 1, 4, 2, 0];
        let vectors = [D, E, B, A, E, D, F, F, C, D, A, C, A];
        let mut vectors = vectors.to_vec();
        (vectors[0], vectors[5], vectors[9]) = (A, E, B);
        Case::new(&accounts, &[0, 0, 0, 1, 1, 0], &vectors, 0)
    }

    #[test]
    fn the_chain_is_one() {
        let theta = [4, 5];
        assert!(near(A, B, theta) && near(B, C, theta) && !near(A, C, theta));
        let case = chain();
        assert_eq!(case.statement.largest, [4, 3]);
        assert!(case.statement.runs().unwrap() > 1);
    }

    #[test]
    fn certificates_verify() {
        let case = chain();
        let certificate = case.prove().unwrap();
        assert!(verified(&case.statement, &certificate));
        // The same sizes whatever is hidden.
        let mut other = Case::new(
            &case.statement.accounts,
            &[0; 6],
            &[D, E, F, D, E, F, D, E, F, D, E, F, D],
            0,
        );
        other.statement.tenants = case.statement.tenants.clone();
        other.statement.largest = [6, 4];
        let others = other.prove().unwrap();
        assert!(verified(&other.statement, &others));
        assert_eq!(certificate.0.len(), others.0.len());
        let lengths = |c: &(Vec<u8>, Vec<Vec<u8>>)| c.1.iter().map(Vec::len).collect::<Vec<_>>();
        assert_eq!(lengths(&certificate), lengths(&others));
    }

    #[test]
    fn windows_of_every_kind_are_certified() {
        let zero: &[i8] = &[0; 6];
        let long: Vec<i8> = (0..130).map(|k| (k % 15) as i8 - 7).collect();
        let back: Vec<i8> = long.iter().rev().copied().collect();
        for case in [
            Case::new(&[0], &[0], &[A], 0),
            Case::new(&[0, 0, 0], &[0], &[A, B, A], 0),
            Case::new(&[0, 1, 2], &[0, 1, 2], &[A, A, A], 0),
            Case::new(&[0, 1, 0, 1, 2, 0], &[0, 1, 1], &[A, C, D, E, B, D], 1),
            Case::new(&[0, 1, 2, 1, 2], &[0, 1, 0], &[zero, A, zero, zero, D], 0),
            Case::new(&[0, 1], &[0, 0], &[&long, &back], 0),
        ] {
            let certificate = case.prove().unwrap();
            assert!(
                verified(&case.statement, &certificate),
                "{:?}",
                case.statement
            );
        }
    }

    /// The threshold is exactly where docs/estimator.md has it.
    #[test]
    fn thresholds_are_exact() {
        let mut statement = chain().statement;
        statement.dimension = 256;
        for theta in [[4, 5], [1, 1000], [999, 1000], [1, 2], [3, 5]] {
            statement.theta = theta;
            let [p, q] = theta.map(i128::from);
            for product in [
                0,
                1,
                2,
                4,
                25,
                100,
                1012 * 1012,
                1013 * 999,
                12_544 * 12_544i64,
            ] {
                let t = statement.threshold(product);
                let below =
                    |t: i64| t == 0 || (q * i128::from(t)).pow(2) < p * p * i128::from(product);
                assert!(below(t) && (product == 0 || !below(t + 1)));
                assert!(statement.bound(t) <= product);
                assert!(t >= statement.most() || statement.bound(t + 1) > product);
            }
        }
    }

    #[test]
    fn a_certificate_is_for_its_statement_only() {
        let case = chain();
        let certificate = case.prove().unwrap();
        let changes: [fn(&mut CoalitionStatement); 12] = [
            |s| s.context[0] ^= 1,
            |s| s.cq[3] += Fr::ONE,
            |s| s.cq.swap(0, 2),
            |s| s.accounts[3] = 1,
            |s| s.tenants[4] = 0,
            |s| s.first[12] = 11,
            |s| s.theta = [3, 5],
            |s| s.largest[0] -= 1,
            |s| s.largest[1] -= 1,
            |s| s.dimension += 1,
            |s| s.class_variables += 1,
            |s| {
                s.cq.pop();
                s.accounts.pop();
                s.first.pop();
            },
        ];
        // A new field has to be changed above.
        let CoalitionStatement {
            context: _,
            dimension: _,
            cq: _,
            accounts: _,
            tenants: _,
            first: _,
            theta: _,
            largest: _,
            class_variables: _,
        } = &case.statement;
        for (k, change) in changes.iter().enumerate() {
            let mut other = case.statement.clone();
            change(&mut other);
            assert!(!verified(&other, &certificate), "change {k}");
            let digests = |s: &CoalitionStatement| {
                [s.transcript(), s.run_transcript(&certificate.0, 0)].map(|t| t.digest())
            };
            let (said, before) = (digests(&other), digests(&case.statement));
            assert!(said[0] != before[0] && said[1] != before[1], "change {k}");
        }
        let of_run = |records: &[u8], run| case.statement.run_transcript(records, run).digest();
        assert_ne!(of_run(&certificate.0, 0), of_run(&certificate.0, 1));
        assert_ne!(of_run(&certificate.0, 0), of_run(&certificate.0[1..], 0));
        // Runs missing, doubled, in another order, or after another run over records.
        let (records, pairs) = &certificate;
        let again = prove_records(&case.statement, &case.secret).unwrap().0;
        let mut swapped = pairs.clone();
        swapped.swap(0, 1);
        for other in [
            (records.clone(), pairs[1..].to_vec()),
            (records.clone(), swapped),
            (records.clone(), [&pairs[..], &pairs[..1]].concat()),
            (again, pairs.clone()),
            (records[1..].to_vec(), pairs.clone()),
        ] {
            assert!(!verified(&case.statement, &other));
        }
    }

    fn holds(session: Session) -> Result<()> {
        let accepted = checked(session)?.holds(&[]);
        accepted.then_some(()).ok_or(Error::Rejected)
    }

    /// Of the run over records alone.
    fn verify_records(statement: &CoalitionStatement, proof: &[u8]) -> Result<()> {
        let shape = statement.shape()?;
        let mut session = Session::verifier(statement.transcript(), shape.row_variables, proof);
        records(&mut session, statement, &shape, None)?;
        holds(session)
    }

    /// Of the first run over pairs alone.
    fn verify_pairs(statement: &CoalitionStatement, made: &[u8], proof: &[u8]) -> Result<()> {
        let shape = statement.shape()?;
        let shared = Shared::new(&committed(statement, &shape, made)?, &shape);
        let transcript = statement.run_transcript(made, 0);
        let mut session = Session::verifier(transcript, shape.row_variables, proof);
        pairs(&mut session, statement, &shape, &shared, 0, None)?;
        holds(session)
    }

    /// Both runs of a small window, by a prover that refuses nothing.
    struct Runs {
        case: Case,
        witness: Witness,
        records: Vec<u8>,
        blindings: Vec<Fr>,
    }

    impl Runs {
        fn new() -> Self {
            let case = Case::new(&[0, 1, 1], &[0, 1], &[A, D, B], 0);
            let witness = witness(&case);
            let (records, blindings) = prove_records(&case.statement, &case.secret).unwrap();
            Self {
                case,
                witness,
                records,
                blindings,
            }
        }

        fn prove_records(&self) -> Vec<u8> {
            let (statement, witness) = (&self.case.statement, &self.witness);
            let columns = witness.columns(statement, &statement.shape().unwrap());
            prove_records_with(statement, witness, columns, false)
                .unwrap()
                .0
        }

        fn prove_pairs(&self) -> Vec<u8> {
            let (statement, witness) = (&self.case.statement, &self.witness);
            let own = witness.run(statement, &statement.shape().unwrap(), 0);
            let made = Made {
                records: &self.records,
                blindings: &self.blindings,
                run: 0,
            };
            prove_pairs_with(statement, witness, own, &made, false).unwrap()
        }

        fn verify_records(&self, proof: &[u8]) -> Result<()> {
            verify_records(&self.case.statement, proof)
        }

        fn verify_pairs(&self, proof: &[u8]) -> Result<()> {
            verify_pairs(&self.case.statement, &self.records, proof)
        }
    }

    #[test]
    fn a_transcript_forgets_nothing() {
        let runs = Runs::new();
        nothing_is_forgotten(|| runs.prove_records(), |proof| runs.verify_records(proof));
        nothing_is_forgotten(|| runs.prove_pairs(), |proof| runs.verify_pairs(proof));
    }

    #[test]
    fn claims_and_openings_are_all_needed() {
        let runs = Runs::new();
        no_claim_is_skipped(|| runs.prove_records(), |p| runs.verify_records(p), false);
        no_claim_is_skipped(|| runs.prove_pairs(), |p| runs.verify_pairs(p), false);
        every_point_is_opened(|| runs.prove_records(), |p| runs.verify_records(p));
        every_point_is_opened(|| runs.prove_pairs(), |p| runs.verify_pairs(p));
    }

    pub(crate) fn mutations(count: usize) {
        let runs = Runs::new();
        refused("coalition records", &runs.records, count, |proof| {
            runs.verify_records(proof).is_ok()
        });
        refused("coalition pairs", &runs.prove_pairs(), count, |proof| {
            runs.verify_pairs(proof).is_ok()
        });
    }

    #[test]
    fn false_claims_have_no_certificate() {
        let change = |lie: Lie| {
            let mut case = chain();
            lie(&mut case);
            case.prove()
        };
        assert!(change(|_| ()).is_ok());
        let lies: [(&str, Lie); 7] = [
            ("a split cluster", |c| c.secret.labels[2] = 2),
            ("one account of more in a label", |c| {
                c.statement.largest[0] = 3
            }),
            ("one account of more in a tenant", |c| {
                c.statement.largest[1] = 2
            }),
            ("another vector", |c| c.secret.vectors[0] ^= 1),
            ("another salt", |c| c.secret.salts[0] += Fr::ONE),
            ("a component of 8", |c| c.secret.vectors[0] = 8),
            ("a label of nobody", |c| c.secret.labels[2] = 6),
        ];
        for (what, lie) in lies {
            assert!(change(lie).is_err(), "{what}");
        }
    }

    /// A certificate of a prover that refuses nothing. `witness` is changed before the columns are made from it,
    /// `columns` after; `distances` are those of every run's blocks.
    fn forged(
        case: &Case,
        witness: impl Fn(&mut Witness, &CoalitionStatement, &Shape),
        columns: impl Fn(&mut Vec<Vec<i64>>, &Columns<usize>),
        distances: impl Fn(&mut Vec<Vec<i64>>),
        in_run: impl Fn(&mut Witness, usize),
    ) -> bool {
        let (statement, shape) = (&case.statement, case.statement.shape().unwrap());
        let mut lie = Witness::new(statement, &shape, &case.secret).unwrap();
        witness(&mut lie, statement, &shape);
        let mut made = lie.columns(statement, &shape);
        let places: Vec<usize> = (0..made.len()).collect();
        columns(&mut made, &shape.columns(&places));
        let (records, blindings) = prove_records_with(statement, &lie, made, false).unwrap();
        let prove = |run: usize| {
            let mut of_run = lie.clone();
            in_run(&mut of_run, run);
            let mut own = of_run.run(statement, &shape, run);
            distances(&mut own);
            let made = Made {
                records: &records,
                blindings: &blindings,
                run,
            };
            prove_pairs_with(statement, &of_run, own, &made, false).unwrap()
        };
        let pairs = (0..statement.runs().unwrap()).map(prove).collect();
        verified(statement, &(records, pairs))
    }

    type Lie = fn(&mut Case);
    type Forgery = fn(&mut Witness, &CoalitionStatement, &Shape);
    type Columnwise = Vec<Vec<i64>>;

    #[test]
    fn forged_records_are_refused() {
        let case = chain();
        let run = |lie: Forgery| forged(&case, lie, |_, _| (), |_| (), |_, _| ());
        assert!(run(|_, _, _| ()));
        let lies: [(&str, Forgery); 7] = [
            ("another vector than cq's", |w, s, shape| {
                w.vectors[0] -= 1;
                let norm = norm(&w.vectors[..s.dimension]);
                w.norms[5] = norm;
                w.classes[0] = 5;
                w.set_thresholds(s);
                let _ = shape;
            }),
            ("a component beyond the dimension", |w, s, _| {
                w.vectors[s.dimension] = 1;
                w.norms[5] = norm(&w.vectors[..8]);
                w.classes[0] = 5;
                w.set_thresholds(s);
            }),
            ("a larger norm", |w, s, _| {
                w.norms[w.classes[0]] += 100;
                w.set_thresholds(s);
            }),
            ("the class of another norm", |w, _, _| {
                w.classes[0] = w.classes[1];
            }),
            ("a larger threshold without its bound", |w, _, _| {
                w.thresholds[0] += 1;
            }),
            ("a larger threshold with its bound", |w, s, _| {
                w.thresholds[0] += 1;
                w.bounds[0] = s.bound(w.thresholds[0]);
            }),
            (
                "a larger threshold with its bound and slack wrapped around",
                |w, s, _| {
                    w.thresholds[0] += 1;
                    let bound = s.bound(w.thresholds[0]);
                    w.slack[0] += w.bounds[0] - bound;
                    w.bounds[0] = bound;
                },
            ),
        ];
        for (what, lie) in lies {
            assert!(!run(lie), "{what}");
        }
    }

    #[test]
    fn forged_counts_are_refused() {
        // One account more in the largest label, and in a tenant, than is said.
        for which in [0, 1] {
            let mut case = chain();
            case.statement.largest[which] -= 1;
            assert!(
                !forged(&case, |_, _, _| (), |_, _| (), |_| (), |_, _| ()),
                "below 0"
            );
            let clipped = |w: &mut Witness, _: &CoalitionStatement, _: &Shape| {
                w.spare.iter_mut().for_each(|s| *s = 0.max(*s));
                w.spare_in_tenant.iter_mut().for_each(|s| *s = 0.max(*s));
            };
            assert!(
                !forged(&case, clipped, |_, _| (), |_| (), |_, _| ()),
                "another count"
            );
        }
    }

    /// Whether the run over records is accepted, with columns changed after they were made.
    fn accepted(
        case: &Case,
        witness: &Witness,
        lie: impl Fn(&mut Columnwise, &Columns<usize>),
    ) -> bool {
        let shape = case.statement.shape().unwrap();
        let mut columns = witness.columns(&case.statement, &shape);
        let places: Vec<usize> = (0..columns.len()).collect();
        lie(&mut columns, &shape.columns(&places));
        let (proof, _) = prove_records_with(&case.statement, witness, columns, false).unwrap();
        let transcript = case.statement.transcript();
        let mut session = Session::verifier(transcript, shape.row_variables, &proof);
        records(&mut session, &case.statement, &shape, None).unwrap();
        checked(session).unwrap().holds(&[])
    }

    fn witness(case: &Case) -> Witness {
        let shape = case.statement.shape().unwrap();
        Witness::new(&case.statement, &shape, &case.secret).unwrap()
    }

    /// With bits 2 and -1, two accounts count once for each of two labels.
    #[test]
    fn labels_are_made_of_bits() {
        let case = Case::new(&[0, 1], &[0, 0], &[A, D], 0);
        assert_eq!(case.statement.largest, [1, 1]);
        let witness = witness(&case);
        assert!(accepted(&case, &witness, |_, _| ()));
        assert!(!accepted(&case, &witness, |columns, ids| {
            columns[ids.labels[0]] = vec![2, -1];
        }));
    }

    /// 16 more in one component and 1 less in the next give the same element.
    #[test]
    fn components_are_int4() {
        let case = chain();
        let mut witness = witness(&case);
        witness.vectors[0] += 16;
        witness.vectors[1] -= 1;
        witness.norms[5] = norm(&witness.vectors[..8]);
        witness.classes[0] = 5;
        witness.set_thresholds(&case.statement);
        assert!(!accepted(&case, &witness, |_, _| ()));
    }

    /// Components and salts other than those that were hashed, of the same norm.
    #[test]
    fn columns_are_what_cq_commits_to() {
        let case = chain();
        let witness = witness(&case);
        assert_eq!(case.secret.vectors[1], 1);
        assert!(!accepted(&case, &witness, |columns, ids| {
            columns[ids.vectors][1] = -1;
            columns[ids.nibbles][8] -= 1;
            columns[ids.nibbles][6] += 1;
        }));
        assert!(!accepted(&case, &witness, |columns, ids| {
            columns[ids.salts][0] += 1;
        }));
    }

    #[test]
    fn slack_is_not_negative() {
        let case = chain();
        let mut witness = witness(&case);
        witness.thresholds[0] += 1;
        let bound = case.statement.bound(witness.thresholds[0]);
        let slack = witness.slack[0] + witness.bounds[0] - bound;
        assert!(slack < 0);
        witness.bounds[0] = bound;
        assert!(!accepted(&case, &witness, |columns, ids| {
            columns[ids.slack[0]][0] = slack;
            columns[ids.slack[1]][0] = 0;
        }));
    }

    #[test]
    fn forged_pairs_are_refused() {
        let case = chain();
        let excuse = case.statement.excuse();
        let size = 1 << case.statement.distance_variables();
        let split = |w: &mut Witness, s: &CoalitionStatement, shape: &Shape| {
            w.labels[2] = 2;
            w.set_counts(s, shape);
        };
        let below = |d: &mut Columnwise, by: i64| {
            d.iter_mut()
                .flatten()
                .filter(|d| **d < 0)
                .for_each(|d| *d += by);
        };
        let run = |distances: &dyn Fn(&mut Columnwise)| {
            forged(&case, split, |_, _| (), distances, |_, _| ())
        };
        assert!(!run(&|_| ()), "a split cluster");
        assert!(!run(&|d| below(d, excuse)), "a false excuse");
        assert!(!run(&|d| below(d, size)), "a distance wrapped around");
        // The chain's link would have another label in the second run.
        let other = |w: &mut Witness, run: usize| w.labels[2] = if run == 0 { 2 } else { 0 };
        assert!(
            !forged(&case, |_, _, _| (), |_, _| (), |_| (), other),
            "an account of two labels"
        );
        // Vectors of the pairs that are not those of the records.
        let other = |w: &mut Witness, _: usize| w.vectors[0] = -w.vectors[0];
        assert!(
            !forged(&case, |_, _, _| (), |_, _| (), |_| (), other),
            "another vector"
        );
        // Pairs that tau compares, left out.
        let mut narrow = case.clone();
        narrow.statement.first = (0..13).collect();
        let shape = case.statement.shape().unwrap();
        let excused = |w: &Witness, run: usize| w.run(&narrow.statement, &shape, run);
        let witness = Witness::new(&case.statement, &shape, &case.secret).unwrap();
        let columns = witness.columns(&case.statement, &shape);
        let (records, blindings) =
            prove_records_with(&case.statement, &witness, columns, true).unwrap();
        let prove = |run: usize| {
            let made = Made {
                records: &records,
                blindings: &blindings,
                run,
            };
            let own = excused(&witness, run);
            prove_pairs_with(&case.statement, &witness, own, &made, false).unwrap()
        };
        let pairs = (0..case.statement.runs().unwrap()).map(prove).collect();
        assert!(
            !verified(&case.statement, &(records, pairs)),
            "a smaller tau"
        );
    }

    #[test]
    fn false_statements_are_refused_by_name() {
        let changes: [fn(&mut CoalitionStatement); 12] = [
            |s| s.cq.clear(),
            |s| s.dimension = 0,
            |s| s.dimension = MAX_COMPONENTS + 1,
            |s| s.accounts[0] = 6,
            |s| s.tenants[0] = 6,
            |s| s.tenants.resize(14, 0),
            |s| s.first[0] = 1,
            |s| s.theta = [5, 5],
            |s| s.theta = [1, 1001],
            |s| s.largest[0] = 0,
            |s| s.largest[1] = 7,
            |s| s.class_variables += 1,
        ];
        for (k, change) in changes.iter().enumerate() {
            let mut statement = chain().statement;
            change(&mut statement);
            assert!(
                matches!(statement.runs(), Err(Error::Invalid { .. })),
                "change {k}"
            );
        }
    }

    #[test]
    fn salts_are_their_limbs() {
        for salt in [
            Fr::ZERO,
            Fr::ONE,
            -Fr::ONE,
            Fr::from(3u8).inverse().unwrap(),
        ] {
            let limbs = salt_limbs(&salt);
            let sum: Fr = (0..)
                .zip(limbs)
                .map(|(k, l)| from_small(l) * power_of_two(SALT_BITS * k))
                .sum();
            assert_eq!(sum, salt);
        }
    }

    /// So many records of as many accounts, at most 64 tenants, with the most classes.
    fn public(records: usize, dimension: usize, first: Vec<usize>) -> CoalitionStatement {
        CoalitionStatement {
            context: [9; 32],
            dimension,
            cq: vec![Fr::ONE; records],
            accounts: (0..records).collect(),
            tenants: (0..records).map(|a| a % 64).collect(),
            first,
            theta: [4, 5],
            largest: [1, 1],
            class_variables: variables_of(records).min(MAX_CLASS_VARIABLES),
        }
    }

    /// A run over records, and a run over so many pairs of blocks after it, of the sizes that they have outside the tests.
    fn simulate(public: &CoalitionStatement, blocks: Option<Vec<(usize, usize)>>) {
        let mut shape = public.shape().unwrap();
        let mut session = Session::simulator(public.transcript(), shape.row_variables).unwrap();
        records(&mut session, public, &shape, None).unwrap();
        let shared = Shared::new(&session.columns, &shape);
        if let Some(blocks) = blocks {
            shape.block_variables = BLOCKS.0.min(shape.record_variables);
            (shape.run_blocks, shape.blocks) = (BLOCKS.1, blocks);
            let transcript = public.run_transcript(&[], 0);
            session = Session::simulator(transcript, shape.row_variables).unwrap();
            pairs(&mut session, public, &shape, &shared, 0, None).unwrap();
        }
        session.close(None).unwrap();
    }

    /// The same where all records are compared.
    pub(crate) fn simulate_all(
        records: usize,
        dimension: usize,
        blocks: Option<Vec<(usize, usize)>>,
    ) {
        simulate(&public(records, dimension, vec![0; records]), blocks);
    }

    /// The most that a certificate may have, where nothing is compared: only sizes count.
    fn simulate_full(blocks: Option<Vec<(usize, usize)>>) {
        let first = (0..MAX_RECORDS).collect();
        simulate(&public(MAX_RECORDS, MAX_COMPONENTS, first), blocks);
    }

    /// The weights of a certificate's sum.
    pub(crate) fn weigh_sum(records: usize, dimension: usize) {
        let statement = public(records, dimension, vec![0; records]);
        let mut weights = statement.sum_transcript(&[1; 100], &[&[2; 70], &[3; 70]]);
        weights.challenges("weight", 3);
    }

    type Change<'a> = &'a dyn Fn(&mut CoalitionStatement);

    /// Parameters at the end of their range and one beyond it, each refused by its name.
    #[test]
    fn every_parameter_ends_where_the_errors_do() {
        let of = |change: &dyn Fn(&mut CoalitionStatement)| {
            let mut statement = public(MAX_RECORDS, MAX_COMPONENTS, (0..MAX_RECORDS).collect());
            change(&mut statement);
            statement.shape().map(|_| ())
        };
        assert_eq!(of(&|_| ()), Ok(()));
        assert_eq!(of(&|s| s.theta = [999, 1000]), Ok(()));
        assert_eq!(of(&|s| s.largest = [MAX_RECORDS as u64; 2]), Ok(()));
        let more = |s: &mut CoalitionStatement| {
            s.cq.push(Fr::ONE);
            s.accounts.push(0);
            s.first.push(0);
        };
        let cases: [(&str, Change); 10] = [
            ("records", &more),
            ("records", &|s| s.cq.clear()),
            ("dimension", &|s| s.dimension = MAX_COMPONENTS + 1),
            ("dimension", &|s| s.dimension = 0),
            ("theta", &|s| s.theta = [999, 1001]),
            ("theta", &|s| s.theta = [0, 5]),
            ("c", &|s| s.largest = [MAX_RECORDS as u64 + 1, 1]),
            ("c", &|s| s.largest = [1, 0]),
            ("class variables", &|s| s.class_variables += 1),
            ("tenants", &|s| s.tenants[0] = 64),
        ];
        for (name, change) in cases {
            match of(change) {
                Err(Error::Invalid { field, .. }) => assert_eq!(field, name),
                other => panic!("{name}: {other:?}"),
            }
        }
    }

    pub(crate) struct Golden {
        pub(crate) statement: CoalitionStatement,
        pub(crate) secret: CoalitionSecret,
    }

    /// Four records of three accounts, two of which are near: one run over pairs, in the tests and outside.
    pub(crate) fn golden() -> Golden {
        let case = Case::new(&[0, 1, 2, 0], &[0, 0, 1], &[A, B, D, A], 0);
        assert_eq!(case.statement.runs(), Ok(1));
        let Case { statement, secret } = case;
        Golden { statement, secret }
    }

    pub(crate) fn largest_records() {
        simulate_full(None);
    }

    pub(crate) fn largest_pairs() {
        simulate_full(Some((0..63).map(|i| (i, 63)).collect()));
    }

    /// Of 256 blocks of 256 records, each compared with those before it and with itself.
    pub(crate) fn most_pair_runs() -> u64 {
        (256 * 257 / 2u64).div_ceil(63)
    }

    /// Public values alone, commitments that nobody can open, and an oracle that says when it must.
    #[test]
    fn certificates_are_simulated_without_vectors() {
        let case = chain();
        let real = case.prove().unwrap();
        let mut public = case.statement.clone();
        public.cq.iter_mut().for_each(|cq| *cq += Fr::ONE);
        let shape = public.shape().unwrap();
        let rows = shape.row_variables;
        let accepted = |session: Session| checked(session).unwrap().holds(&[]);

        let mut session = Session::simulator(public.transcript(), rows).unwrap();
        records(&mut session, &public, &shape, None).unwrap();
        let shared = Shared::new(&session.columns, &shape);
        let Closed::Simulated(proof, oracle) = session.close(None).unwrap() else {
            panic!("a simulator")
        };
        assert_eq!(proof.len(), real.0.len());
        let mut transcript = public.transcript();
        transcript.programmed = oracle.programmed;
        for (transcript, expected) in [(public.transcript(), false), (transcript, true)] {
            let mut session = Session::verifier(transcript, rows, &proof);
            records(&mut session, &public, &shape, None).unwrap();
            assert_eq!(accepted(session), expected);
        }

        let of_run = public.run_transcript(&proof, 0);
        let mut session = Session::simulator(of_run.clone(), rows).unwrap();
        pairs(&mut session, &public, &shape, &shared, 0, None).unwrap();
        let Closed::Simulated(proof, oracle) = session.close(None).unwrap() else {
            panic!("a simulator")
        };
        assert_eq!(proof.len(), real.1[0].len());
        let mut transcript = of_run.clone();
        transcript.programmed = oracle.programmed;
        for (transcript, expected) in [(of_run, false), (transcript, true)] {
            let mut session = Session::verifier(transcript, rows, &proof);
            pairs(&mut session, &public, &shape, &shared, 0, None).unwrap();
            assert_eq!(accepted(session), expected);
        }
    }

    #[test]
    fn the_gate_of_numbers_keeps_within_its_bounds() {
        let powers: Vec<Fr> = (2..10u64).map(|x| -Fr::from(x)).collect();
        for of_bits in [None, Some(&powers[2..])] {
            let points = vec![&powers[2..], &powers[1..7]];
            let of_terms = &powers[..2];
            let tables = 8 + usize::from(of_bits.is_some());
            let gate = Numbers {
                points,
                of_terms,
                of_bits,
            };
            crate::rounds::tests::agree(&gate, 7, tables);
        }
    }
}
