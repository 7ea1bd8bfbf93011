//! Processor time and size of a proof of one feed-forward block at the published size, beside a noise proof in the same run:
//! `cargo run --release -p ragaudit-bench --example feed_forward`.
//!
//! The weights are random. A file of int16, little-endian, replaces them: matrix and bias of both dense layers, gain and bias of
//! the LayerNorm, the table of GELU, and the activations of 32 places.
use ragaudit_bench::encoder::{gain, ROW_VARIABLES, WIDTH};
use ragaudit_bench::{int16_file, measure_block, measure_noise, random};
use ragaudit_scan_prover::feed_forward::{
    commit_places, forward, open_weights, prove_feed_forward, verify_feed_forward,
    FeedForwardStatement, Parameters, Shape, Vectors,
};
use ragaudit_scan_prover::group::Fr;

const SHAPE: Shape = Shape {
    width: WIDTH,
    inner: 4 * WIDTH,
    x: 6,
    z: 6,
    g: 6,
};
const PLACES: usize = 32;

fn integers(path: Option<String>) -> Vec<i16> {
    let (d, i) = (SHAPE.width, SHAPE.inner);
    if let Some(path) = path {
        return int16_file(&path);
    }
    let mut all = random(1, d * i, 450);
    all.extend(random(2, i, 3000));
    all.extend(random(3, i * d, 220));
    all.extend(random(4, d, 3000));
    all.extend(gain(5));
    all.extend(random(6, d, 2000));
    all.extend((-2048..2048).map(|z: i16| z.max(0)));
    all.extend(random(7, PLACES * d, 200));
    all
}

fn main() {
    let integers = integers(std::env::args().nth(1));
    let (d, i) = (SHAPE.width, SHAPE.inner);
    let mut rest = &integers[..];
    let mut take = |count: usize| {
        let (taken, left) = rest.split_at(count);
        rest = left;
        taken
    };
    let [first, first_bias, second, second_bias] = [d * i, i, i * d, d].map(&mut take);
    let parameters = Parameters {
        first,
        second,
        vectors: Vectors {
            first_bias,
            second_bias,
            gain: take(d),
            bias: take(d),
            gelu: take(4096),
        },
    };
    let x = take(PLACES * d);
    let weights = open_weights(SHAPE, ROW_VARIABLES, parameters, None);
    let weights = weights.expect("weights within the bounds");
    let y = forward(&weights, x).expect("activations within the ranges");
    if !rest.is_empty() {
        assert_eq!(y, rest, "the file's results");
    }
    let commit = |values: &[i16]| commit_places(&weights, PLACES, values).expect("activations");
    let (inputs, outputs) = (commit(x), commit(&y));
    let statement = FeedForwardStatement {
        context: Fr::from(7u8),
        weights: &weights,
        places: PLACES,
        inputs: &inputs.rows,
        outputs: &outputs.rows,
    };
    measure_block(
        || prove_feed_forward(&statement, &inputs, &outputs).expect("a true statement"),
        |proof| verify_feed_forward(&statement, proof).is_ok(),
    );
    measure_noise();
}
