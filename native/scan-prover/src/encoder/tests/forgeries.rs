//! Malicious provers of a composition of layers: each block alone has tests of its own.
use super::*;
use crate::attention::inputs::Witness as AttentionWitness;
use crate::block::NormWitness;
use crate::feed_forward::inputs::{sums_of_dense, Witness as FeedForwardWitness};
use ragaudit_scan_protocol::block::{Tops, ACTIVATION_LIMIT};
use ragaudit_scan_protocol::encoder::Multiplicities;

const LOOKUP: &str = "constraint: lookup layer";
const MATRICES: &str = "constraint: matrices";
const ROOTS: &str = "constraint: roots";

/// Both blocks of each layer, in the order in which they are applied.
const BLOCKS: [(usize, bool); 4] = [(0, true), (0, false), (1, true), (1, false)];

impl Case {
    fn norm<'w>(
        &self,
        witness: &'w mut Witness,
        (n, attention): (usize, bool),
    ) -> &'w mut NormWitness {
        let layer = &mut witness.layers[n];
        match attention {
            true => &mut layer.attention.norm,
            false => &mut layer.feed_forward.norm,
        }
    }

    /// The input of a block.
    fn input(&self, witness: &Witness, (n, attention): (usize, bool)) -> Vec<i64> {
        let layer = &witness.layers[n];
        match attention {
            true => layer.attention.x.clone(),
            false => layer.feed_forward.x.clone(),
        }
    }

    /// The remainders of a block's result, and those cut to their range.
    fn divided(&self, mut witness: Witness, (n, attention): (usize, bool)) -> [Witness; 2] {
        let layer = &self.layers[n];
        let norm = match attention {
            true => &layer.attention.norm,
            false => &layer.feed_forward.norm,
        };
        self.norm(&mut witness, (n, attention)).divide(norm);
        let mut within = witness.clone();
        cut(
            &mut self.norm(&mut within, (n, attention)).rests,
            norm.shift,
        );
        [witness, within]
    }

    /// All blocks after one block are computed from its result.
    fn after(&self, witness: &mut Witness, (n, attention): (usize, bool)) {
        if attention {
            let y = witness.layers[n].attention.norm.y.clone();
            witness.layers[n].feed_forward =
                FeedForwardWitness::new(&self.layers[n].feed_forward, &y).unwrap();
        }
        for n in n + 1..self.layers.len() {
            let x = witness.layers[n - 1].feed_forward.norm.y.clone();
            let marks = &self.marks;
            let attention = AttentionWitness::new(&self.layers[n].attention, marks, &x).unwrap();
            witness.layers[n].feed_forward =
                FeedForwardWitness::new(&self.layers[n].feed_forward, &attention.norm.y).unwrap();
            witness.layers[n].attention = attention;
        }
    }
}

/// A block's result is its input, and all later blocks follow from it.
#[test]
fn no_block_is_skipped() {
    let case = small();
    for block in BLOCKS {
        let mut witness = case.witness();
        let x = case.input(&witness, block);
        case.norm(&mut witness, block).y = x;
        case.after(&mut witness, block);
        let [divided, cut] = case.divided(witness, block);
        caught_by(LOOKUP, || case.forged(&divided));
        caught_by(ROOTS, || case.forged(&cut));
    }
    // The whole second layer.
    let mut witness = case.witness();
    let x = witness.layers[1].attention.x.clone();
    for attention in [true, false] {
        case.norm(&mut witness, (1, attention)).y = x.clone();
        [_, witness] = case.divided(witness, (1, attention));
    }
    witness.layers[1].feed_forward.x = x;
    assert!(!case.forged(&witness));
}

/// Layers in another order, and one layer's weights twice. The layers differ in one part only, so that one claim refuses them.
#[test]
fn layers_have_their_own_weights() {
    type Part = fn(&mut Integers) -> &mut Vec<i16>;
    let parts: [(Part, &str); 8] = [
        (|i| &mut i.attention.matrices[0], MATRICES),
        (|i| &mut i.attention.matrices[3], MATRICES),
        (|i| &mut i.attention.biases[2], MATRICES),
        (|i| &mut i.attention.norm[0], ROOTS),
        (|i| &mut i.feed_forward.each[0], MATRICES),
        (|i| &mut i.feed_forward.each[2], MATRICES),
        (|i| &mut i.feed_forward.each[3], MATRICES),
        (|i| &mut i.feed_forward.each[5], ROOTS),
    ];
    let base = small();
    for (part, claim) in parts {
        let mut integers = vec![base.integers[0].clone(); 2];
        let other = part(&mut base.integers[1].clone()).clone();
        *part(&mut integers[1]) = other;
        let rows: Vec<i16> = base.x.iter().map(|v| *v as i16).collect();
        let case = case_of(integers, 4, 3, &rows);
        let [a, b] = &case.layers[..] else {
            unreachable!("two layers")
        };
        for layers in [[b, a], [a, a], [b, b]] {
            let witness = case.witness_of(&layers);
            caught_by(claim, || case.forged(&witness));
        }
    }
    let [a, b] = &base.layers[..] else {
        unreachable!("two layers")
    };
    for layers in [[b, a], [a, a], [b, b]] {
        assert!(!base.forged(&base.witness_of(&layers)));
    }
}

/// A block is computed from another matrix than the one that the block before it has as its result, which is the committed
/// one; and the committed one is the matrix that the next block uses.
#[test]
fn the_next_block_has_the_result_of_the_block_before() {
    let case = small();
    for at in entries(case.x.len()) {
        for (n, attention) in &BLOCKS[1..] {
            let block = (*n, *attention);
            let before = BLOCKS[BLOCKS.iter().position(|b| *b == block).unwrap() - 1];
            let mut other = case.witness();
            case.norm(&mut other, before).y[at] += 1;
            case.after(&mut other, before);
            let mut witness = other.clone();
            case.norm(&mut witness, before).y[at] -= 1;
            if at == 0 {
                caught_by(MATRICES, || case.forged(&witness));
                caught_by(ROOTS, || case.forged(&other));
            }
            assert!(
                !case.forged(&witness) && !case.forged(&other),
                "{block:?} {at}"
            );
        }
    }
}

/// One layer uses a place that no other layer uses.
#[test]
fn all_layers_have_the_same_marks() {
    let case = small();
    for n in 0..2 {
        // All values of four used places.
        let mut witness = case.witness();
        let x = witness.layers[n].attention.x.clone();
        witness.layers[n].attention =
            AttentionWitness::new(&case.layers[n].attention, &[1; 4], &x).unwrap();
        case.after(&mut witness, (n, true));
        assert!(!case.forged(&witness));
        // The unused place at the distance 0.
        let mut witness = case.witness();
        let layer = &case.layers[n].attention;
        let attention = &mut witness.layers[n].attention;
        attention
            .exps
            .chunks_exact_mut(4)
            .for_each(|row| row[3] = 4096);
        attention.normalise();
        attention.weigh(layer);
        attention.norm = NormWitness::new(&layer.norm, &attention.sums_of_residual(layer)).unwrap();
        attention.marks = vec![1; 4];
        case.after(&mut witness, (n, true));
        caught_by("constraint: key", || case.forged(&witness));
    }
}

/// Counts that are short by one, and those of one layer only.
#[test]
fn tables_count_the_lookups_of_all_layers() {
    let case = small();
    let (witness, shape) = (case.witness(), case.shape());
    let tables = Entries::new(&witness, &shape)
        .multiplicities
        .in_order()
        .len();
    let changed = |change: &dyn Fn(&mut Vec<Vec<i64>>)| {
        let mut entries = Entries::new(&witness, &shape);
        let mut counts = entries.multiplicities.clone().in_order();
        change(&mut counts);
        entries.multiplicities = Multiplicities::named(counts.into_iter());
        case.forged_with(&witness, entries)
    };
    assert!(changed(&|_| ()));
    for table in 0..tables {
        caught_by(LOOKUP, || {
            changed(&|counts| *counts[table].iter_mut().find(|n| **n > 0).unwrap() -= 1)
        });
    }
    let first = Witness {
        layers: vec![witness.layers[0].clone()],
    };
    let of_first = Entries::new(&first, &shape).multiplicities.in_order();
    for table in 0..tables {
        caught_by(LOOKUP, || {
            changed(&|counts| counts[table].clone_from(&of_first[table]))
        });
    }
}

/// A matrix between two blocks has its range as a result only, so its entries beyond 12 bits have no row.
#[test]
fn matrices_between_blocks_are_activations() {
    let mut base = small();
    for layer in &mut base.integers {
        layer.attention.shape.x = 9;
        layer.feed_forward.shape.x = 9;
    }
    let mut integers = base.integers.clone();
    let rows: Vec<i16> = base.x.iter().map(|v| *v as i16).collect();
    integers[0].attention.norm[1][0] = 30_000;
    let case = case_of(base.integers, 4, 3, &rows);
    let case = Case {
        layers: layers_of(&integers),
        integers,
        ..case
    };
    let layer = &case.layers[0];
    assert!(forward(&[layer], 3, &rows).is_err());
    let mut witness = case.witness_of(&[&layers_of(&case.integers[1..])[0]; 2]);
    let attention = &mut witness.layers[0].attention;
    // The block's values without the ranges.
    for kind in 0..3 {
        attention.project(&layer.attention, kind);
    }
    attention.score(&layer.attention);
    attention.normalise();
    attention.weigh(&layer.attention);
    let norm = &layer.attention.norm;
    let r = attention.sums_of_residual(&layer.attention);
    attention.norm = NormWitness::default();
    attention.norm.deviate(norm, &r);
    attention.norm.take_roots(norm);
    attention.norm.normalise(norm);
    attention.norm.divide(norm);
    let middle = attention.norm.y.clone();
    assert!(middle.iter().any(|v| *v >= ACTIVATION_LIMIT));
    let weights = &layer.feed_forward;
    let block = &mut witness.layers[0].feed_forward;
    block.x = middle;
    let shift = weights.shape.dense_shift();
    block.z = crate::block::shifted(&sums_of_dense(weights, &block.x), shift);
    block.g = block
        .z
        .iter()
        .map(|z| weights.gelu[(z + ACTIVATION_LIMIT) as usize])
        .collect();
    block.divide_dense(weights);
    block.norm = NormWitness::new(&weights.norm, &block.sums_of_residual(weights)).unwrap();
    case.after(&mut witness, (0, false));
    caught_by(LOOKUP, || case.forged(&witness));
}

/// The top limbs that one layer derives are those of its own columns.
#[test]
fn layers_have_their_own_derived_entries() {
    let case = small();
    let (witness, shape) = (case.witness(), case.shape());
    let swapped = |change: &dyn Fn(&mut [Tops; 2], &mut [Tops; 2])| {
        let mut entries = Entries::new(&witness, &shape);
        let [(_, first), (_, second)] = &mut entries.derived[..] else {
            unreachable!("two layers")
        };
        change(first, second);
        case.forged_with(&witness, entries)
    };
    assert!(swapped(&|_, _| ()));
    // The same limbs are looked up, so only the equations of both divisions refuse them.
    caught_by(MATRICES, || {
        swapped(&|first, second| std::mem::swap(&mut first[0], &mut second[0]))
    });
    caught_by(ROOTS, || {
        swapped(&|first, second| std::mem::swap(&mut first[1], &mut second[1]))
    });
}
