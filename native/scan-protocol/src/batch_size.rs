//! The number of a tenant's records in one proof, and the length of the rows of their columns: `docs/scan/batch.md`.
use crate::error::{Error, Result};
use crate::index::Layout;
use crate::numbers::log2_ceil;

/// The largest number of records in one proof.
pub const MAX_BATCH: usize = 64;
/// The largest number of draws in one proof; of positions, if the tenant has no noise. The number of each record is rounded
/// up to a power of two. The largest single record has this number.
pub const MAX_ENTRIES: usize = 1 << 27;
/// The base-2 logarithm of the length of the longest rows, which the largest capacity has.
pub const MAX_ROW_VARIABLES: usize = 17;

/// The constants of this module that determine the positions of values in a proof: see [`crate::protocol`].
pub fn rules() -> Vec<u64> {
    let mut rules = vec![
        MAX_BATCH as u64,
        MAX_ENTRIES as u64,
        MAX_ROW_VARIABLES as u64,
    ];
    let layout = Layout::new(1).expect("a capacity");
    rules.extend((1..=MAX_BATCH).map(|count| row_variables(layout, count) as u64));
    rules
}

/// The largest number of records in one proof, for these numbers of positions and gains.
///
/// ```
/// use ragaudit_scan_protocol::index::Layout;
/// use ragaudit_scan_protocol::batch_size::{max_batch, row_variables};
///
/// assert_eq!(max_batch(100_000, 3), 64);
/// assert_eq!(max_batch(1 << 24, 6), 1);
/// // Sixteen times as many records have rows that are four times as long.
/// let layout = Layout::new(100_000)?;
/// assert_eq!(row_variables(layout, 16), layout.row_variables + 2);
/// # Ok::<(), ragaudit_scan_protocol::Error>(())
/// ```
pub fn max_batch(capacity: usize, gains: usize) -> usize {
    let entries = capacity.saturating_mul(gains.max(1));
    (MAX_ENTRIES >> log2_ceil(entries)).clamp(1, MAX_BATCH)
}

/// Refuses other numbers of records. A sampled tenant's proofs are about one record each, because the tenant's Bernoulli bits
/// are committed to in the rows of one record.
pub fn check_batch_size(count: usize, capacity: usize, gains: usize, sampled: bool) -> Result<()> {
    let maximum = match sampled {
        true => 1,
        false => max_batch(capacity, gains),
    };
    if (1..=maximum).contains(&count) {
        return Ok(());
    }
    Err(Error::invalid(
        "records together",
        format!("1 to {maximum}"),
        count,
    ))
}

/// The base-2 logarithm of the length of the rows of `count` records' columns. The length and the number of the rows both
/// grow with the square root of `count`.
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
            let all = (1..=MAX_BATCH).map(|count| row_variables(layout, count));
            assert!(all.is_sorted());
            assert!(row_variables(layout, MAX_BATCH) <= MAX_ROW_VARIABLES);
        }
    }

    #[test]
    fn records_end_where_the_largest_one_does() {
        for (capacity, gains, maximum) in [
            (1, 1, MAX_BATCH),
            (100_000, 3, MAX_BATCH),
            (1 << 20, 3, 32),
            (MAX_CAPACITY, 0, 8),
            (MAX_CAPACITY, 1, 8),
            (MAX_CAPACITY, 6, 1),
        ] {
            assert_eq!(max_batch(capacity, gains), maximum);
            let check = |count, sampled| check_batch_size(count, capacity, gains, sampled);
            assert!(check(0, false).is_err());
            assert!(check(maximum, false).is_ok());
            assert!(check(maximum + 1, false).is_err());
            assert!(check(1, true).is_ok());
            assert!(check(2, true).is_err());
        }
    }
}
