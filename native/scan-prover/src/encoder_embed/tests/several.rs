//! Several queries in one proof.
use super::*;
use ragaudit_scan_protocol::block::Texts;
use ragaudit_scan_protocol::encoder_embed::statement::MAX_LOOKED_UP;

use crate::attention::inputs::Witness as Attention;
use crate::kit::numbers as numbers_of;
use crate::test_vectors::{
    base64_text, element, fixed, list, negative, negatives, object, small as numbers,
};

const MARKED: &str = "product: marked score";
const NORMALISERS: &str = "constraint: normalisers";

/// A case, with all texts instead of its own, which is the first one.
struct Several {
    case: Case,
    texts: Vec<Text>,
    hashes: Vec<Hashes>,
}

fn several_of(model: Model, places: usize, texts: &[&[u32]]) -> Several {
    let case = case_of(model, places, texts[0]);
    let numbered = |(k, tokens): (usize, &&[u32])| Text {
        tokens: tokens.to_vec(),
        salt: Fr::from(100 + k as u64),
    };
    let mut several = Several {
        texts: texts.iter().enumerate().map(numbered).collect(),
        hashes: Vec::new(),
        case,
    };
    several.hashes = several.hashes(&several.witnesses());
    several
}

/// Two layers, and two texts in four places each.
fn small() -> Several {
    several_of(Model::random(5, 4, 4, 4, 2), 4, &[&[1, 4, 2], &[1, 3]])
}

/// One layer, and two texts in two places each.
fn tiny() -> Several {
    several_of(Model::random(3, 2, 1, 2, 1), 2, &[&[1], &[1, 2]])
}

impl Several {
    fn statement(&self) -> EncoderEmbedStatement<'_> {
        EncoderEmbedStatement {
            queries: self.hashes.clone(),
            ..self.case.statement()
        }
    }

    /// The salt of each vector.
    fn salts(&self) -> Vec<Fr> {
        let numbers = 0..self.texts.len() as u64;
        numbers.map(|k| self.case.salt + Fr::from(k)).collect()
    }

    fn prove(&self) -> Vec<u8> {
        let salts = self.salts();
        let queries: Vec<(&Text, &Fr)> = self.texts.iter().zip(&salts).collect();
        prove_as::<MaliciousProver>(&self.statement(), &self.case.table, &queries).unwrap()
    }

    fn witnesses(&self) -> Vec<Witness> {
        let witness = |text| self.case.witness_of(text);
        self.texts.iter().map(witness).collect()
    }

    /// What records publish about these witnesses.
    fn hashes(&self, witnesses: &[Witness]) -> Vec<Hashes> {
        let pairs = witnesses.iter().zip(self.salts()).zip(10u64..);
        let hashes = |((witness, salt), number): ((&Witness, Fr), u64)| {
            let (hq, _) = self.case.hashes(witness);
            Hashes {
                context: Fr::from(number),
                hq,
                cq: unbounded_hash(salt, &witness.output.vector.components),
            }
        };
        pairs.map(hashes).collect()
    }

    /// Whether a prover without checks gets through with these witnesses, for their own hashes.
    fn forged(&self, witnesses: &[Witness]) -> bool {
        self.forged_for(witnesses, self.hashes(witnesses))
    }

    fn forged_for(&self, witnesses: &[Witness], queries: Vec<Hashes>) -> bool {
        let statement = EncoderEmbedStatement {
            queries,
            ..self.statement()
        };
        let shape = statement.check().unwrap();
        let pairs = witnesses.iter().zip(self.salts());
        let parts = pairs.map(|(witness, salt)| Part::new(witness, &shape, &salt));
        let parts = parts.collect();
        let proof = prove_parts::<MaliciousProver>(&statement, &self.case.table, parts);
        verify(&statement, &proof.unwrap()).is_ok()
    }

    /// Everything after the attention of a layer is computed from it.
    fn follow(&self, witness: &mut Witness, n: usize) {
        let marks = witness.input.marks.clone();
        let weights = &self.case.layers[n].attention;
        let attention = &mut witness.layers.layers[n].attention;
        let r = attention.sums_of_residual(weights);
        attention.norm = NormWitness::new(&weights.norm, &r).unwrap();
        self.case.after(witness, &marks, n, true);
    }
}

#[test]
fn several_embeddings_verify() {
    let random = || Model::random(70, 16, 12, 8, 1);
    for several in [
        small(),
        tiny(),
        several_of(Model::random(9, 6, 5, 4, 2), 4, &[&[8, 0, 8, 8], &[1]]),
        several_of(random(), 8, &[&[1, 69, 64], &[1], &[3; 8], &[1, 2]]),
        several_of(random(), 1, &[&[1], &[2], &[3], &[1]]),
    ] {
        let statement = several.statement();
        let proof = several.prove();
        assert_eq!(verify(&statement, &proof), Ok(()));
        assert!(several.forged(&several.witnesses()));
        let salts = several.salts();
        let queries: Vec<(&Text, &Fr)> = several.texts.iter().zip(&salts).collect();
        let proof = prove_encoder_embeds(&statement, &several.case.table, &queries).unwrap();
        assert_eq!(verify_encoder_embed(&statement, &proof), Ok(()));
    }
}

#[test]
fn a_proof_is_for_its_queries_only() {
    let several = small();
    let changes: Vec<Change<EncoderEmbedStatement>> = vec![
        Box::new(|s| s.queries.swap(0, 1)),
        Box::new(|s| s.queries.truncate(1)),
        Box::new(|s| s.queries = s.queries.repeat(2)),
        Box::new(|s| s.queries[1] = s.queries[0]),
        Box::new(|s| s.queries[0].context += Fr::ONE),
        Box::new(|s| s.queries[1].context += Fr::ONE),
        Box::new(|s| s.queries[1].hq += Fr::ONE),
        Box::new(|s| s.queries[1].cq += Fr::ONE),
        Box::new(|s| {
            let [a, b] = [s.queries[0].cq, s.queries[1].cq];
            (s.queries[0].cq, s.queries[1].cq) = (b, a);
        }),
        Box::new(|s| {
            let [a, b] = [s.queries[0].context, s.queries[1].context];
            (s.queries[0].context, s.queries[1].context) = (b, a);
        }),
        Box::new(|s| s.layers.reverse()),
        Box::new(|s| s.norm_factor += 1),
    ];
    only_for(&several.statement(), &several.prove(), &changes);
}

run_tests!(
    "encoder embed of several",
    context: [queries[1].context],
    small: tiny(),
    of_claims: tiny(),
    every: 293,
    ignored: "a prover skips each single claim in turn (minutes): make test-full",
);

/// The keys, or the values, of a layer are those of the other text.
#[test]
fn a_query_attends_to_its_own_places_only() {
    let several = small();
    for n in 0..2 {
        let weights = &several.case.layers[n].attention;
        let with = |change: &dyn Fn(&mut Attention, &Attention)| {
            let mut witnesses = several.witnesses();
            let other = witnesses[1].layers.layers[n].attention.clone();
            change(&mut witnesses[0].layers.layers[n].attention, &other);
            several.follow(&mut witnesses[0], n);
            witnesses
        };
        let nothing = with(&|_, _| ());
        assert!(several.forged(&nothing));
        let keys = with(&|own, other| {
            let keys = std::mem::replace(&mut own.projections[1], other.projections[1].clone());
            own.score(weights);
            own.projections[1] = keys;
            own.normalise();
            own.weigh(weights);
        });
        caught_by(MARKED, || several.forged(&keys));
        let values = with(&|own, other| {
            let values = std::mem::replace(&mut own.projections[2], other.projections[2].clone());
            own.weigh(weights);
            own.projections[2] = values;
        });
        caught_by(NORMALISERS, || several.forged(&values));
        let queries = with(&|own, other| {
            let queries = std::mem::replace(&mut own.projections[0], other.projections[0].clone());
            own.score(weights);
            own.projections[0] = queries;
            own.normalise();
            own.weigh(weights);
        });
        caught_by(MARKED, || several.forged(&queries));
    }
}

/// A layer uses the places that the other text's marks name.
#[test]
fn marks_are_those_of_the_own_text() {
    let several = small();
    for (text, n) in [(0, 0), (1, 1)] {
        let mut witnesses = several.witnesses();
        let marks = witnesses[1 - text].input.marks.clone();
        let weights = &several.case.layers[n].attention;
        let attention = &mut witnesses[text].layers.layers[n].attention;
        *attention = Attention::new(weights, &marks, &attention.x.clone()).unwrap();
        several.follow(&mut witnesses[text], n);
        assert!(!several.forged(&witnesses));
    }
}

/// The sum of a text has a place of the other text, with or without its own, or is the other text's.
#[test]
fn the_vector_has_places_of_its_own_text_only() {
    let several = small();
    let shape = several.case.statement().check().unwrap();
    let witnesses = several.witnesses();
    let [own, other] = [0, 1].map(|k| witnesses[k].layers.outputs());
    let with = |rows: &[&[i64]]| {
        let (rows, marks) = (rows.concat(), vec![1; rows.len()]);
        let mut forged = several.witnesses();
        let bounds = OutputWitness::new(&shape.output, &marks, &rows).unwrap();
        let size = shape.output.vector(4).bounds;
        let sums = bounds.vector.sums.clone();
        forged[0].output.vector = crate::vector::Witness::new(sums, NORM_FACTOR, &size).unwrap();
        forged
    };
    let row = |rows: &'static [i64], t: usize| &rows[4 * t..][..4];
    let [own, other] = [own, other].map(|rows| &*rows.to_vec().leak());
    assert!(several.forged(&with(&[row(own, 0), row(own, 1), row(own, 2)])));
    for rows in [
        &[row(own, 0), row(own, 1), row(own, 2), row(other, 0)][..],
        &[row(own, 0), row(own, 1), row(other, 2)],
        &[row(other, 0), row(own, 1), row(own, 2)],
        &[row(other, 0), row(other, 1)],
    ] {
        caught_by(USED_ROWS, || several.forged(&with(rows)));
    }
}

/// Hashes of the other query, in each combination, and a query that no text has.
#[test]
fn hashes_are_those_of_the_own_query() {
    let several = small();
    let witnesses = several.witnesses();
    let [a, b] = [several.hashes[0], several.hashes[1]];
    let mixed = |hq: Hashes, cq: Hashes| Hashes { cq: cq.cq, ..hq };
    let unknown = Hashes {
        hq: a.hq + Fr::ONE,
        ..a
    };
    assert!(several.forged_for(&witnesses, vec![a, b]));
    for queries in [
        vec![b, a],
        vec![mixed(a, b), mixed(b, a)],
        vec![a, mixed(b, a)],
        vec![a, a],
        vec![b, b],
        vec![unknown, b],
    ] {
        assert!(!several.forged_for(&witnesses, queries));
    }
    // The second query is the first one again, for the hashes of another text.
    let twice = vec![witnesses[0].clone(), witnesses[0].clone()];
    assert!(several.forged(&twice));
    assert!(!several.forged_for(&twice, several.hashes.clone()));
}

/// A token in a list is that of the other text's place, which has the digits of its own.
#[test]
fn tokens_are_those_of_the_own_text() {
    let several = small();
    let mut witnesses = several.witnesses();
    witnesses[0].input.tokens[1] = witnesses[1].input.tokens[1];
    let last = several.case.model.input.vocabulary as i64 - 1;
    witnesses[0].input.slacks[1] = last - witnesses[0].input.tokens[1];
    caught_by("column claim: digits", || several.forged(&witnesses));
    // The input of a text is that of the other one.
    let mut witnesses = several.witnesses();
    let salt = witnesses[1].input.salt;
    witnesses[1].input = witnesses[0].input.clone();
    witnesses[1].input.salt = salt;
    assert!(!several.forged(&witnesses));
}

/// A used place after an unused one.
#[test]
fn used_places_come_first_in_each_text() {
    let several = small();
    for (text, marks) in [(1, [1, 0, 1, 0]), (0, [1, 1, 0, 1])] {
        let mut witnesses = several.witnesses();
        let input = &mut witnesses[text].input;
        input.marks = marks.to_vec();
        input.tokens = marks.map(|mark| mark * 2).to_vec();
        input.split_tokens(&several.case.model.input);
        let rows = input.rows(&several.case.table);
        input.norm = NormWitness::new(&several.case.table.public.norm, &rows).unwrap();
        let x = input.norm.y.clone();
        let layers: Vec<&Layer> = several.case.layers.iter().collect();
        witnesses[text].layers = LayersWitness::new(&layers, &marks, &x).unwrap();
        several.case.finish(&mut witnesses[text]);
        let input = &witnesses[text].input;
        let used = marks.iter().sum::<i64>() as usize;
        let mut queries = several.hashes(&witnesses);
        queries[text].hq = tokens_hash(input.salt, used, &input.tokens);
        caught_by("product: used places", || {
            several.forged_for(&witnesses, queries.clone())
        });
    }
}

/// One sum of proofs of one query and of several finds the false ones and the malformed ones.
#[test]
fn many_proofs_are_verified_in_one_sum() {
    let several = small();
    let (one, two) = (several.case.prove(), several.prove());
    let of = |queries: usize| match queries {
        1 => several.case.statement(),
        _ => several.statement(),
    };
    let swapped = EncoderEmbedStatement {
        queries: several.hashes.iter().rev().copied().collect(),
        ..several.statement()
    };
    let refused = |items: &[Item]| verify_encoder_embeds(items).unwrap();
    let right = || vec![(of(2), &two[..]), (of(1), &one[..]), (of(2), &two[..])];
    assert_eq!(refused(&right()), []);
    let mut items = right();
    items.extend([(swapped, &two[..]), (of(1), &two[..])]);
    assert_eq!(numbers_of(&refused(&items)), [3, 4]);
    let mut items = right();
    items.insert(1, (of(1), &one[..one.len() - 1]));
    assert_eq!(numbers_of(&refused(&items)), [1]);
    let mut none = of(2);
    none.queries.clear();
    items.push((none, &two[..]));
    assert_eq!(numbers_of(&refused(&items)), [1, 4]);
}

/// The pins have rows of their own length, which another argument opens: a prover of other matrices has no opening.
#[test]
fn the_model_is_that_of_the_statement_for_all_queries() {
    let several = small();
    let mut other = several.case.model.clone();
    other.embeddings[0][4 * 4] += 100;
    let table = other.table();
    let statement = several.statement();
    let shape = statement.check().unwrap();
    let witnesses: Vec<Witness> = several
        .texts
        .iter()
        .map(|text| Witness::new(&statement, &table, text).unwrap())
        .collect();
    let statement = EncoderEmbedStatement {
        queries: several.hashes(&witnesses),
        ..statement
    };
    let part = |(witness, salt): (&Witness, Fr)| Part::new(witness, &shape, &salt);
    let parts = || witnesses.iter().zip(several.salts()).map(part).collect();
    let proof = prove_parts::<MaliciousProver>(&statement, &table, parts()).unwrap();
    assert_eq!(verify(&statement, &proof), Err(Error::Rejected));
    let of_other = EncoderEmbedStatement {
        embeddings: &table.public,
        ..statement
    };
    let proof = prove_parts::<MaliciousProver>(&of_other, &table, parts()).unwrap();
    assert_eq!(verify(&of_other, &proof), Ok(()));
}

/// hq and cq without a known opening.
#[test]
fn proofs_of_several_are_simulated_without_tokens() {
    let several = tiny();
    let real = several.prove();
    let mut public = several.statement();
    for (k, query) in public.queries.iter_mut().enumerate() {
        (query.hq, query.cq) = (Fr::from(31_337 + k as u64), Fr::from(41_337 + k as u64));
    }
    simulated(&public, &real);
}

#[test]
fn proofs_of_several_have_one_shape() {
    let shape = |several: &Several| crate::kit::shape(|| several.prove());
    let base = small();
    for texts in [
        &[&[1][..], &[1]][..],
        &[&[1, 0, 0], &[1, 4, 4, 3]],
        &[&[1, 4, 2], &[1, 4, 2]],
    ] {
        let other = several_of(base.case.model.clone(), 4, texts);
        assert_eq!(shape(&base), shape(&other), "{texts:?}");
    }
}

#[test]
fn numbers_of_queries_out_of_range_are_refused() {
    let several = small();
    let checked = |count: usize| {
        let statement = EncoderEmbedStatement {
            queries: vec![PUBLIC; count],
            ..several.statement()
        };
        statement.check().map(|shape| (shape, statement.texts()))
    };
    for count in [1, 2, 4, 8, MAX_QUERIES] {
        assert!(checked(count).is_ok());
    }
    for count in [0, 3, 5, 12, 17, 2 * MAX_QUERIES] {
        let Err(Error::Invalid { field, actual, .. }) = checked(count) else {
            panic!("{count} queries");
        };
        assert_eq!(
            (&field[..], actual),
            ("queries together", count.to_string())
        );
    }
    // Sixteen queries of the published size fit, and as many of the largest model do not.
    let (shape, _) = checked(1).unwrap();
    let mut published = shape;
    published.layers = layers_shape(384, 12, 1536);
    (published.input.width, published.output.width) = (384, 384);
    assert_eq!(published.max_queries(32, 6), MAX_QUERIES);
    assert_eq!(published.max_queries(64, 6), MAX_QUERIES);
    published.layers = layers_shape(MAX_WIDTH, MAX_HEADS, feed_forward::MAX_INNER);
    (published.input.width, published.output.width) = (MAX_WIDTH, MAX_WIDTH);
    assert_eq!(published.max_queries(MAX_PLACES, MAX_LAYERS), 2);
    let texts = Texts {
        count: 1,
        places: MAX_PLACES,
    };
    assert!(published.looked_up(texts, MAX_LAYERS).iter().sum::<usize>() < MAX_LOOKED_UP);

    let salts = several.salts();
    let prove = |texts: &[&Text]| {
        let queries: Vec<(&Text, &Fr)> = texts.iter().copied().zip(&salts).collect();
        prove_encoder_embeds(&several.statement(), &several.case.table, &queries)
    };
    let [a, b] = [0, 1].map(|k| &several.texts[k]);
    assert!(prove(&[a, b]).is_ok());
    assert!(matches!(prove(&[a]), Err(Error::Invalid { .. })));
    let Err(Error::Unsatisfied(what)) = prove(&[a, a]) else {
        panic!("the text of another query");
    };
    assert!(what.starts_with("query 1: "), "{what}");
}

/// A run with its proof, and a wrong proof, as JSON.
pub(super) fn fields(model: Model, places: usize) -> [String; 2] {
    let several = several_of(model, places, &[&[1, 8, 5], &[1, 3]]);
    let (proof, states) = fixed(|| several.prove());
    verify(&several.statement(), &proof).unwrap();
    let of_query = |k: usize| {
        let hashes = &several.hashes[k];
        let tokens: Vec<i64> = several.texts[k]
            .tokens
            .iter()
            .map(|t| i64::from(*t))
            .collect();
        let fields = [
            ("context", element(&hashes.context)),
            ("tokens", numbers(&tokens)),
            ("salt", element(&several.texts[k].salt)),
            ("hq", element(&hashes.hq)),
            ("vector_salt", element(&several.salts()[k])),
            ("cq", element(&hashes.cq)),
        ];
        object(&fields, "  ")
    };
    let queries = list(&[0, 1], |k: &usize| format!("\n  {}", of_query(*k)));
    let fields = [("queries", queries), ("proof", base64_text(&proof))];
    let run = object(&[&fields[..], &states].concat(), " ");

    let weights = &several.case.layers[0].attention;
    let mut witnesses = several.witnesses();
    let keys = witnesses[1].layers.layers[0].attention.projections[1].clone();
    let own = &mut witnesses[0].layers.layers[0].attention;
    let keys = std::mem::replace(&mut own.projections[1], keys);
    own.score(weights);
    own.projections[1] = keys;
    own.normalise();
    own.weigh(weights);
    several.follow(&mut witnesses[0], 0);
    let queries = several.hashes(&witnesses);
    let statement = EncoderEmbedStatement {
        queries: queries.clone(),
        ..several.statement()
    };
    let prove = || {
        let shape = statement.check().unwrap();
        let pairs = witnesses.iter().zip(several.salts());
        let parts = pairs.map(|(witness, salt)| Part::new(witness, &shape, &salt));
        let table = &several.case.table;
        prove_parts::<MaliciousProver>(&statement, table, parts.collect()).unwrap()
    };
    let accepts = |proof: &[u8]| verify(&statement, proof).is_ok();
    let made = negative("keys of another query", MARKED, &[], prove, accepts);
    let wrong = made.with("cq", &queries[0].cq);
    [run, negatives(&[wrong])]
}

/// Sixteen queries in the most places of a model with as many looked-up rows as a run may have.
pub(crate) fn largest() {
    let shape = layers_shape(MAX_WIDTH, MAX_HEADS, feed_forward::MAX_INNER);
    let layer = Integers::random(shape, 5).of_points(MAX_ROW_VARIABLES);
    let embeddings = largest_embeddings(shape.attention.x);
    let statement = |layers: usize| EncoderEmbedStatement {
        queries: vec![PUBLIC; MAX_QUERIES],
        embeddings: &embeddings,
        layers: vec![&layer; layers],
        places: MAX_PLACES,
        norm_factor: MAX_NORM_FACTOR,
    };
    let layers = (1..=MAX_LAYERS).take_while(|n| statement(*n).check().is_ok());
    simulate(&statement(layers.last().unwrap()));
}
