"""Windows of other kinds than one of noise under Groth16: in a row, sampled, with a coalition proof, by
scan."""

from __future__ import annotations

import base64
from dataclasses import fields, replace
from typing import Any

from rag_audit.proofs.statements.column import ColumnPublic
from rag_audit.proofs.statements.document_table import DocumentTablePublic
from tests.simulate.answers import Answerer
from tests.simulate.cases import Fault
from tests.simulate.windows import SAMPLED_REQUIRED

ZERO = "00" * 32
Value = dict[str, Any]


def kept(forge: Answerer, tenant: str) -> dict[str, Any]:
    """A tenant's kept entry."""
    return next(e for e in forge.entries if e["type"] == "sample" and e["tenant"] == tenant)


def sample_after_the_first_question(forge: Answerer) -> None:
    entry = kept(forge, "law")
    forge.entries.remove(entry)
    forge.insert(entry)


def sample_before_the_beacon(forge: Answerer) -> None:
    entry = kept(forge, "law")
    forge.entries.remove(entry)
    forge.insert(entry, 1)


def sample_twice(forge: Answerer) -> None:
    forge.insert(dict(kept(forge, "law")), 4)


def sample_of_nobody(forge: Answerer) -> None:
    forge.insert({**kept(forge, "law"), "tenant": "nobody"}, 4)


def sample_by_choice(forge: Answerer) -> None:
    kept(forge, "law")["commitment"] = "11" * 32


def sample_exchanged(forge: Answerer) -> None:
    one, other = kept(forge, "law"), kept(forge, "medicine")
    one["commitment"], other["commitment"] = other["commitment"], one["commitment"]


def sample_without_proof(forge: Answerer) -> None:
    del forge.samples["law"]


def another_root_before(forge: Answerer) -> None:
    forge.header["previous"]["root"] = ZERO


def another_count_before(forge: Answerer) -> None:
    forge.header["previous"]["abandoned"] = 1


def coalition_circuit(forge: Answerer) -> None:
    forge.policy["estimator"]["coalition_proof"]["circuit"] = ZERO


def no_coalition_key(value: Value, forge: Answerer) -> None:
    del value["verification_keys"][value["policy"]["estimator"]["coalition_proof"]["circuit"]]


def another_coalition_key(value: Value, forge: Answerer) -> None:
    key = value["verification_keys"][value["policy"]["estimator"]["coalition_proof"]["circuit"]]
    key["ic"][0] = key["ic"][1]


def no_coalition_proof(value: Value, forge: Answerer) -> None:
    value["coalition_proof"] = None


def another_coalition_proof(value: Value, forge: Answerer) -> None:
    """One that the closing record does not name."""
    one = value["coalition_proof"]["a"]
    value["coalition_proof"]["a"] = one[::-1]


def turned_byte(text: str, place: int = -1) -> str:
    """A proof of which one bit is another."""
    data = bytearray(base64.b64decode(text))
    data[place] ^= 1
    return base64.b64encode(bytes(data)).decode()


def law(value: Value) -> dict[str, Any]:
    """The proof of the scan tenant's record."""
    seq = next(e["seq"] for e in value["entries"] if e["type"] == "query" and e["tenant"] == "law")
    proof: dict[str, Any] = value["proofs"][str(seq)]["retrieve"]
    return proof


def scan_proof_changed(value: Value, forge: Answerer) -> None:
    law(value)["proof"] = turned_byte(law(value)["proof"])


def certificate_changed(value: Value, forge: Answerer) -> None:
    law(value)["noise_proof"] = turned_byte(law(value)["noise_proof"])


def other_points(value: Value, forge: Answerer) -> None:
    for key in value["verification_keys"].values():
        if key["system"] == "scan":
            data = base64.b64decode(key["points"])
            key["points"] = base64.b64encode(data[32:64] + data[:32] + data[64:]).decode()


def three_positions(column: ColumnPublic) -> ColumnPublic:
    """The statement with at most three positions of a document."""
    assert isinstance(column, DocumentTablePublic)
    return replace(column, positions_per_document=3)


def by_position(column: ColumnPublic) -> ColumnPublic:
    """The statement without the document table."""
    return ColumnPublic(**{f.name: getattr(column, f.name) for f in fields(ColumnPublic)})


def fewer_positions(forge: Answerer) -> None:
    """The policy promises that a document has at most two positions, and the proof is about at most three."""
    for tenant in forge.policy["tenants"]:
        tenant["documents"]["positions_per_document"] = 2
    forge.restated = three_positions


def sample_by_position(forge: Answerer) -> None:
    """The proof of the sample is about positions, with and without a row of the table."""
    forge.restated = by_position


CHAIN = [
    Fault("in-a-row", "nothing: the second window of its origin, with the first", previous=("honest",), base="in-a-row"),
    Fault("in-a-row-not-given", "nothing: the second window of its origin, of which the first is not handed in", base="in-a-row"),
    Fault("names-another-window-before", "the opening names another end of the window before it", another_root_before,
          proving=True, previous=("honest",), base="in-a-row"),
    Fault("counts-an-abandoned-window", "the opening counts an abandoned window that the one before it does not show",
          another_count_before, proving=True, require={"max_abandoned": 1}, previous=("honest",), base="in-a-row"),
    Fault("names-no-window-before", "a window before this one is handed in, and the opening names none",
          previous=("embedded",)),
    Fault("another-window-handed-in", "the window that is handed in is not the one that the opening names",
          previous=("embedded",), base="in-a-row"),
]  # fmt: skip
SAMPLES = [
    Fault("sampling", "nothing: tenants whose positions are sampled", require=SAMPLED_REQUIRED, base="sampling"),
    Fault("documents", "nothing: a tenant whose documents are sampled", require=SAMPLED_REQUIRED, base="documents"),
    Fault("noise-documents", "nothing: tenants with noise and a document table, whose figures are for documents",
          base="noise-documents"),
    Fault("noise-document-above-the-limit", "a document has more positions than the policy permits, under noise",
          fewer_positions, proving=True, base="noise-documents", decides="proof.sample.law"),
    Fault("noise-position-without-a-row", "under noise, positions without a row of the document table have scores",
          sample_by_position, proving=True, base="noise-documents", decides="proof.sample.law"),
    *(
        Fault(name, says, change, require=SAMPLED_REQUIRED, base="sampling")
        for name, says, change in (
            ("kept-after-the-first-question", "kept positions were fixed after the first question", sample_after_the_first_question),
            ("kept-before-the-beacon", "kept positions were fixed before the beacon was drawn", sample_before_the_beacon),
            ("kept-twice", "a tenant's kept positions were fixed twice", sample_twice),
            ("kept-of-nobody", "kept positions of a tenant that does not exist", sample_of_nobody),
            ("kept-by-choice", "the provider chose the kept positions, and proves the drawn ones", sample_by_choice),
            ("kept-exchanged", "two tenants' kept positions, each under the other's name", sample_exchanged),
            ("kept-without-proof", "nothing proves that coins drew the kept positions", sample_without_proof),
        )
    ),
    Fault("sampling-not-accepted", "a tenant samples, and the relying party accepts noise alone",
          require={**SAMPLED_REQUIRED, "mechanisms": ["noise"]}, base="sampling"),
    Fault("odds-too-high", "the odds of an unlisted document change by more than was asked",
          require={**SAMPLED_REQUIRED, "max_exclusion_factor": "3.3333"}, base="sampling"),
    Fault("keeps-too-few", "fewer positions are kept than was asked", require={**SAMPLED_REQUIRED, "min_keep": "0.71"},
          base="sampling"),
]  # fmt: skip
CERTIFIED = [
    Fault(
        "certified",
        "nothing: a window with a coalition proof",
        require={"coalition": "checked"},
        base="certified",
    ),
    Fault(
        "coalition-proved-smaller",
        "the closing record declares another coalition than its proof",
        lambda f: f.declared.update(c=f.trailer["coalition"]["c"] % 2 + 1, c_tenant=1),
        base="certified",
    ),
    Fault(
        "coalition-proof-of-another-circuit",
        "the policy names another circuit for the coalition proof",
        coalition_circuit,
        proving=True,
        base="certified",
    ),
    Fault(
        "coalition-key-missing",
        "the window has no key for its coalition proof",
        after=no_coalition_key,
        base="certified",
    ),
    Fault(
        "coalition-key-of-its-own",
        "the window brings another key for its coalition proof than the pinned one",
        after=another_coalition_key,
        base="certified",
    ),
    Fault(
        "coalition-proof-missing",
        "the coalition proof that the policy promises is missing",
        after=no_coalition_proof,
        base="certified",
    ),
    Fault(
        "coalition-proof-not-the-named-one",
        "the closing record names another coalition proof",
        after=another_coalition_proof,
        base="certified",
    ),
]
SCANNED = [
    Fault("scan", "nothing: a tenant of each proof system", base="scan"),
    Fault("scan-proof-changed", "one bit of a scan proof is another", after=scan_proof_changed, base="scan"),
    Fault(
        "noise-certificate-changed",
        "one bit of a slot's noise certificate is another",
        after=certificate_changed,
        base="scan",
    ),
    Fault(
        "points-of-another-index",
        "the points are not those behind the committed index",
        after=other_points,
        base="scan",
    ),
]
KINDS = [*CHAIN, *SAMPLES, *CERTIFIED, *SCANNED]
