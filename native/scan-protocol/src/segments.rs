//! The contents of a lookup: segments of looked-up rows, and of tables. `docs/scan/lookup.md`.
use crate::claims::ColumnId;
use crate::expr::Expr;
use crate::group::Fr;

/// One component of the tuples of a segment.
pub enum Entry {
    /// A linear combination of columns.
    Columns(Vec<(ColumnId, Fr)>),
    /// Published values, one a row.
    Public(Vec<i64>),
    /// The row's number.
    Row,
    /// The row's number below this one, 0 from it on.
    RowBelow(usize),
    /// 1 below this row, 0 from it on.
    Below(usize),
    /// Values that the caller proves. Their extension is sent and returned. Only the prover has the values.
    Derived(Option<Vec<i64>>),
    /// A hidden value a row; missing ones are 0.
    Hidden(Vec<Expr>),
    /// The components of a linked query, followed by zeros. Only the prover has the values. One message has the values at the
    /// point of all queries.
    Query {
        dimension: usize,
        values: Option<Vec<i64>>,
    },
}

/// How often each row of a segment counts.
pub enum Count {
    /// Once: a row that is looked up.
    Once,
    /// The first rows once, the others never.
    First(usize),
    /// Minus a column's value: a row of a table.
    Table(ColumnId),
    /// The same for the first rows; the others are no rows of the table.
    TableFirst(ColumnId, usize),
    /// Minus once for the first rows: rows of a table that are each looked up exactly once.
    TableOnce(usize),
}

/// 2^variables fractions count / (alpha - (tag + sum of beta^k entry_k)).
pub struct Segment {
    pub variables: usize,
    pub tag: u64,
    pub entries: Vec<Entry>,
    pub count: Count,
}

impl Segment {
    /// How many rows count, from the first.
    pub fn rows(&self) -> usize {
        match self.count {
            Count::First(n) | Count::TableFirst(_, n) | Count::TableOnce(n) => n,
            _ => 1 << self.variables,
        }
    }
}
