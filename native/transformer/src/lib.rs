//! The integer encoder of `docs/minilm-int.md`: a BERT encoder whose results are equal on all machines.
//!
//! `rag_audit.retrieval.embedders.integer_bert.reference` is the definition; every value here agrees with it bit for bit.
//!
//! ```
//! use ragaudit_transformer::{Encoder, Scales, Shape};
//! let shape = Shape { layers: 1, width: 2, heads: 1, inner: 2, vocabulary: 1, places: 1 };
//! let scales = Scales { x: 6, q: 7, v: 8, o: 8, z: 6, g: 6 };
//! assert!(Encoder::new(shape, scales, &[], &[], &[]).is_err()); // there are no weights
//! ```
mod dense;

use dense::{Panels, Rows};
use ragaudit_relation::Error;
use rayon::prelude::*;

const WEIGHT_BITS: u32 = 12;
const ACTIVATION_LIMIT: i64 = 1 << 11;
const DISTANCES: usize = 1 << 13;
const DISTANCE_BITS: u32 = 5;
const EXP_BITS: u32 = 12;
const SCORE_BITS: u32 = 14;
const ROOT_BITS: u32 = 42;
const SUM_BITS: u32 = 30;
const ACCUMULATOR_LIMIT: i64 = 1 << 31;
const MAX_SCALE: u32 = 11;

const MAX_LAYERS: usize = 48;
const MAX_WIDTH: usize = 1 << 10;
const MAX_HEAD: usize = 1 << 8;
const MAX_INNER: usize = 1 << 12;
const MAX_PLACES: usize = 1 << 9;
const MAX_VOCABULARY: usize = 1 << 18;
/// Keys whose weighted values are summed in 32 bits.
const KEYS: usize = 128;

// A LayerNorm's accumulator has 63 bits: |d| R <= sqrt(width) 2^K because |d| <= sqrt(V), a gain has 15 bits, and a bias
// is below 2^(15 + K).
const _: () = assert!(
    (1u128 << 5) * (1 << (ROOT_BITS + 15))
        + (1 << (15 + ROOT_BITS))
        + (1 << (ROOT_BITS + WEIGHT_BITS))
        < 1 << 63
        && MAX_WIDTH == 1 << (2 * 5)
);
// A deviation has 42 bits and a sign, and the sum of 2^10 squares of it fits in 128 bits.
const _: () = assert!((MAX_WIDTH as u128) << 31 <= 1 << 41);
// A score fits in 32 bits, and in 63 bits once it is multiplied by its factor.
const _: () = assert!(MAX_HEAD as i64 * ACTIVATION_LIMIT * ACTIVATION_LIMIT <= 1 << 30);
const _: () = assert!((1u128 << 30) << (SCORE_BITS + DISTANCE_BITS) < 1 << 63);
// The weighted values of a block of keys fit in 32 bits, and those of all keys times the reciprocal in 63 bits.
const _: () = assert!((KEYS as i64) << EXP_BITS <= ACCUMULATOR_LIMIT / 2 / ACTIVATION_LIMIT);
const _: () = assert!((ACTIVATION_LIMIT as u128) << SUM_BITS < 1 << 62);
const _: () = assert!(MAX_PLACES << EXP_BITS <= 1 << SUM_BITS);
// Sums of a text's rows fit in 32 bits.
const _: () = assert!(MAX_PLACES as i64 * ACTIVATION_LIMIT < 1 << 31);

/// The size of an encoder.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub layers: usize,
    pub width: usize,
    pub heads: usize,
    pub inner: usize,
    pub vocabulary: usize,
    pub places: usize,
}

/// Fraction bits of each kind of activation.
#[derive(Clone, Copy, Debug)]
pub struct Scales {
    pub x: u32,
    pub q: u32,
    pub v: u32,
    pub o: u32,
    pub z: u32,
    pub g: u32,
}

/// A value of a text that is outside its range: the layer, the name of the value, and the first such value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfRange {
    pub layer: usize,
    pub part: &'static str,
    pub value: i64,
}

/// How the rows of a text's tokens become one vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pooling {
    /// The sum of all rows, which has the direction of their mean.
    Sum,
    /// The first token's row.
    First,
}

struct Dense {
    panels: Panels,
    bias: Vec<i32>,
}

struct Norm {
    gain: Vec<i64>,
    bias: Vec<i64>,
}

struct Layer {
    q: Dense,
    k: Dense,
    v: Dense,
    a: Dense,
    norm1: Norm,
    z: Dense,
    f: Dense,
    norm2: Norm,
}

/// Values of the activations' range, row by row.
type Activations = Vec<i16>;
/// Receives layer, name and values of each named value.
type See<'a> = dyn FnMut(usize, &'static str, &[i16]) + 'a;

/// One model.
pub struct Encoder {
    shape: Shape,
    scales: Scales,
    score_factor: i64,
    word: Vec<i16>,
    place: Vec<i16>,
    norm0: Norm,
    layers: Vec<Layer>,
    exp: Vec<i16>,
    gelu: Vec<i16>,
}

/// Takes the integer weights apart, in the order in which they are stored.
struct Reader<'a> {
    rest: &'a [i16],
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> &'a [i16] {
        let (taken, rest) = self.rest.split_at(count);
        self.rest = rest;
        taken
    }

    fn norm(&mut self, width: usize) -> Norm {
        let mut next = || self.take(width).iter().map(|&v| i64::from(v)).collect();
        Norm {
            gain: next(),
            bias: next(),
        }
    }

    /// A dense layer whose inputs have `bits` fraction bits. The magnitude of all its sums, with `residual` added, has to
    /// be below 2^31 for all inputs in the activations' range.
    fn dense(
        &mut self,
        name: String,
        (rows, columns): (usize, usize),
        bits: u32,
        residual: i64,
    ) -> Result<Dense, Error> {
        let entries = self.take(rows * columns);
        let bias = self.take(columns);
        let mut largest: Vec<i64> = bias
            .iter()
            .map(|&b| (i64::from(b).abs() << bits) + residual)
            .collect();
        for row in entries.chunks_exact(columns) {
            for (sum, &entry) in largest.iter_mut().zip(row) {
                *sum += i64::from(entry).abs() * ACTIVATION_LIMIT;
            }
        }
        match largest.into_iter().max() {
            Some(most) if most >= ACCUMULATOR_LIMIT => Err(Error::invalid(
                name,
                format!("sums below {ACCUMULATOR_LIMIT}"),
                most.to_string(),
            )),
            _ => Ok(Dense {
                panels: Panels::new(rows, columns, |i, j| entries[i * columns + j]),
                bias: bias.iter().map(|&b| i32::from(b) << bits).collect(),
            }),
        }
    }
}

fn within(name: &str, value: usize, most: usize) -> Result<(), Error> {
    if (1..=most).contains(&value) {
        return Ok(());
    }
    Err(Error::invalid(
        name,
        format!("1..{most}"),
        value.to_string(),
    ))
}

fn of_length(name: &str, actual: usize, expected: usize) -> Result<(), Error> {
    if actual == expected {
        return Ok(());
    }
    Err(Error::invalid(
        name,
        format!("{expected} integers"),
        actual.to_string(),
    ))
}

impl Encoder {
    /// The encoder with these integer weights (docs/minilm-int.md, "Order of the weights") and tables.
    pub fn new(
        shape: Shape,
        scales: Scales,
        weights: &[i16],
        exp: &[i16],
        gelu: &[i16],
    ) -> Result<Self, Error> {
        let Shape {
            layers,
            width,
            heads,
            inner,
            vocabulary,
            places,
        } = shape;
        within("layers", layers, MAX_LAYERS)?;
        within("width", width, MAX_WIDTH)?;
        within("heads", heads, width)?;
        within("inner", inner, MAX_INNER)?;
        within("vocabulary", vocabulary, MAX_VOCABULARY)?;
        within("places", places, MAX_PLACES)?;
        if width % heads != 0 {
            let expected = format!("a divisor of {width}");
            return Err(Error::invalid("heads", expected, heads.to_string()));
        }
        within("width of a head", width / heads, MAX_HEAD)?;
        let Scales { x, q, v, o, z, g } = scales;
        for bits in [x, q, v, o, z, g] {
            if bits > MAX_SCALE {
                let expected = format!("0..{MAX_SCALE}");
                return Err(Error::invalid("scales", expected, bits.to_string()));
            }
        }
        let of_layer = 4 * (width * width + width) + 2 * width * inner + inner + 5 * width;
        let count = (vocabulary + places + 2) * width + layers * of_layer;
        of_length("weights", weights.len(), count)?;
        of_length("exp", exp.len(), DISTANCES)?;
        of_length("gelu", gelu.len(), 2 * ACTIVATION_LIMIT as usize)?;
        if exp[0] != 1 << EXP_BITS || exp.iter().any(|e| !(0..=exp[0]).contains(e)) {
            let expected = format!("0..{}, the greatest one first", 1 << EXP_BITS);
            return Err(Error::invalid("exp", expected, "other entries"));
        }
        if gelu.iter().any(|&g| !in_range(i64::from(g))) {
            return Err(Error::invalid("gelu", "-2048..2047", "other entries"));
        }
        let mut from = Reader { rest: weights };
        let word = from.take(vocabulary * width).to_vec();
        let place = from.take(places * width).to_vec();
        let norm0 = from.norm(width);
        let square = (width, width);
        let residual = |bits: u32| ACTIVATION_LIMIT << (WEIGHT_BITS + bits - x);
        let layer = |number: usize| {
            let name = |part: &str| format!("layer {number}, {part}");
            Ok(Layer {
                q: from.dense(name("q"), square, x, 0)?,
                k: from.dense(name("k"), square, x, 0)?,
                v: from.dense(name("v"), square, x, 0)?,
                a: from.dense(name("a"), square, o, residual(o))?,
                norm1: from.norm(width),
                z: from.dense(name("z"), (width, inner), x, 0)?,
                f: from.dense(name("f"), (inner, width), g, residual(g))?,
                norm2: from.norm(width),
            })
        };
        let layers = (1..=layers).map(layer).collect::<Result<_, Error>>()?;
        let doubled = (4u128 << (2 * (SCORE_BITS + DISTANCE_BITS))) / (width / heads) as u128;
        Ok(Self {
            shape,
            scales,
            score_factor: (doubled.isqrt() as i64 + 1) >> 1,
            word,
            place,
            norm0,
            layers,
            exp: exp.to_vec(),
            gelu: gelu.to_vec(),
        })
    }

    /// Checks that a text has 1 to `places` tokens, all within the vocabulary.
    pub fn check(&self, tokens: &[u32]) -> Result<(), Error> {
        within("tokens", tokens.len(), self.shape.places)?;
        match tokens
            .iter()
            .find(|&&t| t as usize >= self.shape.vocabulary)
        {
            Some(token) => Err(Error::invalid(
                "tokens",
                format!("0..{}", self.shape.vocabulary - 1),
                token.to_string(),
            )),
            None => Ok(()),
        }
    }

    /// The vectors of texts, each with `width` components. The texts are computed side by side.
    pub fn embed(
        &self,
        texts: &[Vec<u32>],
        pooling: Pooling,
    ) -> Result<Vec<Result<Vec<i32>, OutOfRange>>, Error> {
        texts.iter().try_for_each(|tokens| self.check(tokens))?;
        let one = |tokens: &Vec<u32>| {
            let rows = self.rows(tokens, &mut |_, _, _| ())?;
            let mut sums = vec![0; self.shape.width];
            let taken = match pooling {
                Pooling::Sum => &rows[..],
                Pooling::First => &rows[..self.shape.width],
            };
            for row in taken.chunks_exact(self.shape.width) {
                for (sum, &value) in sums.iter_mut().zip(row) {
                    *sum += i32::from(value);
                }
            }
            Ok(sums)
        };
        Ok(texts.par_iter().map(one).collect())
    }

    /// The last layer's rows of one text, which passed `check`. `see` receives each named value.
    pub fn rows(&self, tokens: &[u32], see: &mut See) -> Result<Activations, OutOfRange> {
        let width = self.shape.width;
        let mut r = Vec::with_capacity(tokens.len() * width);
        for (&token, place) in tokens.iter().zip(self.place.chunks_exact(width)) {
            let word = &self.word[token as usize * width..][..width];
            r.extend(
                word.iter()
                    .zip(place)
                    .map(|(&w, &p)| i32::from(w) + i32::from(p)),
            );
        }
        let mut x = self.norm(0, "x0", &r, &self.norm0)?;
        see(0, "x0", &x);
        for (number, layer) in (1..).zip(&self.layers) {
            x = self.layer(number, layer, &x, see)?;
        }
        Ok(x)
    }

    fn layer(
        &self,
        number: usize,
        layer: &Layer,
        x: &[i16],
        see: &mut See,
    ) -> Result<Activations, OutOfRange> {
        let (width, inner) = (self.shape.width, self.shape.inner);
        let Scales { x: x_bits, .. } = self.scales;
        let rows = Rows::new(width, x.chunks_exact(width));
        let mut projected = |name, dense: &Dense, bits: u32| {
            let y = shifted(
                number,
                name,
                &product(&rows, dense),
                x_bits + WEIGHT_BITS - bits,
            )?;
            see(number, name, &y);
            Ok(y)
        };
        let q = projected("q", &layer.q, self.scales.q)?;
        let k = projected("k", &layer.k, self.scales.q)?;
        let v = projected("v", &layer.v, self.scales.v)?;
        let o = self.attention(number, &q, &k, &v)?;
        see(number, "o", &o);
        let r = self.residual(
            x,
            &Rows::new(width, o.chunks_exact(width)),
            &layer.a,
            self.scales.o,
        );
        let x = self.norm(number, "x1", &r, &layer.norm1)?;
        see(number, "x1", &x);
        let rows = Rows::new(width, x.chunks_exact(width));
        let z_shift = x_bits + WEIGHT_BITS - self.scales.z;
        let z = shifted(number, "z", &product(&rows, &layer.z), z_shift)?;
        see(number, "z", &z);
        let place = |z: i16| (i64::from(z) + ACTIVATION_LIMIT) as usize;
        let g: Activations = z.iter().map(|&z| self.gelu[place(z)]).collect();
        let r = self.residual(
            &x,
            &Rows::new(inner, g.chunks_exact(inner)),
            &layer.f,
            self.scales.g,
        );
        let x = self.norm(number, "x2", &r, &layer.norm2)?;
        see(number, "x2", &x);
        Ok(x)
    }

    /// x + y W + b, where y has `bits` fraction bits.
    fn residual(&self, x: &[i16], y: &Rows, dense: &Dense, bits: u32) -> Vec<i32> {
        let shift = WEIGHT_BITS + bits - self.scales.x;
        let mut r = product(y, dense);
        for (r, &x) in r.iter_mut().zip(x) {
            *r += i32::from(x) << shift;
        }
        r
    }

    fn norm(
        &self,
        layer: usize,
        part: &'static str,
        r: &[i32],
        norm: &Norm,
    ) -> Result<Activations, OutOfRange> {
        let width = self.shape.width;
        let shift = ROOT_BITS + WEIGHT_BITS - self.scales.x;
        let half = 1 << (shift - 1);
        let mut out = Vec::with_capacity(r.len());
        let mut first = None;
        let mut d = vec![0; width];
        for row in r.chunks_exact(width) {
            let total: i64 = row.iter().map(|&v| i64::from(v)).sum();
            let mut variance = 0;
            for (d, &value) in d.iter_mut().zip(row) {
                *d = width as i64 * i64::from(value) - total;
                variance += u128::from(d.unsigned_abs()).pow(2);
            }
            if variance == 0 {
                return Err(OutOfRange {
                    layer,
                    part: "variance",
                    value: 0,
                });
            }
            let root = (((width as u128) << (2 * ROOT_BITS)) / variance).isqrt() as i64;
            for ((&d, &gain), &bias) in d.iter().zip(&norm.gain).zip(&norm.bias) {
                let y = (d * root * gain + (bias << ROOT_BITS) + half) >> shift;
                if !in_range(y) && first.is_none() {
                    first = Some(y);
                }
                out.push(y as i16);
            }
        }
        settled(layer, part, first, out)
    }

    fn attention(
        &self,
        layer: usize,
        q: &[i16],
        k: &[i16],
        v: &[i16],
    ) -> Result<Activations, OutOfRange> {
        let (width, head) = (self.shape.width, self.shape.width / self.shape.heads);
        let tokens = q.len() / width;
        let score_shift = 2 * self.scales.q + SCORE_BITS;
        let score_half = 1 << (score_shift - 1);
        let shift = SUM_BITS + self.scales.v - self.scales.o;
        let half = 1 << (shift - 1);
        let mut out = vec![0; q.len()];
        let mut wide = vec![0i64; q.len()];
        let mut weights = vec![0i16; tokens * tokens];
        for start in (0..width).step_by(head) {
            let queries = Rows::new(
                head,
                q.chunks_exact(width).map(|row| &row[start..start + head]),
            );
            let keys = Panels::new(head, tokens, |i, j| k[j * width + start + i]);
            let products = keys.product(&queries);
            let mut reciprocals = Vec::with_capacity(tokens);
            let rows = products.chunks_exact(keys.stride());
            for (row, weights) in rows.zip(weights.chunks_exact_mut(tokens)) {
                let score = |s: i32| (i64::from(s) * self.score_factor + score_half) >> score_shift;
                let row = &row[..tokens];
                // The rounded score grows with the product, so the greatest product has the greatest score.
                let greatest = score(row.iter().copied().max().unwrap_or(0));
                let mut sum = 0;
                for (weight, &s) in weights.iter_mut().zip(row) {
                    let distance = greatest - score(s);
                    let entry = self.exp.get(distance as usize).copied();
                    *weight = entry.ok_or(OutOfRange {
                        layer,
                        part: "distance",
                        value: distance,
                    })?;
                    sum += i64::from(*weight);
                }
                reciprocals.push((1 << SUM_BITS) / sum);
            }
            for first in (0..tokens).step_by(KEYS) {
                let last = tokens.min(first + KEYS);
                let values = Panels::new(last - first, head, |i, j| {
                    v[(first + i) * width + start + j]
                });
                let block = weights.chunks_exact(tokens).map(|row| &row[first..last]);
                let sums = values.product(&Rows::new(last - first, block));
                let rows = sums.chunks_exact(values.stride());
                for (row, sums) in wide.chunks_exact_mut(width).zip(rows) {
                    for (total, &sum) in row[start..start + head].iter_mut().zip(sums) {
                        *total += i64::from(sum);
                    }
                }
            }
            let rows = wide.chunks_exact_mut(width).zip(&reciprocals);
            for (row, &reciprocal) in rows {
                for total in &mut row[start..start + head] {
                    *total = (*total * reciprocal + half) >> shift;
                }
            }
        }
        for (out, &value) in out.iter_mut().zip(&wide) {
            *out = value as i16;
        }
        let first = wide.into_iter().find(|&value| !in_range(value));
        settled(layer, "o", first, out)
    }
}

fn in_range(value: i64) -> bool {
    (-ACTIVATION_LIMIT..ACTIVATION_LIMIT).contains(&value)
}

fn settled(
    layer: usize,
    part: &'static str,
    first: Option<i64>,
    out: Activations,
) -> Result<Activations, OutOfRange> {
    match first {
        Some(value) => Err(OutOfRange { layer, part, value }),
        None => Ok(out),
    }
}

/// x W + b, without the columns that fill the last panel.
fn product(x: &Rows, dense: &Dense) -> Vec<i32> {
    let sums = dense.panels.product(x);
    let mut out = Vec::with_capacity(sums.len());
    for row in sums.chunks_exact(dense.panels.stride()) {
        out.extend(row.iter().zip(&dense.bias).map(|(&sum, &bias)| sum + bias));
    }
    out
}

/// y / 2^shift, rounded to the nearest integer, half up.
fn shifted(
    layer: usize,
    part: &'static str,
    y: &[i32],
    shift: u32,
) -> Result<Activations, OutOfRange> {
    let half = 1 << (shift - 1);
    let rounded = |&y: &i32| (i64::from(y) + half) >> shift;
    let first = y.iter().map(rounded).find(|&value| !in_range(value));
    settled(
        layer,
        part,
        first,
        y.iter().map(|y| rounded(y) as i16).collect(),
    )
}
