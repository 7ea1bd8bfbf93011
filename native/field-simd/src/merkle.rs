//! RFC 9162 trees with SHA-256 (section 2.1) that grow, and the root that a path leads to.
//!
//! The roots of complete subtrees are kept, so that a root or a path takes a hash a level. `rag_audit.log.merkle` has the
//! same as the RFC writes it; the two share nothing.
use sha2::{Digest, Sha256};

use crate::Error;

/// A SHA-256 digest.
pub type Hash = [u8; 32];

fn node(left: &Hash, right: &Hash) -> Hash {
    let hash = Sha256::new().chain_update([1]).chain_update(left);
    hash.chain_update(right).finalize().into()
}

/// The largest power of two below n, which is 2 or more.
fn split(n: usize) -> usize {
    1 << (n - 1).ilog2()
}

/// A growing tree over leaf hashes.
#[derive(Default)]
pub struct Tree {
    /// At h, the roots of the complete subtrees of 2^h leaves, from the left.
    levels: Vec<Vec<Hash>>,
}

impl Tree {
    /// Number of leaves.
    pub fn size(&self) -> usize {
        self.levels.first().map_or(0, Vec::len)
    }

    /// Adds one leaf hash.
    pub fn push(&mut self, leaf: Hash) {
        let mut root = leaf;
        for height in 0.. {
            if height == self.levels.len() {
                self.levels.push(Vec::new());
            }
            let level = &mut self.levels[height];
            level.push(root);
            match level[..] {
                [.., left, right] if level.len().is_multiple_of(2) => root = node(&left, &right),
                _ => break,
            }
        }
    }

    /// The leaf hashes from `start` to before `end`.
    pub fn leaves(&self, start: usize, end: usize) -> Result<&[Hash], Error> {
        let leaves = self.levels.first().map_or(&[][..], Vec::as_slice);
        let outside = || {
            Error::invalid(
                "leaves",
                format!("within {}", leaves.len()),
                end.to_string(),
            )
        };
        leaves.get(start..end).ok_or_else(outside)
    }

    /// MTH of the first `size` leaves.
    pub fn root(&self, size: usize) -> Result<Hash, Error> {
        self.within("size", size, self.size())?;
        Ok(match size {
            0 => Sha256::digest([]).into(),
            _ => self.over(0, size),
        })
    }

    /// PATH(index, D[size]): the leaf's sibling first.
    pub fn inclusion_path(&self, index: usize, size: usize) -> Result<Vec<Hash>, Error> {
        self.within("size", size, self.size())?;
        if index >= size {
            return Err(Error::invalid(
                "index",
                format!("below {size}"),
                index.to_string(),
            ));
        }
        let (mut low, mut high, mut path) = (0, size, Vec::new());
        while high - low > 1 {
            let middle = low + split(high - low);
            if index < middle {
                path.push(self.over(middle, high));
                high = middle;
            } else {
                path.push(self.over(low, middle));
                low = middle;
            }
        }
        path.reverse();
        Ok(path)
    }

    /// PROOF(m, D[n]), which is empty for m = 0 and for m = n.
    pub fn consistency_path(&self, m: usize, n: usize) -> Result<Vec<Hash>, Error> {
        self.within("n", n, self.size())?;
        self.within("m", m, n)?;
        let (mut low, mut high, mut path) = (0, n, Vec::new());
        if m == 0 {
            return Ok(path);
        }
        while m != high {
            let middle = low + split(high - low);
            if m <= middle {
                path.push(self.over(middle, high));
                high = middle;
            } else {
                path.push(self.over(low, middle));
                low = middle;
            }
        }
        // Only a subtree that starts at the left edge can be the earlier tree itself, whose root is known.
        if low > 0 {
            path.push(self.over(low, high));
        }
        path.reverse();
        Ok(path)
    }

    /// The root over leaves low..high, a subtree of some prefix.
    fn over(&self, low: usize, high: usize) -> Hash {
        let n = high - low;
        if n.is_power_of_two() {
            let height = n.ilog2() as usize;
            return self.levels[height][low >> height];
        }
        let middle = low + split(n);
        node(&self.over(low, middle), &self.over(middle, high))
    }

    fn within(&self, field: &str, actual: usize, maximum: usize) -> Result<(), Error> {
        if actual <= maximum {
            return Ok(());
        }
        Err(Error::invalid(
            field,
            format!("at most {maximum}"),
            actual.to_string(),
        ))
    }
}

/// The root to which a path leads from a leaf hash (section 2.1.3.2); None if the path has another length.
pub fn path_root(leaf: Hash, index: u64, size: u64, path: &[Hash]) -> Option<Hash> {
    if index >= size {
        return None;
    }
    let (mut fn_, mut sn, mut r) = (index, size - 1, leaf);
    for p in path {
        if sn == 0 {
            return None;
        }
        if fn_ & 1 == 1 || fn_ == sn {
            r = node(p, &r);
            while fn_ & 1 == 0 && fn_ != 0 {
                (fn_, sn) = (fn_ >> 1, sn >> 1);
            }
        } else {
            r = node(&r, p);
        }
        (fn_, sn) = (fn_ >> 1, sn >> 1);
    }
    (sn == 0).then_some(r)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaf(i: usize) -> Hash {
        Sha256::digest(i.to_be_bytes()).into()
    }

    /// MTH as section 2.1.1 has it.
    fn root(leaves: &[Hash]) -> Hash {
        match leaves {
            [] => Sha256::digest([]).into(),
            [one] => *one,
            _ => {
                let (left, right) = leaves.split_at(split(leaves.len()));
                node(&root(left), &root(right))
            }
        }
    }

    #[test]
    fn every_prefix_has_the_root_of_the_definition_and_paths_that_lead_to_it() {
        let leaves: Vec<Hash> = (0..70).map(leaf).collect();
        let mut tree = Tree::default();
        for (i, leaf) in leaves.iter().enumerate() {
            assert_eq!(tree.size(), i);
            tree.push(*leaf);
        }
        for n in 0..=leaves.len() {
            assert_eq!(tree.root(n).unwrap(), root(&leaves[..n]));
            for i in 0..n {
                let path = tree.inclusion_path(i, n).unwrap();
                let actual = path_root(leaves[i], i as u64, n as u64, &path);
                assert_eq!(actual, Some(root(&leaves[..n])), "{i} of {n}");
                if let [_, rest @ ..] = &path[..] {
                    assert_eq!(path_root(leaves[i], i as u64, n as u64, rest), None);
                }
            }
            assert!(tree.inclusion_path(n, n).is_err());
        }
        assert!(tree.root(71).is_err());
        assert!(tree.leaves(3, 71).is_err());
        assert_eq!(tree.leaves(3, 5).unwrap(), &leaves[3..5]);
        assert!(tree.consistency_path(5, 4).is_err());
    }
}
