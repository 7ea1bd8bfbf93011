//! Eight residues in five vectors of 52-bit limbs: `v[i]` holds limb i of all lanes.
//!
//! A field element x is stored by `ark-ff` as x 2^256 mod p. Here it is x 2^260 modulo p, so loading is a shift by four
//! bits and a product is Montgomery's with radix 2^260, whose six spare bits carry the bounds of [`super`].
use std::sync::atomic::{AtomicU8, Ordering};

use ark_ff::{BigInt, Fp, MontBackend, MontConfig};

use super::intrinsics::*;
use super::pick::{Words, ENTRIES};
use super::{Integers, Lanes, Picks};

/// Eight lanes. Only [`Avx512::detect`] creates a value, if the processor has AVX-512 F and IFMA.
#[derive(Clone, Copy, Debug)]
pub struct Avx512(());

impl Avx512 {
    /// None if the processor lacks these features, or if the environment variable `RAG_AUDIT_PORTABLE` is set.
    #[inline(always)]
    pub fn detect() -> Option<Self> {
        static FOUND: AtomicU8 = AtomicU8::new(0);
        match FOUND.load(Ordering::Relaxed) {
            0 => {
                let found = is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512ifma")
                    && std::env::var_os("RAG_AUDIT_PORTABLE").is_none();
                FOUND.store(1 + u8::from(found), Ordering::Relaxed);
                found.then_some(Self(()))
            }
            state => (state == 2).then_some(Self(())),
        }
    }

    /// A token for lemmas: their model of the intrinsics runs on every processor.
    #[cfg(test)]
    #[allow(dead_code)]
    pub(super) unsafe fn assumed() -> Self {
        Self(())
    }
}

/// Runs `f` as code compiled for [`Avx512`], with all functions that are inlined into `f`.
#[inline(always)]
pub fn vectorize<R>(_: Avx512, f: impl FnOnce() -> R) -> R {
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn run<R>(f: impl FnOnce() -> R) -> R {
        f()
    }
    // SAFETY: the token exists only where the processor has both features.
    unsafe { run(f) }
}

/// Limbs 0 to 4 of eight lanes, each below 2^52.
pub(super) type V = [__m512i; 5];

const BITS: u32 = 52;
const MASK: u64 = (1 << BITS) - 1;

/// x 2^shift in 52-bit limbs, for x 2^shift below 2^260.
const fn split(x: &[u64; 4], shift: u32) -> [u64; 5] {
    let mut out = [0; 5];
    let mut i = 0;
    while i < 5 {
        // Bit 52 i of the shifted value is bit 52 i - shift of x.
        let at = i as u32 * BITS;
        out[i] = if at < shift {
            x[0] << shift
        } else {
            let (limb, bit) = ((at - shift) as usize / 64, (at - shift) % 64);
            let high = if bit == 0 || limb == 3 {
                0
            } else {
                x[limb + 1] << (64 - bit)
            };
            x[limb] >> bit | high
        } & MASK;
        i += 1;
    }
    out
}

/// Constants of one field.
pub(super) struct Of<C>(std::marker::PhantomData<C>);

impl<C: MontConfig<4>> Of<C> {
    pub(super) const P: [u64; 5] = split(&C::MODULUS.0, 0);
    pub(super) const TWO_P: [u64; 5] = split(&C::MODULUS.0, 1);
    const SIXTEEN_P: [u64; 5] = split(&C::MODULUS.0, 4);
    /// 2^260 - p.
    const MINUS_P: [u64; 5] = {
        let mut out = [0; 5];
        let mut borrow = 0;
        let mut i = 0;
        while i < 5 {
            out[i] = ((1 << BITS) - Self::P[i] - borrow) & MASK;
            borrow = (Self::P[i] + borrow > 0) as u64;
            i += 1;
        }
        out
    };
    /// -1/p mod 2^52.
    const INV: u64 = C::INV & MASK;
    /// floor(2^97 / (p / 2^208 + 1)), which turns the highest limb into an estimate of the quotient by p.
    pub(super) const QUOTIENT: u64 = ((1u128 << 97) / (Self::P[4] as u128 + 1)) as u64;
}

// SAFETY of every intrinsic below: callers hold an `Avx512`.

#[inline(always)]
fn all(x: u64) -> __m512i {
    unsafe { _mm512_set1_epi64(x as i64) }
}

#[inline(always)]
fn plus(a: __m512i, b: __m512i) -> __m512i {
    unsafe { _mm512_add_epi64(a, b) }
}

#[inline(always)]
fn minus(a: __m512i, b: __m512i) -> __m512i {
    unsafe { _mm512_sub_epi64(a, b) }
}

#[inline(always)]
fn masked(a: __m512i) -> __m512i {
    unsafe { _mm512_and_si512(a, all(MASK)) }
}

/// acc + the low 52 bits of a b, for a and b below 2^52.
#[inline(always)]
fn low(acc: __m512i, a: __m512i, b: __m512i) -> __m512i {
    unsafe { _mm512_madd52lo_epu64(acc, a, b) }
}

/// acc + a b / 2^52.
#[inline(always)]
fn high(acc: __m512i, a: __m512i, b: __m512i) -> __m512i {
    unsafe { _mm512_madd52hi_epu64(acc, a, b) }
}

/// Propagates carries, which may be negative, from limb to limb. The carry out of the highest limb is dropped.
#[inline(always)]
fn carried(mut x: V) -> V {
    for i in 0..4 {
        x[i + 1] = plus(x[i + 1], unsafe { _mm512_srai_epi64(x[i], BITS) });
        x[i] = masked(x[i]);
    }
    x[4] = masked(x[4]);
    x
}

#[inline(always)]
fn constant(x: &[u64; 5]) -> V {
    x.map(all)
}

/// x - m. Its highest limb is negative if x is below m.
#[inline(always)]
pub(super) fn difference(x: V, m: &[u64; 5]) -> V {
    let mut d = x;
    for (d, m) in d.iter_mut().zip(m) {
        *d = minus(*d, all(*m));
    }
    for i in 0..4 {
        d[i + 1] = plus(d[i + 1], unsafe { _mm512_srai_epi64(d[i], BITS) });
        d[i] = masked(d[i]);
    }
    d
}

/// x if it is below m, else x - m.
#[inline(always)]
pub(super) fn below(x: V, m: &[u64; 5]) -> V {
    let d = difference(x, m);
    let borrowed = unsafe { _mm512_cmplt_epi64_mask(d[4], all(0)) };
    let mut out = d;
    for (out, x) in out.iter_mut().zip(&x) {
        *out = unsafe { _mm512_mask_mov_epi64(*out, borrowed, *x) };
    }
    out
}

#[inline(always)]
fn multiply(w: &mut [__m512i; 10], a: &V, b: &V) {
    for i in 0..5 {
        for j in 0..5 {
            w[i + j] = low(w[i + j], a[i], b[j]);
            w[i + j + 1] = high(w[i + j + 1], a[i], b[j]);
        }
    }
}

/// w / 2^260 mod p, below p + w / 2^260.
#[inline(always)]
fn montgomery<C: MontConfig<4>>(mut w: [__m512i; 10]) -> V {
    let p = constant(&Of::<C>::P);
    let inv = all(Of::<C>::INV);
    for i in 0..5 {
        let m = low(all(0), w[i], inv);
        for j in 0..5 {
            w[i + j] = low(w[i + j], m, p[j]);
            w[i + j + 1] = high(w[i + j + 1], m, p[j]);
        }
        // A limb of a sum of 400 products is below 2^64 and can have the top bit, so the shift must be unsigned.
        w[i + 1] = plus(w[i + 1], unsafe { _mm512_srli_epi64(w[i], BITS) });
    }
    let mut out = [w[5], w[6], w[7], w[8], w[9]];
    for i in 0..4 {
        out[i + 1] = plus(out[i + 1], unsafe { _mm512_srli_epi64(out[i], BITS) });
        out[i] = masked(out[i]);
    }
    out
}

/// The words of two elements. A function, because a closure is not always inlined.
#[inline(always)]
fn halves<C: MontConfig<4>>(a: &Fp<MontBackend<C, 4>, 4>, b: &Fp<MontBackend<C, 4>, 4>) -> __m512i {
    // SAFETY: each pointer is to the four words of a field element.
    unsafe {
        let first = _mm512_castsi256_si512(_mm256_loadu_si256(a.0 .0.as_ptr().cast()));
        _mm512_inserti64x4::<1>(first, _mm256_loadu_si256(b.0 .0.as_ptr().cast()))
    }
}

/// The limbs of x 16 from the words of x.
#[inline(always)]
pub(super) fn limbs(x: [__m512i; 4]) -> V {
    // Limb i is bits 52 i - 4 .. 52 i + 48 of x.
    unsafe {
        [
            masked(_mm512_slli_epi64(x[0], 4)),
            masked(_mm512_or_si512(
                _mm512_srli_epi64(x[0], 48),
                _mm512_slli_epi64(x[1], 16),
            )),
            masked(_mm512_or_si512(
                _mm512_srli_epi64(x[1], 36),
                _mm512_slli_epi64(x[2], 28),
            )),
            masked(_mm512_or_si512(
                _mm512_srli_epi64(x[2], 24),
                _mm512_slli_epi64(x[3], 40),
            )),
            _mm512_srli_epi64(x[3], 12),
        ]
    }
}

/// x / 16 modulo p: the multiple of p that clears the low bits is added first, so a value below 49 p leaves less than 4 p.
#[inline(always)]
pub(super) fn sixteenth<C: MontConfig<4>>(mut x: V) -> V {
    let p = constant(&Of::<C>::P);
    let multiple = unsafe { _mm512_and_si512(low(all(0), x[0], all(Of::<C>::INV)), all(15)) };
    for i in 0..5 {
        x[i] = low(x[i], multiple, p[i]);
        if i < 4 {
            x[i + 1] = high(x[i + 1], multiple, p[i]);
        }
    }
    for i in 0..4 {
        x[i + 1] = plus(x[i + 1], unsafe { _mm512_srli_epi64(x[i], BITS) });
    }
    for i in 0..4 {
        x[i] = unsafe {
            let (own, next) = (
                _mm512_srli_epi64(masked(x[i]), 4),
                _mm512_slli_epi64(x[i + 1], 48),
            );
            masked(_mm512_or_si512(own, next))
        };
    }
    x[4] = unsafe { _mm512_srli_epi64(x[4], 4) };
    x
}

/// The words of a reduced value.
#[inline(always)]
pub(super) fn packed(x: V) -> [__m512i; 4] {
    unsafe {
        [
            _mm512_or_si512(x[0], _mm512_slli_epi64(x[1], 52)),
            _mm512_or_si512(_mm512_srli_epi64(x[1], 12), _mm512_slli_epi64(x[2], 40)),
            _mm512_or_si512(_mm512_srli_epi64(x[2], 24), _mm512_slli_epi64(x[3], 28)),
            _mm512_or_si512(_mm512_srli_epi64(x[3], 36), _mm512_slli_epi64(x[4], 16)),
        ]
    }
}

/// Eight digits in the order of lanes after `load`.
#[inline(always)]
fn in_order(digits: &[u8]) -> __m512i {
    let digits: &[u8; 8] = digits[..8].try_into().expect("eight digits");
    // SAFETY: as for every intrinsic; the value is made of eight bytes.
    unsafe {
        let order = _mm512_set_epi64(7, 6, 3, 2, 5, 4, 1, 0);
        let x = _mm512_cvtepu8_epi64(_mm_set_epi64x(0, i64::from_le_bytes(*digits)));
        _mm512_permutexvar_epi64(order, x)
    }
}

/// The lanes with a digit for a negative number.
#[inline(always)]
fn below_half(digits: __m512i) -> __mmask8 {
    unsafe { _mm512_cmplt_epu64_mask(digits, all(ENTRIES as u64)) }
}

impl<C: MontConfig<4>> Picks<Fp<MontBackend<C, 4>, 4>> for Avx512 {
    #[inline(always)]
    fn pick(self, words: &Words, digits: &[u8]) -> V {
        const VECTORS: usize = ENTRIES / 8;
        let digits = in_order(digits);
        let last = all(ENTRIES as u64 - 1);
        let mut out = [all(0); 4];
        // SAFETY: as for every intrinsic; each load is of eight of a word's entries.
        unsafe {
            let turned = _mm512_mask_xor_epi64(digits, below_half(digits), digits, last);
            let place = _mm512_and_si512(turned, last);
            for (out, word) in out.iter_mut().zip(words) {
                let (entries, _) = word.as_chunks::<8>();
                let mut rest = [all(0); VECTORS / 2];
                for (k, rest) in rest.iter_mut().enumerate() {
                    let pair = [&entries[2 * k], &entries[2 * k + 1]]
                        .map(|e| _mm512_loadu_si512(e.as_ptr().cast()));
                    *rest = _mm512_permutex2var_epi64(pair[0], place, pair[1]);
                }
                let (mut count, mut bit) = (VECTORS / 2, 16);
                while count > 1 {
                    let upper = _mm512_test_epi64_mask(place, all(bit));
                    count /= 2;
                    bit *= 2;
                    for k in 0..count {
                        rest[k] = _mm512_mask_mov_epi64(rest[2 * k], upper, rest[2 * k + 1]);
                    }
                }
                *out = rest[0];
            }
        }
        limbs(out)
    }

    #[inline(always)]
    fn signed(self, x: V, digits: &[u8]) -> V {
        let negative = below_half(in_order(digits));
        let turned = Lanes::<Fp<MontBackend<C, 4>, 4>>::sub(self, [all(0); 5], x);
        let mut out = x;
        for i in 0..5 {
            out[i] = unsafe { _mm512_mask_mov_epi64(x[i], negative, turned[i]) };
        }
        out
    }
}

impl<C: MontConfig<4>> Lanes<Fp<MontBackend<C, 4>, 4>> for Avx512 {
    type V = V;
    type W = [__m512i; 10];
    type K = [u64; 5];
    const N: usize = 8;

    #[inline(always)]
    fn run<R>(self, f: impl FnOnce() -> R) -> R {
        vectorize(self, f)
    }

    #[inline(always)]
    fn load<'a>(self, of: impl Fn(usize) -> &'a Fp<MontBackend<C, 4>, 4>) -> V {
        let e = [
            halves(of(0), of(4)),
            halves(of(1), of(5)),
            halves(of(2), of(6)),
            halves(of(3), of(7)),
        ];
        // The order of lanes is 0 1 4 5 2 3 6 7; `store` restores it.
        let x = unsafe {
            let even = [
                _mm512_unpacklo_epi64(e[0], e[1]),
                _mm512_unpacklo_epi64(e[2], e[3]),
            ];
            let odd = [
                _mm512_unpackhi_epi64(e[0], e[1]),
                _mm512_unpackhi_epi64(e[2], e[3]),
            ];
            [
                _mm512_shuffle_i64x2::<0b10_00_10_00>(even[0], even[1]),
                _mm512_shuffle_i64x2::<0b10_00_10_00>(odd[0], odd[1]),
                _mm512_shuffle_i64x2::<0b11_01_11_01>(even[0], even[1]),
                _mm512_shuffle_i64x2::<0b11_01_11_01>(odd[0], odd[1]),
            ]
        };
        limbs(x)
    }

    #[inline(always)]
    fn store(self, x: V, mut put: impl FnMut(usize, Fp<MontBackend<C, 4>, 4>)) {
        let x = sixteenth::<C>(x);
        let words = packed(below(below(x, &Of::<C>::TWO_P), &Of::<C>::P));
        unsafe {
            let first = _mm512_set_epi64(11, 10, 3, 2, 9, 8, 1, 0);
            let second = _mm512_set_epi64(15, 14, 7, 6, 13, 12, 5, 4);
            let even = [
                _mm512_permutex2var_epi64(words[0], first, words[2]),
                _mm512_permutex2var_epi64(words[0], second, words[2]),
            ];
            let odd = [
                _mm512_permutex2var_epi64(words[1], first, words[3]),
                _mm512_permutex2var_epi64(words[1], second, words[3]),
            ];
            let e = [
                _mm512_unpacklo_epi64(even[0], odd[0]),
                _mm512_unpackhi_epi64(even[0], odd[0]),
                _mm512_unpacklo_epi64(even[1], odd[1]),
                _mm512_unpackhi_epi64(even[1], odd[1]),
            ];
            for (i, e) in e.into_iter().enumerate() {
                let halves = [_mm512_castsi512_si256(e), _mm512_extracti64x4_epi64::<1>(e)];
                for (half, lane) in halves.into_iter().zip([i, i + 4]) {
                    let mut limbs = [0u64; 4];
                    _mm256_storeu_si256(limbs.as_mut_ptr().cast(), half);
                    put(lane, Fp::new_unchecked(BigInt(limbs)));
                }
            }
        }
    }

    #[inline(always)]
    fn constant(self, x: &Fp<MontBackend<C, 4>, 4>) -> [u64; 5] {
        // Times 16 modulo p, once, so that a factor of many products is below p.
        let mut x = *x;
        for _ in 0..4 {
            ark_ff::AdditiveGroup::double_in_place(&mut x);
        }
        split(&x.0 .0, 0)
    }

    #[inline(always)]
    fn all(self, k: &[u64; 5]) -> V {
        constant(k)
    }

    #[inline(always)]
    fn zero(self) -> V {
        [all(0); 5]
    }

    #[inline(always)]
    fn unzip(self, a: V, b: V) -> [V; 2] {
        // Places 0 to 15 of a and b, for the order of lanes after `load`.
        let picks = unsafe {
            [
                _mm512_set_epi64(14, 10, 6, 2, 12, 8, 4, 0),
                _mm512_set_epi64(15, 11, 7, 3, 13, 9, 5, 1),
            ]
        };
        // No closures: a closure that is not inlined is compiled without the caller's instructions.
        let mut out = [a, b];
        for (out, pick) in out.iter_mut().zip(&picks) {
            for (i, out) in out.iter_mut().enumerate() {
                *out = unsafe { _mm512_permutex2var_epi64(a[i], *pick, b[i]) };
            }
        }
        out
    }

    #[inline(always)]
    fn add(self, a: V, b: V) -> V {
        let mut out = a;
        for (i, out) in out.iter_mut().enumerate() {
            *out = plus(*out, b[i]);
        }
        carried(out)
    }

    #[inline(always)]
    fn sub(self, a: V, b: V) -> V {
        let shift = constant(&Of::<C>::SIXTEEN_P);
        let mut out = a;
        for (i, out) in out.iter_mut().enumerate() {
            *out = minus(plus(*out, shift[i]), b[i]);
        }
        carried(out)
    }

    #[inline(always)]
    fn shl<const K: u32>(self, a: V) -> V {
        let mut out = a;
        for out in &mut out {
            *out = unsafe { _mm512_slli_epi64(*out, K) };
        }
        carried(out)
    }

    #[inline(always)]
    fn mul(self, a: V, b: V) -> V {
        let mut w = [all(0); 10];
        multiply(&mut w, &a, &b);
        montgomery::<C>(w)
    }

    #[inline(always)]
    fn square(self, a: V) -> V {
        let mut w = [all(0); 10];
        for i in 0..5 {
            for j in i + 1..5 {
                w[i + j] = low(w[i + j], a[i], a[j]);
                w[i + j + 1] = high(w[i + j + 1], a[i], a[j]);
            }
        }
        for x in &mut w {
            *x = plus(*x, *x);
        }
        for i in 0..5 {
            w[2 * i] = low(w[2 * i], a[i], a[i]);
            w[2 * i + 1] = high(w[2 * i + 1], a[i], a[i]);
        }
        montgomery::<C>(w)
    }

    #[inline(always)]
    fn weak(self, mut a: V) -> V {
        let quotient = high(all(0), a[4], all(Of::<C>::QUOTIENT));
        let quotient = unsafe { _mm512_srli_epi64(quotient, 45) };
        let minus_p = constant(&Of::<C>::MINUS_P);
        for i in 0..5 {
            a[i] = low(a[i], quotient, minus_p[i]);
            if i < 4 {
                a[i + 1] = high(a[i + 1], quotient, minus_p[i]);
            }
        }
        carried(a)
    }

    #[inline(always)]
    fn wide(self) -> [__m512i; 10] {
        [all(0); 10]
    }

    #[inline(always)]
    fn wide_from(self, x: V) -> [__m512i; 10] {
        let zero = all(0);
        [zero, zero, zero, zero, zero, x[0], x[1], x[2], x[3], x[4]]
    }

    #[inline(always)]
    fn mac(self, mut w: [__m512i; 10], a: V, b: V) -> [__m512i; 10] {
        multiply(&mut w, &a, &b);
        w
    }

    #[inline(always)]
    fn reduce(self, w: [__m512i; 10]) -> V {
        montgomery::<C>(w)
    }
}

impl<C: MontConfig<4>> Integers<Fp<MontBackend<C, 4>, 4>> for Avx512 {
    type I = __m512i;

    #[inline(always)]
    fn raised(self, of: &[i64]) -> __m512i {
        let of: &[i64; 8] = of[..8].try_into().expect("eight integers");
        // SAFETY: the pointer is to eight integers.
        unsafe {
            let order = _mm512_set_epi64(7, 6, 3, 2, 5, 4, 1, 0);
            let x = _mm512_permutexvar_epi64(order, _mm512_loadu_si512(of.as_ptr().cast()));
            plus(x, all(1 << 51))
        }
    }

    #[inline(always)]
    fn scale(self, mut w: [__m512i; 10], i: __m512i, a: V) -> [__m512i; 10] {
        for k in 0..5 {
            w[k] = low(w[k], i, a[k]);
            w[k + 1] = high(w[k + 1], i, a[k]);
        }
        w
    }

    #[inline(always)]
    fn shorten(self, mut w: [__m512i; 10]) -> V {
        let p = constant(&Of::<C>::P);
        for i in 0..2 {
            let m = low(all(0), w[i], all(Of::<C>::INV));
            for j in 0..5 {
                w[i + j] = low(w[i + j], m, p[j]);
                w[i + j + 1] = high(w[i + j + 1], m, p[j]);
            }
            w[i + 1] = plus(w[i + 1], unsafe { _mm512_srli_epi64(w[i], BITS) });
        }
        carried([w[2], w[3], w[4], w[5], w[6]])
    }
}
