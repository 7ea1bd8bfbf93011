//! The committed index: `docs/scan/index-commitment.md`.
use sha2::{Digest, Sha256};

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::group::{decode_points, encode_points, G1Affine, ENCODED};
use crate::numbers::log2_ceil;

/// Largest absolute component: encoders never produce -8, and the score table is sized for this.
pub const COMPONENT: i8 = 7;

/// How a capacity is laid out, a fixed function of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    pub capacity: usize,
    /// Columns over the positions have 2^variables entries.
    pub variables: usize,
    /// Row commitments are of 2^row_variables values.
    pub row_variables: usize,
}

/// Largest capacity.
pub const MAX_CAPACITY: usize = 1 << 24;

/// The constants of this module that determine the positions of values in a proof: see [`crate::protocol`].
pub fn rules() -> Vec<u64> {
    let mut rules = vec![COMPONENT as u64];
    for variables in 0..=MAX_CAPACITY.trailing_zeros() {
        let layout = Layout::of(1 << variables);
        rules.extend([layout.variables as u64, layout.row_variables as u64]);
    }
    rules
}

impl Layout {
    pub fn new(capacity: usize) -> Result<Self> {
        if !(1..=MAX_CAPACITY).contains(&capacity) {
            return Err(Error::invalid(
                "capacity",
                format!("1 to {MAX_CAPACITY}"),
                capacity,
            ));
        }
        Ok(Self::of(capacity))
    }

    fn of(capacity: usize) -> Self {
        let variables = log2_ceil(capacity);
        Self {
            capacity,
            variables,
            // From 2^18 positions on a proof is mostly row commitments. The tables of lookups, up to 2^16 rows, are
            // committed to in the same rows however few positions there are.
            row_variables: (variables.div_ceil(2) + 4 + usize::from(variables >= 18)).max(10),
        }
    }

    pub fn rows(&self) -> usize {
        self.capacity.div_ceil(1 << self.row_variables)
    }
}

/// Commitments to the components of all positions; public.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexCommitment {
    pub layout: Layout,
    pub dimension: usize,
    /// Row a of component j at j * rows + a.
    pub points: Vec<G1Affine>,
}

/// Largest dimension.
pub const MAX_DIMENSION: usize = 4096;

///
/// ```
/// use ragaudit_scan_protocol::index::{check_dimension, Layout};
///
/// let layout = Layout::new(1 << 20)?;
/// assert_eq!((layout.row_variables, layout.rows()), (15, 32));
/// assert!(check_dimension(256).is_ok() && check_dimension(0).is_err());
/// # Ok::<(), ragaudit_scan_protocol::Error>(())
/// ```
pub fn check_dimension(dimension: usize) -> Result<()> {
    if (1..=MAX_DIMENSION).contains(&dimension) {
        return Ok(());
    }
    Err(Error::invalid(
        "dimension",
        format!("1 to {MAX_DIMENSION}"),
        dimension,
    ))
}

impl IndexCommitment {
    /// The points, 32 bytes each.
    pub fn encode(&self) -> Vec<u8> {
        encode_points(&self.points)
    }

    /// Refuses any other length than the capacity and dimension have, and any point off the curve.
    pub fn decode<E: Engine>(bytes: &[u8], dimension: usize, capacity: usize) -> Result<Self> {
        let layout = Layout::new(capacity)?;
        check_dimension(dimension)?;
        let expected = dimension * layout.rows() * ENCODED;
        if bytes.len() != expected {
            return Err(Error::invalid(
                "index",
                format!("{expected} bytes"),
                format!("{} bytes", bytes.len()),
            ));
        }
        let points = decode_points::<E>(bytes)?;
        Ok(Self {
            layout,
            dimension,
            points,
        })
    }

    /// SHA-256 of the encoding, which the window header contains.
    pub fn digest(&self) -> [u8; 32] {
        let hash = Sha256::new()
            .chain_update((self.layout.capacity as u64).to_be_bytes())
            .chain_update((self.dimension as u64).to_be_bytes());
        hash.chain_update(self.encode()).finalize().into()
    }
}
