//! Malicious provers that state one false value and compensate for it in as many claims as possible, so that only one claim
//! fails.
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use ark_ff::{AdditiveGroup, Field};

use crate::error::Error;
use crate::expr::{Expr, Var};
use crate::group::{Fr, WIDTH};
use crate::malicious::{run, False, Log, Without, FALSE, REPEATED, SINGLE};

type Verdict = std::result::Result<(), Error>;
type Key = (bool, usize);

/// The closing's sums of all products and column claims: they hold if each product and claim holds.
const CLOSING: [&str; 4] = [
    "constraint: left factor",
    "constraint: right factor",
    "constraint: products",
    "constraint: column claims",
];

/// Claims of the layers that all runs have, which have tests of their own.
const LOWER: [&str; 17] = [
    "column claim: lookup columns",
    "constraint: column claims",
    "constraint: hash input",
    "constraint: hash layer",
    "constraint: hash outputs",
    "constraint: left factor",
    "constraint: lookup layer",
    "constraint: lookup leaves",
    "constraint: opened value",
    "constraint: products",
    "constraint: right factor",
    "product: fifth power",
    "product: fourth power",
    "product: lookup layer",
    "product: lookup root",
    "product: square",
    "link: 0",
];

/// The claims of a run's prover, and the places of its values.
struct Claims<'l> {
    log: &'l Log,
    /// The claims that each value is in.
    of: BTreeMap<Key, BTreeSet<usize>>,
}

fn key(var: Var) -> Key {
    match var {
        Var::Message(slot) => (false, slot),
        Var::Single(number) => (true, number),
    }
}

impl<'l> Claims<'l> {
    fn new(log: &'l Log) -> Self {
        let mut of: BTreeMap<Key, BTreeSet<usize>> = BTreeMap::new();
        let closing = |n: &usize| CLOSING.contains(&log.claims[*n].as_str());
        let (closing, own): (Vec<usize>, Vec<usize>) = (0..log.about.len()).partition(closing);
        for n in own.into_iter().chain(closing.iter().copied()) {
            for (var, _) in log.about[n].about.iter().flat_map(|expr| &expr.terms) {
                let claims = of.entry(key(*var)).or_default();
                let summed = |n: &usize| !log.claims[*n].starts_with("constraint");
                if !closing.contains(&n) || !claims.iter().any(summed) {
                    claims.insert(n);
                }
            }
        }
        Self { log, of }
    }

    fn is(&self, claim: usize, kind: &str) -> bool {
        self.log.claims[claim].starts_with(kind)
    }

    /// Where a value is sent: the number of the message's point, and the place.
    fn place(&self, (single, number): Key) -> (usize, usize) {
        match single {
            false => (self.log.of_messages[number / WIDTH], number % WIDTH),
            true => (self.log.of_singles[number], SINGLE),
        }
    }

    /// The hidden values of a claim that are no single ones, those sent last before others.
    fn values(&self, claim: usize) -> Vec<Key> {
        let terms = self.log.about[claim].about.iter().flat_map(|e| &e.terms);
        let keys: BTreeSet<Key> = terms.map(|(var, _)| key(*var)).collect();
        let mut keys: Vec<Key> = keys.into_iter().filter(|(single, _)| !single).collect();
        keys.sort_by_key(|key| std::cmp::Reverse(self.place(*key)));
        keys
    }

    /// The values that change with a value if all products except one claim are to hold: the value itself and these products'
    /// outputs; and the other claims about them.
    fn carried(&self, first: Key, claim: usize) -> Option<(Vec<Key>, BTreeSet<usize>)> {
        let (mut keys, mut others) = (vec![first], BTreeSet::new());
        let mut at = 0;
        while at < keys.len() {
            for n in self.of[&keys[at]].iter().filter(|n| **n != claim) {
                if !self.is(*n, "product") {
                    others.insert(*n);
                    continue;
                }
                let [left, right, output] = &self.log.about[*n].about[..] else {
                    return None;
                };
                let factor = [left, right].iter().any(|e| holds(e, keys[at]));
                match (&output.terms[..], factor) {
                    // The output of a product that holds follows from its factors.
                    ([(var, c)], true) if *c == Fr::ONE && output.constant == Fr::ZERO => {
                        if !keys.contains(&key(*var)) {
                            keys.push(key(*var));
                        }
                    }
                    (_, false) if at > 0 => (),
                    _ => return None,
                }
            }
            at += 1;
        }
        Some((keys, others))
    }
}

fn holds(expr: &Expr, value: Key) -> bool {
    expr.terms.iter().any(|(var, _)| key(*var) == value)
}

/// The values of a prover with one of them changed, and with the outputs of all products except one claim recomputed.
fn changed(log: &Log, keys: &[Key], claim: usize, to: Fr) -> BTreeMap<Key, Fr> {
    let mut out = BTreeMap::from([(keys[0], to)]);
    for (n, of_log) in log.about.iter().enumerate() {
        if n == claim || !log.claims[n].starts_with("product") {
            continue;
        }
        let value = |e: &Expr| e.evaluate(|var| valued(log, &out, var));
        if let [left, right, output] = &of_log.about[..] {
            if let [(var, _)] = output.terms[..] {
                if keys[1..].contains(&key(var)) {
                    let product = value(left) * value(right);
                    out.insert(key(var), product);
                }
            }
        }
    }
    out
}

fn valued(log: &Log, changed: &BTreeMap<Key, Fr>, var: Var) -> Fr {
    let (single, number) = key(var);
    let own = || match single {
        false => log.values[number],
        true => log.singles[number],
    };
    changed.get(&(single, number)).copied().unwrap_or_else(own)
}

/// Where a function of this kind is zero, other than at `not`: of degree two or less, or a fifth power and a constant.
fn root(of: &dyn Fn(Fr) -> Fr, not: Fr) -> Option<Fr> {
    let two = Fr::from(2u8);
    let [zero, one, minus] = [Fr::ZERO, Fr::ONE, -Fr::ONE].map(of);
    let (b, a) = ((one - minus) / two, (one + minus) / two - zero);
    let mut roots = Vec::new();
    if a == Fr::ZERO {
        roots.extend(b.inverse().map(|b| -zero * b));
    } else if let Some(d) = (b.square() - a * zero * Fr::from(4u8)).sqrt() {
        roots.extend([d, -d].map(|d| (d - b) / (a * two)));
    }
    if let Some(factor) = (one - zero).inverse() {
        // r - 1 is no multiple of 5.
        roots.push((-zero * factor).pow(FIFTH));
    }
    roots.into_iter().find(|x| *x != not && of(*x) == Fr::ZERO)
}

/// The inverse of 5 modulo r - 1.
const FIFTH: [u64; 4] = [
    0xcfe7f7a98ccccccd,
    0x535cb9d394945a0d,
    0x93736af8679aad17,
    0x26b6a528b427b354,
];

/// A false value, up to a point, that only one claim of a run refutes: all other claims of the prover hold.
fn false_value(
    log: &Log,
    claim: usize,
    last: usize,
    depth: usize,
    prove: &dyn Fn() -> Vec<u8>,
) -> Option<Vec<False>> {
    let claims = Claims::new(log);
    for value in claims.values(claim) {
        if claims.place(value).0 > last {
            continue;
        }
        let Some((keys, others)) = claims.carried(value, claim) else {
            continue;
        };
        let others: Vec<usize> = others.into_iter().collect();
        let result = match others[..] {
            [] => Some((Vec::new(), log.values[value.1] + Fr::ONE, None)),
            [other] if depth > 0 && claims.is(other, "constraint") => {
                makes_up(&claims, claim, other, &keys, depth, prove)
            }
            _ => None,
        };
        if let Some((mut false_values, to, after)) = result {
            // If another value compensates for the false value, all values that depend on both are correct again.
            false_values.retain(|(_, place, _)| *place != SINGLE);
            let log = after.as_ref().unwrap_or(log);
            for (key, to) in changed(log, &keys, claim, to) {
                let (point, place) = claims.place(key);
                false_values.push((
                    point,
                    place,
                    to - valued(log, &BTreeMap::new(), variable(key)),
                ));
            }
            return Some(compensated(&claims, claim, false_values, prove));
        }
    }
    None
}

fn variable((single, number): Key) -> Var {
    match single {
        false => Var::Message(number),
        true => Var::Single(number),
    }
}

type Compensated = (Vec<False>, Fr, Option<Log>);

/// A false value against another constraint, and the value that compensates for it there.
fn makes_up(
    claims: &Claims,
    claim: usize,
    constraint: usize,
    keys: &[Key],
    depth: usize,
    prove: &dyn Fn() -> Vec<u8>,
) -> Option<Compensated> {
    let points = keys.iter().map(|key| claims.place(*key).0);
    let false_values = false_value(claims.log, constraint, points.min()?, depth - 1, prove)?;
    let apart = |(point, place, _): &False| {
        keys.iter()
            .all(|key| claims.place(*key) != (*point, *place))
    };
    if !false_values.iter().all(apart) {
        return None;
    }
    // A square may have no root: another false value has one.
    (1..=16u64).find_map(|factor| {
        let false_values: Vec<False> = match &false_values[..] {
            [(point, place, more)] => vec![(*point, *place, *more * Fr::from(factor))],
            _ if factor == 1 => false_values.clone(),
            _ => return None,
        };
        let log = told(&false_values, prove);
        let before = log.values[keys[0].1];
        let lacks = |to: Fr| {
            let changed = changed(&log, keys, claim, to);
            log.about[constraint].about[0].evaluate(|var| valued(&log, &changed, var))
        };
        let to = root(&lacks, before)?;
        Some((false_values, to, Some(log)))
    })
}

/// A single that depends on a false value remains as it is: it is a column's value, or opened.
fn compensated(
    claims: &Claims,
    claim: usize,
    mut false_values: Vec<False>,
    prove: &dyn Fn() -> Vec<u8>,
) -> Vec<False> {
    let terms = claims.log.about[claim].about.iter().flat_map(|e| &e.terms);
    let single = terms.map(|(var, _)| *var).find(|var| key(*var).0);
    if let (true, Some(single)) = (claims.is(claim, "constraint"), single) {
        let log = told(&false_values, prove);
        let of = |key: Key| {
            let terms = log.about[claim].about[0].terms.iter();
            let of_key = terms.filter(|(var, _)| *var == variable(key));
            of_key.map(|(_, c)| *c).sum::<Fr>()
        };
        if log.about[claim].values[0] == Fr::ZERO {
            let told = |value: Key| {
                let said = false_values
                    .iter()
                    .filter(|l| claims.place(value) == (l.0, l.1));
                said.map(|l| l.2 * of(value)).sum::<Fr>()
            };
            let more = claims.values(claim).into_iter().map(told).sum::<Fr>();
            let (point, place) = claims.place(key(single));
            false_values.push((point, place, more / of(key(single))));
        }
    }
    false_values
}

/// The run of a prover with these false values.
fn told(false_values: &[False], prove: &dyn Fn() -> Vec<u8>) -> Log {
    FALSE.set(false_values.to_vec());
    let (_, log) = run(Without::Nothing, prove);
    FALSE.set(Vec::new());
    log
}

/// The claims of a run that the page lists as not refuted by a single false value.
fn named(of_run: &str) -> BTreeSet<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/scan/claims.md");
    let page = std::fs::read_to_string(page).expect("a page of claims");
    let rows = page.lines().filter_map(|line| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        (cells[0] == of_run).then(|| cells[1].to_owned())
    });
    let rows: Vec<String> = rows.collect();
    let names = rows
        .iter()
        .flat_map(|row| row.split('`').skip(1).step_by(2));
    names.map(str::to_owned).collect()
}

/// Asserts that each of a run's claims, except the claims that the page lists, alone refutes a false value: a prover that states a
/// false value, and compensates for it in every other claim, is refused, and is accepted if neither party makes that claim.
/// The claims of the lower layers are not tested.
///
/// Among several claims of a name the test takes the last one with such a false value, and the last one in the second half of them.
pub(crate) fn each_claim_excludes_a_false_value(
    of_run: &str,
    prove: impl Fn() -> Vec<u8>,
    verify: impl Fn(&[u8]) -> Verdict,
) {
    REPEATED.set(true);
    let (proof, log) = run(Without::Nothing, &prove);
    assert_eq!(verify(&proof), Ok(()));
    let own = |name: &&str| !LOWER.contains(name);
    let names: BTreeSet<&str> = log.claims.iter().map(String::as_str).filter(own).collect();
    let mut none = BTreeSet::new();
    for name in names {
        let of_name = (0..log.claims.len())
            .rev()
            .filter(|n| log.claims[*n] == name);
        let of_name: Vec<usize> = of_name.collect();
        let from: BTreeSet<usize> = [0, of_name.len() / 2].into();
        let stands = |from: usize| {
            let mut claims = of_name[from..].iter().take(TRIES);
            claims.any(|claim| {
                let Some(false_values) = false_value(&log, *claim, usize::MAX, 2, &prove) else {
                    return false;
                };
                FALSE.set(false_values);
                let accepted = |without: Without| run(without, || verify(&prove()).is_ok()).0;
                let passes = accepted(Without::NthClaim(*claim));
                assert!(!accepted(Without::Nothing), "{of_run}: {name}");
                FALSE.set(Vec::new());
                passes
            })
        };
        if !from.into_iter().all(stands) {
            none.insert(name.to_owned());
        }
    }
    REPEATED.set(false);
    assert_eq!(none, named(of_run), "{of_run}");
}

/// How many claims of a name are tried.
const TRIES: usize = 2;
