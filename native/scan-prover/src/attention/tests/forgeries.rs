//! Malicious provers of an attention block.
use super::*;

const LOOKUP: &str = "constraint: lookup layer";
const MATRICES: &str = "constraint: matrices";
const NORMALISERS: &str = "constraint: normalisers";
const SCORE: &str = "product: marked score";

/// A false entry of a column that is in its table, with the remainders of the true one: the value that the prover sends for the columns
/// is then the true one's.
#[test]
fn values_at_the_point_are_the_columns() {
    let case = small();
    let shape = case.weights.shape;
    REPEATED.set(true);
    let labels = [
        "queries", "keys", "values", "scores", "heads", "norm", "maxima",
    ];
    for (kind, label) in labels.into_iter().enumerate() {
        let mut witness = case.witness();
        // Variables of the column below and in the point, the changed entry, and what the sent value changes by.
        let (mut skipped, mut variables, mut entry) = (0, 4, 0);
        let mut change = Fr::ONE;
        if kind < 6 {
            change = power_of_two(shape.remainders()[kind]);
        }
        match kind {
            0..3 => {
                witness.projections[kind][0] += 1;
                case.after_projections(&mut witness);
            }
            3 => {
                entry = witness.hot.iter().position(|hot| *hot == 0).unwrap();
                (variables, change) = (5, -change);
                witness.distances[entry] += 1;
                witness.look_up(&case.weights);
                case.after_scores(&mut witness);
            }
            4 => {
                witness.projections[3][0] += 1;
                case.after_heads(&mut witness);
            }
            5 => witness.norm.y[0] += 1,
            _ => {
                witness.maxima[0] += 1;
                (skipped, variables) = (2, 3);
            }
        }
        let to = case.commitments(&witness);
        let derived = || witness.derived(&shape);
        let forged = || case.passes(&witness, &to, &derived);
        let (_, log) = run(Without::Nothing, || {
            let statement = AttentionStatement {
                marks: to.used.point,
                inputs: &to.inputs.rows,
                outputs: &to.outputs.rows,
                ..case.statement()
            };
            let places = [&to.inputs, &to.outputs];
            prove_with::<MaliciousProver>(&statement, &witness, &to.used, places).unwrap()
        });
        let sent = log.points.iter().position(|point| point == label);
        let point = &lookup_point(&log)[skipped..skipped + variables];
        let more = -change * crate::mle::eq_at(point, entry);
        FALSE.set(vec![(sent.expect("a message"), 0, more)]);
        caught_by(&format!("column claim: {label}"), forged);
        FALSE.set(Vec::new());
    }
    REPEATED.set(false);
}

/// A prover that uses one place more than the commitment to the marks has, in all its values.
#[test]
fn marks_are_those_of_the_commitment() {
    let case = small();
    let witness = Witness::new(&case.weights, &[1; 4], &case.x).unwrap();
    let to = Commitments {
        used: commit_used(&case.weights, 4, 3).unwrap(),
        ..case.commitments(&witness)
    };
    let derived = || witness.derived(&case.weights.shape);
    let (_, log) = run(Without::Nothing, || case.prove());
    let sent = log.points.iter().position(|point| point == "marks");
    FALSE.set(vec![(sent.expect("a message"), 3, Fr::ONE)]);
    caught_by("column claim: marks", || {
        case.passes(&witness, &to, &derived)
    });
    FALSE.set(Vec::new());
}

/// A prover opens other matrices than the committed ones, and computes all values from them.
#[test]
fn matrices_are_the_committed_ones() {
    let honest = || case(shape(12, 3), 2, 2);
    for kind in 0..4 {
        for change in OTHER_MATRICES {
            let mut integers = honest().integers;
            change(&mut integers.matrices[kind]);
            let mut case = honest();
            let mut other = integers.weights().unwrap();
            case.weights.matrices[kind].opened = other.matrices[kind].opened.take();
            let witness = case.witness();
            caught_by("column claim: matrices", || case.forged(&witness));
        }
    }
}

/// Every remainder and every quotient: queries, keys, values and results of heads are one step away, and all later values
/// follow from them.
#[test]
fn quotients_are_the_rounded_ones() {
    let case = small();
    let shape = case.weights.shape;
    for (step, kind) in [-1, 1]
        .into_iter()
        .flat_map(|s| (0..4).map(move |k| (s, k)))
    {
        for at in entries(case.witness().projections[kind].len()) {
            let mut witness = case.witness();
            witness.projections[kind][at] += step;
            let rests = if kind == 3 { 4 } else { kind };
            match kind {
                3 => {
                    witness.divide_heads(&case.weights);
                    case.after_heads(&mut witness);
                }
                _ => {
                    witness.divide_projection(&case.weights, kind);
                    case.after_projections(&mut witness);
                }
            }
            let mut masked = witness.clone();
            cut(&mut masked.rests[rests], shape.remainders()[rests]);
            if at == 0 {
                caught_by(LOOKUP, || case.forged(&witness));
                let claim = if kind == 3 { NORMALISERS } else { MATRICES };
                caught_by(claim, || case.forged(&masked));
            }
            assert!(
                !case.forged(&witness) && !case.forged(&masked),
                "{kind} {at}"
            );
        }
    }
    for step in [-1, 1] {
        for at in entries(case.witness().norm.y.len()) {
            let mut witness = case.witness();
            witness.norm.y[at] += step;
            witness.norm.divide(&case.weights.norm);
            let mut masked = witness.clone();
            cut(&mut masked.norm.rests, shape.norm_shift());
            if at == 0 {
                caught_by(LOOKUP, || case.forged(&witness));
                caught_by("constraint: roots", || case.forged(&masked));
            }
            assert!(!case.forged(&witness) && !case.forged(&masked), "y {at}");
        }
    }
}

/// Remainders that differ from the true ones, with every limb in its range, and one beyond its range in the lowest limb.
#[test]
fn remainders_are_the_divisions() {
    let case = small();
    let bits = case.weights.shape.remainders();
    let claims = [
        MATRICES,
        MATRICES,
        MATRICES,
        SCORE,
        NORMALISERS,
        "constraint: roots",
    ];
    for (kind, claim) in claims.into_iter().enumerate() {
        let of = |witness: &Witness| match kind {
            5 => witness.norm.rests.len(),
            _ => witness.rests[kind].len(),
        };
        for at in entries(of(&case.witness())) {
            for k in 0..limb_widths(bits[kind]).len() {
                let mut witness = case.witness();
                let rests = match kind {
                    5 => &mut witness.norm.rests,
                    _ => &mut witness.rests[kind],
                };
                rests[at] ^= 1 << (LIMB_BITS * k);
                if at == 0 {
                    caught_by(claim, || case.forged(&witness));
                }
                assert!(!case.forged(&witness), "{kind} {at} {k}");
            }
        }
    }
    // The lowest limb has 2^12 more and the next one 1 less, which is the same remainder.
    let (statement, witness) = (case.statement(), case.witness());
    let shape = &case.weights.shape;
    for kind in 3..6 {
        let lowest =
            |columns: &Columns<Vec<i64>>| columns.limbs[kind][1][0].iter().position(|l| *l > 0);
        let columns = witness.columns(shape);
        let at = lowest(&columns).expect("a limb that is not 0");
        caught_by(LOOKUP, || {
            let mut columns = columns.clone();
            columns.limbs[kind][0][0][at] += 1 << LIMB_BITS;
            columns.limbs[kind][1][0][at] -= 1;
            let columns = (columns, witness.multiplicities(shape));
            let places = (&case.used, [&case.inputs, &case.outputs]);
            let derived = witness.derived(shape);
            let proof =
                prove_columns::<MaliciousProver>(&statement, &witness, places, columns, derived);
            verify(&statement, &proof.unwrap()).is_ok()
        });
    }
}

/// Maxima that are no score, smaller ones than the largest score, and no marked maximum.
#[test]
fn maxima_are_the_largest_scores() {
    let case = small();
    for row in entries(case.witness().maxima.len()) {
        // Above all scores: no distance is 0.
        let mut witness = case.witness();
        let hot = witness.hot.clone();
        witness.maxima[row] += 1;
        witness.measure(&case.weights);
        case.after_scores(&mut witness);
        witness.hot = hot.clone();
        caught_by("constraint: maximum", || case.forged(&witness));
        witness.mark_maxima();
        assert!(witness.hot != hot);
        caught_by("column claim: normalisers", || case.forged(&witness));
        // Below the largest score: its distance is negative.
        for step in [1, 3] {
            let mut witness = case.witness();
            witness.maxima[row] -= step;
            witness.measure(&case.weights);
            case.after_scores(&mut witness);
            assert!(witness.distances.iter().any(|u| *u < 0));
            // The distances that a marked maximum needs.
            witness.hot = hot.clone();
            let mut cut = witness.clone();
            cut.distances.iter_mut().for_each(|u| *u = (*u).max(0));
            cut.mark_maxima();
            caught_by(SCORE, || case.forged(&cut));
            let mut without = witness.clone();
            let places = case.places;
            let distances = &without.distances[row * places..][..places];
            // Its own marked maximum, where a score is the stated one.
            let own = distances.iter().position(|u| *u == 0);
            without.hot[row * places..][..places].fill(0);
            if let Some(own) = own {
                without.hot[row * places + own] = 1;
            }
            assert!(!case.forged(&witness) && !case.forged(&without));
        }
    }
}

/// The smaller of two scores as the maximum, which is attained: only the range of distances excludes it.
#[test]
fn a_smaller_score_is_no_maximum() {
    let case = small();
    let places = case.places;
    let right = case.witness();
    let row = (0..right.maxima.len())
        .find(|row| {
            let distances = &right.distances[row * places..][..3];
            distances.iter().any(|u| *u > 0)
        })
        .expect("different scores");
    let distances = &right.distances[row * places..][..3];
    let (other, distance) = (0..).zip(distances).find(|(_, u)| **u > 0).unwrap();
    let mut witness = right.clone();
    witness.maxima[row] -= distance;
    witness.measure(&case.weights);
    witness.hot[row * places..][..places].fill(0);
    witness.hot[row * places + other] = 1;
    case.after_scores(&mut witness);
    caught_by(LOOKUP, || case.forged(&witness));
}

#[test]
fn results_of_exp_are_the_tables() {
    let case = small();
    for step in [-1, 1] {
        for at in entries(case.witness().exps.len()) {
            let mut witness = case.witness();
            witness.exps[at] += step;
            case.after_scores(&mut witness);
            if at == 0 {
                caught_by(LOOKUP, || case.forged(&witness));
            }
            assert!(!case.forged(&witness), "{at}");
        }
    }
    // Another row of the table: another distance.
    for at in entries(case.witness().distances.len()) {
        let mut witness = case.witness();
        witness.distances[at] += 1;
        witness.look_up(&case.weights);
        case.after_scores(&mut witness);
        assert!(!case.forged(&witness), "{at}");
    }
    let mut witness = case.witness();
    let at = witness.hot.iter().position(|hot| *hot == 0).unwrap();
    witness.distances[at] += 1;
    witness.look_up(&case.weights);
    case.after_scores(&mut witness);
    caught_by(SCORE, || case.forged(&witness));
}

/// Other normalisers with the remainders that belong to them, one of which is negative, and with remainders in their ranges.
#[test]
fn normalisers_are_the_quotients() {
    let case = small();
    for row in entries(case.witness().quotients.len()) {
        let right = case.witness();
        let [n, rest, slack] = right.quotients[row];
        let sum = rest + slack + 1;
        for step in [-1, 1, 100] {
            let mut witness = right.clone();
            witness.quotients[row] = quotient(sum, n + step);
            case.after_quotients(&mut witness);
            assert!(witness.quotients[row].iter().any(|v| *v < 0));
            caught_by(LOOKUP, || case.forged(&witness));
            // A remainder in its range for which N L + rem is not 2^30.
            witness.quotients[row] = [n + step, rest, slack];
            caught_by(NORMALISERS, || case.forged(&witness));
            // The remainder that belongs to it, where that has a range, and a false distance from L.
            let [_, rest, _] = quotient(sum, n + step);
            if rest >= 0 {
                witness.quotients[row] = [n + step, rest, 0];
                caught_by("constraint: remainders of normalisers", || {
                    case.forged(&witness)
                });
            }
        }
        for k in 1..3 {
            let mut witness = right.clone();
            witness.quotients[row][k] ^= 1;
            assert!(!case.forged(&witness), "{row} {k}");
        }
    }
}

/// A used place more than the committed marks have, and a place that is used although a lower one is not.
#[test]
fn unused_places_have_no_attention() {
    let case = small();
    let shape = &case.weights.shape;
    let right = case.witness();
    // The results of all four places, with the marks of three: each score of the last place has a result of exp.
    let mut all = Witness::new(&case.weights, &[1; 4], &case.x).unwrap();
    all.marks = case.marks.clone();
    assert!(all.norm.y != right.norm.y);
    assert!(!case.forged(&all));
    // The same place at the distance 0, with the row of a used place and with that of no place.
    let mut witness = right.clone();
    for exps in witness.exps.chunks_exact_mut(4) {
        exps[3] = 4096;
    }
    case.after_scores(&mut witness);
    caught_by(LOOKUP, || case.forged(&witness));
    let derived = || Derived {
        marks: vec![1; 32],
        ..witness.derived(shape)
    };
    let mut counted = witness.clone();
    counted.marks = vec![1; 4];
    let multiplicities = counted.multiplicities(shape);
    caught_by("constraint: key", || {
        let (inputs, outputs) = (case.commit(&witness.x), case.commit(&witness.norm.y));
        let statement = AttentionStatement {
            inputs: &inputs.rows,
            outputs: &outputs.rows,
            ..case.statement()
        };
        let columns = (witness.columns(shape), multiplicities.clone());
        let places = (&case.used, [&inputs, &outputs]);
        let proof =
            prove_columns::<MaliciousProver>(&statement, &witness, places, columns, derived());
        verify(&statement, &proof.unwrap()).is_ok()
    });
    // The marked maximum of an unused place.
    let mut witness = right.clone();
    witness.hot[..4].copy_from_slice(&[0, 0, 0, 1]);
    caught_by("constraint: maximum", || case.forged(&witness));
    // Marks with a gap, and marks that are no bits.
    let gap = Witness::new(&case.weights, &[1, 0, 1, 0], &case.x).unwrap();
    caught_by("product: used places", || case.forged(&gap));
    let late = Witness::new(&case.weights, &[0, 1, 1, 1], &case.x).unwrap();
    caught_by("product: used places", || case.forged(&late));
    for marks in [[0; 4], [1, 2, 0, 0], [1, -1, 0, 0]] {
        let mut witness = right.clone();
        witness.marks = marks.to_vec();
        assert!(!case.forged(&witness), "{marks:?}");
        witness.measure(&case.weights);
        case.after_scores(&mut witness);
        assert!(!case.forged(&witness), "{marks:?}");
    }
}

/// Scores of another head, and values of another head.
#[test]
fn heads_are_their_own() {
    let case = small();
    let half = case.places * case.places;
    let swap = |values: &mut Vec<i64>, half: usize| values.rotate_left(half);
    let mut witness = case.witness();
    for values in [
        &mut witness.distances,
        &mut witness.exps,
        &mut witness.hot,
        &mut witness.rests[3],
    ] {
        swap(values, half);
    }
    swap(&mut witness.maxima, case.places);
    case.after_scores(&mut witness);
    assert!(witness.norm.y != case.witness().norm.y);
    caught_by(SCORE, || case.forged(&witness));

    let mut witness = case.witness();
    let values = witness.projections[2].clone();
    for row in witness.projections[2].chunks_exact_mut(4) {
        row.rotate_left(2);
    }
    witness.weigh(&case.weights);
    witness.projections[2] = values;
    case.after_heads(&mut witness);
    caught_by(NORMALISERS, || case.forged(&witness));

    // Queries of another place, and keys in the place of queries.
    for (kind, from) in [(0, 0), (0, 1), (1, 0), (2, 1)] {
        let mut witness = case.witness();
        witness.projections[kind] = witness.projections[from].clone();
        if kind == from {
            witness.projections[kind].rotate_left(4);
        }
        case.after_projections(&mut witness);
        caught_by(MATRICES, || case.forged(&witness));
    }
}

/// Deviations of another r: the omitted residual, the omitted heads and the omitted bias among them.
#[test]
fn deviations_are_those_of_the_residual() {
    let case = small();
    for at in 0..case.places * case.weights.shape.width {
        let mut witness = case.witness();
        let (place, j) = (at / case.weights.shape.width, at % case.weights.shape.width);
        let a = &mut witness.norm.deviations[place];
        a[j] += 1;
        witness.norm.variances[place] = variance(a);
        case.after_deviations(&mut witness);
        if at == 0 {
            caught_by(MATRICES, || case.forged(&witness));
        }
        assert!(!case.forged(&witness), "{at}");
    }
    for place in 0..case.places {
        let mut witness = case.witness();
        witness.norm.variances[place] += 1;
        case.after_deviations(&mut witness);
        caught_by("product: deviation", || case.forged(&witness));
        let mut witness = case.witness();
        let root = (witness.norm.normalisers[place][0] + 1) as u128;
        let target = target(case.weights.shape.width);
        witness.norm.normalisers[place] = slacks(target, root, witness.norm.variances[place]);
        witness.norm.normalise(&case.weights.norm);
        witness.norm.divide(&case.weights.norm);
        caught_by(LOOKUP, || case.forged(&witness));
    }
    for part in 0..3 {
        let right = case.witness();
        let mut witness = right.clone();
        let mut integers = case.integers.clone();
        match part {
            0 => witness.x.fill(0),
            1 => witness.projections[3].fill(0),
            _ => integers.biases[3].fill(0),
        }
        case.after_residual(&mut witness, &integers.weights().unwrap());
        (witness.x, witness.projections[3]) = (right.x.clone(), right.projections[3].clone());
        assert!(witness.norm.y != right.norm.y, "{part}");
        caught_by(MATRICES, || case.forged(&witness));
    }
}

/// The witness of the same places under other weights or scales, for the statement of the right ones.
#[test]
fn weights_and_scales_are_the_statements() {
    let case = small();
    for part in 0..10 {
        let mut other = case.integers.clone();
        other.part(part)[1] += 300;
        let witness = Witness::new(&other.weights().unwrap(), &case.marks, &case.x).unwrap();
        let claim = if part < 8 {
            MATRICES
        } else {
            "constraint: roots"
        };
        caught_by(claim, || case.forged(&witness));
    }
    let mut exp = case.integers.clone();
    exp.exp[1..].iter_mut().for_each(|e| *e /= 2);
    let witness = Witness::new(&exp.weights().unwrap(), &case.marks, &case.x).unwrap();
    caught_by(LOOKUP, || case.forged(&witness));
    let right = case.weights.shape;
    for scaled in [
        Shape { q: 6, ..right },
        Shape { q: 8, ..right },
        Shape { v: 7, ..right },
        Shape { o: 7, ..right },
        Shape { x: 7, ..right },
        Shape { heads: 1, ..right },
        Shape { heads: 4, ..right },
    ] {
        let other = Integers {
            shape: scaled,
            ..case.integers.clone()
        };
        let other = other.weights().unwrap();
        let other = Witness::new(&other, &case.marks, &case.x).unwrap();
        // A witness with other heads has columns of other lengths.
        if scaled.heads == right.heads {
            assert!(!case.forged(&other), "{scaled:?}");
        }
        // The LayerNorm under the other scales, with the right values up to it.
        let mut witness = case.witness();
        assert!(
            other.norm.deviations != witness.norm.deviations,
            "{scaled:?}"
        );
        witness.norm = other.norm.clone();
        assert!(!case.forged(&witness), "{scaled:?}");
    }
}

/// Outputs that are the inputs, another place's outputs, and nothing.
#[test]
fn outputs_are_the_blocks() {
    let case = small();
    let right = case.witness();
    let mut swapped = right.norm.y.clone();
    swapped.rotate_left(case.weights.shape.width);
    for y in [right.x.clone(), swapped, vec![0; right.norm.y.len()]] {
        let mut witness = right.clone();
        witness.norm.y = y;
        witness.norm.divide(&case.weights.norm);
        assert!(!case.forged(&witness));
        cut(&mut witness.norm.rests, case.weights.shape.norm_shift());
        caught_by("constraint: roots", || case.forged(&witness));
    }
}

/// Inputs, projections and results of heads beyond 12 bits, with values that follow from them by the page's equations.
#[test]
fn activations_are_in_range() {
    let case = small();
    let mut witness = case.witness();
    witness.x[0] = ACTIVATION_LIMIT;
    (0..3).for_each(|kind| witness.project(&case.weights, kind));
    case.after_projections(&mut witness);
    caught_by(LOOKUP, || case.forged(&witness));
    for kind in 0..3 {
        let mut integers = case.integers.clone();
        integers.biases[kind][0] = i16::MAX;
        let weights = integers.weights().unwrap();
        // 2^15 at 12 fraction bits is 8, which is beyond 11 bits at 9 fraction bits and more.
        let wider = Integers {
            shape: Shape {
                q: 9,
                v: 9,
                ..weights.shape
            },
            ..integers
        };
        let rows: Vec<i16> = case.x.iter().map(|v| *v as i16).collect();
        let weights = wider.weights().unwrap();
        assert!(matches!(
            forward(&weights, 3, &rows),
            Err(Error::Unsatisfied(_))
        ));
        let mut witness = case.witness();
        (0..3).for_each(|kind| witness.project(&weights, kind));
        let beyond = |v: &i64| !(-ACTIVATION_LIMIT..ACTIVATION_LIMIT).contains(v);
        assert!(witness.projections[kind].iter().any(beyond));
        let commit = || commit_values(&weights, 4, &witness.x);
        let used = commit_used(&weights, 4, 3).unwrap();
        let other = Case {
            inputs: commit(),
            outputs: commit(),
            used,
            x: witness.x.clone(),
            marks: witness.marks.clone(),
            integers: wider,
            weights,
            places: 4,
        };
        other.after_projections(&mut witness);
        caught_by(LOOKUP, || other.forged(&witness));
    }
}
