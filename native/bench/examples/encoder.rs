//! Processor time and size of a proof of the encoder's layers at the published size with random weights, beside a noise proof in
//! the same run: `cargo run --release -p ragaudit-bench --example encoder -- LAYERS`, with six layers unless it is given.
use ragaudit_bench::encoder::{layers, WIDTH};
use ragaudit_bench::{measure_block, measure_noise, random};
use ragaudit_scan_prover::encoder::{
    commit_places, commit_used, forward, prove_encoder, verify_encoder, EncoderStatement, Layer,
};
use ragaudit_scan_prover::group::Fr;

const PLACES: usize = 32;
const USED: usize = 15;

fn main() {
    let count = std::env::args().nth(1);
    let count: u64 = count.map_or(6, |count| count.parse().expect("a number of layers"));
    let layers = layers(count);
    let layers: Vec<&Layer> = layers.iter().collect();
    let layer = layers[0];
    let x = random(10, PLACES * WIDTH, 200);
    let y = forward(&layers, USED, &x).expect("activations within the ranges");
    let commit = |values: &[i16]| commit_places(layer, PLACES, values).expect("activations");
    let (inputs, outputs) = (commit(&x), commit(&y));
    let used = commit_used(layer, PLACES, USED).expect("a used place");
    let statement = EncoderStatement {
        context: Fr::from(7u8),
        layers,
        places: PLACES,
        marks: used.point,
        inputs: &inputs.rows,
        outputs: &outputs.rows,
    };
    measure_block(
        || prove_encoder(&statement, &used, &inputs, &outputs).expect("a true statement"),
        |proof| verify_encoder(&statement, proof).is_ok(),
    );
    measure_noise();
}
