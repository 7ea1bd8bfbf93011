//! Processor time and size of a proof of A1 for the integer encoder at the published size with random weights, beside a noise
//! proof in the same run: `cargo run --release -p ragaudit-bench --example encoder_embed -- PLACES [--queries QUERIES]`, with 32
//! places and one query unless the numbers are given. Several queries share one proof.
use ragaudit_bench::encoder::{gain, layers, WIDTH};
use ragaudit_bench::{
    measure_block, measure_noise, measure_query, memory, random, timed, tokens_hash, vector_hash,
};
use ragaudit_scan_prover::encoder::Layer;
use ragaudit_scan_prover::encoder_embed::{
    prove_encoder_embed, prove_encoder_embeds, vector_of, verify_encoder_embed,
    verify_encoder_embeds, EncoderEmbedStatement, Hashes, Item, Table, Text,
};
use ragaudit_scan_prover::encoder_input::{Parameters, Shape};
use ragaudit_scan_prover::group::Fr;

const VOCABULARY: usize = 30_522;
const LAYERS: u64 = 6;
const USED: usize = 15;
/// A for 384 components.
const NORM_FACTOR: u64 = 11_712;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |text: &String| text.parse::<usize>().expect("a number");
    let places = args.first().map_or(32, number);
    let count = match args.get(1).map(String::as_str) {
        Some("--queries") => number(args.get(2).expect("a number of queries")),
        _ => 1,
    };
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
    let text = |k: usize| Text {
        tokens: (0..USED.min(places))
            .map(|i| (101 + 2003 * i + 17 * k) as u32 % VOCABULARY as u32)
            .collect(),
        salt: Fr::from(100 + k as u64),
    };
    let texts: Vec<Text> = (0..count).map(text).collect();
    let salts: Vec<Fr> = (0..count).map(|k| Fr::from(200 + k as u64)).collect();
    let hashes = |k: usize, cq: Fr| Hashes {
        context: Fr::from(7u8),
        hq: tokens_hash(texts[k].salt, &texts[k].tokens),
        cq,
    };
    let mut statement = EncoderEmbedStatement {
        queries: vec![hashes(0, Fr::from(0u8))],
        embeddings: &table.public,
        layers: layers.iter().collect::<Vec<&Layer>>(),
        places,
        norm_factor: NORM_FACTOR,
    };
    let mut queries = Vec::new();
    for k in 0..count {
        let (vector, seconds) = timed(|| vector_of(&statement, &table, &texts[k]));
        println!("vector and its values: {seconds:.2} s");
        let vector = vector.expect("a text within the ranges");
        queries.push(hashes(k, vector_hash(salts[k], &vector)));
    }
    statement.queries = queries[..1].to_vec();
    if count > 1 {
        statement.queries = queries;
        let secrets: Vec<(&Text, &Fr)> = texts.iter().zip(&salts).collect();
        let prove = || prove_encoder_embeds(&statement, &table, &secrets);
        let (proof, seconds) = timed(prove);
        let proof = proof.expect("a true statement");
        let verify = || verify_encoder_embed(&statement, &proof).is_ok();
        assert!(verify());
        let (checked, verifying) = timed(|| (0..4).all(|_| verify()));
        assert!(checked);
        const PROOFS: usize = 8;
        let items: Vec<Item> = (0..PROOFS)
            .map(|_| (statement.clone(), &proof[..]))
            .collect();
        let in_one_sum = || verify_encoder_embeds(&items).is_ok_and(|refused| refused.is_empty());
        let (checked, in_one_sum) = timed(in_one_sum);
        assert!(checked);
        let each = |value: f64| value / count as f64;
        println!(
            "proof of {count} queries: {seconds:.2} s, {} bytes, verified in {:.3} s, {}",
            proof.len(),
            verifying / 4.0,
            memory()
        );
        println!(
            "each query: {:.2} s, {:.0} bytes, verified in {:.4} s ({:.4} s in one sum of {PROOFS} proofs)",
            each(seconds),
            each(proof.len() as f64),
            each(verifying / 4.0),
            each(in_one_sum / PROOFS as f64)
        );
    } else {
        measure_block(
            || {
                let proof = prove_encoder_embed(&statement, &table, &texts[0], &salts[0]);
                proof.expect("a true statement")
            },
            |proof| verify_encoder_embed(&statement, proof).is_ok(),
        );
    }
    measure_noise();
    if count > 1 {
        measure_query();
    }
}
