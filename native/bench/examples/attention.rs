//! Processor time and size of a proof of one attention block at the published size with random weights, beside a noise proof in
//! the same run: `cargo run --release -p ragaudit-bench --example attention`.
use ragaudit_bench::encoder::{of_attention, WIDTH};
use ragaudit_bench::{measure_block, measure_noise, random};
use ragaudit_scan_prover::attention::{
    commit_places, commit_used, forward, prove_attention, verify_attention, AttentionStatement,
};
use ragaudit_scan_prover::group::Fr;

const PLACES: usize = 32;
const USED: usize = 15;

fn main() {
    let weights = of_attention(0);
    let x = random(10, PLACES * WIDTH, 200);
    let y = forward(&weights, USED, &x).expect("activations within the ranges");
    let commit = |values: &[i16]| commit_places(&weights, PLACES, values).expect("activations");
    let (inputs, outputs) = (commit(&x), commit(&y));
    let used = commit_used(&weights, PLACES, USED).expect("a used place");
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
