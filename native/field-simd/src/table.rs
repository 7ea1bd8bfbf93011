//! The tree over a static embedder's table: arity 8, leaves that are list hashes, and nodes of width 9.
//!
//! `rag_audit.relation.table` is the reference.
use ark_ff::{AdditiveGroup, BigInt, PrimeField};
use rayon::prelude::*;

use crate::field::Fr;
use crate::int4::{check_components, check_shape, NIBBLE_OFFSET};
use crate::poseidon::{absorb_all, hash_list, narrow_9, start_of_list};
use crate::{threads, Error};

/// Domain tag of a row.
pub const TAG_TABLE: u64 = 8;
/// Children of a node.
pub const ARITY: usize = 8;
/// Components of one wide element.
pub const SLOTS: usize = 25;
const SLOT_BITS: usize = 10;
/// Most components of a row.
pub const MAX_DIMENSION: usize = 4096;
/// Most levels above the leaves: a token has 15 bits.
pub const MAX_DEPTH: usize = 5;
/// Hashes of one task.
const TASK: usize = 128;

/// The wide elements of a row: its components + 8, 10 bits each, 25 to an element.
fn wide(row: &[i8]) -> Vec<Fr> {
    row.chunks(SLOTS)
        .map(|run| {
            let mut limbs = [0u64; 4];
            for (j, v) in run.iter().enumerate() {
                let (slot, at) = ((v + NIBBLE_OFFSET) as u64, SLOT_BITS * j);
                limbs[at / 64] |= slot << (at % 64);
                // A slot in use has four bits, and may lie across a limb's end.
                if at % 64 > 60 {
                    limbs[at / 64 + 1] |= slot >> (64 - at % 64);
                }
            }
            Fr::from_bigint(BigInt::new(limbs)).expect("250 bits are below the modulus")
        })
        .collect()
}

/// HL(8, wide elements) of every row.
fn leaves(rows: &[i8], dimension: usize) -> Vec<Fr> {
    let start = start_of_list(TAG_TABLE, dimension.div_ceil(SLOTS));
    let hashed = |task: &[i8]| {
        let lists: Vec<Vec<Fr>> = task.chunks(dimension).map(wide).collect();
        absorb_all(&vec![start; lists.len()], &lists)
    };
    rows.par_chunks(TASK * dimension)
        .flat_map_iter(hashed)
        .collect()
}

/// What Poseidon(8) permutes for eight children.
fn node(children: &[Fr]) -> [Fr; 1 + ARITY] {
    let mut state = [Fr::ZERO; 1 + ARITY];
    state[1..].copy_from_slice(children);
    state
}

/// The nodes above the nodes of a level.
fn parents(level: &[Fr]) -> Vec<Fr> {
    let hashed = |children: &[Fr]| {
        let mut states: Vec<_> = children.chunks(ARITY).map(node).collect();
        narrow_9().permute_all(&mut states);
        states.into_iter().map(|state| state[0])
    };
    level
        .par_chunks(TASK * ARITY)
        .flat_map_iter(hashed)
        .collect()
}

/// All nodes of the tree over int8 rows of shape (rows, dimension), leaves first, the root last; places after the
/// last row, of which there is one at least, hold zero rows.
pub fn tree(rows: &[i8], dimension: usize, depth: usize) -> Result<Vec<Fr>, Error> {
    check_shape("rows", rows.len(), dimension)?;
    check_components("rows", rows)?;
    if dimension > MAX_DIMENSION {
        let expected = format!("1 to {MAX_DIMENSION}");
        return Err(Error::invalid("dimension", expected, dimension.to_string()));
    }
    if !(1..=MAX_DEPTH).contains(&depth) {
        return Err(Error::invalid(
            "depth",
            format!("1 to {MAX_DEPTH}"),
            depth.to_string(),
        ));
    }
    let (places, count) = (ARITY.pow(depth as u32), rows.len() / dimension);
    if count == 0 || count >= places {
        let expected = format!("1 to {} rows", places - 1);
        return Err(Error::invalid("rows", expected, count.to_string()));
    }
    threads::run(|| {
        let mut level = leaves(rows, dimension);
        level.resize(places, hash_list(TAG_TABLE, &wide(&vec![0; dimension])));
        let mut nodes = level.clone();
        while level.len() > 1 {
            level = parents(&level);
            nodes.extend_from_slice(&level);
        }
        nodes
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIMENSION: usize = 256;

    fn rows(count: usize) -> Vec<i8> {
        (0..count * DIMENSION)
            .map(|i| (i * i % 16) as i8 - 8)
            .collect()
    }

    #[test]
    fn nodes_are_the_hashes_of_their_children() {
        let leaf = |row: &[i8]| hash_list(TAG_TABLE, &wide(row));
        let node = |children: &[Fr]| narrow_9().permute(&node(children))[0];
        let nodes = tree(&rows(9), DIMENSION, 2).unwrap();
        assert_eq!(nodes.len(), 64 + 8 + 1);
        assert_eq!(nodes[8], leaf(&rows(9)[8 * DIMENSION..]));
        assert_eq!(nodes[9], leaf(&[0; DIMENSION]));
        assert_eq!(nodes[65], node(&nodes[8..16]));
        assert_eq!(nodes[72], node(&nodes[64..72]));
    }

    #[test]
    fn every_component_is_bound() {
        let row = [0i8; DIMENSION];
        let mut seen = vec![wide(&row)];
        for j in 0..DIMENSION {
            let mut other = row;
            other[j] = 7;
            seen.push(wide(&other));
        }
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), DIMENSION + 1);
    }

    #[test]
    fn refuses_what_does_not_fit() {
        assert!(tree(&rows(8), DIMENSION, 1).is_err());
        assert!(tree(&rows(1), DIMENSION, 0).is_err());
        assert!(tree(&rows(1), DIMENSION, 6).is_err());
        assert!(tree(&[], DIMENSION, 1).is_err());
        assert!(tree(&[0; MAX_DIMENSION + 1], MAX_DIMENSION + 1, 1).is_err());
        assert!(tree(&[8; DIMENSION], DIMENSION, 1).is_err());
    }
}
