//! The soundness errors that `docs/scan/README.md` states, from every challenge of the largest runs.
use std::collections::BTreeMap;

use crate::answer::tests::batches;
use crate::malicious::{run, Log, Without};
use crate::{
    attention, bernoulli, coalition, document_table, embed, encoder, encoder_embed, encoder_input,
    encoder_output, feed_forward, noise, pooled_listing, query, row_names,
};

/// For how many values of one challenge, at most, a false claim becomes a true one; or how many transcripts, less one,
/// give the opening. `of` counts the run's messages and claims of a label or kind.
fn values(label: &str, of: &dyn Fn(&str) -> u64) -> u64 {
    const MAXIMUM_ENTRIES: u64 = 4;
    // One a layer. A sum of as many 1s as there are leaves does not wrap around.
    let layers = of("lookup children");
    assert!(layers <= 31, "{layers}");
    // One per record.
    let records = of("query").max(of("slot")).max(1);
    let leaves = 1 << layers;
    match label {
        // The numerator of the sum of fractions: so many factors, of that degree in beta.
        "lookup alpha" => leaves,
        "lookup beta" => leaves * MAXIMUM_ENTRIES,
        // Powers of one challenge.
        "column claims" => of("column claim:").max(2),
        "column groups" => of("column claim:"),
        "constraints" => of("constraint:"),
        "equation weight" => 9 + of("link:"),
        // Of a record at most cq, htopk, and the two calls of a key.
        // Of a query of the integer encoder hq and cq.
        "hash outputs" => of("running hash") + 1 + 4 * records + 2 * of("constraint: first place"),
        "linked records" => records,
        "hash functional" => 16,
        "numbers" => 33,
        "elements" => 16,
        "blocks" => 63,
        // Rounds, with the coordinates of eq before them.
        "hash layer" => 15,
        "lookup layer" => 14,
        "selection" | "roots" | "products of heads" => 3,
        // All equations of a block at one point, with the powers of its blocks.
        "feed-forward blocks" => 2 * 4095,
        "attention blocks" => 7 * 31,
        "input blocks" => 1023,
        // Powers of as many heads, or a round.
        "normalisers" => 32,
        "matrices" => 4,
        "choice"
        | "coins below the bound"
        | "products"
        | "squares"
        | "norms"
        | "norms of classes"
        | "earlier records"
        | "later records"
        | "thresholds of pairs"
        | "deviations"
        | "maximum"
        | "marked scores"
        | "weighted sums"
        | "used rows"
        | "lower digits"
        | "upper digits"
        | "constraint round" => 2,
        // Its square too, for sampled tenants.
        "selected rows" => 2,
        // Linear.
        "lookup children" | "lookup leaves" | "noise" | "coins" | "fresh coins"
        | "unlisted rows" | "opened rows" | "words" | "upper parts" | "components"
        | "packed vector" | "vectors" | "thresholds" | "counts" | "bits" | "marks" | "digits" => 1,
        // Openings.
        "fold" => 2,
        "message opening" | "product" | "column opening" | "link" | "inner product" => 1,
        _ => panic!("no error is stated for the challenge {label}"),
    }
}

/// The sum of the values of a run's challenges, and the largest.
fn errors(log: &Log) -> [u64; 2] {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for name in log.messages.iter().chain(&log.claims) {
        *counts.entry(name.as_str()).or_default() += 1;
    }
    let mut challenges: BTreeMap<&str, u64> = BTreeMap::new();
    for label in &log.challenges {
        *challenges.entry(label.as_str()).or_default() += 1;
    }
    // Where a label is a message's and a challenge's, the challenges; a kind of claim with all its names.
    let of = |name: &str| match challenges.get(name) {
        Some(count) => *count,
        None => counts
            .iter()
            .filter(|(n, _)| **n == name || name.ends_with(':') && n.starts_with(name))
            .map(|(_, count)| count)
            .sum(),
    };
    let each = log.challenges.iter().map(|label| values(label, &of));
    let maximum = each.clone().max().unwrap_or(0);
    [each.sum(), maximum]
}

/// The error below r / 2^253, as a power of two.
fn bits(values: u64) -> u32 {
    253 - (64 - values.leading_zeros())
}

/// Parameters of noise, query and A1 at the end of their range and one beyond it, each refused by its name. The coalition
/// module has the tests of its own parameters.
#[test]
fn every_parameter_ends_where_the_errors_do() {
    use crate::embed::{EmbedStatement, MAX_NORM_FACTOR, MAX_TOKENS, MAX_VOCABULARY};
    use crate::group::{vector_generators, Fr};
    use crate::index::{IndexCommitment, Layout, MAX_CAPACITY, MAX_DIMENSION};
    use crate::query::{QueryStatement, MAX_LISTED};
    use ark_ff::Field;
    use ragaudit_field_simd::selection::MAX_LATTICE;

    let refused = |name: &str, actual: Result<(), crate::Error>| match actual {
        Err(crate::Error::Invalid { field, .. }) => assert_eq!(field, name),
        Err(crate::Error::Core(error)) => assert!(error.to_string().starts_with(name), "{error}"),
        other => panic!("{name}: {other:?}"),
    };
    let layout = |capacity: usize| Layout::new(capacity).map(|_| ());
    assert_eq!(layout(MAX_CAPACITY), Ok(()));
    [0, MAX_CAPACITY + 1, usize::MAX]
        .into_iter()
        .for_each(|bad| refused("capacity", layout(bad)));

    let point = vector_generators(1)[0];
    let index = |capacity: usize, dimension: usize| {
        let layout = Layout::new(capacity).unwrap();
        let points = vec![point; dimension * layout.rows()];
        IndexCommitment {
            layout,
            dimension,
            points,
        }
    };
    let query_of =
        |rows: [usize; 2], [dimension, listed]: [usize; 2], lattice: i64, gains: &[u32]| {
            let index = index(2 * MAX_LISTED, dimension);
            let [noise, sample] = rows.map(|rows| vec![point; rows]);
            let statement = QueryStatement {
                context: [0; 32],
                index: &index,
                noise: match rows[0] {
                    0 => vec![],
                    _ => vec![&noise],
                },
                sample: (!sample.is_empty()).then_some(&sample),
                gains: gains.to_vec(),
                records: vec![[Fr::ONE; 2]],
                listed,
                lo: 10,
                hi: 90,
                lattice,
            };
            match crate::kit::verify(&statement, &[]) {
                // The parameters were taken; there is no proof.
                Err(crate::Error::Malformed { at: 0, .. }) => Ok(()),
                other => other.map(|_| ()),
            }
        };
    let rows = Layout::new(2 * MAX_LISTED).unwrap().rows();
    let query = |dimension: usize, listed: usize, lattice: i64, gains: &[u32]| {
        query_of([rows, 0], [dimension, listed], lattice, gains)
    };
    let maximum = noise::tests::MAXIMUM_GAINS;
    let (d, k, r) = (MAX_DIMENSION, MAX_LISTED, MAX_LATTICE);
    assert_eq!(query(d, k, r, &maximum), Ok(()));
    refused("dimension", query(d + 1, k, r, &maximum));
    refused("dimension", query(0, k, r, &maximum));
    refused("listed positions", query(1, k + 1, r, &maximum));
    refused("listed positions", query(1, 0, r, &maximum));
    refused("lattice", query(1, 1, 2 * r, &maximum));
    // Noise exists exactly if there are gains; sample rows are complete or absent.
    let only = |rows: [usize; 2], gains: &[u32]| query_of(rows, [1, 1], 1, gains);
    assert_eq!(only([0, 0], &[]), Ok(()));
    assert_eq!(only([0, rows], &[]), Ok(()));
    assert_eq!(only([rows, rows], &maximum), Ok(()));
    refused("noise", only([rows, 0], &[]));
    refused("noise", only([0, 0], &[1]));
    refused("noise", only([rows + 1, 0], &[1]));
    refused("kept", only([0, rows + 1], &[]));
    refused("kept", only([rows, rows + 1], &[1]));
    refused("gains", query(1, 1, 1, &[1; 7]));
    let mut above = maximum;
    above[5] += 1;
    refused("gains[5]", query(1, 1, 1, &above));

    let embed = |vocabulary: usize, dimension: usize, tokens: usize, norm_factor: u64| {
        let table = index(vocabulary + 1, dimension);
        let statement = EmbedStatement {
            context: Fr::ONE,
            table: &table,
            tokens,
            norm_factor,
            hq: Fr::ONE,
            cq: Fr::ONE,
        };
        match crate::kit::verify(&statement, &[]) {
            Err(crate::Error::Malformed { at: 0, .. }) => Ok(()),
            other => other.map(|_| ()),
        }
    };
    let (v, t, a) = (MAX_VOCABULARY, MAX_TOKENS, MAX_NORM_FACTOR);
    assert_eq!(embed(v, d, t, a), Ok(()));
    refused("vocabulary", embed(v + 1, 1, t, a));
    refused("vocabulary", embed(0, 1, t, a));
    refused("dimension", embed(9, d + 1, t, a));
    refused("tokens", embed(9, 1, t + 1, a));
    refused("tokens", embed(9, 1, 0, a));
    refused("norm factor", embed(9, 1, t, a + 1));
    refused("norm factor", embed(9, 1, t, 0));
}

#[test]
#[ignore = "a proof of the largest size for each run (a minute): make test-full"]
fn errors_are_those_of_the_page() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/scan/README.md");
    let page = std::fs::read_to_string(path).unwrap();
    let runs: [(&str, fn()); 20] = [
        ("noise proof", noise::tests::largest),
        ("query proof", query::tests::largest),
        ("A1", embed::tests::largest),
        ("coalition, records", coalition::tests::largest_records),
        ("coalition, pairs", coalition::tests::largest_pairs),
        ("sampling proof", bernoulli::tests::largest),
        ("query proof, sampled", query::tests::largest_sampled),
        ("noise proof of several", batches::largest_slots),
        ("query proof of several", batches::largest),
        ("document table", document_table::tests::largest),
        (
            "pooled document table",
            document_table::tests::largest_pooled,
        ),
        ("pooled listing", pooled_listing::tests::largest),
        ("row names", row_names::tests::largest),
        ("feed-forward block", feed_forward::tests::largest),
        ("attention block", attention::tests::largest),
        ("encoder", encoder::tests::largest),
        ("encoder input", encoder_input::tests::largest),
        ("encoder output", encoder_output::tests::largest),
        ("A1, encoder", encoder_embed::tests::largest),
        (
            "A1, encoder, of several",
            encoder_embed::tests::several::largest,
        ),
    ];
    let mut missing = Vec::new();
    let mut sums = Vec::new();
    for (name, largest) in runs {
        let [sum, maximum] = errors(&run(Without::Nothing, largest).1);
        sums.push(sum);
        missing.push(format!(
            "| {name} | 2^-{} | 2^-{} |",
            bits(maximum),
            bits(sum)
        ));
    }
    let pair_runs = coalition::tests::max_pair_runs();
    // Per record the largest query proof, and in addition to noise the largest proof of Bernoulli bits.
    let query = sums[1].max(sums[6]).max(sums[11]);
    let record = sums[0] + query + sums[2] + sums[5].max(sums[9]).max(sums[10]);
    let window = 1_000_000 * record + sums[3] + pair_runs * sums[4];
    missing.push(format!("| **window** | | **2^-{}** |", bits(window)));
    missing.retain(|line| !page.contains(line));
    assert!(
        missing.is_empty(),
        "not on the page:\n{}",
        missing.join("\n")
    );
}
