use super::*;
use crate::mle::eq_table;
use ark_ff::UniformRand;
use ragaudit_field_simd::lanes::tracked::Tracked;
use ragaudit_field_simd::lanes::Portable;

fn random(count: usize) -> Vec<Fr> {
    let mut rng = ark_std::test_rng();
    (0..count).map(|_| Fr::rand(&mut rng)).collect()
}

/// A layer of 3 blocks with ones and 2 others, of 16 nodes each.
fn stored() -> Layer {
    let mut p = random(5 * 32);
    let q = p.split_off(2 * 32);
    let q = [q, p.clone()].concat();
    Layer { p, q }
}

fn all_sums<L: Lanes<Fr>>(l: L) -> Vec<Fr> {
    let at = random(20);
    let mut apart = Apart::new(
        l,
        stored(),
        at[0],
        eq_table(&at[1..4]),
        at[4..9].to_vec(),
        4,
    );
    let mut out = Vec::new();
    for r in &at[10..14] {
        out.extend(apart.sums());
        apart.bind(*r);
    }
    out.extend(apart.nodes().concat());
    out
}

#[test]
fn layers_are_summed_within_bounds_on_all_lanes() {
    crate::prover::rounds::tests::agree(Cross, 2, 4);
    let expected = all_sums(Portable);
    assert_eq!(all_sums(Tracked), expected);
    assert_eq!(dispatch!(l => all_sums(l)), expected);
    // The first sum by the definition.
    let (Layer { p, q }, at) = (stored(), random(20));
    let (inner, outer) = (eq_table(&at[1..4]), &at[4..9]);
    let fraction = |x: usize| match x.checked_sub(q.len() - p.len()) {
        Some(y) => at[0] * p[y] + q[x],
        None => at[0] + q[x],
    };
    let term = |x: usize| {
        let (a, b) = (4 * x + 2, 4 * x + 3);
        let sum = fraction(a) * q[b] + fraction(b) * q[a];
        sum * inner[x % 8] * outer[x / 8]
    };
    let beside = (Fr::ONE - outer.iter().sum::<Fr>()).double();
    assert_eq!(expected[0], beside + (0..40).map(term).sum::<Fr>());
}

#[test]
fn fractions_are_joined_within_bounds_on_all_lanes() {
    let Layer { p, q } = stored();
    let q = &q[3 * 32..];
    let (p, q) = (&p[..38], &q[..38]);
    let join_on = |p: Option<&[Fr]>| {
        let of = |join: &dyn Fn(&mut [Fr], &mut [Fr])| {
            let (mut np, mut nq) = (vec![Fr::ZERO; 19], vec![Fr::ZERO; 19]);
            join(&mut np, &mut nq);
            [np, nq]
        };
        let expected = of(&|np, nq| join(Portable, p, q, np, nq));
        assert_eq!(of(&|np, nq| join(Tracked, p, q, np, nq)), expected);
        assert_eq!(
            of(&|np, nq| dispatch!(l => join(l, p, q, np, nq))),
            expected
        );
        let p = |x: usize| p.map_or(Fr::ONE, |p| p[x]);
        assert_eq!(expected[0][18], p(36) * q[37] + p(37) * q[36]);
        assert_eq!(expected[1][18], q[36] * q[37]);
    };
    join_on(None);
    join_on(Some(p));
}
