//! Names of rows: the proof that opened positions belong to rows with these names. `docs/scan/row-names.md`.
//!
//! The numbers of the rows stay hidden. Positions with one name belong to one row, and positions with different names to
//! different rows.
use std::collections::HashMap;
use std::sync::Arc;

use ark_ff::{AdditiveGroup, Field};

use crate::channel::{Channel, Verifies};
use crate::claims::Bound;
use crate::document_table::{
    add_columns, check_commitments, name_of, one, segment, within, Table, MAX_ROWS,
};
use crate::equation::Equation;
use crate::error::{Error, Result};
use crate::expr::Expr;
use crate::group::{Fr, G1Affine};
use crate::index::Layout;
use crate::lookup::{lookups, Count, Entry};
use crate::mle::eq_table;
use crate::numbers::log2_ceil;
use crate::session::{Functional, Opening, Session};
use crate::transcript::{Oracle, Transcript};

/// The largest number of positions of a proof.
pub const MAX_OPENED: usize = 10_000;
/// The tag of the table of rows with their names.
pub const TAG_NAME: u64 = 10;

/// The statement of a proof. The verifier rebuilds every value and reads none from a file.
#[derive(Clone, Debug)]
pub struct RowNamesStatement {
    /// Digest of all other data that determine which positions are opened, and for which account.
    pub context: [u8; 32],
    pub capacity: usize,
    pub rows: usize,
    pub table: Table<Vec<G1Affine>>,
    /// The opened positions, in increasing order, each with the name of its row as an element.
    pub opened: Vec<(usize, Fr)>,
}

impl RowNamesStatement {
    /// The layout of the positions. All columns have its rows. Refuses values beyond their limits.
    pub fn layout(&self) -> Result<Layout> {
        let layout = Layout::new(self.capacity)?;
        within("rows", self.rows, MAX_ROWS.min(self.capacity))?;
        check_commitments(layout, self.table.labelled(self.capacity, self.rows))?;
        let most = MAX_OPENED.min(self.capacity);
        within("opened positions", self.opened.len(), most)?;
        let mut least = 0;
        for (position, _) in &self.opened {
            if !(least..self.capacity).contains(position) {
                let end = self.capacity - 1;
                let expected = format!("increasing positions, here {least} to {end}");
                return Err(Error::invalid("opened position", expected, position));
            }
            least = position + 1;
        }
        Ok(layout)
    }

    pub fn transcript<O: Oracle>(&self) -> Transcript<O> {
        let mut t = Transcript::new("row names");
        t.bytes("context", &self.context);
        t.integer("capacity", self.capacity as u64);
        t.integer("rows", self.rows as u64);
        for (label, _, points) in self.table.labelled(self.capacity, self.rows) {
            t.points(label, points);
        }
        t.integer("opened positions", self.opened.len() as u64);
        for (position, name) in &self.opened {
            t.integer("opened position", *position as u64);
            t.scalar("opened name", name);
        }
        t
    }

    /// The different names in the order of their first positions; and of each position the number of its name among them.
    pub fn names(&self) -> (Vec<Fr>, Vec<usize>) {
        let (mut names, mut numbers) = (Vec::new(), HashMap::new());
        let number = |(_, name): &(usize, Fr)| {
            *numbers.entry(*name).or_insert_with(|| {
                names.push(*name);
                names.len() - 1
            })
        };
        let of_positions = self.opened.iter().map(number).collect();
        (names, of_positions)
    }
}

/// The columns of the run's own, in the order of their commitments.
#[derive(Clone)]
pub struct Columns<T> {
    /// The number of the row of each different name. It has an entry for each position, and no claim reads those behind the
    /// last name's.
    pub numbers: T,
    /// How often each row is looked up.
    pub multiplicities: T,
}

impl<T> Columns<T> {
    pub fn in_order(self) -> Vec<T> {
        vec![self.numbers, self.multiplicities]
    }
}

/// The prover's private values.
pub struct Private {
    /// The openings of the table's columns, in order.
    pub openings: Vec<Arc<Opening>>,
    /// The values of the other columns, in order.
    pub columns: Vec<Vec<i64>>,
}

/// Reads a proof. Returns the equation that must hold.
pub fn check<'p, V: Verifies<'p>>(
    statement: &RowNamesStatement,
    proof: &'p [u8],
) -> Result<Equation> {
    let rows = statement.layout()?.row_variables;
    let mut session: Session<V> = Session::verifier(statement.transcript(), rows, proof);
    row_names_protocol(&mut session, statement, None)?;
    Ok(session.close(None)?.into())
}

/// Verifies a proof.
pub fn verify<'p, V: Verifies<'p>>(statement: &RowNamesStatement, proof: &'p [u8]) -> Result<()> {
    check::<V>(statement, proof)?.verify::<V::Engine>(&[])
}

/// The protocol, for both parties.
pub fn row_names_protocol<C: Channel>(
    session: &mut Session<C>,
    statement: &RowNamesStatement,
    secret: Option<Private>,
) -> Result<()> {
    statement.layout()?;
    let (rows, opened) = (statement.rows, statement.opened.len());
    let (openings, values) = secret.map(|s| (s.openings, s.columns)).unzip();
    let table = statement.table.labelled(statement.capacity, rows);
    let given = add_columns(session, &table, openings.as_deref());
    let table = Table::named(&mut given.into_iter());
    let bounds = Columns {
        numbers: (opened, Bound::up_to(rows)),
        multiplicities: (rows, Bound::Unsigned(1)),
    };
    let ids = session.commit_bounded("row name columns", &bounds.in_order(), values)?;
    let (numbers, multiplicities) = (ids[0], ids[1]);

    // Number, name and mark of the row of each name are a row of the table.
    let (names, of_positions) = statement.names();
    let elements = names.iter().map(|name| Expr::from(*name)).collect();
    let mut looked_up = segment(
        TAG_NAME,
        vec![
            one(numbers),
            Entry::Hidden(elements),
            Entry::Below(names.len()),
        ],
        Count::First(names.len()),
    );
    // The sizes of a proof depend on the number of positions only.
    looked_up.variables = log2_ceil(opened);
    let of_rows = segment(
        TAG_NAME,
        vec![Entry::Row, name_of(&table.names), one(table.names.named)],
        Count::TableFirst(multiplicities, rows),
    );
    lookups(session, vec![looked_up, of_rows])?;

    // The row of each position is the row of its name.
    let point = session.challenges("opened rows", log2_ceil(opened));
    let mut of_names: Vec<(usize, Fr)> = (0..names.len()).map(|k| (k, Fr::ZERO)).collect();
    let mut weights = Vec::with_capacity(opened);
    let each = statement.opened.iter().zip(of_positions);
    for (((position, _), name), weight) in each.zip(eq_table(&point)) {
        weights.push((*position, weight));
        of_names[name].1 += weight;
    }
    let known = session.known();
    let sum = known.map(|known| known.of_entries(&weights, table.row));
    let sum = Expr::from(session.send_one("row numbers", sum)?);
    let mut claim = |weights, column| {
        let column = vec![(column, Fr::ONE)];
        session.claim_functional(Functional::Entries(weights), column, sum.clone());
    };
    claim(weights, table.row);
    claim(of_names, numbers);
    Ok(())
}
