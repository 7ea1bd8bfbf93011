//! Ranges: every limb of 16 bits is looked up in one table.
use ark_ff::Field;

use crate::group::Fr;
use crate::lookup::{Count, Entry, Segment};
use crate::numbers::{log2_ceil, power_of_two};
use crate::session::ColumnId;

/// Bits of one limb of the range checks.
pub const LIMB_BITS: usize = 16;
pub const TAG_RANGE: u64 = 1;

/// sum of 2^(16 k) column_k.
pub fn limbs(ids: &[ColumnId], scale: Fr) -> Vec<(ColumnId, Fr)> {
    let weigh = |(k, id): (usize, &ColumnId)| (*id, power_of_two(LIMB_BITS * k) * scale);
    ids.iter().enumerate().map(weigh).collect()
}

/// 0..2^16.
pub fn range_table(multiplicity: ColumnId) -> Segment {
    Segment {
        variables: LIMB_BITS,
        tag: TAG_RANGE,
        entries: vec![Entry::Row],
        count: Count::Table(multiplicity),
    }
}

pub fn in_range(id: ColumnId, variables: usize) -> Segment {
    first_in_range(id, 1 << variables)
}

/// Looks up only a column's first entries.
pub fn first_in_range(id: ColumnId, entries: usize) -> Segment {
    Segment {
        variables: log2_ceil(entries),
        tag: TAG_RANGE,
        entries: vec![Entry::Columns(vec![(id, Fr::ONE)])],
        count: Count::First(entries),
    }
}
