//! The layered argument for permutations, and its tests: `docs/scan/poseidon.md`.
pub use ragaudit_scan_protocol::poseidon::*;

#[cfg(test)]
mod tests;
