//! The inputs of the prover of layers, and the columns' values that it computes from them.
use ragaudit_scan_protocol::attention::statement::EXP_ROWS;
use ragaudit_scan_protocol::block::*;
use ragaudit_scan_protocol::encoder::{
    Columns, Entries as LayerEntries, Layer, LayerPrivate, Multiplicities, Shape, MAX_LAYERS,
};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::attention::inputs::{marks_of, Witness as AttentionWitness};
use crate::block::{split, Counts};
use crate::error::Result;
use crate::feed_forward::inputs::Witness as FeedForwardWitness;
use crate::group::Fr;

/// The prover's values of one layer.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub(crate) struct LayerWitness {
    pub(crate) attention: AttentionWitness,
    pub(crate) feed_forward: FeedForwardWitness,
}

#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub(crate) struct Witness {
    pub(crate) layers: Vec<LayerWitness>,
}

/// The result of all layers on rows of activations, of which the first `used` are used: `docs/minilm-int.md`. The rows of unused
/// places have results too, of the same keys and values.
///
/// # Errors
/// A number of used places that is 0 or too large; a value outside its range; a row without deviation.
pub fn forward(layers: &[&Layer], used: usize, rows: &[i16]) -> Result<Vec<i16>> {
    within("layers", 1, MAX_LAYERS, layers.len())?;
    let places = rows.len() / layers[0].attention.shape.width;
    within("used places", 1, places, used)?;
    let witness = Witness::new(layers, &marks_of(used, places), &wide(rows))?;
    Ok(witness.outputs().iter().map(|v| *v as i16).collect())
}

impl Witness {
    /// The witness of an honest prover.
    pub(crate) fn new(layers: &[&Layer], marks: &[i64], x: &[i64]) -> Result<Self> {
        let mut out = Self { layers: Vec::new() };
        for layer in layers {
            let x = out.layers.last().map_or(x, |l| &l.feed_forward.norm.y);
            let attention = AttentionWitness::new(&layer.attention, marks, x)?;
            let feed_forward = FeedForwardWitness::new(&layer.feed_forward, &attention.norm.y)?;
            out.layers.push(LayerWitness {
                attention,
                feed_forward,
            });
        }
        Ok(out)
    }

    /// The last layer's result.
    pub(crate) fn outputs(&self) -> &[i64] {
        let last = self.layers.last().expect("a layer");
        &last.feed_forward.norm.y
    }

    /// The values of the columns that each layer commits to.
    pub(crate) fn columns(&self, shape: &Shape) -> Vec<Columns<Vec<i64>>> {
        let places = |y: &[i64]| split(y, shape.width_blocks(), shape.attention.width);
        let (last, before) = self.layers.split_last().expect("a layer");
        let of_layer = |layer: &LayerWitness| Columns {
            attention: layer.attention.columns(&shape.attention),
            middle: places(&layer.attention.norm.y),
            feed_forward: layer.feed_forward.columns(&shape.feed_forward),
            outputs: places(&layer.feed_forward.norm.y),
        };
        let mut out: Vec<Columns<Vec<i64>>> = before.iter().map(of_layer).collect();
        out.push(Columns {
            outputs: Vec::new(),
            ..of_layer(last)
        });
        out
    }

    /// How often each row of the tables is looked up.
    fn multiplicities(&self, shape: &Shape) -> Multiplicities<Vec<i64>> {
        let widths = shape.widths();
        let mut counts = Counts::new(&widths);
        counts.activations(&self.layers[0].attention.x);
        let [of_exp, of_gelu] = self.count(shape, &mut counts);
        Multiplicities {
            of_exp,
            of_gelu,
            shared: counts.multiplicities(),
        }
    }

    /// Counts the lookups of all layers, without the range of the first x. Returns the multiplicities of exp and of GELU.
    pub(crate) fn count(&self, shape: &Shape, counts: &mut Counts) -> [Vec<i64>; 2] {
        let (mut of_exp, mut of_gelu) = (vec![0; EXP_ROWS], vec![0; 1 << ACTIVATION_BITS]);
        for layer in &self.layers {
            let (attention, feed_forward) = (&layer.attention, &layer.feed_forward);
            attention.count(&shape.attention, counts, &mut of_exp);
            feed_forward.count(&shape.feed_forward, counts, &mut of_gelu);
        }
        [of_exp, of_gelu]
    }

    /// The derived entries of both blocks of each layer.
    pub(crate) fn derived(&self, shape: &Shape) -> Vec<LayerEntries> {
        let derived = |layer: &LayerWitness| {
            let of_attention = layer.attention.derived(&shape.attention);
            (of_attention, layer.feed_forward.tops(&shape.feed_forward))
        };
        self.layers.iter().map(derived).collect()
    }

    /// R, V and both slacks of each LayerNorm, by place.
    pub(crate) fn roots(&self) -> Vec<[Roots; 2]> {
        let roots = |layer: &LayerWitness| {
            let norms = [&layer.attention.norm, &layer.feed_forward.norm];
            norms.map(|norm| Zeroizing::new(norm.roots()))
        };
        self.layers.iter().map(roots).collect()
    }

    /// The values of all layers with these derived entries.
    pub(crate) fn private<'s>(
        &'s self,
        roots: &'s [[Roots; 2]],
        derived: Vec<LayerEntries>,
    ) -> Vec<LayerPrivate<'s>> {
        let layers = self.layers.iter().zip(roots).zip(derived);
        let layers = layers.map(|((layer, [first, second]), (derived, tops))| {
            let norm = |deviations, roots| NormPrivate { deviations, roots };
            LayerPrivate {
                derived,
                tops,
                norms: [
                    norm(&layer.attention.norm.deviations, first),
                    norm(&layer.feed_forward.norm.deviations, second),
                ],
            }
        });
        layers.collect()
    }
}

/// R, V and both slacks of each place.
pub(crate) type Roots = Zeroizing<Vec<[Fr; 4]>>;

/// A prover's values of the columns and of the derived entries.
pub(crate) struct Entries {
    pub(crate) columns: Vec<Columns<Vec<i64>>>,
    pub(crate) multiplicities: Multiplicities<Vec<i64>>,
    /// The derived entries of both blocks of each layer.
    pub(crate) derived: Vec<LayerEntries>,
}

impl Entries {
    pub(crate) fn new(witness: &Witness, shape: &Shape) -> Self {
        Self {
            columns: witness.columns(shape),
            multiplicities: witness.multiplicities(shape),
            derived: witness.derived(shape),
        }
    }
}
