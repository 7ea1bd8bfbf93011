//! Processor time and size of a proof of the encoder's input at the published size, beside a noise proof in the same run:
//! `cargo run --release -p ragaudit-bench --example encoder_input`.
//!
//! The rows are random. A file of the integer weights (`docs/minilm-int.md`, "Order of the weights") replaces them; a second file
//! then receives the model's pins: the points of the word rows and of the place rows, gain and bias as int16, and the row of unused
//! places as int32, little-endian.
use ragaudit_bench::encoder::{gain, WIDTH};
use ragaudit_bench::{int16_file, measure_block, measure_noise, random, timed, tokens_hash};
use ragaudit_scan_prover::encoder_input::{
    place_text, prove_input, verify_input, InputStatement, Parameters, Shape, Table, Text,
};
use ragaudit_scan_prover::group::{encode_points, Fr};

const SHAPE: Shape = Shape {
    vocabulary: 30_522,
    width: WIDTH,
    places: 64,
    x: 6,
    row_variables: 12,
};
const PLACES: usize = 32;
/// `[CLS]`.
const FIRST: u32 = 101;
/// Place rows of the file.
const PLACE_ROWS: usize = 512;

fn integers(path: Option<String>) -> Vec<i16> {
    let (v, d) = (SHAPE.vocabulary, SHAPE.width);
    if let Some(path) = path {
        return int16_file(&path);
    }
    let mut all = random(1, v * d, 450);
    all.extend(random(2, PLACE_ROWS * d, 200));
    all.extend(gain(3));
    all.extend(random(4, d, 2000));
    all
}

fn main() {
    let integers = integers(std::env::args().nth(1));
    let (v, d) = (SHAPE.vocabulary, SHAPE.width);
    let mut rest = &integers[..];
    let mut take = |count: usize| {
        let (taken, left) = rest.split_at(count);
        rest = left;
        taken
    };
    let parameters = Parameters {
        words: take(v * d),
        places: take(PLACE_ROWS * d),
        gain: take(d),
        bias: take(d),
        first: FIRST,
    };
    let (table, seconds) = timed(|| Table::new(SHAPE, parameters).expect("rows of the shape"));
    println!("commitments to the rows: {seconds:.2} s of processor time");
    if let Some(path) = std::env::args().nth(2) {
        let of = &table.public;
        let mut pins = encode_points(&[of.words.concat(), of.positions.concat()].concat());
        let vectors = [parameters.gain, parameters.bias].concat();
        pins.extend(vectors.iter().flat_map(|v| v.to_le_bytes()));
        pins.extend(of.unused.iter().flat_map(|v| (*v as i32).to_le_bytes()));
        std::fs::write(path, pins).expect("a file for the pins");
        let digest: String = of.digest().iter().map(|b| format!("{b:02x}")).collect();
        println!("digest of the embeddings: {digest}");
    }
    let mut tokens = vec![FIRST];
    tokens.extend((0..13).map(|n| 2000 + 2111 * n));
    tokens.push(FIRST + 1);
    let salt = Fr::from(7u8);
    let text = Text { tokens, salt };
    let placed = place_text(&table, PLACES, &text).expect("a text within the ranges");
    let statement = InputStatement {
        context: Fr::from(7u8),
        embeddings: &table.public,
        places: PLACES,
        hq: tokens_hash(text.salt, &text.tokens),
        marks: placed.used.point,
        outputs: &placed.outputs.rows,
    };
    measure_block(
        || prove_input(&statement, &table, &text, &placed).expect("a true statement"),
        |proof| verify_input(&statement, proof).is_ok(),
    );
    measure_noise();
}
