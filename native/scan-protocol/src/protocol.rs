//! The digest that names the protocol, and the limits of the public parameters: `docs/scan/transcript.md`.
//!
//! A policy names the protocol of its proofs. The name is a digest of everything that the two parties must agree on: the rules
//! that determine the positions of values, and the messages of every kind of run, with label and length. A release with other
//! messages has another name, so a verifier of one release does not call the proofs of another release false.
use sha2::{Digest, Sha256};

use crate::{
    batch_size, bernoulli, coalition, document_table, drawn, embed, encoder_embed, group, index,
    lookup, pooled_listing, poseidon, query,
};

/// The version in the path of the vectors with this protocol's trace and proofs.
pub const VERSION: u64 = 1;

/// SHA-256 of `vectors/v1/scan/trace.json`: the labels and lengths of every kind of run, at several sizes. A test reproduces
/// that file.
pub const TRACE: &str = "2e004863aaf02b57d7f82afc4d075feb02aeb979fd841f635b7e4525dd09b0a2";

/// SHA-256 of `vectors/v1/scan/pooled-listing.json`: the labels and lengths of the runs of pooled listing, and a proof. A test
/// reproduces that file.
pub const POOLED_TRACE: &str = "793e0cbf3169bd714190a0703f42b75e4e9f47d823a99e22d2f90457cccf0662";

/// SHA-256 of `vectors/v1/scan/encoder-embed.json`: the labels and lengths of the run of the integer encoder, and a proof. A test
/// reproduces that file.
pub const ENCODER_TRACE: &str = "b581b7e132007324c54fbda120409a9cd167322bf5b74c42bdc19454ed1c49fc";

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

/// The constants that determine the positions of values in a proof, by module.
fn rules() -> Rules {
    vec![
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
        ("drawn", drawn::RULES.to_vec()),
        ("document table", document_table::RULES.to_vec()),
        ("query", query::RULES.to_vec()),
        ("together", batch_size::rules()),
        ("embed", embed::RULES.to_vec()),
        ("coalition", coalition::RULES.to_vec()),
        ("limits", limits().map(|(_, maximum)| maximum).to_vec()),
        ("coin limits", bernoulli::LIMITS.to_vec()),
    ]
}

/// The digest that names the protocol. A policy names it together with the claims that it proves.
///
/// ```
/// use ragaudit_scan_protocol::protocol::name;
///
/// assert_eq!(name().len(), 32);
/// ```
pub fn name() -> [u8; 32] {
    name_of(VERSION, &rules(), TRACE)
}

/// The digest that names the protocol of pooled listing: of the name of the other protocols, whose parts it uses, and of
/// everything of its own.
pub fn pooled_name() -> [u8; 32] {
    further_name_of(POOLED, &name(), &pooled_listing::rules(), POOLED_TRACE)
}

/// The digest that names the protocol of A1 for the integer encoder, made as that of pooled listing.
pub fn encoder_name() -> [u8; 32] {
    further_name_of(ENCODER, &name(), &encoder_embed::rules(), ENCODER_TRACE)
}

const POOLED: &[u8] = b"rag-audit/scan/pooled-protocol";
const ENCODER: &[u8] = b"rag-audit/scan/encoder-protocol";

fn further_name_of(domain: &[u8], name: &[u8; 32], rules: &[u64], trace: &str) -> [u8; 32] {
    let mut hash = Sha256::new().chain_update(domain);
    hash.update(name);
    hash.update((rules.len() as u64).to_be_bytes());
    rules.iter().for_each(|v| hash.update(v.to_be_bytes()));
    hash.chain_update(trace).finalize().into()
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

    #[test]
    fn further_names_depend_on_name_rules_and_trace() {
        let pooled = pooled_listing::rules().to_vec();
        let encoder = encoder_embed::rules().to_vec();
        for (base, domain, rules, trace) in [
            (pooled_name(), POOLED, pooled, POOLED_TRACE),
            (encoder_name(), ENCODER, encoder, ENCODER_TRACE),
        ] {
            let of =
                |name: &[u8; 32], rules: &[u64], trace| further_name_of(domain, name, rules, trace);
            assert_eq!(base, of(&name(), &rules, trace));
            assert_ne!(base, of(&[0; 32], &rules, trace));
            assert_ne!(base, of(&name(), &rules, &trace[1..]));
            for value in 0..rules.len() {
                let mut other = rules.clone();
                other[value] += 1;
                assert_ne!(base, of(&name(), &other, trace));
            }
        }
    }

    #[test]
    fn the_name_depends_on_version_rules_and_trace() {
        let base = name();
        assert_ne!(base, name_of(VERSION + 1, &rules(), TRACE));
        assert_ne!(base, name_of(VERSION, &rules(), &TRACE[1..]));
        for module in 0..rules().len() {
            for value in 0..rules()[module].1.len() {
                let mut other = rules();
                other[module].1[value] += 1;
                assert_ne!(base, name_of(VERSION, &other, TRACE));
            }
            let mut other = rules();
            other[module].1.pop();
            assert_ne!(base, name_of(VERSION, &other, TRACE));
        }
    }
}
