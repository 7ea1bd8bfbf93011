//! The inputs of the prover of A1, and the columns' values that it computes from them.
use ragaudit_field_simd::commitment::NIBBLES_PER_ELEMENT;
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::error::{Error, Result};
use crate::group::Fr;
use crate::index::COMPONENT;
use crate::nibbles::NIBBLE_VARIABLES;
use crate::numbers::{from_small, log2_ceil, pad, power_of_two};
use crate::prover::columns::count;
use ragaudit_scan_protocol::embed::statement::*;

/// The private side.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct Query {
    pub tokens: Vec<u32>,
    pub query_salt: Fr,
    pub vector_salt: Fr,
}

/// The prover's columns and values.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub(crate) struct Witness {
    /// One token for each place, 0 in unused places.
    pub(crate) tokens: Vec<i64>,
    pub(crate) used: Vec<i64>,
    /// The multiplicity of each row of the table; row V counts the unused places.
    pub(crate) histogram: Vec<i64>,
    pub(crate) sums: Vec<i64>,
    pub(crate) vector: Vec<i64>,
    pub(crate) root: i64,
    /// 2^16 sum e_j^2 - w^2.
    pub(crate) rest: i64,
    /// 2 A e_j - (2 v_j - 1) w and (2 v_j + 1) w - 2 A e_j, with their slack.
    pub(crate) distances: [Vec<i64>; 2],
}

/// The prover's claims about its columns and values, which the constraints bind to them.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub(crate) struct Claimed {
    /// At the random point: e, v and w v.
    pub(crate) at_point: [Vec<i64>; 3],
    pub(crate) packed: Vec<i64>,
    /// The components with squares that are summed.
    pub(crate) squared: Vec<i64>,
    /// w^2.
    pub(crate) root_squared: i64,
    /// 2 w - rest.
    pub(crate) lacking: i64,
}

impl Claimed {
    pub(super) fn of(witness: &Witness) -> Self {
        let product = witness.vector.iter().map(|v| v * witness.root).collect();
        Self {
            at_point: [witness.sums.clone(), witness.vector.clone(), product],
            packed: witness.vector.clone(),
            squared: witness.sums.clone(),
            root_squared: witness.root * witness.root,
            lacking: 2 * witness.root - witness.rest,
        }
    }
}

impl Witness {
    pub(super) fn new(statement: &EmbedStatement, rows: &[i8], query: &Query) -> Result<Self> {
        let bounds = statement.check()?;
        let (vocabulary, dimension) = (statement.vocabulary(), statement.table.dimension);
        if rows.len() != vocabulary * dimension {
            let expected = format!("{vocabulary} rows of {dimension} components");
            let actual = format!("{} components", rows.len());
            return Err(Error::invalid("table", expected, actual));
        }
        if let Some(bad) = rows.iter().find(|v| v.unsigned_abs() > COMPONENT as u8) {
            let expected = format!("components of -{COMPONENT} to {COMPONENT}");
            return Err(Error::invalid("table", expected, bad));
        }
        let number = query.tokens.len();
        if !(1..=statement.tokens).contains(&number) {
            let expected = format!("1 to {} tokens", statement.tokens);
            return Err(Error::invalid("tokens", expected, number));
        }
        let mut tokens = vec![0; statement.tokens];
        let mut used = vec![0; statement.tokens];
        let mut histogram = vec![0; vocabulary + 1];
        histogram[vocabulary] = (statement.tokens - number) as i64;
        let mut sums = vec![0; dimension];
        if let Some(bad) = query.tokens.iter().find(|t| **t as usize >= vocabulary) {
            let expected = format!("numbers below {vocabulary}");
            return Err(Error::invalid("tokens", expected, bad));
        }
        // The number of rows that are read and added does not depend on the number of tokens; the rows of unused places have a
        // zero mask.
        for place in 0..statement.tokens {
            let here = (place < number) as i64;
            let token = query.tokens.get(place).map_or(0, |t| *t as usize);
            (tokens[place], used[place]) = (token as i64, here);
            histogram[token] += here;
            let mask = std::hint::black_box(-here);
            let row = &rows[token * dimension..][..dimension];
            sums.iter_mut()
                .zip(row)
                .for_each(|(e, v)| *e += i64::from(*v) & mask);
        }
        let square = sums.iter().map(|e| e * e).sum::<i64>() << ROOT_SHIFT;
        let root = square.isqrt();
        if root == 0 {
            return Err(Error::Unsatisfied(
                "the rows of the tokens sum to zero".to_owned(),
            ));
        }
        let factor = 2 * statement.norm_factor as i64;
        let component = |e: &i64| {
            let maximum = i64::from(COMPONENT);
            // Divided by 2 w without a division: how many of its multiples there are, up to the largest that counts.
            let numerator = factor * e.abs() + root;
            let magnitude: i64 = (1..=maximum)
                .map(|k| i64::from(numerator >= 2 * k * root))
                .sum();
            e.signum() * magnitude
        };
        let mut witness = Self {
            tokens,
            used,
            histogram,
            vector: sums.iter().map(component).collect(),
            sums,
            root,
            rest: square - root * root,
            distances: [Vec::new(), Vec::new()],
        };
        witness.measure(factor, bounds.scaled);
        Ok(witness)
    }

    pub(super) fn measure(&mut self, factor: i64, scaled: i64) {
        let pairs = self.sums.iter().zip(&self.vector).map(|(e, v)| {
            let [lower, upper] = slack(*v, scaled);
            [
                factor * e - (2 * v - 1) * self.root + lower,
                (2 * v + 1) * self.root - factor * e + upper,
            ]
        });
        let (lower, upper) = pairs.map(|[a, b]| (a, b)).unzip();
        self.distances = [lower, upper];
    }

    /// The values of the prover's columns.
    pub(super) fn columns(
        &self,
        claimed: &Claimed,
        statement: &EmbedStatement,
        bounds: &Bounds,
    ) -> Columns<Vec<i64>> {
        let components = log2_ceil(statement.table.dimension);
        let vector = pad(&self.vector, components);
        let (lower_slack, upper_slack) = vector
            .iter()
            .map(|v| slack(*v, bounds.scaled).into())
            .unzip();
        // Places after the last component: e = v = 0, so both distances are w - 1.
        let [lower, upper] = self.distances.each_ref().map(|distance| {
            let mut distance = distance.clone();
            distance.resize(1 << components, self.root - 1);
            let limb = |k| distance.iter().map(|d| limb(*d, k, bounds.limbs)).collect();
            (0..bounds.limbs).map(limb).collect::<Vec<Vec<i64>>>()
        });
        let mut limbs = vec![0; 1 << LIMB_BITS];
        let mut steps = vec![0; 1 << NIBBLE_VARIABLES];
        lower
            .iter()
            .chain(&upper)
            .flatten()
            .for_each(|v| count(&mut limbs, *v));
        self.root_limbs(claimed, bounds)
            .iter()
            .for_each(|v| count(&mut limbs, *v));
        let maximum = i64::from(COMPONENT);
        vector.iter().for_each(|v| count(&mut steps, v + maximum));
        Columns {
            histogram: pad(&self.histogram, statement.table.layout.variables),
            sums: pad(&self.sums, components),
            vector,
            lower_slack,
            upper_slack,
            lower,
            upper,
            limbs,
            steps,
        }
    }

    /// w - 1, the remainder under the root, and the difference between 2 w and the remainder.
    pub(super) fn root_limbs(&self, claimed: &Claimed, bounds: &Bounds) -> Vec<i64> {
        [self.root - 1, self.rest, claimed.lacking]
            .into_iter()
            .flat_map(|v| (0..bounds.limbs).map(move |k| limb(v, k, bounds.limbs)))
            .collect()
    }

    /// In the order that the protocol sends them.
    pub(super) fn hidden(&self, query: &Query, claimed: &Claimed, bounds: &Bounds) -> Vec<Fr> {
        let mut out = vec![query.query_salt, query.vector_salt];
        let root = self.root_limbs(claimed, bounds);
        out.extend(
            [&self.tokens, &self.used, &root]
                .into_iter()
                .flatten()
                .map(|v| from_small(*v)),
        );
        out.push(from_small(claimed.root_squared));
        let packed = |run: &[i64]| {
            let place = |(i, v): (usize, &i64)| from_small(*v) * power_of_two(4 * i);
            run.iter().enumerate().map(place).sum::<Fr>()
        };
        out.extend(claimed.packed.chunks(NIBBLES_PER_ELEMENT).map(packed));
        out
    }
}

/// The last limb has the whole rest; a rest that is too large then has no row in the table of limbs.
pub(super) fn limb(x: i64, k: usize, limbs: usize) -> i64 {
    let rest = x >> (LIMB_BITS * k);
    if k + 1 < limbs {
        rest & ((1 << LIMB_BITS) - 1)
    } else {
        rest
    }
}
