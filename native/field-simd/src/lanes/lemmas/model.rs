//! The intrinsics that `avx512.rs` calls, on words of which only bounds and linear relations are known.
//!
//! One lane stands for all. A word is an integer, not a residue modulo 2^64: an operation that could leave the 64 bits
//! panics. What is known of it is an interval, and a *form*: the integer combination of atoms that it equals. Atoms are
//! the inputs' limbs and what an operation makes that is not linear: the quotient of a shift or a mask, the product of two
//! words, its high half. The same operation on equal forms names the same atom.
use std::cell::RefCell;
use std::collections::BTreeMap;

use num_bigint::BigInt;

/// The atom that is one.
pub const ONE: usize = 0;

/// An integer combination of atoms, without zeros.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Form(pub BTreeMap<usize, BigInt>);

impl Form {
    pub fn constant(x: impl Into<BigInt>) -> Self {
        Self::default().plus(x, &Self(BTreeMap::from([(ONE, BigInt::from(1))])))
    }

    pub fn atom(atom: usize) -> Self {
        Self(BTreeMap::from([(atom, BigInt::from(1))]))
    }

    /// self + by other.
    pub fn plus(&self, by: impl Into<BigInt>, other: &Self) -> Self {
        let (by, mut out) = (by.into(), self.0.clone());
        for (atom, x) in &other.0 {
            *out.entry(*atom).or_default() += &by * x;
        }
        out.retain(|_, x| *x != BigInt::ZERO);
        Self(out)
    }

    pub fn times(&self, by: impl Into<BigInt>) -> Self {
        Self::default().plus(by, self)
    }

    pub fn of(&self, atom: usize) -> BigInt {
        self.0.get(&atom).cloned().unwrap_or_default()
    }

    pub fn divisible(&self, by: &BigInt) -> bool {
        self.0.values().all(|x| x % by == BigInt::ZERO)
    }

    /// The form that is so many times smaller, if there is one.
    pub fn divided(&self, by: &BigInt) -> Option<Self> {
        let parts = self.0.iter().map(|(atom, x)| (*atom, x / by));
        self.divisible(by).then(|| Self(parts.collect()))
    }

    fn as_constant(&self) -> Option<BigInt> {
        match self.0.len() {
            0 => Some(BigInt::ZERO),
            1 => self.0.get(&ONE).cloned(),
            _ => None,
        }
    }
}

pub fn power(bits: u32) -> BigInt {
    BigInt::from(1) << bits
}

fn floor(x: &BigInt, by: &BigInt) -> BigInt {
    let (quotient, rest) = (x / by, x % by);
    quotient - i32::from(rest < BigInt::ZERO)
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Name {
    Input(usize),
    Quotient(Form, u32),
    Product(Form, Form),
    High(Form, Form),
    Low(Form),
}

/// low <= form <= high, of which `pivot` is the atom that it is solved for.
#[derive(Clone, Debug)]
pub struct Fact {
    pub pivot: usize,
    pub form: Form,
    pub low: BigInt,
    pub high: BigInt,
}

#[derive(Clone, Debug)]
struct Word {
    form: Form,
    low: BigInt,
    high: BigInt,
    /// low part, high part and at which bit it begins, where an OR has put the word together.
    parts: Option<(__m512i, __m512i, u32)>,
}

#[derive(Default)]
struct State {
    intervals: Vec<(BigInt, BigInt)>,
    names: BTreeMap<Name, usize>,
    words: Vec<Word>,
    /// What the low half of a constant's product is, as a form: for divisibility.
    halves: BTreeMap<usize, Form>,
    facts: Vec<Fact>,
    /// What comparisons are to find, the next one last.
    outcomes: Vec<bool>,
}

thread_local! {
    static STATE: RefCell<State> = RefCell::default();
}

fn with<R>(f: impl FnOnce(&mut State) -> R) -> R {
    STATE.with_borrow_mut(f)
}

/// Forgets everything; comparisons are to find these outcomes, in their order.
pub fn begin(outcomes: &[bool]) {
    with(|state| {
        *state = State::default();
        state.intervals.push((1.into(), 1.into()));
        state.outcomes = outcomes.iter().rev().copied().collect();
    });
}

impl State {
    fn named(&mut self, name: Name, low: BigInt, high: BigInt) -> usize {
        assert!(low <= high, "{name:?} has no value");
        let new = self.intervals.len();
        let atom = *self.names.entry(name).or_insert(new);
        if atom == new {
            self.intervals.push((low, high));
        }
        atom
    }

    fn bounds(&self, form: &Form) -> (BigInt, BigInt) {
        let (mut low, mut high) = (BigInt::ZERO, BigInt::ZERO);
        for (atom, x) in &form.0 {
            let (a, b) = &self.intervals[*atom];
            let (a, b) = if *x < BigInt::ZERO { (b, a) } else { (a, b) };
            low += x * a;
            high += x * b;
        }
        (low, high)
    }

    fn word(&mut self, form: Form, low: BigInt, high: BigInt) -> __m512i {
        let signed = low >= -power(63) && high < power(63);
        let unsigned = low >= BigInt::ZERO && high < power(64);
        assert!(signed || unsigned, "a word from {low} to {high}");
        self.words.push(Word {
            form,
            low,
            high,
            parts: None,
        });
        __m512i(self.words.len() - 1)
    }

    /// form = 2^bits quotient + remainder, for a form from `low` to `high`.
    fn split(&mut self, form: &Form, low: &BigInt, high: &BigInt, bits: u32) -> (Form, Form) {
        let by = power(bits);
        let mut whole = Form::default();
        let mut rest = Form::default();
        for (atom, x) in &form.0 {
            let q = floor(x, &by);
            rest = rest.plus(x - &q * &by, &Form::atom(*atom));
            whole = whole.plus(q, &Form::atom(*atom));
        }
        // Where only divisibility counts, the product replaces the atom of its low half.
        let mut deep = rest.clone();
        for (atom, half) in self.halves.iter().rev() {
            let x = deep.of(*atom);
            deep = deep.plus(x.clone(), half).plus(-x, &Form::atom(*atom));
        }
        if let (true, Some(_)) = (deep.divisible(&by), rest.0.first_key_value()) {
            // The remainder is nothing: by / 2^bits is an integer whatever it is made of.
            let (low, high) = self.exact(&rest, bits);
            let atom = self.named(Name::Quotient(rest.clone(), bits), low, high);
            self.fact(
                atom,
                Form::atom(atom).times(by).plus(-1, &rest),
                0.into(),
                0.into(),
            );
            return (whole.plus(1, &Form::atom(atom)), Form::default());
        }
        let mut shift = 0;
        while shift < bits && !rest.0.is_empty() && rest.divisible(&power(shift + 1)) {
            shift += 1;
        }
        if rest.0.is_empty() || shift == bits {
            return (whole, Form::default());
        }
        let odd = Form(rest.0.iter().map(|(atom, x)| (*atom, x >> shift)).collect());
        let (bits, by) = (bits - shift, power(bits - shift));
        if let Some(x) = odd.as_constant() {
            let q = floor(&x, &by);
            return (
                whole.plus(q.clone(), &Form::constant(1)),
                odd.plus(-q * by, &Form::constant(1)).times(power(shift)),
            );
        }
        let (a, b) = self.bounds(&odd);
        let (mut a, mut b) = (floor(&a, &by), floor(&b, &by));
        if whole.0.is_empty() && shift == 0 {
            (a, b) = (a.max(floor(low, &by)), b.min(floor(high, &by)));
        }
        if a == b {
            let left = odd.plus(-&a * &by, &Form::constant(1)).times(power(shift));
            return (whole.plus(a, &Form::constant(1)), left);
        }
        let atom = self.named(Name::Quotient(odd.clone(), bits), a, b);
        self.fact(
            atom,
            Form::atom(atom).times(by.clone()).plus(-1, &odd),
            1 - &by,
            0.into(),
        );
        let left = odd.plus(-by, &Form::atom(atom)).times(power(shift));
        (whole.plus(1, &Form::atom(atom)), left)
    }

    fn exact(&self, rest: &Form, bits: u32) -> (BigInt, BigInt) {
        let (low, high) = self.bounds(rest);
        (-floor(&-low, &power(bits)), floor(&high, &power(bits)))
    }

    fn fact(&mut self, pivot: usize, form: Form, low: BigInt, high: BigInt) {
        if self
            .facts
            .iter()
            .all(|known| known.pivot != pivot || known.form != form)
        {
            self.facts.push(Fact {
                pivot,
                form,
                low,
                high,
            });
        }
    }

    /// The two halves of a b as forms, with the bounds of each.
    fn product(&mut self, a: __m512i, b: __m512i) -> [(Form, BigInt, BigInt); 2] {
        let [a, b] = [a, b].map(|x| self.low_bits(x, 52));
        let [x, y] = [&a, &b].map(|x| self.words[x.0].clone());
        let maximum = &x.high * &y.high;
        let by = power(52);
        let (product, constant) = match (x.form.as_constant(), y.form.as_constant()) {
            (Some(x), _) => (y.form.times(x), true),
            (_, Some(y)) => (x.form.times(y), true),
            _ => {
                let pair = if x.form <= y.form {
                    (x.form.clone(), y.form.clone())
                } else {
                    (y.form.clone(), x.form.clone())
                };
                (
                    Form::atom(self.named(
                        Name::Product(pair.0, pair.1),
                        0.into(),
                        maximum.clone(),
                    )),
                    false,
                )
            }
        };
        let pair = if x.form <= y.form {
            (x.form, y.form)
        } else {
            (y.form, x.form)
        };
        let top = floor(&maximum, &by);
        let high = if top == BigInt::ZERO {
            Form::default()
        } else {
            let atom = self.named(Name::High(pair.0, pair.1), 0.into(), top.clone());
            if constant {
                let form = Form::atom(atom).times(by.clone()).plus(-1, &product);
                self.fact(atom, form, 1 - &by, 0.into());
            }
            Form::atom(atom)
        };
        let low = product.plus(-by.clone(), &high);
        [(low, 0.into(), maximum.min(by - 1)), (high, 0.into(), top)]
    }

    fn low_bits(&mut self, x: __m512i, bits: u32) -> __m512i {
        let word = self.words[x.0].clone();
        if word.low >= BigInt::ZERO && word.high < power(bits) {
            return x;
        }
        if let Some((low, high, at)) = word.parts {
            if at < bits {
                let high = self.low_bits(high, bits - at);
                return self.joined(low, high, at);
            }
        }
        let (_, rest) = self.split(&word.form, &word.low, &word.high, bits);
        let maximum = if rest.0.is_empty() {
            BigInt::ZERO
        } else {
            power(bits) - 1
        };
        self.word(rest, 0.into(), maximum)
    }

    fn joined(&mut self, low: __m512i, high: __m512i, at: u32) -> __m512i {
        let [l, h] = [low, high].map(|x| self.words[x.0].clone());
        assert!(
            l.low >= BigInt::ZERO && h.low >= BigInt::ZERO && l.high < power(at),
            "parts that overlap"
        );
        let form = l.form.plus(power(at), &h.form);
        let word = self.word(form, &l.low + (h.low << at), &l.high + (h.high << at));
        self.words[word.0].parts = Some((low, high, at));
        word
    }
}

/// An input's word from `low` to `high`.
pub fn input(low: impl Into<BigInt>, high: impl Into<BigInt>) -> __m512i {
    with(|state| {
        let (low, high) = (low.into(), high.into());
        let name = Name::Input(state.intervals.len());
        let atom = state.named(name, low.clone(), high.clone());
        state.word(Form::atom(atom), low, high)
    })
}

pub fn form(x: __m512i) -> Form {
    with(|state| state.words[x.0].form.clone())
}

pub fn interval(x: __m512i) -> (BigInt, BigInt) {
    with(|state| (state.words[x.0].low.clone(), state.words[x.0].high.clone()))
}

/// The form of a b, as the multiplications name it.
pub fn product(a: __m512i, b: __m512i) -> Form {
    with(|state| {
        let [(low, ..), (high, ..)] = state.product(a, b);
        low.plus(power(52), &high)
    })
}

/// States a fact about an input that its interval does not express: bounds of a linear form.
pub fn suppose(pivot: __m512i, form: Form, low: impl Into<BigInt>, high: impl Into<BigInt>) {
    let atom = with(|state| {
        *state.words[pivot.0]
            .form
            .0
            .first_key_value()
            .expect("an input")
            .0
    });
    with(|state| state.fact(atom, form, low.into(), high.into()));
}

/// Bounds of scale form, and the scale, once the atoms of `pivots` are solved for in their order.
pub fn bounds(form: &Form, pivots: &[usize]) -> (BigInt, BigInt, BigInt) {
    with(|state| {
        let (mut form, mut scale) = (form.clone(), BigInt::from(1));
        let (mut low, mut high) = (BigInt::ZERO, BigInt::ZERO);
        for pivot in pivots {
            let by = form.of(*pivot);
            let Some(fact) = state.facts.iter().find(|fact| fact.pivot == *pivot) else {
                panic!("nothing is known of atom {pivot}");
            };
            let own = fact.form.of(*pivot);
            assert!(own > BigInt::ZERO);
            form = form.times(own.clone()).plus(-by.clone(), &fact.form);
            (low, high, scale) = (low * &own, high * &own, scale * &own);
            let ends = [&by * &fact.low, &by * &fact.high];
            low += ends.iter().min().expect("two");
            high += ends.iter().max().expect("two");
        }
        let (a, b) = state.bounds(&form);
        (low + a, high + b, scale)
    })
}

/// scale form, and the scale, without the quotients of divisions that leave nothing.
pub fn solved(form: &Form) -> (Form, BigInt) {
    with(|state| {
        let (mut form, mut scale) = (form.clone(), BigInt::from(1));
        let exact = |fact: &&Fact| fact.low == fact.high;
        let mut facts: Vec<&Fact> = state.facts.iter().filter(exact).collect();
        facts.sort_by_key(|fact| std::cmp::Reverse(fact.pivot));
        for fact in facts {
            let by = form.of(fact.pivot);
            if by != BigInt::ZERO {
                let own = fact.form.of(fact.pivot);
                form = form.times(own.clone()).plus(-by, &fact.form);
                scale *= own;
            }
        }
        (form, scale)
    })
}

/// A word of one lane.
#[allow(non_camel_case_types)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct __m512i(usize);

#[allow(non_camel_case_types)]
#[derive(Clone, Copy, Debug)]
pub struct __mmask8(bool);

pub unsafe fn _mm512_set1_epi64(x: i64) -> __m512i {
    let x = BigInt::from(x as u64);
    with(|state| state.word(Form::constant(x.clone()), x.clone(), x))
}

fn combine(a: __m512i, by: i32, b: __m512i) -> __m512i {
    with(|state| {
        let [x, y] = [a, b].map(|x| state.words[x.0].clone());
        let ends = [by * &y.low, by * &y.high];
        let [low, high] = if by < 0 {
            [&ends[1], &ends[0]]
        } else {
            [&ends[0], &ends[1]]
        };
        state.word(x.form.plus(by, &y.form), x.low + low, x.high + high)
    })
}

pub unsafe fn _mm512_add_epi64(a: __m512i, b: __m512i) -> __m512i {
    combine(a, 1, b)
}

pub unsafe fn _mm512_sub_epi64(a: __m512i, b: __m512i) -> __m512i {
    combine(a, -1, b)
}

pub unsafe fn _mm512_and_si512(a: __m512i, mask: __m512i) -> __m512i {
    let ones = form(mask).as_constant().expect("a mask that is public") + 1u8;
    let bits = ones.bits() as u32 - 1;
    assert_eq!(ones, power(bits), "a mask of low bits");
    with(|state| state.low_bits(a, bits))
}

pub unsafe fn _mm512_or_si512(a: __m512i, b: __m512i) -> __m512i {
    with(|state| {
        let by_shift = |x: &Word| {
            x.parts
                .filter(|(low, ..)| state.words[low.0].form.0.is_empty())
        };
        let [x, y] = [a, b].map(|x| state.words[x.0].clone());
        let (low, (_, high, at)) = match (by_shift(&x), by_shift(&y)) {
            (_, Some(parts)) => (a, parts),
            (Some(parts), _) => (b, parts),
            _ => panic!("neither part was shifted to the left"),
        };
        state.joined(low, high, at)
    })
}

/// The quotient by 2^bits.
fn shifted(x: __m512i, bits: u32) -> __m512i {
    with(|state| {
        let word = state.words[x.0].clone();
        let by = power(bits);
        let (quotient, _) = state.split(&word.form, &word.low, &word.high, bits);
        state.word(quotient, floor(&word.low, &by), floor(&word.high, &by))
    })
}

pub unsafe fn _mm512_srli_epi64(x: __m512i, bits: u32) -> __m512i {
    assert!(
        interval(x).0 >= BigInt::ZERO,
        "a logical shift of a negative word"
    );
    shifted(x, bits)
}

pub unsafe fn _mm512_srai_epi64(x: __m512i, bits: u32) -> __m512i {
    assert!(
        interval(x).1 < power(63),
        "an arithmetic shift takes the top bit for a sign"
    );
    shifted(x, bits)
}

pub unsafe fn _mm512_slli_epi64(x: __m512i, bits: u32) -> __m512i {
    with(|state| {
        assert!(
            state.words[x.0].low >= BigInt::ZERO,
            "a negative word is shifted to the left"
        );
        let kept = state.low_bits(x, 64 - bits);
        let nothing = state.word(Form::default(), 0.into(), 0.into());
        state.joined(nothing, kept, bits)
    })
}

pub unsafe fn _mm512_madd52lo_epu64(acc: __m512i, a: __m512i, b: __m512i) -> __m512i {
    let half = with(|state| {
        let [(form, low, high), _] = state.product(a, b);
        let alone = state.words[acc.0].form.0.is_empty();
        let known = [a, b]
            .iter()
            .any(|x| state.words[x.0].form.as_constant().is_some());
        if !(alone && known) {
            return state.word(form, low, high);
        }
        // A factor of what follows: an atom of its own keeps the forms short.
        let atom = state.named(Name::Low(form.clone()), low.clone(), high.clone());
        state.halves.insert(atom, form);
        state.word(Form::atom(atom), low, high)
    });
    combine(acc, 1, half)
}

pub unsafe fn _mm512_madd52hi_epu64(acc: __m512i, a: __m512i, b: __m512i) -> __m512i {
    let half = with(|state| {
        let [_, (form, low, high)] = state.product(a, b);
        state.word(form, low, high)
    });
    combine(acc, 1, half)
}

/// Finds what the lemma has said: it is stated for either outcome.
pub unsafe fn _mm512_cmplt_epi64_mask(_: __m512i, _: __m512i) -> __mmask8 {
    __mmask8(with(|state| state.outcomes.pop()).expect("an outcome"))
}

pub unsafe fn _mm512_mask_mov_epi64(otherwise: __m512i, mask: __mmask8, x: __m512i) -> __m512i {
    if mask.0 {
        x
    } else {
        otherwise
    }
}

/// What moves words between lanes and memory, and does no arithmetic, has no lemma.
macro_rules! moves {
    ($($name:ident($($type:ty),*) -> $out:ty;)*) => {
        $(#[allow(clippy::too_many_arguments)] pub unsafe fn $name($(_: $type),*) -> $out {
            unreachable!("no lemma is about {}", stringify!($name))
        })*
    };
}

type Lane = __m512i;

moves! {
    _mm512_castsi256_si512(Lane) -> Lane;
    _mm512_castsi512_si256(Lane) -> Lane;
    _mm256_loadu_si256(*const Lane) -> Lane;
    _mm512_loadu_si512(*const Lane) -> Lane;
    _mm256_storeu_si256(*mut Lane, Lane) -> ();
    _mm512_set_epi64(i64, i64, i64, i64, i64, i64, i64, i64) -> Lane;
    _mm_set_epi64x(i64, i64) -> Lane;
    _mm512_cvtepu8_epi64(Lane) -> Lane;
    _mm512_permutexvar_epi64(Lane, Lane) -> Lane;
    _mm512_permutex2var_epi64(Lane, Lane, Lane) -> Lane;
    _mm512_mask_xor_epi64(Lane, __mmask8, Lane, Lane) -> Lane;
    _mm512_test_epi64_mask(Lane, Lane) -> __mmask8;
    _mm512_cmplt_epu64_mask(Lane, Lane) -> __mmask8;
    _mm512_unpacklo_epi64(Lane, Lane) -> Lane;
    _mm512_unpackhi_epi64(Lane, Lane) -> Lane;
}

pub unsafe fn _mm512_inserti64x4<const K: i32>(_: Lane, _: Lane) -> Lane {
    unreachable!("no lemma is about moves")
}

pub unsafe fn _mm512_extracti64x4_epi64<const K: i32>(_: Lane) -> Lane {
    unreachable!("no lemma is about moves")
}

pub unsafe fn _mm512_shuffle_i64x2<const K: i32>(_: Lane, _: Lane) -> Lane {
    unreachable!("no lemma is about moves")
}
