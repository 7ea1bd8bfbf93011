//! The common parts of unit tests.
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use ark_bn254::Fr;
use ark_ff::{BigInt, PrimeField};

use crate::field::limbs_to_le;
use crate::r1cs::R1cs;

/// Tests that draw, dictate or search for secrets run one at a time, because the source of secrets is global.
pub static TURN: Mutex<()> = Mutex::new(());

pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A folder that is deleted when the test ends.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("rag-audit-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A chain of squarings, as an `.r1cs` file: `steps` constraints.
pub fn system(folder: &Folder, steps: u32) -> R1cs {
    let section = |id: u32, body: &[u8]| {
        let head = [&id.to_le_bytes()[..], &(body.len() as u64).to_le_bytes()].concat();
        [head, body.to_vec()].concat()
    };
    let mut header = 32u32.to_le_bytes().to_vec();
    header.extend(limbs_to_le(&Fr::MODULUS));
    for n in [steps + 2, 0, 1, 1] {
        header.extend(n.to_le_bytes());
    }
    header.extend(0u64.to_le_bytes());
    header.extend(steps.to_le_bytes());
    let one = limbs_to_le(&BigInt::from(1u64));
    let mut body = Vec::new();
    for i in 0..steps {
        let result = if i + 1 == steps { 1 } else { 3 + i };
        for wire in [2 + i, 2 + i, result] {
            body.extend(1u32.to_le_bytes());
            body.extend(wire.to_le_bytes());
            body.extend(one);
        }
    }
    let mut data = b"r1cs".to_vec();
    data.extend(1u32.to_le_bytes());
    data.extend(3u32.to_le_bytes());
    data.extend(section(1, &header));
    data.extend(section(2, &body));
    data.extend(section(3, &vec![0; 8 * (steps as usize + 2)]));
    let path = folder.0.join("c.r1cs");
    std::fs::write(&path, data).unwrap();
    R1cs::read(&path).unwrap()
}
