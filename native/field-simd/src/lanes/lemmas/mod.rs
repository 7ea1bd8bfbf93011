//! Lemmas on the AVX-512 lanes, for all inputs within their bounds: no word overflows, no carry is lost, and every
//! result is the residue and below the bound that [`Lanes`] states.
//!
//! `avx512.rs` is compiled a second time, over [`model`] in place of the processor's intrinsics. A lemma runs the very
//! operation on words of which only bounds are known, and compares integer combinations of what went in and came out.
//! The moves between lanes and memory have no lemma; tests on values hold them.
use ark_bn254::{FqConfig, FrConfig};
use ark_ff::{BigInt as Words, Fp, MontBackend, MontConfig};
use num_bigint::{BigInt, Sign};

use super::{pick, Integers, Lanes, Picks, BOUND, LOADED, PRODUCTS, STORED, SUM};
use model::{__m512i, bounds, form, input, interval, power, product, solved, suppose, Form};

#[path = "../avx512.rs"]
#[allow(dead_code, unused_unsafe, clippy::duplicate_mod)]
mod avx512;
mod model;
use model as intrinsics;

use avx512::{below, difference, limbs, packed, sixteenth, Avx512, Of, V};

type Field<C> = Fp<MontBackend<C, 4>, 4>;

fn lanes() -> Avx512 {
    // SAFETY: no instruction is executed but by the model.
    unsafe { Avx512::assumed() }
}

fn modulus<C: MontConfig<4>>() -> BigInt {
    let Words(words) = C::MODULUS;
    let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
    BigInt::from_bytes_le(Sign::Plus, &bytes)
}

/// The bound in multiples of p, as an integer above every value below it.
fn times<C: MontConfig<4>>(bound: f64) -> BigInt {
    assert_eq!(bound.fract(), 0.0);
    modulus::<C>() * bound as u64
}

/// The value of limbs of so many bits.
fn value<const N: usize>(limbs: [__m512i; N], bits: u32) -> Form {
    (0..).zip(limbs).fold(Form::default(), |sum, (i, x)| {
        sum.plus(power(bits * i), &form(x))
    })
}

fn total<const N: usize>(limbs: [__m512i; N]) -> Form {
    value(limbs, 52)
}

fn mask() -> BigInt {
    power(52) - 1
}

/// Any value below the bound, in limbs of 52 bits.
fn any(bound: &BigInt) -> V {
    let maximum = (bound - 1u8) >> 208u8;
    assert!(maximum <= mask());
    let x: V = std::array::from_fn(|i| input(0, if i < 4 { mask() } else { maximum.clone() }));
    suppose(x[4], total(x), 0, bound - 1u8);
    x
}

fn atom(x: __m512i) -> usize {
    let form = form(x);
    assert_eq!(form.0.len(), 1);
    *form.0.first_key_value().expect("an atom").0
}

/// The limbs are below 2^52.
fn is_value(x: V) {
    for x in x {
        let (low, high) = interval(x);
        assert!(
            low >= BigInt::ZERO && high <= mask(),
            "a limb from {low} to {high}"
        );
    }
}

/// `x` is `expected` and no multiple of 2^260 away from it: both lie in the same 2^260 integers, as `expected` is from
/// 0 to below `bound` once the pivots are solved for.
fn is(x: V, expected: &Form, bound: &BigInt, pivots: &[usize]) {
    is_value(x);
    assert!(*bound <= power(260));
    let away = total(x).plus(-1, expected);
    assert!(away.divisible(&power(260)), "another value");
    within(expected, bound, pivots);
}

fn within(expected: &Form, bound: &BigInt, pivots: &[usize]) {
    let (low, high, scale) = bounds(expected, pivots);
    assert!(low > -&scale, "a value may be negative");
    assert!(high < bound * &scale, "a value may reach its bound");
}

macro_rules! both {
    ($($name:ident)*) => {
        $(
            mod $name {
                #[test]
                fn scalars() {
                    super::$name::<super::FrConfig>();
                }

                #[test]
                fn coordinates() {
                    super::$name::<super::FqConfig>();
                }
            }
        )*
    };
}

both! { sums differences shifts products sums_of_products reduced_sums weakened stored comparisons words integers shortened }

fn sums<C: MontConfig<4>>() {
    for left in [1.0, LOADED, 31.0, 63.0] {
        model::begin(&[]);
        let bounds = [times::<C>(left), times::<C>(BOUND - left)];
        let [a, b] = [any(&bounds[0]), any(&bounds[1])];
        let sum = Lanes::<Field<C>>::add(lanes(), a, b);
        let expected = total(a).plus(1, &total(b));
        is(
            sum,
            &expected,
            &times::<C>(BOUND),
            &[atom(a[4]), atom(b[4])],
        );
    }
}

fn differences<C: MontConfig<4>>() {
    model::begin(&[]);
    let [a, b] = [BOUND - LOADED, LOADED].map(|x| any(&times::<C>(x)));
    let found = Lanes::<Field<C>>::sub(lanes(), a, b);
    let expected = total(a)
        .plus(-1, &total(b))
        .plus(times::<C>(LOADED), &Form::constant(1));
    is(
        found,
        &expected,
        &times::<C>(BOUND),
        &[atom(a[4]), atom(b[4])],
    );
}

fn shifts<C: MontConfig<4>>() {
    fn by<C: MontConfig<4>, const K: u32>() {
        model::begin(&[]);
        let x = any(&times::<C>(BOUND / f64::from(1 << K)));
        let found = Lanes::<Field<C>>::shl::<K>(lanes(), x);
        is(
            found,
            &total(x).times(1 << K),
            &times::<C>(BOUND),
            &[atom(x[4])],
        );
    }
    by::<C, 1>();
    by::<C, 2>();
    by::<C, 3>();
    by::<C, 4>();
    by::<C, 5>();
    by::<C, 6>();
}

/// The sum of products of limbs.
fn convolution(a: V, b: V) -> Form {
    let mut sum = Form::default();
    for (i, a) in (0..).zip(a) {
        for (j, b) in (0..).zip(b) {
            sum = sum.plus(power(52 * (i + j)), &product(a, b));
        }
    }
    sum
}

/// The form is p m for an integer m from 0 to below `bound`, whatever the atoms are.
fn is_multiple<C: MontConfig<4>>(form: &Form, bound: &BigInt, pivots: &[usize]) {
    let (form, scale) = solved(form);
    let m = form.divided(&modulus::<C>()).expect("the same residue");
    let (low, high, by) = bounds(&m, pivots);
    assert!(low > -&scale * &by, "the multiple may be negative");
    assert!(
        high < bound * scale * by,
        "the multiple may reach its bound"
    );
}

/// out 2^260 = w + p m, for an integer m from 0 to 2^260 - 1.
fn is_reduced<C: MontConfig<4>>(out: V, w: &Form) {
    is_value(out);
    is_multiple::<C>(&total(out).times(power(260)).plus(-1, w), &power(260), &[]);
}

fn products<C: MontConfig<4>>() {
    model::begin(&[]);
    let [a, b] = [BOUND; 2].map(|x| any(&times::<C>(x)));
    is_reduced::<C>(Lanes::<Field<C>>::mul(lanes(), a, b), &convolution(a, b));
    model::begin(&[]);
    let a = any(&times::<C>(BOUND));
    is_reduced::<C>(Lanes::<Field<C>>::square(lanes(), a), &convolution(a, a));
}

/// What a sum's limbs may hold after so many products.
fn maximum(products: usize) -> [BigInt; 10] {
    std::array::from_fn(|k| {
        let halves = |k: usize| {
            if k < 5 {
                k + 1
            } else {
                9usize.saturating_sub(k)
            }
        };
        let of_this = halves(k) + if k > 0 { halves(k - 1) } else { 0 };
        mask() * of_this * products
    })
}

fn sums_of_products<C: MontConfig<4>>() {
    model::begin(&[]);
    let l = lanes();
    let [a, b] = [BOUND; 2].map(|x| any(&times::<C>(x)));
    let before = maximum(PRODUCTS - 1).map(|maximum| input(0, maximum));
    let after = Lanes::<Field<C>>::mac(l, before, a, b);
    assert_eq!(total(after), total(before).plus(1, &convolution(a, b)));
    for (after, maximum) in after.into_iter().zip(maximum(PRODUCTS)) {
        assert!(interval(after).1 <= maximum);
    }
    let start = Lanes::<Field<C>>::wide_from(l, a);
    assert_eq!(total(start), total(a).times(power(260)));
    for (limb, maximum) in start.into_iter().zip(maximum(1)) {
        assert!(
            interval(limb).1 <= maximum,
            "a start is no more than a product"
        );
    }
}

fn reduced_sums<C: MontConfig<4>>() {
    model::begin(&[]);
    let bound = times::<C>(SUM) * modulus::<C>();
    let mut maximum = maximum(PRODUCTS);
    // The sum is not below its highest limb.
    maximum[9] = (&bound - 1u8) >> 468u16;
    let w = maximum.map(|maximum| input(0, maximum));
    suppose(w[9], total(w), 0, &bound - 1u8);
    let out = Lanes::<Field<C>>::reduce(lanes(), w);
    is_reduced::<C>(out, &total(w));
    // Below p + w / 2^260, hence below p (1 + SUM / 84).
    let (form, scale) = solved(&total(out).times(power(260)));
    let (_, high, by) = bounds(&form, &[atom(w[9])]);
    assert!(high < ((modulus::<C>() << 260u16) + bound) * scale * by);
    assert!(BigInt::from(84) * modulus::<C>() < power(260) && 1.0 + SUM / 84.0 <= BOUND);
}

fn weakened<C: MontConfig<4>>() {
    model::begin(&[]);
    let x = any(&times::<C>(BOUND));
    let out = Lanes::<Field<C>>::weak(lanes(), x);
    // The quotient's estimate, named by the same operations.
    let (high, quotient) = unsafe {
        let zero = intrinsics::_mm512_set1_epi64(0);
        let by = intrinsics::_mm512_set1_epi64(Of::<C>::QUOTIENT as i64);
        let high = intrinsics::_mm512_madd52hi_epu64(zero, x[4], by);
        (high, intrinsics::_mm512_srli_epi64(high, 45))
    };
    let expected = total(x).plus(-modulus::<C>(), &form(quotient));
    is(
        out,
        &expected,
        &times::<C>(3.0),
        &[atom(quotient), atom(high)],
    );
}

fn stored<C: MontConfig<4>>() {
    model::begin(&[]);
    let x = any(&times::<C>(STORED));
    let out = sixteenth::<C>(x);
    is_value(out);
    let multiple = total(out).times(16).plus(-1, &total(x));
    // The last atom is the quotient by 16 of what the mask has cut.
    let quotient = *solved(&multiple)
        .0
         .0
        .last_key_value()
        .expect("the multiple")
        .0;
    is_multiple::<C>(&multiple, &16.into(), &[quotient]);
    const { assert!((STORED + 15.0) / 16.0 <= 4.0) };
}

fn comparisons<C: MontConfig<4>>() {
    for (m, bound) in [(Of::<C>::TWO_P, 4.0), (Of::<C>::P, 2.0)] {
        let of_m = modulus::<C>() * (bound as u64 / 2);
        for smaller in [true, false] {
            model::begin(&[smaller]);
            let x = any(&times::<C>(bound));
            let (found, d) = (below(x, &m), difference(x, &m));
            let less = total(x).plus(-of_m.clone(), &Form::constant(1));
            assert_eq!(total(d), less);
            for limb in &d[..4] {
                let (low, high) = interval(*limb);
                assert!(low >= BigInt::ZERO && high <= mask());
            }
            // x - m = d lies in d_4 2^208 + [0, 2^208), so its sign is that of the limb that is compared.
            if smaller {
                assert_eq!(found, x);
            } else {
                assert_eq!(found.map(form), d.map(form));
                let (_, high, scale) = bounds(&less, &[atom(x[4])]);
                assert!(high < &of_m * scale);
            }
        }
    }
}

fn words<C: MontConfig<4>>() {
    model::begin(&[]);
    let x = any(&modulus::<C>());
    let words = packed(x);
    assert_eq!(value(words, 64), total(x));
    model::begin(&[]);
    let maximum = |i| {
        if i < 3 {
            power(64) - 1
        } else {
            modulus::<C>() >> 192u8
        }
    };
    let words: [__m512i; 4] = std::array::from_fn(|i| input(0, maximum(i)));
    let found = limbs(words);
    is_value(found);
    assert_eq!(total(found), value(words, 64).times(16));
}

fn integers<C: MontConfig<4>>() {
    model::begin(&[]);
    let a = any(&times::<C>(LOADED));
    let i = input(0, mask());
    let before = maximum(PRODUCTS - 1).map(|maximum| input(0, maximum));
    let after = Integers::<Field<C>>::scale(lanes(), before, i, a);
    let product = (0..).zip(a).fold(Form::default(), |sum, (k, a)| {
        sum.plus(power(52 * k), &product(i, a))
    });
    assert_eq!(total(after), total(before).plus(1, &product));
    for (after, maximum) in after.into_iter().zip(maximum(PRODUCTS)) {
        assert!(interval(after).1 <= maximum);
    }
}

fn shortened<C: MontConfig<4>>() {
    model::begin(&[]);
    let bound = times::<C>(LOADED) * mask() * PRODUCTS;
    // One product a limb and its upper half from the limb below; nothing above limb 5.
    let each: BigInt = mask() * 2 * PRODUCTS;
    let mut maximum: [BigInt; 10] =
        std::array::from_fn(|k| if k < 6 { each.clone() } else { BigInt::ZERO });
    maximum[5] = (&bound - 1u8) >> 260u16;
    let w = maximum.map(|maximum| input(0, maximum));
    suppose(w[5], total(w), 0, &bound - 1u8);
    let out = Integers::<Field<C>>::shorten(lanes(), w);
    is_value(out);
    let (all, scale) = solved(&total(out).times(power(104)).plus(-1, &total(w)));
    // Up to what the mask of the highest limb takes off, which is a multiple of 2^364.
    let of_p = |x: &BigInt| x % modulus::<C>() == BigInt::ZERO;
    let multiple = Form(all.0.clone().into_iter().filter(|(_, x)| of_p(x)).collect());
    assert!(
        all.plus(-1, &multiple).divisible(&(&scale << 364u16)),
        "another residue"
    );
    let m = multiple.divided(&modulus::<C>()).expect("multiples");
    let (low, high, _) = bounds(&m, &[]);
    assert!(low > -&scale && high < &scale << 104u8);
    let sum = total(w).times(scale.clone()).plus(1, &multiple);
    let (low, high, by) = bounds(&sum, &[atom(w[5])]);
    assert!(low > -&scale * &by && high < (times::<C>(2.0) << 104u8) * scale * by);
}
