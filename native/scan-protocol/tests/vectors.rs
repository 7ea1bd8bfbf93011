//! Verifies the published proofs in `vectors/v1/scan` with the verifier's crate only: without prover, lanes or threads.
use std::path::PathBuf;
use std::sync::Arc;

use ragaudit_scan_protocol::answer::{self, Item, Parameters, Record, Slot};
use ragaudit_scan_protocol::batch::verify_all;
use ragaudit_scan_protocol::bernoulli::{Bernoulli, BernoulliStatement};
use ragaudit_scan_protocol::coalition::statement::{Blocks, CoalitionStatement};
use ragaudit_scan_protocol::coalition::verify_coalition;
use ragaudit_scan_protocol::document_table::{self, DocumentTableStatement, Previous, Table};
use ragaudit_scan_protocol::drawn;
use ragaudit_scan_protocol::embed::{verify_embed, EmbedStatement, OfTable};
use ragaudit_scan_protocol::engine::Plain;
use ragaudit_scan_protocol::group::{decode_points, decode_scalar, Fr};
use ragaudit_scan_protocol::index::IndexCommitment;
use ragaudit_scan_protocol::pooled_listing::{self, PooledListingStatement};
use ragaudit_scan_protocol::row_names::{self, RowNamesStatement};
use ragaudit_scan_protocol::verifier::Verifier;
use ragaudit_scan_protocol::Error;

/// A part of a file of vectors, starting at an object's name.
struct Part(String);

fn digits(text: &str) -> [u8; 32] {
    std::array::from_fn(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).expect("hexadecimal"))
}

impl Part {
    fn file(name: &str) -> Self {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../vectors/v1/scan");
        Self(std::fs::read_to_string(folder.join(name)).expect("published vectors"))
    }

    fn after(&self, name: &str) -> &str {
        let start = format!("\"{name}\": ");
        let at = self.0.find(&start).expect(name) + start.len();
        &self.0[at..]
    }

    fn object(&self, name: &str) -> Self {
        Self(self.after(name).to_owned())
    }

    fn text(&self, name: &str) -> &str {
        self.after(name).split('"').nth(1).expect(name)
    }

    fn number<T: std::str::FromStr>(&self, name: &str) -> T {
        let digits = self.after(name).split([',', '\n']).next().expect(name);
        digits.parse().ok().expect(name)
    }

    fn items(&self, name: &str) -> impl Iterator<Item = &str> {
        let inside = self.after(name).split(['[', ']']).nth(1).expect(name);
        inside.split(',').map(str::trim)
    }

    fn list<T: std::str::FromStr>(&self, name: &str) -> Vec<T> {
        let one = |x: &str| x.parse().ok().expect(name);
        self.items(name).map(one).collect()
    }

    fn hex(&self, name: &str) -> [u8; 32] {
        digits(self.text(name))
    }

    fn element(&self, name: &str) -> Fr {
        decode_scalar(&self.hex(name)).expect(name)
    }

    fn elements(&self, name: &str) -> Vec<Fr> {
        let one = |text: &str| decode_scalar(&digits(text.trim_matches('"'))).expect(name);
        self.items(name).map(one).collect()
    }

    /// Base64.
    fn bytes(&self, name: &str) -> Vec<u8> {
        let value = |c: u8| match c {
            b'A'..=b'Z' => c - b'A',
            b'a'..=b'z' => c - b'a' + 26,
            b'0'..=b'9' => c - b'0' + 52,
            b'+' => 62,
            _ => 63,
        };
        let (mut out, mut word, mut bits) = (Vec::new(), 0u32, 0);
        for c in self.text(name).trim_end_matches('=').bytes() {
            (word, bits) = (word << 6 | u32::from(value(c)), bits + 6);
            if bits >= 8 {
                bits -= 8;
                out.push((word >> bits) as u8);
                word &= (1 << bits) - 1;
            }
        }
        out
    }

    fn index(&self, name: &str, capacity: usize) -> Arc<IndexCommitment> {
        let (points, dimension) = (self.bytes(name), self.number("dimension"));
        let index = IndexCommitment::decode::<Plain>(&points, dimension, capacity).unwrap();
        assert_eq!(index.digest(), self.hex(&format!("{name}_digest")));
        Arc::new(index)
    }

    fn record(&self) -> Record {
        Record {
            slot: Slot {
                c_seed: self.element("c_seed"),
                beacon: self.element("beacon"),
                slot: self.element("slot"),
            },
            context: self.element("context"),
            cq: self.element("cq"),
            htopk: self.element("htopk"),
        }
    }
}

#[test]
fn a_published_answer_verifies_alone_and_in_a_batch() {
    let part = Part::file("proofs.json").object("answer");
    let index = part.index("index", part.number("capacity"));
    let parameters = Parameters {
        window: part.hex("window"),
        gains: part.list("gains"),
        listed: part.number("listed"),
        lo: part.number("lo"),
        hi: part.number("hi"),
        lattice: part.number("lattice"),
        sample: None,
    };
    let record = part.record();
    let noise_proof = part.object("certificate").bytes("proof");
    let proof = part.object("query_proof").bytes("proof");
    let parts = [&noise_proof[..], &proof];
    let item = |record| Item::single(record, parts);
    answer::verify::<Plain>(&index, &parameters, item(record)).unwrap();
    let mut other = record;
    other.context += Fr::from(1u8);
    let refused = answer::verify::<Plain>(&index, &parameters, item(other));
    assert_eq!(refused, Err(Error::Rejected));
    let all = |items: &[Item]| verify_all::<_, Plain>(&index, &parameters, items);
    assert_eq!(all(&[item(record)]), []);
    let named = all(&[item(record), item(other)]);
    assert_eq!(named, [(1, Error::Rejected)]);
}

#[test]
fn a_published_proof_of_tokens_verifies() {
    let part = Part::file("proofs.json").object("embed");
    let vocabulary: usize = part.number("vocabulary");
    let table = part.index("table", vocabulary + 1);
    let statement = EmbedStatement {
        context: part.element("context"),
        table: &table,
        tokens: part.number("tokens"),
        norm_factor: part.number("norm_factor"),
        hq: part.element("hq"),
        cq: part.element("cq"),
    };
    let proof = part.bytes("proof");
    verify_embed::<Verifier>(&statement, &proof).unwrap();
    let mut other = statement.clone();
    other.hq += Fr::from(1u8);
    let refused = verify_embed::<Verifier>(&other, &proof);
    assert_eq!(refused, Err(Error::Rejected));
    let items = [(other, &proof[..]), (statement, &proof[..])];
    let named = verify_all::<_, Plain>(&table, &OfTable, &items);
    assert_eq!(named, [(0, Error::Rejected)]);
}

#[test]
fn published_bernoulli_bits_verify() {
    let part = Part::file("proofs.json").object("coins");
    let slot = Slot {
        c_seed: part.element("c_seed"),
        beacon: part.element("beacon"),
        slot: part.element("slot"),
    };
    let bound = part.number("bound");
    let capacity = part.number("capacity");
    let statement =
        BernoulliStatement::single(part.hex("context"), slot, capacity, Bernoulli { bound });
    let proof = part.bytes("proof");
    drawn::verify::<Verifier, _>(&statement, &proof).unwrap();
    let mut other = statement.clone();
    other.distribution.bound += 1;
    let refused = drawn::verify::<Verifier, _>(&other, &proof).map(drop);
    assert_eq!(refused, Err(Error::Rejected));
}

#[test]
fn published_document_tables_verify() {
    for (file, listed) in [
        ("document-table.json", false),
        ("pooled-listing.json", true),
    ] {
        a_document_table_verifies(&Part::file(file).object("table"), listed);
    }
}

fn a_document_table_verifies(part: &Part, listed: bool) {
    // Each column has one row.
    let columns = |name: &str| {
        let points = decode_points::<Plain>(&part.bytes(name)).unwrap();
        points.into_iter().map(|point| vec![point])
    };
    let bound = part.number("bound");
    let statement = DocumentTableStatement {
        context: part.hex("context"),
        slot: Slot {
            c_seed: part.element("c_seed"),
            beacon: part.element("beacon"),
            slot: part.element("slot"),
        },
        coins: Bernoulli { bound },
        capacity: part.number("capacity"),
        rows: part.number("rows"),
        positions_per_row: part.number("positions_per_row"),
        fresh: part.number("fresh"),
        table: Table::named(&mut columns("table_points")),
        previous: Some(Previous::named(&mut columns("previous_points"))),
    };
    assert_eq!(
        statement.previous.as_ref().unwrap().listed.is_some(),
        listed
    );
    let proof = part.bytes("proof");
    let proven = document_table::verify::<Verifier>(&statement, &proof).unwrap();
    assert_eq!(proven.listed.is_some(), listed);
    let mut other = statement.clone();
    other.positions_per_row += 1;
    let refused = document_table::verify::<Verifier>(&other, &proof).map(drop);
    assert_eq!(refused, Err(Error::Rejected));
}

#[test]
fn published_names_of_rows_verify() {
    let part = Part::file("row-names.json").object("row_names");
    let points = decode_points::<Plain>(&part.bytes("table_points")).unwrap();
    let (capacity, rows) = (part.number("capacity"), part.number("rows"));
    let positions: Vec<usize> = part.list("opened");
    let statement = RowNamesStatement {
        context: part.hex("context"),
        capacity,
        rows,
        table: Table::split(&points, capacity, rows).unwrap(),
        opened: positions.into_iter().zip(part.elements("names")).collect(),
    };
    let proof = part.bytes("proof");
    assert_eq!(row_names::verify::<Verifier>(&statement, &proof), Ok(()));
    let mut other = statement.clone();
    other.opened[0].1 = other.opened[1].1;
    let refused = row_names::verify::<Verifier>(&other, &proof);
    assert_eq!(refused, Err(Error::Rejected));
}

#[test]
fn a_published_pooled_listing_verifies() {
    let part = Part::file("pooled-listing.json").object("records");
    let index = part.index("index", part.number("capacity"));
    let points = |name: &str| decode_points::<Plain>(&part.bytes(name)).unwrap();
    let [row, kept, before, after] =
        ["row_points", "kept_points", "before_points", "after_points"].map(points);
    let [c_seed, beacon, slot, cq, htopk] =
        ["c_seed", "beacon", "slot", "cq", "htopk"].map(|name| part.elements(name));
    let record = |k: usize| pooled_listing::Record {
        slot: Slot {
            c_seed: c_seed[k],
            beacon: beacon[k],
            slot: slot[k],
        },
        cq: cq[k],
        htopk: htopk[k],
        after: after[k * before.len()..][..before.len()].to_vec(),
    };
    let bound = part.number("bound");
    let statement = PooledListingStatement {
        context: part.hex("context"),
        index: &index,
        chance: Bernoulli { bound },
        rows: part.number("rows"),
        positions_per_row: part.number("positions_per_row"),
        row: &row,
        kept: &kept,
        before: &before,
        records: (0..cq.len()).map(record).collect(),
        threshold: part.number("threshold"),
        listed: part.number("listed"),
        lo: part.number("lo"),
        hi: part.number("hi"),
        lattice: part.number("lattice"),
    };
    let proof = part.bytes("proof");
    pooled_listing::verify::<Verifier>(&statement, &proof).unwrap();
    let mut other = statement.clone();
    other.records.swap(0, 1);
    let refused = pooled_listing::verify::<Verifier>(&other, &proof);
    assert_eq!(refused, Err(Error::Rejected));
}

#[test]
fn a_published_coalition_verifies() {
    let part = Part::file("proofs.json").object("coalition");
    let pair = |name: &str| part.list(name).try_into().expect("two numbers");
    let statement = CoalitionStatement {
        context: part.hex("context"),
        dimension: part.number("dimension"),
        cq: part.elements("cq"),
        accounts: part.list("accounts"),
        tenants: part.list("tenants"),
        first: part.list("first"),
        theta: pair("theta"),
        largest: pair("largest"),
        class_variables: part.number("room"),
        blocks: Blocks::SHIPPED,
    };
    let [records, pairs] = ["records", "pairs"].map(|name| part.object(name).bytes("proof"));
    verify_coalition::<Plain>(&statement, &records, &[&pairs]).unwrap();
    let mut other = statement.clone();
    other.largest[1] -= 1;
    let refused = verify_coalition::<Plain>(&other, &records, &[&pairs]);
    assert_eq!(refused, Err(Error::Rejected));
    let cut = verify_coalition::<Plain>(&statement, &records, &[&pairs[32..]]);
    assert!(matches!(cut, Err(Error::Malformed { .. })), "{cut:?}");
    let more = verify_coalition::<Plain>(&statement, &records, &[&pairs, &pairs]);
    assert!(matches!(more, Err(Error::Invalid { .. })), "{more:?}");
}
