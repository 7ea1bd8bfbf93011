//! Processor time and size of a proof of A1 for the integer encoder at the published size with random weights, beside a noise
//! proof in the same run: `cargo run --release -p ragaudit-bench --example encoder_embed -- PLACES`, with 32 places unless the
//! number is given.
use ragaudit_bench::encoder::{gain, layers, WIDTH};
use ragaudit_bench::{measure_block, measure_noise, random, timed, tokens_hash, vector_hash};
use ragaudit_scan_prover::encoder::Layer;
use ragaudit_scan_prover::encoder_embed::{
    prove_encoder_embed, vector_of, verify_encoder_embed, EncoderEmbedStatement, Table, Text,
};
use ragaudit_scan_prover::encoder_input::{Parameters, Shape};
use ragaudit_scan_prover::group::Fr;

const VOCABULARY: usize = 30_522;
const LAYERS: u64 = 6;
const USED: usize = 15;
/// A for 384 components.
const NORM_FACTOR: u64 = 11_712;

fn main() {
    let places = std::env::args().nth(1);
    let places: usize = places.map_or(32, |places| places.parse().expect("a number of places"));
    let shape = Shape {
        vocabulary: VOCABULARY,
        width: WIDTH,
        places: 64,
        x: 6,
        row_variables: 12,
    };
    let (words, positions) = (
        random(1, VOCABULARY * WIDTH, 300),
        random(2, 64 * WIDTH, 200),
    );
    let parameters = Parameters {
        words: &words,
        places: &positions,
        gain: &gain(3),
        bias: &random(4, WIDTH, 2000),
        first: 101,
    };
    let (table, seconds) = timed(|| Table::new(shape, parameters));
    println!("commitment to the word rows: {seconds:.1} s");
    let table = table.expect("embeddings within the bounds");
    let layers = layers(LAYERS);
    let text = Text {
        tokens: (0..USED.min(places) as u32)
            .map(|i| 101 + 2003 * i)
            .collect(),
        salt: Fr::from(100u8),
    };
    let mut statement = EncoderEmbedStatement {
        context: Fr::from(7u8),
        embeddings: &table.public,
        layers: layers.iter().collect::<Vec<&Layer>>(),
        places,
        norm_factor: NORM_FACTOR,
        hq: tokens_hash(text.salt, &text.tokens),
        cq: Fr::from(0u8),
    };
    let (vector, seconds) = timed(|| vector_of(&statement, &table, &text));
    println!("vector and its values: {seconds:.2} s");
    let vector = vector.expect("a text within the ranges");
    let salt = Fr::from(200u8);
    statement.cq = vector_hash(salt, &vector);
    measure_block(
        || prove_encoder_embed(&statement, &table, &text, &salt).expect("a true statement"),
        |proof| verify_encoder_embed(&statement, proof).is_ok(),
    );
    measure_noise();
}
