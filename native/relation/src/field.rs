//! The BN254 scalar field as the boundary sees it: 32 bytes, big-endian, canonical.
use ark_ff::{AdditiveGroup, BigInt, BigInteger, MontFp, PrimeField};

pub use ark_bn254::Fr;

use crate::Error;

/// Bytes of one encoded element.
pub const ELEMENT_BYTES: usize = 32;

/// Decodes one element; an integer not below the modulus is refused, because a second encoding of one element
/// would be a second document under one commitment.
pub fn from_bytes(bytes: &[u8; ELEMENT_BYTES], field: &str) -> Result<Fr, Error> {
    let mut limbs = [0u64; 4];
    for (limb, chunk) in limbs.iter_mut().rev().zip(bytes.chunks_exact(8)) {
        *limb = chunk.iter().fold(0, |acc, &b| acc << 8 | u64::from(b));
    }
    Fr::from_bigint(BigInt::new(limbs)).ok_or_else(|| {
        let hex: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
        Error::invalid(field, "an integer below the field's modulus", hex)
    })
}

/// Decodes exactly one element.
pub fn element(bytes: &[u8], field: &str) -> Result<Fr, Error> {
    let array = bytes.try_into().map_err(|_| {
        Error::invalid(
            field,
            format!("{ELEMENT_BYTES} bytes"),
            format!("{} bytes", bytes.len()),
        )
    })?;
    from_bytes(array, field)
}

/// Decodes concatenated elements.
pub fn elements(bytes: &[u8], field: &str) -> Result<Vec<Fr>, Error> {
    let chunks = bytes.chunks_exact(ELEMENT_BYTES);
    if !chunks.remainder().is_empty() {
        return Err(Error::invalid(
            field,
            format!("a multiple of {ELEMENT_BYTES} bytes"),
            format!("{} bytes", bytes.len()),
        ));
    }
    chunks
        .enumerate()
        .map(|(i, chunk)| element(chunk, &format!("{field}[{i}]")))
        .collect()
}

/// Decodes exactly `N` concatenated elements, and leaves no copy of them in freed memory.
///
/// ```
/// use ragaudit_relation::field::{exactly, to_bytes};
///
/// let bytes = [2u8, 3].map(|x| to_bytes(&x.into())).concat();
/// assert_eq!(exactly(&bytes, "seed")?, [2u8, 3].map(Into::into));
/// assert!(exactly::<3>(&bytes, "seed").is_err());
/// # Ok::<(), ragaudit_relation::Error>(())
/// ```
pub fn exactly<const N: usize>(bytes: &[u8], field: &str) -> Result<[Fr; N], Error> {
    if bytes.len() != N * ELEMENT_BYTES {
        return Err(Error::invalid(
            field,
            format!("{N} elements of {ELEMENT_BYTES} bytes"),
            format!("{} bytes", bytes.len()),
        ));
    }
    let mut all = [Fr::ZERO; N];
    for (i, x) in all.iter_mut().enumerate() {
        let at = i * ELEMENT_BYTES..(i + 1) * ELEMENT_BYTES;
        *x = element(&bytes[at], &format!("{field}[{i}]"))?;
    }
    Ok(all)
}

/// 512 bits, little-endian, modulo r: within 2^-258 of uniform if they are, as r < 2^254.
pub fn from_wide(bytes: &[u8; 64]) -> Fr {
    // Runs of 31 bytes are below r.
    let run = |bytes: &[u8]| {
        let mut limbs = [0u64; 4];
        for (limb, chunk) in limbs.iter_mut().zip(bytes.chunks(8)) {
            *limb = chunk
                .iter()
                .rev()
                .fold(0, |acc, &b| acc << 8 | u64::from(b));
        }
        Fr::from_bigint(BigInt::new(limbs)).expect("below 2^248")
    };
    const STEP: Fr =
        MontFp!("452312848583266388373324160190187140051835877600158453279131187530910662656"); // 2^248
    (run(&bytes[62..]) * STEP + run(&bytes[31..62])) * STEP + run(&bytes[..31])
}

/// The 32-byte big-endian form.
pub fn to_bytes(x: &Fr) -> [u8; ELEMENT_BYTES] {
    let mut out = [0u8; ELEMENT_BYTES];
    out.copy_from_slice(&x.into_bigint().to_bytes_be());
    out
}

/// Concatenated 32-byte big-endian forms.
pub fn to_bytes_all<'a>(xs: impl IntoIterator<Item = &'a Fr>) -> Vec<u8> {
    xs.into_iter().flat_map(to_bytes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ark_ff::{AdditiveGroup, Field};

    fn modulus() -> [u8; ELEMENT_BYTES] {
        Fr::MODULUS.to_bytes_be().try_into().unwrap()
    }

    #[test]
    fn round_trip_at_the_edges() {
        for x in [
            Fr::ZERO,
            Fr::ONE,
            -Fr::ONE,
            Fr::from(0x0102_0304_0506_0708u64),
        ] {
            assert_eq!(from_bytes(&to_bytes(&x), "x").unwrap(), x);
        }
        assert_eq!(to_bytes(&Fr::from(0x0102u64))[30..], [1, 2]);
    }

    #[test]
    fn wide_integers_are_reduced() {
        let mut bytes: [u8; 64] = std::array::from_fn(|i| (i * 37 + 11) as u8);
        for fill in [None, Some(0), Some(0xff)] {
            bytes = fill.map_or(bytes, |b| [b; 64]);
            assert_eq!(from_wide(&bytes), Fr::from_le_bytes_mod_order(&bytes));
        }
    }

    #[test]
    fn modulus_and_above_are_refused() {
        assert!(from_bytes(&modulus(), "x").is_err());
        assert!(from_bytes(&[0xff; ELEMENT_BYTES], "x").is_err());
    }

    #[test]
    fn wrong_length_is_refused_with_its_place() {
        let mut bytes = vec![0; ELEMENT_BYTES];
        bytes.extend(modulus());
        let message = elements(&bytes, "inputs").unwrap_err().to_string();
        assert!(message.starts_with("inputs[1]: expected"), "{message}");
        assert!(elements(&bytes[..40], "inputs").is_err());
        assert!(element(&bytes, "x").is_err());
    }
}
