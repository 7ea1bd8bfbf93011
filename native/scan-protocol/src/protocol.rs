//! The protocol's name, and how large what it proves may be: `docs/scan/transcript.md`.
//!
//! A policy names the protocol that its proofs are made under. The name is a digest of what the two parties have to agree
//! on: the rules by which values are laid out, and what every kind of run says, label by label and length by length. So a
//! release that says something else has another name, and a verifier of one release does not call the other's proofs false.
use sha2::{Digest, Sha256};

use crate::{
    coalition, coins, drawn, embed, group, index, listing, lookup, poseidon, query, together,
};

/// Of the files in `vectors/` that hold this protocol's trace and proofs.
pub const VERSION: u64 = 3;

/// SHA-256 of `vectors/v3/scan/trace.json`: the labels and lengths of every kind of run, at several sizes. A test makes that
/// file again.
pub const TRACE: &str = "e5a89c2a2620afc1370567689fa39c8973e686c71612d1fc14155776ae01e335";

/// The same of the files of the runs that not every policy asks for, each a protocol with a name of its own.
pub const COINS_TRACE: &str = "7bde1cb52528438b7eb79d846ac1ebc724558262c5583183e29d3fe83e9bf52d";
pub const SAMPLED_TRACE: &str = "c692eca46d66dadc2e04d4796b8406944f6d57ab09c4587e050afeb61bf86fde";
pub const LISTING_TRACE: &str = "9d848498c3b461430f5ce905e69c8e9a427e270e098576505ef2a8d0db43ac34";
pub const TOGETHER_TRACE: &str = "435df576098c9e665ff813069234bbabd09b8d97b7ca6f437ab67c619bde1898";

/// The largest value of every public parameter. The errors in `docs/scan/README.md` are of runs of these sizes.
pub fn limits() -> [(&'static str, u64); 13] {
    [
        ("capacity", index::MAX_CAPACITY as u64),
        ("dimension", index::MAX_DIMENSION as u64),
        ("gains", ragaudit_relation::dgs::MAX_GAINS as u64),
        ("lattice", ragaudit_relation::window::MAX_LATTICE as u64),
        ("listed", query::MAX_LISTED as u64),
        ("tokens", embed::MAX_TOKENS as u64),
        ("vocabulary", embed::MAX_VOCABULARY as u64),
        ("norm_factor", embed::MAX_NORM_FACTOR),
        ("coalition_records", coalition::MAX_RECORDS as u64),
        ("coalition_dimension", coalition::MAX_COMPONENTS as u64),
        ("coalition_classes", coalition::MAX_CLASSES as u64),
        ("coalition_labels", coalition::MAX_LABELS as u64),
        ("coalition_denominator", coalition::MAX_DENOMINATOR),
    ]
}

type Rules = Vec<(&'static str, Vec<u64>)>;

/// What decides where a value stands, by module.
fn rules() -> Rules {
    with_common(vec![
        ("noise", drawn::RULES.to_vec()),
        ("query", query::RULES.to_vec()),
        ("embed", embed::RULES.to_vec()),
        ("coalition", coalition::RULES.to_vec()),
        ("limits", limits().map(|(_, most)| most).to_vec()),
    ])
}

fn with_common(own: Rules) -> Rules {
    let mut rules = vec![
        ("group", vec![group::WIDTH as u64, group::ENCODED as u64]),
        ("index", index::rules()),
        (
            "poseidon",
            vec![poseidon::WORD_VARIABLES as u64, poseidon::DIGIT as u64],
        ),
        (
            "lookup",
            [lookup::DIGIT, lookup::TOP, lookup::BELOW]
                .map(|n| n as u64)
                .to_vec(),
        ),
    ];
    rules.extend(own);
    rules
}

fn rules_of_coins() -> Rules {
    with_common(vec![
        ("coins", drawn::RULES.to_vec()),
        ("limits", coins::LIMITS.to_vec()),
    ])
}

fn rules_of_sampled() -> Rules {
    with_common(vec![
        ("sampled", query::RULES.to_vec()),
        ("limits", query::LIMITS.to_vec()),
    ])
}

fn rules_of_listing() -> Rules {
    with_common(vec![
        ("listing", listing::RULES.to_vec()),
        ("limits", listing::LIMITS.to_vec()),
    ])
}

fn rules_of_together() -> Rules {
    with_common(vec![
        ("noise", drawn::RULES.to_vec()),
        ("query", query::RULES.to_vec()),
        ("queries", query::BATCH_RULES.to_vec()),
        ("together", together::rules()),
        ("limits", query::LIMITS.to_vec()),
    ])
}

/// What a policy names, beside the claims that it is about.
///
/// ```
/// use ragaudit_scan_protocol::protocol::{name, others};
///
/// assert!(others().iter().all(|(_, other)| *other != name()));
/// ```
pub fn name() -> [u8; 32] {
    name_of(VERSION, &rules(), TRACE)
}

/// Of coin certificates.
pub fn coins() -> [u8; 32] {
    name_of(VERSION, &rules_of_coins(), COINS_TRACE)
}

/// Of query proofs of tenants that are sampled, or have no noise.
pub fn sampled() -> [u8; 32] {
    name_of(VERSION, &rules_of_sampled(), SAMPLED_TRACE)
}

/// Of lists by randomised response.
pub fn listing() -> [u8; 32] {
    name_of(VERSION, &rules_of_listing(), LISTING_TRACE)
}

/// Of certificates and query proofs of several records.
pub fn of_several() -> [u8; 32] {
    name_of(VERSION, &rules_of_together(), TOGETHER_TRACE)
}

/// The names of the runs that not every policy asks for.
pub fn others() -> [(&'static str, [u8; 32]); 4] {
    [
        ("coins", coins()),
        ("sampled", sampled()),
        ("listing", listing()),
        ("together", of_several()),
    ]
}

fn name_of(version: u64, rules: &[(&str, Vec<u64>)], trace: &str) -> [u8; 32] {
    let mut hash = Sha256::new().chain_update(b"rag-audit/scan/protocol");
    hash.update(version.to_be_bytes());
    hash.update((rules.len() as u64).to_be_bytes());
    for (module, values) in rules {
        hash.update((module.len() as u64).to_be_bytes());
        hash.update(module);
        hash.update((values.len() as u64).to_be_bytes());
        values.iter().for_each(|v| hash.update(v.to_be_bytes()));
    }
    hash.chain_update(trace).finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What makes a name: its rules, and its trace.
    type Made = (fn() -> Rules, &'static str);

    #[test]
    fn names_move_with_everything_that_they_are_made_of() {
        let mut all = vec![name()];
        all.extend(others().map(|(_, name)| name));
        let made: [Made; 5] = [
            (rules, TRACE),
            (rules_of_coins, COINS_TRACE),
            (rules_of_sampled, SAMPLED_TRACE),
            (rules_of_listing, LISTING_TRACE),
            (rules_of_together, TOGETHER_TRACE),
        ];
        assert_eq!(made.len(), all.len());
        for (base, (rules, trace)) in all.iter().zip(made) {
            assert_eq!(*base, name_of(VERSION, &rules(), trace));
            assert_ne!(*base, name_of(VERSION + 1, &rules(), trace));
            assert_ne!(*base, name_of(VERSION, &rules(), &trace[1..]));
            for module in 0..rules().len() {
                for value in 0..rules()[module].1.len() {
                    let mut other = rules();
                    other[module].1[value] += 1;
                    assert_ne!(*base, name_of(VERSION, &other, trace));
                }
                let mut other = rules();
                other[module].1.pop();
                assert_ne!(*base, name_of(VERSION, &other, trace));
            }
        }
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 5);
    }
}
