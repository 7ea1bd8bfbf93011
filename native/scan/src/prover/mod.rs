//! What provers add up, and no verifier needs: tables, and their sums on all lanes.
pub(crate) mod boxes;
pub(crate) mod fractions;
