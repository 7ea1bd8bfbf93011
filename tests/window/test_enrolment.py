"""Accounts that are enrolled while a window is open, and windows in a row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rag_audit._internal.canonical import jcs
from rag_audit.account.account import Account
from rag_audit.attest.window import Window
from rag_audit.errors import PolicyError, RequestRefused, SignatureError, WindowStateError
from rag_audit.log.checkpoint import Checkpoint
from rag_audit.log.merging import merge_signatures
from rag_audit.log.merkle import HashTree, leaf_hash
from rag_audit.log.note import parse_note
from rag_audit.models.records import Enrolment
from rag_audit.models.windowfile import WindowFile
from rag_audit.proofs import records
from rag_audit.proofs.backends.groth16.keys import proving_key
from rag_audit.proofs.backends.groth16.shared import CircuitProofs
from rag_audit.report.verification import verify_window
from tests.window.simulator import QUESTIONS, Service
from tests.window.standins import taken_as_valid


def enrol(service: Service, window: Window, name: str, tenant: str = "law") -> Enrolment:
    """The provider's entry for a new account."""
    service.accounts[name] = Account.create(service.root / "accounts" / name, name, tenant)
    return window.enrol(service.accounts[name].roster_entry, service.beacon())


def draw_beacon(service: Service, window: Window, enrolment: Enrolment, name: str) -> None:
    """The witnesses cosign a checkpoint that contains the enrolment, then reveal."""
    size, log_key = enrolment.seq + 1, service.key.verifier
    path = window.directory / "public" / f"checkpoint-{size}.txt"
    window.export()
    entries = [jcs(e) for e in WindowFile.load(window.directory / "public").entries]
    tree = HashTree(leaf_hash(e) for e in entries)
    for witness in service.witnesses.values():
        last = witness.last(window.header.log)
        assert last is not None
        note = witness.cosign(
            path.read_text(), log_key=log_key, consistency=tree.consistency_path(last[0], size)
        )
        window.admit([str(note)])
    service.clock.advance(1_000)
    merged = merge_signatures([parse_note(path.read_text())])
    reveals = [
        str(w.reveal(merged, entries[enrolment.seq], log_key=log_key, quorum=2, index=enrolment.seq,
                     witnesses=[x.vkey for x in service.witnesses.values()],
                     path=tree.inclusion_path(enrolment.seq, size)))
        for w in service.witnesses.values()
    ]  # fmt: skip
    window.admit(reveals)


def finish(service: Service, window: Window) -> Path:
    service.finish(window)
    window.shut()
    return window.directory


def verdict(service: Service, directory: Path, monkeypatch: pytest.MonkeyPatch, **options: Any) -> Any:
    """Verify without proofs: they are taken as valid, because these tests are not about them."""
    file = WindowFile.load(directory / "public")
    with Window.resume(directory, key=service.key, clock=service.clock) as window:
        receipts = service.receipts(window, service.root / "receipts")
        policy = window.policy
    proof = {"system": "groth16"}
    proofs = {
        str(e["seq"]): {"retrieve": proof, "embed": proof} for e in file.entries if e["type"] == "query"
    }
    keys = {instance.digest(): proving_key(instance).vk for instance in service.circuits(policy)}
    monkeypatch.setattr(records, "verify_groups", taken_as_valid)
    monkeypatch.setattr(CircuitProofs, "parse_proof", lambda *_, **__: b"")
    changed = file.model_copy(update={"proofs": proofs, "verification_keys": keys})
    trust = service.trust(policy, independent=("law-1",), **options.pop("require", {}))
    return verify_window(changed, trust=trust, receipts=[receipts], **options)


def test_an_account_enrolled_in_an_open_window(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    window = service.open()
    service.ask(window, "law-1", QUESTIONS["law"][0])
    enrolment = enrol(service, window, "law-9")
    with pytest.raises(RequestRefused) as caught:
        service.ask(window, "law-9", QUESTIONS["law"][0])
    assert caught.value.reason == "not-open"
    service.ask(window, "law-1", QUESTIONS["law"][1])
    draw_beacon(service, window, enrolment, "law-9")
    service.ask(window, "law-9", QUESTIONS["law"][0])
    assert window.state.beacons[0] != window.state.beacons[enrolment.seq]
    directory = finish(service, window)
    result = verdict(service, directory, monkeypatch)
    assert result.passed, result.deciding
    assert (result.figures["enrolments"], result.figures["accounts"]) == (1, 5)
    assert result.figures["enrolments_void_or_unused"] == 0


def test_an_enrolled_account_after_a_restart(service: Service) -> None:
    window = service.open()
    enrolment = enrol(service, window, "law-9")
    (window.directory / "public" / f"checkpoint-{enrolment.seq + 1}.txt").unlink()
    window.shut()
    with Window.resume(window.directory, key=service.key, clock=service.clock) as again:
        draw_beacon(service, again, enrolment, "law-9")
        service.ask(again, "law-9", QUESTIONS["law"][0])
    with Window.resume(window.directory, key=service.key, clock=service.clock) as again:
        service.ask(again, "law-9", QUESTIONS["law"][1])
        assert [r.i for r in again.records] == [1, 2]


def test_an_enrolment_that_got_no_beacon_is_counted(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = service.open()
    service.ask(window, "law-1", QUESTIONS["law"][0])
    enrol(service, window, "law-9")
    result = verdict(service, finish(service, window), monkeypatch)
    assert result.passed, result.deciding
    assert result.figures["enrolments_void_or_unused"] == 1


def test_a_beacon_that_comes_after_the_end_is_left_out(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = service.open()
    service.ask(window, "law-1", QUESTIONS["law"][0])
    enrolment = enrol(service, window, "law-9")
    late: list[str] = []
    admit = window.admit
    with monkeypatch.context() as patch:
        patch.setattr(window, "admit", lambda n: late.extend(n) if "rag-audit/beacon/" in n[0] else admit(n))
        draw_beacon(service, window, enrolment, "law-9")
    service.finish(window)
    end = window.checkpoint()
    assert len(late) == 2 and window.admit(late) == "final"
    assert window.checkpoint() == end
    window.shut()
    with Window.resume(window.directory, key=service.key, clock=service.clock) as again:
        again.admit(late)
        assert again.checkpoint() == end
    result = verdict(service, window.directory, monkeypatch)
    assert result.passed, result.deciding
    assert result.figures["enrolments_void_or_unused"] == 1


def test_the_tenants_cap_counts_enrolments(service: Service) -> None:
    with service.open() as window:
        enrol(service, window, "law-8")
        before = window.checkpoint()
        with pytest.raises(PolicyError) as caught:
            enrol(service, window, "law-9")
        assert caught.value.actual == 4 and window.checkpoint() == before


@pytest.mark.parametrize(
    "change", [{"account": "law-1"}, {"key": "law-1"}, {"tenant": "tax"}], ids=["id", "key", "tenant"]
)
def test_an_enrolment_that_is_refused(change: dict[str, str], service: Service) -> None:
    entry = Account.create(service.root / "accounts" / "law-9", "law-9", "law").roster_entry
    if change.get("key"):
        change = {"key": service.accounts["law-1"].roster_entry.key}
    with service.open() as window, pytest.raises(PolicyError):
        window.enrol(entry.model_copy(update=change), service.beacon())


def test_nobody_is_enrolled_outside_the_window(service: Service) -> None:
    with service.commit() as window:
        with pytest.raises(WindowStateError):
            enrol(service, window, "law-7")
        service.cosign_header(window)
        with pytest.raises(RequestRefused, match="not open"):
            enrol(service, window, "law-8")
        service.clock.now = window.header.opens_at
        window.close()
        with pytest.raises(WindowStateError):
            enrol(service, window, "law-9")


def test_a_nonce_is_revealed_only_over_a_quorum(service: Service) -> None:
    with service.commit() as window:
        entry = jcs(window.header.dump())
        text = (window.directory / "public" / "checkpoint-1.txt").read_text()
        one = service.witnesses["w1"]
        note = one.cosign_header(text, entry, log_key=service.key.verifier)
        keys = [w.vkey for w in service.witnesses.values()]
        with pytest.raises(SignatureError):
            one.reveal(note, entry, log_key=service.key.verifier, witnesses=keys, quorum=2)


def test_a_cosigned_checkpoint_that_was_not_published_is_not_taken(service: Service) -> None:
    with service.open() as window:
        note = Checkpoint(window.header.log, 7, bytes(32)).sign(service.key)
        with pytest.raises(WindowStateError, match="no such checkpoint"):
            window.admit([str(note)])
