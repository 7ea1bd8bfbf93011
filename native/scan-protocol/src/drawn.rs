//! Proofs of the draws of slots: for each slot one committed column over all positions. `docs/scan/noise.md` and
//! `docs/scan/bernoulli-bits.md`.
//!
//! A slot's stream under the window's seed, the beacon and the slot gives draws of 40 bits: a low byte and 32 bits t. A
//! [`Distribution`] defines the value of a draw; the column has the sum of each position's draws. This module proves the parts
//! that all distributions share: the key of the slot, the words of the stream, the ranges, the look-up of each draw in the
//! distribution's table, the comparison of t with a threshold, and the sums.
//!
//! [`crate::noise::Noise`] and [`crate::bernoulli::Bernoulli`] are the distributions. A new distribution is a file with an `impl
//! Distribution`, and an `impl Draw` in the prover's crate.
use ark_ff::Field;

use crate::batch_size::{check_batch_size, row_variables};
use crate::channel::{Channel, Verifies};
use crate::claims::Bound;
use crate::equation::Equation;
use crate::error::Result;
use crate::expr::Expr;
use crate::group::Fr;
use crate::index::Layout;
use crate::lookup::{lookups, Count, Entry, Segment};
use crate::mle::{prefix, Weight};
use crate::numbers::{from_small, log2_ceil};
use crate::poseidon::Call;
use crate::ranges::{range_table, LIMB_BITS, TAG_RANGE};
use crate::session::{Column, ColumnId, Session};
use crate::sumcheck::{reduce, Gate};
use crate::transcript::{Oracle, Transcript};
pub use crate::words::Slot;
use crate::words::{
    gather, prove_words, record_weights, send_keys, weigh, Blocks, Keys, StreamColumns, BELOW_BITS,
    DRAWS_PER_WORD, HIGH_LIMBS, REST_LIMBS, TAG_KEY, TAG_SEED,
};

/// The tag of the distribution's table.
pub const TAG_TABLE: u64 = 2;
/// The number of variables of that table: it has a row for each byte with either outcome of the comparison.
pub const TABLE_VARIABLES: usize = 9;

/// The constants that determine the positions of values in a proof: see [`crate::protocol`].
pub const RULES: [u64; 10] = [
    DRAWS_PER_WORD as u64,
    TAG_SEED,
    TAG_KEY,
    LIMB_BITS as u64,
    TAG_RANGE,
    TAG_TABLE,
    TABLE_VARIABLES as u64,
    HIGH_LIMBS as u64,
    BELOW_BITS as u64,
    REST_LIMBS as u64,
];

/// The labels of a distribution's proofs.
pub struct Labels {
    /// The label of the statement.
    pub statement: &'static str,
    /// The label of the commitments.
    pub columns: &'static str,
    /// The label of the claim that a position's value is the sum of its draws.
    pub column: &'static str,
}

/// The value of a draw byte + 2^8 t.
///
/// The proof commits to columns of each draw: the byte, the outcome 0 or 1 of a comparison of t, and the table's other values
/// for them. Row `byte + 256 outcome` of the public table has these values.
pub trait Distribution: Clone + Send + Sync {
    const LABELS: Labels;
    /// The number of the draw's column that is summed for each position.
    const VALUE: usize;

    /// Refuses parameters beyond their limits.
    fn check(&self) -> Result<()>;

    /// Absorbs the parameters.
    fn absorb(&self, transcript: &mut Transcript<impl Oracle>);

    /// The factors of a position's draws, one for each draw.
    fn factors(&self) -> Vec<u32>;

    /// The bound of a position's value.
    fn bound(&self) -> Bound;

    /// The bounds of the columns of each draw, byte and outcome first.
    fn bounds(&self) -> Vec<Bound>;

    /// Row byte + 256 outcome of the public table, in the same order.
    fn row(&self, byte: i64, outcome: i64) -> Vec<i64>;

    /// The equation that holds exactly if the outcome is the result of the comparison.
    fn comparison(&self) -> Comparison;

    /// The values in this equation, as combinations of the columns of one slot.
    fn compared(columns: &Columns<ColumnId>) -> Vec<Vec<(ColumnId, Fr)>>;
}

/// left(v) right(v) = rest(v) for each draw with the compared values v.
pub struct Comparison {
    pub label: &'static str,
    /// left right - rest without the term `public`, as provers sum it.
    pub gate: Gate<'static>,
    /// The public term that `gate` omits for each draw.
    pub public: Fr,
    pub left: Affine,
    pub right: Affine,
    pub rest: Affine,
}

/// sum of factors_i v_i + constant.
pub struct Affine {
    pub factors: Vec<i64>,
    pub constant: Fr,
}

impl Affine {
    fn of(&self, values: &[Expr]) -> Expr {
        let pairs = values.iter().zip(&self.factors).filter(|(_, f)| **f != 0);
        Expr::combination(pairs.map(|(v, f)| (v, from_small(*f)))) + self.constant.into()
    }

    fn at(&self, values: &[Fr]) -> Fr {
        let pairs = values.iter().zip(&self.factors);
        pairs.map(|(v, f)| *v * from_small(*f)).sum::<Fr>() + self.constant
    }
}

/// The statement of a proof about drawn columns. The verifier rebuilds every value and reads none from a file.
///
/// ```
/// use ark_bn254::Fr;
/// use ragaudit_scan_protocol::drawn::{check, DrawnStatement, Slot};
/// use ragaudit_scan_protocol::noise::Noise;
/// use ragaudit_scan_protocol::verifier::Verifier;
///
/// let slot = Slot { c_seed: Fr::from(1u8), beacon: Fr::from(2u8), slot: Fr::from(3u8) };
/// let noise = Noise { gains: vec![1, 8] };
/// let statement = DrawnStatement::single([7; 32], slot, 1_000, noise);
/// assert!(check::<Verifier, _>(&statement, b"no proof").is_err());
/// ```
#[derive(Clone, Debug)]
pub struct DrawnStatement<D> {
    /// Digest of all other data that the draws depend on: protocol, opening, policy, tenant, and account and count if any.
    pub context: [u8; 32],
    pub slots: Vec<Slot>,
    pub capacity: usize,
    pub distribution: D,
}

pub struct Shape {
    pub layout: Layout,
    pub blocks: Blocks,
    /// The base-2 logarithm of the length of the columns' rows.
    pub row_variables: usize,
}

impl<D: Distribution> DrawnStatement<D> {
    /// The statement about one slot.
    pub fn single(context: [u8; 32], slot: Slot, capacity: usize, distribution: D) -> Self {
        Self {
            context,
            slots: vec![slot],
            capacity,
            distribution,
        }
    }

    /// The sizes that follow from the statement. Refuses values beyond their limits.
    pub fn shape(&self) -> Result<Shape> {
        let layout = Layout::new(self.capacity)?;
        self.distribution.check()?;
        let draws = self.distribution.factors().len();
        check_batch_size(self.slots.len(), self.capacity, draws, false)?;
        Ok(Shape {
            layout,
            blocks: Blocks::of_draws(self.capacity * draws),
            row_variables: row_variables(layout, self.slots.len()),
        })
    }

    pub fn transcript<O: Oracle>(&self) -> Transcript<O> {
        let mut t = Transcript::new(D::LABELS.statement);
        t.bytes("context", &self.context);
        t.integer("slot count", self.slots.len() as u64);
        self.slots.iter().for_each(|slot| slot.absorb(&mut t));
        t.integer("capacity", self.capacity as u64);
        self.distribution.absorb(&mut t);
        t
    }
}

/// The columns of a slot, in the order of their commitments.
#[derive(Clone)]
pub struct Columns<T> {
    /// The drawn column over the positions.
    pub column: T,
    /// The columns of each draw: the byte, the outcome, and the table's other values.
    pub drawn: Vec<T>,
    pub stream: StreamColumns<T>,
    /// How often each row of the table is looked up.
    pub table: T,
}

/// The number of columns of multiplicities, which are the last ones: of the range table and of the distribution's table.
pub const TABLES: usize = 2;

impl<T> Columns<T> {
    pub fn in_order(self) -> Vec<T> {
        let first = [self.column].into_iter().chain(self.drawn);
        let all = first.chain(self.stream.in_order());
        all.chain([self.table]).collect()
    }

    /// Takes one column after another; each draw has `drawn` columns.
    pub fn named(all: &mut impl Iterator<Item = T>, drawn: usize) -> Self {
        let mut next = || all.next().expect("one for each name");
        Self {
            column: next(),
            drawn: (0..drawn).map(|_| next()).collect(),
            stream: StreamColumns::named(all),
            table: all.next().expect("one for each name"),
        }
    }

    /// The columns of several slots, in order: slot by slot, then the multiplicities of their common tables. Without the drawn
    /// columns if they are given.
    pub fn for_batch(slots: Vec<Self>, given: bool) -> Vec<T> {
        let (mut all, mut tables) = (Vec::new(), Vec::new());
        for slot in slots {
            let mut own = slot.in_order();
            tables = own.split_off(own.len() - TABLES);
            all.extend(own.into_iter().skip(usize::from(given)));
        }
        all.extend(tables);
        all
    }
}

impl<T: Copy> Columns<T> {
    /// The inverse of [`Self::for_batch`], with the drawn columns that are given.
    pub fn apart(mut all: Vec<T>, count: usize, drawn: usize, given: &[T]) -> Vec<Self> {
        let tables = all.split_off(all.len() - TABLES);
        let own = all.chunks(all.len() / count);
        own.enumerate()
            .map(|(k, own)| {
                let own = given.get(k).into_iter().chain(own).chain(&tables);
                Self::named(&mut own.copied(), drawn)
            })
            .collect()
    }
}

/// The prover's private values: the columns in their order, and for each slot the halves of the seed and the key.
pub struct Private {
    pub columns: Vec<Vec<i64>>,
    pub keys: Vec<[Fr; 3]>,
}

/// Reads a proof. Returns the commitments to each slot's column, and the equation that must hold.
pub fn check<'p, V: Verifies<'p>, D: Distribution>(
    statement: &DrawnStatement<D>,
    proof: &'p [u8],
) -> Result<(Vec<Column>, Equation)> {
    let rows = statement.shape()?.row_variables;
    let mut session: Session<V> = Session::verifier(statement.transcript(), rows, proof);
    let ids = drawn_protocol(&mut session, statement, None)?;
    let columns = ids.into_iter().map(|id| session.columns[id.0].clone());
    let columns = columns.collect();
    Ok((columns, session.close(None)?.into()))
}

/// Verifies a proof. Returns the commitments to each slot's column.
pub fn verify<'p, V: Verifies<'p>, D: Distribution>(
    statement: &DrawnStatement<D>,
    proof: &'p [u8],
) -> Result<Vec<Column>> {
    let (columns, equation) = check::<V, D>(statement, proof)?;
    equation.verify::<V::Engine>(&[])?;
    Ok(columns)
}

/// The protocol, for both parties. All slots share the tables, the sumchecks and the permutations: `docs/scan/batch.md`.
pub fn drawn_protocol<C: Channel, D: Distribution>(
    session: &mut Session<C>,
    statement: &DrawnStatement<D>,
    secret: Option<Private>,
) -> Result<Vec<ColumnId>> {
    let Shape { layout, blocks, .. } = statement.shape()?;
    let distribution = &statement.distribution;
    let slots = &statement.slots;
    let drawing = Drawing::send(
        session,
        (distribution, blocks),
        slots,
        (Target::Own(statement.capacity), 0),
        secret,
    )?;
    lookups(session, drawing.segments())?;
    drawing.compare(session)?;

    // In each row, the column is the sum of factors times draws.
    let factors = distribution.factors().into_iter().map(Fr::from).collect();
    let pair = |c: &Columns<ColumnId>| [c.column, c.drawn[D::VALUE]];
    let pairs: Vec<[ColumnId; 2]> = drawing.slots.iter().map(pair).collect();
    gather(session, D::LABELS.column, layout, &pairs, factors)?;
    let columns = drawing.slots.iter().map(|c| c.column).collect();
    drawing.prove_words(session, Vec::new())?;
    Ok(columns)
}

/// The column of each slot that the draws determine.
pub enum Target<'a> {
    /// The run commits to it, with this number of entries.
    Own(usize),
    /// Each slot's is in the statement.
    Given(&'a [ColumnId]),
}

/// The draws of slots within a run: their committed columns, and the keys of their streams. What a slot's `column` has to do
/// with the draws is for the run to claim.
pub struct Drawing<'s, D> {
    distribution: &'s D,
    blocks: Blocks,
    keys: Keys,
    pub slots: Vec<Columns<ColumnId>>,
}

impl<'s, D: Distribution> Drawing<'s, D> {
    /// Commits to the columns, and sends the keys. The run looks `other_limbs` more limbs up in the range table.
    pub fn send<C: Channel>(
        session: &mut Session<C>,
        (distribution, blocks): (&'s D, Blocks),
        slots: &[Slot],
        (target, other_limbs): (Target, usize),
        secret: Option<Private>,
    ) -> Result<Self> {
        let (draws, count) = (blocks.draws(), slots.len());
        let drawn = distribution.bounds();
        let (entries, given) = match target {
            Target::Own(entries) => (entries, &[][..]),
            Target::Given(given) => (0, given),
        };
        let bounds = Columns {
            column: (entries, distribution.bound()),
            drawn: drawn.iter().map(|bound| (draws, *bound)).collect(),
            stream: StreamColumns::bounds(blocks, count, other_limbs),
            table: (1 << TABLE_VARIABLES, Bound::up_to(count * draws)),
        };
        let (columns, keys) = secret.map(|s| (s.columns, s.keys)).unzip();
        let bounds = Columns::for_batch(vec![bounds; count], !given.is_empty());
        let ids = session.commit_bounded(D::LABELS.columns, &bounds, columns)?;
        let keys = send_keys(session, keys.as_deref(), slots)?;
        Ok(Self {
            distribution,
            blocks,
            keys,
            slots: Columns::apart(ids, count, drawn.len(), given),
        })
    }

    /// Looks every draw up in the distribution's table, and every limb in the range table.
    pub fn segments(&self) -> Vec<Segment> {
        let draws = self.blocks.draws();
        // Byte and outcome are separate entries: their sum alone would give byte + 256 with the other outcome the same row.
        let looked_up = |c: &Columns<ColumnId>| Segment {
            variables: log2_ceil(draws),
            tag: TAG_TABLE,
            entries: (c.drawn.iter())
                .map(|id| Entry::Columns(vec![(*id, Fr::ONE)]))
                .collect(),
            count: Count::First(draws),
        };
        let mut segments: Vec<Segment> = self.slots.iter().map(looked_up).collect();
        segments.push(range_table(self.slots[0].stream.range));
        segments.push(Segment {
            variables: TABLE_VARIABLES,
            tag: TAG_TABLE,
            entries: (table(self.distribution).into_iter())
                .map(Entry::Public)
                .collect(),
            count: Count::Table(self.slots[0].table),
        });
        segments.extend((self.slots.iter()).flat_map(|c| c.stream.in_range(self.blocks)));
        segments
    }

    /// Claims the distribution's comparison for all draws of all slots, draw by draw.
    pub fn compare<C: Channel>(&self, session: &mut Session<C>) -> Result<()> {
        let Comparison {
            label,
            gate,
            public,
            left,
            right,
            rest,
        } = self.distribution.comparison();
        let (draws, slots) = (self.blocks.draws(), &self.slots);
        let apart = log2_ceil(slots.len());
        let tau = session.challenges(label, apart + log2_ceil(draws));
        let of_slots: Vec<_> = slots.iter().map(D::compared).collect();
        let sources = of_slots[0].len();
        let of_source = |k: usize| of_slots.iter().map(move |sources| sources[k].clone());
        let sums = session.known().map(|known| {
            let tables = (0..sources).map(|k| of_source(k).collect()).collect();
            known.of_gate(gate, 2, &tau, tables)
        });
        // The gate omits the public term of the equation, which counts for every draw of every slot and in no other place.
        let every: Fr = record_weights(&tau[..apart], slots.len()).iter().sum();
        let claim = public * prefix(&tau[apart..], draws) * every;
        let reduced = reduce(session, label, &tau, claim.into(), 2, sums)?;
        let finals = reduced.finals.map(|mut f| {
            f.push(left.at(&f) * right.at(&f));
            f
        });
        let v = session.send(label, sources + 1, finals.as_deref())?;
        let all: Vec<Expr> = v.iter().map(|var| Expr::from(*var)).collect();
        let (values, product) = all.split_at(sources);
        session.constrain_product(label, left.of(values), right.of(values), product[0].clone());
        session.constrain(label, product[0].clone() - rest.of(values) - reduced.claim);
        let (record, place) = reduced.point.split_at(apart);
        let weights = record_weights(record, slots.len());
        for (k, value) in values.iter().enumerate() {
            let source = weigh(&weights, of_source(k));
            session.claim(Weight::evaluation(place), source, value.clone());
        }
        Ok(())
    }

    /// Claims that all draws are the draws of the streams, and that the run's other calls have their outputs.
    pub fn prove_words<C: Channel>(
        mut self,
        session: &mut Session<C>,
        other_calls: Vec<Call>,
    ) -> Result<()> {
        self.keys.1.extend(other_calls);
        let words: Vec<_> = (self.slots.iter())
            .map(|c| (c.drawn[0], c.stream))
            .collect();
        prove_words(session, self.blocks, &words, self.keys)
    }
}

/// The distribution's table, column by column.
fn table(distribution: &impl Distribution) -> Vec<Vec<i64>> {
    let row = |row: i64| distribution.row(row % 256, row / 256);
    let rows: Vec<Vec<i64>> = (0..1 << TABLE_VARIABLES).map(row).collect();
    let column = |k: usize| rows.iter().map(|row| row[k]).collect();
    (0..rows[0].len()).map(column).collect()
}
