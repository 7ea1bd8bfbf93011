//! The committed index: `docs/scan/index.md`.
use ark_ec::CurveGroup;
use ark_ff::AdditiveGroup;
use ragaudit_core::field::from_wide;
use ragaudit_core::g1::add_each;
use rayon::prelude::*;
use sha2::{Digest, Sha256};
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::error::{Error, Result};
use crate::group::{
    decode_points, encode_point, small_msm, tables, vector_generators, Fr, G1Affine, G1Projective,
    ENCODED,
};
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

/// What decides where values stand: see [`crate::protocol`].
pub(crate) fn rules() -> Vec<u64> {
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

/// What the blindings of an index commitment are derived from: fresh for every commitment.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct IndexKey(pub [u8; 32]);

impl IndexKey {
    pub(crate) fn blinding(&self, place: usize) -> Fr {
        let mut wide = [0u8; 64];
        for (half, out) in wide.chunks_exact_mut(32).enumerate() {
            let hash = Sha256::new()
                .chain_update(b"rag-audit/scan/v1/index")
                .chain_update(self.0)
                .chain_update((place as u64).to_le_bytes())
                .chain_update([half as u8]);
            out.copy_from_slice(&hash.finalize());
        }
        let out = from_wide(&wide);
        wide.zeroize();
        out
    }
}

/// Commits to int4 rows of shape (positions, dimension); positions beyond them up to the capacity are zero.
pub fn commit_index(
    rows: &[i8],
    dimension: usize,
    capacity: usize,
    key: &IndexKey,
) -> Result<IndexCommitment> {
    commit_all(rows, dimension, capacity, |place| key.blinding(place))
}

/// Commits to a published table of int4 rows, shape (rows, dimension), with one row of zeros after the last. It hides
/// nothing: whoever has the table makes the same points.
pub fn commit_table(rows: &[i8], dimension: usize) -> Result<IndexCommitment> {
    check_dimension(dimension)?;
    commit_all(rows, dimension, rows.len() / dimension + 1, |_| Fr::ZERO)
}

fn commit_all(
    rows: &[i8],
    dimension: usize,
    capacity: usize,
    blinding: impl Fn(usize) -> Fr + Sync,
) -> Result<IndexCommitment> {
    let layout = Layout::new(capacity)?;
    check_dimension(dimension)?;
    check_components(rows, dimension, capacity, "rows")?;
    let length = 1 << layout.row_variables;
    let points = commit_places(layout, 0..dimension, blinding, |j, a| {
        let run = rows.chunks_exact(dimension).skip(a * length).take(length);
        run.map(|row| i64::from(row[j])).collect()
    });
    Ok(IndexCommitment {
        layout,
        dimension,
        points,
    })
}

/// The points of the components `first..` alone, from their columns, shape (components, positions): what
/// [`commit_index`] makes of them, so that a large index can be committed in parts.
pub fn commit_components(
    columns: &[i8],
    first: usize,
    positions: usize,
    capacity: usize,
    key: &IndexKey,
) -> Result<Vec<G1Affine>> {
    let layout = Layout::new(capacity)?;
    if !(1..=capacity).contains(&positions) {
        return Err(Error::invalid(
            "positions",
            format!("1 to {capacity}"),
            positions,
        ));
    }
    let count = columns.len() / positions;
    check_dimension(first.saturating_add(count))?;
    check_components(columns, positions, count, "columns")?;
    let length = 1 << layout.row_variables;
    let blinding = |place| key.blinding(place);
    Ok(commit_places(
        layout,
        first..first + count,
        blinding,
        |j, a| {
            let column = columns[(j - first) * positions..].iter().take(positions);
            let run = column.skip(a * length).take(length);
            run.map(|v| i64::from(*v)).collect()
        },
    ))
}

/// Refuses anything but at most `count` runs of `width` components in -7..7.
fn check_components(components: &[i8], width: usize, count: usize, field: &str) -> Result<()> {
    if !components.len().is_multiple_of(width) || components.len() / width > count {
        return Err(Error::invalid(
            field,
            format!("at most {count} runs of {width} components"),
            format!("{} components", components.len()),
        ));
    }
    match components
        .iter()
        .find(|v| v.unsigned_abs() > COMPONENT as u8)
    {
        None => Ok(()),
        Some(bad) => Err(Error::invalid(
            field,
            format!("components of -{COMPONENT} to {COMPONENT}"),
            bad,
        )),
    }
}

/// The blinded commitments to row a of component j, for every a and the given components.
fn commit_places(
    layout: Layout,
    components: std::ops::Range<usize>,
    blinding: impl Fn(usize) -> Fr + Sync,
    values: impl Fn(usize, usize) -> Vec<i64> + Sync,
) -> Vec<G1Affine> {
    let g = vector_generators(1 << layout.row_variables);
    let count = layout.rows();
    let places = components.start * count..components.end * count;
    let sum = |place: usize| {
        let values = values(place / count, place % count);
        small_msm(&g[..values.len()], &values)
    };
    let sums: Vec<G1Projective> = places.clone().into_par_iter().map(sum).collect();
    let blindings: Vec<Fr> = places.into_par_iter().map(&blinding).collect();
    let mut points = tables().h.multiples(&blindings);
    add_each(&mut points, &G1Projective::normalize_batch(&sums));
    points
}

/// Largest dimension.
pub const MAX_DIMENSION: usize = 4096;

pub(crate) fn check_dimension(dimension: usize) -> Result<()> {
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
        self.points.iter().flat_map(encode_point).collect()
    }

    /// Refuses any other length than the capacity and dimension have, and any point off the curve.
    pub fn decode(bytes: &[u8], dimension: usize, capacity: usize) -> Result<Self> {
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
        let points = decode_points(bytes)?;
        Ok(Self {
            layout,
            dimension,
            points,
        })
    }

    /// SHA-256 of the encoding: what stands in the opening record.
    pub fn digest(&self) -> [u8; 32] {
        let hash = Sha256::new()
            .chain_update((self.layout.capacity as u64).to_be_bytes())
            .chain_update((self.dimension as u64).to_be_bytes());
        hash.chain_update(self.encode()).finalize().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numbers::from_small;

    #[test]
    fn commitments_are_the_blinded_columns() {
        let rows: Vec<i8> = (0..33 * 2).map(|i| (i % 15) as i8 - 7).collect();
        let key = IndexKey([1; 32]);
        let index = commit_index(&rows, 2, 40, &key).unwrap();
        assert_eq!(index.points.len(), 2 * index.layout.rows());
        let g = vector_generators(64);
        for (place, point) in index.points.iter().enumerate() {
            let (j, a) = (place / index.layout.rows(), place % index.layout.rows());
            let length = 1 << index.layout.row_variables;
            let mut sum = tables().h.point * key.blinding(place);
            for (k, row) in rows.chunks(2).skip(a * length).take(length).enumerate() {
                sum += g[k] * from_small(i64::from(row[j]));
            }
            assert_eq!(sum.into_affine(), *point);
        }
        assert_eq!(
            IndexCommitment::decode(&index.encode(), 2, 40).unwrap(),
            index
        );
        let other = commit_index(&rows, 2, 40, &IndexKey([2; 32])).unwrap();
        assert!(
            index.points.iter().zip(&other.points).all(|(a, b)| a != b),
            "blindings are fresh"
        );
        assert_ne!(index.digest(), other.digest());
    }

    #[test]
    fn an_index_committed_in_parts_is_the_same() {
        let (positions, dimension, capacity) = (100, 3, 130);
        let key = IndexKey([3; 32]);
        let rows: Vec<i8> = (0..positions * dimension)
            .map(|i| (i * 7 % 15) as i8 - 7)
            .collect();
        let column = |j: usize| rows.chunks(dimension).map(move |row| row[j]);
        let part = |from: usize, to: usize| {
            let columns: Vec<i8> = (from..to).flat_map(column).collect();
            commit_components(&columns, from, positions, capacity, &key).unwrap()
        };
        let whole = commit_index(&rows, dimension, capacity, &key).unwrap();
        assert_eq!([part(0, 2), part(2, 3)].concat(), whole.points);
        assert!(commit_components(&[0; 5], 0, 2, capacity, &key).is_err());
        assert!(commit_components(&[8; 2], 0, 2, capacity, &key).is_err());
        assert!(commit_components(&[0; 2], 0, 131, capacity, &key).is_err());
        assert!(commit_components(&[0; 2], 0, 0, capacity, &key).is_err());
        assert!(commit_components(&[0; 2], usize::MAX, 2, capacity, &key).is_err());
    }

    #[test]
    fn malformed_indices_are_refused() {
        let key = IndexKey([1; 32]);
        assert!(commit_index(&[8], 1, 4, &key).is_err());
        assert!(commit_index(&[-8], 1, 4, &key).is_err());
        assert!(commit_index(&[0; 5], 2, 4, &key).is_err());
        assert!(commit_index(&[0; 5], 1, 4, &key).is_err());
        assert!(commit_index(&[], 0, 4, &key).is_err());
        assert!(commit_index(&[], 1, 0, &key).is_err());
        let index = commit_index(&[1, 2], 1, 4, &key).unwrap().encode();
        assert!(IndexCommitment::decode(&index[1..], 1, 4).is_err());
        assert!(IndexCommitment::decode(&index, 2, 4).is_err());
        assert!(IndexCommitment::decode(&[0xff; ENCODED], 1, 4).is_err());
    }
}
