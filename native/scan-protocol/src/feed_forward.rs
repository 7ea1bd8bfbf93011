//! One feed-forward block of the integer encoder, with its residual and its LayerNorm: `docs/scan/feed-forward.md`.
//!
//! No window uses this run yet, and [`crate::protocol::name`] does not cover it.
use ark_ff::{AdditiveGroup, Field};

use crate::channel::{Channel, Verifies};
use crate::engine::Engine;
use crate::equation::Equation;
use crate::error::Result;
use crate::expr::Expr;
use crate::gates::Gate;
use crate::group::Fr;
use crate::lookup::{lookups, Count, Entry, QueryClaim, Segment};
use crate::mle::{eq_at, eq_table, evaluate_list, Weight};
use crate::numbers::{from_small, log2_ceil, power_of_two};
use crate::prover::{ProverWitness, Weighting};
use crate::session::{Column, ColumnId, Opening, Session};
use crate::sumcheck::{plain, products, sumcheck};

pub mod statement;

pub use statement::{
    limb_widths, Blocks, Columns, FeedForwardStatement, Parameters, Shape, Weights, LIMB_BITS,
    MAX_INNER, MAX_PLACES, MAX_WIDTH, ROOT_LIMBS, ROOT_STRIDE, SLACK_LIMBS, TAG_ACTIVATION,
    TAG_GELU,
};
use statement::{ACTIVATION_BITS, ACTIVATION_LIMIT, ROOT_BITS};

/// A prover's values before the first challenge.
pub struct Private<'s> {
    /// The openings of x and of y, one a column.
    pub inputs: Vec<std::sync::Arc<Opening>>,
    pub outputs: Vec<std::sync::Arc<Opening>>,
    pub columns: Vec<Vec<i64>>,
    /// The top limbs of both remainders, one list a block.
    pub dense_tops: Tops,
    pub norm_tops: Tops,
    /// The rows of a, one a place.
    pub deviations: &'s [Vec<i64>],
    /// R, V, s_1 and s_2 of each place.
    pub roots: &'s [[Fr; 4]],
}

/// Verifies a proof of one block.
pub fn verify_feed_forward<'p, V: Verifies<'p>>(
    statement: &FeedForwardStatement,
    proof: &'p [u8],
) -> Result<()> {
    statement.check()?;
    let transcript = statement.transcript();
    let session: Session<V> = Session::verifier(transcript, statement.row_variables(), proof);
    let equation: Equation = feed_forward_protocol(session, statement, None)?.into();
    equation.verify::<V::Engine>(&[])
}

fn one(id: ColumnId) -> Entry {
    Entry::Columns(vec![(id, Fr::ONE)])
}

fn looked_up(variables: usize, tag: u64, entries: Vec<Entry>) -> Segment {
    Segment {
        variables,
        tag,
        entries,
        count: Count::Once,
    }
}

fn table(variables: usize, tag: u64, entries: Vec<Entry>, multiplicity: ColumnId) -> Segment {
    Segment {
        variables,
        tag,
        entries,
        count: Count::Table(multiplicity),
    }
}

/// Both matrices of the columns of places.
struct Places {
    x: Vec<ColumnId>,
    y: Vec<ColumnId>,
}

/// The top limbs of a remainder: a list for each block.
pub type Tops = Vec<Vec<i64>>;

/// The segments in the order of the page. The derived ones are first the dense layer's blocks and then the LayerNorm's, unless
/// those are larger.
fn segments(
    statement: &FeedForwardStatement,
    places: &Places,
    columns: &Columns<ColumnId>,
    tops: Option<(Tops, Tops)>,
) -> Vec<Segment> {
    let shape = &statement.weights.shape;
    let of_places = log2_ceil(statement.places);
    let (inner, width) = (shape.inner_blocks(), shape.width_blocks());
    let (dense_tops, norm_tops) = tops.unzip();
    // The limbs of a remainder of so many bits: those below the top are columns, the top ones derived.
    let remainder = |v, limbs: &[Vec<ColumnId>], bits, tops: Option<Tops>, blocks| {
        let widths = limb_widths(bits);
        let top_tag = widths[widths.len() - 1] as u64;
        let below = limbs.iter().flatten();
        let mut out: Vec<Segment> = below
            .map(|limb| looked_up(v, LIMB_BITS as u64, vec![one(*limb)]))
            .collect();
        out.extend((0..blocks).map(|block| {
            let top = Entry::Derived(tops.as_ref().map(|t| t[block].clone()));
            looked_up(v, top_tag, vec![top])
        }));
        out
    };
    let mut out = Vec::new();
    let v = of_places + inner.variables;
    for (z, g) in columns.z.iter().zip(&columns.g) {
        out.push(looked_up(v, TAG_GELU, vec![one(*z), one(*g)]));
    }
    let (limbs, bits) = (&columns.dense_limbs, shape.dense_shift());
    out.extend(remainder(v, limbs, bits, dense_tops, inner.blocks));
    let v = of_places + width.variables;
    for activation in places.x.iter().chain(&places.y) {
        out.push(looked_up(v, TAG_ACTIVATION, vec![one(*activation)]));
    }
    let (limbs, bits) = (&columns.norm_limbs, shape.norm_shift());
    out.extend(remainder(v, limbs, bits, norm_tops, width.blocks));
    let v = of_places + log2_ceil(ROOT_STRIDE);
    out.push(looked_up(v, LIMB_BITS as u64, vec![one(columns.roots)]));
    let activations = || Entry::Public((-ACTIVATION_LIMIT..ACTIVATION_LIMIT).collect());
    let gelu = Entry::Public(statement.weights.gelu.clone());
    out.push(table(
        ACTIVATION_BITS,
        TAG_GELU,
        vec![activations(), gelu],
        columns.of_gelu,
    ));
    out.push(table(
        ACTIVATION_BITS,
        TAG_ACTIVATION,
        vec![activations()],
        columns.of_activations,
    ));
    for (width, id) in shape.widths().into_iter().zip(&columns.of_limbs) {
        out.push(table(width, width as u64, vec![Entry::Row], *id));
    }
    out
}

/// Rows of a quotient and of its remainder at the lookup's point, all blocks as one.
struct Divided<'d> {
    label: &'static str,
    /// The blocks' columns of the quotient, and of each limb below the top.
    quotient: &'d [ColumnId],
    limbs: &'d [Vec<ColumnId>],
    tops: &'d [QueryClaim],
    shift: usize,
    powers: &'d [Fr],
}

impl Divided<'_> {
    /// Sends the value of all columns in it, claims it, and returns the dividend without its half.
    fn dividend<C: Channel>(&self, session: &mut Session<C>) -> Result<Expr> {
        let (low, _) = &self.tops[0];
        let mut columns = Vec::new();
        for (block, power) in self.powers.iter().enumerate() {
            columns.push((self.quotient[block], power_of_two(self.shift) * power));
            for (k, limb) in self.limbs.iter().enumerate() {
                columns.push((limb[block], power_of_two(LIMB_BITS * k) * power));
            }
        }
        let here = Weight::evaluation(low);
        let known = session.known();
        let value = known.map(|known| known.functional(&here, &columns));
        let mut dividend = Expr::from(session.send_one(self.label, value)?);
        session.claim(here, columns, dividend.clone());
        let half = power_of_two(self.shift - 1);
        let of_top = power_of_two(LIMB_BITS * self.limbs.len());
        for ((_, top), power) in self.tops.iter().zip(self.powers) {
            dividend.add_term(*top, of_top * power);
            dividend.constant -= half * power;
        }
        Ok(dividend)
    }
}

/// lambda^b eq(low, j) for component b 2^m + j.
fn of_components(powers: &[Fr], low: &[Fr]) -> Vec<Fr> {
    let eq = eq_table(low);
    let all = powers.iter().flat_map(|p| eq.iter().map(move |e| *p * e));
    all.collect()
}

fn dot(values: &[i64], weights: &[Fr]) -> Fr {
    let pairs = values.iter().zip(weights);
    pairs.map(|(v, w)| from_small(*v) * w).sum()
}

/// The combination of a matrix's rows under eq of a point of places; a row is 2^m entries of each of its columns.
fn row_at(
    secrets: &dyn ProverWitness,
    columns: &[Column],
    ids: &[ColumnId],
    blocks: Blocks,
    eq: &[Fr],
) -> Vec<Fr> {
    let of_block = |id: &ColumnId| {
        let opening = columns[id.0].opening.as_ref();
        let values = opening.map_or(&[][..], |o| &o.values[..]);
        let rows = values.chunks_exact(blocks.entries()).zip(eq);
        let rows: Vec<(&[i64], Fr)> = rows.map(|(row, e)| (row, *e)).collect();
        secrets.combine(&rows)
    };
    ids.iter().flat_map(of_block).collect()
}

/// A row of a matrix, extended at a point, as columns at one place: the weight and the columns' factors.
fn entry_at(
    ids: &[ColumnId],
    blocks: Blocks,
    component: &[Fr],
    place: &[Fr],
) -> (Weight, Vec<(ColumnId, Fr)>) {
    let (low, high) = component.split_at(blocks.variables);
    let point = [low, place].concat();
    let columns = ids.iter().enumerate();
    let columns = columns.map(|(b, id)| (*id, eq_at(high, b))).collect();
    (Weight::evaluation(&point), columns)
}

/// Factors of a place's limbs in the column of roots.
fn root_limbs(first: usize, count: usize) -> Vec<Fr> {
    let mut out = vec![Fr::ZERO; ROOT_STRIDE];
    for (k, factor) in out[first..][..count].iter_mut().enumerate() {
        *factor = power_of_two(LIMB_BITS * k);
    }
    out
}

/// The protocol, for both parties.
pub fn feed_forward_protocol<'a, C: Channel>(
    mut session: Session<'a, C>,
    statement: &'a FeedForwardStatement,
    mut secret: Option<Private>,
) -> Result<C::Closed> {
    statement.check()?;
    let (weights, places) = (statement.weights, statement.places);
    let shape = &weights.shape;
    let (inner, width) = (shape.inner_blocks(), shape.width_blocks());
    let of_places = log2_ceil(places);
    let fixed = |n: usize| power_of_two(n);

    let openings = secret.as_mut().map(|s| {
        let [x, y] = [&mut s.inputs, &mut s.outputs].map(std::mem::take);
        (x, y)
    });
    let (of_x, of_y) = openings.unzip();
    let mut add = |rows: &[Vec<_>], openings: Option<Vec<_>>| {
        let mut openings = openings.map(Vec::into_iter);
        let add = |rows: &Vec<_>| {
            session.add_column(Column {
                variables: of_places + width.variables,
                rows: rows.clone(),
                opening: openings.as_mut().and_then(Iterator::next),
            })
        };
        rows.iter().map(add).collect::<Vec<ColumnId>>()
    };
    let at = Places {
        x: add(statement.inputs, of_x),
        y: add(statement.outputs, of_y),
    };
    let bounds = Columns::bounds(shape, places).in_order();
    let values = secret.as_mut().map(|s| std::mem::take(&mut s.columns));
    let ids = session.commit_bounded("feed-forward columns", &bounds, values)?;
    let columns = Columns::named(ids, shape);

    let tops = secret.as_mut().map(|s| {
        let [dense, norm] = [&mut s.dense_tops, &mut s.norm_tops].map(std::mem::take);
        (dense, norm)
    });
    let mut derived = lookups(&mut session, segments(statement, &at, &columns, tops))?;
    // Larger segments come first in the tree.
    if inner.variables < width.variables {
        derived.rotate_left(width.blocks);
    }
    let (dense_tops, norm_tops) = derived.split_at(inner.blocks);
    let (dense_point, norm_point) = (&dense_tops[0].0, &norm_tops[0].0);

    // Both divisions at the lookup's point, each with all blocks as one.
    let lambda = session.challenge("feed-forward blocks");
    let powers: Vec<Fr> = std::iter::successors(Some(Fr::ONE), |p| Some(*p * lambda))
        .take(inner.blocks.max(width.blocks))
        .collect();
    let mut of_dense = Divided {
        label: "dense",
        quotient: &columns.z,
        limbs: &columns.dense_limbs,
        tops: dense_tops,
        shift: shape.dense_shift(),
        powers: &powers[..inner.blocks],
    }
    .dividend(&mut session)?;
    let mut of_norm = Divided {
        label: "norm",
        quotient: &at.y,
        limbs: &columns.norm_limbs,
        tops: norm_tops,
        shift: shape.norm_shift(),
        powers: &powers[..width.blocks],
    }
    .dividend(&mut session)?;
    let (dense_low, dense_place) = dense_point.split_at(inner.variables);
    let (norm_low, norm_place) = norm_point.split_at(width.variables);
    let outputs = of_components(&powers[..inner.blocks], dense_low);
    of_dense.constant -= fixed(shape.x as usize) * dot(&weights.first_bias, &outputs);
    let mut gains = of_components(&powers[..width.blocks], norm_low);
    of_norm.constant -= fixed(ROOT_BITS) * dot(&weights.bias, &gains);
    for (gain, c) in gains.iter_mut().zip(&weights.gain) {
        *gain *= from_small(*c);
    }

    // a R c, and both inequalities of R, at one place.
    let chi = session.challenge("roots");
    let target = Fr::from(shape.width as u64) * fixed(2 * ROOT_BITS);
    let claim = of_norm + (chi * target - chi.square()).into();
    let tables = secret.as_ref().map(|s| {
        let column = |k: usize| s.roots.iter().map(|place| place[k]).collect::<Vec<Fr>>();
        let secrets = session.channel.secrets().expect("a prover's");
        let sums = s.deviations.iter().map(|row| secrets.dot(row, &gains));
        vec![column(0), sums.collect(), column(1), column(2), column(3)]
    });
    let gate = Gate::Root { chi };
    let reduced = sumcheck(&mut session, "roots", norm_place, claim, 3, tables, gate)?;
    let place = reduced.point;
    let values = reduced.finals.map(|f| {
        let rv = f[0] * f[2];
        [f[0], f[1], f[2], f[3], f[4], f[0] * f[1], rv, f[0] * rv]
    });
    let vars = session.send("roots", 8, values.as_ref().map(|v| &v[..]))?;
    let [root, sum, variance, below, above, scaled, once, twice] =
        std::array::from_fn(|i| Expr::from(vars[i]));
    session.constrain_product("norm", root.clone(), sum.clone(), scaled.clone());
    session.constrain_product("root", root.clone(), variance.clone(), once.clone());
    session.constrain_product("root", root.clone(), once.clone(), twice.clone());
    let slacks = below.clone() + above.clone() - once * Fr::from(2u8) - variance.clone();
    let gate = scaled + (twice + below.clone()) * chi + slacks * chi.square();
    session.constrain("roots", gate - reduced.claim);
    let mut claim_limbs = |first: usize, count: usize, value: Expr| {
        let weight = Weight {
            point: place.clone(),
            coefficients: root_limbs(first, count),
            items: places,
        };
        session.claim(weight, vec![(columns.roots, Fr::ONE)], value);
    };
    claim_limbs(0, ROOT_LIMBS, root);
    claim_limbs(ROOT_LIMBS, SLACK_LIMBS, below);
    claim_limbs(ROOT_LIMBS + SLACK_LIMBS, SLACK_LIMBS, above);

    // V = sum of a^2, and the sum that R multiplies, at one component of a.
    let mu = session.challenge("deviations");
    let components = log2_ceil(shape.width);
    let (mut tau, claim) = plain(
        components,
        Expr::combination([(&variance, Fr::ONE), (&sum, mu)]),
    );
    tau.extend(&place);
    let tables = secret.as_ref().map(|s| {
        let secrets = session.channel.secrets().expect("a prover's");
        let size = 1usize << components;
        let (mut of_a, mut raised) = (Vec::new(), Vec::new());
        for row in s.deviations {
            let row = secrets.combine(&[(row, Fr::ONE)]);
            raised.extend(row.iter().zip(&gains).map(|(a, w)| *a + mu * w));
            of_a.extend(row);
            for table in [&mut of_a, &mut raised] {
                table.resize(table.len().next_multiple_of(size), Fr::ZERO);
            }
        }
        vec![of_a, raised]
    });
    let reduced = sumcheck(
        &mut session,
        "deviations",
        &tau,
        claim,
        2,
        tables,
        Gate::Product,
    )?;
    let (component, row) = reduced.point.split_at(components);
    let finals = reduced.finals.map(|f| f[0]);
    let deviation = Expr::from(session.send_one("deviations", finals)?);
    let eq = eq_table(component);
    let gain: Fr = gains.iter().zip(&eq).map(|(w, e)| *w * e).sum();
    session.constrain_product(
        "deviation",
        deviation.clone(),
        deviation.clone() + (mu * gain).into(),
        reduced.claim,
    );
    let all: Fr = eq[..shape.width].iter().sum();
    let of_width = Fr::from(shape.width as u64);
    let centred: Vec<Fr> = eq[..shape.width]
        .iter()
        .map(|e| of_width * e - all)
        .collect();
    let of_bias = fixed(shape.g as usize) * dot(&weights.second_bias, &centred);
    let of_residual = deviation - of_bias.into();

    // Both matrices and the residual, at one input.
    let nu = session.challenge("matrices");
    let claim = Expr::combination([(&of_dense, Fr::ONE), (&of_residual, nu)]);
    let first = C::Engine::rows(&weights.first, &outputs);
    let shifted = nu * fixed(shape.residual_shift());
    let residual: Vec<Fr> = centred.iter().map(|h| shifted * h).collect();
    let mut second = C::Engine::rows(&weights.second, &centred);
    second.iter_mut().for_each(|f| *f *= nu);
    let variables = log2_ceil(shape.width.max(shape.inner));
    let tables = session.channel.secrets().map(|secrets| {
        let (before, after) = (eq_table(dense_place), eq_table(row));
        let row_at = |ids: &[ColumnId], blocks, eq: &[Fr]| {
            row_at(secrets, &session.columns, ids, blocks, eq)
        };
        let of = |factors: &Vec<Fr>, row| (Weighting::Table(factors.clone()), row);
        vec![
            of(&first, row_at(&at.x, width, &before)),
            of(&residual, row_at(&at.x, width, &after)),
            of(&second, row_at(&columns.g, inner, &after)),
        ]
    });
    let reduced = products(&mut session, "matrices", variables, claim, tables)?;
    let vars = session.send("matrices", 3, reduced.finals.as_deref())?;
    let mut rest = reduced.claim;
    for (factors, var) in [&first, &residual, &second].into_iter().zip(&vars) {
        rest.add_term(*var, -evaluate_list(factors, &reduced.point));
    }
    session.constrain("matrices", rest);
    let point = &reduced.point[..];
    for ((ids, blocks, place), var) in [
        (&at.x, width, dense_place),
        (&at.x, width, row),
        (&columns.g, inner, row),
    ]
    .into_iter()
    .zip(&vars)
    {
        let (weight, columns) = entry_at(ids, blocks, point, place);
        session.claim(weight, columns, (*var).into());
    }
    session.close(None)
}
