//! The key of a slot, and the words of its stream, divided into draws: the basis of [`crate::drawn`]. `docs/scan/noise.md`.
use ark_ff::{Field, PrimeField};

use crate::channel::Channel;
use crate::claims::Bound;
use crate::error::Result;
use crate::expr::Expr;
use crate::group::Fr;
use crate::index::Layout;
use crate::lookup::Segment;
use crate::mle::{eq_table, prefix, Weight};
use crate::numbers::{log2_ceil, power_of_two, NO_WRAP_BITS};
use crate::poseidon::{block_variables, permutations, Call, Stream, WORD_VARIABLES};
use crate::ranges::{first_in_range, limbs, LIMB_BITS};
use crate::session::{ColumnId, Session};
use crate::transcript::{Oracle, Transcript};

pub const DRAWS_PER_WORD: usize = 5;
pub const WORDS_PER_BLOCK: usize = 1 << WORD_VARIABLES;
const DRAWS_PER_BLOCK: usize = DRAWS_PER_WORD * WORDS_PER_BLOCK;
pub const TAG_SEED: u64 = 1;
pub const TAG_KEY: u64 = 2;
/// Bits of a draw: a byte and t.
const DRAW_BITS: usize = 8 + T_BITS;
pub const T_BITS: usize = 32;
/// The bits of a word that become draws; the other bits are its high part.
pub const LOW_BITS: usize = 200;
pub const HIGH_LIMBS: usize = 4;
/// The bits below a word's last draw: the bits above them are compared with the modulus.
pub const BELOW_BITS: usize = 160;
/// The number of limbs of the difference between that part and the largest allowed one.
pub const REST_LIMBS: usize = 6;
const _: () = {
    // last + 2^40 high + rest = highest holds over the integers. The value below r is then the word, and its low bits are the
    // draws.
    assert!(T_BITS == 2 * LIMB_BITS);
    assert!(LOW_BITS == DRAWS_PER_WORD * DRAW_BITS && BELOW_BITS + DRAW_BITS == LOW_BITS);
    assert!(DRAW_BITS + HIGH_LIMBS * LIMB_BITS + 2 < NO_WRAP_BITS);
    assert!(REST_LIMBS * LIMB_BITS + 2 < NO_WRAP_BITS);
    assert!(highest() < 1 << 94 && highest() < 1 << (REST_LIMBS * LIMB_BITS));
};

/// The number of the stream's blocks for these draws.
#[derive(Clone, Copy)]
pub struct Blocks {
    pub count: usize,
    variables: usize,
}

impl Blocks {
    /// In addition to the two calls that compute the key.
    pub fn of_draws(draws: usize) -> Self {
        let count = draws.div_ceil(DRAWS_PER_BLOCK);
        Self {
            count,
            variables: block_variables(count, 2),
        }
    }

    pub fn words(self) -> usize {
        self.count * WORDS_PER_BLOCK
    }

    /// All draws, including those in the rest of the last block.
    pub fn draws(self) -> usize {
        self.count * DRAWS_PER_BLOCK
    }
}

/// The largest last draw and high part of a word, as one integer, that can be proved: with all values of the other draws it
/// gives an integer below r. Fewer than one word in 2^94 has a larger one.
pub const fn highest() -> u128 {
    upper(&Fr::MODULUS.0) - 1
}

/// Last draw and high part of a word as one integer.
pub const fn upper(word: &[u64; 4]) -> u128 {
    (word[3] as u128) << (192 - BELOW_BITS) | (word[2] >> (BELOW_BITS - 128)) as u128
}

/// One slot, published before its query exists: the commitment to the seed, the beacon and the slot's digest.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    pub c_seed: Fr,
    pub beacon: Fr,
    pub slot: Fr,
}

impl Slot {
    pub fn absorb(&self, t: &mut Transcript<impl Oracle>) {
        t.scalar("seed commitment", &self.c_seed);
        t.scalar("beacon", &self.beacon);
        t.scalar("slot", &self.slot);
    }
}

/// c_seed, beacon, slot.
impl From<[Fr; 3]> for Slot {
    fn from([c_seed, beacon, slot]: [Fr; 3]) -> Self {
        Self {
            c_seed,
            beacon,
            slot,
        }
    }
}

/// The keys of slots, and the calls that make each from a committed seed.
pub type Keys = (Vec<Expr>, Vec<Call>);

/// Sends the seed's halves and the key of each slot. Returns the calls that compute the key from the committed seed, for
/// [`prove_words`].
pub fn send_keys<C: Channel>(
    session: &mut Session<C>,
    keys: Option<&[[Fr; 3]]>,
    slots: &[Slot],
) -> Result<Keys> {
    let values = keys.map(<[[Fr; 3]]>::as_flattened);
    let vars = session.send("seed and key", 3 * slots.len(), values)?;
    let (mut kappas, mut calls) = (Vec::new(), Vec::new());
    for (run, of) in vars.chunks(3).zip(slots) {
        let [s0, s1, kappa] = [run[0], run[1], run[2]].map(Expr::from);
        calls.push(Call {
            inputs: vec![TAG_SEED.into(), s0.clone(), s1.clone()],
            output: of.c_seed.into(),
        });
        calls.push(Call {
            inputs: vec![TAG_KEY.into(), s0, s1, of.beacon.into(), of.slot.into()],
            output: kappa.clone(),
        });
        kappas.push(kappa);
    }
    Ok((kappas, calls))
}

/// A random point in as many variables as distinguish the records of a run, and the records' weights at the point.
pub fn records<C: Channel>(
    session: &mut Session<C>,
    label: &str,
    count: usize,
) -> (Vec<Fr>, Vec<Fr>) {
    let point = session.challenges(label, log2_ceil(count));
    let weights = record_weights(&point, count);
    (point, weights)
}

/// eq of a point that distinguishes records, one weight for each record. A single record has the weight 1.
///
/// ```
/// use ark_bn254::Fr;
/// use ragaudit_scan_protocol::words::record_weights;
///
/// assert_eq!(record_weights(&[], 1), [Fr::from(1u8)]);
/// let p = [Fr::from(2u8), Fr::from(3u8)];
/// assert_eq!(record_weights(&p, 3).len(), 3);
/// ```
pub fn record_weights(point: &[Fr], count: usize) -> Vec<Fr> {
    let mut weights = eq_table(point);
    weights.truncate(count);
    weights
}

/// Columns of each record, each under its record's weight.
pub fn weigh(
    weights: &[Fr],
    columns: impl IntoIterator<Item = Vec<(ColumnId, Fr)>>,
) -> Vec<(ColumnId, Fr)> {
    let pairs = columns.into_iter().zip(weights);
    let weighed =
        pairs.flat_map(|(columns, e)| columns.into_iter().map(move |(id, f)| (id, f * e)));
    weighed.collect()
}

/// Claims that in each position a column has the sum of the values of its draws under these coefficients, and 0 beyond the
/// capacity: two functionals with one value. Each record has a column and its draws.
pub fn gather<C: Channel>(
    session: &mut Session<C>,
    label: &'static str,
    layout: Layout,
    columns: &[[ColumnId; 2]],
    coefficients: Vec<Fr>,
) -> Result<()> {
    let r = session.challenges(label, layout.variables);
    let (_, weights) = records(session, label, columns.len());
    let of = |k: usize| {
        weigh(
            &weights,
            columns.iter().map(|pair| vec![(pair[k], Fr::ONE)]),
        )
    };
    let [column, drawn] = [0, 1].map(of);
    let known = session.known();
    let at = known.map(|known| known.at(&column, &r));
    let var = session.send_one(label, at)?;
    session.claim(Weight::evaluation(&r), column, var.into());
    let weight = Weight {
        point: r,
        coefficients,
        items: layout.capacity,
    };
    session.claim(weight, drawn, var.into());
    Ok(())
}

/// Columns with the limbs of the stream's draws and words, and the multiplicities of their range table, in the order of their
/// commitments. They follow the columns of the draws.
#[derive(Clone, Copy)]
pub struct StreamColumns<T> {
    /// Limbs of t, and of its distance from the threshold.
    pub t: [T; 2],
    pub distance: [T; 2],
    /// Limbs of each word's high part, and of the difference between the largest allowed last draw and high part and the
    /// actual ones.
    pub high: [T; HIGH_LIMBS],
    pub rest: [T; REST_LIMBS],
    pub range: T,
}

impl<T> StreamColumns<T> {
    pub fn in_order(self) -> impl Iterator<Item = T> {
        let limbs = self.t.into_iter().chain(self.distance);
        let parts = self.high.into_iter().chain(self.rest);
        limbs.chain(parts).chain([self.range])
    }

    /// Takes its columns from others.
    pub fn named(all: &mut impl Iterator<Item = T>) -> Self {
        let mut next = || all.next().expect("one for each name");
        Self {
            t: std::array::from_fn(|_| next()),
            distance: std::array::from_fn(|_| next()),
            high: std::array::from_fn(|_| next()),
            rest: std::array::from_fn(|_| next()),
            range: next(),
        }
    }
}

impl StreamColumns<(usize, Bound)> {
    /// Entries and bounds of the columns; this number of records shares the range table with `other_limbs` more limbs.
    pub fn bounds(blocks: Blocks, records: usize, other_limbs: usize) -> Self {
        let (draws, words) = (blocks.draws(), blocks.words());
        let limb = Bound::Unsigned(LIMB_BITS);
        let limbs = 4 * draws + words * (HIGH_LIMBS + REST_LIMBS);
        Self {
            t: [(draws, limb); 2],
            distance: [(draws, limb); 2],
            high: [(words, limb); HIGH_LIMBS],
            rest: [(words, limb); REST_LIMBS],
            range: (1 << LIMB_BITS, Bound::up_to(records * limbs + other_limbs)),
        }
    }
}

impl StreamColumns<ColumnId> {
    /// Looks every limb up in the range table.
    pub fn in_range(&self, blocks: Blocks) -> impl Iterator<Item = Segment> + '_ {
        let of_draws = self.t.iter().chain(&self.distance);
        let of_words = self.high.iter().chain(&self.rest);
        of_draws
            .map(move |id| first_in_range(*id, blocks.draws()))
            .chain(of_words.map(move |id| first_in_range(*id, blocks.words())))
    }
}

/// Proves that the draws byte + 2^8 t, all in their ranges, are the draws of the stream of kappa.
///
/// For every word, composed of draws and a high part: word = low + 2^200 high, and last + 2^40 high + rest = highest, where
/// last is the draw from bit 160 on. Both claims are at one random point, the second times zeta. Each record has a stream,
/// bytes and columns.
pub fn prove_words<C: Channel>(
    session: &mut Session<C>,
    blocks: Blocks,
    columns: &[(ColumnId, StreamColumns<ColumnId>)],
    (kappas, calls): Keys,
) -> Result<()> {
    let words = blocks.words();
    let r = session.challenges("words", blocks.variables + WORD_VARIABLES);
    let (record_point, weights) = records(session, "words", columns.len());
    let zeta = session.challenge("upper parts");
    let mut coefficients: Vec<Fr> = (0..DRAWS_PER_WORD)
        .map(|k| power_of_two(DRAW_BITS * k))
        .collect();
    coefficients[DRAWS_PER_WORD - 1] += zeta;
    let low = Weight {
        point: r.clone(),
        coefficients,
        items: words,
    };
    let draw = columns.iter().map(|(byte, columns)| {
        let mut draw = vec![(*byte, Fr::ONE)];
        draw.extend(limbs(&columns.t, power_of_two(8)));
        draw
    });
    let high = columns.iter().map(|(_, c)| limbs(&c.high, Fr::ONE));
    let rest = columns.iter().map(|(_, c)| limbs(&c.rest, Fr::ONE));
    let all_words = Weight {
        point: r.clone(),
        coefficients: vec![Fr::ONE],
        items: words,
    };
    let sums = [
        (low, weigh(&weights, draw)),
        (all_words.clone(), weigh(&weights, high)),
        (all_words, weigh(&weights, rest)),
    ];
    let values = session.known().map(|known| {
        let value = |(weight, columns): &(Weight, Vec<_>)| known.functional(weight, columns);
        sums.each_ref().map(value)
    });
    let v = session.send("words", 3, values.as_ref().map(|v| &v[..]))?;
    for ((weight, columns), var) in sums.into_iter().zip(&v) {
        session.claim(weight, columns, (*var).into());
    }
    let [low, high, rest] = [v[0], v[1], v[2]].map(Expr::from);
    let every: Fr = weights.iter().sum();
    let maximum = Expr::from(prefix(&r, words) * Fr::from(highest()) * every);
    let last = maximum - rest - high.clone() * power_of_two(LOW_BITS - BELOW_BITS);
    let (word_point, block_point) = r.split_at(WORD_VARIABLES);
    let stream = Stream {
        kappas,
        blocks: blocks.count,
        record_point,
        word_point: word_point.to_vec(),
        block_point: block_point.to_vec(),
        value: low - last * zeta + high * power_of_two(LOW_BITS),
    };
    permutations(session, Some(stream), calls)
}
