//! From the rows of the integer encoder's last layer to the query's vector: the sum of the used places' rows, its quantiser and
//! the vector's hash. `docs/scan/encoder-output.md`.
//!
//! No window uses this run yet, and [`crate::protocol::name`] does not cover it.
use std::sync::Arc;

use crate::attention::Marks;
use crate::block::*;
use crate::channel::{Channel, Verifies};
use crate::equation::Equation;
use crate::error::Result;
use crate::expr::Expr;
use crate::group::Fr;
use crate::lookup::Entry;
use crate::mle::eq_table;
use crate::numbers::log2_ceil;
use crate::poseidon::permutations;
use crate::session::{Column, ColumnId, Opening, Session};
use crate::sumcheck::{plain, sumcheck, Gate};
use crate::vector::{self, Vectors};

pub mod statement;

pub use statement::{Columns, OutputStatement, Shape};

/// A prover's values before the first challenge.
pub struct Private<'s> {
    /// The openings of the last layer's rows, one a column, and of the marks.
    pub inputs: Vec<Arc<Opening>>,
    pub marks: Arc<Opening>,
    pub columns: Vec<Vec<i64>>,
    /// The salt, and the hidden values of the vector.
    pub hidden: &'s [Fr],
    pub vector: vector::Private<'s>,
}

/// Verifies a proof of the encoder's output.
pub fn verify_output<'p, V: Verifies<'p>>(
    statement: &OutputStatement,
    proof: &'p [u8],
) -> Result<()> {
    statement.check()?;
    let transcript = statement.transcript();
    let session: Session<V> = Session::verifier(transcript, statement.row_variables(), proof);
    let equation: Equation = output_protocol(session, statement, None)?.into();
    equation.verify::<V::Engine>(&[])
}

/// The protocol, for both parties.
pub fn output_protocol<'a, C: Channel>(
    mut session: Session<'a, C>,
    statement: &'a OutputStatement,
    mut secret: Option<Private>,
) -> Result<C::Closed> {
    statement.check()?;
    let (shape, places) = (statement.shape, statement.places);
    let size = shape.vector(places);

    let marks = session.add_column(Column {
        variables: log2_ceil(places),
        rows: vec![statement.marks],
        opening: secret.as_ref().map(|s| s.marks.clone()),
    });
    let variables = log2_ceil(places) + shape.width_blocks().variables;
    let inputs = secret.as_mut().map(|s| std::mem::take(&mut s.inputs));
    let y = add_columns(&mut session, variables, statement.inputs, inputs);
    let values = secret.as_mut().map(|s| std::mem::take(&mut s.columns));
    let bounds = Columns::bounds(&shape, places).in_order();
    let ids = session.commit_bounded("output columns", &bounds, values)?;
    let columns = Columns::named(ids, &size.bounds);
    let marks = Marks::of_column(&mut session, marks, Texts::one(places))?;
    let hidden = secret.as_ref().map(|s| s.hidden);
    let vars = session.send("vector", 1 + size.hidden(), hidden)?;
    let values: Vec<Expr> = vars.into_iter().map(Expr::from).collect();
    let (salt, values) = values.split_at(1);
    let output = Output {
        shape,
        texts: Texts::one(places),
        y: &y,
        marks: &marks,
        vectors: Vectors {
            size,
            columns: &columns.vector,
            values,
        },
    };
    let mut calls = Vec::new();
    for vector in output.vectors.each() {
        calls.extend(vector.hash(&mut session, salt[0].clone(), statement.cq)?);
        vector.take_root(&mut session);
    }

    let mut segments = Segments::default();
    let used = Entry::Hidden(marks.exprs());
    segments.look_up(log2_ceil(places), BIT as u64, vec![used]);
    segments.activations(variables, &y);
    output.look_up(&mut segments, columns.steps);
    segments.tables(columns.shared, &[LIMB_BITS, BIT]);
    segments.claim(&mut session)?;
    let secret = secret.as_ref().map(|s| std::slice::from_ref(&s.vector));
    output.claim(&mut session, secret)?;
    permutations(&mut session, None, calls)?;
    session.close(None)
}

/// The output of rows with a range.
pub struct Output<'o> {
    pub shape: Shape,
    pub texts: Texts,
    /// The columns of the last layer's rows.
    pub y: &'o [ColumnId],
    pub marks: &'o Marks,
    pub vectors: Vectors<'o>,
}

impl Output<'_> {
    /// Appends the vectors' lookups and the table of steps, without the table of limbs.
    pub fn look_up(&self, segments: &mut Segments, steps: ColumnId) {
        segments.extend(self.vectors.look_up_steps(steps));
        segments.extend(self.vectors.look_up_limbs());
    }

    /// The claims after the lookups: those of the vectors, and that their sums are those of the used places' rows of their texts.
    pub fn claim<C: Channel>(
        &self,
        session: &mut Session<C>,
        secret: Option<&[vector::Private]>,
    ) -> Result<()> {
        let (at, sum) = (self.vectors).components(session, secret, |_, _, _| ())?;
        self.vectors.finish(session, &at, secret)?;
        let (at, text) = at.split_at(self.vectors.size.components());
        let blocks = self.shape.width_blocks();
        let tables = session.known().map(|known| {
            let marks = self.marks.vars.iter();
            let marks = marks.map(|mark| known.value(&(*mark).into()));
            let mut rows = vec![Fr::default(); self.marks.vars.len()];
            let factors = eq_table(at);
            for (id, factors) in self.y.iter().zip(factors.chunks(blocks.entries())) {
                let places = known.column(*id).chunks_exact(blocks.entries());
                for (sum, place) in rows.iter_mut().zip(places) {
                    *sum += known.secrets.dot(place, factors);
                }
            }
            vec![marks.collect(), rows]
        });
        let (mut tau, claim) = plain(self.texts.of_places(), sum);
        tau.extend(text);
        let reduced = sumcheck(session, "used rows", &tau, claim, 2, tables, Gate::Product)?;
        let row = reduced.finals.as_ref().map(|finals| finals[1]);
        let row = session.send_one("used rows", row)?;
        let mark = self.marks.at(&reduced.point);
        session.constrain_product("used rows", mark, row.into(), reduced.claim);
        let (weight, columns) = entry_at(self.y, blocks, at, &reduced.point);
        session.claim(weight, columns, row.into());
        Ok(())
    }
}
