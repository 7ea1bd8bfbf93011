//! Claim A1 for a static embedder: the tokens with the hash hq give the vector with the hash cq. `docs/scan/embed.md`.
use ark_ff::Field;

use crate::batch::{self, Kind};
use crate::channel::{Channel, Verifies};
use crate::claims::Bound;
use crate::engine::{Engine, Plain};
use crate::equation::Equation;
use crate::error::{Error, Result};
use crate::expr::Expr;
use crate::group::Fr;
use crate::index::IndexCommitment;
use crate::lookup::{lookups, Count, Entry, Segment};
use crate::mle::eq_table;
use crate::nibbles::NIBBLE_VARIABLES;
use crate::numbers::{log2_ceil, power_of_two};
use crate::poseidon::{permutations, start_of_list, Call};
use crate::session::{Session, TableClaim};
use crate::transcript::{Hash, Oracle, Transcript};
use crate::vector::{self, Vectors};
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
    pub vector: vector::Private<'a>,
}

/// The table's functional with given factors, for a party that has the table itself.
pub type Functional<'a> = &'a dyn Fn(&[Fr]) -> Vec<Fr>;

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
    let layout = statement.table.layout;
    let (maximum, vocabulary) = (statement.tokens, statement.vocabulary());

    let size = statement.vector(bounds);
    let within = Columns {
        histogram: (1 << layout.variables, Bound::up_to(maximum)),
        vector: vector::Columns::bounds(&size),
        limbs: (1 << LIMB_BITS, Bound::up_to(size.limbs_looked_up())),
        steps: (1 << NIBBLE_VARIABLES, Bound::up_to(1 << size.components())),
    };
    let columns = secret.as_mut().map(|s| std::mem::take(&mut s.columns));
    let ids = session.commit_bounded("embedding columns", &within.in_order(), columns)?;
    let columns = Columns::named(ids, &bounds);

    let hidden = secret.as_ref().map(|s| s.hidden);
    let count = 2 + 2 * maximum + size.hidden();
    let vars = session.send("query", count, hidden)?;
    let exprs: Vec<Expr> = vars.into_iter().map(Expr::from).collect();
    let (salts, rest) = exprs.split_at(2);
    let (tokens, rest) = rest.split_at(maximum);
    let (used, values) = rest.split_at(maximum);
    let vectors = Vectors {
        size,
        columns: &columns.vector,
        values,
    };

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
    for vector in vectors.each() {
        calls.extend(vector.hash(&mut session, salts[1].clone(), statement.cq)?);
        vector.take_root(&mut session);
    }

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
            count: Count::Table(columns.histogram),
        },
    ];
    segments.extend(vectors.look_up_steps(columns.steps));
    segments.push(Segment {
        variables: LIMB_BITS,
        tag: TAG_LIMB,
        entries: vec![Entry::Row],
        count: Count::Table(columns.limbs),
    });
    segments.extend(vectors.look_up_limbs());
    lookups(&mut session, segments)?;

    let secret = secret.as_ref().map(|s| std::slice::from_ref(&s.vector));
    let (at, _) = vectors.components(&mut session, secret, |session, at, sum| {
        let factors = eq_table(at)[..statement.table.dimension].to_vec();
        session.claim_table(TableClaim {
            table: statement.table,
            functional: functional.map(|functional| functional(&factors)),
            factors,
            column: columns.histogram,
            value: sum.clone(),
        });
    })?;
    vectors.finish(&mut session, &at, secret)?;

    permutations(&mut session, None, calls)?;
    session.close(None)
}
