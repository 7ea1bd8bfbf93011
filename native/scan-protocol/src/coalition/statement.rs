//! The statement of a coalition proof, and the sizes that follow from it: `docs/scan/coalition.md`.
use ragaudit_relation::poseidon::LIST_RUN;
use ragaudit_relation::NIBBLES_PER_ELEMENT;
use sha2::{Digest, Sha256};

use crate::claims::Bound;
use crate::error::{Error, Result};
use crate::group::Fr;
use crate::index::COMPONENT;
use crate::nibbles::{NIBBLE_VARIABLES, TAG_NIBBLE};
use crate::numbers::{log2_ceil, power_of_two, NO_WRAP_BITS};
use crate::ranges::LIMB_BITS;
use crate::transcript::{Oracle, Transcript};

pub const TAG_BOUND: u64 = 2;
pub const TAG_PAIR: u64 = 4;
/// The largest number of records in one coalition proof.
pub const MAX_RECORDS: usize = (1 << LIMB_BITS) - 1;
/// The number of components that fit into one run of a list hash with the salt.
pub const MAX_COMPONENTS: usize = (LIST_RUN - 1) * NIBBLES_PER_ELEMENT;
/// The largest q of theta = p/q.
pub const MAX_DENOMINATOR: u64 = 1000;
/// The number of norms, as a power of two, that every window has room for; a window with more norms states its own number.
pub const CLASS_VARIABLES: usize = 9;
pub const MAX_CLASS_VARIABLES: usize = 11;
/// The largest number of norms in one coalition proof.
pub const MAX_CLASSES: usize = 1 << MAX_CLASS_VARIABLES;
/// The largest product of labels and tenants, each rounded up to a power of two.
pub const MAX_LABELS: usize = 1 << LABEL_VARIABLES;
pub const LABEL_VARIABLES: usize = 22;
/// The number of a salt's limbs. Every combination of limbs is a field element, so the limbs need no range.
pub const SALT_LIMBS: usize = 5;
pub const SALT_BITS: usize = 52;

/// The constants that determine the positions of values in a proof: see [`crate::protocol`].
pub const RULES: [u64; 8] = [
    TAG_BOUND,
    TAG_NIBBLE,
    TAG_PAIR,
    CLASS_VARIABLES as u64,
    Blocks::SHIPPED.variables as u64,
    Blocks::SHIPPED.of_run as u64,
    SALT_LIMBS as u64,
    SALT_BITS as u64,
];

/// The division of records into blocks, and of pairs of blocks into runs. The protocol's name contains the default value, and
/// only this crate has others: its tests use smaller ones, so that few records fill several blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocks {
    /// The number of records in a block, as a power of two.
    pub variables: usize,
    /// The number of pairs of blocks in one run.
    pub of_run: usize,
}

impl Blocks {
    pub const SHIPPED: Self = Self {
        variables: 8,
        of_run: 63,
    };
}

impl Default for Blocks {
    fn default() -> Self {
        Self::SHIPPED
    }
}

const fn maximum(dimension: usize) -> i64 {
    (COMPONENT as i64).pow(2) * dimension as i64
}

const _: () = {
    let maximum = maximum(MAX_COMPONENTS);
    // Equations of integers: products of norms, bounds with their slack, and counts with the spare places of labels.
    let slack = 1i64 << (2 * LIMB_BITS);
    assert!(
        maximum * maximum < 1 << 33 && maximum * maximum + 1 + slack < 1 << 33 && 33 < NO_WRAP_BITS
    );
    assert!(MAX_RECORDS < 1 << LIMB_BITS);
    // Squares of thresholds are computed as i128, bounds as i64; distances are rows of a table.
    assert!((MAX_DENOMINATOR as i128 * maximum as i128).pow(2) < i128::MAX / 4);
    assert!(4 * maximum < 1 << 18);
};

/// The statement of a coalition proof. The verifier rebuilds every value from published entries.
#[derive(Clone, Debug)]
pub struct CoalitionStatement {
    /// Digest of all other data that the proof is bound to.
    pub context: [u8; 32],
    pub dimension: usize,
    /// cq of each record.
    pub cq: Vec<Fr>,
    /// Account of each record.
    pub accounts: Vec<usize>,
    /// Tenant of each account.
    pub tenants: Vec<usize>,
    /// For each record, the first record that it is compared with.
    pub first: Vec<usize>,
    /// The threshold p/q.
    pub theta: [u64; 2],
    /// The largest number of accounts with one label, and with one label in one tenant.
    pub largest: [u64; 2],
    /// log2 of the number of norms that the proof has room for: see [`CoalitionStatement::class_variables`].
    pub class_variables: usize,
    pub blocks: Blocks,
}

pub fn variables_of(count: usize) -> usize {
    log2_ceil(count).max(1)
}

pub fn invalid<T>(field: &str, expected: impl Into<String>, actual: impl ToString) -> Result<T> {
    Err(Error::invalid(field, expected, actual))
}

/// Sizes, all of them public.
pub struct Shape {
    pub records: usize,
    pub record_variables: usize,
    pub component_variables: usize,
    pub account_variables: usize,
    pub tenant_variables: usize,
    pub class_variables: usize,
    pub block_variables: usize,
    /// Pairs of blocks, the earlier block first, that contain a compared pair of records.
    pub blocks: Vec<(usize, usize)>,
    /// The number of pairs of blocks in one run over pairs.
    pub run_blocks: usize,
    pub row_variables: usize,
}

impl CoalitionStatement {
    /// The smallest room for `norms` norms, in a window of `records` records.
    pub fn class_variables(records: usize, norms: usize) -> usize {
        let all = variables_of(records);
        all.min(CLASS_VARIABLES.max(variables_of(norms)))
    }

    pub fn shape(&self) -> Result<Shape> {
        let records = self.cq.len();
        let accounts = self.tenants.len();
        if !(1..=MAX_RECORDS).contains(&records) {
            return invalid("records", format!("1 to {MAX_RECORDS}"), records);
        }
        if !(1..=MAX_COMPONENTS).contains(&self.dimension) {
            return invalid(
                "dimension",
                format!("1 to {MAX_COMPONENTS}"),
                self.dimension,
            );
        }
        if self.accounts.len() != records || self.first.len() != records {
            let actual = format!(
                "{} accounts and {} first records",
                self.accounts.len(),
                self.first.len()
            );
            return invalid(
                "records",
                format!("{records} accounts and first records"),
                actual,
            );
        }
        if accounts > records || self.accounts.iter().any(|a| *a >= accounts) {
            return invalid(
                "accounts",
                format!("at most {records} accounts, and records' numbers below their count"),
                format!("{accounts} accounts"),
            );
        }
        if self.tenants.iter().any(|t| *t >= accounts) {
            return invalid(
                "tenants",
                format!("tenants numbered below {accounts}, the count of accounts"),
                "a larger number",
            );
        }
        if self.first.iter().enumerate().any(|(j, f)| *f > j) {
            return invalid(
                "first",
                "for each record one that is not after it",
                "one that is after it",
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
                format!("two numbers of 1 to {accounts}"),
                format!("{:?}", self.largest),
            );
        }
        let minimum = Self::class_variables(records, 1);
        let maximum = variables_of(records).min(MAX_CLASS_VARIABLES);
        if !(minimum..=maximum).contains(&self.class_variables) {
            let expected = format!("{minimum} to {maximum}");
            return invalid("class variables", expected, self.class_variables);
        }
        let record_variables = variables_of(records);
        let component_variables = variables_of(self.dimension);
        let block_variables = self.blocks.variables.min(record_variables);
        let tenants = self.tenants.iter().max().map_or(1, |t| t + 1);
        let account_variables = variables_of(accounts);
        let tenant_variables = log2_ceil(tenants);
        if account_variables + tenant_variables > LABEL_VARIABLES {
            return invalid(
                "tenants",
                format!("at most 2^{LABEL_VARIABLES} pairs of a label and a tenant"),
                format!("{accounts} accounts and {tenants} tenants"),
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
            run_blocks: self.blocks.of_run,
            row_variables: largest.max(2 * self.class_variables).div_ceil(2) + 3,
        })
    }

    /// The number of runs over pairs.
    pub fn runs(&self) -> Result<usize> {
        Ok(self.shape()?.runs())
    }

    pub fn absorb(&self, t: &mut Transcript<impl Oracle>) {
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

    pub fn transcript<O: Oracle>(&self) -> Transcript<O> {
        let mut t = Transcript::new("coalition records");
        self.absorb(&mut t);
        t
    }

    pub fn run_transcript<O: Oracle>(&self, records: &[u8], run: usize) -> Transcript<O> {
        let mut t = Transcript::new("coalition pairs");
        self.absorb(&mut t);
        t.bytes("records", &Sha256::digest(records));
        t.integer("run", run as u64);
        t
    }

    /// The transcript from which the weights of the runs' equations are drawn.
    pub fn sum_transcript<O: Oracle>(&self, records: &[u8], pairs: &[&[u8]]) -> Transcript<O> {
        let mut t = Transcript::new("coalition sum");
        self.absorb(&mut t);
        for proof in std::iter::once(&records).chain(pairs) {
            t.bytes("proof", proof);
        }
        t
    }

    /// The largest dot product of vectors.
    pub fn maximum(&self) -> i64 {
        maximum(self.dimension)
    }

    /// The product of norms above which a dot product is below the threshold: 0 for 0, otherwise the least integer above (q t
    /// / p)^2. No product of norms exceeds `maximum`^2, so larger bounds need no distinction.
    pub fn bound(&self, dot: i64) -> i64 {
        if dot == 0 {
            return 0;
        }
        let [p, q] = self.theta.map(i128::from);
        let maximum = self.maximum();
        let minimum = (q * i128::from(dot)).pow(2) / (p * p) + 1;
        minimum.min(i128::from(maximum * maximum) + 1) as i64
    }

    /// The largest dot product that is below the threshold, for a product of norms.
    pub fn threshold(&self, product: i64) -> i64 {
        let [p, q] = self.theta.map(i128::from);
        match product {
            0 => 0,
            _ => ((p * p * i128::from(product) - 1) / (q * q)).isqrt() as i64,
        }
    }

    pub fn dot_variables(&self) -> usize {
        log2_ceil(self.maximum() as usize + 1)
    }

    /// The value that an excuse adds to a pair's distance from the threshold, which is never below -`maximum`.
    pub fn excuse(&self) -> i64 {
        self.maximum()
    }

    pub fn distance_variables(&self) -> usize {
        log2_ceil(4 * self.maximum() as usize + 1)
    }

    /// Whether records i < j are compared.
    pub fn compared(&self, i: usize, j: usize) -> bool {
        i < j && j < self.cq.len() && i >= self.first[j]
    }

    /// The offset of a packed element: every nibble is a component plus 8.
    pub fn offset() -> Fr {
        (0..NIBBLES_PER_ELEMENT)
            .map(|k| power_of_two(4 * k))
            .sum::<Fr>()
            * Fr::from(8u8)
    }

    pub fn elements(&self) -> usize {
        self.dimension.div_ceil(NIBBLES_PER_ELEMENT)
    }
}

impl Shape {
    pub fn components(&self) -> usize {
        1 << self.component_variables
    }

    pub fn run(&self, run: usize) -> &[(usize, usize)] {
        self.blocks
            .chunks(self.run_blocks)
            .nth(run)
            .unwrap_or_default()
    }

    pub fn runs(&self) -> usize {
        self.blocks.len().div_ceil(self.run_blocks)
    }

    /// Entries of each column of the run over records, and their bounds.
    pub fn bounds(&self, statement: &CoalitionStatement) -> Columns<(usize, Bound)> {
        let maximum = statement.maximum() as usize;
        let pairs = 1 << (2 * self.class_variables);
        let labels = 1 << self.account_variables;
        let in_tenants = labels << self.tenant_variables;
        let components = 1 << (self.record_variables + self.component_variables);
        let bit = |variables: usize| (1 << variables, Bound::Unsigned(1));
        let limb = Bound::Unsigned(LIMB_BITS);
        let [spare, spare_in_tenant] = statement.largest.map(|c| {
            let maximum = (c as usize).max(self.records);
            Bound::within(maximum)
        });
        let salts = 1 << log2_ceil(SALT_LIMBS * self.records);
        let lookups_of_ranges = 2 * pairs + labels + in_tenants;
        Columns {
            vectors: (components, Bound::within(COMPONENT as usize)),
            salts: (salts, Bound::Unsigned(SALT_BITS)),
            classes: vec![bit(self.record_variables); self.class_variables],
            labels: vec![bit(self.account_variables); self.account_variables],
            norms: (1 << self.class_variables, Bound::up_to(maximum)),
            thresholds: (pairs, Bound::up_to(maximum)),
            bounds: (pairs, Bound::up_to(maximum * maximum + 1)),
            slack: [(pairs, limb), (pairs, limb)],
            spare: (labels, spare),
            spare_in_tenant: (in_tenants, spare_in_tenant),
            range: (1 << LIMB_BITS, Bound::up_to(lookups_of_ranges)),
            bound_rows: (1 << statement.dot_variables(), Bound::up_to(pairs)),
            nibbles: (1 << NIBBLE_VARIABLES, Bound::up_to(components)),
        }
    }
}

/// The columns of the run over records, in the order of their commitments.
pub struct Columns<T> {
    /// Component k of record i at 2^component_variables i + k.
    pub vectors: T,
    pub salts: T,
    /// Bits of each record's class: records with the same norm have the same class.
    pub classes: Vec<T>,
    /// Bits of each account's label.
    pub labels: Vec<T>,
    /// The norm of each class.
    pub norms: T,
    /// For two classes u, v, at u + 2^class_variables v: the largest dot product below the threshold.
    pub thresholds: T,
    /// The product of norms that the threshold needs.
    pub bounds: T,
    /// Limbs of the difference between the product of norms and that bound.
    pub slack: [T; 2],
    /// For each label, the largest number of accounts minus the actual number.
    pub spare: T,
    /// The same for label l and tenant t, at l + 2^account_variables t.
    pub spare_in_tenant: T,
    /// How often each row of a table is looked up.
    pub range: T,
    pub bound_rows: T,
    pub nibbles: T,
}

impl<T> Columns<T> {
    pub fn in_order(self) -> Vec<T> {
        let mut out = vec![self.vectors, self.salts];
        out.extend(self.classes.into_iter().chain(self.labels));
        out.extend([self.norms, self.thresholds, self.bounds]);
        out.extend(self.slack);
        out.extend([self.spare, self.spare_in_tenant]);
        out.extend([self.range, self.bound_rows, self.nibbles]);
        out
    }

    pub fn named(all: Vec<T>, shape: &Shape) -> Self {
        let mut all = all.into_iter();
        let mut next = || all.next().expect("one for each name");
        Self {
            vectors: next(),
            salts: next(),
            classes: (0..shape.class_variables).map(|_| next()).collect(),
            labels: (0..shape.account_variables).map(|_| next()).collect(),
            norms: next(),
            thresholds: next(),
            bounds: next(),
            slack: [next(), next()],
            spare: next(),
            spare_in_tenant: next(),
            range: next(),
            bound_rows: next(),
            nibbles: next(),
        }
    }
}
