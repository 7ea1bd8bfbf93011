"""Windows whose tenants are proved by the scan argument: honest ones, mixed ones, and one cheater a check.

As in `test_checks`, each fault is sealed by a `Forge` so that nothing else is wrong, and a case states all checks
that do not pass.
"""

from __future__ import annotations

import base64
import copy
import dataclasses
import json
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from rag_audit._internal.canonical import digest_hex, jcs
from rag_audit.account.account import Account
from rag_audit.attest import query as attest
from rag_audit.attest.context import slot_key
from rag_audit.attest.window import Window
from rag_audit.cli import main
from rag_audit.errors import ExitCode, MemoryLimitError, WindowStateError
from rag_audit.models.question import RequestSalts
from rag_audit.models.records import QueryRecord, SlotKey, answer_digest
from rag_audit.models.requests import Refusal
from rag_audit.models.window_writer import save_window
from rag_audit.models.windowfile import WindowFile
from rag_audit.proofs import records
from rag_audit.proofs.backends.scan import memory
from rag_audit.proofs.backends.scan.column import SlotProofJob
from rag_audit.proofs.backends.scan.embed import EmbedJob, EmbedProofs, table_columns
from rag_audit.proofs.backends.scan.key import (
    PROTOCOL,
    EmbedArgument,
    EmbedKey,
    ScanKey,
    commit_index,
    index_digest,
    points_json,
)
from rag_audit.proofs.backends.scan.release import protocols_digest
from rag_audit.proofs.backends.scan.retrieve import RecordInputs, RecordsJob, retrieve_key, retrieve_statement
from rag_audit.proofs.backends.scan.system import SYSTEM
from rag_audit.proofs.proving import backend
from rag_audit.proofs.statements import retrieve
from rag_audit.relation.commitments import slot_id, topk_commitment
from rag_audit.relation.field import to_bytes, to_hex
from rag_audit.relation.scores import ScoreWindow
from rag_audit.report.verification import verify_window
from rag_audit.retrieval.embedders import hashed_words
from rag_audit.retrieval.engine import draw_noise, select
from rag_audit.service.process import precomputing
from tests.drafting import draft
from tests.window.forge import Forge
from tests.window.outcomes import not_passed
from tests.window.simulator import QUERY_TOKENS, QUESTIONS, Finished, Service
from tests.window.standins import taken_as_valid

FAIL, UNDECIDED = ExitCode.FAIL, ExitCode.MALFORMED
SLOT = ("law-1", 2)
ZERO = "00" * 32
EMBED = EmbedArgument(QUERY_TOKENS, hashed_words.DIMENSION, hashed_words.VOCABULARY, hashed_words.NORM_FACTOR)
OTHER_PROTOCOL = "11" * 32
"""The digest of a protocol that this release does not have."""


def test_a_scan_window_needs_no_setup(scanned: Finished) -> None:
    verdict = scanned.verify(require={"allow_unsafe_setup": False})
    assert verdict.passed, verdict.deciding
    assert "proofs=scan setup=transparent" in verdict.line
    assert scanned.service.trust(scanned.policy).pins.groth16 == []
    indices = [t["c_idx"] for t in scanned.value()["tenants"]]
    assert sorted(scanned.file.verification_keys) == sorted([*indices, hashed_words.TABLE_SCAN])


def test_a1_is_proved_under_the_pinned_table(scanned: Finished) -> None:
    verdict = scanned.verify(require={"query_embedding": "proved"})
    assert verdict.passed, verdict.deciding
    assert "query_embedding=proved" in verdict.line
    trust = scanned.service.trust(scanned.policy, query_embedding="proved")
    pins = {k: v for k, v in trust.pins.embedder.items() if k != "table-scan"}
    unpinned = trust.model_copy(update={"pins": trust.pins.model_copy(update={"embedder": pins})})
    verdict = scanned.verify(trust=unpinned)
    assert not_passed(verdict) == {"trust.query_embedding"}
    assert "query_embedding=proved(unpinned)" in verdict.line


def test_a1_of_a_mixed_window_needs_both_tables_pinned(mixed: Finished) -> None:
    trust = mixed.service.trust(mixed.policy, query_embedding="proved")
    assert mixed.verify(trust=trust).passed
    for name in ("table-scan", "table-root"):
        pins = {k: v for k, v in trust.pins.embedder.items() if k != name}
        other = trust.model_copy(update={"pins": trust.pins.model_copy(update={"embedder": pins})})
        assert "query_embedding=proved(unpinned)" in mixed.verify(trust=other).line


def test_a_mixed_window_says_so_and_rests_on_the_weaker_setup(mixed: Finished) -> None:
    assert mixed.policy.tenants[0].circuits["retrieve"] == PROTOCOL
    verdict = mixed.verify()
    assert verdict.passed, verdict.deciding
    assert "proofs=groth16+scan setup=unsafe" in verdict.line
    strict = mixed.verify(require={"allow_unsafe_setup": False})
    assert strict.deciding is not None and strict.deciding.id == "trust.setup"


@pytest.mark.parametrize(("pin", "actual"), [(None, "are not pinned"), (ZERO, "another release's")])
def test_scan_proofs_count_under_the_pinned_protocols_only(
    pin: str | None, actual: str, scanned: Finished, finished: Finished
) -> None:
    for window, requested in ((scanned, True), (finished, False)):
        trust = window.service.trust(window.policy)
        assert trust.pins.scan == protocols_digest()
        other = trust.model_copy(update={"pins": trust.pins.model_copy(update={"scan": pin})})
        verdict = window.verify(trust=other)
        if not requested:  # groth16 has pins of its own
            assert verdict.passed, verdict.deciding
            continue
        assert not_passed(verdict) == {
            f"proof{name}.key.{tenant}" for name in ("", ".embed") for tenant in ("law", "medicine")
        }
        assert verdict.exit_code is UNDECIDED and verdict.deciding is not None
        assert actual in verdict.deciding.actual


def test_another_groth16_verifier_leaves_scan_proofs_to_their_own(scanned: Finished) -> None:
    assert scanned.verify(engine="py_ecc").line == scanned.verify().line


def test_a_verifier_needs_no_file_of_the_provider(scanned: Finished, tmp_path: Path) -> None:
    save_window(scanned.file, tmp_path / "window.json")
    assert scanned.verify(WindowFile.load(tmp_path)).passed


def test_an_index_commitment_too_large_for_the_file_is_a_sibling(
    scanned: Finished, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rag_audit.models import windowfile

    monkeypatch.setattr("rag_audit.models.window_writer.INLINE_BYTES", 5_000)
    save_window(scanned.file, tmp_path / "window.json")
    text = (tmp_path / "window.json").read_text()
    assert '"verification_keys":{"sibling"' in text and len(text) < 40_000
    assert scanned.verify(windowfile.WindowFile.load(tmp_path)).passed


# The cheating provider: it has its secrets, and can prove whatever the prover lets it.


@contextmanager
def provider(finished: Finished) -> Iterator[Window]:
    with Window.resume(finished.window, key=finished.service.key, clock=finished.service.clock) as window:
        yield window


@dataclass(frozen=True)
class MaliciousAnswer:
    """What a forged answer to the query of `SLOT` is made of; None is the truth.

    :param noise: the slot whose noise is added
    :param window: the window id in that slot
    :param key: changes the key that is proved under
    :param rows: changes the index that is scored
    """

    noise: SlotKey | None = None
    window: str | None = None
    key: Callable[[ScanKey], ScanKey] | None = None
    rows: bool = False


def answer_again(forge: Forge, lie: MaliciousAnswer) -> None:
    """Answer the query of `SLOT` by the lie: record, openings and proof agree with each other."""
    with provider(forge.finished) as window:
        record = window.state.by_slot[SLOT]
        retained = window.context.retained(record)
        secrets, tenant = window.commitment.secrets, window.commitment.tenants["law"]
        beacon = window.state.beacons[0]
        slot = lie.noise or SlotKey("law", *SLOT)
        name = lie.window or record.window
        noise = draw_noise(slot_key(secrets, name, slot, beacon), 8, window.policy.noise.gains)
        key, index = retrieve_key(window.context.public("law")), tenant.index
        salt = to_bytes(secrets.index_salts["law"])
        if lie.rows:
            rows = index.rows.copy()
            rows[:] = -rows
            index = dataclasses.replace(index, rows=rows)
            points = commit_index(rows.tobytes(), 64, 8, salt)
            key = dataclasses.replace(key, points=points)
            forge.value["verification_keys"][tenant.entry.c_idx] = points_json(points)
        if lie.key is not None:
            key = lie.key(key)
        vector = window.context.embedder.embed_query(retained.query)
        positions = select(index, vector, noise, ScoreWindow(key.lo, key.hi, key.lattice), 2)
        documents = attest.document_openings(tenant, positions, secrets, ())
        salts = RequestSalts.derive(bytes.fromhex(retained.salt))
        body = forge.receipt(*SLOT).body
        body["positions"], body["documents"] = positions, [d.dump() for d in documents]
        forge.record(*SLOT).update(
            htopk=to_hex(topk_commitment(salts.top_k, positions)),
            hans=answer_digest(salts.answer, [bytes.fromhex(d.hash) for d in documents]).hex(),
        )
        public = retrieve.record_public(QueryRecord.parse(forge.record(*SLOT), field="record"),
                                      window.context.public("law"), header=window.header, beacon=beacon)  # fmt: skip
        certificate = SlotProofJob(
            key,
            public.c_seed,
            public.beacon,
            slot_id(name, slot.tenant, slot.account, slot.i),
            secrets.s0,
            secrets.s1,
        )
        statement = retrieve_statement(public)
        inputs = RecordInputs(key, statement, certificate, noise.tobytes(), index.scores(vector).tobytes(),
                            vector.tobytes(), salts.vector, salts.top_k, positions, salt)  # fmt: skip
        table = window.context.embedder.table
        assert table is not None
        tokens = window.context.embedder.tokenize(retained.query)
        embedding = EmbedProofs(window.context.public("law")).statement(public)
        other = EmbedJob(EmbedKey(EMBED, table_columns(table)), embedding, table.rows, tokens,
                              salts.query, salts.vector)  # fmt: skip
        forge.proofs[SLOT] = {"retrieve": RecordsJob((inputs,), ("record",)).run(), "embed": other.run()}


def lie(**changes: Any) -> Callable[[Forge], None]:
    return lambda forge: answer_again(forge, MaliciousAnswer(**changes))


def other_window(key: ScanKey) -> ScanKey:
    return dataclasses.replace(key, window=bytes(32))


def swapped_proofs(name: str) -> Callable[[Forge], None]:
    def change(forge: Forge) -> None:
        one, other = forge.proofs[SLOT], forge.proofs["law-2", 1]
        one[name], other[name] = other[name], one[name]

    return change


def beside_false_ones(name: str, data: str) -> Callable[[Forge], None]:
    """Of two records that have each other's proof one is no proof at all."""

    def change(forge: Forge) -> None:
        swapped_proofs(name)(forge)
        result = forge.proofs["law-2", 1]
        result[name] = {**result[name], "proof": data}

    return change


def own_table() -> tuple[str, Any]:
    """A provider's own commitment: the pinned points, two columns of them exchanged."""
    data = table_columns(hashed_words.TABLE)
    rows = len(data) // hashed_words.DIMENSION
    key = EmbedKey(EMBED, data[rows : 2 * rows] + data[:rows] + data[2 * rows :])
    return key.digest.hex(), points_json(key.points)


def other_table(forge: Forge) -> None:
    forge.value["verification_keys"][hashed_words.TABLE_SCAN] = own_table()[1]


def own_table_committed(forge: Forge) -> None:
    """In the manifest under C_emb too."""
    digest, points = own_table()
    forge.value["embedder"]["embedder"]["artefacts"]["table-scan"] = digest
    forge.value["verification_keys"][digest] = points


def other_norm(forge: Forge) -> None:
    """Claimed by manifest and policy alike: a quantiser under which every component is -7 or 7."""
    forge.value["embedder"]["embedder"]["quantiser"]["norm_factor"] = 200_000
    protocol = dataclasses.replace(EMBED, norm_factor=200_000).digest()
    for tenant in forge.policy["tenants"]:
        tenant["circuits"]["embed"] = protocol
    for record in forge.queries:
        result = forge.proofs[record["account"], record["i"]]
        result["embed"]["protocol"] = protocol
        if record["proof"]:
            record["proof"] = digest_hex(result)


def from_other(part: str, source: tuple[str, int]) -> Callable[[Forge], None]:
    """Another record's certificate, or its query proof."""

    def change(forge: Forge) -> None:
        mine, other = (forge.proofs[s]["retrieve"] for s in (SLOT, source))
        forge.proofs[SLOT] = {**forge.proofs[SLOT], "retrieve": {**mine, part: other[part]}}

    return change


def rewritten(change: Callable[[bytes], bytes], part: str = "proof") -> Callable[[Forge], None]:
    """Other bytes of a proof."""

    def apply(forge: Forge) -> None:
        result = forge.proofs[SLOT]["retrieve"]
        data = change(base64.b64decode(result[part]))
        forge.proofs[SLOT] = {
            **forge.proofs[SLOT], "retrieve": {**result, part: base64.b64encode(data).decode()}
        }  # fmt: skip

    return apply


def field_of(name: str, value: Any) -> Callable[[Forge], None]:
    def apply(forge: Forge) -> None:
        forge.proofs[SLOT] = {
            **forge.proofs[SLOT],
            "retrieve": {**forge.proofs[SLOT]["retrieve"], name: value},
        }

    return apply


def points(change: Callable[[Forge, bytes], bytes]) -> Callable[[Forge], None]:
    """Other points under the tenant's C_idx."""

    def apply(forge: Forge) -> None:
        keys, c_idx = forge.value["verification_keys"], forge.value["tenants"][0]["c_idx"]
        keys[c_idx] = points_json(change(forge, base64.b64decode(keys[c_idx]["points"])))

    return apply


def of_the_other_tenant(forge: Forge, _: bytes) -> bytes:
    return base64.b64decode(forge.value["verification_keys"][forge.value["tenants"][1]["c_idx"]]["points"])


def exchanged_indices(forge: Forge) -> None:
    one, other = forge.value["tenants"]
    one["c_idx"], other["c_idx"] = other["c_idx"], one["c_idx"]


def negated(forge: Forge, data: bytes) -> bytes:
    """The first point's other square root: on the curve as well."""
    return bytes([data[0] ^ 0x80]) + data[1:]


OFF_CURVE = bytes([0x3F]) + bytes([0xFF]) * 31
NOT_CANONICAL = bytes([0xFF]) * 32


@dataclass(frozen=True)
class MaliciousProver:
    """One fault, the check that decides, and whether proofs are taken as valid (it changes what all are bound to)."""

    fault: str
    change: Callable[[Forge], Any]
    decides: str = "proof.valid.law"
    exit_code: ExitCode = FAIL
    proofs: bool = True
    also: tuple[str, ...] = ()


MALICIOUS = [
    MaliciousProver("proof of another record", swapped_proofs("retrieve")),
    MaliciousProver("proof of another record's embedding", swapped_proofs("embed"), "proof.embed.valid.law"),
    MaliciousProver("a proof that is no base64 hides no false proof", beside_false_ones("retrieve", "***")),
    MaliciousProver("a proof that is no point hides no false proof", beside_false_ones("retrieve", "/" * 64)),
    MaliciousProver(
        "an embedding's proof that is no base64 hides no false one",
        beside_false_ones("embed", "***"),
        "proof.embed.valid.law",
    ),
    MaliciousProver(
        "an embedding's proof that is no point hides no false one",
        beside_false_ones("embed", "/" * 64),
        "proof.embed.valid.law",
    ),
    MaliciousProver(
        "a record without proof of its embedding",
        lambda f: f.proofs[SLOT].pop("embed"),
        "proof.present",
        UNDECIDED,
    ),
    MaliciousProver(
        "another table than the committed one, published as such",
        other_table,
        "proof.embed.key.law",
        also=("proof.embed.key.medicine",),
    ),
    MaliciousProver(
        "no table points",
        lambda f: f.value["verification_keys"].pop(hashed_words.TABLE_SCAN),
        "proof.embed.key.law",
        UNDECIDED,
        also=("proof.embed.key.medicine",),
    ),
    MaliciousProver(
        "a table of the provider's own, in the manifest too",
        own_table_committed,
        "trust.embedder",
        proofs=False,
        also=("trust.manifest",),
    ),
    MaliciousProver(
        "a quantiser that saturates, in manifest and policy", other_norm, "trust.manifest", proofs=False
    ),
    MaliciousProver(
        "the policy names an embedding of other constants",
        lambda f: f.policy["tenants"][0]["circuits"].update(embed=ZERO),
        "proof.embed.circuit.law",
        UNDECIDED,
        proofs=False,
    ),
    MaliciousProver("certificate of another slot of the account", from_other("noise_proof", ("law-1", 1))),
    MaliciousProver("certificate of another account", from_other("noise_proof", ("law-2", 1))),
    MaliciousProver("query proof of another record", from_other("proof", ("law-2", 1))),
    MaliciousProver(
        "answered with the noise of the account's next slot", lie(noise=SlotKey("law", "law-1", 3))
    ),
    MaliciousProver(
        "answered with the noise of another account's slot", lie(noise=SlotKey("law", "law-2", 2))
    ),
    MaliciousProver(
        "answered with the noise of another tenant's slot", lie(noise=SlotKey("medicine", "law-1", 2))
    ),
    MaliciousProver("answered with the noise of another window's slot", lie(window="w-2")),
    MaliciousProver("certificate and proof made for another window", lie(key=other_window)),
    MaliciousProver("proved with other gains", lie(key=lambda k: dataclasses.replace(k, gains=(1, 5)))),
    MaliciousProver("proved in another score window", lie(key=lambda k: dataclasses.replace(k, lo=0))),
    MaliciousProver(
        "another index than the committed one, published as such", lie(rows=True), "proof.key.law"
    ),
    MaliciousProver("points of another tenant's index", points(of_the_other_tenant), "proof.key.law"),
    MaliciousProver("index points altered", points(negated), "proof.key.law"),
    MaliciousProver("index points swapped", points(lambda _, d: d[32:64] + d[:32] + d[64:]), "proof.key.law"),
    MaliciousProver(
        "index point off the curve", points(lambda _, d: OFF_CURVE + d[32:]), "proof.key.law", UNDECIDED
    ),
    MaliciousProver("index points truncated", points(lambda _, d: d[:-32]), "proof.key.law", UNDECIDED),
    MaliciousProver("index points extended", points(lambda _, d: d + d[:32]), "proof.key.law", UNDECIDED),
    MaliciousProver(
        "no index points",
        lambda f: f.value["verification_keys"].pop(f.value["tenants"][0]["c_idx"]),
        "proof.key.law",
        UNDECIDED,
    ),
    MaliciousProver("proof truncated", rewritten(lambda d: d[:-1]), exit_code=UNDECIDED),
    MaliciousProver("proof extended", rewritten(lambda d: d + bytes(32)), exit_code=UNDECIDED),
    MaliciousProver("proof empty", rewritten(lambda d: b""), exit_code=UNDECIDED),
    MaliciousProver(
        "certificate truncated", rewritten(lambda d: d[:-32], "noise_proof"), exit_code=UNDECIDED
    ),
    MaliciousProver("proof of another capacity", from_other("proof", ("medicine-1", 2)), exit_code=UNDECIDED),
    MaliciousProver(
        "certificate of another capacity",
        from_other("noise_proof", ("medicine-1", 2)),
        exit_code=UNDECIDED,
    ),
    MaliciousProver(
        "point of a proof off the curve", rewritten(lambda d: OFF_CURVE + d[32:]), exit_code=UNDECIDED
    ),
    MaliciousProver(
        "scalar of a proof not canonical", rewritten(lambda d: d[:-32] + NOT_CANONICAL), exit_code=UNDECIDED
    ),
    MaliciousProver("one bit of a point", rewritten(lambda d: bytes([d[0] ^ 0x80]) + d[1:])),
    MaliciousProver("one bit of the last scalar", rewritten(lambda d: d[:-1] + bytes([d[-1] ^ 1]))),
    MaliciousProver("proof of another protocol", field_of("protocol", OTHER_PROTOCOL), exit_code=UNDECIDED),
    MaliciousProver("proof of another system", field_of("system", "groth16"), exit_code=UNDECIDED),
    MaliciousProver("proof that is not base64", field_of("proof", "%%%"), exit_code=UNDECIDED),
    MaliciousProver(
        "proof without its certificate",
        lambda f: f.proofs[SLOT]["retrieve"].pop("noise_proof"),
        exit_code=UNDECIDED,
    ),
    MaliciousProver("a record without proof", lambda f: f.proofs.pop(SLOT), "proof.present", UNDECIDED),
    MaliciousProver(
        "the policy names another protocol",
        lambda f: f.policy["tenants"][0]["circuits"].update(retrieve=OTHER_PROTOCOL),
        "proof.circuit.law",
        UNDECIDED,
        proofs=False,
    ),
    MaliciousProver(
        "another tenant's index commitment",
        exchanged_indices,
        "proof.key.law",
        proofs=False,
        also=("proof.key.medicine",),
    ),
    MaliciousProver(
        "one index as two tenants",
        lambda f: f.value["tenants"][0].update(c_idx=f.value["tenants"][1]["c_idx"]),
        "header.indices",
        proofs=False,
        also=("proof.key.law",),
    ),
]


@pytest.fixture
def proofs_taken_as_valid(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    def take() -> None:
        monkeypatch.setattr(records, "verify_groups", taken_as_valid)

    return take


@pytest.mark.parametrize("cheat", MALICIOUS, ids=lambda c: c.fault)
def test_a_cheater_is_found_by_one_check(
    cheat: MaliciousProver, scanned: Finished, tmp_path: Path, proofs_taken_as_valid: Callable[[], None]
) -> None:
    forge = Forge(scanned)
    forge.proofs = copy.deepcopy(forge.proofs)
    cheat.change(forge)
    if not cheat.proofs:
        proofs_taken_as_valid()
    verdict = forge.verify(tmp_path)
    result = {c.id: c.status for c in verdict.checks if c.status.value != "pass"}
    assert verdict.deciding is not None and verdict.deciding.id == cheat.decides, result
    assert verdict.exit_code is cheat.exit_code, (result, verdict.deciding)
    assert set(result) == {cheat.decides, *cheat.also}, result


def test_the_forged_answer_is_good_but_for_its_lie(scanned: Finished, tmp_path: Path) -> None:
    """Without a lie the same steps make a window that passes: what the cases above find is the lie."""
    forge = Forge(scanned)
    forge.proofs = copy.deepcopy(forge.proofs)
    before = forge.proofs[SLOT]["retrieve"]
    answer_again(forge, MaliciousAnswer())
    assert forge.proofs[SLOT]["retrieve"] != before
    assert forge.verify(tmp_path).passed


@pytest.mark.parametrize(("tenant", "to"), [(0, "groth16"), (1, "scan")])
def test_a_policy_that_names_another_system_than_the_proofs_are_of(
    tenant: int, to: str, mixed: Finished, tmp_path: Path, proofs_taken_as_valid: Callable[[], None]
) -> None:
    forge = Forge(mixed)
    parts, tenants = forge.policy["tenants"], forge.value["tenants"]
    parts[tenant].update(system=to, circuits={"retrieve": parts[1 - tenant]["circuits"]["retrieve"]})
    forge.proofs = {slot: {"retrieve": created["retrieve"]} for slot, created in forge.proofs.items()}
    for record in forge.queries:
        record["proof"] = None
    parts[1 - tenant]["circuits"] = {"retrieve": parts[1 - tenant]["circuits"]["retrieve"]}
    if to == "scan":  # a key is there, and fits: only the proof is another system's
        created = commit_index(bytes(8 * 64), 64, 8, bytes(32))
        tenants[tenant]["c_idx"] = index_digest(created, 64, 8).hex()
        forge.value["verification_keys"][tenants[tenant]["c_idx"]] = points_json(created)
    proofs_taken_as_valid()
    verdict = forge.verify(tmp_path)
    name = parts[tenant]["tenant"]
    result = not_passed(verdict)
    assert result == {f"proof.valid.{name}"}, result
    assert verdict.exit_code is UNDECIDED
    # What is read first decides: the proof, or the other system's commitment to the index, which is rarely below r.
    wrong = ("the fields do not match this format", "the value is not a scan proof", "a field element")
    assert verdict.deciding is not None and verdict.deciding.actual.startswith(
        tuple(f"1 invalid proof: {reason}" for reason in wrong)
    )


def test_one_bad_proof_among_good_ones_is_named(scanned: Finished, tmp_path: Path) -> None:
    forge = Forge(scanned)
    forge.proofs = copy.deepcopy(forge.proofs)
    rewritten(lambda d: d[:-1])(forge)
    slot = ("law-2", 1)  # the other one is no proof at all; this one is false, and decides
    forge.proofs[slot]["retrieve"]["noise_proof"] = forge.proofs["law-1", 1]["retrieve"]["noise_proof"]
    verdict = forge.verify(tmp_path)
    assert verdict.exit_code is FAIL and verdict.deciding is not None
    assert verdict.deciding.at == f"record {forge.record(*slot)['seq']}"
    assert "2 invalid" in verdict.deciding.actual


# Certificates made ahead.


def test_certificates_are_made_ahead_once_for_each_next_slot(service: Service) -> None:
    seen: list[tuple[int, int]] = []
    with service.open(system={"law": "scan", "medicine": "groth16"}) as window:
        folder = window.directory / "noise-proofs"

        def names() -> list[str]:
            return sorted(p.name for p in folder.iterdir())

        assert window.precompute_noise_proofs(1, progress=lambda *counts: seen.append(counts)) == 2
        assert names() == ["law-1-1", "law-2-1"] and seen == [(0, 2), (1, 2), (2, 2)]
        assert window.precompute_noise_proofs(1) == 0
        service.ask(window, "law-1", QUESTIONS["law"][0])
        assert window.precompute_noise_proofs(1) == 1
        assert names() == ["law-1-1", "law-1-2", "law-2-1"]
        assert window.precompute_noise_proofs(9, until=lambda: True) == 0
        kept = window.noise_proofs.get(SlotKey("law", "law-1", 1))
        assert kept is not None
        window.prove()
        (result,) = WindowFile.load(window.directory / "public").proofs.values()
        assert base64.b64decode(result["retrieve"]["noise_proof"]) == kept.proof
        assert names() == ["law-1-2", "law-2-1"]
        # No slot beyond n: two queries are left to each account.
        assert window.precompute_noise_proofs(9) == 2 * 3 - 1 - 2
        window.close()
        with pytest.raises(WindowStateError):
            window.precompute_noise_proofs(1)


def test_no_certificate_before_the_account_s_beacon(service: Service) -> None:
    window = service.commit(system="scan")
    with window:
        with pytest.raises(WindowStateError):
            window.precompute_noise_proofs(1)
        service.cosign_header(window)
        service.clock.now = window.header.opens_at
        late = Account.create(service.root / "accounts" / "law-3", "law-3", "law")
        window.enrol(late.roster_entry, service.beacon())
        assert window.precompute_noise_proofs(1) == 4
        assert not (window.directory / "noise-proofs" / "law-3-1").exists()


def test_a_damaged_certificate_costs_a_new_one_and_nothing_else(
    service: Service, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with service.open(system="scan") as window:
        window.precompute_noise_proofs(1)
        path = window.directory / "noise-proofs" / "law-1-1"
        path.write_bytes(path.read_bytes()[:1_000])
        service.ask(window, "law-1", QUESTIONS["law"][0], eager=True)
        assert "the noise proof of law-1, i = 1 is made a second time" in caplog.text and not path.exists()
        service.finish(window)
        file = WindowFile.load(window.directory / "public")
    receipts = service.receipts(window, tmp_path / "receipts")
    assert verify_window(file, trust=service.trust(window.policy), receipts=[receipts]).passed


def test_an_account_s_certificate_from_another_window_is_not_used(service: Service, tmp_path: Path) -> None:
    """Copied from one window's folder to another's, where the same account has the same slot."""
    with service.open(system="scan") as first:
        first.precompute_noise_proofs(1)
        copied = (first.directory / "noise-proofs" / "law-1-1").read_bytes()
    other = Service(tmp_path / "other")
    with other.open(system="scan") as window:
        (window.directory / "noise-proofs").mkdir()
        (window.directory / "noise-proofs" / "law-1-1").write_bytes(copied)
        assert window.noise_proofs.get(SlotKey("law", "law-1", 1)) is None


def test_the_command_makes_certificates_ahead(service: Service) -> None:
    with service.open(system="scan") as window:
        directory = window.directory
    service.key.save(service.root / "key")
    (directory / "settings.json").write_bytes(jcs({"key": str(service.root / "key")}))
    for arguments, result in (([], 4), (["2"], 4), ([], 0)):
        done = CliRunner().invoke(
            main, ["provider", "prove", str(directory), "--precompute", *arguments, "--json"]
        )
        assert done.exit_code == 0, done.output
        assert json.loads(done.stdout)["created"] == result
    assert len(list((directory / "noise-proofs").iterdir())) == 8
    refused = CliRunner().invoke(
        main, ["provider", "prove", str(directory), "--precompute", "1", "--challenge", "x"]
    )
    assert refused.exit_code == 2


def test_low_memory_reaches_every_job_of_a_window(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where only low memory fits, proofs are made and verify; without it the error says what to do."""
    with service.open(system="scan") as window:
        capacity, gains = window.commitment.tenants["law"].index.capacity, window.policy.noise.gains
        steps = (
            memory.drawn_proof_bytes(capacity, gains, low_memory=True),
            memory.query_proof_bytes(capacity, low_memory=True),
        )
        with monkeypatch.context() as patch:
            patch.setattr(memory, "available_bytes", lambda: max(steps))
            with pytest.raises(MemoryLimitError, match="use --low-memory"):
                window.precompute_noise_proofs(1)
            window.low_memory = True
            assert window.precompute_noise_proofs(1) == 4
            service.ask(window, "law-1", QUESTIONS["law"][0], eager=True)
            service.ask(window, "medicine-1", QUESTIONS["medicine"][0])
            service.finish(window)
            assert window.prove() > 0
        file = WindowFile.load(window.directory / "public")
    receipts = service.receipts(window, tmp_path / "receipts")
    assert verify_window(file, trust=service.trust(window.policy), receipts=[receipts]).passed


@pytest.mark.parametrize("low", [False, True])
def test_the_commands_choose_low_memory(service: Service, monkeypatch: pytest.MonkeyPatch, low: bool) -> None:
    with service.open(system="scan") as window:
        directory = window.directory
    service.key.save(service.root / "key")
    (directory / "settings.json").write_bytes(jcs({"key": str(service.root / "key")}))
    chosen = []
    monkeypatch.setattr(
        Window, "precompute_noise_proofs", lambda self, *_, **__: chosen.append(self.low_memory) or 0
    )
    monkeypatch.setattr(Window, "prove", lambda self, *_, **__: chosen.append(self.low_memory) or 0)
    monkeypatch.setattr(
        Window, "handle", lambda self, *_, **__: chosen.append(self.low_memory) or Refusal.model_construct()
    )
    option = ["--low-memory"] * low
    for command in (
        ["provider", "prove", str(directory), "--precompute"],
        ["provider", "prove", str(directory)],
    ):
        done = CliRunner().invoke(main, [*command, *option])
        assert done.exit_code == 0, done.output
    CliRunner().invoke(main, ["provider", "serve", str(directory), "--stdio", *option], input="{}\n")
    assert chosen == [low] * 3


def test_the_command_limits_the_memory_of_drawn_noise(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    with service.open(system="scan") as window:
        directory = window.directory
    service.key.save(service.root / "key")
    (directory / "settings.json").write_bytes(jcs({"key": str(service.root / "key")}))
    chosen = []
    monkeypatch.setattr(
        Window,
        "handle",
        lambda self, *_, **__: chosen.append(self.noise_pool.max_bytes) or Refusal.model_construct(),
    )
    for option in ([], ["--noise-memory", "7"]):
        CliRunner().invoke(main, ["provider", "serve", str(directory), "--stdio", *option], input="{}\n")
    assert chosen == [1 << 30, 7 << 20]


def test_a_service_keeps_certificates_ahead_beside_its_queries(service: Service) -> None:
    with service.open(system="scan") as window:
        folder = window.directory / "noise-proofs"
        with precomputing(window, 1, print):
            deadline = time.monotonic() + 60
            while len(list(folder.glob("[!.]*"))) < 4 and time.monotonic() < deadline:
                time.sleep(0.05)
        assert sorted(p.name for p in folder.iterdir()) == [
            "law-1-1", "law-2-1", "medicine-1-1", "medicine-2-1"
        ]  # fmt: skip


# The default.


def test_new_windows_use_the_scan_argument_unless_told_otherwise() -> None:
    values: dict[str, Any] = {
        "window": "w", "opens_at": 1, "closes_at": 2, "n": 3, "k_max": 2, "eps_acc": "14", "gains": (1, 4),
        "capacities": {"a": 2_903, "b": 7},
    }  # fmt: skip
    result = draft(**values)
    assert [(t.system, t.circuits["retrieve"]) for t in result.tenants] == [("scan", PROTOCOL)] * 2
    values["capacities"] = {"a": 2_903, "b": 8}
    values["system"] = {"a": "scan", "b": "groth16"}
    assert [t.system for t in draft(**values).tenants] == ["scan", "groth16"]
    assert backend("scan") is SYSTEM


# By the command.

MALFORMED = {
    "proof truncated": "the proof ends early",
    "proof extended": "bytes after the proof's end",
    "proof of another protocol": "1 invalid proof: the proof is of another system",
    "proof of another capacity": "the proof is refused (the encoding is malformed at byte ",
    "point of a proof off the curve": "not the canonical encoding of a point",
    "scalar of a proof not canonical": "not a canonical scalar",
}


@pytest.mark.parametrize("fault", MALFORMED)
def test_the_command_names_a_malformed_proof(fault: str, scanned: Finished, tmp_path: Path) -> None:
    forge = Forge(scanned)
    forge.proofs = copy.deepcopy(forge.proofs)
    next(cheat for cheat in MALICIOUS if cheat.fault == fault).change(forge)
    file, receipts = forge.seal(tmp_path)
    save_window(file, tmp_path / "window.json")
    (tmp_path / "trust.toml").write_text(scanned.service.trust_text(scanned.policy))
    arguments = [
        "verify",
        tmp_path / "window.json",
        "--trust",
        tmp_path / "trust.toml",
        "--receipts",
        receipts,
    ]
    done = CliRunner().invoke(main, [*map(str, arguments), "--json"])
    assert done.exit_code == 2, done.output
    report = json.loads(done.stdout)
    assert report["line"] == "UNDECIDED proof.valid.law"
    (bad,) = (check for check in report["checks"] if check["outcome"] != "pass")
    assert MALFORMED[fault] in bad["actual"] and str(forge.record(*SLOT)["seq"]) in bad["at"]


@pytest.fixture(scope="module")
def asked_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed window's folder, one record to prove, its certificate made ahead; ready for the command."""
    service = Service(tmp_path_factory.mktemp("requested"))
    with service.open(system="scan") as window:
        window.precompute_noise_proofs(1)
        service.ask(window, "law-1", QUESTIONS["law"][0])
        service.finish(window)
    service.key.save(service.root / "key")
    (window.directory / "settings.json").write_bytes(jcs({"key": str(service.root / "key")}))
    return window.directory


@pytest.fixture
def requested(asked_once: Path, tmp_path: Path) -> Path:
    """A copy of it, to be changed."""
    return shutil.copytree(asked_once, tmp_path / "window")


@pytest.mark.parametrize("damage", [lambda d: d[:-1], lambda d: d[: len(d) // 2], lambda d: d[:-1] + bytes([d[-1] ^ 1])],
                         ids=["cut", "half", "one bit"])  # fmt: skip
@pytest.mark.parametrize("name", ["law.points", "law.npy"])
def test_the_command_names_an_altered_index_file(
    name: str, damage: Callable[[bytes], bytes], requested: Path
) -> None:
    path = requested / "index" / name
    path.write_bytes(damage(path.read_bytes()))
    done = CliRunner().invoke(main, ["provider", "prove", str(requested)])
    assert done.exit_code == 2
    assert "rag-audit: " in done.stderr and "index/law." in done.stderr


def test_the_command_makes_a_half_written_certificate_again(requested: Path) -> None:
    path = requested / "noise-proofs" / "law-1-1"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    (requested / "noise-proofs" / ".law-2-1.0123456789abcdef").write_bytes(b"half of a certi")
    done = CliRunner().invoke(main, ["provider", "prove", str(requested), "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["proofs"] == 2
    assert sorted(p.name for p in path.parent.iterdir()) == ["law-2-1", "medicine-1-1", "medicine-2-1"]
