//! The files about the integer encoder, whose runs the protocol's name does not cover.
use super::*;
use crate::{attention, encoder, encoder_embed, encoder_input, encoder_output, feed_forward};

const FEED_FORWARD: [Run; 3] = [
    ("feed forward", "2 places of 4, 8 inner", || {
        feed_forward::tests::vectors::simulate_any([4, 8, 6, 6, 6], 2)
    }),
    (
        "feed forward",
        "64 places of 12, 48 inner, scales 5, 6, 5",
        || feed_forward::tests::vectors::simulate_any([12, 48, 5, 6, 5], 64),
    ),
    ("feed forward", "32 places of 384, 1,536 inner", || {
        feed_forward::tests::vectors::simulate_any([384, 1536, 6, 6, 6], 32)
    }),
];

#[test]
fn feed_forward_blocks_are_the_published_ones() {
    let head = [("what", explained()), ("runs", traces(&FEED_FORWARD))];
    let block = feed_forward::tests::vectors::fields();
    published("feed-forward", &[&head[..], &block].concat());
}

const ATTENTION: [Run; 3] = [
    ("attention", "4 places of 4, 2 heads", || {
        attention::tests::vectors::simulate_any([4, 2, 6, 7, 8, 8], 4)
    }),
    (
        "attention",
        "16 places of 12, 6 heads, scales 5, 6, 6, 6",
        || attention::tests::vectors::simulate_any([12, 6, 5, 6, 6, 6], 16),
    ),
    ("attention", "32 places of 384, 12 heads", || {
        attention::tests::vectors::simulate_any([384, 12, 6, 7, 8, 8], 32)
    }),
];

#[test]
fn attention_blocks_are_the_published_ones() {
    let head = [("what", explained()), ("runs", traces(&ATTENTION))];
    let block = attention::tests::vectors::fields();
    published("attention", &[&head[..], &block].concat());
}

const ENCODER: [Run; 3] = [
    (
        "encoder",
        "2 layers, 4 places of 4, 2 heads, 8 inner",
        || encoder::tests::vectors::simulate_any([4, 2, 8], [6, 7, 8, 8, 6, 6], [2, 4]),
    ),
    (
        "encoder",
        "2 layers, 16 places of 12, 6 heads, 48 inner, scales 5, 6, 6, 7, 6, 5",
        || encoder::tests::vectors::simulate_any([12, 6, 48], [5, 6, 6, 7, 6, 5], [2, 16]),
    ),
    (
        "encoder",
        "6 layers, 32 places of 384, 12 heads, 1,536 inner",
        || encoder::tests::vectors::simulate_any([384, 12, 1536], [6, 7, 8, 8, 6, 6], [6, 32]),
    ),
];

#[test]
fn encoders_are_the_published_ones() {
    let head = [("what", explained()), ("runs", traces(&ENCODER))];
    let layers = encoder::tests::vectors::fields();
    published("encoder", &[&head[..], &layers].concat());
}

const ENCODER_OUTPUT: [Run; 3] = [
    ("encoder output", "4 places of 6, A 11,712", || {
        encoder_output::tests::vectors::simulate_any(6, 4, 11_712)
    }),
    ("encoder output", "16 places of 96, A 11,712", || {
        encoder_output::tests::vectors::simulate_any(96, 16, 11_712)
    }),
    ("encoder output", "32 places of 384, A 11,712", || {
        encoder_output::tests::vectors::simulate_any(384, 32, 11_712)
    }),
];

#[test]
fn encoder_outputs_are_the_published_ones() {
    let head = [("what", explained()), ("runs", traces(&ENCODER_OUTPUT))];
    let output = encoder_output::tests::vectors::fields();
    published("encoder-output", &[&head[..], &output].concat());
}

const ENCODER_INPUT: [Run; 3] = [
    (
        "encoder input",
        "4 of 4 places of 6, 21 words, rows of 64",
        || encoder_input::tests::vectors::simulate_any([21, 6, 4], 6, 6, 4),
    ),
    (
        "encoder input",
        "32 of 64 places of 12, 300 words, scale 5, rows of 512",
        || encoder_input::tests::vectors::simulate_any([300, 12, 64], 5, 9, 32),
    ),
    (
        "encoder input",
        "32 of 64 places of 384, 30,522 words, rows of 4,096",
        || encoder_input::tests::vectors::simulate_any([30_522, 384, 64], 6, 12, 32),
    ),
];

#[test]
fn encoder_inputs_are_the_published_ones() {
    let head = [("what", explained()), ("runs", traces(&ENCODER_INPUT))];
    let input = encoder_input::tests::vectors::fields();
    published("encoder-input", &[&head[..], &input].concat());
}

const ENCODER_EMBED: [Run; 2] = [
    (
        "encoder embed",
        "2 layers, 4 of 4 places of 4, 9 words, 2 heads, 4 inner, rows of 1,024",
        || encoder_embed::tests::vectors::simulate_any([9, 4, 4], [2, 4], 10, [2, 4, 1]),
    ),
    (
        "encoder embed",
        "2 layers, 32 of 64 places of 384, 30,522 words, 12 heads, 1,536 inner, rows of 4,096",
        || {
            encoder_embed::tests::vectors::simulate_any(
                [30_522, 384, 64],
                [12, 1536],
                12,
                [2, 32, 1],
            )
        },
    ),
];

const SEVERAL: [Run; 2] = [
    (
        "encoder embed",
        "2 queries, 2 layers, 4 of 4 places of 4, 9 words, 2 heads, 4 inner, rows of 1,024",
        || encoder_embed::tests::vectors::simulate_any([9, 4, 4], [2, 4], 10, [2, 4, 2]),
    ),
    (
        "encoder embed",
        "4 queries, 2 layers, 8 of 8 places of 6, 21 words, 3 heads, 4 inner, rows of 1,024",
        || encoder_embed::tests::vectors::simulate_any([21, 6, 8], [3, 4], 10, [2, 8, 4]),
    ),
];

#[test]
fn encoder_embeddings_of_several_are_the_published_ones() {
    let head = [("what", explained()), ("runs", traces(&SEVERAL))];
    let run = encoder_embed::tests::vectors::fields_of_several();
    published("encoder-batch", &[&head[..], &run].concat());
}

#[test]
fn encoder_embeddings_are_the_published_ones() {
    let head = [("what", explained()), ("runs", traces(&ENCODER_EMBED))];
    let run = encoder_embed::tests::vectors::fields();
    published("encoder-embed", &[&head[..], &run].concat());
}
