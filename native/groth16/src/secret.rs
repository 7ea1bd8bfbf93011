//! Scalars that must not remain in memory: the secrets of a ceremony.
//!
//! The field elements of arkworks are `Copy`, and its scalar multiplication decomposes scalars on the heap; arkworks wipes
//! neither. This module therefore stores a secret at one place of the heap, and wipes it when it is dropped.
//! Multiplications use one chain of signed digits, which is wiped too. All work on secrets runs inside [`isolated`], on
//! threads that overwrite their stacks and therefore all temporaries.
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use ark_bn254::Fr;
use ark_ec::scalar_mul::glv::GLVConfig;
use ark_ec::short_weierstrass::Affine;
use ark_ec::AffineRepr;
use ark_ff::{BigInt, Field, PrimeField, Zero};
use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use zeroize::{Zeroize, Zeroizing};

use crate::affine::{add_assign, double_assign, BATCH};
use crate::error::{Error, Result};
use crate::field::le64;
use crate::field::Group;
use crate::msm::recode;

/// Signed digits base 2^4; halves of a decomposed scalar have at most 129 bits.
const WIDTH: usize = 4;
const WINDOWS: usize = 33;
/// The bytes of its stack that a thread of [`isolated`] overwrites: half of the stack, and far more than the work uses.
const STACK: usize = 1 << 20;

/// A non-zero scalar at one place of the heap, which is wiped when the scalar is dropped.
pub struct Secret(Box<Fr>);

impl Secret {
    /// Draw a uniform secret from the operating system's generator.
    pub fn draw() -> Result<Self> {
        let mut secret = Self(Box::new(Fr::zero()));
        loop {
            fill(&mut secret.0 .0 .0)?;
            // Both of BN254's primes have 254 bits. The drawn integer is the Montgomery form, as uniform as any.
            secret.0 .0 .0[3] &= u64::MAX >> 2;
            if secret.0 .0 < Fr::MODULUS && !secret.0.is_zero() {
                return Ok(secret);
            }
        }
    }

    /// A value that is public, or that the caller stores elsewhere too.
    pub fn known(value: Fr) -> Self {
        Self(Box::new(value))
    }

    pub fn value(&self) -> &Fr {
        &self.0
    }

    pub fn inverse(&self) -> Self {
        Self::known(self.0.inverse().expect("not zero"))
    }

    /// The multiple of one point.
    pub fn times<P: Group + GLVConfig>(&self, point: Affine<P>) -> Affine<P> {
        Chain::new(self).multiply(&[point])[0]
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

/// Fill four words from the operating system's generator, through a buffer that is wiped.
fn fill(words: &mut [u64; 4]) -> Result<()> {
    #[cfg(test)]
    if tests::dictated(words) {
        return Ok(());
    }
    let mut raw = Zeroizing::new(vec![0u8; 32]);
    getrandom::fill(&mut raw).map_err(|e| Error::Randomness(e.to_string()))?;
    for (word, bytes) in words.iter_mut().zip(raw.chunks_exact(8)) {
        *word = le64(bytes);
    }
    Ok(())
}

/// The signed digits of a secret's two halves under the endomorphism (Gallant, Lambert, Vanstone 2001). All
/// multiplications of points by the secret use this form.
pub struct Chain<P> {
    digits: Box<[[i8; WINDOWS]; 2]>,
    group: std::marker::PhantomData<P>,
}

impl<P: Group + GLVConfig> Chain<P> {
    pub fn new(secret: &Secret) -> Self {
        let mut chain = Self {
            digits: Box::new([[0; WINDOWS]; 2]),
            group: std::marker::PhantomData,
        };
        let halves = decompose::<P>(secret.value());
        for (row, half) in chain.digits.iter_mut().zip(halves) {
            recode(&half.into_bigint(), WIDTH, |w, d| row[w] = d as i8);
        }
        chain
    }

    /// The multiple of every point, by doublings and additions that share their inversions.
    pub fn multiply(&self, points: &[Affine<P>]) -> Vec<Affine<P>> {
        let mut out = vec![Affine::<P>::zero(); points.len()];
        out.par_chunks_mut(BATCH)
            .zip(points.par_chunks(BATCH))
            .for_each(|(out, points)| self.block(points, out));
        out
    }

    fn block(&self, points: &[Affine<P>], sums: &mut [Affine<P>]) {
        // With the full capacity: a vector that grows leaves its old content in freed memory.
        let mut scratch = Vec::with_capacity(points.len());
        // multiples[half][m - 1][t] = m times point t, or its image
        let mut multiples = vec![points.to_vec()];
        for m in 1..1 << (WIDTH - 1) {
            let mut next = multiples[m - 1].clone();
            add_assign(&mut next, &mut scratch, |t| points[t]);
            multiples.push(next);
        }
        let images = multiples
            .iter()
            .map(|row| row.iter().map(P::endomorphism_affine).collect())
            .collect();
        let multiples: [Vec<Vec<Affine<P>>>; 2] = [multiples, images];
        for w in (0..WINDOWS).rev() {
            if w + 1 < WINDOWS {
                for _ in 0..WIDTH {
                    double_assign(sums, &mut scratch);
                }
            }
            for (row, multiples) in self.digits.iter().zip(&multiples) {
                let d = row[w];
                if d == 0 {
                    continue;
                }
                let addends = &multiples[usize::from(d.unsigned_abs()) - 1];
                add_assign(sums, &mut scratch, |t| {
                    if d < 0 {
                        -addends[t]
                    } else {
                        addends[t]
                    }
                });
            }
        }
        scratch.zeroize();
    }
}

impl<P> Drop for Chain<P> {
    fn drop(&mut self) {
        self.digits.zeroize();
    }
}

/// (k1, k2) with k = k1 + lambda k2, each within 2^129 of zero.
///
/// With the lattice's rows (a, b) and (c, d), of determinant r, k1 = k - u a - v c and k2 = -u b - v d for
/// u = floor(k d / r) and v = floor(k (-b) / r).
fn decompose<P: Group + GLVConfig>(k: &Fr) -> [Fr; 2] {
    // In the signs of arkworks, true is positive.
    let [a, b, c, d] = P::SCALAR_DECOMP_COEFFS;
    let field = |(positive, x): (bool, BigInt<4>)| {
        let x = Fr::from_bigint(x).expect("half the length of r");
        if positive {
            x
        } else {
            -x
        }
    };
    // floor(k x / r), with the sign of x: a product below r 2^127, less its residue, is divided by r exactly, so that
    // the lowest 128 bits are enough.
    let quotient = |(positive, x): (bool, BigInt<4>)| {
        let residue = *k * Fr::from_bigint(x).expect("half the length of r");
        let low = low(&k.into_bigint())
            .wrapping_mul(low(&x))
            .wrapping_sub(low(&residue.into_bigint()));
        let q = Fr::from(low.wrapping_mul(INVERSE));
        if positive {
            q
        } else {
            -q
        }
    };
    let (u, v) = (quotient(d), -quotient(b));
    let k2 = -(u * field(b) + v * field(d));
    let k1 = *k - u * field(a) - v * field(c);
    [k1, k2]
}

const fn low(x: &BigInt<4>) -> u128 {
    x.0[0] as u128 | (x.0[1] as u128) << 64
}

/// 1/r mod 2^128, by Newton's iteration.
const INVERSE: u128 = {
    let r = low(&Fr::MODULUS);
    let mut inverse = 1u128;
    let mut i = 0;
    while i < 7 {
        inverse = inverse.wrapping_mul(2u128.wrapping_sub(r.wrapping_mul(inverse)));
        i += 1;
    }
    inverse
};

/// Replace each value x by `scale`/x, with one inversion for all; zeros stay. The function wipes the intermediate products.
pub fn invert_all(values: &mut [Fr], scale: &Fr) {
    let mut products = Zeroizing::new(Vec::with_capacity(values.len()));
    let mut product = Fr::ONE;
    for x in values.iter().filter(|x| !x.is_zero()) {
        products.push(product);
        product *= x;
    }
    let mut inverse = product.inverse().expect("a product of units") * scale;
    let kept = values.iter_mut().rev().filter(|x| !x.is_zero());
    for (x, before) in kept.zip(products.iter().rev()) {
        let next = inverse * *x;
        *x = inverse * before;
        inverse = next;
    }
}

/// Run `work` on threads of its own, each of which overwrites its stack before it ends.
///
/// The shared pool is unsuitable: its threads also run other work, and never overwrite their stacks. The values that
/// `work` captures and returns must not contain a secret.
pub fn isolated<T: Send>(work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    Threads::new(rayon::current_num_threads())?
        .pool
        .as_ref()
        .expect("present until drop")
        .install(work)
}

/// A pool of threads. Dropping it waits until all threads have overwritten their stacks and ended.
struct Threads {
    pool: Option<ThreadPool>,
    handles: Arc<Mutex<Vec<JoinHandle<()>>>>,
}

impl Threads {
    fn new(count: usize) -> Result<Self> {
        let handles = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&handles);
        let pool = ThreadPoolBuilder::new()
            .num_threads(count)
            .spawn_handler(move |thread| {
                let handle = std::thread::Builder::new()
                    .stack_size(2 * STACK)
                    .spawn(|| {
                        below(|| thread.run());
                        wipe_stack();
                    })?;
                kept.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(handle);
                Ok(())
            })
            .build()
            .map_err(|e| Error::Threads(e.to_string()))?;
        Ok(Self {
            pool: Some(pool),
            handles,
        })
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.pool = None;
        let mut handles = self.handles.lock().unwrap_or_else(PoisonError::into_inner);
        for handle in handles.drain(..) {
            // A panic in a job has already reached the caller of `install`.
            let _ = handle.join();
        }
    }
}

/// Run `work` at some depth of the stack, so that `wipe_stack` reaches every byte that it used.
#[inline(never)]
fn below(work: impl FnOnce()) {
    let mut gap = [0u8; 1 << 12];
    std::hint::black_box(&mut gap);
    work();
    std::hint::black_box(&mut gap);
}

#[inline(never)]
fn wipe_stack() {
    let mut area = [0u8; STACK];
    area.zeroize();
    std::hint::black_box(&mut area);
}

#[cfg(test)]
#[path = "secret_tests.rs"]
mod tests;
