//! Commitments to an index, and to a published table: `docs/scan/index-commitment.md`.
use ark_ec::CurveGroup;
use ark_ff::AdditiveGroup;
use ragaudit_field_simd::field::from_wide;
use ragaudit_field_simd::g1::add_each;
use rayon::prelude::*;
use sha2::{Digest, Sha256};
use zeroize::{Zeroize, ZeroizeOnDrop};

pub use ragaudit_scan_protocol::index::*;

use crate::engine::Fast;
use crate::error::{Error, Result};
use crate::group::{small_msm, tables, vector_generators, Fr, G1Affine, G1Projective};

/// See [`IndexCommitment::decode`].
pub fn decode_index(bytes: &[u8], dimension: usize, capacity: usize) -> Result<IndexCommitment> {
    IndexCommitment::decode::<Fast>(bytes, dimension, capacity)
}

/// The key from which the blindings of an index commitment are derived; every commitment has a new key.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct IndexKey(pub [u8; 32]);

impl IndexKey {
    /// The blinding at a place of the commitment.
    pub fn blinding(&self, place: usize) -> Fr {
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

/// Commits to a published table of int4 rows, shape (rows, dimension), followed by one row of zeros. The commitment hides
/// nothing: every party with the table computes the same points.
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

/// The points of only the components `first..`, from their columns, shape (components, positions). They equal the points of
/// [`commit_index`], so a large index can be committed in parts.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::ENCODED;
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
        assert_eq!(decode_index(&index.encode(), 2, 40).unwrap(), index);
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
        assert!(decode_index(&index[1..], 1, 4).is_err());
        assert!(decode_index(&index, 2, 4).is_err());
        assert!(decode_index(&[0xff; ENCODED], 1, 4).is_err());
    }
}
