//! How many records of a tenant one proof may be about, and the rows that their columns are committed to in:
//! `docs/scan/together.md`.
use crate::error::{Error, Result};
use crate::index::Layout;
use crate::numbers::log2_ceil;

/// Most records of one proof.
pub const MAX_TOGETHER: usize = 64;
/// Most draws of one proof, or positions where there are none, each record's counted up to a power of two: no more than the
/// largest single record has.
pub const MAX_ENTRIES: usize = 1 << 27;
/// The longest rows, 2^this: those of the largest capacity.
pub const MAX_ROW_VARIABLES: usize = 17;

/// How a proof encodes its records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// One record without the batch's extra terms: its hidden query values are sent singly, its segments stand in another
    /// order, and its scores are opened with all other columns. Released proofs of single records are in this format.
    Single,
    /// Any number of records: `docs/scan/together.md`.
    Batch,
}

impl Format {
    /// The format of proofs of so many records.
    ///
    /// ```
    /// use ragaudit_scan_protocol::together::Format;
    ///
    /// assert_eq!([1, 2, 64].map(Format::of), [Format::Single, Format::Batch, Format::Batch]);
    /// ```
    pub fn of(records: usize) -> Self {
        match records {
            1 => Self::Single,
            _ => Self::Batch,
        }
    }

    /// Refuses numbers of records that the format has no proof of.
    pub fn check(self, records: usize) -> Result<()> {
        match self {
            Self::Single if records != 1 => Err(Error::invalid("records", "1", records)),
            _ => Ok(()),
        }
    }
}

/// What decides where values stand: see [`crate::protocol`].
pub fn rules() -> Vec<u64> {
    let mut rules = vec![
        MAX_TOGETHER as u64,
        MAX_ENTRIES as u64,
        MAX_ROW_VARIABLES as u64,
    ];
    let layout = Layout::new(1).expect("a capacity");
    rules.extend((1..=MAX_TOGETHER).map(|count| row_variables(layout, count) as u64));
    rules
}

/// The most records that one proof may be about, of so many positions and gains.
///
/// ```
/// use ragaudit_scan_protocol::index::Layout;
/// use ragaudit_scan_protocol::together::{most_together, row_variables};
///
/// assert_eq!(most_together(100_000, 3), 64);
/// assert_eq!(most_together(1 << 24, 6), 1);
/// // Sixteen times as many records have rows that are four times as long.
/// let layout = Layout::new(100_000)?;
/// assert_eq!(row_variables(layout, 16), layout.row_variables + 2);
/// # Ok::<(), ragaudit_scan_protocol::Error>(())
/// ```
pub fn most_together(capacity: usize, gains: usize) -> usize {
    let entries = capacity.saturating_mul(gains.max(1));
    (MAX_ENTRIES >> log2_ceil(entries)).clamp(1, MAX_TOGETHER)
}

pub fn check_together(count: usize, capacity: usize, gains: usize) -> Result<()> {
    let most = most_together(capacity, gains);
    if (1..=most).contains(&count) {
        return Ok(());
    }
    Err(Error::invalid(
        "records together",
        format!("1 to {most}"),
        count,
    ))
}

/// Of rows for so many records: longer by the square root of their number, so that there are more of them by the square
/// root too.
pub fn row_variables(layout: Layout, count: usize) -> usize {
    let longer = layout.row_variables + log2_ceil(count).div_ceil(2);
    longer.min(MAX_ROW_VARIABLES.max(layout.row_variables))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::MAX_CAPACITY;

    #[test]
    fn rows_of_one_record_are_the_index_s() {
        for variables in 0..=MAX_CAPACITY.trailing_zeros() {
            let layout = Layout::new(1 << variables).unwrap();
            assert_eq!(row_variables(layout, 1), layout.row_variables);
            let all = (1..=MAX_TOGETHER).map(|count| row_variables(layout, count));
            assert!(all.is_sorted());
            assert!(row_variables(layout, MAX_TOGETHER) <= MAX_ROW_VARIABLES);
        }
    }

    #[test]
    fn records_end_where_the_largest_one_does() {
        for (capacity, gains, most) in [
            (1, 1, MAX_TOGETHER),
            (100_000, 3, MAX_TOGETHER),
            (1 << 20, 3, 32),
            (MAX_CAPACITY, 0, 8),
            (MAX_CAPACITY, 1, 8),
            (MAX_CAPACITY, 6, 1),
        ] {
            assert_eq!(most_together(capacity, gains), most);
            assert!(check_together(0, capacity, gains).is_err());
            assert!(check_together(most, capacity, gains).is_ok());
            assert!(check_together(most + 1, capacity, gains).is_err());
        }
    }
}
