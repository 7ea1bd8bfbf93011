//! Processor time and size of a proof of one attention block at the published size with random weights, beside a noise proof in
//! the same run: `cargo run --release -p ragaudit-bench --example attention`.
use ragaudit_bench::{measure_block, measure_noise, random};
use ragaudit_scan_prover::attention::{
    commit_places, commit_used, forward, prove_attention, verify_attention, AttentionStatement,
    Parameters, Shape, Weights,
};
use ragaudit_scan_prover::group::Fr;

const SHAPE: Shape = Shape {
    width: 384,
    heads: 12,
    x: 6,
    q: 7,
    v: 8,
    o: 8,
};
const PLACES: usize = 32;
const USED: usize = 15;

fn main() {
    let d = SHAPE.width;
    let matrices: [Vec<i16>; 4] = std::array::from_fn(|k| random(k as u64, d * d, 220));
    let biases: [Vec<i16>; 4] = std::array::from_fn(|k| random(4 + k as u64, d, 3000));
    let gain: Vec<i16> = random(8, d, 1000).iter().map(|v| 3500 + v).collect();
    let exp = |u: i32| (4096.0 * (-f64::from(u) / 32.0).exp()).round() as i16;
    let parameters = Parameters {
        matrices: matrices.each_ref().map(|m| &m[..]),
        biases: biases.each_ref().map(|b| &b[..]),
        gain: &gain,
        bias: &random(9, d, 2000),
        exp: &(0..8192).map(exp).collect::<Vec<i16>>(),
    };
    let weights = Weights::new(SHAPE, parameters).expect("weights within the bounds");
    let x = random(10, PLACES * d, 200);
    let y = forward(&weights, USED, &x).expect("activations within the ranges");
    let commit = |values: &[i16]| commit_places(&SHAPE, PLACES, values).expect("activations");
    let (inputs, outputs) = (commit(&x), commit(&y));
    let used = commit_used(&SHAPE, PLACES, USED).expect("a used place");
    let statement = AttentionStatement {
        context: Fr::from(7u8),
        weights: &weights,
        places: PLACES,
        marks: used.point,
        inputs: &inputs.rows,
        outputs: &outputs.rows,
    };
    measure_block(
        || prove_attention(&statement, &used, &inputs, &outputs).expect("a true statement"),
        |proof| verify_attention(&statement, proof).is_ok(),
    );
    measure_noise();
}
