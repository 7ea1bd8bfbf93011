//! Claim A1 for a static embedder: the tokens with the hash hq give the vector with the hash cq. `docs/scan/embed.md`.
use ark_ff::Field;
use ragaudit_relation::NIBBLES_PER_ELEMENT;

use crate::batch::{self, Kind};
use crate::channel::{Channel, Verifies};
use crate::claims::Bound;
use crate::engine::{Engine, Plain};
use crate::equation::Equation;
use crate::error::{Error, Result};
use crate::expr::Expr;
use crate::group::Fr;
use crate::index::{IndexCommitment, COMPONENT};
use crate::lookup::{lookups, Count, Entry, Segment};
use crate::mle::{eq_table, Weight};
use crate::nibbles::{nibble_rows, NIBBLE_VARIABLES, TAG_VECTOR};
use crate::numbers::{from_small, log2_ceil, power_of_two};
use crate::poseidon::{permutations, start_of_list, Call};
use crate::session::{ColumnId, Session, TableClaim};
use crate::sumcheck::{plain, sumcheck, Gate};
use crate::transcript::{Hash, Oracle, Transcript};
use crate::verifier::Verifier;

pub mod statement;

use statement::*;
pub use statement::{EmbedStatement, MAX_NORM_FACTOR, MAX_TOKENS, MAX_VOCABULARY, RULES};

/// The prover's private values. All values that do not depend on a challenge are fixed before the first one.
pub struct Private<'a> {
    /// The columns' values, in their order.
    pub columns: Vec<Vec<i64>>,
    /// Hidden values, in the order of sending.
    pub hidden: &'a [Fr],
    /// The components of three claims: e, v and w v.
    pub at_point: &'a [Vec<i64>; 3],
    pub squared: &'a [i64],
}

/// The table's functional with given factors, for a party that has the table itself.
pub type Functional<'a> = &'a dyn Fn(&[Fr]) -> Vec<Fr>;

fn joined(run: &[Expr]) -> Expr {
    Expr::combination(run.iter().zip((0..).map(|k| power_of_two(LIMB_BITS * k))))
}

fn columns_joined(run: &[ColumnId]) -> Vec<(ColumnId, Fr)> {
    run.iter()
        .enumerate()
        .map(|(k, id)| (*id, power_of_two(LIMB_BITS * k)))
        .collect()
}

/// Reads a proof. Returns the equation that must hold, over the table's points.
pub fn check_embed<'p, V: Verifies<'p>>(
    statement: &EmbedStatement,
    proof: &'p [u8],
) -> Result<Equation> {
    statement.check()?;
    let row_variables = statement.table.layout.row_variables;
    let session: Session<V> = Session::verifier(statement.transcript(), row_variables, proof);
    Ok(embed_protocol(session, statement, None, None)?.into())
}

/// Verifies a proof of A1.
pub fn verify_embed<'p, V: Verifies<'p>>(
    statement: &EmbedStatement,
    proof: &'p [u8],
) -> Result<()> {
    check_embed::<V>(statement, proof)?.verify::<V::Engine>(&statement.table.points)
}

/// A statement with its proof.
pub type Item<'a> = (EmbedStatement<'a>, &'a [u8]);

/// Proofs about one table.
#[derive(Clone, Copy)]
pub struct OfTable;

/// Many proofs about one table.
pub type Batch<O = Hash, E = Plain> = batch::Batch<OfTable, O, E>;

impl Kind for OfTable {
    type Item<'a> = Item<'a>;

    fn transcript<O: Oracle>(&self, _: &[u8; 32]) -> Transcript<O> {
        Transcript::new("embed batch")
    }

    fn absorb<O: Oracle>(&self, transcript: &mut Transcript<O>, items: &[Item]) {
        for (statement, proof) in items {
            transcript.bytes("statement", &statement.transcript::<O>().digest());
            transcript.bytes("proof", proof);
        }
    }

    fn equations(&self) -> usize {
        1
    }

    fn check<E: Engine>(
        &self,
        table: &IndexCommitment,
        (statement, proof): &Item,
    ) -> Result<Vec<Equation>> {
        if !std::ptr::eq(statement.table, table) {
            return Err(Error::invalid(
                "table",
                "the table of the batch",
                "another table",
            ));
        }
        Ok(vec![check_embed::<Verifier<Hash, E>>(statement, proof)?])
    }
}

/// The call that computes hq from a salt, the tokens of all places and their marks, with a list as long as the tokens need.
pub fn call_of_tokens<E: Engine>(salt: &Expr, tokens: &[Expr], used: &[Expr], hq: Fr) -> Call {
    let packs = tokens.len().div_ceil(TOKENS_PER_ELEMENT);
    let starts: Vec<Fr> = (1..=packs)
        .map(|p| start_of_list::<E>(TAG_QUERY, 2 + p))
        .collect();
    let mut start = Expr::from(starts[0]);
    for (pair, first) in starts.windows(2).zip(
        used.iter()
            .skip(TOKENS_PER_ELEMENT)
            .step_by(TOKENS_PER_ELEMENT),
    ) {
        start.add_scaled(first, pair[1] - pair[0]);
    }
    let number = Expr::combination(used.iter().map(|u| (u, Fr::ONE)));
    let mut inputs = vec![start, salt.clone(), number];
    inputs.extend(
        tokens.chunks(TOKENS_PER_ELEMENT).map(|run| {
            Expr::combination(run.iter().zip((0..).map(|i| power_of_two(TOKEN_BITS * i))))
        }),
    );
    Call {
        inputs,
        output: hq.into(),
    }
}

/// The protocol, for both parties.
pub fn embed_protocol<'a, C: Channel>(
    mut session: Session<'a, C>,
    statement: &'a EmbedStatement,
    functional: Option<Functional>,
    mut secret: Option<Private>,
) -> Result<C::Closed> {
    let bounds = statement.check()?;
    let (layout, dimension) = (statement.table.layout, statement.table.dimension);
    let components = log2_ceil(dimension);
    let (maximum, vocabulary) = (statement.tokens, statement.vocabulary());

    let (all, looked_up) = (1 << components, (2 << components) + 3);
    let slack_bound = (all, Bound::within(bounds.scaled as usize + 1));
    let limb_bounds = vec![(all, Bound::Unsigned(LIMB_BITS)); bounds.limbs];
    let within = Columns {
        histogram: (1 << layout.variables, Bound::up_to(maximum)),
        sums: (all, Bound::within(maximum * COMPONENT as usize)),
        vector: (all, Bound::within(COMPONENT as usize)),
        lower_slack: slack_bound,
        upper_slack: slack_bound,
        lower: limb_bounds.clone(),
        upper: limb_bounds,
        limbs: (1 << LIMB_BITS, Bound::up_to(looked_up * bounds.limbs)),
        steps: (1 << NIBBLE_VARIABLES, Bound::up_to(all)),
    };
    let columns = secret.as_mut().map(|s| std::mem::take(&mut s.columns));
    let ids = session.commit_bounded("embedding columns", &within.in_order(), columns)?;
    let Columns {
        histogram,
        sums,
        vector,
        lower_slack,
        upper_slack,
        lower,
        upper,
        limbs,
        steps,
    } = Columns::named(ids, &bounds);

    let elements = dimension.div_ceil(NIBBLES_PER_ELEMENT);
    let hidden = secret.as_ref().map(|s| s.hidden);
    let count = 2 + 2 * maximum + 3 * bounds.limbs + 1 + elements;
    let vars = session.send("query", count, hidden)?;
    let exprs: Vec<Expr> = vars.into_iter().map(Expr::from).collect();
    let (salts, rest) = exprs.split_at(2);
    let (tokens, rest) = rest.split_at(maximum);
    let (used, rest) = rest.split_at(maximum);
    let (root_limbs, rest) = rest.split_at(3 * bounds.limbs);
    let (square, packed) = (&rest[0], &rest[1..]);

    // Used places come first. A mark is 0 or 1 by its lookup; if all marks were 0, the root below would be 0.
    for pair in used.windows(2) {
        session.constrain_product(
            "used places",
            pair[0].clone(),
            pair[1].clone(),
            pair[1].clone(),
        );
    }

    // hq and cq.
    let mut calls = vec![call_of_tokens::<C::Engine>(
        &salts[0],
        tokens,
        used,
        statement.hq,
    )];
    let places: Vec<Fr> = (0..NIBBLES_PER_ELEMENT)
        .map(|i| power_of_two(4 * i))
        .collect();
    let offset = places.iter().sum::<Fr>() * Fr::from(8u8);
    let mut list = vec![salts[1].clone()];
    list.extend(packed.iter().map(|x| x.clone() + offset.into()));
    calls.extend(Call::list(&mut session, TAG_VECTOR, &list, statement.cq)?);

    // w^2 <= 2^16 sum e_j^2 <= w^2 + 2 w with w >= 1; w and the remainder have limbs.
    let (minus_one, rest) = root_limbs.split_at(bounds.limbs);
    let (left, lacking) = rest.split_at(bounds.limbs);
    let root = joined(minus_one) + 1u64.into();
    session.constrain_product("root", root.clone(), root.clone(), square.clone());
    let twice = root.clone() * Fr::from(2u8);
    session.constrain("root", joined(left) + joined(lacking) - twice);
    let scale = power_of_two(ROOT_SHIFT).inverse().expect("a power of two");
    let total = (square.clone() + joined(left)) * scale;

    let rows_of_steps = nibble_rows();
    let [of_lower, of_upper] = [0, 1].map(|i| {
        let column: Vec<i64> = rows_of_steps
            .iter()
            .map(|v| slack(*v, bounds.scaled)[i])
            .collect();
        Entry::Public(column)
    });
    let one = |id: ColumnId| Entry::Columns(vec![(id, Fr::ONE)]);
    let mut segments = vec![
        // A used place has a token of the vocabulary, an unused place has 0.
        Segment {
            variables: log2_ceil(maximum),
            tag: TAG_TOKEN,
            entries: vec![Entry::Hidden(tokens.to_vec()), Entry::Hidden(used.to_vec())],
            count: Count::First(maximum),
        },
        Segment {
            variables: layout.variables,
            tag: TAG_TOKEN,
            entries: vec![Entry::RowBelow(vocabulary), Entry::Below(vocabulary)],
            count: Count::Table(histogram),
        },
        Segment {
            variables: components,
            tag: TAG_STEP,
            entries: vec![one(vector), one(lower_slack), one(upper_slack)],
            count: Count::Once,
        },
        Segment {
            variables: NIBBLE_VARIABLES,
            tag: TAG_STEP,
            entries: vec![Entry::Public(rows_of_steps), of_lower, of_upper],
            count: Count::Table(steps),
        },
        Segment {
            variables: LIMB_BITS,
            tag: TAG_LIMB,
            entries: vec![Entry::Row],
            count: Count::Table(limbs),
        },
        Segment {
            variables: log2_ceil(root_limbs.len()),
            tag: TAG_LIMB,
            entries: vec![Entry::Hidden(root_limbs.to_vec())],
            count: Count::First(root_limbs.len()),
        },
    ];
    segments.extend(lower.iter().chain(&upper).map(|id| Segment {
        variables: components,
        tag: TAG_LIMB,
        entries: vec![one(*id)],
        count: Count::Once,
    }));
    lookups(&mut session, segments)?;

    // All claims that are linear in the columns over components, at one random point.
    let at = session.challenges("components", components);
    let eq = eq_table(&at);
    let values = secret.as_ref().map(|s| {
        let dot = |(v, e): (&i64, &Fr)| from_small(*v) * e;
        [0, 1, 2].map(|k| s.at_point[k].iter().zip(&eq).map(dot).sum::<Fr>())
    });
    let vars = session.send("components", 3, values.as_ref().map(|v| &v[..]))?;
    let [e, v, product] = [0, 1, 2].map(|i| Expr::from(vars[i]));
    let here = Weight::evaluation(&at);
    let factors = eq[..dimension].to_vec();
    session.claim(here.clone(), vec![(sums, Fr::ONE)], e.clone());
    session.claim_table(TableClaim {
        table: statement.table,
        functional: functional.map(|functional| functional(&factors)),
        factors,
        column: histogram,
        value: e,
    });
    session.claim(here.clone(), vec![(vector, Fr::ONE)], v.clone());
    session.constrain_product("steps", root.clone(), v, product.clone());
    let factor = Fr::from(2 * statement.norm_factor);
    let twice = product * Fr::from(2u8);
    let mut distance = |limbs: &[ColumnId], slack: ColumnId, factor: Fr, value: Expr| {
        let mut columns = columns_joined(limbs);
        columns.extend([(slack, -Fr::ONE), (sums, factor)]);
        session.claim(here.clone(), columns, value);
    };
    distance(&lower, lower_slack, -factor, root.clone() - twice.clone());
    distance(&upper, upper_slack, factor, root + twice);

    // Packed components: one random combination of the elements.
    let among = session.challenges("packed vector", log2_ceil(elements));
    let eq = eq_table(&among);
    let coefficients = (0..dimension)
        .map(|j| eq[j / NIBBLES_PER_ELEMENT] * places[j % NIBBLES_PER_ELEMENT])
        .collect();
    let combination = Weight {
        point: Vec::new(),
        coefficients,
        items: 1,
    };
    let value = Expr::combination(packed.iter().zip(eq));
    session.claim(combination, vec![(vector, Fr::ONE)], value);

    // The sum of squares.
    let table = secret.map(|s| vec![s.squared.iter().map(|e| from_small(*e)).collect()]);
    let (tau, claim) = plain(components, total);
    let reduced = sumcheck(&mut session, "squares", &tau, claim, 2, table, Gate::Square)?;
    let e = Expr::from(session.send("squares", 1, reduced.finals.as_deref())?[0]);
    session.claim(
        Weight::evaluation(&reduced.point),
        vec![(sums, Fr::ONE)],
        e.clone(),
    );
    session.constrain_product("squares", e.clone(), e, reduced.claim);

    permutations(&mut session, None, calls)?;
    session.close(None)
}
