//! The lower layers, each with a malicious prover that the layer must detect.
use crate::engine::Fast;
use ark_ff::{AdditiveGroup, BigInt, Field, UniformRand};

use crate::claims::Bound;
use crate::equation::Equation;
use crate::error::Result;
use crate::expr::Expr;
use crate::group::Fr;
use crate::lookup::{lookups, Count, Entry, Segment};
use crate::malicious::{caught_by, MaliciousProver, Told};
use crate::mle::{eq_table, Weight};
use crate::numbers::{from_small, half};
use crate::prover::polynomials::coefficients;
use crate::prover::Prover;
use crate::session::Session;
use crate::small;
use crate::sumcheck::{plain, reduce_digits, sumcheck, Gate};
use crate::transcript::Transcript;
use ragaudit_scan_protocol::digits::{lagrange, of_point, regroup, table, variables, Digit};
use ragaudit_scan_protocol::prover::{Round, Sums};

/// Extreme residues and random ones.
pub(crate) fn residues(count: usize) -> Vec<Fr> {
    let mut rng = ark_std::test_rng();
    let extreme = [Fr::ZERO, -Fr::ONE, Fr::new_unchecked(BigInt::one())];
    let mut out: Vec<Fr> = extreme.repeat(count / 12);
    out.resize_with(count, || Fr::rand(&mut rng));
    out
}

/// Runs a protocol as a prover without checks.
pub(crate) fn prove_anyway(
    row_variables: usize,
    protocol: &impl Fn(&mut Session<MaliciousProver>, bool) -> Result<()>,
) -> Result<Vec<u8>> {
    let mut session = Session::prover(Transcript::new("test"), row_variables, b"witness")?;
    protocol(&mut session, true)?;
    Ok(session.close(None)?.into())
}

pub(crate) fn check(
    row_variables: usize,
    proof: &[u8],
    protocol: &impl Fn(&mut Session<MaliciousProver>, bool) -> Result<()>,
) -> Result<Equation> {
    let mut session = Session::verifier(Transcript::new("test"), row_variables, proof);
    protocol(&mut session, false)?;
    Ok(session.close(None)?.into())
}

/// Whether the verifier accepts such a prover's messages.
fn accepted(
    row_variables: usize,
    protocol: impl Fn(&mut Session<MaliciousProver>, bool) -> Result<()>,
) -> bool {
    let proof = prove_anyway(row_variables, &protocol).unwrap();
    check(row_variables, &proof, &protocol).is_ok_and(|equation| equation.holds::<Fast>(&[]))
}

/// A product of two tables, summed over digits by the definition.
struct Defined {
    tables: [Vec<Fr>; 2],
    /// The digits that are not bound, and the table that multiplies the gate once they are.
    left: Vec<Digit>,
    weighed: Option<Vec<Fr>>,
}

impl Defined {
    /// The tables at a value of the lowest digit.
    fn bound(table: &[Fr], variables: usize, s: Fr) -> Vec<Fr> {
        let factors = lagrange(variables, s);
        let dot = |run: &[Fr]| run.iter().zip(&factors).map(|(v, f)| *v * f).sum();
        table.chunks(1 << variables).map(dot).collect()
    }

    fn variables(&self) -> usize {
        self.left.first().map_or(1, variables)
    }
}

impl Sums for Defined {
    fn coefficients(&mut self, _: &Round) -> Vec<Fr> {
        let v = self.variables();
        let of_digits = !self.left.is_empty();
        let degree = if of_digits { 2 } else { 3 } * ((1 << v) - 1);
        let at = |node: u64| {
            let all = self.tables.iter().chain(&self.weighed);
            let tables: Vec<Vec<Fr>> = all.map(|t| Self::bound(t, v, node.into())).collect();
            let above = self.left.get(1..).unwrap_or_default();
            let weights = table(above);
            let each = half().pow([u64::from(tables[0].len().trailing_zeros())]);
            let term = |x: usize| {
                let product = tables[0][x] * tables[1][x];
                match (of_digits, &self.weighed) {
                    (true, Some(w)) => product * weights[x % weights.len()] * w[x / weights.len()],
                    (true, None) => product * weights[x],
                    _ => product * tables[2][x] * each,
                }
            };
            (0..tables[0].len()).map(term).sum::<Fr>()
        };
        coefficients(&(0..=degree as u64).map(at).collect::<Vec<Fr>>())
    }

    fn bind(&mut self, s: Fr) {
        let v = self.variables();
        let of_digits = !self.left.is_empty();
        let weighed = self.weighed.iter_mut().filter(|_| !of_digits);
        let tables = self.tables.iter_mut().chain(weighed);
        tables.for_each(|t| *t = Self::bound(t, v, s));
        if of_digits {
            self.left.remove(0);
        }
    }

    fn finals(&self) -> Vec<Fr> {
        self.tables.iter().map(|t| t[0]).collect()
    }
}

/// A sum of products weighted by digits of one to three variables; some digits become coordinates.
#[test]
fn sums_over_digits() {
    let run = |false_value: u64| {
        accepted(4, |session, prover| {
            let all = random(2 * 64);
            let tables = [all[..64].to_vec(), all[64..].to_vec()];
            let digits = regroup(&of_point(&session.challenges("point", 6)), &[1, 2, 3]);
            for (sample, drawn) in [(3, 3), (2, 5), (0, 6)] {
                let (digits, weighed) = digits.split_at(sample);
                let places = table(&[digits, weighed].concat());
                let products = tables[0].iter().zip(&tables[1]);
                let terms = products.zip(&places).map(|((a, b), w)| *a * b * w);
                let sum = terms.sum::<Fr>() + Fr::from(false_value);
                let claim = session.send("sum", 1, prover.then_some(&[sum]))?[0];
                let sums = Defined {
                    tables: tables.clone(),
                    left: digits.to_vec(),
                    weighed: (!weighed.is_empty()).then(|| table(weighed)),
                };
                let sums = prover.then(|| Box::new(sums) as Box<dyn Sums>);
                let both = [digits, weighed];
                let reduced = reduce_digits(session, "digits", both, claim.into(), 2, sums)?;
                assert_eq!(reduced.point.len(), drawn);
                let weights = table(&reduced.digits);
                let at = |t: &Vec<Fr>| t.iter().zip(&weights).map(|(v, w)| *v * w).sum::<Fr>();
                let finals = tables.each_ref().map(at);
                assert!(reduced.finals.is_none_or(|actual| actual == finals));
                let product = finals[0] * finals[1];
                session.constrain("digits", reduced.claim - (product * reduced.weight).into());
            }
            Ok(())
        })
    };
    assert!(run(0));
    assert!(!run(1), "a sum that is another");
}

fn random(count: usize) -> Vec<Fr> {
    let mut rng = ark_std::test_rng();
    (0..count).map(|_| Fr::rand(&mut rng)).collect()
}

#[test]
fn linear_and_product_constraints() {
    let run = |sum: u64, product: u64, root: u64| {
        accepted(4, |session, prover| {
            let values: Vec<Fr> = [3, 5, sum, product]
                .into_iter()
                .chain(0..30)
                .map(Fr::from)
                .collect();
            let v = session.send("values", 34, prover.then_some(&values))?;
            let single = session.send_single("root", prover.then_some(Fr::from(root)))?;
            let e = |i: usize| Expr::from(v[i]);
            session.constrain("sum", e(0) + e(1) - e(2));
            session.constrain("last", e(33) - 29u64.into());
            session.constrain("single", Expr::from(single) - e(3) - 1u64.into());
            session.constrain_product("product", e(0) + 1u64.into(), e(1), e(3));
            session.constrain_product("other", e(7), e(8), 12u64.into());
            Ok(())
        })
    };
    assert!(run(8, 20, 21));
    assert!(!run(9, 20, 21), "a false sum");
    assert!(!run(8, 21, 22), "a false product");
    assert!(
        !run(8, 20, 20),
        "a single value that differs from the message"
    );
}

#[test]
fn an_honest_prover_refuses_what_does_not_hold() {
    let mut session: Session<Prover> = Session::prover(Transcript::new("test"), 4, b"").unwrap();
    let v = session.send("v", 1, Some(&[Fr::ONE])).unwrap();
    session.constrain("zero", v[0].into());
    assert!(session.close(None).is_err());
}

/// Column claims: an evaluation, a strided functional and two columns of other sizes, with one value off.
#[test]
fn column_claims() {
    let run = |false_value: u64| {
        accepted(3, |session, prover| {
            let large: Vec<i64> = (0..64).map(|i| i * i - 700).collect();
            let small: Vec<i64> = (0..8).map(|i| 3 - i).collect();
            let tiny: Vec<i64> = vec![5, -9];
            let ids = session.commit(
                "columns",
                &[6, 3, 1],
                prover.then(|| vec![large.clone(), small.clone(), tiny.clone()]),
            )?;
            let r = session.challenges("point", 6);
            let weight = Weight {
                point: r[..4].to_vec(),
                coefficients: vec![Fr::from(2u8), Fr::from(7u8), Fr::ONE],
                items: 13,
            };
            let dot = |w: &[Fr], v: &[i64]| {
                w.iter()
                    .zip(v)
                    .map(|(w, v)| *w * from_small(*v))
                    .sum::<Fr>()
            };
            let values = [
                dot(&eq_table(&r), &large) + Fr::from(false_value),
                dot(&crate::mle::entries(&weight), &large),
                dot(&eq_table(&r[..3]), &small),
                dot(&eq_table(&r[..1]), &tiny),
            ];
            let v = session.send("values", 4, prover.then_some(&values))?;
            session.claim(Weight::evaluation(&r), vec![(ids[0], Fr::ONE)], v[0].into());
            session.claim(weight, vec![(ids[0], Fr::ONE)], v[1].into());
            session.claim(
                Weight::evaluation(&r[..3]),
                vec![(ids[1], Fr::ONE)],
                v[2].into(),
            );
            session.claim(
                Weight::evaluation(&r[..1]),
                vec![(ids[2], -Fr::ONE)],
                -Expr::from(v[3]),
            );
            Ok(())
        })
    };
    assert!(run(0));
    assert!(!run(1), "an evaluation that is not the column's");
}

/// The column's true value, at another point than the challenge.
#[test]
fn an_opening_is_for_its_point() {
    let run = |other: bool| {
        accepted(3, |session, prover| {
            let column: Vec<i64> = (0..32).map(|i| i * 7 % 31).collect();
            let ids = session.commit("column", &[5], prover.then(|| vec![column.clone()]))?;
            let mut r = session.challenges("point", 5);
            if prover && other {
                r[4] += Fr::ONE;
            }
            let table: Vec<Fr> = column.iter().map(|v| from_small(*v)).collect();
            let value = crate::mle::evaluate(&table, &r);
            let v = session.send("value", 1, prover.then_some(&[value]))?;
            session.claim(Weight::evaluation(&r), vec![(ids[0], Fr::ONE)], v[0].into());
            Ok(())
        })
    };
    assert!(run(false));
    assert!(!run(true));
}

#[test]
fn sumcheck_of_a_cubic() {
    let run = |false_value: u64| {
        accepted(3, |session, prover| {
            let n = 5;
            let tables: Vec<Vec<Fr>> = random(128).chunks(32).map(<[Fr]>::to_vec).collect();
            let gate = Gate::Selection { chi: -Fr::ONE };
            let values = |x: usize| tables.iter().map(|t| t[x]).collect::<Vec<Fr>>();
            let sum: Fr = (0..32).map(|x| gate.at(&values(x))).sum();
            let claim =
                session.send("sum", 1, prover.then_some(&[sum + Fr::from(false_value)]))?[0];
            let (tau, claim) = plain(n, claim.into());
            let given = prover.then(|| tables.clone());
            let reduced = sumcheck(session, "cubic", &tau, claim, 3, given, gate)?;
            // The tables are public here: the verifier evaluates the gate itself.
            let at: Vec<Fr> = tables
                .iter()
                .map(|t| crate::mle::evaluate(t, &reduced.point))
                .collect();
            session.constrain("cubic", reduced.claim - gate.at(&at).into());
            Ok(())
        })
    };
    assert!(run(0));
    assert!(!run(1), "a sum that is not the tables'");
}

/// Values of two columns in two tables.
fn lookup_case(values: [i64; 8], pairs: [i64; 4], counts: [i64; 4], squares: [i64; 4]) -> bool {
    accepted(3, |session, prover| {
        let columns = || {
            vec![
                values.to_vec(),
                pairs.to_vec(),
                counts.to_vec(),
                squares.to_vec(),
            ]
        };
        let ids = session.commit("columns", &[3, 2, 2, 2], prover.then(columns))?;
        let hidden = session.send("hidden", 3, prover.then_some(&[1u64, 3, 3].map(Fr::from)))?;
        let one = |i: usize| Entry::Columns(vec![(ids[i], Fr::ONE)]);
        let queries = lookups(
            session,
            vec![
                Segment {
                    variables: 3,
                    tag: 1,
                    entries: vec![one(0)],
                    count: Count::Once,
                },
                Segment {
                    variables: 2,
                    tag: 1,
                    entries: vec![Entry::Row],
                    count: Count::Table(ids[2]),
                },
                Segment {
                    variables: 2,
                    tag: 2,
                    entries: vec![Entry::Row, one(1)],
                    count: Count::Once,
                },
                Segment {
                    variables: 2,
                    tag: 2,
                    entries: vec![Entry::Row, Entry::Public(vec![0, 1, 4, 9])],
                    count: Count::Table(ids[3]),
                },
                Segment {
                    variables: 2,
                    tag: 1,
                    entries: vec![Entry::Hidden(
                        hidden.iter().map(|v| Expr::from(*v)).collect(),
                    )],
                    count: Count::First(3),
                },
            ],
        )?;
        assert!(queries.is_empty());
        Ok(())
    })
}

#[test]
fn lookups_accept_only_table_rows() {
    let values = [0, 1, 2, 3, 3, 3, 0, 1];
    assert!(lookup_case(values, [0, 1, 4, 9], [2, 3, 1, 5], [1; 4]));
    assert!(
        !lookup_case(values, [0, 1, 4, 9], [3, 3, 1, 5], [1; 4]),
        "multiplicities off by one"
    );
    assert!(
        !lookup_case([0, 1, 2, 3, 3, 3, 0, 4], [0, 1, 4, 9], [2, 3, 1, 5], [1; 4]),
        "a value of no row"
    );
    assert!(
        !lookup_case(values, [0, 1, 4, 8], [2, 3, 1, 5], [1; 4]),
        "a tuple of no row"
    );
    assert!(
        !lookup_case(values, [0, 1, 4, 9], [2, 3, 1, 5], [1, 1, 1, 0]),
        "a row not counted"
    );
}

/// 9 is a row of the other table, and counted there.
#[test]
fn tags_keep_tables_apart() {
    let run = |value: i64, own: [i64; 4], other: [i64; 4]| {
        accepted(3, |session, prover| {
            let columns = prover.then(|| vec![vec![value, 1, 2, 3], own.to_vec(), other.to_vec()]);
            let ids = session.commit("columns", &[2, 2, 2], columns)?;
            let segment = |tag, entry, count| Segment {
                variables: 2,
                tag,
                entries: vec![entry],
                count,
            };
            let column = Entry::Columns(vec![(ids[0], Fr::ONE)]);
            let rows = Entry::Public(vec![8, 9, 10, 11]);
            let segments = vec![
                segment(1, column, Count::Once),
                segment(1, Entry::Row, Count::Table(ids[1])),
                segment(2, rows, Count::Table(ids[2])),
            ];
            lookups(session, segments)?;
            Ok(())
        })
    };
    assert!(run(0, [1; 4], [0; 4]));
    assert!(!run(9, [0, 1, 1, 1], [0, 1, 0, 0]));
}

/// Were alpha and beta known before the hidden entry is sent, a lookup could be solved for it: with the multiplicity 2
/// for row 0, the entry v with 1 / (alpha - tag - beta v) = 2 / (alpha - tag) passes, though it is no row.
#[test]
fn a_challenge_before_the_commitment_would_let_a_lookup_through() {
    let accepted = |forgetful: bool| {
        let transcript = || {
            let mut transcript: Transcript<Told> = Transcript::new("test");
            transcript.oracle.forgotten = forgetful.then(|| "hidden".to_owned());
            transcript
        };
        let protocol = |session: &mut Session<MaliciousProver>, prover: bool| {
            let counts = prover.then(|| vec![vec![2i64, 0, 0, 0]]);
            let ids = session.commit("columns", &[2], counts)?;
            let mut known = session.transcript.clone();
            let (alpha, beta) = (
                known.challenge("lookup alpha"),
                known.challenge("lookup beta"),
            );
            let start = alpha - Fr::ONE;
            let value = start * (beta.double()).inverse().unwrap();
            let v = session.send("hidden", 1, prover.then_some(&[value]))?[0];
            let segment = |entry, count| Segment {
                variables: 2,
                tag: 1,
                entries: vec![entry],
                count,
            };
            let segments = vec![
                segment(Entry::Hidden(vec![v.into()]), Count::First(1)),
                segment(Entry::Row, Count::Table(ids[0])),
            ];
            lookups(session, segments)?;
            Ok::<_, crate::Error>(())
        };
        let mut prover = Session::prover(transcript(), 3, b"").unwrap();
        protocol(&mut prover, true).unwrap();
        let proof: Vec<u8> = prover.close(None).unwrap().into();
        let mut verifier = Session::verifier(transcript(), 3, &proof);
        protocol(&mut verifier, false).unwrap();
        let equation: Equation = verifier.close(None).unwrap().into();
        equation.holds::<Fast>(&[])
    };
    assert!(
        accepted(true),
        "the forgery passes where the hash forgets the entry"
    );
    assert!(!accepted(false));
}

/// Two values of no row, and an alpha at which their fractions have no denominator: the sum is 0 / 0, whatever it is.
#[test]
fn no_fraction_has_a_denominator_of_zero() {
    let false_value = || {
        let transcript = || {
            let mut transcript: Transcript<Told> = Transcript::new("test");
            transcript.oracle.predicted = vec![
                ("lookup alpha", Fr::from(1 + 2 * 9u64)),
                ("lookup beta", Fr::from(2u64)),
            ];
            transcript
        };
        let protocol = |session: &mut Session<MaliciousProver>, prover: bool| {
            let columns = prover.then(|| vec![vec![9i64, 9, 1, 2], vec![0i64, 1, 1, 0]]);
            let ids = session.commit("columns", &[2, 2], columns).unwrap();
            let segment = |entry, count| Segment {
                variables: 2,
                tag: 1,
                entries: vec![entry],
                count,
            };
            let value = Entry::Columns(vec![(ids[0], Fr::ONE)]);
            let segments = vec![
                segment(value, Count::Once),
                segment(Entry::Row, Count::Table(ids[1])),
            ];
            lookups(session, segments).unwrap();
        };
        let mut prover = Session::prover(transcript(), 3, b"").unwrap();
        protocol(&mut prover, true);
        let proof: Vec<u8> = prover.close(None).unwrap().into();
        let mut verifier = Session::verifier(transcript(), 3, &proof);
        protocol(&mut verifier, false);
        let equation: Equation = verifier.close(None).unwrap().into();
        equation.holds::<Fast>(&[])
    };
    caught_by("product: lookup root", false_value);
}

/// Segments that end early, longer than a block of leaves: the last row that counts is looked up, the next is not.
#[test]
fn rows_count_to_the_last_and_no_further() {
    const ROWS: usize = 1500;
    let run = |false_at: Option<usize>, uncounted: bool| {
        accepted(7, |session, prover| {
            let mut values: Vec<i64> = (0..2048).map(|i| i % 4).collect();
            let mut counts = vec![0i64; 8];
            values[..ROWS].iter().for_each(|v| counts[*v as usize] += 1);
            if uncounted {
                counts[values[ROWS - 1] as usize] -= 1;
            }
            if let Some(row) = false_at {
                counts[values[row] as usize] -= i64::from(row < ROWS);
                counts[4] += 1;
                values[row] = 4;
            }
            let bounded = [(2048, Bound::Unsigned(3)), (8, Bound::Unsigned(11))];
            let columns = prover.then(|| vec![values.clone(), counts.clone()]);
            let ids = session.commit_bounded("columns", &bounded, columns)?;
            let segments = vec![
                Segment {
                    variables: 11,
                    tag: 1,
                    entries: vec![Entry::Columns(vec![(ids[0], Fr::ONE)])],
                    count: Count::First(ROWS),
                },
                // 4 and above are no rows of the table.
                Segment {
                    variables: 3,
                    tag: 1,
                    entries: vec![Entry::Row],
                    count: Count::TableFirst(ids[1], 4),
                },
            ];
            lookups(session, segments)?;
            Ok(())
        })
    };
    assert!(run(None, false));
    assert!(run(Some(ROWS), false), "a row after the last that counts");
    assert!(!run(Some(ROWS - 1), false), "the last that counts");
    assert!(!run(Some(1024), false), "a row of the last block");
    assert!(!run(None, true), "a row not counted in the table");
}

/// Columns are committed to in one step, each in its own rows, without rows beyond its entries.
#[test]
fn columns_have_rows_for_their_entries() {
    let run = |false_value: i64| {
        accepted(3, |session, prover| {
            let columns: Vec<Vec<i64>> = (0..3)
                .map(|k| (0..19).map(|i| (i % 5) * [1, -3, 1 << 33][k]).collect())
                .collect();
            let sent = prover.then(|| columns.clone());
            let ids = session.commit_bounded("columns", &[(19, Bound::Signed(37)); 3], sent)?;
            assert!(ids.iter().all(|id| session.columns[id.0].rows.len() == 3));
            let r = session.challenges("point", 5);
            for (k, (id, column)) in ids.iter().zip(&columns).enumerate() {
                let value = small::dot(column, &eq_table(&r));
                let value = value + from_small(false_value * i64::from(k == 1));
                session.claim(Weight::evaluation(&r), vec![(*id, Fr::ONE)], value.into());
            }
            Ok(())
        })
    };
    assert!(run(0));
    assert!(!run(1));
}

/// Each byte range of a proof in turn, and wrong lengths: refused, without a panic.
#[test]
fn mutated_proofs_are_refused() {
    let protocol = |session: &mut Session<MaliciousProver>, prover: bool| {
        let ids = session.commit("column", &[4], prover.then(|| vec![(0..16).collect()]))?;
        let r = session.challenges("point", 4);
        let value = crate::mle::prefix_numbers(&r, 16);
        session.claim(
            Weight::evaluation(&r),
            vec![(ids[0], Fr::ONE)],
            value.into(),
        );
        let v = session.send("v", 2, prover.then_some(&[Fr::from(4u8), Fr::from(2u8)]))?;
        session.constrain_product("square", v[1].into(), v[1].into(), v[0].into());
        Ok(())
    };
    let proof = prove_anyway(3, &protocol).unwrap();
    let verdict = |bytes: &[u8]| check(3, bytes, &protocol).is_ok_and(|e| e.holds::<Fast>(&[]));
    assert!(verdict(&proof));
    for at in 0..proof.len() {
        if at % 32 == 31 || at % 32 == 0 || at % 37 == 0 {
            let mut bad = proof.clone();
            bad[at] ^= 1 << (at % 8);
            assert!(!verdict(&bad), "byte {at}");
        }
    }
    for length in (0..proof.len()).step_by(13) {
        assert!(!verdict(&proof[..length]));
    }
    assert!(!verdict(&[&proof[..], &[0]].concat()));
    assert!(!verdict(&[&proof[..], &[0; 32]].concat()));
    assert!(!verdict(&vec![0xff; proof.len()]));
    assert!(!verdict(&vec![0; proof.len()]));
}

#[test]
fn equations_are_not_summed_away() {
    // Two false equations with a true plain sum: the weights distinguish them.
    let mut one = Equation {
        u: Fr::ONE,
        ..Equation::default()
    };
    let other = Equation {
        u: -Fr::ONE,
        ..Equation::default()
    };
    assert!(!one.holds::<Fast>(&[]));
    one.add(&other, Fr::from(2u8));
    assert!(!one.holds::<Fast>(&[]));
    assert!(Equation {
        u: Fr::ZERO,
        ..Equation::default()
    }
    .holds::<Fast>(&[]));
}
