//! Runs over pairs: two compared records are near only if they have one label.
use ark_ff::{AdditiveGroup, Field};

use super::gadgets::{one_hot, sum_of_products, Term};
use super::statement::{CoalitionStatement, Columns, Shape, TAG_PAIR};
use crate::channel::{Channel, Verifies};
use crate::claims::Bound;
use crate::error::Result;
use crate::expr::{Expr, Var};
use crate::group::Fr;
use crate::lookup::{lookups, Count, Entry, Segment};
use crate::mle::{eq_table, evaluate, Weight};
use crate::numbers::log2_ceil;
use crate::session::{Column, ColumnId, Session};
use crate::sumcheck::{plain, sumcheck, Gate};

/// The prover's private values in a run.
pub struct Private<'a> {
    /// The distances of each pair of blocks.
    pub distances: Vec<Vec<i64>>,
    /// How often each distance occurs.
    pub rows: Vec<i64>,
    /// The sums over the records of all blocks under eq of a point on either side, and under factors of pairs of blocks.
    pub forms: MakesLinearForms<'a>,
}

/// Computes the forms from eq on both sides and the factors.
pub type MakesLinearForms<'a> = &'a dyn Fn(&[Vec<Fr>; 2], &[Vec<Fr>]) -> LinearForms;

/// For the earlier and the later side, by block: sums over the block's records, weighted by eq.
pub struct LinearForms {
    /// Components: block b, component k at k + 2^component_variables b.
    pub components: [Vec<Fr>; 2],
    /// Sums over the records with each label.
    pub labels: [Vec<Fr>; 2],
    /// Sums over the records with each class.
    pub classes: [Vec<Fr>; 2],
    /// The weight of the thresholds of two classes u, v, at u + 2^class_variables v.
    pub thresholds: Vec<Fr>,
}

/// The columns that runs over pairs share with the run over records.
pub struct Shared {
    pub vectors: Column,
    pub classes: Vec<Column>,
    pub labels: Vec<Column>,
    pub thresholds: Column,
}

impl Shared {
    pub fn new(columns: &[Column], shape: &Shape) -> Self {
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

/// The commitments at the beginning of a run over records.
pub fn committed<'p, V: Verifies<'p>>(
    statement: &CoalitionStatement,
    shape: &Shape,
    proof: &'p [u8],
) -> Result<Vec<Column>> {
    let transcript = statement.transcript();
    let mut session: Session<V> = Session::verifier(transcript, shape.row_variables, proof);
    session.commit_bounded("records", &shape.bounds(statement).in_order(), None)?;
    Ok(session.columns)
}

/// A run over pairs, for both parties.
pub fn pairs<C: Channel>(
    session: &mut Session<C>,
    statement: &CoalitionStatement,
    shape: &Shape,
    shared: &Shared,
    run: usize,
    secret: Option<Private>,
) -> Result<()> {
    let forms = secret.as_ref().map(|s| s.forms);
    let (rows, distances) = secret.map(|s| (vec![s.rows], s.distances)).unzip();
    let mut add = |column: &Column| session.add_column(column.clone());
    let (vectors, thresholds) = (add(&shared.vectors), add(&shared.thresholds));
    let classes: Vec<ColumnId> = shared.classes.iter().map(&mut add).collect();
    let labels: Vec<ColumnId> = shared.labels.iter().map(&mut add).collect();
    let blocks = shape.run(run);
    let size = statement.distance_variables();
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

    // The combination of all blocks' distances at one point is a form in the extensions of both sides' records.
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
    let forms = forms.map(|make| make(&eq, &factors));
    let columns = vec![(thresholds, Fr::ONE)];
    let table = |session: &Session<C>| {
        let known = session.known();
        known.map(|known| known.table(&columns, 2 * shape.class_variables))
    };
    let result = forms.as_ref().zip(session.channel.secrets());
    let sums = result
        .zip(table(session))
        .map(|((f, secrets), of_classes)| {
            let form =
                |[left, right]: &[Vec<Fr>; 2]| secrets.inner(left, &secrets.apply(&factors, right));
            let of_classes = secrets.inner(&of_classes, &f.thresholds);
            [of_classes, form(&f.components), form(&f.labels)]
        });
    let v = session.send("pairs", 3, sums.as_ref().map(|s| &s[..]))?;
    let [of_classes, of_components, of_labels] = [0, 1, 2].map(|k| Expr::from(v[k]));
    let total = of_classes.clone() - of_components.clone() + of_labels.clone() * excuse;
    session.constrain("pairs", total - claim);
    let at = |ended: &Ended, low: &[Fr]| [low, &ended.block].concat();

    // Dot products: a component of a record on each side remains.
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
    let tables = table(session).zip(forms.as_ref());
    let tables = tables.map(|(of_classes, f)| vec![of_classes, f.thresholds.clone()]);
    let (point, v) = sum_of_products(
        session,
        "thresholds of pairs",
        2 * shape.class_variables,
        of_classes,
        tables,
    )?;
    session.claim(Weight::evaluation(&point), columns, v[0].into());
    let (u, v_point) = point.split_at(shape.class_variables);
    let tables = forms.zip(session.channel.secrets()).map(|(f, secrets)| {
        let fold = |table: &[Fr], point: &[Fr]| {
            let eq = eq_table(point);
            let runs = table.chunks(eq.len());
            runs.map(|run| secrets.inner(run, &eq)).collect()
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

/// sum of eq(earlier, il) eq(later, jl) over the compared pairs of two blocks.
pub fn compared_weight(
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

/// The point that a side of a form was reduced to, with its value.
pub struct Ended {
    pub low: Vec<Fr>,
    pub block: Vec<Fr>,
    pub value: Var,
}

/// sum over I, J, z of factors[I][J] left(z, I) right(z, J) = claim, reduced to one value of each side; z is the low
/// part of an index.
pub fn bilinear<C: Channel>(
    session: &mut Session<C>,
    factors: &[Vec<Fr>],
    low: usize,
    tables: Option<[Vec<Fr>; 2]>,
    claim: Expr,
) -> Result<[Ended; 2]> {
    let high = log2_ceil(factors.len());
    let (left, right) = tables.map(<(_, _)>::from).unzip();
    let known = session.channel.secrets().zip(left);
    let tables = known.zip(right.as_ref());
    let tables = tables.map(|((secrets, left), right)| vec![left, secrets.apply(factors, right)]);
    let (point, v) = sum_of_products(session, "earlier records", low + high, claim, tables)?;
    let (z, block) = point.split_at(low);
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
    let known = session.channel.secrets().zip(right);
    let tables = known.map(|(secrets, right)| {
        let eq = eq_table(z);
        let runs = right.chunks(eq.len());
        vec![
            row.clone(),
            runs.map(|run| secrets.inner(run, &eq)).collect(),
        ]
    });
    let reduced = sumcheck(
        session,
        "later records",
        &tau,
        claim,
        2,
        tables,
        Gate::Product,
    )?;
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
