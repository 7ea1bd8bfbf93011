"""A cheater for every check: what the check finds, and that nothing else would have found it.

Each fault is sealed by a `Forge`, so all signatures, trees and receipts around it are good again. A case states the
checks that do not pass, all of them: were the first one missing, the window would pass (or the others, which cannot
be told from it, would decide).
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest

from rag_audit._internal.canonical import digest_hex
from rag_audit.errors import ExitCode, RagAuditError
from rag_audit.log.checkpoint import Checkpoint
from rag_audit.log.keys import ALG_ED25519
from rag_audit.log.note import Note, cosign_note, parse_note, sign_note
from rag_audit.log.signing import SigningKey
from rag_audit.models.challenge import Challenge
from rag_audit.models.manifest import PUBLISHED, manifest_digest
from rag_audit.models.trust import Trust
from rag_audit.models.windowfile import WindowFile
from rag_audit.proofs import records
from rag_audit.relation.commitments import topk_commitment, vector_commitment
from rag_audit.relation.field import to_hex
from rag_audit.retrieval.embedders import public_manifest
from rag_audit.verify.standing import Kind, kind_of
from tests.circuits.test_proofs import off_subgroup
from tests.window.forge import Forge
from tests.window.outcomes import not_passed
from tests.window.simulator import EMBEDDER, ORIGIN, Finished
from tests.window.standins import taken_as_valid

FAIL, UNDECIDED, UNMET = ExitCode.FAIL, ExitCode.MALFORMED, ExitCode.UNMET
OUTSIDER = SigningKey(ORIGIN, ALG_ED25519, b"a stranger, the same in each run")


@dataclass(frozen=True)
class MaliciousProver:
    """One fault.

    :param decides: the check that decides
    :param also: checks that cannot pass either
    :param proofs: False where the fault changes what proofs are bound to: proofs are then taken as valid
    """

    fault: str
    decides: str
    change: Callable[[Forge], Any]
    exit_code: ExitCode = FAIL
    also: tuple[str, ...] = ()
    proofs: bool = True
    options: dict[str, Any] = field(default_factory=dict)


def put(part: str, *path: str | int, value: Any) -> Callable[[Forge], None]:
    """Set one field of a part."""

    def change(forge: Forge) -> None:
        target: Any = getattr(forge, part)
        for step in path[:-1]:
            target = target[step]
        assert target[path[-1]] != value
        target[path[-1]] = value

    return change


def uncommitted(part: str, *path: str | int, value: Any) -> Callable[[Forge], None]:
    """`put`, and the opening's digests stay as they were."""

    def change(forge: Forge) -> None:
        put(part, *path, value=value)(forge)
        forge.commit = False

    return change


def attribute(name: str, value: Any) -> Callable[[Forge], None]:
    """Set an attribute of the forge."""
    return lambda forge: setattr(forge, name, value)


ZERO = "00" * 32


def previous_named(forge: Forge) -> None:
    """Nothing of the chain is given, so its checks rest on the witnesses."""
    forge.header["previous"] = {"header": ZERO, "root": ZERO, "abandoned": 1, "empty": 0}


def many_empty_before(forge: Forge) -> None:
    forge.header["previous"] = {"header": ZERO, "root": ZERO, "abandoned": 0, "empty": 8}


def one_index_twice(name: str) -> Callable[[Forge], None]:
    """Both tenants answer from one index, so that each tenant's accounts count for themselves."""

    def change(forge: Forge) -> None:
        one, other = forge.value["tenants"]
        other[name] = one[name]
        for account in ("medicine-1", "medicine-2"):
            forge.drop_receipts_of(account)

    return change


NO_CIRCUIT = tuple(f"proof.{of}circuit.{t}" for of in ("", "embed.") for t in ("law", "medicine"))
"""What cannot be decided of proofs where the policy's constants fit no circuit."""

OPENING = [
    MaliciousProver("opening signed by another key", "header.signature", attribute("opening_key", OUTSIDER),
          also=("header.beacon",)),
    MaliciousProver("opening without quorum", "header.quorum", lambda f: f.opening_times.pop("w2"), UNMET,
          also=("header.beacon",)),
    MaliciousProver("opening without any cosignature", "header.quorum", lambda f: f.opening_times.clear(), UNMET,
          also=("header.beacon",)),
    MaliciousProver("quorum complete only when the window was open", "header.published",
          lambda f: (f.opening_times.update(dict.fromkeys(f.opening_times, f.header["opens_at"] // 1000)),
                     f.reveals.update({n: (v, f.header["opens_at"]) for n, (v, _) in f.reveals.items()}))),
    MaliciousProver("another policy than the committed one", "header.complete",
          lambda f: uncommitted("policy", "delete_after", value=f.policy["delete_after"] + 1)(f)),
    MaliciousProver("another manifest than the committed one", "header.complete", uncommitted("value", "embedder", "v", value=2)),
    MaliciousProver("another roster than the committed one", "header.complete",
          uncommitted("value", "roster", 3, "custody", value="provider")),
    MaliciousProver("another tenant list than the committed one", "header.complete",
          uncommitted("header", "tenants", "root", value=ZERO), proofs=False),
    MaliciousProver("ledger not empty before entry 0", "header.complete", put("header", "ledger", value=ZERO), proofs=False),
    MaliciousProver("policy of another window", "header.complete", put("policy", "window", value="w-2"), proofs=False),
    MaliciousProver("policy opens at another time", "header.complete",
          lambda f: put("policy", "opens_at", value=f.policy["opens_at"] - 1)(f), proofs=False),
    MaliciousProver("policy closes at another time", "header.complete",
          lambda f: put("policy", "closes_at", value=f.policy["closes_at"] - 1)(f), proofs=False),
    MaliciousProver("schema with another capacity", "header.complete",
          put("value", "embedder", "schema", "tenants", 0, "capacity", value=64), proofs=False),
    MaliciousProver("embedder cuts elsewhere than the policy says", "header.complete",
          put("value", "embedder", "embedder", "tokens", "query", value=3), proofs=False,
          also=("receipt.disclosed",)),
    MaliciousProver("one index as two tenants", "header.indices", one_index_twice("c_idx"), proofs=False),
    MaliciousProver("one list of documents as two tenants", "header.indices", one_index_twice("c_docs"), proofs=False),
    MaliciousProver("a document table that the policy does not have", "header.tables",
          lambda f: f.value["tenants"][0].update(table={"c_table": "5" * 64, "previous": None}), proofs=False),
    MaliciousProver("policy not well-formed: sigma", "header.policy", put("policy", "sigma", value="1.000000"), proofs=False),
    MaliciousProver("policy not well-formed: queries deleted before the end", "header.policy",
          put("policy", "delete_after", value=1), proofs=False),
    MaliciousProver("policy not well-formed: the noise is too small for eps_acc", "header.policy",
          put("policy", "eps_acc", value="0.5"), proofs=False),
    MaliciousProver("policy not well-formed: delta_policy at k_max delta_acc", "header.policy",
          put("policy", "delta_acc", value="5e-6"),
          also=("bound.computed", "trust.max_epsilon"), proofs=False),
    MaliciousProver("policy not well-formed: the score window is beyond reach", "header.policy",
          lambda f: f.policy["noise"].update(lo=64 * 64, hi=64 * 64 + 280),
          also=(*NO_CIRCUIT, "trust.max_score_hi"), proofs=False),
    MaliciousProver("policy not well-formed: no score reaches the top of the window", "header.policy",
          put("policy", "noise", "hi", value=64 * 64 + 1), also=(*NO_CIRCUIT, "trust.max_score_hi"), proofs=False),
    MaliciousProver("policy not well-formed: a window too narrow for the circuit", "header.policy",
          put("policy", "noise", "lo", value=319), also=(*NO_CIRCUIT, "trust.min_score_width"), proofs=False),
    MaliciousProver("more accounts than the cap", "header.policy", put("policy", "tenants", 0, "accounts_max", value=1),
          also=("ledger.accounts",), proofs=False),
    MaliciousProver("one key for two accounts", "header.policy",
          lambda f: f.value["roster"].append({**f.value["roster"][3], "account": "medicine-3"}),
          also=("ledger.accounts",), proofs=False),
    MaliciousProver("a beacon value that the notes do not give", "header.beacon", attribute("value_override", "11" * 32),
          proofs=False),
    MaliciousProver("no beacon entry", "header.beacon", lambda f: f.entries.pop(1), proofs=False),
    MaliciousProver("beacon drawn before the quorum", "header.beacon",
          lambda f: f.reveals.update({n: (v, 1000 * f.opening_times[n] - 1) for n, (v, _) in f.reveals.items()}),
          proofs=False),
    MaliciousProver("beacon drawn after the first query", "header.beacon",
          lambda f: f.reveals.update({n: (v, f.queries[0]["ts"] + 1) for n, (v, _) in f.reveals.items()}),
          proofs=False),
    MaliciousProver("one witness's nonce is missing", "header.beacon", lambda f: f.reveals.pop("w2"), proofs=False),
    MaliciousProver("a nonce that opens no commitment", "header.beacon",
          lambda f: f.reveals.update(w2=(bytes(32), f.reveals["w2"][1])), proofs=False),
    MaliciousProver("the opening names fewer witnesses than trust.toml", "header.beacon",
          lambda f: (f.header["beacon"]["witnesses"].pop(), f.reveals.pop("w2")), proofs=False),
    MaliciousProver("a beacon from another source than the named one", "header.beacon",
          put("entries", 1, "source", value="drand"), proofs=False),
]  # fmt: skip


def reseal_nothing(change: Callable[[dict[str, Any]], Any]) -> Callable[[Finished], Any]:
    """A changed file whose signatures are all the old ones."""

    def changed(finished: Finished) -> Any:
        value = finished.value()
        change(value)
        return finished.changed(**value)

    return changed


def stolen_tenant(forge: Forge) -> None:
    forge.record("law-1", 2)["tenant"] = "medicine"
    forge.drop_receipts_of("law-1", 2)


def second_beacon(forge: Forge) -> None:
    forge.insert(copy.deepcopy(forge.entries[1]), 2)


def used_without_beacon(forge: Forge) -> None:
    forge.enrol("law-9", "law")
    forge.another_query("law-9", 1, ("law-1", 2))


def used_with_uncosigned_beacon(forge: Forge) -> None:
    forge.answer(forge.enrol("law-9", "law"), cosigned_by=["w1"])
    forge.another_query("law-9", 1, ("law-1", 2))


def used_before_its_beacon(forge: Forge) -> None:
    enrolment = forge.enrol("law-9", "law")
    forge.another_query("law-9", 1, ("law-1", 2))
    forge.answer(enrolment)


def used_before_its_beacon_was_drawn(forge: Forge) -> None:
    forge.answer(forge.enrol("law-9", "law"), late=60_000)
    forge.another_query("law-9", 1, ("law-1", 2))


def beacon_after_the_end(forge: Forge) -> None:
    forge.answer(forge.enrol("law-9", "law"))
    forge.trailer["enrolments"] = 1
    forge.insert(forge.entries.pop(-2), len(forge.entries))


def used_before_its_enrolment(forge: Forge) -> None:
    key = forge.accounts["law-9"] = SigningKey.generate("law-9")
    forge.another_query("law-9", 1, ("law-1", 2))
    forge.answer(forge.enrol("law-9", "law", key))


def cosigned_at_the_end(ms: int) -> Callable[[Forge], None]:
    """Both witnesses cosign the end in that second."""
    return lambda f: f.final_times.update(dict.fromkeys(f.final_times, ms // 1000))


def apart(forge: Forge) -> None:
    """Questions of one moment, each ten minutes after the one before: with a tau of minutes none is near another."""
    for number, record in enumerate(forge.queries):
        record["ts"] += 600_000 * number
    forge.trailer["ts"] = forge.queries[-1]["ts"]


def closed_later(ms: int) -> Callable[[Forge], None]:
    """The closing record's time lies so far after the quorum that cosigned it."""
    return lambda f: f.trailer.update(ts=1000 * max(f.final_times.values()) + ms)


def enrolled_later(forge: Forge) -> None:
    """The quorum cosigned the enrolment's ledger a minute and two seconds before the enrolment says it was written."""
    enrolment = forge.enrol("law-9", "law")
    forge.answer(enrolment, late=-62_000)


def after_a_beacon_but_before_it(forge: Forge) -> None:
    """The quorum cosigned an enrolment ten minutes after its time; what follows its beacon is stamped as before."""
    enrolment = forge.enrol("law-9", "law")
    forge.answer(enrolment, late=600_000)
    forge.another_query("law-1", 3, ("law-1", 2))
    cosigned_at_the_end(enrolment["ts"] + 600_000)(forge)


def ended_before_an_enrolment(forge: Forge) -> None:
    """The closing record's time is within a minute of both quorums, but these are in the wrong order."""
    enrolment = forge.enrol("law-9", "law")
    forge.answer(enrolment, late=600_000)
    cosigned = (enrolment["ts"] + 600_000) // 1000 * 1000
    forge.trailer["ts"] = cosigned - 30_000
    cosigned_at_the_end(cosigned - 80_000)(forge)


LEDGER = [
    MaliciousProver("final checkpoint signed by another key", "ledger.checkpoint", attribute("final_key", OUTSIDER)),
    MaliciousProver("final checkpoint of another origin", "ledger.checkpoint", attribute("final_origin", "example.org/other")),
    MaliciousProver("final checkpoint without quorum", "ledger.quorum", lambda f: f.final_times.pop("w1"), UNMET),
    MaliciousProver("final checkpoint of more entries", "ledger.size", attribute("final_size_off_by", 1)),
    MaliciousProver("a wrong seq", "ledger.sequence",
          lambda f: (setattr(f, "number", False), put("trailer", "seq", value=1)(f))),
    MaliciousProver("a record of another window", "ledger.sequence",
          lambda f: (put("entries", 3, "window", value="w-2")(f), f.drop_receipts_of(f.entries[3]["account"])),
          proofs=False),
    MaliciousProver("an enrolment's beacon after the closing record", "ledger.sequence", beacon_after_the_end,
          also=("ledger.trailer",)),
    MaliciousProver("a second opening", "ledger.sequence", lambda f: f.insert(copy.deepcopy(f.header))),
    MaliciousProver("not closed", "ledger.trailer", lambda f: f.entries.pop()),
    MaliciousProver("closing record counts other queries", "ledger.trailer",
          lambda f: (setattr(f, "count", False), put("trailer", "queries", value=5)(f))),
    MaliciousProver("closing record counts other enrolments", "ledger.trailer",
          lambda f: (setattr(f, "count", False), put("trailer", "enrolments", value=1)(f))),
    MaliciousProver("abandoned", "ledger.trailer", put("trailer", "abandoned", value=True)),
    MaliciousProver("timestamp after the window", "ledger.timestamps",
          lambda f: (f.queries[-1].update(ts=f.header["closes_at"] + 1), f.trailer.update(ts=f.header["closes_at"] + 2),
                     cosigned_at_the_end(f.header["closes_at"] + 2)(f))),
    MaliciousProver("timestamp before the window", "ledger.timestamps",
          lambda f: f.queries[0].update(ts=f.header["opens_at"] - 1)),
    MaliciousProver("timestamps out of order", "ledger.timestamps",
          lambda f: f.queries[3].update(ts=f.queries[2]["ts"] - 1)),
    MaliciousProver("closed before the last query", "ledger.timestamps",
          lambda f: f.trailer.update(ts=f.queries[-1]["ts"] - 1)),
    MaliciousProver("questions of one moment stamped ten minutes apart", "ledger.clock", apart),
    MaliciousProver("closed after the end was cosigned", "ledger.clock", closed_later(60_001)),
    MaliciousProver("the end cosigned before the opening", "ledger.clock",
          lambda f: cosigned_at_the_end(1000 * min(f.opening_times.values()) - 3_600_000)(f)),
    MaliciousProver("an enrolment stamped after its ledger was cosigned", "ledger.clock", enrolled_later),
    MaliciousProver("a record after a beacon is stamped before it", "ledger.clock", after_a_beacon_but_before_it,
          proofs=False),
    MaliciousProver("the end cosigned before an enrolment's ledger", "ledger.clock", ended_before_an_enrolment),
    MaliciousProver("account of another tenant", "ledger.accounts", stolen_tenant, proofs=False),
    MaliciousProver("enrolments above the tenant's cap", "ledger.accounts",
          lambda f: [f.enrol(f"law-{n}", "law") for n in (7, 8)]),
    MaliciousProver("an enrolment repeats a key", "ledger.accounts",
          lambda f: f.enrol("medicine-9", "medicine", f.accounts["medicine-2"])),
    MaliciousProver("an enrolment into an unknown tenant", "ledger.accounts", lambda f: f.enrol("tax-1", "tax")),
    MaliciousProver("a record before its account's enrolment", "ledger.accounts", used_before_its_enrolment,
          also=("ledger.enrolment",), proofs=False),
    MaliciousProver("an enrolled account queries without a beacon", "ledger.enrolment", used_without_beacon, proofs=False),
    MaliciousProver("an enrolment's beacon without quorum", "ledger.enrolment", used_with_uncosigned_beacon, UNMET,
          proofs=False),
    MaliciousProver("an enrolled account's record comes before its beacon", "ledger.enrolment", used_before_its_beacon,
          proofs=False),
    MaliciousProver("an enrolment's beacon drawn after its first query", "ledger.enrolment",
          used_before_its_beacon_was_drawn, proofs=False),
    MaliciousProver("a second beacon for the opening", "ledger.beacons", second_beacon),
    MaliciousProver("a beacon for a query", "ledger.beacons",
          lambda f: f.insert({**copy.deepcopy(f.entries[1]), "entry": 2})),
    MaliciousProver("request signed by another key", "ledger.requests",
          lambda f: (setattr(f, "sign", False), f.queries[0].update(sig="00" * 64)), proofs=False),
    MaliciousProver("request signed by another account", "ledger.requests",
          lambda f: (setattr(f, "sign", False), f.queries[0].update(sig=f.queries[1]["sig"])), proofs=False),
    MaliciousProver("i skipped", "ledger.slots",
          lambda f: (f.drop_receipts_of("law-1", 2), f.move("law-1", 2, 3)), proofs=False),
    MaliciousProver("i repeated", "ledger.slots", lambda f: f.another_query("law-1", 2, ("law-1", 2)), proofs=False),
    MaliciousProver("i starts at 2", "ledger.slots",
          lambda f: (f.drop_receipts_of("law-2"), f.move("law-2", 1, 2)), proofs=False),
    MaliciousProver("more than n queries", "ledger.limit",
          lambda f: [f.another_query("law-1", i, ("law-1", 2)) for i in (3, 4)],
          also=("bound.computed",), proofs=False),
]  # fmt: skip


def swapped_proofs(*names: str) -> Callable[[Forge], None]:
    """Two records exchange their proofs of these statements."""

    def change(forge: Forge) -> None:
        one, other = forge.proofs["law-2", 1], forge.proofs["law-1", 2]
        for name in names:
            one[name], other[name] = other[name], one[name]

    return change


def beside_false_ones(**part: Any) -> Callable[[Forge], None]:
    """Of two records that have each other's proof one is no proof at all."""

    def change(forge: Forge) -> None:
        swapped_proofs("retrieve")(forge)
        result = forge.proofs["law-2", 1]
        result["retrieve"] = {**result["retrieve"], **part}

    return change


def swapped_statements(forge: Forge) -> None:
    result = forge.proofs["law-1", 2]
    result["retrieve"], result["embed"] = result["embed"], result["retrieve"]


def lied_about_positions(forge: Forge) -> None:
    """Record and openings agree, the proof is for the true positions: the receipt's owner cannot see it."""
    held = forge.receipt("law-1", 2)
    held.body["positions"].reverse()
    held.body["documents"].reverse()
    record = forge.record("law-1", 2)
    record["htopk"] = to_hex(topk_commitment(int(held.body["salt_k"], 16), held.body["positions"]))
    from rag_audit.models.records import answer_digest

    digests = [bytes.fromhex(d["hash"]) for d in held.body["documents"]]
    record["hans"] = answer_digest(bytes.fromhex(held.body["salt_a"]), digests).hex()


def another_vector(forge: Forge) -> None:
    from rag_audit.models.question import RequestSalts

    held = forge.receipt("law-1", 2)
    assert held.disclosed is not None
    salts = RequestSalts.derive(bytes.fromhex(held.disclosed["salt"]))
    forge.record("law-1", 2)["cq"] = to_hex(vector_commitment(salts.vector, [1] * 64))


def proof_part(part: str, *path: int, value: str) -> Callable[[Forge], None]:
    def change(forge: Forge) -> None:
        target = forge.proofs["law-1", 2]["retrieve"][part]
        for step in path[:-1]:
            target = target[step]
        target[path[-1]] = value

    return change


def other_eager_embedding(forge: Forge) -> None:
    record = next(q for q in forge.queries if q["proof"])
    forge.proofs[record["account"], record["i"]]["embed"] = forge.proofs["law-1", 2]["embed"]


def other_key(name: str) -> Callable[[Forge], None]:
    def change(forge: Forge) -> None:
        key = forge.value["verification_keys"][forge.policy["tenants"][0]["circuits"][name]]
        key["ic"][0] = key["ic"][1]

    return change


def no_key(name: str) -> Callable[[Forge], Any]:
    return lambda f: f.value["verification_keys"].pop(f.policy["tenants"][0]["circuits"][name])


def exchanged(name: str) -> Callable[[Forge], None]:
    """Two tenants' commitments, each under the other's name."""

    def change(forge: Forge) -> None:
        one, other = forge.value["tenants"]
        one[name], other[name] = other[name], one[name]

    return change


EVERY_PROOF = ("proof.embed.valid.law", "proof.valid.medicine", "proof.embed.valid.medicine")
PROOF = [
    MaliciousProver(
        "a record without proof", "proof.present", lambda f: f.proofs.pop(("law-1", 2)), UNDECIDED
    ),
    MaliciousProver(
        "a record without proof of its embedding",
        "proof.present",
        lambda f: f.proofs["law-1", 2].pop("embed"),
        UNDECIDED,
    ),
    MaliciousProver(
        "a proof of nothing that the policy names",
        "proof.records",
        lambda f: f.proofs["law-1", 2].update(taste={}),
        UNDECIDED,
    ),
    MaliciousProver("proof of another record", "proof.valid.law", swapped_proofs("retrieve")),
    MaliciousProver("proof of another record's embedding", "proof.embed.valid.law", swapped_proofs("embed")),
    MaliciousProver(
        "a record's two proofs for each other",
        "proof.valid.law",
        swapped_statements,
        UNDECIDED,
        also=("proof.embed.valid.law",),
    ),
    MaliciousProver(
        "positions that were not proved",
        "proof.valid.law",
        lied_about_positions,
        also=("proof.embed.valid.law",),
    ),
    MaliciousProver(
        "query vector that was not proved",
        "proof.valid.law",
        lambda f: (
            f.record("law-1", 2).update(cq="00" * 31 + "05"),
            setattr(f.receipt("law-1", 2), "disclosed", None),
        ),
        also=("proof.embed.valid.law",),
    ),
    MaliciousProver(
        "another seed", "proof.valid.law", put("header", "c_seed", value="00" * 31 + "01"), also=EVERY_PROOF
    ),
    MaliciousProver("another tenant's index", "proof.valid.law", exchanged("c_idx"), also=EVERY_PROOF),
    MaliciousProver(
        "an eager proof other than the recorded one",
        "proof.pinned",
        lambda f: next(q for q in f.queries if q["proof"]).update(proof=ZERO),
    ),
    MaliciousProver(
        "an eager proof of the embedding other than the recorded one",
        "proof.pinned",
        other_eager_embedding,
        proofs=False,
    ),
    MaliciousProver(
        "off-curve point", "proof.valid.law", proof_part("a", 0, value="00" * 31 + "02"), UNDECIDED
    ),
    MaliciousProver(
        "off-curve twist point", "proof.valid.law", proof_part("b", 0, 0, value="00" * 31 + "02"), UNDECIDED
    ),
    MaliciousProver("coordinate above p", "proof.valid.law", proof_part("c", 0, value="ff" * 32), UNDECIDED),
    MaliciousProver(
        "a coordinate above p hides no false proof", "proof.valid.law", beside_false_ones(c=["ff" * 32] * 2)
    ),
    MaliciousProver(
        "a point outside the subgroup hides no false proof",
        "proof.valid.law",
        beside_false_ones(b=off_subgroup()),
    ),
    MaliciousProver(
        "a proof that is a number hides no false proof", "proof.valid.law", beside_false_ones(a=5)
    ),
    MaliciousProver(
        "another circuit than the policy's constants ask for",
        "proof.circuit.law",
        put("policy", "tenants", 0, "circuits", "retrieve", value=ZERO),
        UNDECIDED,
        proofs=False,
    ),
    MaliciousProver(
        "another circuit than the embedder's constants ask for",
        "proof.embed.circuit.law",
        put("policy", "tenants", 0, "circuits", "embed", value=ZERO),
        UNDECIDED,
        proofs=False,
    ),
    MaliciousProver(
        "another verification key than the pinned one",
        "proof.key.law",
        other_key("retrieve"),
        also=("proof.key.medicine",),
    ),
    MaliciousProver(
        "another verification key of embed than the pinned one",
        "proof.embed.key.law",
        other_key("embed"),
        also=("proof.embed.key.medicine",),
    ),
    MaliciousProver(
        "no verification key", "proof.key.law", no_key("retrieve"), UNDECIDED, also=("proof.key.medicine",)
    ),
    MaliciousProver(
        "no verification key of embed",
        "proof.embed.key.law",
        no_key("embed"),
        UNDECIDED,
        also=("proof.embed.key.medicine",),
    ),
    MaliciousProver(
        "cq is not the vector of the disclosed query", "proof.query_embedding", another_vector, proofs=False
    ),
]


def edited_opening_of_a_receipt(forge: Forge) -> None:
    """The account edits the openings, but only the provider can sign them."""
    held = forge.receipt("law-1", 2)
    held.body["positions"].reverse()
    held.provider = OUTSIDER


def contradicting_header(forge: Forge) -> None:
    """The provider itself signs openings that do not fit the record."""
    forge.receipt("law-1", 2).body["positions"].reverse()


def dropped_record(forge: Forge) -> None:
    record = forge.record("law-1", 2)
    forge.receipt("law-1", 2).frozen = True
    forge.entries.remove(record)


def re_signed_edit(forge: Forge) -> None:
    forge.record("law-1", 2)["ts"] += 1
    forge.receipt("law-1", 2).frozen = True


def reordered(forge: Forge) -> None:
    first, second = (forge.entries.index(forge.record(*slot)) for slot in (("law-1", 2), ("medicine-1", 2)))
    a, b = forge.entries[first], forge.entries[second]
    a["ts"], b["ts"] = b["ts"], a["ts"]
    forge.entries[first], forge.entries[second] = b, a
    for slot in (("law-1", 2), ("medicine-1", 2)):
        forge.receipt(*slot).frozen = True


def contents_of_another_document(forge: Forge) -> None:
    from rag_audit.models.records import answer_digest

    held = forge.receipt("law-1", 2)
    held.body["documents"][0]["hash"] = ZERO
    digests = [bytes.fromhex(d["hash"]) for d in held.body["documents"]]
    forge.record("law-1", 2)["hans"] = answer_digest(bytes.fromhex(held.body["salt_a"]), digests).hex()


RECEIPT = [
    MaliciousProver("a receipt whose openings were edited", "receipt.accepted", edited_opening_of_a_receipt, UNDECIDED),
    MaliciousProver("a receipt countersigned by another key", "receipt.accepted",
          lambda f: setattr(f.receipt("law-2", 1), "signer", OUTSIDER), UNDECIDED),
    MaliciousProver("a receipt handed in by another account", "receipt.accepted",
          lambda f: setattr(f.receipt("law-2", 1), "by", "medicine-2"), UNDECIDED),
    MaliciousProver("openings that contradict the record, signed by the provider", "receipt.consistent", contradicting_header),
    MaliciousProver("receipt for a missing record", "receipt.consistent", dropped_record),
    MaliciousProver("a record edited and the ledger signed again", "receipt.consistent", re_signed_edit),
    MaliciousProver("records reordered and the ledger signed again", "receipt.consistent", reordered),
    MaliciousProver("another text than the committed document", "receipt.consistent", contents_of_another_document,
          proofs=False),
    MaliciousProver("no receipts", "receipt.independent", lambda f: f.receipts.clear(), UNMET),
    MaliciousProver("one receipt under two names", "receipt.independent",
          lambda f: f.receipts.__setitem__(slice(None), [f.receipt("law-1", 1)] * 2), UNMET,
          options={"require": {"min_receipts": 2}}),
    MaliciousProver("an independent account's key is held by the provider", "receipt.independent",
          lambda f: [r.update(custody="provider") for r in f.value["roster"]], UNMET, proofs=False),
    MaliciousProver("a disclosed query that was not asked", "receipt.disclosed",
          lambda f: f.receipt("law-1", 2).disclosed.update(query="Another question altogether?"), UNDECIDED),
]  # fmt: skip


def declared(**estimate: Any) -> Callable[[Forge], None]:
    """Another estimate of repeated questions in the closing record."""

    def change(forge: Forge) -> None:
        forge.count = False
        forge.trailer["coalition"].update(estimate)

    return change


COALITION = [
    MaliciousProver("a coalition above k_max", "coalition.cap", declared(c=3, c_tenant=2)),
    MaliciousProver(
        "a coalition larger than the window's accounts",
        "coalition.count",
        declared(c=5),
        also=("coalition.cap",),
    ),
    MaliciousProver(
        "a tenant's coalition larger than the whole one", "coalition.count", declared(c=1, c_tenant=2)
    ),
    MaliciousProver("queries that nobody asked", "coalition.count", declared(c=0, c_tenant=0)),
    MaliciousProver("estimated with another theta", "coalition.parameters", declared(theta=[9, 10])),
    MaliciousProver("estimated with a smaller tau", "coalition.parameters", declared(tau=1)),
    MaliciousProver(
        "estimated with another unit of tau", "coalition.parameters", declared(tau_unit="seconds")
    ),
    MaliciousProver(
        "an estimate with a certificate that this release cannot check",
        "coalition.proof",
        declared(coalition_proof="00" * 32),
        UNDECIDED,
    ),
    MaliciousProver(
        "a certificate from nowhere", "coalition.proof", put("value", "coalition_proof", value={}), UNDECIDED
    ),
]

MANIFEST = ("value", "embedder", "embedder")
ARTEFACTS = (*MANIFEST, "artefacts", "table-int4")


def no_embed_promised(forge: Forge) -> None:
    for tenant in forge.policy["tenants"]:
        del tenant["circuits"]["embed"]
    for record in forge.queries:
        result = forge.proofs[record["account"], record["i"]]
        del result["embed"]
        if record["proof"]:
            record["proof"] = digest_hex(result)


def nothing(forge: Forge) -> None:
    """The window is as it was; the relying party asks for more."""


TRUST = [
    MaliciousProver(
        "a table fitted to the tenant",
        "trust.embedder",
        put(*ARTEFACTS, value=ZERO),
        proofs=False,
        also=("trust.manifest",),
    ),
    MaliciousProver(
        "proofs over the provider's own table",
        "trust.embedder",
        put(*ARTEFACTS[:-1], "table-root", value=ZERO),
        proofs=False,
        also=("trust.manifest",),
    ),
    MaliciousProver(
        "a manifest of another kind of embedder",
        "trust.manifest",
        put(*MANIFEST, "kind", value="wordllama-512"),
        proofs=False,
    ),
    MaliciousProver(
        "a manifest with another prompt", "trust.manifest", put(*MANIFEST, "prompt", value=ZERO), proofs=False
    ),
    MaliciousProver(
        "a manifest with another dimension",
        "trust.manifest",
        put(*MANIFEST, "dimension", value=512),
        proofs=False,
    ),
    MaliciousProver(
        "a manifest with another scale",
        "trust.manifest",
        put(*MANIFEST, "quantiser", "scale", value="0.01"),
        proofs=False,
    ),
    MaliciousProver(
        "a manifest with another form of hq",
        "trust.manifest",
        put(*MANIFEST, "query_commitment", value="text"),
        proofs=False,
    ),
    MaliciousProver(
        "a manifest that says more than the pinned one",
        "trust.manifest",
        lambda f: f.value["embedder"]["embedder"].update(language="any"),
        proofs=False,
    ),
    MaliciousProver(
        "K share too large", "trust.max_K_share", nothing, UNMET, options={"require": {"max_K_share": "0.2"}}
    ),
    MaliciousProver(
        "max_K_share absent", "trust.max_K_share", nothing, UNMET, options={"require": {"max_K_share": None}}
    ),
    MaliciousProver(
        "epsilon too large", "trust.max_epsilon", nothing, UNMET, options={"require": {"max_epsilon": "1"}}
    ),
    MaliciousProver(
        "max_epsilon absent", "trust.max_epsilon", nothing, UNMET, options={"require": {"max_epsilon": None}}
    ),
    MaliciousProver(
        "--max-epsilon exceeded", "trust.max_epsilon", nothing, UNMET, options={"max_epsilon": "1"}
    ),
    MaliciousProver(
        "--max-epsilon does not loosen trust.toml",
        "trust.max_epsilon",
        nothing,
        UNMET,
        options={"max_epsilon": "1e3", "require": {"max_epsilon": "1"}},
    ),
    MaliciousProver(
        "delta too large", "trust.max_delta", nothing, UNMET, options={"require": {"max_delta": "1e-6"}}
    ),
    MaliciousProver(
        "max_delta absent", "trust.max_delta", nothing, UNMET, options={"require": {"max_delta": None}}
    ),
    MaliciousProver(
        "theta too large", "trust.max_theta", nothing, UNMET, options={"require": {"max_theta": "0.79"}}
    ),
    MaliciousProver(
        "max_theta absent", "trust.max_theta", nothing, UNMET, options={"require": {"max_theta": None}}
    ),
    MaliciousProver(
        "score window too high",
        "trust.max_score_hi",
        nothing,
        UNMET,
        options={"require": {"max_score_hi": 319}},
    ),
    MaliciousProver(
        "max_score_hi absent",
        "trust.max_score_hi",
        nothing,
        UNMET,
        options={"require": {"max_score_hi": None}},
    ),
    MaliciousProver(
        "score window too narrow",
        "trust.min_score_width",
        nothing,
        UNMET,
        options={"require": {"min_score_width": 281}},
    ),
    MaliciousProver(
        "min_score_width absent",
        "trust.min_score_width",
        nothing,
        UNMET,
        options={"require": {"min_score_width": None}},
    ),
    MaliciousProver(
        "k_max too small", "trust.min_k_max", nothing, UNMET, options={"require": {"min_k_max": 3}}
    ),
    MaliciousProver(
        "min_k_max absent", "trust.min_k_max", nothing, UNMET, options={"require": {"min_k_max": None}}
    ),
    MaliciousProver(
        "tau too small", "trust.min_tau", put("policy", "estimator", "tau", value=5), UNMET, proofs=False
    ),
    MaliciousProver(
        "tau in seconds, wanted in positions",
        "trust.min_tau",
        put(
            "policy",
            "estimator",
            value={"theta": [4, 5], "tau": 3600, "tau_unit": "seconds", "coalition_proof": None},
        ),
        UNMET,
        options={"require": {"min_tau": "500 positions"}},
        proofs=False,
    ),
    MaliciousProver(
        "tau in positions, wanted in seconds",
        "trust.min_tau",
        put("policy", "estimator", "tau", value=3600),
        UNMET,
        options={"require": {"min_tau": "500 seconds"}},
        proofs=False,
    ),
    MaliciousProver(
        "tau shorter than wanted",
        "trust.min_tau",
        put("policy", "estimator", "tau", value=499),
        UNMET,
        options={"require": {"min_tau": "500 positions"}},
        proofs=False,
    ),
    MaliciousProver(
        "min_tau absent", "trust.min_tau", nothing, UNMET, options={"require": {"min_tau": None}}
    ),
    MaliciousProver(
        "an abandoned window before this one", "trust.max_abandoned", previous_named, UNMET, proofs=False
    ),
    MaliciousProver(
        "max_abandoned absent",
        "trust.max_abandoned",
        nothing,
        UNMET,
        options={"require": {"max_abandoned": None}},
    ),
    MaliciousProver(
        "more documents than the limit",
        "trust.max_exposure",
        nothing,
        UNMET,
        options={"require": {"max_exposure": 7}},
    ),
    MaliciousProver(
        "eight empty windows before this one", "trust.max_empty", many_empty_before, UNMET, proofs=False
    ),
    MaliciousProver(
        "A1 not proved",
        "trust.query_embedding",
        no_embed_promised,
        UNMET,
        options={"require": {"query_embedding": "proved"}},
        proofs=False,
    ),
    MaliciousProver(
        "D1 not proved",
        "trust.document_embedding",
        nothing,
        UNMET,
        options={"require": {"document_embedding": "proved"}},
    ),
    MaliciousProver(
        "coalition not checked",
        "trust.coalition",
        nothing,
        UNMET,
        options={"require": {"coalition": "checked"}},
    ),
    MaliciousProver(
        "too few receipts", "receipt.independent", nothing, UNMET, options={"require": {"min_receipts": 9}}
    ),
    MaliciousProver(
        "min_receipts absent",
        "receipt.independent",
        nothing,
        UNMET,
        options={"require": {"min_receipts": None}},
    ),
    MaliciousProver(
        "unsafe setup", "trust.setup", nothing, UNMET, options={"require": {"allow_unsafe_setup": False}}
    ),
    MaliciousProver(
        "receipts only from accounts that trust.toml does not name",
        "receipt.independent",
        nothing,
        UNMET,
        options={"independent": ()},
    ),
    MaliciousProver(
        "sampled mode without beta and eta",
        "proof.challenge",
        nothing,
        UNMET,
        options={"require": {"mode": "sampled"}},
    ),
]

MALICIOUS = [*OPENING, *LEDGER, *PROOF, *RECEIPT, *COALITION, *TRUST]


@pytest.fixture
def proofs_taken_as_valid(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    return lambda: monkeypatch.setattr(records, "verify_groups", taken_as_valid)


def test_a_forge_that_changes_nothing_passes(finished: Finished, tmp_path: Path) -> None:
    forge = Forge(finished)
    assert forge.verify(tmp_path).passed
    assert forge.value["header_checkpoint"] == finished.file.header_checkpoint
    assert forge.value["final_checkpoint"] == finished.file.final_checkpoint


def test_an_enrolled_account_with_its_beacon_passes(
    finished: Finished, tmp_path: Path, proofs_taken_as_valid: Callable[[], None]
) -> None:
    forge = Forge(finished)
    forge.answer(forge.enrol("law-9", "law"))
    forge.another_query("law-9", 1, ("law-1", 2))
    proofs_taken_as_valid()
    verdict = forge.verify(tmp_path)
    assert verdict.passed, verdict.deciding
    assert verdict.figures["enrolments"] == 1


def test_clocks_may_differ_by_a_minute(finished: Finished, tmp_path: Path) -> None:
    """The provider counts milliseconds, witnesses whole seconds, and neither's clock is exact."""
    forge = Forge(finished)
    closed_later(60_000)(forge)
    assert forge.verify(tmp_path).passed


@pytest.mark.parametrize("cheat", MALICIOUS, ids=lambda c: c.fault)
def test_a_cheater_is_found_by_one_check(
    cheat: MaliciousProver, finished: Finished, tmp_path: Path, proofs_taken_as_valid: Callable[[], None]
) -> None:
    forge = Forge(finished)
    cheat.change(forge)
    if not cheat.proofs:
        proofs_taken_as_valid()
    options = dict(cheat.options)
    if "independent" in options:
        options = {"trust": finished.service.trust(finished.policy, **options)}
    verdict = forge.verify(tmp_path, **options)
    result = {c.id: c.status for c in verdict.checks if c.status.value != "pass"}
    assert verdict.exit_code is cheat.exit_code, result
    assert verdict.deciding is not None and verdict.deciding.id == cheat.decides, result
    assert set(result) == {cheat.decides, *cheat.also}, result
    assert verdict.deciding.expected and verdict.deciding.actual
    assert verdict.line.split(" ")[:2] == [
        _outcome(cheat),
        cheat.decides,
    ]


def _outcome(cheat: MaliciousProver) -> str:
    """The first word of the verdict: of two with exit code 3, `standing.RULES` says which."""
    if cheat.exit_code is not UNMET:
        return {FAIL: "FAIL", UNDECIDED: "UNDECIDED"}[cheat.exit_code]
    return "UNMET" if kind_of(cheat.decides) is Kind.LIMIT else "UNPROVEN"


def test_every_check_has_its_cheater(finished: Finished) -> None:
    """A check that nobody could break, or that is new, shows here. `without` says why each has no cheater of its
    own."""
    without = {
        "ledger.root": "below: a change without new signatures",
        "ledger.consistency": "a tree that is not the final one is found by ledger.root at the same time",
        "header.root": "below: another opening under a good checkpoint",
        "header.chain": "test_chain: windows in a row",
        "header.abandoned": "test_chain: windows in a row",
        "header.empty": "test_chain: windows in a row",
        "bound.computed": "a policy without bound is not well-formed: header.policy",
        "trust.mechanisms": "test_listing and test_samples: a trust file that accepts only noise",
        "trust.noise_table": "below: pins",
        "trust.records": "below: a window without queries",
    }
    tried = {cheat.decides for cheat in MALICIOUS}
    reported = {c.id for c in finished.verify().checks}
    tenants = {f"proof.{c}.medicine" for c in ("circuit", "key", "valid")}
    tenants |= {check.replace("proof.", "proof.embed.") for check in tenants}
    assert reported - tried - set(without) - tenants == set()
    assert set(without) & tried == set()


# Changes without new signatures.

EDITS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "record edited": lambda v: v["entries"][3].update(ts=v["entries"][3]["ts"] + 1),
    "record dropped": lambda v: v["entries"].pop(3),
    "record duplicated": lambda v: v["entries"].insert(3, copy.deepcopy(v["entries"][3])),
    "records reordered": lambda v: v["entries"].insert(3, v["entries"].pop(4)),
    "closing record edited": lambda v: v["entries"][-1].update(ts=v["entries"][-1]["ts"] + 1),
    "last entries cut off": lambda v: v["entries"].__delitem__(slice(5, None)),
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS.keys())
def test_a_ledger_edited_after_it_was_signed(
    edit: Callable[[dict[str, Any]], Any], finished: Finished
) -> None:
    verdict = finished.verify(reseal_nothing(edit)(finished))
    assert verdict.exit_code is FAIL
    failed = [c.id for c in verdict.checks if c.status.value == "fail"]
    assert "ledger.root" in failed
    assert verdict.deciding is not None and verdict.deciding.id in ("ledger.root", "ledger.size")


def test_an_edit_that_only_the_root_shows(finished: Finished) -> None:
    verdict = finished.verify(reseal_nothing(EDITS["closing record edited"])(finished))
    assert not_passed(verdict) == {"ledger.root", "ledger.consistency"}


def test_another_opening_under_the_cosigned_checkpoint(
    finished: Finished, tmp_path: Path, proofs_taken_as_valid: Callable[[], None]
) -> None:
    """The witnesses cosigned one opening, the ledger starts with another."""
    forge = Forge(finished)
    forge.policy["delete_after"] += 1
    proofs_taken_as_valid()
    file, receipts = forge.seal(tmp_path)
    swapped = file.model_copy(update={"header_checkpoint": finished.file.header_checkpoint})
    verdict = finished.verify(swapped, receipts=[receipts])
    result = not_passed(verdict)
    assert result == {"header.root", "header.beacon"}
    assert verdict.exit_code is FAIL


def test_a_proof_without_its_record(finished: Finished) -> None:
    value = finished.value()
    value["proofs"]["1"] = next(iter(value["proofs"].values()))
    verdict = finished.verify(finished.changed(proofs=value["proofs"]))
    assert not_passed(verdict) == {"proof.records"}
    assert verdict.exit_code is UNDECIDED


def test_a_proof_system_that_this_release_does_not_verify(
    finished: Finished, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rag_audit.verify.checks import proof

    monkeypatch.setattr(proof, "SYSTEMS", ("scan",))
    verdict = finished.verify()
    assert not_passed(verdict) == {"proof.system"}
    assert verdict.exit_code is UNDECIDED and verdict.figures["proofs"] == "none"


# Windows without queries, pins, options.


def test_zero_records_never_pass(finished: Finished, tmp_path: Path) -> None:
    forge = Forge(finished)
    forge.value["entries"] = [e for e in forge.entries if e["type"] != "query"]
    forge.receipts.clear()
    verdict = forge.verify(tmp_path)
    assert verdict.exit_code is UNMET
    assert not_passed(verdict) == {
        "receipt.independent", "trust.query_embedding", "trust.records"
    }  # fmt: skip


def test_zero_records_never_pass_even_where_nothing_is_asked(
    finished: Finished, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rag_audit.verify.checks import receipt

    monkeypatch.setattr(
        receipt, "check", lambda case, reembed: case.figures.update(query_embedding="re-executed", receipts=1)
    )
    forge = Forge(finished)
    forge.value["entries"] = [e for e in forge.entries if e["type"] != "query"]
    forge.receipts.clear()
    verdict = forge.verify(tmp_path)
    assert not_passed(verdict) == {"trust.records"}
    assert verdict.exit_code is UNMET


PINS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "noise table": (lambda t: {"pins": t.pins.model_copy(update={"noise_table": None})}, "trust.noise_table"),
    "circuits": (lambda t: {"pins": t.pins.model_copy(update={"groth16": []})}, "proof.key.law"),
    "embedder": (lambda t: {"pins": t.pins.model_copy(update={"embedder": {}})}, "trust.embedder"),
    "beacon": (lambda t: {"beacon": t.beacon.model_copy(update={"witnesses": []})}, "header.beacon"),
}


@pytest.mark.parametrize(("without", "check"), PINS.values(), ids=PINS.keys())
def test_a_pin_that_trust_lacks_leaves_it_undecided(
    without: Callable[[Any], Any], check: str, finished: Finished
) -> None:
    trust = finished.service.trust(finished.policy)
    verdict = finished.verify(trust=trust.model_copy(update=without(trust)))
    assert verdict.exit_code is UNDECIDED
    assert verdict.deciding is not None and verdict.deciding.id == check


def test_without_a_pinned_table_a1_is_proved_of_whatever_table_the_provider_committed(
    finished: Finished,
) -> None:
    trust = finished.service.trust(finished.policy, query_embedding="proved")
    assert finished.verify(trust=trust).passed
    artefacts = {k: v for k, v in trust.pins.embedder.items() if k != "table-root"}
    unpinned = trust.model_copy(update={"pins": trust.pins.model_copy(update={"embedder": artefacts})})
    verdict = finished.verify(trust=unpinned)
    assert not_passed(verdict) == {"trust.query_embedding"}
    assert verdict.exit_code is UNMET and "query_embedding=proved(unpinned)" in verdict.line
    assert any("(A1) is proved(unpinned)" in note for note in verdict.notes)


@pytest.mark.parametrize("part", ["kind", "prompt", "query_commitment"])
def test_without_a_pinned_manifest_a1_is_proved_of_this_release_s_only(
    part: str,
    finished: Finished,
    tmp_path: Path,
    proofs_taken_as_valid: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An older trust.toml pins artefacts alone: they say nothing of the quantiser, the prompt or the form of hq."""
    trust = finished.service.trust(finished.policy, query_embedding="proved")
    unpinned = trust.model_copy(update={"pins": trust.pins.model_copy(update={"manifest": None})})
    verdict = finished.verify(trust=unpinned)  # the tests' embedder needs a pin
    assert verdict.exit_code is UNMET and "query_embedding=proved(unpinned)" in verdict.line
    monkeypatch.setitem(PUBLISHED, EMBEDDER, manifest_digest(public_manifest(EMBEDDER)))
    assert finished.verify(trust=unpinned).passed
    forge = Forge(finished)
    put(*MANIFEST, part, value=ZERO)(forge)
    proofs_taken_as_valid()
    verdict = forge.verify(tmp_path, trust=unpinned)
    assert not_passed(verdict) == {"trust.query_embedding"}
    assert verdict.exit_code is UNMET and "query_embedding=proved(unpinned)" in verdict.line


@pytest.mark.parametrize("pinned", [True, False])
def test_an_embedder_that_this_release_does_not_know_reaches_what_it_could(
    pinned: bool, finished: Finished, tmp_path: Path, proofs_taken_as_valid: Callable[[], None]
) -> None:
    """A sentence encoder has no table to prove from: its manifest may be pinned, and A1 is declared."""
    forge = Forge(finished)
    no_embed_promised(forge)
    part = forge.value["embedder"]["embedder"]
    part.update(kind="all-MiniLM-L6-v2", pooling="mean", quantiser={"bits": 4, "scale": "0.15"},
                artefacts={"tokenizer": "11" * 32, "weights": "22" * 32}, query_commitment="text")  # fmt: skip
    trust = finished.service.trust(finished.policy, query_embedding="declared")
    pins = {"embedder": part["artefacts"], "manifest": manifest_digest(part) if pinned else None}
    trust = trust.model_copy(update={"pins": trust.pins.model_copy(update=pins)})
    proofs_taken_as_valid()
    verdict = forge.verify(tmp_path, trust=trust)
    assert verdict.passed, verdict.deciding
    assert "query_embedding=declared" in verdict.line
    assert ("trust.manifest" in {c.id for c in verdict.checks}) == pinned


def test_one_record_without_a_valid_proof_of_its_embedding_keeps_a1_from_being_proved(
    finished: Finished, tmp_path: Path
) -> None:
    """Though the verifier executed the embedder again on every query."""
    forge = Forge(finished)
    forge.proofs["law-1", 2].pop("embed")
    verdict = forge.verify(tmp_path)
    assert verdict.figures["query_embedding"] == "re-executed(4/6)"
    assert finished.verify(receipts=[]).figures["query_embedding"] == "proved"


def test_another_noise_table_than_the_pinned_one(finished: Finished) -> None:
    trust = finished.service.trust(finished.policy)
    pins = trust.pins.model_copy(update={"noise_table": ZERO})
    verdict = finished.verify(trust=trust.model_copy(update={"pins": pins}))
    assert not_passed(verdict) == {"trust.noise_table"}
    assert verdict.exit_code is FAIL


def test_setup_label_is_the_pin_s(finished: Finished) -> None:
    """A key that is pinned as a ceremony's needs no permission."""
    text = finished.service.trust_text(finished.policy, allow_unsafe_setup=False)
    assert text.count('setup = "unsafe"') >= 1
    safe = Trust.from_toml(
        text.replace('setup = "unsafe"', 'setup = "ceremony"').encode(), source="trust.toml"
    )
    verdict = finished.verify(trust=safe)
    assert "setup=ceremony" in verdict.line and verdict.exit_code == 0, verdict.line


def test_one_unsafe_key_makes_the_setup_unsafe(finished: Finished) -> None:
    """A ceremony of `retrieve` does not help if anybody could forge proofs of the embedding, nor the other way."""
    trust = finished.service.trust(finished.policy, allow_unsafe_setup=False)
    for number in range(len(trust.pins.groth16)):
        setups: list[Literal["unsafe", "ceremony"]] = ["ceremony"] * len(trust.pins.groth16)
        setups[number] = "unsafe"
        pins = [p.model_copy(update={"setup": s}) for p, s in zip(trust.pins.groth16, setups, strict=True)]
        mixed = trust.model_copy(update={"pins": trust.pins.model_copy(update={"groth16": pins})})
        verdict = finished.verify(trust=mixed)
        assert not_passed(verdict) == {"trust.setup"}
        assert verdict.line == "UNPROVEN trust.setup" and verdict.figures["setup"] == "unsafe"


def test_unsafe_setup_is_allowed_by_option_and_printed(finished: Finished) -> None:
    verdict = finished.verify(require={"allow_unsafe_setup": False}, allow_unsafe_setup=True)
    assert verdict.passed
    assert "setup=unsafe" in verdict.line and "allow=unsafe-setup" in verdict.line


def test_a_key_in_the_window_is_not_trusted(finished: Finished, tmp_path: Path) -> None:
    """Every signature by strangers, consistently: only trust.toml knows better."""
    forge = Forge(finished)
    forge.provider = forge.opening_key = forge.final_key = OUTSIDER
    verdict = forge.verify(tmp_path)
    assert verdict.exit_code is FAIL
    assert verdict.deciding is not None and verdict.deciding.id == "header.signature"


# Sampled mode.


def challenge(
    finished: Finished, sample: int | None, *, key: SigningKey | None = None, **changes: Any
) -> str:
    """A note over the window's end; another `nonce` is another draw."""
    head = Checkpoint.parse(parse_note(finished.file.final_checkpoint).text)
    values = {"origin": ORIGIN, "window": "w-1", "size": head.size, "root": head.root, "nonce": b"n" * 32}
    drawn = Challenge(sample=sample, **{**values, **changes})
    return str(sign_note(drawn.text(), key or finished.service.verifier_key))


SAMPLED = {"mode": "sampled", "beta": "0.5", "eta": "0.3", "challenge": "published"}


def test_sampled_mode_has_its_own_verdict(finished: Finished) -> None:
    verdict = finished.verify(finished.changed(challenges=[challenge(finished, 3)]), require=SAMPLED)
    assert verdict.passed
    assert verdict.line.startswith("PASS-SAMPLED eps_if_conforming=")
    assert "eps_audit" not in verdict.line and "beta=0.5 eta=0.3 challenge=published" in verdict.line
    assert any("--challenge" in note for note in verdict.notes)


def drawn(finished: Finished, note: str) -> list[int]:
    seqs = [e["seq"] for e in finished.value()["entries"] if e["type"] == "query"]
    return Challenge.parse(parse_note(note).text, field="c").positions(seqs)


def answered(finished: Finished, note: str) -> WindowFile:
    """The window with that challenge and the proofs that it asks for, and no others."""
    proofs = {k: p for k, p in finished.value()["proofs"].items() if int(k) in drawn(finished, note)}
    return finished.changed(challenges=[note], proofs=proofs)


def two_draws(finished: Finished) -> tuple[str, str]:
    """By one verifier, of other records each."""
    first = challenge(finished, 3)
    others = (challenge(finished, 3, nonce=bytes([n]) * 32) for n in range(99))
    return first, next(o for o in others if set(drawn(finished, o)) - set(drawn(finished, first)))


@pytest.fixture
def named(tmp_path: Path) -> Callable[..., list[Path]]:
    def write(*notes: str) -> list[Path]:
        paths = [tmp_path / f"note-{number}.txt" for number in range(len(notes))]
        for path, note in zip(paths, notes, strict=True):
            path.write_text(note)
        return paths

    return write


def test_of_two_draws_the_provider_publishes_the_one_it_likes(
    finished: Finished, named: Callable[..., list[Path]]
) -> None:
    """It cannot prove a record that the other one names. Only who names the draw itself sees that."""
    liked, other = two_draws(finished)
    file = answered(finished, liked)
    strict = {k: v for k, v in SAMPLED.items() if k != "challenge"}
    unproven = finished.verify(file, require=strict)
    assert unproven.exit_code is UNMET
    assert {c.id for c in unproven.checks if c.status.value != "pass"} == {"trust.challenge"}
    assert unproven.line == "UNPROVEN trust.challenge"
    own = finished.verify(file, require=strict, challenges=named(other))
    assert own.exit_code is UNDECIDED and own.deciding is not None
    assert own.deciding.id == "proof.present" and own.deciding.at is not None
    assert int(own.deciding.at.split(" ")[1]) in set(drawn(finished, other)) - set(drawn(finished, liked))
    same = finished.verify(file, require=strict, challenges=named(liked))
    assert same.passed, same.deciding
    assert "eta=0.3 challenge=own" in same.line


def test_a_challenge_of_all_records_leaves_nothing_to_choose(finished: Finished) -> None:
    file = finished.changed(challenges=[challenge(finished, None)])
    verdict = finished.verify(file, require={**SAMPLED, "challenge": "own"})
    assert verdict.passed and "challenge=full" in verdict.line


def test_the_verifier_s_own_challenge_must_be_large_enough_itself(
    finished: Finished, named: Callable[..., list[Path]]
) -> None:
    file = finished.changed(challenges=[challenge(finished, 3)])
    verdict = finished.verify(file, require=SAMPLED, challenges=named(challenge(finished, 1)))
    assert verdict.exit_code is UNDECIDED
    assert verdict.deciding is not None and verdict.deciding.id == "proof.challenge"
    assert "a challenge by this verifier of at least 3" in verdict.deciding.expected


@pytest.mark.parametrize("mode", ["full", "sampled"])
@pytest.mark.parametrize(
    "changes", [{"root": bytes(32)}, {"size": 3}, {"window": "w-2"}, {"origin": "example.com"}]
)
def test_the_verifier_s_own_challenge_over_another_ledger_is_not_answered(
    changes: dict[str, Any], mode: str, finished: Finished, named: Callable[..., list[Path]]
) -> None:
    """In full mode too: whoever names a draw wants to know that this is the ledger that it was over."""
    file = finished.changed(challenges=[challenge(finished, 6)])
    require = {**SAMPLED, "mode": mode}
    verdict = finished.verify(file, require=require, challenges=named(challenge(finished, 6, **changes)))
    assert verdict.exit_code is UNDECIDED
    assert verdict.deciding is not None and verdict.deciding.id == "proof.challenge"
    assert verdict.deciding.at == "note-0.txt"


@pytest.mark.parametrize("kind", ["not a note", "by a stranger", "not there"])
def test_an_own_challenge_that_is_none_is_the_verifier_s_mistake(
    kind: str, finished: Finished, named: Callable[..., list[Path]], tmp_path: Path
) -> None:
    paths = {
        "not a note": lambda: named("hello"),
        "by a stranger": lambda: named(challenge(finished, 3, key=finished.service.key)),
        "not there": lambda: [tmp_path / "none.txt"],
    }[kind]()
    with pytest.raises(RagAuditError) as caught:
        finished.verify(challenges=paths)
    assert caught.value.exit_code is UNDECIDED
    assert caught.value.field is not None and paths[0].name in caught.value.field


def test_a_challenge_that_does_not_count_hides_no_false_proof(finished: Finished, tmp_path: Path) -> None:
    forge = Forge(finished)
    swapped_proofs("retrieve")(forge)
    forge.value["challenges"] = ["hello"]
    for require in (SAMPLED, {"mode": "sampled"}):
        folder = tmp_path / str(len(require))
        folder.mkdir()
        verdict = forge.verify(folder, require=require)
        assert verdict.exit_code is FAIL
        assert verdict.deciding is not None and verdict.deciding.id == "proof.valid.law"
        assert "proof.challenge" in not_passed(verdict)


def test_a_sampled_window_does_not_pass_in_full_mode(finished: Finished) -> None:
    file = answered(finished, challenge(finished, 3))
    assert finished.verify(file, require=SAMPLED).passed
    verdict = finished.verify(file)
    assert verdict.exit_code is UNDECIDED
    assert verdict.deciding is not None and verdict.deciding.id == "proof.present"


def test_a_challenged_record_without_proof_is_named(finished: Finished) -> None:
    file = finished.changed(challenges=[challenge(finished, 6)])
    proofs = finished.value()["proofs"]
    missing = sorted(proofs, key=int)[2]
    del proofs[missing]
    verdict = finished.verify(file.model_copy(update={"proofs": proofs}), require=SAMPLED)
    assert verdict.exit_code is UNDECIDED
    assert verdict.deciding is not None
    assert (verdict.deciding.id, verdict.deciding.at) == (
        "proof.present",
        f"record {missing} (retrieve)",
    )


WRONG_CHALLENGES: dict[str, Callable[[Finished], list[str]]] = {
    "none": lambda f: [],
    "over another root": lambda f: [challenge(f, 3, root=bytes(32))],
    "over another size": lambda f: [challenge(f, 3, size=3)],
    "of another window": lambda f: [challenge(f, 3, window="w-2")],
    "of another origin": lambda f: [challenge(f, 3, origin="example.org/other")],
    "of too few records": lambda f: [challenge(f, 1)],
    "by a key that trust.toml does not name": lambda f: [
        challenge(f, 3, key=SigningKey.generate("verifier.example.org"))
    ],
    "by the provider": lambda f: [challenge(f, 3, key=f.service.key)],
    "not a note": lambda f: ["hello"],
}


@pytest.mark.parametrize("notes", WRONG_CHALLENGES.values(), ids=WRONG_CHALLENGES.keys())
def test_a_challenge_that_does_not_count(notes: Callable[[Finished], list[str]], finished: Finished) -> None:
    verdict = finished.verify(finished.changed(challenges=notes(finished)), require=SAMPLED)
    assert verdict.exit_code is UNDECIDED
    assert verdict.deciding is not None and verdict.deciding.id == "proof.challenge"


def test_a_challenge_that_does_not_count_hides_none_that_does(finished: Finished) -> None:
    notes = [challenge(finished, 3, root=bytes(32)), "hello", challenge(finished, 3)]
    verdict = finished.verify(finished.changed(challenges=notes), require=SAMPLED)
    assert [c.status.value for c in verdict.checks if c.id == "proof.challenge"][-1] == "pass"


@pytest.mark.parametrize("engine", ["py_ecc"])
def test_another_engine_gives_the_same_verdict(finished: Finished, tmp_path: Path, engine: str) -> None:
    forge = Forge(finished)
    swapped_proofs("retrieve", "embed")(forge)
    # Time: py_ecc takes a second a proof. One good record and the two that exchanged theirs.
    kept = [("law-2", 1), ("law-1", 2), ("medicine-1", 1)]
    forge.proofs = {slot: forge.proofs[slot] for slot in kept}
    file, receipts = forge.seal(tmp_path)
    native, other = (finished.verify(file, receipts=[receipts], engine=e) for e in ("native", engine))
    assert native.line == other.line
    assert [c.as_json() for c in native.checks] == [c.as_json() for c in other.checks]


def test_repeated_later_and_unknown_cosignatures_change_nothing(finished: Finished) -> None:
    """All of it is what an honest witness, or a stranger, may have left on a checkpoint."""
    witness = finished.service.witnesses["w1"]._key

    def added(text: str) -> str:
        later = cosign_note(Note(parse_note(text).text, ()), witness, 1_900_000_000).signatures[0]
        return f"{text}{text.splitlines()[-1]}\n{later}\n— some one+else\u200b Uw2QOkn8srV1\n"

    file = finished.changed(
        header_checkpoint=added(finished.file.header_checkpoint),
        final_checkpoint=added(finished.file.final_checkpoint),
    )
    verdict, before = finished.verify(file), finished.verify()
    assert verdict.passed, verdict.line
    assert (verdict.line, verdict.checks, verdict.figures) == (before.line, before.checks, before.figures)
