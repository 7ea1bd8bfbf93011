//! Runs over pairs: no two records that are compared are near, unless they have one label.
use std::sync::Arc;

use ark_ff::{AdditiveGroup, Field};

use super::gadgets::{one_hot, product_of, Term};
use super::inputs::{session_of, CoalitionSecret, Witness};
use super::statement::{invalid, CoalitionStatement, Columns, Shape, TAG_PAIR};
use crate::channel::{Channel, Proves};
use crate::claims::Bound;
use crate::error::{Error, Result};
use crate::expr::{Expr, Var};
use crate::group::Fr;
use crate::lookup::{lookups, Count, Entry, Segment};
use crate::mle::{eq_table, evaluate, Weight};
use crate::numbers::log2_ceil;
use crate::prover::forms::{apply, dot, form, Forms};
use crate::prover::Prover;
use crate::ranges::count;
use crate::session::{Column, ColumnId, Opening, Session};
use crate::sumcheck::{plain, sumcheck, Product};
use crate::transcript::Oracle;
use crate::verifier::Verifier;

/// The columns that runs over pairs share with the run over records.
pub(super) struct Shared {
    pub(super) vectors: Column,
    pub(super) classes: Vec<Column>,
    pub(super) labels: Vec<Column>,
    pub(super) thresholds: Column,
}

impl Shared {
    pub(super) fn new(columns: &[Column], shape: &Shape) -> Self {
        let columns = Columns::named(columns.iter().collect::<Vec<_>>(), shape);
        let all = |columns: Vec<&Column>| columns.into_iter().cloned().collect();
        Self {
            vectors: columns.vectors.clone(),
            classes: all(columns.classes),
            labels: all(columns.labels),
            thresholds: columns.thresholds.clone(),
        }
    }
}

/// Makes one of the [`CoalitionStatement::runs`] over pairs, given what [`prove_records`] made.
pub fn prove_pairs(
    statement: &CoalitionStatement,
    secret: &CoalitionSecret,
    records: &[u8],
    blindings: &[Fr],
    run: usize,
) -> Result<Vec<u8>> {
    prove_as::<Prover>(statement, secret, records, blindings, run)
}

pub(super) fn prove_as<P: Proves>(
    statement: &CoalitionStatement,
    secret: &CoalitionSecret,
    records: &[u8],
    blindings: &[Fr],
    run: usize,
) -> Result<Vec<u8>> {
    let shape = statement.shape()?;
    let witness = Witness::new(statement, &shape, secret)?;
    let count = shape.runs();
    if run >= count {
        return invalid("run", format!("a number below {count}"), run);
    }
    let distances = witness.run(statement, &shape, run);
    if distances.iter().flatten().any(|d| *d < 0) {
        return Err(Error::Unsatisfied(
            "two near records have different labels".to_owned(),
        ));
    }
    let of_run = PairsRun {
        records,
        blindings,
        run,
    };
    prove_pairs_with::<P>(statement, &witness, distances, &of_run)
}

/// What a run over pairs follows.
pub(super) struct PairsRun<'a> {
    pub(super) records: &'a [u8],
    pub(super) blindings: &'a [Fr],
    pub(super) run: usize,
}

pub(super) fn prove_pairs_with<P: Proves>(
    statement: &CoalitionStatement,
    witness: &Witness,
    distances: Vec<Vec<i64>>,
    of_run: &PairsRun,
) -> Result<Vec<u8>> {
    let shape = statement.shape()?;
    let mut columns = committed::<P::Oracle>(statement, &shape, of_run.records)?;
    let expected: usize = columns.iter().map(|c| c.rows.len()).sum();
    if of_run.blindings.len() != expected {
        return invalid("blindings", expected.to_string(), of_run.blindings.len());
    }
    let mut rest = of_run.blindings;
    let values = witness.columns(statement, &shape).in_order();
    for (column, values) in columns.iter_mut().zip(values) {
        let (own, others) = rest.split_at(column.rows.len());
        let blindings = own.to_vec();
        column.opening = Some(Arc::new(Opening { values, blindings }));
        rest = others;
    }
    let shared = Shared::new(&columns, &shape);
    let transcript = statement.run_transcript(of_run.records, of_run.run);
    let mut session: Session<P> = session_of(transcript, &shape, witness)?;
    let secret = Some((witness, distances));
    pairs(&mut session, statement, &shape, &shared, of_run.run, secret)?;
    Ok(session.close(None)?.into())
}

/// The commitments with which a run over records starts.
pub(super) fn committed<O: Oracle>(
    statement: &CoalitionStatement,
    shape: &Shape,
    proof: &[u8],
) -> Result<Vec<Column>> {
    let transcript = statement.transcript();
    let mut session: Session<Verifier<O>> =
        Session::verifier(transcript, shape.row_variables, proof);
    session.commit_bounded("records", &shape.bounds(statement).in_order(), None)?;
    Ok(session.columns)
}

/// A run over pairs, for both parties.
pub(super) fn pairs<C: Channel>(
    session: &mut Session<C>,
    statement: &CoalitionStatement,
    shape: &Shape,
    shared: &Shared,
    run: usize,
    secret: Option<(&Witness, Vec<Vec<i64>>)>,
) -> Result<()> {
    let (witness, distances) = secret.unzip();
    let mut add = |column: &Column| session.add_column(column.clone());
    let (vectors, thresholds) = (add(&shared.vectors), add(&shared.thresholds));
    let classes: Vec<ColumnId> = shared.classes.iter().map(&mut add).collect();
    let labels: Vec<ColumnId> = shared.labels.iter().map(&mut add).collect();
    let blocks = shape.run(run);
    let size = statement.distance_variables();
    let rows = distances.as_ref().map(|distances| {
        let mut rows = vec![0; 1 << size];
        distances
            .iter()
            .flatten()
            .for_each(|d| count(&mut rows, *d));
        vec![rows]
    });
    let pairs = blocks.len() << (2 * shape.block_variables);
    let bounded = [(1 << size, Bound::up_to(pairs))];
    let rows = session.commit_bounded("pairs", &bounded, rows)?[0];

    // Every distance is one of 0, 1, ..
    let mut segments = vec![Segment {
        variables: size,
        tag: TAG_PAIR,
        entries: vec![Entry::Row],
        count: Count::Table(rows),
    }];
    let mut distances = distances.map(Vec::into_iter);
    segments.extend(blocks.iter().map(|_| Segment {
        variables: 2 * shape.block_variables,
        tag: TAG_PAIR,
        entries: vec![Entry::Derived(distances.as_mut().and_then(Iterator::next))],
        count: Count::Once,
    }));
    let derived = lookups(session, segments)?;

    // A combination of all blocks' distances at one point is a form in what both sides' records are there.
    let rho = session.challenge("blocks");
    let point = derived
        .first()
        .map_or(Vec::new(), |(point, _)| point.clone());
    let (earlier, later) = point.split_at(shape.block_variables);
    let side = shape.record_variables - shape.block_variables;
    let mut factors = vec![vec![Fr::ZERO; 1 << side]; 1 << side];
    let (mut claim, mut power) = (Expr::zero(), Fr::ONE);
    let excuse = Fr::from(statement.excuse() as u64);
    let eq = [eq_table(earlier), eq_table(later)];
    for ((i, j), (_, var)) in blocks.iter().zip(&derived) {
        factors[*i][*j] = power;
        claim.add_term(*var, power);
        let open = compared_weight(statement, shape, (*i, *j), &eq);
        claim.constant -= power * excuse * (Fr::ONE - open);
        power *= rho;
    }
    let forms = witness.map(|w| Forms::new(statement, shape, w, &eq));
    let thresholds_sum = forms.as_ref().map(|f| f.thresholds(&factors));
    let columns = vec![(thresholds, Fr::ONE)];
    let table = |session: &Session<C>| {
        let known = session.known();
        known.map(|known| known.table(&columns, 2 * shape.class_variables))
    };
    let made = forms.as_ref().zip(thresholds_sum.as_ref());
    let sums = made.zip(table(session)).map(|((f, z), of_classes)| {
        [
            dot(&of_classes, z),
            form(&factors, &f.components[0], &f.components[1]),
            form(&factors, &f.labels[0], &f.labels[1]),
        ]
    });
    let v = session.send("pairs", 3, sums.as_ref().map(|s| &s[..]))?;
    let [of_classes, of_components, of_labels] = [0, 1, 2].map(|k| Expr::from(v[k]));
    let total = of_classes.clone() - of_components.clone() + of_labels.clone() * excuse;
    session.constrain("pairs", total - claim);
    let at = |ended: &Ended, low: &[Fr]| [low, &ended.block].concat();

    // Dot products: what is left is a component of a record on each side.
    let tables = forms.as_ref().map(|f| f.components.clone());
    let variables = shape.component_variables;
    let [left, right] = bilinear(session, &factors, variables, tables, of_components)?;
    for (ended, low) in [(&left, earlier), (&right, later)] {
        let point = [&ended.low, &at(ended, low)[..]].concat();
        let columns = vec![(vectors, Fr::ONE)];
        session.claim(Weight::evaluation(&point), columns, ended.value.into());
    }

    // Labels: whether an account has a label, weighted by its records.
    let tables = forms.as_ref().map(|f| f.labels.clone());
    let variables = shape.account_variables;
    let ended = bilinear(session, &factors, variables, tables, of_labels)?;
    let terms = ended
        .iter()
        .zip([earlier, later])
        .map(|(ended, low)| {
            let of_records = eq_table(&at(ended, low));
            let mut weights = vec![Fr::ZERO; 1 << shape.account_variables];
            for (account, e) in statement.accounts.iter().zip(of_records) {
                weights[*account] += e;
            }
            Term {
                weights,
                at: ended.low.clone(),
                value: ended.value.into(),
            }
        })
        .collect();
    one_hot(session, &labels, shape.account_variables, terms, false)?;

    // Thresholds: first the pair of classes, then whether a record on each side has its class.
    let (tau, claim) = plain(2 * shape.class_variables, of_classes);
    let tables = table(session).zip(thresholds_sum);
    let tables = tables.map(|(of_classes, z)| vec![of_classes, z]);
    let reduced = sumcheck(
        session,
        "thresholds of pairs",
        &tau,
        claim,
        2,
        tables,
        Product,
    )?;
    let v = product_of(
        session,
        "thresholds of pairs",
        reduced.finals.as_deref(),
        reduced.claim,
    )?;
    session.claim(Weight::evaluation(&reduced.point), columns, v[0].into());
    let (u, v_point) = reduced.point.split_at(shape.class_variables);
    let tables = forms.map(|f| {
        let fold = |table: &[Fr], point: &[Fr]| {
            let eq = eq_table(point);
            table.chunks(eq.len()).map(|run| dot(run, &eq)).collect()
        };
        [fold(&f.classes[0], u), fold(&f.classes[1], v_point)]
    });
    let ended = bilinear(session, &factors, 0, tables, v[1].into())?;
    let terms = ended
        .iter()
        .zip([(earlier, u), (later, v_point)])
        .map(|(ended, (low, class))| Term {
            weights: eq_table(&at(ended, low)),
            at: class.to_vec(),
            value: ended.value.into(),
        })
        .collect();
    one_hot(session, &classes, shape.record_variables, terms, false)
}

/// sum of eq(earlier, il) eq(later, jl) over the pairs of two blocks that are compared.
pub(super) fn compared_weight(
    statement: &CoalitionStatement,
    shape: &Shape,
    (i, j): (usize, usize),
    eq: &[Vec<Fr>; 2],
) -> Fr {
    let side = 1 << shape.block_variables;
    let mut sums = vec![Fr::ZERO];
    for e in &eq[0] {
        sums.push(sums[sums.len() - 1] + e);
    }
    let within = |record: usize| record.clamp(i * side, (i + 1) * side) - i * side;
    let records = (j * side..shape.records.min((j + 1) * side)).zip(&eq[1]);
    records
        .map(|(j, e)| {
            let (from, to) = (within(statement.first[j]), within(j));
            *e * (sums[to.max(from)] - sums[from])
        })
        .sum()
}

/// Where a side of a form has been reduced to.
pub(super) struct Ended {
    pub(super) low: Vec<Fr>,
    pub(super) block: Vec<Fr>,
    pub(super) value: Var,
}

/// sum over I, J, z of factors[I][J] left(z, I) right(z, J) = claim, reduced to one value of each side; z is the low
/// part of an index.
pub(super) fn bilinear<C: Channel>(
    session: &mut Session<C>,
    factors: &[Vec<Fr>],
    low: usize,
    tables: Option<[Vec<Fr>; 2]>,
    claim: Expr,
) -> Result<[Ended; 2]> {
    let high = log2_ceil(factors.len());
    let (tau, claim) = plain(low + high, claim);
    let (left, right) = tables.map(<(_, _)>::from).unzip();
    let tables = left
        .zip(right.as_ref())
        .map(|(left, right)| vec![left, apply(factors, right)]);
    let reduced = sumcheck(session, "earlier records", &tau, claim, 2, tables, Product)?;
    let v = product_of(
        session,
        "earlier records",
        reduced.finals.as_deref(),
        reduced.claim,
    )?;
    let (z, block) = reduced.point.split_at(low);
    let earlier = Ended {
        low: z.to_vec(),
        block: block.to_vec(),
        value: v[0],
    };

    let eq = eq_table(block);
    let row: Vec<Fr> = (0..factors.len())
        .map(|j| factors.iter().zip(&eq).map(|(f, e)| f[j] * e).sum())
        .collect();
    let (tau, claim) = plain(high, v[1].into());
    let tables = right.map(|right| {
        let eq = eq_table(z);
        vec![
            row.clone(),
            right.chunks(eq.len()).map(|run| dot(run, &eq)).collect(),
        ]
    });
    let reduced = sumcheck(session, "later records", &tau, claim, 2, tables, Product)?;
    let value = reduced.finals.map(|f| f[1]);
    let value = session.send_one("later records", value)?;
    let weight = evaluate(&row, &reduced.point);
    session.constrain("later records", Expr::from(value) * weight - reduced.claim);
    let later = Ended {
        low: z.to_vec(),
        block: reduced.point,
        value,
    };
    Ok([earlier, later])
}
