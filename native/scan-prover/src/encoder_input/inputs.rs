//! The inputs of the prover of the encoder's input, and the columns' values that it computes from them.
use ragaudit_scan_protocol::block::*;
use ragaudit_scan_protocol::encoder_input::{Columns, Shape};
use zeroize::{Zeroize, ZeroizeOnDrop};

use super::table::{Table, Text};
use crate::block::{limb, split, Counts, NormWitness};
use crate::error::{Error, Result};
use crate::group::Fr;
use crate::numbers::from_small;

/// The prover's values. Matrices are row by row, one row for each place.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub(crate) struct Witness {
    pub(crate) salt: Fr,
    /// One token for each place, 0 in unused places.
    pub(crate) tokens: Vec<i64>,
    pub(crate) marks: Vec<i64>,
    /// One list of digits for each of both columns: for each place 1 at its token's digit.
    pub(crate) digits: [Vec<i64>; 2],
    /// V - 1 - t.
    pub(crate) slacks: Vec<i64>,
    pub(crate) norm: NormWitness,
}

impl Witness {
    /// The witness of an honest prover.
    pub(crate) fn new(table: &Table, places: usize, text: &Text) -> Result<Self> {
        let shape = &table.public.shape;
        within("places", 1, shape.places, places)?;
        within("tokens", 1, places, text.tokens.len())?;
        let last = shape.vocabulary - 1;
        if let Some(bad) = text.tokens.iter().find(|t| **t as usize > last) {
            return Err(Error::invalid("tokens", format!("0 to {last}"), bad));
        }
        let place = |p: usize| text.tokens.get(p).map_or(0, |t| i64::from(*t));
        let used = text.tokens.len();
        let mut witness = Self {
            salt: text.salt,
            tokens: (0..places).map(place).collect(),
            marks: (0..places).map(|p| i64::from(p < used)).collect(),
            digits: [Vec::new(), Vec::new()],
            slacks: Vec::new(),
            norm: NormWitness::default(),
        };
        witness.split_tokens(shape);
        witness.norm = NormWitness::new(&table.public.norm, &witness.rows(table))?;
        Ok(witness)
    }

    /// The digits of the tokens, and V - 1 - t.
    pub(crate) fn split_tokens(&mut self, shape: &Shape) {
        let [low, high] = shape.digits();
        let of = |bits: usize, shift: usize| {
            let pairs = self.tokens.iter().zip(&self.marks);
            let places = pairs.flat_map(|(token, mark)| {
                let digit = token >> shift & ((1 << bits) - 1);
                (0..1i64 << bits).map(move |x| mark * i64::from(x == digit))
            });
            places.collect()
        };
        self.digits = [of(low, 0), of(high, low)];
        let last = shape.vocabulary as i64 - 1;
        self.slacks = self.tokens.iter().map(|token| last - token).collect();
    }

    /// r, row by row.
    pub(crate) fn rows(&self, table: &Table) -> Vec<i64> {
        let unused = &table.public.unused;
        let blocks = table.public.shape.width_blocks();
        let rows = self.tokens.iter().zip(&self.marks).enumerate();
        let of_place = |(p, (token, mark)): (usize, (&i64, &i64))| {
            let row = (0..unused.len()).map(move |j| {
                let word = &table.openings.words[j].values;
                let word = word.get(*token as usize).copied().unwrap_or_default();
                let (block, entry) = (j / blocks.entries(), j % blocks.entries());
                let place = &table.openings.positions[block].values;
                let place = place[p * blocks.entries() + entry];
                mark * (word + place) + (1 - mark) * unused[j]
            });
            row.collect::<Vec<i64>>()
        };
        rows.flat_map(of_place).collect()
    }

    fn slack_limbs(&self, shape: &Shape) -> Vec<Vec<i64>> {
        let bits = shape.token_bits();
        let count = limb_widths(bits).len();
        (0..count).map(|k| limb(&self.slacks, bits, k)).collect()
    }

    /// In the order that the protocol sends them.
    pub(crate) fn hidden(&self, shape: &Shape) -> Vec<Fr> {
        let limbs = self.slack_limbs(shape);
        let limbs = limbs[..shape.hidden_limbs()].iter().flatten();
        let values = self.tokens.iter().chain(limbs);
        let mut out = vec![self.salt];
        out.extend(values.map(|v| from_small(*v)));
        out
    }

    fn norm_limbs(&self, shape: &Shape, k: usize) -> Vec<Vec<i64>> {
        let limbs = limb(&self.norm.rests, shape.norm_shift(), k);
        split(&limbs, shape.width_blocks(), shape.width)
    }

    /// The top limbs of the LayerNorm's remainders.
    pub(crate) fn tops(&self, shape: &Shape) -> Tops {
        self.norm_limbs(shape, limbs_below(shape.norm_shift()))
    }

    /// The values of the columns that the run commits to.
    pub(crate) fn columns(&self, shape: &Shape) -> Columns<Vec<i64>> {
        let below = 0..limbs_below(shape.norm_shift());
        Columns {
            digits: self.digits.clone(),
            norm_limbs: below.map(|k| self.norm_limbs(shape, k)).collect(),
            roots: self.norm.root_limbs(),
        }
    }

    /// Counts the run's lookups.
    pub(crate) fn count(&self, shape: &Shape, counts: &mut Counts) {
        for bits in self.digits.iter().chain([&self.marks]) {
            counts.limbs(BIT, bits);
        }
        let limbs = self.slack_limbs(shape);
        for (width, limb) in limb_widths(shape.token_bits()).into_iter().zip(limbs) {
            counts.limbs(width, &limb);
        }
        counts.activations(&self.norm.y);
        counts.remainders(&self.norm.rests, shape.norm_shift());
        counts.limbs(LIMB_BITS, &self.norm.root_limbs());
    }
}

/// A prover's values of the columns and of the derived entries.
#[derive(Clone)]
pub(crate) struct Entries {
    pub(crate) columns: Columns<Vec<i64>>,
    pub(crate) multiplicities: SharedMultiplicities<Vec<i64>>,
    pub(crate) tops: Tops,
}

impl Entries {
    pub(crate) fn new(witness: &Witness, shape: &Shape) -> Self {
        let widths = shape.widths();
        let mut counts = Counts::new(&widths);
        witness.count(shape, &mut counts);
        Self {
            columns: witness.columns(shape),
            multiplicities: counts.multiplicities(),
            tops: witness.tops(shape),
        }
    }
}
