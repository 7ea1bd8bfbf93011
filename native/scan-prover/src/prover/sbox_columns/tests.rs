use super::*;
use crate::tests::residues;
use ragaudit_field_simd::lanes::tracked::Tracked;

#[test]
fn kernels_agree_with_the_field_within_their_bounds() {
    let t = residues(6 * TASK);
    let (pairs, rest) = t.split_at(2 * TASK);
    let (weights, rest) = rest.split_at(TASK);
    let (x, y) = rest.split_at(TASK);
    let r = t[1500];

    let mut expected = [Fr::ZERO; 6];
    for (pair, w) in pairs.chunks(2).zip(weights) {
        let (a, d) = (pair[0], pair[1] - pair[0]);
        for (k, sum) in expected.iter_mut().enumerate() {
            *sum += *w * a.pow([5 - k as u64]) * d.pow([k as u64]);
        }
    }
    assert_eq!(
        power_sums_lanes::<_, true>(Tracked, pairs, weights),
        expected
    );
    assert_eq!(power_sums::<true>(pairs, weights), expected);
    let short = power_sums::<true>(&pairs[..26], &weights[..13]);
    assert_eq!(
        power_sums_lanes::<_, true>(Portable, &pairs[..26], &weights[..13]),
        short
    );
    expected[0] = Fr::ZERO;
    assert_eq!(power_sums::<false>(pairs, weights), expected);

    let folded: Vec<Fr> = pairs.chunks(2).map(|p| p[0] + r * (p[1] - p[0])).collect();
    let mut out = vec![Fr::ZERO; TASK];
    fold_lanes(Tracked, &mut out, pairs, r);
    assert_eq!(out, folded);
    let mut out = vec![Fr::ZERO; TASK - 3];
    fold(&mut out, &pairs[..2 * TASK - 6], r);
    assert_eq!(out, folded[..TASK - 3]);

    let terms: Vec<(&[Fr], Fr)> = (0..WIDTH + 1)
        .map(|i| (&t[i..i + TASK], t[900 + i]))
        .collect();
    let sum = |i: usize| terms.iter().map(|(v, f)| v[i] * f).sum::<Fr>() + r + y[0] * fifth(x[i]);
    let expected: Vec<Fr> = (0..TASK).map(sum).collect();
    let mut out = vec![Fr::ZERO; TASK];
    combine_lanes(Tracked, &mut out, &terms, 0, r, x, y[0]);
    assert_eq!(out, expected);
    let table = |values: &'_ [Fr]| Table {
        values: Cow::Owned(values[..TASK - 3].to_vec()),
        rest: values[TASK - 1],
    };
    let tables: Vec<(Table, Fr)> = terms.iter().map(|(v, f)| (table(v), *f)).collect();
    let combined = combine(&tables, r, &table(x), y[0]);
    assert_eq!(combined.values[..], expected[..TASK - 3]);
    assert_eq!(combined.rest, expected[TASK - 1]);
}
