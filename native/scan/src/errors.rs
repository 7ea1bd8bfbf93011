//! The soundness errors that `docs/scan/README.md` states, from every challenge of the largest runs.
use std::collections::BTreeMap;

use crate::cheat::{run, Said, Without};
use crate::{coalition, embed, noise, query};

/// For how many values of one challenge, at most, a false claim becomes a true one; or how many transcripts, less one,
/// give the opening. `of` counts the run's messages and claims of a label or kind.
fn values(label: &str, of: &dyn Fn(&str) -> u64) -> u64 {
    const MOST_ENTRIES: u64 = 4;
    let leaves = 1 << of("lookup children");
    match label {
        // The numerator of the sum of fractions: so many factors, of that degree in beta.
        "lookup alpha" => leaves,
        "lookup beta" => leaves * MOST_ENTRIES,
        // Powers of one challenge.
        "column claims" => of("column claim:").max(2),
        "column groups" => of("column claim:"),
        "constraints" => of("constraint:"),
        "equation weight" => 8 + of("link:"),
        "hash outputs" => of("running hash") + 3,
        "hash functional" => 16,
        "numbers" => 33,
        "elements" => 16,
        "blocks" => 63,
        // Rounds, with the coordinates of eq before them.
        "hash layer" => 6,
        "selection" => 3,
        "lookup layer"
        | "choice"
        | "products"
        | "squares"
        | "norms"
        | "norms of classes"
        | "earlier records"
        | "later records"
        | "thresholds of pairs"
        | "constraint round" => 2,
        // Linear.
        "lookup children" | "lookup leaves" | "noise" | "words" | "upper parts"
        | "selected rows" | "components" | "packed vector" | "thresholds" | "counts" | "bits" => 1,
        // Openings.
        "fold" => 2,
        "message opening" | "product" | "column opening" | "link" | "inner product" => 1,
        _ => panic!("no error is stated for the challenge {label}"),
    }
}

/// The sum of the values of a run's challenges, and the largest.
fn errors(said: &Said) -> [u64; 2] {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for name in said.messages.iter().chain(&said.claims) {
        *counts.entry(name.as_str()).or_default() += 1;
    }
    let mut challenges: BTreeMap<&str, u64> = BTreeMap::new();
    for label in &said.challenges {
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
    let each = said.challenges.iter().map(|label| values(label, &of));
    let most = each.clone().max().unwrap_or(0);
    [each.sum(), most]
}

/// The error below r / 2^253, as a power of two.
fn bits(values: u64) -> u32 {
    253 - (64 - values.leading_zeros())
}

#[test]
fn errors_are_those_of_the_page() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/scan/README.md");
    let page = std::fs::read_to_string(path).unwrap();
    let runs: [(&str, fn()); 5] = [
        ("noise certificate", noise::tests::largest),
        ("query proof", query::tests::largest),
        ("A1", embed::tests::largest),
        ("coalition, records", coalition::tests::largest_records),
        ("coalition, pairs", coalition::tests::largest_pairs),
    ];
    let mut missing = Vec::new();
    let mut sums = Vec::new();
    for (name, largest) in runs {
        let [sum, most] = errors(&run(Without::Nothing, largest).1);
        sums.push(sum);
        missing.push(format!("| {name} | 2^-{} | 2^-{} |", bits(most), bits(sum)));
    }
    let pair_runs = coalition::tests::most_pair_runs();
    let window = 1_000_000 * (sums[0] + sums[1] + sums[2]) + sums[3] + pair_runs * sums[4];
    missing.push(format!("| **window** | | **2^-{}** |", bits(window)));
    missing.retain(|line| !page.contains(line));
    assert!(
        missing.is_empty(),
        "not on the page:\n{}",
        missing.join("\n")
    );
}
