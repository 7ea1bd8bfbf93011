//! The run over records: vectors, labels and thresholds, bound to the published values.
use ark_ff::{AdditiveGroup, Field};
use ragaudit_relation::poseidon::State;
use ragaudit_relation::NIBBLES_PER_ELEMENT;

use super::gadgets::{one_hot, sum_of_products, Term};
use super::statement::{CoalitionStatement, Columns, Shape, SALT_BITS, SALT_LIMBS, TAG_BOUND};
use crate::channel::Channel;
use crate::error::Result;
use crate::expr::Expr;
use crate::group::Fr;
use crate::lookup::{lookups, Count, Entry, Segment};
use crate::mle::{eq_table, evaluate, prefix, Weight};
use crate::nibbles::{nibble_rows, NIBBLE_VARIABLES, TAG_NIBBLE, TAG_VECTOR};
use crate::numbers::power_of_two;
use crate::poseidon::{hashes, start_of_list};
use crate::ranges::{in_range, limbs, range_table};
use crate::session::{ColumnId, Session};
use crate::sumcheck::{plain, sumcheck, Gate};

/// The prover's private values.
pub struct Private<'a> {
    /// The columns' values, in their order.
    pub columns: Vec<Vec<i64>>,
    /// One class for each record.
    pub classes: &'a [usize],
    /// The input state of the permutation for each record's cq.
    pub states: &'a [State],
}

/// The run over records, for both parties.
pub fn records<C: Channel>(
    session: &mut Session<C>,
    statement: &CoalitionStatement,
    shape: &Shape,
    mut secret: Option<Private>,
) -> Result<()> {
    let columns = secret.as_mut().map(|s| std::mem::take(&mut s.columns));
    let bounds = shape.bounds(statement).in_order();
    let ids = session.commit_bounded("records", &bounds, columns)?;
    let classes = secret.as_ref().map(|s| s.classes);
    let ids = Columns::named(ids, shape);
    ranges(session, statement, shape, &ids)?;
    thresholds(session, shape, &ids)?;
    let of_classes = norms(session, shape, &ids, classes)?;
    one_hot(
        session,
        &ids.classes,
        shape.record_variables,
        vec![of_classes],
        true,
    )?;
    let of_labels = counts(session, statement, shape, &ids)?;
    one_hot(
        session,
        &ids.labels,
        shape.account_variables,
        of_labels,
        true,
    )?;
    openings(session, statement, shape, &ids, secret.map(|s| s.states))
}

pub fn one(id: ColumnId) -> Entry {
    Entry::Columns(vec![(id, Fr::ONE)])
}

/// Components, limbs and counts are in their ranges, and every threshold has its bound.
pub fn ranges<C: Channel>(
    session: &mut Session<C>,
    statement: &CoalitionStatement,
    shape: &Shape,
    ids: &Columns<ColumnId>,
) -> Result<()> {
    let dots = statement.dot_variables();
    let bounds = (0..1i64 << dots).map(|t| statement.bound(t)).collect();
    let labels = shape.account_variables;
    let mut segments = vec![
        Segment {
            variables: shape.record_variables + shape.component_variables,
            tag: TAG_NIBBLE,
            entries: vec![one(ids.vectors)],
            count: Count::Once,
        },
        Segment {
            variables: NIBBLE_VARIABLES,
            tag: TAG_NIBBLE,
            entries: vec![Entry::Public(nibble_rows())],
            count: Count::Table(ids.nibbles),
        },
        Segment {
            variables: 2 * shape.class_variables,
            tag: TAG_BOUND,
            entries: vec![one(ids.thresholds), one(ids.bounds)],
            count: Count::Once,
        },
        Segment {
            variables: dots,
            tag: TAG_BOUND,
            entries: vec![Entry::Row, Entry::Public(bounds)],
            count: Count::Table(ids.bound_rows),
        },
        range_table(ids.range),
        in_range(ids.spare, labels),
        in_range(ids.spare_in_tenant, labels + shape.tenant_variables),
    ];
    segments.extend(
        ids.slack
            .iter()
            .map(|id| in_range(*id, 2 * shape.class_variables)),
    );
    lookups(session, segments)?;
    Ok(())
}

/// At every pair of classes the product of norms is the sum of the threshold's bound and a slack. All of these are far below r
/// (see `statement.rs`), so the equation holds over the integers. Products of norms extend to products.
pub fn thresholds<C: Channel>(
    session: &mut Session<C>,
    shape: &Shape,
    ids: &Columns<ColumnId>,
) -> Result<()> {
    let r = session.challenges("thresholds", 2 * shape.class_variables);
    let (u, v) = r.split_at(shape.class_variables);
    let mut sum = vec![(ids.bounds, Fr::ONE)];
    sum.extend(limbs(&ids.slack, Fr::ONE));
    let norms = vec![(ids.norms, Fr::ONE)];
    let parts = [(u, &norms), (v, &norms), (&r[..], &sum)];
    let values: Option<Vec<Fr>> = session.known().map(|known| {
        let at = |(point, columns): &(&[Fr], &Vec<(ColumnId, Fr)>)| {
            evaluate(&known.table(columns, point.len()), point)
        };
        parts.iter().map(at).collect()
    });
    let vars = session.send("thresholds", 3, values.as_deref())?;
    let [left, right, product] = [0, 1, 2].map(|k| Expr::from(vars[k]));
    session.constrain_product("thresholds", left, right, product);
    for ((point, columns), var) in parts.into_iter().zip(vars) {
        session.claim(Weight::evaluation(point), columns.clone(), var.into());
    }
    Ok(())
}

/// sum over k of a_(i,k)^2 = norm of the class of i, for every record i; a is 0 beyond the records.
pub fn norms<C: Channel>(
    session: &mut Session<C>,
    shape: &Shape,
    ids: &Columns<ColumnId>,
    classes: Option<&[usize]>,
) -> Result<Term> {
    let tau = session.challenges("norms", shape.record_variables);
    let mut weights = eq_table(&tau);
    weights[shape.records..].fill(Fr::ZERO);
    let of_classes = classes.map(|classes| {
        let mut sums = vec![Fr::ZERO; 1 << shape.class_variables];
        let pairs = classes.iter().zip(&weights);
        pairs.for_each(|(class, e)| sums[*class] += e);
        sums
    });
    let known = session.known();
    let norms = known.map(|known| known.table(&[(ids.norms, Fr::ONE)], shape.class_variables));
    let sum = of_classes
        .as_ref()
        .zip(norms.as_ref())
        .zip(session.channel.secrets())
        .map(|((a, b), secrets)| secrets.inner(a, b));
    let sum = session.send_one("norms", sum)?;

    // The left side: a plain sum over components, weighted by eq over records.
    let (mut point, claim) = plain(shape.component_variables, sum.into());
    point.extend(&tau);
    let vectors = vec![(ids.vectors, Fr::ONE)];
    let known = session.known();
    let tables = known.map(|known| vec![known.table(&vectors, point.len())]);
    let reduced = sumcheck(session, "norms", &point, claim, 2, tables, Gate::Square)?;
    let values = reduced.finals.map(|f| [f[0], f[0].square()]);
    let v = session.send("component", 2, values.as_ref().map(|v| &v[..]))?;
    session.constrain_product("component", v[0].into(), v[0].into(), v[1].into());
    session.constrain("norms", reduced.claim - v[1].into());
    session.claim(Weight::evaluation(&reduced.point), vectors, v[0].into());

    // The right side, by class.
    let tables = norms.zip(of_classes).map(|(a, b)| vec![a, b]);
    let (point, v) = sum_of_products(
        session,
        "norms of classes",
        shape.class_variables,
        sum.into(),
        tables,
    )?;
    let columns = vec![(ids.norms, Fr::ONE)];
    session.claim(Weight::evaluation(&point), columns, v[0].into());
    Ok(Term {
        weights,
        at: point,
        value: v[1].into(),
    })
}

/// For each label, and for each label and tenant: the number of its accounts plus the spare places is the largest number.
pub fn counts<C: Channel>(
    session: &mut Session<C>,
    statement: &CoalitionStatement,
    shape: &Shape,
    ids: &Columns<ColumnId>,
) -> Result<Vec<Term>> {
    let r = session.challenges("counts", shape.account_variables + shape.tenant_variables);
    let (label, tenant) = r.split_at(shape.account_variables);
    let (accounts, size) = (statement.tenants.len(), 1 << shape.account_variables);
    let mut all = vec![Fr::ONE; accounts];
    all.resize(size, Fr::ZERO);
    let tenants = eq_table(tenant);
    let mut own: Vec<Fr> = statement.tenants.iter().map(|t| tenants[*t]).collect();
    own.resize(size, Fr::ZERO);
    let parts = [
        (label, ids.spare, all, statement.largest[0]),
        (&r[..], ids.spare_in_tenant, own, statement.largest[1]),
    ];
    let mut terms = Vec::new();
    for (point, id, weights, largest) in parts {
        let columns = vec![(id, Fr::ONE)];
        let known = session.known();
        let value = known.map(|known| evaluate(&known.table(&columns, point.len()), point));
        let var = session.send_one("counts", value)?;
        session.claim(Weight::evaluation(point), columns, var.into());
        terms.push(Term {
            weights,
            at: label.to_vec(),
            value: Expr::from(largest) - var.into(),
        });
    }
    Ok(terms)
}

/// Every cq is the hash of its record's salt and packed vector; components beyond the dimension are 0.
pub fn openings<C: Channel>(
    session: &mut Session<C>,
    statement: &CoalitionStatement,
    shape: &Shape,
    ids: &Columns<ColumnId>,
    states: Option<&[State]>,
) -> Result<()> {
    let (dimension, elements) = (statement.dimension, statement.elements());
    let start = start_of_list::<C::Engine>(TAG_VECTOR, 1 + elements);
    let (point, words) = hashes(session, &statement.cq, states)?;
    let within = prefix(&point, shape.records);
    session.constrain("hash padding", words[0].clone());
    session.constrain(
        "start of a list",
        words[1].clone() - (start * within).into(),
    );
    for word in &words[3 + elements..] {
        session.constrain("end of a list", word.clone());
    }
    let weight = |coefficients: Vec<Fr>| Weight {
        point: point.clone(),
        coefficients,
        items: shape.records,
    };
    let salts = (0..SALT_LIMBS)
        .map(|k| power_of_two(SALT_BITS * k))
        .collect();
    session.claim(weight(salts), vec![(ids.salts, Fr::ONE)], words[2].clone());

    // One functional for all elements; components beyond the dimension are 0.
    let eta = session.challenge("elements");
    let mut coefficients = vec![Fr::ZERO; shape.components()];
    let (inside, beyond) = coefficients.split_at_mut(dimension);
    let runs = inside
        .chunks_mut(NIBBLES_PER_ELEMENT)
        .chain(beyond.chunks_mut(NIBBLES_PER_ELEMENT));
    let (mut value, mut power) = (Expr::zero(), Fr::ONE);
    for (m, run) in runs.enumerate() {
        for (k, c) in run.iter_mut().enumerate() {
            *c = power_of_two(4 * k) * power;
        }
        if m < elements {
            let offset = Expr::from(CoalitionStatement::offset() * within);
            value.add_scaled(&(words[3 + m].clone() - offset), power);
        }
        power *= eta;
    }
    session.claim(weight(coefficients), vec![(ids.vectors, Fr::ONE)], value);
    Ok(())
}
