use super::*;
use ark_ff::Field;
use ragaudit_scan_protocol::attention::statement::MAX_HEADS;
use ragaudit_scan_protocol::block::{MAX_PLACES, MAX_ROW_VARIABLES, MAX_WIDTH};
use ragaudit_scan_protocol::encoder::{Layer, MAX_LAYERS};
use ragaudit_scan_protocol::encoder_input::statement::MAX_VOCABULARY;
use ragaudit_scan_protocol::vector::MAX_NORM_FACTOR;
use ragaudit_transformer::{Encoder, Scales};

use crate::block::NormWitness;
use crate::channel::Channel;
use crate::encoder::tests::{layers_of, shape as layers_shape, Integers};
use crate::encoder::Witness as LayersWitness;
use crate::encoder_input::{Embeddings, Parameters, Shape as InputShape, Vectors};
use crate::encoder_output::Witness as OutputWitness;
use crate::error::Error;
use crate::feed_forward;
use crate::fixtures::{int16, quantised, tokens_hash, unbounded_hash, ROW_VARIABLES};
use crate::kit::{only_for, run_tests, simulate, simulated, verify, Change, Protocol};
use crate::malicious::{caught_by, MaliciousProver};
use crate::transcript::{Oracle, Transcript};

pub(crate) mod several;
pub(crate) mod vectors;

const NORM_FACTOR: u64 = 11_712;
const PUBLIC: Hashes = Hashes {
    context: Fr::ONE,
    hq: Fr::ONE,
    cq: Fr::ONE,
};
const LOOKUP: &str = "constraint: lookup layer";
const MATRICES: &str = "constraint: matrices";
const ROOTS: &str = "constraint: roots";
const USED_ROWS: &str = "product: used rows";

impl Protocol for EncoderEmbedStatement<'_> {
    fn start<O: Oracle>(&self) -> Transcript<O> {
        self.transcript(&self.check().unwrap())
    }

    fn rows(&self) -> Result<usize> {
        self.check()?;
        Ok(self.row_variables())
    }

    fn run<'a, C: Channel>(&'a self, session: Session<'a, C>) -> Result<C::Closed> {
        encoder_embed_protocol(session, self, None)
    }
}

/// The integers of a model.
#[derive(Clone)]
struct Model {
    input: InputShape,
    /// Word rows, place rows, gain and bias.
    embeddings: [Vec<i16>; 4],
    layers: Vec<Integers>,
}

impl Model {
    fn random(vocabulary: usize, width: usize, inner: usize, places: usize, layers: u64) -> Self {
        let gain = int16(902, width, 1000).iter().map(|v| 3500 + v).collect();
        let heads = if width.is_multiple_of(3) { 3 } else { 2 };
        let shape = layers_shape(width, heads, inner);
        Self {
            input: InputShape {
                vocabulary,
                width,
                places,
                x: 6,
                row_variables: ROW_VARIABLES,
            },
            embeddings: [
                int16(900, vocabulary * width, 500),
                int16(901, places * width, 300),
                gain,
                int16(903, width, 2000),
            ],
            layers: (0..layers)
                .map(|n| Integers::random(shape, 5 + 100 * n))
                .collect(),
        }
    }

    fn table(&self) -> Table {
        let [words, places, gain, bias] = self.embeddings.each_ref().map(|part| &part[..]);
        let parameters = Parameters {
            words,
            places,
            gain,
            bias,
            first: 1,
        };
        Table::new(self.input, parameters).unwrap()
    }
}

struct Case {
    model: Model,
    table: Table,
    layers: Vec<Layer>,
    places: usize,
    text: Text,
    salt: Fr,
    hq: Fr,
    cq: Fr,
}

fn text(tokens: &[u32]) -> Text {
    Text {
        tokens: tokens.to_vec(),
        salt: Fr::from(100u8),
    }
}

fn case_of(model: Model, places: usize, tokens: &[u32]) -> Case {
    let mut case = Case {
        table: model.table(),
        layers: layers_of(&model.layers),
        model,
        places,
        text: text(tokens),
        salt: Fr::from(200u8),
        hq: Fr::ONE,
        cq: Fr::ONE,
    };
    let witness = case.witness();
    (case.hq, case.cq) = case.hashes(&witness);
    case
}

/// Two layers, and three tokens in four places.
fn small() -> Case {
    case_of(Model::random(5, 4, 4, 4, 2), 4, &[1, 4, 2])
}

/// One layer, and one token in two places.
fn tiny() -> Case {
    case_of(Model::random(3, 2, 1, 2, 1), 2, &[1])
}

impl Case {
    fn statement(&self) -> EncoderEmbedStatement<'_> {
        EncoderEmbedStatement {
            queries: vec![self.hashes_of(self.hq, self.cq)],
            embeddings: &self.table.public,
            layers: self.layers.iter().collect(),
            places: self.places,
            norm_factor: NORM_FACTOR,
        }
    }

    fn hashes_of(&self, hq: Fr, cq: Fr) -> Hashes {
        let context = Fr::from(77u8);
        Hashes { context, hq, cq }
    }

    fn prove(&self) -> Vec<u8> {
        let statement = self.statement();
        prove_as::<MaliciousProver>(&statement, &self.table, &[(&self.text, &self.salt)]).unwrap()
    }

    fn witness(&self) -> Witness {
        self.witness_of(&self.text)
    }

    fn witness_of(&self, text: &Text) -> Witness {
        Witness::new(&self.statement(), &self.table, text).unwrap()
    }

    /// hq and cq of a witness.
    fn hashes(&self, witness: &Witness) -> (Fr, Fr) {
        let used = witness.input.marks.iter().sum::<i64>() as usize;
        let hq = tokens_hash(witness.input.salt, used, &witness.input.tokens[..used]);
        let vector = &witness.output.vector.components;
        (hq, unbounded_hash(self.salt, vector))
    }

    /// The vector of the last layer's rows.
    fn finish(&self, witness: &mut Witness) {
        let shape = self.statement().check().unwrap().output;
        let marks = &witness.input.marks;
        witness.output = OutputWitness::new(&shape, marks, witness.layers.outputs()).unwrap();
    }

    /// Whether a prover without checks gets through with this witness, for the hashes of its tokens and of its vector.
    fn forged(&self, witness: &Witness) -> bool {
        let (hq, cq) = self.hashes(witness);
        self.forged_for(witness, |s| s.queries = vec![self.hashes_of(hq, cq)])
    }

    fn forged_for(&self, witness: &Witness, change: impl Fn(&mut EncoderEmbedStatement)) -> bool {
        let mut statement = self.statement();
        change(&mut statement);
        let part = Part::new(witness, &statement.check().unwrap(), &self.salt);
        let proof = prove_parts::<MaliciousProver>(&statement, &self.table, vec![part]);
        verify(&statement, &proof.unwrap()).is_ok()
    }
}

#[test]
fn embeddings_verify() {
    for case in [
        small(),
        tiny(),
        case_of(Model::random(9, 6, 5, 4, 1), 4, &[8, 0, 8, 8]),
        case_of(Model::random(70, 16, 12, 8, 2), 8, &[1, 69, 64, 3, 1]),
        case_of(Model::random(70, 16, 12, 8, 1), 2, &[69, 1]),
    ] {
        let statement = case.statement();
        assert_eq!(verify(&statement, &case.prove()), Ok(()));
        assert!(case.forged(&case.witness()));
        let (table, salt) = (&case.table, &case.salt);
        let proof = prove_encoder_embed(&statement, table, &case.text, salt).unwrap();
        assert_eq!(verify_encoder_embed(&statement, &proof), Ok(()));
    }
}

/// The vector is that of the encoder which computes vectors outside proofs.
#[test]
fn vectors_are_the_encoders() {
    let (vocabulary, width, inner, places) = (9, 8, 12, 4);
    let model = Model::random(vocabulary, width, inner, places, 2);
    let mut weights: Vec<i16> = model.embeddings.concat();
    for layer in &model.layers {
        weights.extend(layer.in_order());
    }
    let size = ragaudit_transformer::Shape {
        layers: 2,
        width,
        heads: 2,
        inner,
        vocabulary,
        places,
    };
    let scales = Scales {
        x: 6,
        q: 7,
        v: 8,
        o: 8,
        z: 6,
        g: 6,
    };
    let first = &model.layers[0];
    let (exp, gelu) = (&first.attention.exp, &first.feed_forward.gelu);
    let encoder = Encoder::new(size, scales, &weights, exp, gelu).unwrap();
    for tokens in [&[1, 8, 2][..], &[1], &[1, 0, 7, 7]] {
        let mut last = Vec::new();
        let mut see = |layer: usize, name: &'static str, values: &[i16]| {
            if (layer, name) == (2, "x2") {
                last = values.to_vec();
            }
        };
        encoder.rows(tokens, &mut see).unwrap();
        let mut sums = vec![0; width];
        for row in last.chunks_exact(width) {
            let pairs = sums.iter_mut().zip(row);
            pairs.for_each(|(sum, v)| *sum += i64::from(*v));
        }
        let case = case_of(model.clone(), places, tokens);
        let vector = vector_of(&case.statement(), &case.table, &case.text).unwrap();
        let vector: Vec<i64> = vector.iter().map(|v| i64::from(*v)).collect();
        assert_eq!(vector, quantised(&sums, NORM_FACTOR));
    }
}

#[test]
fn a_proof_is_for_its_statement_only() {
    let case = small();
    let proof = case.prove();
    let statement = case.statement();
    // A new field has to be changed below.
    let EncoderEmbedStatement {
        queries: _,
        embeddings: _,
        layers: _,
        places: _,
        norm_factor: _,
    } = &statement;
    let mut other = case.model.clone();
    other.embeddings[0][0] += 1;
    other.layers[1].feed_forward.each[0][0] += 1;
    let (table, layers) = (other.table(), layers_of(&other.layers));
    let changes: Vec<Change<EncoderEmbedStatement>> = vec![
        Box::new(|s| s.queries[0].context += Fr::ONE),
        Box::new(|s| s.embeddings = &table.public),
        Box::new(|s| s.layers.reverse()),
        Box::new(|s| s.layers.truncate(1)),
        Box::new(|s| s.layers.push(&case.layers[1])),
        Box::new(|s| s.layers[1] = &layers[1]),
        Box::new(|s| s.places = 2),
        Box::new(|s| s.norm_factor += 1),
        Box::new(|s| s.queries[0].hq += Fr::ONE),
        Box::new(|s| s.queries[0].cq += Fr::ONE),
        Box::new(|s| s.queries.push(s.queries[0])),
    ];
    only_for(&statement, &proof, &changes);
}

run_tests!(
    "encoder embed",
    context: [queries[0].context],
    small: tiny(),
    of_claims: tiny(),
    every: 293,
    ignored: "a prover skips each single claim in turn (minutes): make test-full",
);

/// The vector has the sum of other rows than the used ones, a multiple of it, or the rows of a layer before the last.
#[test]
fn the_vector_is_that_of_the_used_places() {
    let case = small();
    let shape = case.statement().check().unwrap();
    let honest = case.witness();
    let with = |marks: &[i64], y: &[i64]| {
        let mut witness = case.witness();
        let output = OutputWitness::new(&shape.output, marks, y).unwrap();
        witness.output.vector = output.vector.clone();
        witness
    };
    let y = honest.layers.outputs();
    assert!(case.forged(&with(&[1, 1, 1, 0], y)));
    for marks in [
        [1, 1, 1, 1],
        [1, 1, 0, 0],
        [1, 1, 0, 1],
        [1, 0, 0, 0],
        [2, 2, 2, 0],
        [1, 2, 1, 0],
    ] {
        caught_by(USED_ROWS, || case.forged(&with(&marks, y)));
    }
    let before = &honest.layers.layers[0].feed_forward.norm.y;
    caught_by(USED_ROWS, || case.forged(&with(&[1, 1, 1, 0], before)));
    let first = &honest.input.norm.y;
    caught_by(USED_ROWS, || case.forged(&with(&[1, 1, 1, 0], first)));
}

/// Another factor of the quantiser.
#[test]
fn the_scale_is_that_of_the_statement() {
    let case = small();
    let mut witness = case.witness();
    let scaled = case
        .statement()
        .check()
        .unwrap()
        .output
        .vector(4)
        .bounds
        .scaled;
    witness.output.vector.components = quantised(&witness.output.vector.sums, NORM_FACTOR / 2);
    witness
        .output
        .vector
        .measure(2 * NORM_FACTOR as i64, scaled);
    caught_by(LOOKUP, || case.forged(&witness));
    witness.output.vector.measure(NORM_FACTOR as i64, scaled);
    assert!(!case.forged(&witness));
}

/// The hashes of other texts and other vectors.
#[test]
fn hashes_are_those_of_the_text_and_of_its_vector() {
    let case = small();
    let honest = case.witness();
    let other = case.witness_of(&text(&[1, 2, 4, 3]));
    let [(hq, cq), (other_hq, other_cq)] = [&honest, &other].map(|w| case.hashes(w));
    assert!(case.forged(&other));
    for (witness, hq, cq) in [
        (&honest, other_hq, cq),
        (&honest, hq, other_cq),
        (&other, hq, other_cq),
        (&other, other_hq, cq),
        (&other, hq, cq),
    ] {
        let queries = vec![case.hashes_of(hq, cq)];
        assert!(!case.forged_for(witness, |s| s.queries = queries.clone()));
    }
}

/// The layers' input is not that of the tokens.
#[test]
fn layers_have_the_input_of_the_tokens() {
    let case = small();
    let other = case.witness_of(&text(&[1, 2, 4]));
    let mut witness = other.clone();
    witness.input = case.witness().input.clone();
    caught_by(MATRICES, || case.forged(&witness));
    // The committed input is the other text's.
    let mut rounded = witness.clone();
    rounded.input.norm.y = other.input.norm.y.clone();
    caught_by(ROOTS, || case.forged(&rounded));
    rounded.input.norm.divide(&case.table.public.norm);
    caught_by(LOOKUP, || case.forged(&rounded));
}

/// Each block's result is its input.
#[test]
fn no_block_is_skipped() {
    let case = small();
    let marks = case.witness().input.marks.clone();
    for (n, attention) in [(0, true), (0, false), (1, true), (1, false)] {
        let mut witness = case.witness();
        let layer = &case.layers[n];
        let of_layer = &mut witness.layers.layers[n];
        match attention {
            true => {
                of_layer.attention.norm.y = of_layer.attention.x.clone();
                of_layer.attention.norm.divide(&layer.attention.norm);
            }
            false => {
                of_layer.feed_forward.norm.y = of_layer.feed_forward.x.clone();
                of_layer.feed_forward.norm.divide(&layer.feed_forward.norm);
            }
        }
        case.after(&mut witness, &marks, n, attention);
        caught_by(LOOKUP, || case.forged(&witness));
    }
}

impl Case {
    /// All blocks after one block are computed from its result.
    fn after(&self, witness: &mut Witness, marks: &[i64], n: usize, attention: bool) {
        let layers = &mut witness.layers.layers;
        if attention {
            let y = layers[n].attention.norm.y.clone();
            let weights = &self.layers[n].feed_forward;
            layers[n].feed_forward = feed_forward::inputs::Witness::new(weights, &y).unwrap();
        }
        let x = layers[n].feed_forward.norm.y.clone();
        let rest: Vec<&Layer> = self.layers[n + 1..].iter().collect();
        let rest = LayersWitness::new(&rest, marks, &x).unwrap();
        layers.truncate(n + 1);
        layers.extend(rest.layers.iter().cloned());
        self.finish(witness);
    }
}

/// A feed-forward block without its residual.
#[test]
fn no_residual_is_omitted() {
    let case = small();
    for n in 0..2 {
        let mut witness = case.witness();
        let weights = &case.layers[n].feed_forward;
        let block = &mut witness.layers.layers[n].feed_forward;
        let mut r = block.sums_of_residual(weights);
        let shift = weights.shape.residual_shift();
        let pairs = r.iter_mut().zip(&block.x);
        pairs.for_each(|(sum, x)| *sum -= x << shift);
        block.norm = NormWitness::new(&weights.norm, &r).unwrap();
        let marks = witness.input.marks.clone();
        case.after(&mut witness, &marks, n, false);
        caught_by(MATRICES, || case.forged(&witness));
    }
}

/// Word rows, place rows and layers of other models than the statement's.
#[test]
fn the_model_is_that_of_the_statement() {
    let case = small();
    let with = |change: &dyn Fn(&mut Model)| {
        let mut model = case.model.clone();
        change(&mut model);
        case_of(model, case.places, &case.text.tokens)
    };
    // The row of the token in use.
    let words = with(&|m| m.embeddings[0][4 * 4] += 100);
    let places = with(&|m| m.embeddings[1][4] += 100);
    for other in [words, places] {
        let witness = other.witness();
        caught_by("product: lower digits", || case.forged(&witness));
        assert!(other.forged(&witness));
    }
    let norm = with(&|m| m.embeddings[2][1] += 300);
    caught_by(ROOTS, || case.forged(&norm.witness()));
    for n in 0..2 {
        let matrix = with(&|m| m.layers[n].attention.matrices[0][1] += 900);
        let dense = with(&|m| m.layers[n].feed_forward.each[2][1] += 900);
        for other in [matrix, dense] {
            caught_by(MATRICES, || case.forged(&other.witness()));
        }
    }
    let all = case_of(Model::random(5, 4, 4, 4, 2), 4, &[1, 4, 2]);
    assert!(case.forged(&all.witness()), "the same model");
    let swapped = with(&|m| m.layers.reverse());
    assert!(!case.forged(&swapped.witness()));
}

/// hq and cq without a known opening.
#[test]
fn proofs_are_simulated_without_tokens() {
    let case = tiny();
    let real = case.prove();
    let mut public = case.statement();
    public.queries = vec![case.hashes_of(Fr::from(31_337u64), Fr::from(31_338u64))];
    simulated(&public, &real);
}

#[test]
fn proofs_have_one_shape() {
    let shape = |case: &Case| crate::kit::shape(|| case.prove());
    let base = small();
    for tokens in [&[1][..], &[1, 3], &[1, 0, 0], &[1, 4, 4, 3]] {
        let other = case_of(base.model.clone(), 4, tokens);
        assert_eq!(shape(&base), shape(&other), "{tokens:?}");
    }
}

#[test]
fn parameters_out_of_range_are_refused() {
    let case = small();
    let invalid = |change: &dyn Fn(&mut EncoderEmbedStatement)| {
        let mut statement = case.statement();
        change(&mut statement);
        matches!(statement.check(), Err(Error::Invalid { .. }))
    };
    assert!(!invalid(&|_| ()));
    assert!(invalid(&|s| s.places = 0));
    assert!(invalid(&|s| s.places = 3));
    assert!(invalid(&|s| s.places = 8));
    assert!(invalid(&|s| s.layers.clear()));
    assert!(invalid(&|s| s.layers = vec![s.layers[0]; MAX_LAYERS + 1]));
    assert!(invalid(&|s| s.norm_factor = 0));
    assert!(invalid(&|s| s.norm_factor = MAX_NORM_FACTOR + 1));
    let other = Model::random(5, 6, 4, 4, 2);
    let (table, layers) = (other.table(), layers_of(&other.layers));
    assert!(matches!(
        EncoderEmbedStatement {
            embeddings: &table.public,
            ..case.statement()
        }
        .check(),
        Err(Error::Invalid { .. })
    ));
    assert!(matches!(
        EncoderEmbedStatement {
            layers: layers.iter().collect(),
            ..case.statement()
        }
        .check(),
        Err(Error::Invalid { .. })
    ));
    let mut scaled = case.model.clone();
    scaled.input.x = 5;
    let scaled = scaled.table();
    let statement = EncoderEmbedStatement {
        embeddings: &scaled.public,
        ..case.statement()
    };
    assert!(matches!(statement.check(), Err(Error::Invalid { .. })));

    let proof = |tokens: &[u32], salt: Fr| {
        prove_encoder_embed(&case.statement(), &case.table, &text(tokens), &salt)
    };
    assert!(proof(&[1, 4, 2], case.salt).is_ok());
    assert!(matches!(proof(&[], case.salt), Err(Error::Invalid { .. })));
    assert!(matches!(
        proof(&[1; 5], case.salt),
        Err(Error::Invalid { .. })
    ));
    assert!(matches!(proof(&[5], case.salt), Err(Error::Invalid { .. })));
    let unsatisfied = |proof| matches!(proof, Err(Error::Unsatisfied(_)));
    assert!(unsatisfied(proof(&[1, 4, 2], case.salt + Fr::ONE)));
    assert!(unsatisfied(proof(&[1, 4, 3], case.salt)));
    let others = small();
    let mut table = others.model.clone();
    table.embeddings[0][0] += 1;
    let other = prove_encoder_embed(&case.statement(), &table.table(), &case.text, &case.salt);
    assert!(unsatisfied(other));
}

/// The most layers of the largest size.
pub(crate) fn largest() {
    let shape = layers_shape(MAX_WIDTH, MAX_HEADS, feed_forward::MAX_INNER);
    let layer = Integers::random(shape, 5).of_points(MAX_ROW_VARIABLES);
    let embeddings = largest_embeddings(shape.attention.x);
    simulate(&EncoderEmbedStatement {
        queries: vec![PUBLIC; 1],
        embeddings: &embeddings,
        layers: vec![&layer; MAX_LAYERS],
        places: MAX_PLACES,
        norm_factor: MAX_NORM_FACTOR,
    });
}

fn largest_embeddings(x: u32) -> Embeddings {
    let input = InputShape {
        vocabulary: MAX_VOCABULARY,
        width: MAX_WIDTH,
        places: MAX_PLACES,
        x,
        row_variables: MAX_ROW_VARIABLES,
    };
    let point = crate::group::vector_generators(1)[0];
    let words = vec![vec![point; input.rows(MAX_VOCABULARY)]; MAX_WIDTH];
    let positions = vec![vec![point; input.rows(MAX_PLACES * MAX_WIDTH)]];
    let (gain, bias, unused) = ([1; MAX_WIDTH], [1; MAX_WIDTH], [1; MAX_WIDTH]);
    let vectors = Vectors {
        gain: &gain,
        bias: &bias,
        unused: &unused,
    };
    Embeddings::new(input, words, positions, vectors).unwrap()
}
