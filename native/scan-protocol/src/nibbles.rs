//! Components of 4 bits: their table, and the tag of the hash of their packed elements.
use crate::index::COMPONENT;

/// The tag of the hash of a vector's list.
pub const TAG_VECTOR: u64 = 4;
/// The tag of the table of components.
pub const TAG_NIBBLE: u64 = 3;
/// The table of components has 2^4 rows.
pub const NIBBLE_VARIABLES: usize = 4;

/// -7..7, and the last once more.
///
/// ```
/// let rows = ragaudit_scan_protocol::nibbles::nibble_rows();
/// assert_eq!((rows[0], rows[14], rows[15]), (-7, 7, 7));
/// ```
pub fn nibble_rows() -> Vec<i64> {
    let maximum = i64::from(COMPONENT);
    (0..1i64 << NIBBLE_VARIABLES)
        .map(|row| (row - maximum).min(maximum))
        .collect()
}
