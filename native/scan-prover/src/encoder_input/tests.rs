use super::*;
use ark_ff::Field;
use ragaudit_scan_protocol::block::*;
use ragaudit_scan_protocol::encoder_input::statement::MAX_VOCABULARY;
use ragaudit_transformer::{Encoder, Scales};

use crate::block::NormWitness;
use crate::channel::Channel;
use crate::fixtures::{cut, int16, tokens_hash};
use crate::group::{vector_generators, Fr, G1Affine};
use crate::kit::{only_for, run_tests, simulate, simulated, verify, Change, Protocol};
use crate::malicious::{
    caught_by, entries, lookup_point, run, Log, MaliciousProver, Without, FALSE, REPEATED,
};
use crate::numbers::power_of_two;
use crate::transcript::{Oracle, Transcript};

pub(crate) mod vectors;

const LOOKUP: &str = "constraint: lookup layer";
const ROOTS: &str = "constraint: roots";
const ROWS_OF_TOKENS: &str = "product: lower digits";
const DIGITS: &str = "column claim: digits";
const HASH: &str = "constraint: hash outputs";

impl Protocol for InputStatement<'_> {
    fn start<O: Oracle>(&self) -> Transcript<O> {
        self.transcript()
    }

    fn rows(&self) -> Result<usize> {
        self.check()?;
        Ok(self.row_variables())
    }

    fn run<'a, C: Channel>(&'a self, session: Session<'a, C>) -> Result<C::Closed> {
        input_protocol(session, self, None)
    }
}

/// The integers of a model.
#[derive(Clone)]
struct Integers {
    shape: Shape,
    /// Word rows, place rows, gain and bias.
    each: [Vec<i16>; 4],
    first: u32,
}

impl Integers {
    fn random(shape: Shape, seed: u64) -> Self {
        let draw = |salt: u64, count: usize, below: i64| int16(seed + salt, count, below);
        let gain = draw(2, shape.width, 1000)
            .iter()
            .map(|v| 3500 + v)
            .collect();
        Self {
            shape,
            each: [
                draw(0, shape.vocabulary * shape.width, 500),
                draw(1, shape.places * shape.width, 300),
                gain,
                draw(3, shape.width, 2000),
            ],
            first: 1,
        }
    }

    fn table(&self) -> Result<Table> {
        let [words, places, gain, bias] = self.each.each_ref().map(|part| &part[..]);
        let parameters = Parameters {
            words,
            places,
            gain,
            bias,
            first: self.first,
        };
        Table::new(self.shape, parameters)
    }
}

fn shape(vocabulary: usize, width: usize, places: usize) -> Shape {
    Shape {
        vocabulary,
        width,
        places,
        x: 6,
        row_variables: 6,
    }
}

struct Case {
    integers: Integers,
    table: Table,
    places: usize,
    text: Text,
    placed: Placed,
    hq: Fr,
}

fn case_of(integers: Integers, places: usize, tokens: &[u32]) -> Case {
    let table = integers.table().unwrap();
    let text = Text {
        tokens: tokens.to_vec(),
        salt: Fr::from(100u8),
    };
    Case {
        placed: place_text(&table, places, &text).unwrap(),
        hq: tokens_hash(text.salt, tokens.len(), tokens),
        integers,
        table,
        places,
        text,
    }
}

fn case(shape: Shape, places: usize, tokens: &[u32]) -> Case {
    case_of(Integers::random(shape, 5), places, tokens)
}

/// Three blocks of components, 21 words, three tokens in four places.
fn small() -> Case {
    case(shape(21, 6, 4), 4, &[1, 20, 7])
}

impl Case {
    fn statement(&self) -> InputStatement<'_> {
        InputStatement {
            context: Fr::from(77u8),
            embeddings: &self.table.public,
            places: self.places,
            hq: self.hq,
            marks: self.placed.used.point,
            outputs: &self.placed.outputs.rows,
        }
    }

    fn prove(&self) -> Vec<u8> {
        let statement = self.statement();
        prove_as::<MaliciousProver>(&statement, &self.table, &self.text, &self.placed).unwrap()
    }

    fn witness(&self) -> Witness {
        Witness::new(&self.table, self.places, &self.text).unwrap()
    }

    /// Commitments to a witness's marks and outputs.
    fn commit(&self, witness: &Witness) -> Placed {
        Placed {
            used: commit_marks_of(&self.table, &witness.marks).unwrap(),
            outputs: Committed::values(ROWS, rows_of(&self.table, self.places), &witness.norm.y)
                .unwrap(),
        }
    }

    /// Whether a prover without checks gets through with this witness, with commitments to its marks and outputs and with the
    /// hash of its tokens.
    fn forged(&self, witness: &Witness) -> bool {
        let number = witness.marks.iter().sum::<i64>() as usize;
        let hq = tokens_hash(witness.salt, number, &witness.tokens);
        self.forged_for(witness, hq)
    }

    fn forged_for(&self, witness: &Witness, hq: Fr) -> bool {
        let entries = Entries::new(witness, &self.table.public.shape);
        self.forged_with(witness, hq, entries)
    }

    fn forged_with(&self, witness: &Witness, hq: Fr, entries: Entries) -> bool {
        let placed = self.commit(witness);
        let statement = InputStatement {
            hq,
            marks: placed.used.point,
            outputs: &placed.outputs.rows,
            ..self.statement()
        };
        let proof =
            prove_entries::<MaliciousProver>(&statement, &self.table, witness, &placed, entries);
        verify(&statement, &proof.unwrap()).is_ok()
    }

    /// r as the digits and marks of a witness give it.
    fn rows_of_digits(&self, witness: &Witness) -> Vec<i64> {
        let shape = &self.table.public.shape;
        let [low, high] = shape.digits().map(|bits| 1usize << bits);
        let width = shape.width;
        let word = |token: usize, j: usize| {
            let word = self.integers.each[0].get(token * width + j);
            word.map_or(0, |w| i64::from(*w))
        };
        let entry = |p: usize, j: usize| {
            let place = i64::from(self.integers.each[1][p * width + j]);
            let of_low = (0..low).map(|x| {
                let of_high =
                    (0..high).map(|y| witness.digits[1][p * high + y] * word(x + low * y, j));
                witness.digits[0][p * low + x] * (of_high.sum::<i64>() + place)
            });
            of_low.sum::<i64>() + (1 - witness.marks[p]) * self.table.public.unused[j]
        };
        let places = (0..self.places).flat_map(|p| (0..width).map(move |j| (p, j)));
        places.map(|(p, j)| entry(p, j)).collect()
    }

    /// The LayerNorm of other rows.
    fn normed(&self, witness: &mut Witness, rows: &[i64]) {
        witness.norm = NormWitness::new(&self.table.public.norm, rows).unwrap();
    }

    fn follow(&self, witness: &mut Witness) {
        let rows = self.rows_of_digits(witness);
        self.normed(witness, &rows);
    }
}

#[test]
fn inputs_verify() {
    let wide = Shape {
        x: 5,
        row_variables: 9,
        ..shape(300, 16, 8)
    };
    for case in [
        small(),
        case(shape(21, 6, 4), 2, &[1, 20]),
        case(shape(3, 2, 1), 1, &[2]),
        case(shape(32, 4, 32), 32, &(0..17).collect::<Vec<u32>>()),
        case(shape(33, 4, 32), 32, &[32; 32]),
        case(wide, 8, &[1, 299, 4, 4, 0]),
        // Tokens with two limbs.
        case(shape(5000, 2, 2), 2, &[4999]),
    ] {
        let statement = case.statement();
        assert_eq!(verify(&statement, &case.prove()), Ok(()));
        assert_eq!(
            case.rows_of_digits(&case.witness()),
            case.witness().rows(&case.table)
        );
        let proof = prove_input(&statement, &case.table, &case.text, &case.placed).unwrap();
        assert_eq!(verify_input(&statement, &proof), Ok(()));
    }
}

/// The encoder that computes the vectors has the same input, and unused places have the row of the first place.
#[test]
fn inputs_are_the_encoders() {
    let integers = Integers::random(shape(21, 6, 4), 9);
    let (width, layers) = (6, 1);
    let mut weights = integers.each.concat();
    let of_layer = 4 * (width * width + width) + 2 * width * 2 + 2 + 5 * width;
    weights.extend(int16(3, of_layer, 500));
    let size = ragaudit_transformer::Shape {
        layers,
        width,
        heads: 2,
        inner: 2,
        vocabulary: 21,
        places: 4,
    };
    let scales = Scales {
        x: 6,
        q: 6,
        v: 6,
        o: 6,
        z: 6,
        g: 6,
    };
    let mut exp = vec![0; 1 << 13];
    exp[0] = 4096;
    let gelu: Vec<i16> = (-2048..2048).map(|z: i16| z.max(0)).collect();
    let encoder = Encoder::new(size, scales, &weights, &exp, &gelu).unwrap();
    let mut seen = std::collections::BTreeMap::new();
    let mut see = |layer: usize, name, values: &[i16]| {
        seen.insert((layer, name), values.to_vec());
    };
    // What follows the input may leave its range.
    let _ = encoder.rows(&[1, 20, 7], &mut see);
    let case = case_of(integers, 4, &[1, 20, 7]);
    let y = &case.witness().norm.y;
    assert_eq!(y[..3 * width], wide(&seen[&(0, "x0")]));
    assert_eq!(y[3 * width..], y[..width]);
}

#[test]
fn a_proof_is_for_its_statement_only() {
    let case = small();
    let proof = case.prove();
    let statement = case.statement();
    // A new field has to be changed below.
    let InputStatement {
        context: _,
        embeddings: _,
        places: _,
        hq: _,
        marks: _,
        outputs: _,
    } = &statement;
    let two = commit_marks_of(&case.table, &[1, 1, 0, 0]).unwrap();
    let swapped: Vec<_> = case.placed.outputs.rows.iter().rev().cloned().collect();
    let mut others = Vec::new();
    for k in 0..4 {
        let mut other = case.integers.clone();
        other.each[k][0] += 1;
        others.push(other.table().unwrap());
    }
    let mut first = case.integers.clone();
    first.first = 2;
    others.push(first.table().unwrap());
    let mut scaled = case.integers.clone();
    scaled.shape.x = 5;
    others.push(scaled.table().unwrap());
    let mut changes: Vec<Change<InputStatement>> = vec![
        Box::new(|s| s.context += Fr::ONE),
        Box::new(|s| s.hq += Fr::ONE),
        Box::new(|s| s.marks = two.point),
        Box::new(|s| s.outputs = &swapped),
    ];
    for table in &others {
        changes.push(Box::new(move |s| s.embeddings = &table.public));
    }
    only_for(&statement, &proof, &changes);
    let two = InputStatement {
        places: 2,
        ..statement
    };
    assert!(verify(&two, &proof).is_err());
}

run_tests!(
    "encoder input",
    small: small(),
    of_claims: small(),
    every: 197,
    ignored: "a prover skips each single claim in turn (a minute): make test-full",
);

/// Commitments without a known opening.
#[test]
fn proofs_are_simulated_without_tokens() {
    let case = small();
    let real = case.prove();
    let points: Vec<Vec<G1Affine>> = case.placed.outputs.rows.iter().rev().cloned().collect();
    let mut public = case.statement();
    public.outputs = &points;
    public.marks = points[0][0];
    public.hq = Fr::from(5u8);
    simulated(&public, &real);
}

#[test]
fn proofs_have_one_shape() {
    let one = small();
    let other = case_of(one.integers.clone(), 4, &[0]);
    let full = case_of(one.integers.clone(), 4, &[4, 4, 4, 4]);
    let shape = |case: &Case| crate::kit::shape(|| case.prove());
    assert_eq!(shape(&one), shape(&other));
    assert_eq!(shape(&one), shape(&full));
}

/// Tokens from the vocabulary's size on have no row, whether or not the digits can say them.
#[test]
fn tokens_are_in_the_vocabulary() {
    let case = small();
    for token in [21, 24, 31] {
        let mut witness = case.witness();
        witness.tokens[1] = token;
        witness.split_tokens(&case.table.public.shape);
        case.follow(&mut witness);
        caught_by(LOOKUP, || case.forged(&witness));
    }
    // The lower limb is what is left below the top one.
    let large = self::case(shape(5000, 2, 2), 2, &[4999]);
    let mut witness = large.witness();
    witness.tokens[0] = 5000;
    witness.split_tokens(&large.table.public.shape);
    large.follow(&mut witness);
    caught_by(LOOKUP, || large.forged(&witness));
    // A number beyond the digits, with those of a token.
    let mut witness = case.witness();
    witness.tokens[1] = 32 + 7;
    witness.slacks[1] = 21 - 1 - 39;
    assert!(!case.forged(&witness));
    witness.slacks[1] = 1;
    assert!(!case.forged(&witness));
}

/// Other tokens than those with the hash, and digits of other tokens than those sent.
#[test]
fn tokens_are_those_of_the_hash() {
    let case = small();
    let shape = case.table.public.shape;
    for place in 0..3 {
        let mut witness = case.witness();
        witness.tokens[place] = 13;
        witness.split_tokens(&shape);
        case.follow(&mut witness);
        assert!(case.forged(&witness));
        caught_by(HASH, || case.forged_for(&witness, case.hq));
        let listed = case.witness();
        (witness.tokens, witness.slacks) = (listed.tokens.clone(), listed.slacks.clone());
        caught_by(DIGITS, || case.forged(&witness));
    }
    // Two tokens in the other order.
    let mut witness = case.witness();
    witness.tokens.swap(1, 2);
    witness.split_tokens(&shape);
    case.follow(&mut witness);
    caught_by(HASH, || case.forged_for(&witness, case.hq));
    // Another salt.
    let mut witness = case.witness();
    witness.salt += Fr::ONE;
    caught_by(HASH, || case.forged_for(&witness, case.hq));
}

/// The last token is left out, and one more is used.
#[test]
fn all_tokens_are_used() {
    let case = small();
    let shape = case.table.public.shape;
    let mut witness = case.witness();
    (witness.tokens[2], witness.marks[2]) = (0, 0);
    witness.split_tokens(&shape);
    case.follow(&mut witness);
    assert!(case.forged(&witness));
    caught_by(HASH, || case.forged_for(&witness, case.hq));
    // The hidden tokens are those of the hash, and only its mark is missing.
    let mut witness = case.witness();
    witness.marks[2] = 0;
    witness.split_tokens(&shape);
    case.follow(&mut witness);
    assert!(!case.forged_for(&witness, case.hq));
    let mut witness = case.witness();
    witness.marks[3] = 1;
    witness.split_tokens(&shape);
    case.follow(&mut witness);
    assert!(case.forged(&witness));
    caught_by(HASH, || case.forged_for(&witness, case.hq));
}

#[test]
fn used_places_come_first() {
    let case = small();
    let shape = case.table.public.shape;
    for marks in [[1, 0, 1, 0], [1, 0, 0, 1], [1, 1, 0, 1]] {
        let mut witness = case.witness();
        witness.marks = marks.to_vec();
        let pairs = witness.tokens.iter_mut().zip(marks);
        pairs.for_each(|(token, mark)| *token *= mark);
        witness.split_tokens(&shape);
        case.follow(&mut witness);
        caught_by("product: used places", || case.forged(&witness));
    }
    let mut witness = case.witness();
    witness.marks.fill(0);
    witness.tokens.fill(0);
    witness.split_tokens(&shape);
    case.follow(&mut witness);
    caught_by("constraint: first place", || case.forged(&witness));
}

/// A last mark of 2 with two digits, which satisfies all claims but the range of marks.
#[test]
fn marks_are_bits() {
    let case = small();
    let mut witness = case.witness();
    witness.marks[2] = 2;
    for digits in &mut witness.digits {
        let bits = digits.len() / 4;
        digits[2 * bits..][..bits].fill(0);
        digits[2 * bits..][..2].fill(1);
    }
    // 0 + 1 + 8 (0 + 1).
    witness.tokens[2] = 9;
    witness.slacks[2] = 11;
    case.follow(&mut witness);
    caught_by(LOOKUP, || case.forged(&witness));
}

/// Rows of digits with other numbers of ones than the mark, and with other numbers than 0 and 1.
#[test]
fn digits_are_one_bit_of_each_used_place() {
    let case = small();
    let changed = |change: &dyn Fn(&mut Witness)| {
        let mut witness = case.witness();
        change(&mut witness);
        case.follow(&mut witness);
        witness
    };
    // Two digits with the sum of the token's, and none; in a used place and in the unused one.
    let two = changed(&|w| {
        w.digits[0][16..24].fill(0);
        w.digits[0][16 + 3] = 1;
        w.digits[0][16 + 4] = 1;
    });
    let none = changed(&|w| w.digits[1][8..12].fill(0));
    let unused = changed(&|w| (w.digits[0][24], w.digits[1][12]) = (1, 1));
    let only_low = changed(&|w| w.digits[0][24] = 1);
    for witness in [two, none, unused, only_low] {
        caught_by(DIGITS, || case.forged(&witness));
    }
    // 7 = 2 * 6 - 5.
    let weighed = changed(&|w| {
        w.digits[0][16..24].fill(0);
        (w.digits[0][16 + 6], w.digits[0][16 + 5]) = (2, -1);
    });
    caught_by(LOOKUP, || case.forged(&weighed));
}

/// The rows of other places, of other tokens, of other models, and of unused places with other rows.
#[test]
fn rows_are_the_tables() {
    let case = small();
    let right = case.rows_of_digits(&case.witness());
    let width = 6;
    let with_rows = |rows: &[i64]| {
        let mut witness = case.witness();
        case.normed(&mut witness, rows);
        witness
    };
    assert!(case.forged(&with_rows(&right)));
    let mut others = Vec::new();
    for at in entries(right.len()) {
        let mut rows = right.clone();
        rows[at] += 1;
        others.push(rows);
    }
    // Place rows of another order.
    let mut moved = case.integers.clone();
    moved.each[1].rotate_left(width);
    // Word rows and place rows of another model.
    let mut words = case.integers.clone();
    words.each[0][20 * width + 2] -= 1;
    let mut places = case.integers.clone();
    places.each[1][width] += 1;
    for other in [&moved, &words, &places] {
        others.push(case.witness().rows(&other.table().unwrap()));
    }
    // The unused place has a token, its own place row, or no row.
    let mut token = right.clone();
    let (used, unused) = token.split_at_mut(3 * width);
    unused.copy_from_slice(&used[width..2 * width]);
    others.push(token);
    let mut own = right.clone();
    for (j, r) in own[3 * width..].iter_mut().enumerate() {
        *r = i64::from(case.integers.each[0][width + j])
            + i64::from(case.integers.each[1][3 * width + j]);
    }
    others.push(own);
    // An omitted word row, and an omitted place row.
    for part in 0..2 {
        let mut omitted = case.integers.clone();
        omitted.each[part]
            .iter_mut()
            .step_by(2)
            .for_each(|v| *v = 0);
        others.push(case.witness().rows(&omitted.table().unwrap()));
    }
    for (n, rows) in others.iter().enumerate() {
        assert!(*rows != right, "{n}");
        let witness = with_rows(rows);
        if n % 5 == 0 || n >= right.len() {
            caught_by(ROWS_OF_TOKENS, || case.forged(&witness));
        }
        assert!(!case.forged(&witness), "{n}");
    }
}

/// A prover that opens the columns of another model, and computes everything else from it.
#[test]
fn tables_are_the_pinned_ones() {
    let case = small();
    for part in 0..2 {
        let mut integers = case.integers.clone();
        // The word row of the token 20, and the second place row.
        integers.each[part][[20, 1][part] * 6] += 1;
        let other = case_of(integers, 4, &[1, 20, 7]);
        let statement = InputStatement {
            embeddings: &case.table.public,
            ..other.statement()
        };
        let table = Table {
            public: case.integers.table().unwrap().public,
            openings: other.table.openings.clone(),
        };
        let witness = other.witness();
        let entries = Entries::new(&witness, &case.table.public.shape);
        let proof =
            prove_entries::<MaliciousProver>(&statement, &table, &witness, &other.placed, entries);
        assert!(verify(&statement, &proof.unwrap()).is_err());
    }
    // The row of unused places is that of the statement.
    let mut integers = case.integers.clone();
    integers.first = 2;
    let witness = case_of(integers, 4, &[1, 20, 7]).witness();
    caught_by(ROWS_OF_TOKENS, || case.forged(&witness));
}

#[test]
fn gain_and_bias_are_the_statements() {
    let case = small();
    for part in [2, 3] {
        let mut integers = case.integers.clone();
        integers.each[part][4] += 1;
        let witness = case_of(integers, 4, &[1, 20, 7]).witness();
        caught_by(ROOTS, || case.forged(&witness));
    }
    let mut integers = case.integers.clone();
    integers.shape.x = 5;
    let other = case_of(integers, 4, &[1, 20, 7]).witness();
    let mut witness = case.witness();
    witness.norm.y = other.norm.y.clone();
    witness.norm.divide(&case.table.public.norm);
    assert!(!case.forged(&witness));
}

/// Every quotient and every remainder.
#[test]
fn quotients_are_the_rounded_ones() {
    let case = small();
    let norm = &case.table.public.norm;
    for step in [-1, 1] {
        for at in entries(case.witness().norm.y.len()) {
            let mut witness = case.witness();
            witness.norm.y[at] += step;
            witness.norm.divide(norm);
            let mut masked = witness.clone();
            cut(&mut masked.norm.rests, norm.shift);
            if at == 0 {
                caught_by(LOOKUP, || case.forged(&witness));
                caught_by(ROOTS, || case.forged(&masked));
            }
            assert!(!case.forged(&witness) && !case.forged(&masked), "{at}");
        }
    }
    for k in 0..limb_widths(norm.shift).len() {
        let mut witness = case.witness();
        witness.norm.rests[7] ^= 1 << (LIMB_BITS * k);
        caught_by(ROOTS, || case.forged(&witness));
    }
    // Another root, with slacks that belong to it, and with slacks in their ranges.
    for step in [-1, 1] {
        let mut witness = case.witness();
        let target = crate::block::target(6);
        let root = (witness.norm.normalisers[1][0] + step) as u128;
        let variance = witness.norm.variances[1];
        witness.norm.normalisers[1] = crate::block::slacks(target, root, variance);
        witness.norm.normalise(norm);
        witness.norm.divide(norm);
        caught_by(LOOKUP, || case.forged(&witness));
        let slacks = witness.norm.normalisers[1].iter_mut();
        slacks.for_each(|slack| *slack = (*slack).max(0));
        caught_by(ROOTS, || case.forged(&witness));
    }
}

/// Remainders and digits beyond their ranges in a lower limb, and counts that are short by one.
#[test]
fn tables_count_all_lookups() {
    let case = small();
    let witness = case.witness();
    let entries = Entries::new(&witness, &case.table.public.shape);
    let changed = |change: &dyn Fn(&mut Entries)| {
        let mut entries = entries.clone();
        change(&mut entries);
        case.forged_with(&witness, case.hq, entries)
    };
    assert!(changed(&|_| ()));
    let less = |counts: &mut Vec<i64>| *counts.iter_mut().find(|n| **n > 0).unwrap() -= 1;
    caught_by(LOOKUP, || {
        changed(&|e| less(&mut e.multiplicities.of_activations))
    });
    for width in 0..entries.multiplicities.of_limbs.len() {
        caught_by(LOOKUP, || {
            changed(&|e| less(&mut e.multiplicities.of_limbs[width]))
        });
    }
}

/// A value of x beyond 12 bits.
#[test]
fn activations_are_in_range() {
    let mut integers = Integers::random(shape(21, 6, 4), 5);
    integers.shape.x = 9;
    integers.each[3][0] = 30_000;
    let table = integers.table().unwrap();
    let text = small().text;
    let refused = place_text(&table, 4, &text);
    assert!(matches!(refused, Err(Error::Unsatisfied(_))));
    let mut milder = integers.clone();
    milder.each[3][0] = 0;
    let mut case = case_of(milder, 4, &[1, 20, 7]);
    let mut witness = case.witness();
    (case.integers, case.table) = (integers, table);
    let norm = &case.table.public.norm;
    witness.norm.normalise(norm);
    witness.norm.divide(norm);
    assert!(witness.norm.y.iter().any(|y| *y >= ACTIVATION_LIMIT));
    caught_by(LOOKUP, || case.forged(&witness));
}

#[test]
fn parameters_out_of_range_are_refused() {
    let case = small();
    let refused = |change: &dyn Fn(&mut InputStatement)| {
        let mut statement = case.statement();
        change(&mut statement);
        matches!(verify(&statement, &[]), Err(Error::Invalid { .. }))
    };
    assert!(!refused(&|_| ()));
    assert!(refused(&|s| s.places = 3));
    assert!(refused(&|s| s.places = 0));
    assert!(refused(&|s| s.places = 8));
    assert!(refused(&|s| s.outputs = &[]));
    let refused = |change: &dyn Fn(&mut Integers)| {
        let mut integers = case.integers.clone();
        change(&mut integers);
        matches!(integers.table(), Err(Error::Invalid { .. }))
    };
    assert!(!refused(&|_| ()));
    assert!(refused(&|i| i.shape.vocabulary = 2));
    assert!(refused(&|i| i.shape.vocabulary = MAX_VOCABULARY + 1));
    assert!(refused(&|i| i.shape.width = 1));
    assert!(refused(&|i| i.shape.width = MAX_WIDTH + 1));
    assert!(refused(&|i| i.shape.places = 3));
    assert!(refused(&|i| i.shape.places = 2 * MAX_PLACES));
    assert!(refused(&|i| i.shape.x = 12));
    assert!(refused(&|i| i.shape.row_variables = 0));
    assert!(refused(&|i| i.shape.row_variables = MAX_ROW_VARIABLES + 1));
    assert!(refused(&|i| i.first = 21));
    for k in 0..4 {
        assert!(refused(&|i| {
            i.each[k].pop();
        }));
    }
    let text = |tokens: &[u32]| Text {
        tokens: tokens.to_vec(),
        salt: Fr::ONE,
    };
    for tokens in [&[][..], &[1; 5], &[21]] {
        let placed = place_text(&case.table, 4, &text(tokens));
        assert!(matches!(placed, Err(Error::Invalid { .. })), "{tokens:?}");
    }
    let other = case_of(case.integers.clone(), 4, &[1, 20, 8]);
    let statement = case.statement();
    for (text, placed) in [(&other.text, &case.placed), (&case.text, &other.placed)] {
        let proof = prove_input(&statement, &case.table, text, placed);
        assert!(matches!(proof, Err(Error::Unsatisfied(_))));
    }
    let mut integers = case.integers.clone();
    integers.each[2][0] += 1;
    let [words, places, gain, bias] = integers.each.each_ref().map(|part| &part[..]);
    let parameters = Parameters {
        words,
        places,
        gain,
        bias,
        first: 1,
    };
    let public = case.integers.table().unwrap().public;
    assert!(Table::opened(public, parameters).is_err());
}

/// The largest input.
pub(crate) fn largest() {
    let shape = Shape {
        row_variables: MAX_ROW_VARIABLES,
        ..shape(MAX_VOCABULARY, MAX_WIDTH, MAX_PLACES)
    };
    let point = vector_generators(1)[0];
    let columns = |count: usize, entries: usize| vec![vec![point; shape.rows(entries)]; count];
    let entries = MAX_PLACES * shape.width_blocks().entries();
    let vectors = Vectors {
        gain: &[1; MAX_WIDTH],
        bias: &[1; MAX_WIDTH],
        unused: &[1; MAX_WIDTH],
    };
    let blocks = shape.width_blocks().blocks;
    let words = columns(MAX_WIDTH, MAX_VOCABULARY);
    let embeddings = Embeddings::new(shape, words, columns(blocks, entries), vectors).unwrap();
    let outputs = columns(blocks, entries);
    simulate(&InputStatement {
        context: Fr::ONE,
        embeddings: &embeddings,
        places: MAX_PLACES,
        hq: Fr::ONE,
        marks: point,
        outputs: &outputs,
    });
}

/// The published size with random rows.
#[test]
#[ignore = "commits to 30,522 rows of 384 components and proves an input of 32 places (seconds): make test-full"]
fn an_input_of_the_published_size() {
    let shape = Shape {
        row_variables: 12,
        ..shape(30_522, 384, 64)
    };
    let case = case(
        shape,
        32,
        &(0..15).map(|n| 2000 * n + 101).collect::<Vec<u32>>(),
    );
    let statement = case.statement();
    let proof = prove_input(&statement, &case.table, &case.text, &case.placed).unwrap();
    assert_eq!(verify_input(&statement, &proof), Ok(()));
    assert!(proof.len() < 16_384);
    let (_, log) = run(Without::Nothing, || verify(&statement, &proof));
    assert!(log
        .claims
        .iter()
        .any(|claim| claim == "column claim: upper digits"));
}

/// A prover's run with repeated nonces: its log, and the values of the first claim of a name.
fn logged(prove: &dyn Fn() -> Vec<u8>, claim: &str) -> (Log, Vec<Fr>) {
    let (_, log) = run(Without::Nothing, prove);
    let number = log.claims.iter().position(|name| name == claim).unwrap();
    let values = log.about[number].values.clone();
    (log, values)
}

/// The number of the last point of a label.
fn last_of(log: &Log, label: &str) -> usize {
    log.points.iter().rposition(|point| point == label).unwrap()
}

/// Values at the ends of both sumchecks over a false r, of which the products are true: a column claim refuses each.
#[test]
fn values_at_the_ends_are_the_columns() {
    let case = small();
    let mut rows = case.rows_of_digits(&case.witness());
    rows[0] += 1;
    let mut witness = case.witness();
    case.normed(&mut witness, &rows);
    let placed = case.commit(&witness);
    let statement = InputStatement {
        marks: placed.used.point,
        outputs: &placed.outputs.rows,
        ..case.statement()
    };
    let prove = || {
        let entries = Entries::new(&witness, &case.table.public.shape);
        let table = &case.table;
        let proof = prove_entries::<MaliciousProver>(&statement, table, &witness, &placed, entries);
        proof.unwrap()
    };
    let passes = || verify(&statement, &prove()).is_ok();
    let quotient = |values: &[Fr], by: usize| values[2] * values[by].inverse().unwrap();
    REPEATED.set(true);
    let (log, values) = logged(&prove, "product: lower digits");
    let end = last_of(&log, "lower digits");
    FALSE.set(vec![(end, 0, quotient(&values, 1) - values[0])]);
    caught_by("column claim: lower digits", passes);
    let row = (end, 1, quotient(&values, 0) - values[1]);
    let of_place = last_of(&log, "place rows");
    FALSE.set(vec![row, (of_place, 0, row.2)]);
    caught_by("column claim: place rows", passes);
    FALSE.set(vec![row]);
    let (log, values) = logged(&prove, "product: upper digits");
    let end = last_of(&log, "upper digits");
    for place in 0..2 {
        let more = quotient(&values, 1 - place) - values[place];
        FALSE.set(vec![row, (end, place, more)]);
        caught_by("column claim: upper digits", passes);
    }
    FALSE.set(Vec::new());
    REPEATED.set(false);
}

/// The hidden marks are those of the commitment, and the value of the division's columns is theirs.
#[test]
fn sent_values_are_the_columns() {
    let case = small();
    let right = case.witness();
    let mut more = right.clone();
    more.norm.y[0] += 1;
    let prove_with = |witness: &Witness, placed: &Placed| {
        let statement = InputStatement {
            marks: placed.used.point,
            outputs: &placed.outputs.rows,
            ..case.statement()
        };
        let entries = Entries::new(witness, &case.table.public.shape);
        let proof =
            prove_entries::<MaliciousProver>(&statement, &case.table, witness, placed, entries);
        proof.unwrap()
    };
    let passes = |witness: &Witness, placed: &Placed| {
        let statement = InputStatement {
            marks: placed.used.point,
            outputs: &placed.outputs.rows,
            ..case.statement()
        };
        verify(&statement, &prove_with(witness, placed)).is_ok()
    };
    REPEATED.set(true);
    // A fourth mark in the column, and 0 in its place in the message.
    let mut placed = case.commit(&right);
    placed.used = commit_marks_of(&case.table, &[1; 4]).unwrap();
    let (log, _) = logged(&|| prove_with(&right, &placed), "column claim: marks");
    FALSE.set(vec![(last_of(&log, "marks"), 3, -Fr::ONE)]);
    caught_by("column claim: marks", || passes(&right, &placed));
    FALSE.set(Vec::new());
    // A false quotient with the true one's remainder.
    let placed = case.commit(&more);
    let (log, _) = logged(&|| prove_with(&more, &placed), "column claim: norm");
    let weight = crate::mle::eq_at(&lookup_point(&log)[..3], 0);
    let shift = power_of_two(case.table.public.shape.norm_shift());
    FALSE.set(vec![(last_of(&log, "norm"), 0, -shift * weight)]);
    caught_by("column claim: norm", || passes(&more, &placed));
    FALSE.set(Vec::new());
    REPEATED.set(false);
}
