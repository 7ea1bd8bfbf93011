//! The commitment to an index: a list hash over the dense nibble stream of all its positions.
use ark_ff::BigInt;
use ark_ff::PrimeField;

use crate::field::Fr;
use crate::int4::{check_components, check_shape, NIBBLE_OFFSET};
use crate::poseidon::hash_list;
use crate::Error;

/// Domain tag of an index.
pub const TAG_INDEX: u64 = 7;
pub use ragaudit_relation::NIBBLES_PER_ELEMENT;

/// Components -8..7 as nibbles v + 8, 63 an element, least significant first, the last padded with 8.
pub fn pack_nibbles(components: &[i8]) -> Vec<Fr> {
    let pack = |run: &[i8]| {
        let mut limbs = [0u64; 4];
        for i in 0..NIBBLES_PER_ELEMENT {
            let nibble = run.get(i).copied().unwrap_or(0) + NIBBLE_OFFSET;
            limbs[i / 16] |= (nibble as u64) << (4 * (i % 16));
        }
        Fr::from_bigint(BigInt::new(limbs)).expect("252 bits are below the modulus")
    };
    components.chunks(NIBBLES_PER_ELEMENT).map(pack).collect()
}

/// C_idx = HL(7, [salt, nibble stream]) of int8 rows, shape (positions, dimension).
pub fn index_commitment(salt: Fr, rows: &[i8], dimension: usize) -> Result<Fr, Error> {
    check_shape("rows", rows.len(), dimension)?;
    check_components("rows", rows)?;
    let mut list = vec![salt];
    list.extend(pack_nibbles(rows));
    Ok(hash_list(TAG_INDEX, &list))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packing_is_dense_and_padded_with_eights() {
        let mut components = vec![0i8; 64];
        components[0] = -8;
        components[1] = 7;
        components[63] = -7;
        let packed = pack_nibbles(&components);
        assert_eq!(packed.len(), 2);
        assert_eq!(
            packed[0].into_bigint().0,
            [0x8888_8888_8888_88f0, EIGHTS, EIGHTS, EIGHTS >> 4]
        );
        assert_eq!(
            packed[1].into_bigint().0,
            [EIGHTS - 7, EIGHTS, EIGHTS, EIGHTS >> 4]
        );
    }

    const EIGHTS: u64 = 0x8888_8888_8888_8888;

    #[test]
    fn commitment_binds_salt_and_every_component() {
        let rows = [1i8; 8];
        let c = |salt: u64, rows: &[i8]| index_commitment(Fr::from(salt), rows, 4).unwrap();
        let mut other = rows;
        other[7] = 2;
        assert_ne!(c(1, &rows), c(2, &rows));
        assert_ne!(c(1, &rows), c(1, &other));
        assert!(index_commitment(Fr::from(1u8), &[8; 4], 4).is_err());
        assert!(index_commitment(Fr::from(1u8), &[1; 5], 4).is_err());
    }
}
