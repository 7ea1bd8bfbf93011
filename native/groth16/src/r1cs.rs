//! circom's constraint systems (`.r1cs`) and witnesses (`.wtns`).
use std::collections::HashMap;
use std::path::Path;

use ark_bn254::Fr;
use ark_ff::{BigInt, PrimeField, Zero};
use rayon::prelude::*;

use crate::binfile::{Cursor, Sections};
use crate::error::{malformed, Error, Result};
use crate::field::{limbs, limbs_to_le};

/// A sparse matrix by rows; each coefficient is stored once, because circuits use few different coefficients.
#[derive(Default)]
pub struct Matrix {
    /// Row `i` is `entries[ends[i - 1]..ends[i]]`.
    ends: Vec<usize>,
    /// (wire, index into `R1cs::coefficients`)
    entries: Vec<(u32, u32)>,
}

impl Matrix {
    pub fn rows(&self) -> impl Iterator<Item = &[(u32, u32)]> {
        (0..self.ends.len()).map(|i| self.row(i))
    }
    pub fn row(&self, i: usize) -> &[(u32, u32)] {
        let start = if i == 0 { 0 } else { self.ends[i - 1] };
        &self.entries[start..self.ends[i]]
    }
    #[cfg(test)]
    pub(crate) fn push(&mut self, row: impl IntoIterator<Item = (u32, u32)>) {
        self.entries.extend(row);
        self.ends.push(self.entries.len());
    }
    pub fn len(&self) -> usize {
        self.entries.len()
    }
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

/// A rank-1 constraint system: (A w)(B w) = C w, w = (1, outputs, public inputs, private).
pub struct R1cs {
    pub wires: usize,
    /// Public outputs and public inputs, without the constant wire.
    pub public: usize,
    pub constraints: usize,
    pub a: Matrix,
    pub b: Matrix,
    pub c: Matrix,
    pub coefficients: Vec<Fr>,
}

impl R1cs {
    /// Read a `.r1cs` file (version 1, BN254, no custom gates).
    pub fn read(path: &Path) -> Result<Self> {
        let file = Sections::open(path, b"r1cs", 1)?;
        if let Some(id) = file.ids().find(|id| !(1..=5).contains(id)) {
            return malformed(file.name(), format!("section {id} is unknown"));
        }
        let header = file.bytes(file.sized(1, 64)?)?;
        let mut cursor = Cursor::new(&header, file.place("header"));
        check_prime(&mut cursor)?;
        let wires = cursor.u32()? as usize;
        let outputs = cursor.u32()? as usize;
        let public_inputs = cursor.u32()? as usize;
        let private_inputs = cursor.u32()? as usize;
        let _labels = cursor.u64()?;
        let constraints = cursor.u32()? as usize;
        let public = outputs + public_inputs;
        if wires < 1 + public + private_inputs {
            return cursor.fail(format!(
                "the circuit has {wires} wires, fewer than inputs and outputs"
            ));
        }
        for id in [4, 5] {
            if file.has(id) && file.bytes(file.section(id)?)?.iter().any(|&b| b != 0) {
                return malformed(
                    file.place(&format!("section {id}")),
                    "custom gates are not supported",
                );
            }
        }
        let body = file.bytes(file.section(2)?)?;
        let mut cursor = Cursor::new(&body, file.place("constraints"));
        let mut known: HashMap<[u8; 32], u32> = HashMap::new();
        let mut coefficients = Vec::new();
        let mut matrices = [Matrix::default(), Matrix::default(), Matrix::default()];
        for _ in 0..constraints {
            for matrix in &mut matrices {
                for _ in 0..cursor.u32()? {
                    let wire = cursor.u32()?;
                    if wire as usize >= wires {
                        return cursor.fail(format!("expected a wire below {wires}, found {wire}"));
                    }
                    let raw: [u8; 32] = cursor.take(32)?.try_into().expect("32 bytes");
                    let index = match known.get(&raw) {
                        Some(&index) => index,
                        None => {
                            let Some(value) = Fr::from_bigint(limbs(&raw)) else {
                                return cursor.fail("a coefficient is not below the group order");
                            };
                            let index = coefficients.len() as u32;
                            coefficients.push(value);
                            known.insert(raw, index);
                            index
                        }
                    };
                    matrix.entries.push((wire, index));
                }
                matrix.ends.push(matrix.entries.len());
            }
        }
        cursor.end()?;
        // Keys have points for every wire, so the file must have a label for each wire that it counts.
        file.sized(3, 8 * wires as u64)?;
        let [a, b, c] = matrices;
        Ok(Self {
            wires,
            public,
            constraints,
            a,
            b,
            c,
            coefficients,
        })
    }

    /// Indices of the constraints that a witness does not satisfy, ascending, at most `limit`.
    pub fn unsatisfied(&self, witness: &Witness, limit: usize) -> Result<Vec<usize>> {
        if witness.0.len() != self.wires {
            return Err(Error::Mismatch(format!(
                "the witness has {} values, but the circuit has {} wires",
                witness.0.len(),
                self.wires
            )));
        }
        let w: Vec<Fr> = witness
            .0
            .par_iter()
            .map(|x| Fr::from_bigint(*x).expect("checked when it was read"))
            .collect();
        let dot = |row: &[(u32, u32)]| {
            row.iter().fold(Fr::zero(), |acc, &(wire, k)| {
                acc + self.coefficients[k as usize] * w[wire as usize]
            })
        };
        let mut bad: Vec<usize> = (0..self.constraints)
            .into_par_iter()
            .filter(|&i| dot(self.a.row(i)) * dot(self.b.row(i)) != dot(self.c.row(i)))
            .collect();
        bad.truncate(limit);
        Ok(bad)
    }
}

fn check_prime(cursor: &mut Cursor) -> Result<()> {
    if cursor.u32()? != 32 || cursor.take(32)? != limbs_to_le(&Fr::MODULUS) {
        return cursor.fail("the file is not over the scalar field of BN254");
    }
    Ok(())
}

/// A full assignment, wire 0 being one; plain (not Montgomery) integers below the group order.
pub struct Witness(pub Vec<BigInt<4>>);

impl Witness {
    /// Read the bytes of a `.wtns` file (versions 1 and 2).
    pub fn parse(data: &[u8]) -> Result<Self> {
        let file = Sections::scan(data, Path::new("witness"), b"wtns", 2)?;
        if let Some(id) = file.ids().find(|id| !(1..=2).contains(id)) {
            return malformed("witness", format!("section {id} is unknown"));
        }
        let header = file.bytes(file.sized(1, 40)?)?;
        let mut cursor = Cursor::new(&header, file.place("header"));
        check_prime(&mut cursor)?;
        let count = cursor.u32()? as u64;
        let body = file.sized(2, 32 * count)?;
        let raw = &data[body.offset as usize..(body.offset + body.size) as usize];
        let mut values = vec![BigInt::<4>::zero(); count as usize];
        values
            .par_iter_mut()
            .zip(raw.par_chunks_exact(32))
            .enumerate()
            .try_for_each(|(i, (out, b))| {
                *out = limbs(b);
                if *out < Fr::MODULUS {
                    Ok(())
                } else {
                    malformed(
                        format!("witness[{i}]"),
                        "the value is not below the group order",
                    )
                }
            })?;
        if values.first() != Some(&BigInt::one()) {
            return malformed("witness[0]", "the first value must be one");
        }
        Ok(Self(values))
    }

    /// The bytes of a `.wtns` file (version 2), as circom's own code and snarkjs write it.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(76 + 32 * self.0.len());
        out.extend(b"wtns");
        let mut words = |words: &[u32]| words.iter().for_each(|w| out.extend(w.to_le_bytes()));
        words(&[2, 2, 1, 40, 0, 32]);
        out.extend(limbs_to_le(&Fr::MODULUS));
        out.extend((self.0.len() as u32).to_le_bytes());
        out.extend(2u32.to_le_bytes());
        out.extend((32 * self.0.len() as u64).to_le_bytes());
        for value in &self.0 {
            out.extend(limbs_to_le(value));
        }
        out
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        zeroize::Zeroize::zeroize(&mut self.0);
    }
}
