//! Parts that the blocks of the integer encoder share: their bounds, divisions with remainders in limbs, and the LayerNorm.
//! `docs/scan/feed-forward.md` and `docs/scan/attention.md`.
use std::fmt::Display;
use std::sync::Arc;

use ark_ff::{AdditiveGroup, Field};
use sha2::{Digest, Sha256};

use crate::channel::Channel;
use crate::claims::Bound;
use crate::error::{Error, Result};
use crate::expr::{Expr, Var};
use crate::group::{encode_points, Fr, G1Affine};
use crate::lookup::{lookups, Count, Entry, QueryClaim, Segment};
use crate::mle::{eq_at, eq_table, evaluate_list, prefix, Weight};
use crate::numbers::{from_small, log2_ceil, power_of_two, NO_WRAP_BITS};
use crate::prover::{Known, ProverWitness};
use crate::session::{Column, ColumnId, Opening, Session};
use crate::sumcheck::{plain, sumcheck, Gate};

/// Fraction bits of a parameter.
pub const WEIGHT_BITS: usize = 12;
/// Activations are from -2^11 to 2^11 - 1.
pub const ACTIVATION_BITS: usize = 12;
pub const ACTIVATION_LIMIT: i64 = 1 << (ACTIVATION_BITS - 1);
/// Fraction bits of R.
pub const ROOT_BITS: usize = 42;
/// Sums of a dense layer are below this in magnitude, for all activations.
pub const ACCUMULATOR_LIMIT: i64 = 1 << 31;
pub const MAX_SCALE: u32 = 11;
pub const MAX_PLACES: usize = 64;
pub const MAX_WIDTH: usize = 1 << 10;

pub const LIMB_BITS: usize = 12;
/// A mark, and an entry of a token's digit, is 0 or 1.
pub const BIT: usize = 1;
/// Limbs of R, and of each slack of its two inequalities.
pub const ROOT_LIMBS: usize = 4;
pub const SLACK_LIMBS: usize = 8;
/// Entries of one place in the column of roots.
pub const ROOT_STRIDE: usize = 32;
/// Largest row of a column's commitment, as a power of two.
pub const MAX_ROW_VARIABLES: usize = 12;

/// Tags of the tables; a table of limbs has its width as its tag.
pub const TAG_GELU: u64 = 13;
pub const TAG_ACTIVATION: u64 = 14;
pub const TAG_EXP: u64 = 15;
pub const TAG_STEP: u64 = 16;

// The assertions behind the bounds in `docs/scan/feed-forward.md`: no equation of the LayerNorm wraps around.
const _: () = {
    // |d r_j - sum r| <= 2 d 2^31, and the sum of d squares of it.
    let deviation = 1 + MAX_WIDTH.trailing_zeros() as usize + 31;
    let variance = MAX_WIDTH.trailing_zeros() as usize + 2 * deviation;
    assert!(MAX_WIDTH.is_power_of_two() && deviation == 42 && variance == 94);
    // R^2 V <= d 2^(2 K), V >= 1: a root has 47 bits, and (2 R + 1) V <= 2 sqrt(d 2^(2 K) V) + V.
    let target = MAX_WIDTH.trailing_zeros() as usize + 2 * ROOT_BITS;
    assert!(target / 2 < LIMB_BITS * ROOT_LIMBS);
    assert!(1 + (target + variance) / 2 < LIMB_BITS * SLACK_LIMBS);
    assert!(ROOT_LIMBS + 2 * SLACK_LIMBS <= ROOT_STRIDE);
    // For all values that a prover may write.
    assert!(2 * LIMB_BITS * ROOT_LIMBS + variance + 2 <= 192 && 192 < NO_WRAP_BITS);
    assert!(deviation + LIMB_BITS * ROOT_LIMBS + 16 + 2 < NO_WRAP_BITS);
    // A quotient times its divisor, and the remainder.
    let shift = ROOT_BITS + WEIGHT_BITS;
    assert!(ACTIVATION_BITS + shift + 1 < NO_WRAP_BITS);
    assert!(LIMB_BITS < TAG_GELU as usize && TAG_GELU < TAG_ACTIVATION && TAG_ACTIVATION < TAG_EXP);
    assert!(TAG_EXP < TAG_STEP);
};

/// An even number of blocks is a power of two of entries: count = blocks 2^variables, with an odd number of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocks {
    pub blocks: usize,
    pub variables: usize,
}

impl Blocks {
    pub fn of(count: usize) -> Self {
        let variables = count.trailing_zeros() as usize;
        Self {
            blocks: count >> variables,
            variables,
        }
    }

    /// Entries of one place in one column.
    pub fn entries(&self) -> usize {
        1 << self.variables
    }

    /// The number of rows of each column's commitment.
    pub fn rows(&self, places: usize, row_variables: usize) -> usize {
        (places * self.entries()).div_ceil(1 << row_variables)
    }
}

/// Texts of a run, each with as many places: place t of text k is place t + T k of the run. Both numbers are powers of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Texts {
    pub count: usize,
    /// T: the places of one text.
    pub places: usize,
}

impl Texts {
    pub fn one(places: usize) -> Self {
        Self { count: 1, places }
    }

    /// The number of places of all texts.
    pub fn all(&self) -> usize {
        self.count * self.places
    }

    /// The variables that number the places of one text.
    pub fn of_places(&self) -> usize {
        log2_ceil(self.places)
    }

    /// The variables that number the texts.
    pub fn of_texts(&self) -> usize {
        log2_ceil(self.count)
    }

    /// The variables that number all places.
    pub fn variables(&self) -> usize {
        self.of_texts() + self.of_places()
    }
}

/// Widths of the limbs of a remainder of so many bits, the lowest limb first.
pub fn limb_widths(bits: usize) -> Vec<usize> {
    let count = bits.div_ceil(LIMB_BITS);
    let mut widths = vec![LIMB_BITS; count];
    widths[count - 1] = bits - LIMB_BITS * (count - 1);
    widths
}

/// How many of a remainder's limbs are columns.
pub fn limbs_below(bits: usize) -> usize {
    limb_widths(bits).len() - 1
}

/// The widths of limbs of such remainders, each once, the full width first; multiplicities are committed in this order.
pub fn widths_of(remainders: &[usize]) -> Vec<usize> {
    let mut all = vec![LIMB_BITS];
    for bits in remainders {
        let top = bits - LIMB_BITS * limbs_below(*bits);
        if !all.contains(&top) {
            all.push(top);
        }
    }
    all
}

pub fn within<T>(field: &str, minimum: T, maximum: T, actual: T) -> Result<()>
where
    T: Copy + PartialOrd + Display,
{
    match (minimum..=maximum).contains(&actual) {
        true => Ok(()),
        false => Err(Error::invalid(
            field,
            format!("{minimum} to {maximum}"),
            actual,
        )),
    }
}

/// Each part of a block's parameters has its number of integers.
pub fn counted<const N: usize>(
    parts: [&[i16]; N],
    counts: [usize; N],
    names: [&str; N],
) -> Result<()> {
    for ((values, count), name) in parts.iter().zip(counts).zip(names) {
        if values.len() != count {
            let expected = format!("{count} integers");
            return Err(Error::invalid(name, expected, values.len()));
        }
    }
    Ok(())
}

pub fn wide(values: &[i16]) -> Vec<i64> {
    values.iter().map(|v| i64::from(*v)).collect()
}

/// Refuses a number of places that is no power of two or too large.
pub fn check_places(places: usize) -> Result<()> {
    if !places.is_power_of_two() || places > MAX_PLACES {
        let expected = format!("a power of two from 1 to {MAX_PLACES}");
        return Err(Error::invalid("places", expected, places));
    }
    Ok(())
}

/// Refuses other numbers of commitments than so many columns of so many rows.
pub fn check_rows(
    field: &str,
    columns: &[Vec<G1Affine>],
    blocks: usize,
    rows: usize,
) -> Result<()> {
    if columns.len() == blocks && columns.iter().all(|c| c.len() == rows) {
        return Ok(());
    }
    let points: usize = columns.iter().map(Vec::len).sum();
    let expected = format!("{blocks} columns of {rows} commitments");
    let actual = format!("{} columns with {points} commitments", columns.len());
    Err(Error::invalid(field, expected, actual))
}

/// S: the bits by which the LayerNorm is shifted if its results have x fraction bits.
pub fn norm_shift(x: u32) -> usize {
    ROOT_BITS + WEIGHT_BITS - x as usize
}

/// Gain and bias of a LayerNorm whose sums are shifted by `shift` bits.
#[derive(Clone)]
pub struct LayerNorm {
    pub gain: Vec<i64>,
    pub bias: Vec<i64>,
    pub shift: usize,
}

impl LayerNorm {
    /// For results with x fraction bits.
    pub fn new(gain: &[i16], bias: &[i16], x: u32) -> Self {
        Self {
            gain: wide(gain),
            bias: wide(bias),
            shift: norm_shift(x),
        }
    }

    pub fn width(&self) -> usize {
        self.gain.len()
    }
}

/// A matrix of a model, with a row for each input and a column for each output. Its commitments have no blinding.
pub struct Matrix {
    pub inputs: usize,
    pub outputs: usize,
    /// The rows of the column of each block of inputs and of outputs, all blocks of outputs for one block of inputs in turn.
    /// Entry i 2^m + j of a column is that of the block's input i and output j, where 2^m is the number of its outputs.
    pub rows: Vec<Vec<G1Affine>>,
    /// The entries and openings, which only a prover has.
    pub opened: Option<OpenMatrix>,
}

/// The entries of a matrix, row by row, and the openings of its columns.
pub struct OpenMatrix {
    pub entries: Vec<i16>,
    pub openings: Vec<Arc<Opening>>,
}

impl Matrix {
    /// Blocks of the inputs and of the outputs.
    pub fn blocks(&self) -> [Blocks; 2] {
        [self.inputs, self.outputs].map(Blocks::of)
    }

    /// How many columns, and how many rows of 2^row_variables entries in each.
    pub fn size([inputs, outputs]: [usize; 2], row_variables: usize) -> [usize; 2] {
        let [inputs, outputs] = [inputs, outputs].map(Blocks::of);
        let entries = 1usize << (inputs.variables + outputs.variables);
        let rows = entries.div_ceil(1 << row_variables);
        [inputs.blocks * outputs.blocks, rows]
    }

    /// # Errors
    /// Another number of inputs, outputs or commitments.
    pub fn check(&self, name: &str, sizes: [usize; 2], row_variables: usize) -> Result<()> {
        if [self.inputs, self.outputs] != sizes {
            let expected = format!("{} inputs, {} outputs", sizes[0], sizes[1]);
            let actual = format!("{} inputs, {} outputs", self.inputs, self.outputs);
            return Err(Error::invalid(name, expected, actual));
        }
        let [columns, rows] = Self::size(sizes, row_variables);
        check_rows(name, &self.rows, columns, rows)
    }

    /// The entries, row by row, of a matrix that a prover has.
    pub fn entries(&self) -> &[i16] {
        self.opened.as_ref().map_or(&[], |o| &o.entries)
    }

    /// Adds the columns to a run.
    pub fn add<C: Channel>(&self, session: &mut Session<C>) -> Vec<ColumnId> {
        let openings = session.channel.secrets().and(self.opened.as_ref());
        let openings = openings.map(|o| o.openings.clone());
        let variables = self.blocks().map(|b| b.variables).iter().sum();
        let ids = add_columns(session, variables, &self.rows, openings);
        session.pin(&ids);
        ids
    }

    /// The inner product of each row with a vector.
    pub fn products(&self, known: &Known, ids: &[ColumnId], vector: &[Fr]) -> Vec<Fr> {
        let [inputs, outputs] = self.blocks();
        let mut sums = vec![Fr::ZERO; self.inputs];
        let blocks = sums.chunks_mut(inputs.entries());
        for (sums, ids) in blocks.zip(ids.chunks(outputs.blocks)) {
            for (id, vector) in ids.iter().zip(vector.chunks(outputs.entries())) {
                let rows = known.secrets.rows(known.column(*id), vector);
                sums.iter_mut().zip(rows).for_each(|(sum, v)| *sum += v);
            }
        }
        sums
    }

    /// The columns with the factors of their blocks. The blocks of inputs have eq of the upper coordinates of an input's point.
    pub fn factors(
        &self,
        ids: &[ColumnId],
        input: &[Fr],
        outputs: impl Fn(usize) -> Fr,
    ) -> Vec<(ColumnId, Fr)> {
        let [of_inputs, of_outputs] = self.blocks();
        let high = &input[of_inputs.variables..];
        let each = ids.iter().enumerate();
        each.map(|(n, id)| {
            let (i, o) = (n / of_outputs.blocks, n % of_outputs.blocks);
            (*id, eq_at(high, i) * outputs(o))
        })
        .collect()
    }
}

/// The digest of a block's weights: SHA-256 over a domain, sizes (4 bytes each, little-endian), the points of the matrices, and
/// vectors of int16.
pub fn digest_of_weights(
    domain: &[u8],
    sizes: &[u32],
    matrices: &[&Matrix],
    vectors: &[&[i16]],
) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(domain);
    sizes
        .iter()
        .for_each(|size| hash.update(size.to_le_bytes()));
    for matrix in matrices {
        hash.update(encode_points(&matrix.rows.concat()));
    }
    for values in vectors {
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        hash.update(bytes);
    }
    hash.finalize().into()
}

/// Refuses weights whose matrices a prover does not have.
pub fn check_opened(matrices: &[&Matrix]) -> Result<()> {
    match matrices.iter().all(|matrix| matrix.opened.is_some()) {
        true => Ok(()),
        false => {
            let (expected, actual) = ("the integers of the matrices", "their commitments only");
            Err(Error::invalid("weights", expected, actual))
        }
    }
}

/// The claim about r that a LayerNorm leaves, for the matrix that r comes from: F(i) = sum over j of W_ij h_j.
pub struct CentredRows<'m> {
    pub matrix: &'m Matrix,
    pub ids: &'m [ColumnId],
    pub deviation: &'m Deviation,
}

impl CentredRows<'_> {
    /// The sums of W_ij eq(v, j) and of W_ij over the outputs j, of each input i.
    pub fn tables(&self, known: &Known) -> [Vec<Fr>; 2] {
        let outputs = self.matrix.outputs;
        let eq = eq_table(&self.deviation.component);
        let one = vec![Fr::ONE; outputs];
        [&eq[..outputs], &one].map(|vector| self.matrix.products(known, self.ids, vector))
    }

    /// F from both sums.
    pub fn combine(&self, [weighed, sums]: &[Vec<Fr>; 2]) -> Vec<Fr> {
        let [of_weighed, of_sums] = self.deviation.factors();
        let pairs = weighed.iter().zip(sums);
        pairs.map(|(a, b)| *a * of_weighed + *b * of_sums).collect()
    }

    /// What a prover sends at a point of inputs: the values there of all factors, of which the first belongs to the first
    /// layers and the third to this one; then F of the first layers, both sums, and the product of each F and its factor.
    pub fn finals(
        &self,
        mut values: Vec<Fr>,
        (first, sums): (Vec<Fr>, [Vec<Fr>; 2]),
        point: &[Fr],
    ) -> Vec<Fr> {
        let first = evaluate_list(&first, point);
        let second = evaluate_list(&self.combine(&sums), point);
        let [weighed, all] = sums.map(|sum| evaluate_list(&sum, point));
        values.extend([first, weighed, all, first * values[0], second * values[2]]);
        values
    }

    /// Claims the extensions of both sums at a point of inputs, and returns that of F.
    pub fn claim<C: Channel>(
        &self,
        session: &mut Session<C>,
        input: &[Fr],
        sums: [Var; 2],
    ) -> Expr {
        let [inputs, outputs] = self.matrix.blocks();
        let (low, high) = self.deviation.component.split_at(outputs.variables);
        let rows = &input[..inputs.variables];
        let here = Weight::evaluation(&[low, rows].concat());
        let columns = self.matrix.factors(self.ids, input, |o| eq_at(high, o));
        session.claim(here, columns, sums[0].into());
        let all = Weight {
            point: rows.to_vec(),
            coefficients: vec![Fr::ONE; outputs.entries()],
            items: inputs.entries(),
        };
        let columns = self.matrix.factors(self.ids, input, |_| Fr::ONE);
        session.claim(all, columns, sums[1].into());
        let [of_weighed, of_sums] = self.deviation.factors();
        Expr::from(sums[0]) * of_weighed + Expr::from(sums[1]) * of_sums
    }
}

/// Both matrices of a block, as the columns of places.
#[derive(Clone)]
pub struct Places {
    pub x: Vec<ColumnId>,
    pub y: Vec<ColumnId>,
}

impl Places {
    /// Adds the columns of the inputs and of the outputs of a statement, of so many variables each.
    pub fn add<C: Channel>(
        session: &mut Session<C>,
        variables: usize,
        [inputs, outputs]: [&[Vec<G1Affine>]; 2],
        openings: Option<[Vec<Arc<Opening>>; 2]>,
    ) -> Self {
        let (of_x, of_y) = openings.map(|[x, y]| (x, y)).unzip();
        Self {
            x: add_columns(session, variables, inputs, of_x),
            y: add_columns(session, variables, outputs, of_y),
        }
    }
}

/// Adds the columns of a matrix of a statement, of so many variables each.
pub fn add_columns<C: Channel>(
    session: &mut Session<C>,
    variables: usize,
    rows: &[Vec<G1Affine>],
    openings: Option<Vec<Arc<Opening>>>,
) -> Vec<ColumnId> {
    let mut openings = openings.map(Vec::into_iter);
    let add = |rows: &Vec<G1Affine>| {
        session.add_column(Column {
            variables,
            rows: rows.clone(),
            opening: openings.as_mut().and_then(Iterator::next),
        })
    };
    rows.iter().map(add).collect()
}

pub fn one(id: ColumnId) -> Entry {
    Entry::Columns(vec![(id, Fr::ONE)])
}

/// The columns of the multiplicities of the tables of activations and of limbs, which all runs have.
#[derive(Clone)]
pub struct SharedMultiplicities<T> {
    pub of_activations: T,
    /// For each width of limbs that occurs.
    pub of_limbs: Vec<T>,
}

impl<T> SharedMultiplicities<T> {
    pub fn in_order(self) -> Vec<T> {
        let mut out = vec![self.of_activations];
        out.extend(self.of_limbs);
        out
    }

    pub fn named(mut all: impl Iterator<Item = T>) -> Self {
        Self {
            of_activations: all.next().expect("one for each name"),
            of_limbs: all.collect(),
        }
    }
}

impl SharedMultiplicities<(usize, Bound)> {
    /// For so many lookups of activations, and of limbs of all widths together.
    pub fn bounds(activations: usize, widths: &[usize], limbs: usize) -> Self {
        let of_limbs = |width: &usize| (1 << width, Bound::up_to(limbs));
        Self {
            of_activations: (1 << ACTIVATION_BITS, Bound::up_to(activations)),
            of_limbs: widths.iter().map(of_limbs).collect(),
        }
    }
}

/// The top limbs of a remainder: a list for each block.
pub type Tops = Vec<Vec<i64>>;

/// The segments of a run in the order of the page.
#[derive(Default)]
pub struct Segments {
    all: Vec<Segment>,
    /// The variables of each segment with a derived entry.
    derived: Vec<usize>,
}

impl Segments {
    pub fn look_up(&mut self, variables: usize, tag: u64, entries: Vec<Entry>) {
        let derived = |entry: &&Entry| matches!(entry, Entry::Derived(_));
        assert!(entries.iter().filter(derived).count() <= 1);
        if entries.iter().any(|entry| derived(&entry)) {
            self.derived.push(variables);
        }
        self.all.push(Segment {
            variables,
            tag,
            entries,
            count: Count::Once,
        });
    }

    pub fn table(&mut self, variables: usize, tag: u64, entries: Vec<Entry>, count: Count) {
        self.all.push(Segment {
            variables,
            tag,
            entries,
            count,
        });
    }

    /// Appends segments without a derived entry.
    pub fn extend(&mut self, segments: impl IntoIterator<Item = Segment>) {
        self.all.extend(segments);
    }

    /// The range of a matrix of activations.
    pub fn activations(&mut self, variables: usize, columns: &[ColumnId]) {
        for column in columns {
            self.look_up(variables, TAG_ACTIVATION, vec![one(*column)]);
        }
    }

    /// The limbs of a remainder of so many bits: the limbs below the top are columns, the top ones derived.
    pub fn remainder(
        &mut self,
        variables: usize,
        limbs: &[Vec<ColumnId>],
        bits: usize,
        tops: Option<Tops>,
        blocks: usize,
    ) {
        for limb in limbs.iter().flatten() {
            self.look_up(variables, LIMB_BITS as u64, vec![one(*limb)]);
        }
        let widths = limb_widths(bits);
        let tag = widths[widths.len() - 1] as u64;
        for block in 0..blocks {
            let top = Entry::Derived(tops.as_ref().map(|t| t[block].clone()));
            self.look_up(variables, tag, vec![top]);
        }
    }

    /// The tables of activations and of limbs of these widths.
    pub fn tables(&mut self, multiplicities: SharedMultiplicities<ColumnId>, widths: &[usize]) {
        let SharedMultiplicities {
            of_activations,
            of_limbs,
        } = multiplicities;
        let activations = Entry::Public((-ACTIVATION_LIMIT..ACTIVATION_LIMIT).collect());
        self.table(
            ACTIVATION_BITS,
            TAG_ACTIVATION,
            vec![activations],
            Count::Table(of_activations),
        );
        for (width, id) in widths.iter().zip(of_limbs) {
            self.table(*width, *width as u64, vec![Entry::Row], Count::Table(id));
        }
    }

    /// Claims all lookups, and returns the claims about derived entries in the order of the segments.
    pub fn claim<C: Channel>(self, session: &mut Session<C>) -> Result<Vec<QueryClaim>> {
        let claims = lookups(session, self.all)?;
        // Larger segments come first in the tree.
        let mut order: Vec<usize> = (0..self.derived.len()).collect();
        order.sort_by_key(|n| std::cmp::Reverse(self.derived[*n]));
        let mut claims: Vec<(usize, QueryClaim)> = order.into_iter().zip(claims).collect();
        claims.sort_by_key(|(n, _)| *n);
        Ok(claims.into_iter().map(|(_, claim)| claim).collect())
    }
}

/// Rows of a quotient and of its remainder at the lookup's point, all blocks as one.
pub struct Divided<'d> {
    pub label: &'static str,
    /// The blocks' columns of the quotient, and the divisor.
    pub quotient: &'d [ColumnId],
    pub divisor: Fr,
    /// The columns of each limb below the top.
    pub limbs: &'d [Vec<ColumnId>],
    pub tops: &'d [QueryClaim],
    /// The part of the dividend that rounds the quotient.
    pub half: Fr,
    pub powers: &'d [Fr],
}

impl Divided<'_> {
    /// Sends the value of all columns in it, claims it, and returns the dividend without its half.
    pub fn dividend<C: Channel>(&self, session: &mut Session<C>) -> Result<Expr> {
        let (low, _) = &self.tops[0];
        let mut columns = Vec::new();
        for (block, power) in self.powers.iter().enumerate() {
            columns.push((self.quotient[block], self.divisor * power));
            for (k, limb) in self.limbs.iter().enumerate() {
                columns.push((limb[block], power_of_two(LIMB_BITS * k) * power));
            }
        }
        let here = Weight::evaluation(low);
        let known = session.known();
        let value = known.map(|known| known.functional(&here, &columns));
        let mut dividend = Expr::from(session.send_one(self.label, value)?);
        session.claim(here, columns, dividend.clone());
        let of_top = power_of_two(LIMB_BITS * self.limbs.len());
        for ((_, top), power) in self.tops.iter().zip(self.powers) {
            dividend.add_term(*top, of_top * power);
            dividend.constant -= self.half * power;
        }
        Ok(dividend)
    }
}

/// 1, x, x^2, .., so many of them.
pub fn powers(x: Fr, count: usize) -> Vec<Fr> {
    std::iter::successors(Some(Fr::ONE), |p| Some(*p * x))
        .take(count)
        .collect()
}

/// lambda^b eq(low, j) for component b 2^m + j.
pub fn of_components(powers: &[Fr], low: &[Fr]) -> Vec<Fr> {
    let eq = eq_table(low);
    let all = powers.iter().flat_map(|p| eq.iter().map(move |e| *p * e));
    all.collect()
}

pub fn dot(values: &[i64], weights: &[Fr]) -> Fr {
    let pairs = values.iter().zip(weights);
    pairs.map(|(v, w)| from_small(*v) * w).sum()
}

/// The combination of a matrix's rows under eq of a point of places; a row is 2^m entries of each of its columns.
pub fn row_at(
    secrets: &dyn ProverWitness,
    columns: &[Column],
    ids: &[ColumnId],
    blocks: Blocks,
    eq: &[Fr],
) -> Vec<Fr> {
    row_of_text(secrets, columns, (ids, blocks), 0, eq)
}

/// The same of the rows of one of several texts, of which each has as many rows as eq has entries.
pub fn row_of_text(
    secrets: &dyn ProverWitness,
    columns: &[Column],
    (ids, blocks): (&[ColumnId], Blocks),
    text: usize,
    eq: &[Fr],
) -> Vec<Fr> {
    let of_block = |id: &ColumnId| {
        let opening = columns[id.0].opening.as_ref();
        let values = opening.map_or(&[][..], |o| &o.values[..]);
        let rows = values.chunks_exact(blocks.entries());
        let rows = rows.skip(text * eq.len()).zip(eq);
        let rows: Vec<(&[i64], Fr)> = rows.map(|(row, e)| (row, *e)).collect();
        secrets.combine(&rows)
    };
    ids.iter().flat_map(of_block).collect()
}

/// A row of a matrix, extended at a point, as columns at one place: the weight and the columns' factors.
pub fn entry_at(
    ids: &[ColumnId],
    blocks: Blocks,
    component: &[Fr],
    place: &[Fr],
) -> (Weight, Vec<(ColumnId, Fr)>) {
    let (low, high) = component.split_at(blocks.variables);
    let point = [low, place].concat();
    let columns = ids.iter().enumerate();
    let columns = columns.map(|(b, id)| (*id, eq_at(high, b))).collect();
    (Weight::evaluation(&point), columns)
}

/// Factors of `count` limbs from `first` on, of a place with so many entries.
pub fn limb_factors(first: usize, count: usize, stride: usize) -> Vec<Fr> {
    let mut out = vec![Fr::ZERO; stride];
    for (k, factor) in out[first..][..count].iter_mut().enumerate() {
        *factor = power_of_two(LIMB_BITS * k);
    }
    out
}

/// A prover's values of a LayerNorm.
pub struct NormPrivate<'s> {
    /// The rows of a, one a place.
    pub deviations: &'s [Vec<i64>],
    /// R, V, s_1 and s_2 of each place.
    pub roots: &'s [[Fr; 4]],
}

/// The columns of a LayerNorm's results, of the limbs of its remainders, and of its roots; and the claims about its top limbs.
pub struct Normed<'n> {
    pub norm: &'n LayerNorm,
    pub places: usize,
    pub outputs: &'n [ColumnId],
    pub limbs: &'n [Vec<ColumnId>],
    pub roots: ColumnId,
    pub tops: &'n [QueryClaim],
    pub powers: &'n [Fr],
}

/// The claim about r that a LayerNorm leaves: sum over j of h_j r_j at a point of places.
pub struct Deviation {
    pub place: Vec<Fr>,
    /// v: h_j = d eq(v, j) less the sum of eq(v, k) over all components k.
    pub component: Vec<Fr>,
    /// h.
    pub centred: Vec<Fr>,
    pub value: Expr,
}

impl Deviation {
    /// The factors of eq(v, j) and of 1 in h_j.
    fn factors(&self) -> [Fr; 2] {
        let width = self.centred.len();
        [Fr::from(width as u64), -prefix(&self.component, width)]
    }
}

impl Normed<'_> {
    /// Reduces the LayerNorm to one value of a, at the lookup's point: `docs/scan/feed-forward.md`.
    pub fn reduce<C: Channel>(
        self,
        session: &mut Session<C>,
        secret: Option<&NormPrivate>,
    ) -> Result<Deviation> {
        let (norm, width) = (self.norm, self.norm.width());
        let blocks = Blocks::of(width);
        let powers = &self.powers[..blocks.blocks];
        let mut of_norm = Divided {
            label: "norm",
            quotient: self.outputs,
            divisor: power_of_two(norm.shift),
            limbs: self.limbs,
            tops: self.tops,
            half: power_of_two(norm.shift - 1),
            powers,
        }
        .dividend(session)?;
        let (low, norm_place) = self.tops[0].0.split_at(blocks.variables);
        let mut gains = of_components(powers, low);
        of_norm.constant -= power_of_two(ROOT_BITS) * dot(&norm.bias, &gains);
        for (gain, c) in gains.iter_mut().zip(&norm.gain) {
            *gain *= from_small(*c);
        }

        // a R c, and both inequalities of R, at one place.
        let chi = session.challenge("roots");
        let target = Fr::from(width as u64) * power_of_two(2 * ROOT_BITS);
        let claim = of_norm + (chi * target - chi.square()).into();
        let tables = secret.as_ref().map(|s| {
            let column = |k: usize| s.roots.iter().map(|place| place[k]).collect::<Vec<Fr>>();
            let secrets = session.channel.secrets().expect("a prover's");
            let sums = s.deviations.iter().map(|row| secrets.dot(row, &gains));
            vec![column(0), sums.collect(), column(1), column(2), column(3)]
        });
        let gate = Gate::Root { chi };
        let reduced = sumcheck(session, "roots", norm_place, claim, 3, tables, gate)?;
        let place = reduced.point;
        let values = reduced.finals.map(|f| {
            let rv = f[0] * f[2];
            [f[0], f[1], f[2], f[3], f[4], f[0] * f[1], rv, f[0] * rv]
        });
        let vars = session.send("roots", 8, values.as_ref().map(|v| &v[..]))?;
        let [root, sum, variance, below, above, scaled, once, twice] =
            std::array::from_fn(|i| Expr::from(vars[i]));
        session.constrain_product("norm", root.clone(), sum.clone(), scaled.clone());
        session.constrain_product("root", root.clone(), variance.clone(), once.clone());
        session.constrain_product("root", root.clone(), once.clone(), twice.clone());
        let slacks = below.clone() + above.clone() - once * Fr::from(2u8) - variance.clone();
        let gate = scaled + (twice + below.clone()) * chi + slacks * chi.square();
        session.constrain("roots", gate - reduced.claim);
        let mut claim_limbs = |first: usize, count: usize, value: Expr| {
            let weight = Weight {
                point: place.clone(),
                coefficients: limb_factors(first, count, ROOT_STRIDE),
                items: self.places,
            };
            session.claim(weight, vec![(self.roots, Fr::ONE)], value);
        };
        claim_limbs(0, ROOT_LIMBS, root);
        claim_limbs(ROOT_LIMBS, SLACK_LIMBS, below);
        claim_limbs(ROOT_LIMBS + SLACK_LIMBS, SLACK_LIMBS, above);

        // V = sum of a^2, and the sum that R multiplies, at one component of a.
        let mu = session.challenge("deviations");
        let components = log2_ceil(width);
        let (mut tau, claim) = plain(
            components,
            Expr::combination([(&variance, Fr::ONE), (&sum, mu)]),
        );
        tau.extend(&place);
        let tables = secret.as_ref().map(|s| {
            let secrets = session.channel.secrets().expect("a prover's");
            let size = 1usize << components;
            let (mut of_a, mut raised) = (Vec::new(), Vec::new());
            for row in s.deviations {
                let row = secrets.combine(&[(row, Fr::ONE)]);
                raised.extend(row.iter().zip(&gains).map(|(a, w)| *a + mu * w));
                of_a.extend(row);
                for table in [&mut of_a, &mut raised] {
                    table.resize(table.len().next_multiple_of(size), Fr::ZERO);
                }
            }
            vec![of_a, raised]
        });
        let gate = Gate::Product;
        let reduced = sumcheck(session, "deviations", &tau, claim, 2, tables, gate)?;
        let (component, row) = reduced.point.split_at(components);
        let finals = reduced.finals.map(|f| f[0]);
        let deviation = Expr::from(session.send_one("deviations", finals)?);
        let eq = eq_table(component);
        let gain: Fr = gains.iter().zip(&eq).map(|(w, e)| *w * e).sum();
        session.constrain_product(
            "deviation",
            deviation.clone(),
            deviation.clone() + (mu * gain).into(),
            reduced.claim,
        );
        let all: Fr = eq[..width].iter().sum();
        let of_width = Fr::from(width as u64);
        let centred = eq[..width].iter().map(|e| of_width * e - all);
        Ok(Deviation {
            place: row.to_vec(),
            component: component.to_vec(),
            centred: centred.collect(),
            value: deviation,
        })
    }
}
