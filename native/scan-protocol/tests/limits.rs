//! A verifier refuses public values outside their limits by name, before it reads a byte.
use ark_ff::Field;
use ragaudit_scan_protocol::bernoulli::{Bernoulli, BernoulliStatement};
use ragaudit_scan_protocol::claims::Column;
use ragaudit_scan_protocol::coalition::statement::{Blocks, CoalitionStatement};
use ragaudit_scan_protocol::drawn::Slot;
use ragaudit_scan_protocol::embed::EmbedStatement;
use ragaudit_scan_protocol::engine::Plain;
use ragaudit_scan_protocol::group::{bases, encode_points, Fr, G1Affine};
use ragaudit_scan_protocol::index::{IndexCommitment, Layout, MAX_CAPACITY, MAX_DIMENSION};
use ragaudit_scan_protocol::query::QueryStatement;
use ragaudit_scan_protocol::Result;

const CONTEXT: [u8; 32] = [7; 32];

fn refused<T>(actual: Result<T>, name: &str) {
    let reason = actual.err().map(|reason| reason.to_string());
    let of_name = |reason: &String| reason.starts_with(&format!("{name}: "));
    assert!(reason.as_ref().is_some_and(of_name), "{name}: {reason:?}");
}

type Change<'c, S> = &'c dyn Fn(&mut S);

/// Changes one value of a statement at a time; the unchanged statement is within all limits.
fn each_refused<S: Clone, T>(
    good: &S,
    check: impl Fn(&S) -> Result<T>,
    changes: &[(&str, Change<S>)],
) {
    assert!(check(good).is_ok());
    for (name, change) in changes {
        let mut other = good.clone();
        change(&mut other);
        refused(check(&other), name);
    }
}

fn index(dimension: usize, capacity: usize) -> IndexCommitment {
    IndexCommitment {
        layout: Layout::new(capacity).unwrap(),
        dimension,
        points: Vec::new(),
    }
}

fn rows(count: usize) -> Vec<G1Affine> {
    vec![bases::<Plain>().u; count]
}

#[test]
fn an_index_has_positions_and_its_own_length() {
    refused(Layout::new(0), "capacity");
    refused(Layout::new(MAX_CAPACITY + 1), "capacity");
    let bytes = encode_points(&rows(3));
    let decode = |bytes: &[u8]| IndexCommitment::decode::<Plain>(bytes, 3, 12);
    assert!(decode(&bytes).is_ok());
    refused(decode(&bytes[32..]), "index");
    refused(decode(&[&bytes[..], &bytes[..32]].concat()), "index");
}

#[test]
fn a_column_is_opened_in_the_rows_of_its_layout() {
    let layout = Layout::new(12).unwrap();
    let opened = |points: usize, values: usize, blindings: usize| {
        let blindings = vec![Fr::ONE; blindings];
        Column::opened("kept", rows(points), vec![0; values], blindings, layout)
    };
    assert!(opened(1, 12, 1).is_ok());
    for (points, values, blindings) in [(2, 12, 2), (1, 12, 2), (1, 11, 1), (0, 12, 0)] {
        refused(opened(points, values, blindings), "kept");
    }
}

#[test]
fn bernoulli_bits_have_a_bound_of_a_draw() {
    let [c_seed, beacon, slot] = [Fr::ONE; 3];
    let slot = Slot {
        c_seed,
        beacon,
        slot,
    };
    let bound = (1 << 40) - 1;
    let good = BernoulliStatement::single(CONTEXT, slot, 12, Bernoulli { bound });
    each_refused(
        &good,
        |s: &BernoulliStatement| s.shape().map(drop),
        &[
            ("capacity", &|s| s.capacity = 0),
            ("bound", &|s| s.distribution.bound = 0),
            ("bound", &|s| s.distribution.bound = 1 << 40),
        ],
    );
}

#[test]
fn tokens_are_of_a_table_within_its_limits() {
    let tables = [(3, 1), (3, (1 << 15) + 2), (0, 9), (MAX_DIMENSION + 1, 9)];
    let [none, many, flat, wide] = tables.map(|(dimension, rows)| index(dimension, rows));
    let table = index(3, (1 << 15) + 1);
    let good = EmbedStatement {
        context: Fr::ONE,
        table: &table,
        tokens: 208,
        norm_factor: 1 << 20,
        hq: Fr::ONE,
        cq: Fr::ONE,
    };
    each_refused(
        &good,
        |s: &EmbedStatement| s.check().map(drop),
        &[
            ("tokens", &|s| s.tokens = 0),
            ("tokens", &|s| s.tokens = 209),
            ("vocabulary", &|s| s.table = &none),
            ("vocabulary", &|s| s.table = &many),
            ("norm factor", &|s| s.norm_factor = 0),
            ("norm factor", &|s| s.norm_factor = (1 << 20) + 1),
            ("dimension", &|s| s.table = &flat),
            ("dimension", &|s| s.table = &wide),
        ],
    );
}

#[test]
fn answers_are_of_a_policy_within_its_limits() {
    let (own, flat) = (index(3, 12), index(0, 12));
    let (one, two) = (rows(1), rows(2));
    let good = QueryStatement {
        context: CONTEXT,
        index: &own,
        noise: vec![&one],
        sample: Some(&one),
        gains: vec![1, 8],
        records: vec![[Fr::ONE; 2]],
        listed: 12,
        lo: 5,
        hi: 60,
        lattice: 32,
    };
    each_refused(
        &good,
        |s: &QueryStatement| s.check().map(drop),
        &[
            ("dimension", &|s| s.index = &flat),
            ("gains[0]", &|s| s.gains = vec![2]),
            ("gains[1]", &|s| s.gains = vec![1, 9]),
            ("listed positions", &|s| s.listed = 0),
            ("listed positions", &|s| s.listed = 13),
            ("records together", &|s| s.records.clear()),
            ("records together", &|s| s.records = vec![[Fr::ONE; 2]; 2]),
            ("noise", &|s| s.noise.clear()),
            ("noise", &|s| s.noise = vec![&two]),
            ("noise", &|s| s.gains.clear()),
            ("kept", &|s| s.sample = Some(&[])),
            ("kept", &|s| s.sample = Some(&two)),
        ],
    );
}

#[test]
fn batches_of_answers_are_of_a_policy_within_its_limits() {
    let (own, flat) = (index(3, 12), index(0, 12));
    let one = rows(1);
    let good = QueryStatement {
        context: CONTEXT,
        index: &own,
        noise: vec![&one; 2],
        sample: None,
        gains: vec![1, 8],
        records: vec![[Fr::ONE; 2]; 2],
        listed: 12,
        lo: 5,
        hi: 60,
        lattice: 32,
    };
    each_refused(
        &good,
        |s: &QueryStatement| s.check().map(drop),
        &[
            ("dimension", &|s| s.index = &flat),
            ("gains[0]", &|s| s.gains = vec![2]),
            ("listed positions", &|s| s.listed = 13),
            ("records together", &|s| s.records.clear()),
            ("records together", &|s| s.records = vec![[Fr::ONE; 2]; 65]),
            ("noise", &|s| s.noise.clear()),
            ("noise", &|s| s.noise[1] = &[]),
            ("noise", &|s| s.records.truncate(1)),
            ("noise", &|s| s.gains.clear()),
        ],
    );
}

#[test]
fn coalitions_are_of_a_window_within_its_limits() {
    let good = CoalitionStatement {
        context: CONTEXT,
        dimension: 882,
        cq: vec![Fr::ONE; 2],
        accounts: vec![0, 1],
        tenants: vec![0, 0],
        first: vec![0, 1],
        theta: [999, 1000],
        largest: [2, 1],
        class_variables: 1,
        blocks: Blocks::SHIPPED,
    };
    let of = |s: &mut CoalitionStatement, records: usize, accounts: usize| {
        s.cq = vec![Fr::ONE; records];
        s.accounts = vec![0; records];
        s.first = (0..records).collect();
        s.tenants = (0..accounts).collect();
        s.class_variables = 9;
    };
    each_refused(
        &good,
        |s: &CoalitionStatement| s.shape().map(drop),
        &[
            ("records", &|s| of(s, 0, 0)),
            ("records", &|s| of(s, 65_536, 2)),
            ("dimension", &|s| s.dimension = 0),
            ("dimension", &|s| s.dimension = 883),
            ("accounts", &|s| s.accounts = vec![0, 2]),
            ("accounts", &|s| s.tenants = vec![0; 3]),
            ("tenants", &|s| s.tenants = vec![0, 2]),
            ("first", &|s| s.first = vec![1, 1]),
            ("theta", &|s| s.theta = [0, 5]),
            ("theta", &|s| s.theta = [5, 5]),
            ("theta", &|s| s.theta = [4, 1001]),
            ("c", &|s| s.largest = [0, 1]),
            ("c", &|s| s.largest = [2, 3]),
            ("class variables", &|s| s.class_variables = 0),
            ("class variables", &|s| s.class_variables = 2),
            // 2^12 accounts, each with a tenant of its own.
            ("tenants", &|s| of(s, 4096, 4096)),
        ],
    );
}
