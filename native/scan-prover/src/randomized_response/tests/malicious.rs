//! Malicious provers that list other positions; one claim detects each kind.
use super::*;
use crate::claims::Bound;
use crate::group::Fr;
use crate::malicious::caught_by;
use crate::numbers::power_of_two;
use ark_ff::Field;

/// Lists a position, or omits it, and adapts the disclosed set and the count.
fn listed(outcome: &mut Outcome, i: usize, bit: i64) {
    outcome.count += bit - outcome.listed[i];
    outcome.listed[i] = bit;
    outcome.after[i] |= bit;
}

#[test]
fn losers_are_not_listed() {
    let case = short();
    let nobody = [
        // Relevant but not sampled; already disclosed; not relevant.
        case.find(|[c, r, k, h, _]| !c && r && !k && !h),
        case.find(|[c, r, k, h, _]| !c && r && k && h),
        case.find(|[c, r, k, h, _]| !c && !r && k && !h),
    ];
    for i in nobody {
        assert_eq!(case.outcome.listed[i], 0);
        caught_by("constraint: list", || case.claims(|o| listed(o, i, 1)));
    }
    // The position is treated as relevant.
    caught_by("constraint: lookup layer", || {
        case.claims(|o| {
            o.relevant[nobody[2]] = 1;
            listed(o, nobody[2], 1);
        })
    });
}

#[test]
fn winners_are_not_left_out() {
    let case = short();
    let drop = |o: &mut Outcome, i: usize, disclosed: i64| {
        listed(o, i, 0);
        o.after[i] = disclosed;
    };
    // A winner by chance that is not relevant, one that is already disclosed, and a winner by relevance.
    for (i, disclosed) in [
        (case.find(|[c, r, _, h, _]| c && !r && !h), 0),
        (case.find(|[c, _, _, h, _]| c && h), 1),
        (case.find(|[c, r, k, h, _]| !c && r && k && !h), 0),
    ] {
        caught_by("constraint: list", || {
            case.claims(|o| drop(o, i, disclosed))
        });
    }
    let i = case.find(|[c, r, k, h, _]| !c && r && k && !h);
    caught_by("constraint: lookup layer", || {
        case.claims(|o| {
            o.relevant[i] = 0;
            drop(o, i, 0);
        })
    });
    // A separate place beyond the end of the list, which only the marks show.
    caught_by("product: within the list", || {
        case.claims(|o| {
            drop(o, i, 0);
            o.within[i] = 0;
            // The end stays where it is.
            o.within.push(1);
        })
    });
}

/// Bernoulli bits and disclosed set are the committed ones, whatever the prover claims.
#[test]
fn bits_are_the_committed_ones() {
    let case = short();
    let column_of = |case: &Case| column(case.index.layout, case.outcome.after.clone(), 400);
    let turned = |which: usize, i: usize| {
        let mut other = case.again();
        let columns = [&mut other.flips, &mut other.sample, &mut other.disclosed];
        let column = columns.into_iter().nth(which).unwrap();
        let mut opening = column.opening.as_ref().unwrap().as_ref().clone();
        opening.values[i] ^= 1;
        column.opening = Some(Arc::new(opening));
        let bits = Bits {
            flips: &other.flips,
            sample: &other.sample,
            disclosed: &other.disclosed,
        };
        let of_policy = (case.threshold, case.maximum);
        other.outcome = Outcome::new(&case.index, of_policy, &case.witness, &bits).unwrap();
        assert_ne!(other.outcome.listed, case.outcome.listed);
        let packed = other.outcome.packed();
        other.htopk = packed_hash(case.witness.list_salt, 310, &packed);
        other.after = column_of(&other);
        other.forged()
    };
    // A chance bit cleared and set, a position added to the sample, and a disclosed position listed again.
    assert!(!turned(0, case.find(|[c, r, _, _, _]| c && !r)));
    assert!(!turned(0, case.find(|[c, r, _, _, _]| !c && !r)));
    assert!(!turned(1, case.find(|[c, r, k, h, _]| !c && r && !k && !h)));
    assert!(!turned(1, case.find(|[c, r, k, h, _]| !c && r && k && !h)));
    assert!(!turned(2, case.find(|[c, r, k, h, _]| !c && r && k && h)));
    assert!(!turned(2, case.find(|[c, r, k, h, _]| !c && r && k && !h)));
}

#[test]
fn the_disclosed_set_gains_what_is_listed() {
    let case = short();
    for (i, bit) in [
        // Cleared: disclosed before, listed now, both. Set: neither.
        (case.find(|[_, _, _, h, l]| h && !l), 0),
        (case.find(|[_, _, _, h, l]| !h && l), 0),
        (case.find(|[_, _, _, h, l]| h && l), 0),
        (case.find(|[_, _, _, h, l]| !h && !l), 1),
    ] {
        caught_by("constraint: list", || case.claims(|o| o.after[i] = bit));
    }
}

#[test]
fn the_list_is_of_the_first_winners() {
    let case = full();
    let whole = short();
    let last = case.outcome.last() as usize;
    let next = (last + 1..310)
        .find(|i| whole.outcome.listed[*i] == 1)
        .unwrap();
    let first = case.find(|[_, _, _, h, l]| !h && l);
    // The next winner in the place of the first one.
    caught_by("constraint: list", || {
        case.claims(|o| {
            listed(o, first, 0);
            o.after[first] = 0;
            listed(o, next, 1);
            o.within[..=next].fill(1);
        })
    });
    // One fewer than there may be, though others win.
    caught_by("product: end of the list", || {
        case.claims(|o| {
            listed(o, last, 0);
            o.after[last] = case.disclosed.opening.as_ref().unwrap().values[last];
            o.within[last..].fill(0);
        })
    });
    // All winners, and one more than the maximum. Two claims refute a list that ends before the last position.
    assert!(!case.claims(|o| {
        listed(o, next, 1);
        o.within[..=next].fill(1);
    }));
    assert!(case.claims(|_| ()) && case.hides(|_| ()), "the honest one");
}

#[test]
fn nothing_is_listed_behind_the_last_position() {
    let whole = case(250, 252, 7, 200);
    let one_row = case(30, 37, 7, 37);
    for (case, behind) in [
        (short(), 310),
        (short(), 503),
        (short(), 1023),
        (whole, 252),
        (one_row, 100),
    ] {
        caught_by("constraint: list", || {
            case.claims(|o| {
                o.listed.resize(behind, 0);
                o.listed.push(1);
                o.count += 1;
            })
        });
    }
}

/// The proofs of the bits and the earlier records leave the entries beyond the last position open: such entries make no honest
/// proof false, and list no position.
#[test]
fn what_stands_behind_the_last_position_counts_nothing() {
    // One more would win than wins.
    let maximum = short().outcome.count as usize + 1;
    let mut case = case(300, 310, 7, maximum);
    let layout = case.index.layout;
    let behind = |column: &Column, bit: i64| {
        let opening = column.opening.as_ref().unwrap();
        let values = [&opening.values[..], &[bit; 9]].concat();
        let secret = crate::prover::columns::Secret {
            values: &values,
            blindings: &opening.blindings,
            bound: Bound::Unsigned(1),
        };
        Column {
            variables: layout.variables,
            rows: crate::prover::columns::commit(&[secret], 1 << layout.row_variables).remove(0),
            opening: Some(Arc::new(Opening {
                values: values.clone(),
                blindings: opening.blindings.clone(),
            })),
        }
    };
    case.flips = behind(&case.flips, 1);
    case.sample = behind(&case.sample, 1);
    case.disclosed = behind(&case.disclosed, 1);
    let bits = Bits {
        flips: &case.flips,
        sample: &case.sample,
        disclosed: &case.disclosed,
    };
    let of_policy = (case.threshold, case.maximum);
    let outcome = Outcome::new(&case.index, of_policy, &case.witness, &bits).unwrap();
    assert_eq!(outcome.listed, case.outcome.listed);
    assert!(case.forged());
    // A winner by chance there, at which the list ends.
    case.disclosed = super::case(300, 310, 7, maximum).disclosed;
    caught_by("constraint: list", || {
        case.claims(|o| {
            o.listed.push(1);
            o.within.push(1);
            o.count += 1;
        })
    });
}

#[test]
fn hidden_values_are_the_list_s() {
    let case = short();
    let elements = case.statement().elements();
    let (count, last, room) = (1 + elements, 2 + elements, 11 + elements);
    let lacking = 200 - case.outcome.count;
    let set = |bits: &mut [Fr], x: i64| {
        for (k, bit) in bits.iter_mut().enumerate() {
            *bit = Fr::from((x >> k & 1) as u8);
        }
    };
    let i = case.find(|[c, r, k, h, _]| !c && r && !k && !h);
    assert!(i < 252);
    caught_by("column claim: packed list", || {
        case.hides(|hidden| hidden[1] += power_of_two(i))
    });
    caught_by("column claim: packed list", || {
        case.hides(|hidden| {
            hidden[count] += Fr::ONE;
            set(&mut hidden[room..], lacking - 1);
        })
    });
    // Numbers other than bits, with the same sums; the marks also refute such an end of the list.
    let moved = |place: usize| {
        case.hides(|hidden| {
            hidden[place] += Fr::from(2u8);
            hidden[place + 1] -= Fr::ONE;
        })
    };
    caught_by("product: bit", || moved(room));
    assert!(!moved(last));
    // An end that the marks do not have.
    caught_by("product: within the list", || {
        full().hides(|hidden| {
            let end = full().outcome.last();
            set(&mut hidden[last..room], end - 1);
        })
    });
    caught_by("constraint: hash outputs", || {
        let mut other = case.again();
        other.htopk += Fr::ONE;
        other.forged()
    });
}

#[test]
fn the_query_is_the_committed_one() {
    let mut other = short();
    other.witness.query[0] = i8::from(other.witness.query[0] == 0);
    assert!(!other.forged(), "cq of another query");
    let mut salt = short();
    salt.witness.query_salt += Fr::ONE;
    assert!(!salt.forged(), "another salt");
    let mut salt = short();
    salt.witness.list_salt += Fr::ONE;
    assert!(!salt.forged(), "another salt of the list");
    let mut score = short();
    let i = score.find(|[c, _, _, _, _]| !c);
    score.witness.scores[i] -= 1;
    assert!(!score.forged(), "a score of no row");
    let mut key = short();
    key.key = IndexKey([4; 32]);
    assert!(!key.forged(), "another index's blindings");
}

/// A prover that claims the policy's threshold and lists by another, and one that claims another maximum length.
#[test]
fn constants_are_the_policy_s() {
    for (threshold, maximum, accepted) in [(39, 20, false), (40, 21, false), (40, 20, true)] {
        let other = case_of([300, 310, 7, maximum], threshold, Given::new(310));
        let claimed = RandomizedResponseStatement {
            threshold: 40,
            maximum: 20,
            ..other.statement()
        };
        let rows = claimed.index.layout.row_variables;
        let session: Result<Session<MaliciousProver>> =
            Session::prover(claimed.transcript(), rows, b"");
        let own = other.statement();
        let (secret, blinding) = (other.secret(), |place| other.key.blinding(place));
        let private = secret.private(&own, &blinding);
        let closed = randomized_response_protocol(session.unwrap(), &own, Some(private)).unwrap();
        let proof: Vec<u8> = closed.into();
        assert_eq!(verify(&claimed, &proof).is_ok(), accepted);
    }
    let relevant = |threshold: i64| {
        let other = case_of([300, 310, 7, 20], threshold, Given::new(310));
        other.outcome.relevant.iter().sum::<i64>()
    };
    assert!(relevant(39) > relevant(40));
}
