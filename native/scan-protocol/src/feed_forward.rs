//! One feed-forward block of the integer encoder, with its residual and its LayerNorm: `docs/scan/feed-forward.md`.
//!
//! No window uses this run yet, and [`crate::protocol::name`] does not cover it.
use ark_ff::Field;

use crate::block::*;
use crate::channel::{Channel, Verifies};
use crate::equation::Equation;
use crate::error::Result;
use crate::expr::Expr;
use crate::group::Fr;
use crate::lookup::{Count, Entry, QueryClaim};
use crate::mle::{eq_table, evaluate_list, Weight};
use crate::numbers::{log2_ceil, power_of_two};
use crate::prover::Weighting;
use crate::session::{ColumnId, Opening, Session};
use crate::sumcheck::products;

pub mod statement;

pub use statement::{
    Columns, FeedForwardStatement, Multiplicities, Shape, Vectors, Weights, MAX_INNER,
};

/// A prover's values before the first challenge.
pub struct Private<'s> {
    /// The openings of x and of y, one a column.
    pub inputs: Vec<std::sync::Arc<Opening>>,
    pub outputs: Vec<std::sync::Arc<Opening>>,
    pub columns: Vec<Vec<i64>>,
    /// The top limbs of both remainders, one list a block.
    pub dense_tops: Tops,
    pub norm_tops: Tops,
    pub norm: NormPrivate<'s>,
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

/// Appends the block's own segments in the order of the page, without the range of x and without tables.
pub fn look_up(
    segments: &mut Segments,
    shape: &Shape,
    places: usize,
    at: &Places,
    columns: &Columns<ColumnId>,
    tops: Option<[Tops; 2]>,
) {
    let of_places = log2_ceil(places);
    let (inner, width) = (shape.inner_blocks(), shape.width_blocks());
    let (dense_tops, norm_tops) = tops.map(|[dense, norm]| (dense, norm)).unzip();
    let v = of_places + inner.variables;
    for (z, g) in columns.z.iter().zip(&columns.g) {
        segments.look_up(v, TAG_GELU, vec![one(*z), one(*g)]);
    }
    let (limbs, bits) = (&columns.dense_limbs, shape.dense_shift());
    segments.remainder(v, limbs, bits, dense_tops, inner.blocks);
    let v = of_places + width.variables;
    segments.activations(v, &at.y);
    let (limbs, bits) = (&columns.norm_limbs, shape.norm_shift());
    segments.remainder(v, limbs, bits, norm_tops, width.blocks);
    let v = of_places + log2_ceil(ROOT_STRIDE);
    segments.look_up(v, LIMB_BITS as u64, vec![one(columns.roots)]);
}

/// Appends the table of GELU.
pub fn look_up_gelu(segments: &mut Segments, gelu: &[i64], of_gelu: ColumnId) {
    let z = Entry::Public((-ACTIVATION_LIMIT..ACTIVATION_LIMIT).collect());
    let entries = vec![z, Entry::Public(gelu.to_vec())];
    segments.table(ACTIVATION_BITS, TAG_GELU, entries, Count::Table(of_gelu));
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

    let openings = secret
        .as_mut()
        .map(|s| [&mut s.inputs, &mut s.outputs].map(std::mem::take));
    let variables = log2_ceil(places) + shape.width_blocks().variables;
    let matrices = [statement.inputs, statement.outputs];
    let at = Places::add(&mut session, variables, matrices, openings);
    let matrices = [&weights.first, &weights.second].map(|m| m.add(&mut session));
    let mut bounds = Columns::bounds(shape, places).in_order();
    bounds.extend(Multiplicities::bounds(shape, places).in_order());
    let values = secret.as_mut().map(|s| std::mem::take(&mut s.columns));
    let ids = session.commit_bounded("feed-forward columns", &bounds, values)?;
    let mut ids = ids.into_iter();
    let columns = Columns::named(&mut ids, shape);
    let multiplicities = Multiplicities::named(ids);

    let tops = secret
        .as_mut()
        .map(|s| [&mut s.dense_tops, &mut s.norm_tops].map(std::mem::take));
    let mut segments = Segments::default();
    segments.activations(variables, &at.x);
    look_up(&mut segments, shape, places, &at, &columns, tops);
    look_up_gelu(&mut segments, &weights.gelu, multiplicities.of_gelu);
    segments.tables(multiplicities.shared, &shape.widths());
    let derived = segments.claim(&mut session)?;
    let norm = secret.as_ref().map(|s| &s.norm);
    block(
        &mut session,
        (weights, &matrices),
        places,
        (&at, &columns),
        &derived,
        norm,
    )?;
    session.close(None)
}

/// The block's claims after the lookups, with the claims about its derived entries.
pub fn block<C: Channel>(
    session: &mut Session<C>,
    (weights, matrices): (&Weights, &[Vec<ColumnId>; 2]),
    places: usize,
    (at, columns): (&Places, &Columns<ColumnId>),
    derived: &[QueryClaim],
    secret: Option<&NormPrivate>,
) -> Result<()> {
    let shape = &weights.shape;
    let (inner, width) = (shape.inner_blocks(), shape.width_blocks());
    let fixed = power_of_two;
    let (dense_tops, norm_tops) = derived.split_at(inner.blocks);
    let dense_point = &dense_tops[0].0;

    // Both divisions at the lookup's point, each with all blocks as one.
    let lambda = session.challenge("feed-forward blocks");
    let powers = powers(lambda, inner.blocks.max(width.blocks));
    let mut of_dense = Divided {
        label: "dense",
        quotient: &columns.z,
        divisor: fixed(shape.dense_shift()),
        limbs: &columns.dense_limbs,
        tops: dense_tops,
        half: fixed(shape.dense_shift() - 1),
        powers: &powers[..inner.blocks],
    }
    .dividend(session)?;
    let (dense_low, dense_place) = dense_point.split_at(inner.variables);
    let outputs = of_components(&powers[..inner.blocks], dense_low);
    of_dense.constant -= fixed(shape.x as usize) * dot(&weights.first_bias, &outputs);
    let deviation = Normed {
        norm: &weights.norm,
        places,
        outputs: &at.y,
        limbs: &columns.norm_limbs,
        roots: columns.roots,
        tops: norm_tops,
        powers: &powers,
    }
    .reduce(session, secret)?;
    let (row, centred) = (&deviation.place[..], &deviation.centred);
    let of_bias = fixed(shape.g as usize) * dot(&weights.second_bias, centred);
    let of_residual = deviation.value.clone() - of_bias.into();

    // Both matrices and the residual, at one input.
    let nu = session.challenge("matrices");
    let claim = Expr::combination([(&of_dense, Fr::ONE), (&of_residual, nu)]);
    let shifted = nu * fixed(shape.residual_shift());
    let residual: Vec<Fr> = centred.iter().map(|h| shifted * h).collect();
    let last = CentredRows {
        matrix: &weights.second,
        ids: &matrices[1],
        deviation: &deviation,
    };
    // F1, and both sums of the second matrix: the tables that the prover alone computes.
    let hidden = session.known().map(|known| {
        let first = weights.first.products(&known, &matrices[0], &outputs);
        (first, last.tables(&known))
    });
    let variables = log2_ceil(shape.width.max(shape.inner));
    let secrets = session.channel.secrets().zip(hidden.as_ref());
    let tables = secrets.map(|(secrets, (first, sums))| {
        let (before, after) = (eq_table(dense_place), eq_table(row));
        let row_at = |ids: &[ColumnId], blocks, eq: &[Fr]| {
            row_at(secrets, &session.columns, ids, blocks, eq)
        };
        let second = last.combine(sums).iter().map(|f| nu * f).collect();
        vec![
            (
                Weighting::Table(first.clone()),
                row_at(&at.x, width, &before),
            ),
            (
                Weighting::Table(residual.clone()),
                row_at(&at.x, width, &after),
            ),
            (Weighting::Table(second), row_at(&columns.g, inner, &after)),
        ]
    });
    let reduced = products(session, "matrices", variables, claim, tables)?;
    let point = &reduced.point[..];
    let sent = reduced.finals.zip(hidden);
    let values = sent.map(|(values, hidden)| last.finals(values, hidden, point));
    let vars = session.send("matrices", 8, values.as_deref())?;
    let [x, after, g, first, weighed, all, of_first, of_second] = std::array::from_fn(|k| vars[k]);
    session.constrain_product("first matrix", first.into(), x.into(), of_first.into());
    let second = last.claim(session, point, [weighed, all]);
    session.constrain_product("second matrix", second, g.into(), of_second.into());
    let mut rest = reduced.claim - Expr::from(of_first);
    rest.add_term(of_second, -nu);
    rest.add_term(after, -evaluate_list(&residual, point));
    session.constrain("matrices", rest);
    let here = Weight::evaluation(&[dense_low, &point[..width.variables]].concat());
    let of_first = (weights.first).factors(&matrices[0], point, |block| powers[block]);
    session.claim(here, of_first, first.into());
    for ((ids, blocks, place), var) in [
        (&at.x, width, dense_place),
        (&at.x, width, row),
        (&columns.g, inner, row),
    ]
    .into_iter()
    .zip(vars)
    {
        let (weight, columns) = entry_at(ids, blocks, point, place);
        session.claim(weight, columns, var.into());
    }
    Ok(())
}
