//! From sums of rows to a query's vector: the root of the sum of squares, the quantiser, and the vector's hash:
//! `docs/scan/embed.md`.
use ark_ff::{AdditiveGroup, Field};
use ragaudit_relation::NIBBLES_PER_ELEMENT;

use crate::channel::Channel;
use crate::claims::Bound;
use crate::error::Result;
use crate::expr::Expr;
use crate::group::Fr;
use crate::index::COMPONENT;
use crate::lookup::{Count, Entry, Segment};
use crate::mle::{eq_table, Weight};
use crate::nibbles::{nibble_rows, NIBBLE_VARIABLES, TAG_VECTOR};
use crate::numbers::{from_small, log2_ceil, power_of_two, NO_WRAP_BITS};
use crate::poseidon::Call;
use crate::session::{ColumnId, Session};
use crate::sumcheck::{plain, sumcheck, Gate};

pub const LIMB_BITS: usize = 12;
/// w is the integer square root of 2^16 times the sum of squares.
pub const ROOT_SHIFT: usize = 16;
/// Largest A.
pub const MAX_NORM_FACTOR: u64 = 1 << 20;

/// The bounds of all values, which are far below r.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The bound of |e_j|.
    pub reach: u64,
    /// The bound of 2 A |e_j|.
    pub scaled: i64,
    /// The number of limbs of every range-checked value, which is at most 2 w + scaled.
    pub limbs: usize,
}

impl Bounds {
    /// For so many sums of at most `reach` in magnitude.
    pub const fn of(reach: u64, dimension: usize, norm_factor: u64) -> Self {
        let root = ((dimension as u64 * reach * reach) << ROOT_SHIFT).isqrt();
        let scaled = 2 * norm_factor * reach;
        let bits = 64 - (2 * root + scaled).leading_zeros() as usize;
        Self {
            reach,
            scaled: scaled as i64,
            limbs: bits.div_ceil(LIMB_BITS),
        }
    }

    /// Bits of w^2: w - 1 has limbs.
    pub const fn square_bits(&self) -> usize {
        2 * (LIMB_BITS * self.limbs + 1)
    }

    /// Whether no equation about so many limbs wraps around, for all values of a prover: no compared value has more than one bit
    /// above w^2.
    pub const fn without_wrap(&self) -> bool {
        self.square_bits() + 1 < NO_WRAP_BITS
    }
}

/// The terms that v_j adds to its lower and upper distance: -1 if the bound is strict. At the ends of the range, where no
/// bound exists, the term exceeds every sum of rows.
pub fn slack(v: i64, scaled: i64) -> [i64; 2] {
    let maximum = i64::from(COMPONENT);
    let one = |v: i64| i64::from(v == -maximum) * scaled - i64::from(v <= 0);
    [one(v), one(-v)]
}

/// The columns over components, in the order in which they are committed to.
pub struct Columns<T> {
    /// Sums of rows.
    pub sums: T,
    pub vector: T,
    /// The remainders of each component's step, below and above.
    pub lower_slack: T,
    pub upper_slack: T,
    /// Limbs of the distances from both ends of a step.
    pub lower: Vec<T>,
    pub upper: Vec<T>,
}

impl<T> Columns<T> {
    pub fn in_order(self) -> Vec<T> {
        let mut out = vec![self.sums, self.vector, self.lower_slack, self.upper_slack];
        out.extend(self.lower.into_iter().chain(self.upper));
        out
    }

    /// Takes the columns from the front.
    pub fn named(all: &mut impl Iterator<Item = T>, bounds: &Bounds) -> Self {
        let mut next = || all.next().expect("one for each name");
        Self {
            sums: next(),
            vector: next(),
            lower_slack: next(),
            upper_slack: next(),
            lower: (0..bounds.limbs).map(|_| next()).collect(),
            upper: (0..bounds.limbs).map(|_| next()).collect(),
        }
    }
}

impl Columns<(usize, Bound)> {
    /// Entries and bound of each column.
    pub fn bounds(size: &Size) -> Self {
        let all = 1 << size.variables();
        let slack_bound = (all, Bound::within(size.bounds.scaled as usize + 1));
        let limb_bounds = vec![(all, Bound::Unsigned(LIMB_BITS)); size.bounds.limbs];
        Self {
            sums: (all, Bound::within(size.bounds.reach as usize)),
            vector: (all, Bound::within(COMPONENT as usize)),
            lower_slack: slack_bound,
            upper_slack: slack_bound,
            lower: limb_bounds.clone(),
            upper: limb_bounds,
        }
    }
}

/// The size of a run's vectors, and the tags of their tables. Component j of vector k is entry j + 2^c k of a column, with c
/// variables for the components.
#[derive(Clone, Copy)]
pub struct Size {
    pub dimension: usize,
    /// How many vectors, a power of two.
    pub count: usize,
    /// A.
    pub norm_factor: u64,
    pub bounds: Bounds,
    pub limb_tag: u64,
    pub step_tag: u64,
}

impl Size {
    /// The variables that number the components.
    pub fn components(&self) -> usize {
        log2_ceil(self.dimension)
    }

    /// The variables of the columns over the components of all vectors.
    pub fn variables(&self) -> usize {
        self.components() + log2_ceil(self.count)
    }

    fn elements(&self) -> usize {
        self.dimension.div_ceil(NIBBLES_PER_ELEMENT)
    }

    /// The number of hidden values of one vector: limbs of w - 1, of the remainder under the root and of its distance from 2 w;
    /// w^2; the packed elements of v.
    pub fn hidden(&self) -> usize {
        3 * self.bounds.limbs + 1 + self.elements()
    }

    /// The number of lookups of limbs.
    pub fn limbs_looked_up(&self) -> usize {
        ((2 << self.variables()) + 3 * self.count) * self.bounds.limbs
    }
}

/// A prover's values of the claims about the columns, on which the claims' points depend.
pub struct Private<'s> {
    /// The components of three claims: e, v and w v.
    pub at_point: &'s [Vec<i64>; 3],
    pub squared: &'s [i64],
}

/// The hidden values of one vector, in the order of [`Size::hidden`].
#[derive(Clone, Copy)]
pub struct Values<'v> {
    limbs: usize,
    all: &'v [Expr],
}

/// Vectors with their hidden values.
pub struct Vectors<'v> {
    pub size: Size,
    pub columns: &'v Columns<ColumnId>,
    /// Those of one vector after another.
    pub values: &'v [Expr],
}

fn joined(run: &[Expr]) -> Expr {
    Expr::combination(run.iter().zip((0..).map(|k| power_of_two(LIMB_BITS * k))))
}

fn columns_joined(run: &[ColumnId]) -> Vec<(ColumnId, Fr)> {
    run.iter()
        .enumerate()
        .map(|(k, id)| (*id, power_of_two(LIMB_BITS * k)))
        .collect()
}

impl<'v> Values<'v> {
    fn root_limbs(&self) -> &'v [Expr] {
        &self.all[..3 * self.limbs]
    }

    fn square(&self) -> &'v Expr {
        &self.all[3 * self.limbs]
    }

    fn packed(&self) -> &'v [Expr] {
        &self.all[3 * self.limbs + 1..]
    }

    /// w.
    fn root(&self) -> Expr {
        joined(&self.root_limbs()[..self.limbs]) + 1u64.into()
    }

    /// The remainder under the root.
    fn left(&self) -> Expr {
        joined(&self.root_limbs()[self.limbs..2 * self.limbs])
    }

    /// The calls of the vector's hash, which is `cq` under this salt.
    pub fn hash<C: Channel>(
        &self,
        session: &mut Session<C>,
        salt: Expr,
        cq: Fr,
    ) -> Result<Vec<Call>> {
        let places = (0..NIBBLES_PER_ELEMENT).map(|i| power_of_two(4 * i));
        let offset = places.sum::<Fr>() * Fr::from(8u8);
        let mut list = vec![salt];
        list.extend(self.packed().iter().map(|x| x.clone() + offset.into()));
        Call::list(session, TAG_VECTOR, &list, cq)
    }

    /// w^2 <= 2^16 sum e_j^2 <= w^2 + 2 w with w >= 1; w and the remainder have limbs.
    pub fn take_root<C: Channel>(&self, session: &mut Session<C>) {
        let root = self.root();
        session.constrain_product("root", root.clone(), root.clone(), self.square().clone());
        let lacking = joined(&self.root_limbs()[2 * self.limbs..]);
        let twice = root * Fr::from(2u8);
        session.constrain("root", self.left() + lacking - twice);
    }
}

impl<'v> Vectors<'v> {
    /// The hidden values of each vector.
    pub fn each(&self) -> impl Iterator<Item = Values<'v>> {
        let limbs = self.size.bounds.limbs;
        let all = self.values.chunks(self.size.hidden());
        all.map(move |all| Values { limbs, all })
    }

    /// Each component with its slacks, and the table of steps with its multiplicities.
    pub fn look_up_steps(&self, steps: ColumnId) -> [Segment; 2] {
        let rows_of_steps = nibble_rows();
        let [of_lower, of_upper] = [0, 1].map(|i| {
            let of = |v: &i64| slack(*v, self.size.bounds.scaled)[i];
            Entry::Public(rows_of_steps.iter().map(of).collect())
        });
        let columns = self.columns;
        let looked_up = [columns.vector, columns.lower_slack, columns.upper_slack];
        [
            Segment {
                variables: self.size.variables(),
                tag: self.size.step_tag,
                entries: looked_up.map(one).into(),
                count: Count::Once,
            },
            Segment {
                variables: NIBBLE_VARIABLES,
                tag: self.size.step_tag,
                entries: vec![Entry::Public(rows_of_steps), of_lower, of_upper],
                count: Count::Table(steps),
            },
        ]
    }

    /// All limbs.
    pub fn look_up_limbs(&self) -> Vec<Segment> {
        let limbs: Vec<Expr> = self.each().flat_map(|v| v.root_limbs().to_vec()).collect();
        let mut segments = vec![Segment {
            variables: log2_ceil(limbs.len()),
            tag: self.size.limb_tag,
            count: Count::First(limbs.len()),
            entries: vec![Entry::Hidden(limbs)],
        }];
        let columns = self.columns.lower.iter().chain(&self.columns.upper);
        segments.extend(columns.map(|id| Segment {
            variables: self.size.variables(),
            tag: self.size.limb_tag,
            entries: vec![one(*id)],
            count: Count::Once,
        }));
        segments
    }

    /// The first claims after the lookups: all claims that are linear in the columns over components, at one random point of
    /// components, and with several vectors at one of vectors. `of_sums` adds a run's claim about the sums at that point. Returns
    /// both points as one, and the sums at it.
    pub fn components<'s, C: Channel>(
        &self,
        session: &mut Session<'s, C>,
        secret: Option<&[Private]>,
        of_sums: impl FnOnce(&mut Session<'s, C>, &[Fr], &Expr),
    ) -> Result<(Vec<Fr>, Expr)> {
        let (columns, count) = (self.columns, self.size.count);
        let mut at = session.challenges("components", self.size.components());
        let values = secret.map(|secrets| {
            let eq = eq_table(&at);
            let dot = |(v, e): (&i64, &Fr)| from_small(*v) * e;
            let of_kind = |k: usize| {
                let each = secrets.iter();
                each.map(move |s| &s.at_point[k])
            };
            let sums = (0..3).flat_map(of_kind);
            let sums = sums.map(|values| values.iter().zip(&eq).map(dot).sum::<Fr>());
            sums.collect::<Vec<Fr>>()
        });
        let vars = session.send("components", 3 * count, values.as_deref())?;
        let among = session.challenges("vectors", log2_ceil(count));
        let eq = eq_table(&among);
        at.extend(&among);
        let [e, v, twice] = [0, 1, 2].map(|k| Expr::weighted(&vars[k * count..][..count], &eq));
        let here = Weight::evaluation(&at);
        session.claim(here.clone(), vec![(columns.sums, Fr::ONE)], e.clone());
        of_sums(session, &at, &e);
        session.claim(here.clone(), vec![(columns.vector, Fr::ONE)], v);
        let mut root = Expr::zero();
        for ((vector, e), k) in self.each().zip(&eq).zip(0..) {
            let [v, product] = [1, 2].map(|kind| vars[kind * count + k].into());
            session.constrain_product("steps", vector.root(), v, product);
            root.add_scaled(&vector.root(), *e);
        }
        let factor = Fr::from(2 * self.size.norm_factor);
        let twice = twice * Fr::from(2u8);
        let mut distance = |limbs: &[ColumnId], slack: ColumnId, factor: Fr, value: Expr| {
            let mut joined = columns_joined(limbs);
            joined.extend([(slack, -Fr::ONE), (columns.sums, factor)]);
            session.claim(here.clone(), joined, value);
        };
        let (lower, upper) = (&columns.lower, &columns.upper);
        let below = root.clone() - twice.clone();
        distance(lower, columns.lower_slack, -factor, below);
        distance(upper, columns.upper_slack, factor, root + twice);
        Ok((at, e))
    }

    /// The other claims after the lookups, with the point of the first ones.
    pub fn finish<C: Channel>(
        &self,
        session: &mut Session<C>,
        at: &[Fr],
        secret: Option<&[Private]>,
    ) -> Result<()> {
        self.pack(session);
        self.add_squares(session, &at[self.size.components()..], secret)
    }

    /// Packed components: one random combination of the elements of all vectors.
    fn pack<C: Channel>(&self, session: &mut Session<C>) {
        let of_elements = log2_ceil(self.size.elements());
        let among = session.challenges("packed vector", of_elements + log2_ceil(self.size.count));
        let (among, vectors) = among.split_at(of_elements);
        let eq = eq_table(among);
        let of_component = |j| {
            let place = power_of_two(4 * (j % NIBBLES_PER_ELEMENT));
            eq[j / NIBBLES_PER_ELEMENT] * place
        };
        let mut coefficients: Vec<Fr> = (0..self.size.dimension).map(of_component).collect();
        if self.size.count > 1 {
            coefficients.resize(1 << self.size.components(), Fr::ZERO);
        }
        let combination = Weight {
            point: vectors.to_vec(),
            coefficients,
            items: self.size.count,
        };
        let mut value = Expr::zero();
        for (vector, of_vector) in self.each().zip(eq_table(vectors)) {
            for (element, e) in vector.packed().iter().zip(&eq) {
                value.add_scaled(element, of_vector * e);
            }
        }
        session.claim(combination, vec![(self.columns.vector, Fr::ONE)], value);
    }

    /// The sum of squares of each vector, at a point of vectors.
    fn add_squares<C: Channel>(
        &self,
        session: &mut Session<C>,
        vectors: &[Fr],
        secret: Option<&[Private]>,
    ) -> Result<()> {
        let scale = power_of_two(ROOT_SHIFT).inverse().expect("a power of two");
        let mut total = Expr::zero();
        for (vector, e) in self.each().zip(eq_table(vectors)) {
            let sum = vector.square().clone() + vector.left();
            total.add_scaled(&sum, scale * e);
        }
        let components = self.size.components();
        let table = secret.map(|secrets| {
            let mut squared = Vec::new();
            for (k, secret) in secrets.iter().enumerate() {
                squared.resize(k << components, Fr::ZERO);
                squared.extend(secret.squared.iter().map(|e| from_small(*e)));
            }
            vec![squared]
        });
        let (mut tau, claim) = plain(components, total);
        tau.extend(vectors);
        let reduced = sumcheck(session, "squares", &tau, claim, 2, table, Gate::Square)?;
        let e = session.send("squares", 1, reduced.finals.as_deref())?;
        let e = Expr::from(e[0]);
        session.claim(
            Weight::evaluation(&reduced.point),
            vec![(self.columns.sums, Fr::ONE)],
            e.clone(),
        );
        session.constrain_product("squares", e.clone(), e, reduced.claim);
        Ok(())
    }
}

fn one(id: ColumnId) -> Entry {
    Entry::Columns(vec![(id, Fr::ONE)])
}
