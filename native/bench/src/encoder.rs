//! Random weights of the integer encoder at the published size.
use ragaudit_scan_prover::encoder::Layer;
use ragaudit_scan_prover::{attention, feed_forward};

use crate::random;

pub const WIDTH: usize = 384;
const INNER: usize = 4 * WIDTH;
/// Columns are committed in rows of 2^12.
pub const ROW_VARIABLES: usize = 12;

/// Gains of a LayerNorm.
pub fn gain(seed: u64) -> Vec<i16> {
    let drawn = random(seed, WIDTH, 1000).into_iter();
    drawn.map(|v| 3500 + v).collect()
}

/// Weights of an attention block.
pub fn of_attention(seed: u64) -> attention::Weights {
    let shape = attention::Shape {
        width: WIDTH,
        heads: 12,
        x: 6,
        q: 7,
        v: 8,
        o: 8,
    };
    let matrices: [Vec<i16>; 4] =
        std::array::from_fn(|k| random(seed + k as u64, WIDTH * WIDTH, 220));
    let biases: [Vec<i16>; 4] = std::array::from_fn(|k| random(seed + 4 + k as u64, WIDTH, 3000));
    let exp = |u: i32| (4096.0 * (-f64::from(u) / 32.0).exp()).round() as i16;
    let parameters = attention::Parameters {
        matrices: matrices.each_ref().map(|m| &m[..]),
        vectors: attention::Vectors {
            biases: biases.each_ref().map(|b| &b[..]),
            gain: &gain(seed + 8),
            bias: &random(seed + 9, WIDTH, 2000),
            exp: &(0..8192).map(exp).collect::<Vec<i16>>(),
        },
    };
    attention::open_weights(shape, ROW_VARIABLES, parameters, None)
        .expect("weights within the bounds")
}

fn of_feed_forward(seed: u64) -> feed_forward::Weights {
    let shape = feed_forward::Shape {
        width: WIDTH,
        inner: INNER,
        x: 6,
        z: 6,
        g: 6,
    };
    let parameters = feed_forward::Parameters {
        first: &random(seed, WIDTH * INNER, 220),
        second: &random(seed + 2, INNER * WIDTH, 220),
        vectors: feed_forward::Vectors {
            first_bias: &random(seed + 1, INNER, 3000),
            second_bias: &random(seed + 3, WIDTH, 3000),
            gain: &gain(seed + 4),
            bias: &random(seed + 5, WIDTH, 2000),
            gelu: &(-2048..2048).map(|z: i16| z.max(0)).collect::<Vec<i16>>(),
        },
    };
    feed_forward::open_weights(shape, ROW_VARIABLES, parameters, None)
        .expect("weights within the bounds")
}

/// So many layers.
pub fn layers(count: u64) -> Vec<Layer> {
    let layer = |n| {
        let (attention, feed_forward) = (of_attention(100 * n), of_feed_forward(100 * n + 50));
        Layer::new(attention, feed_forward).expect("blocks of one width")
    };
    (0..count).map(layer).collect()
}
