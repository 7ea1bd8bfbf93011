"""An interrupted opening goes on where it stopped with the same secrets, and only for the same documents."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rag_audit.attest.window import Window
from rag_audit.commit.commitment import WindowSecrets
from rag_audit.errors import PolicyError, StoreError, WindowStateError
from rag_audit.models.passage import passage
from rag_audit.models.windowfile import WindowFile
from rag_audit.proofs.backends.scan.store import RUN
from rag_audit.report.verification import verify_window
from rag_audit.retrieval.documents import DocumentStore
from tests.window.simulator import QUESTIONS, TEXTS, Service

MIDDLE = ("index of law", 3 * RUN)


@contextmanager
def child_at(service: Service, place: tuple[str, int], **changes: Any) -> Iterator[int]:
    """A process that opens a scan window, and stands still where its progress says `place`."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:

        def stop(step: str, done: int, _: int) -> None:
            if (step, done) == place:
                os.write(writer, b"here")
                time.sleep(600)

        try:
            service.commit(system="scan", progress=stop, **changes).shut()
        finally:
            os._exit(1)
    os.close(writer)
    try:
        with os.fdopen(reader, "rb") as pipe:
            assert pipe.read(4) == b"here"
        yield pid
    finally:
        os.kill(pid, signal.SIGKILL)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL


def kill_at(service: Service, place: tuple[str, int], **changes: Any) -> Path:
    with child_at(service, place, **changes):
        pass
    return service.root / "window"


def kept(directory: Path) -> dict[str, bytes]:
    """What an interruption must not change: rows, their places, and the secrets that were used on them."""
    secrets = json.loads((directory / "secrets.json").read_bytes())
    blindings = json.dumps({k: v for k, v in secrets.items() if k not in ("s0", "s1")}).encode()
    names = ("index/law.npy", "index/law.positions.npy")
    return {"blindings": blindings, **{name: (directory / name).read_bytes() for name in names}}


def test_an_opening_that_was_killed_goes_on_where_it_stopped(
    service: Service, work: list[Any], tmp_path: Path
) -> None:
    directory = kill_at(service, MIDDLE)
    before = kept(directory)
    part = (directory / "index" / "law.points.part").read_bytes()
    assert not list((directory / "public").iterdir()) and not (directory / "ledger.sqlite").exists()
    assert work == []
    with service.open(system="scan") as window:
        law = [("law.npy", first) for first in range(3 * RUN, 64, RUN)]
        medicine = [("medicine.npy", first) for first in range(0, 64, RUN)]
        assert work == [*law, TEXTS["medicine"], *medicine]
        assert kept(directory) == before
        points = window.commitment.tenants["law"].points
        assert all(points[i : i + 32] in part for i in range(0, 3 * RUN * 32, 32))
        assert not (directory / "unfinished.json").exists()
        service.ask(window, "law-1", QUESTIONS["law"][0], eager=True)
        service.finish(window)
        file = WindowFile.load(directory / "public")
        receipts = service.receipts(window, tmp_path / "receipts")
        assert verify_window(file, trust=service.trust(window.policy), receipts=[receipts]).passed


def test_other_documents_begin_anew_with_other_secrets(service: Service, work: list[Any]) -> None:
    directory = kill_at(service, MIDDLE)
    before = WindowSecrets.load(directory / "secrets.json")
    part = (directory / "index" / "law.points.part").read_bytes()
    changed = {**TEXTS, "law": [*TEXTS["law"][:-1], "Another law."]}
    with service.commit(system="scan", documents=changed) as window:
        after = window.commitment.secrets
        assert work[0] == changed["law"]
        assert [w for w in work if isinstance(w, tuple)] == [
            (f"{tenant}.npy", first) for tenant in TEXTS for first in range(0, 64, RUN)
        ]
        assert before.index_salts.keys() == after.index_salts.keys()
        assert not set(before.index_salts.values()) & set(after.index_salts.values())
        assert before.s0 != after.s0 and before.document_key != after.document_key
        points = window.commitment.tenants["law"].points
        assert not any(points[i : i + 32] in part for i in range(0, len(points), 32))


@pytest.mark.parametrize("system", ["groth16", {"law": "groth16", "medicine": "scan"}])
def test_a_salt_does_not_pass_from_one_proof_system_to_the_other(service: Service, system: Any) -> None:
    directory = kill_at(service, MIDDLE)
    before = WindowSecrets.load(directory / "secrets.json").index_salts
    with service.commit(**{"system": system}) as window:
        assert window.commitment.secrets.index_salts["law"] != before["law"]


def test_rows_that_were_changed_meanwhile_are_refused(service: Service) -> None:
    """The finished parts hide the true rows; the same blindings never hide others."""
    directory = kill_at(service, MIDDLE)
    path = directory / "index" / "law.npy"
    rows = np.load(path)
    rows[0, 0] = 1 if rows[0, 0] != 1 else 2
    np.save(path, rows)
    with pytest.raises(StoreError, match="unfinished index commitment is not this index's"):
        service.commit(system="scan")
    assert not (directory / "ledger.sqlite").exists()


@pytest.mark.parametrize(
    "place",
    [("documents of law", 0), ("documents of law", 5), ("index of law", 0), ("index of medicine", 64)],
)
def test_killed_at_other_places(service: Service, place: tuple[str, int]) -> None:
    directory = kill_at(service, place)
    with service.open(system="scan") as window:
        assert window.status == "active"
    names = {p.name for p in (directory / "index").iterdir()}
    assert names == {f"{t}.{kind}" for t in TEXTS for kind in ("npy", "positions.npy", "points")}


def test_nobody_else_opens_while_an_opening_runs(service: Service) -> None:
    with child_at(service, MIDDLE), pytest.raises(WindowStateError, match="another process"):
        service.commit(system="scan")


def test_an_opening_that_is_durable_is_not_begun_again(service: Service) -> None:
    """Killed after entry 0 and before anything else: the folder is a window's, whatever stands in it."""
    with service.commit(system="scan") as window:
        directory = window.directory
    before = kept(directory)
    (directory / "unfinished.json").write_text(json.dumps({"v": 1, "inputs": "00" * 32}))
    with pytest.raises(WindowStateError, match="the folder already contains a window"):
        service.commit(system="scan")
    assert kept(directory) == before
    with Window.resume(directory, key=service.key, clock=service.clock) as window:
        assert not (directory / "unfinished.json").exists()


@pytest.mark.parametrize("lost", ["ledger.sqlite", "commitment.json"])
def test_a_window_that_lost_a_file_is_not_opened_over(service: Service, lost: str) -> None:
    with service.commit(system="scan") as window:
        directory = window.directory
    before = kept(directory)
    for path in directory.glob(f"{lost}*"):
        path.unlink()
    with pytest.raises(WindowStateError, match="the folder already contains a window"):
        service.commit(system="scan")
    assert kept(directory) == before


def hours_a_step(service: Service) -> Any:
    """Progress of an opening each of whose steps takes an hour."""

    def step(name: str, done: int, total: int) -> None:
        service.clock.advance(3_600_000)

    return step


def test_a_window_is_dated_once_it_is_prepared(service: Service) -> None:
    draft = service.policy(system="scan")
    began = service.clock()
    with service.commit(system="scan", opens_in=30_000, progress=hours_a_step(service)) as window:
        assert service.clock() > began + 3_600_000
        assert window.header.opens_at == service.clock() + 30_000
        assert window.header.closes_at - window.header.opens_at == draft.closes_at - draft.opens_at
        assert window.policy == draft.moved(window.header.opens_at)
        assert window.policy.delete_after - draft.delete_after == window.header.opens_at - draft.opens_at
        assert window.header.c_policy == window.policy.digest()
        service.cosign_header(window)
        assert window.status == "active"


def test_a_window_is_dated_once_its_texts_are_stored(service: Service) -> None:
    """Storing a million texts takes longer than witnesses may have to cosign the opening."""
    clock, path = service.clock, service.root / "window" / "documents.sqlite"
    stored: dict[int, list[str]] = {}

    def looking() -> int:
        clock.advance(1)
        if path.exists():
            with DocumentStore(path) as documents:
                stored[clock()] = sorted(documents.tenants())
        return clock()

    service.clock = looking  # type: ignore[assignment]
    with service.commit(opens_in=30_000) as window:
        assert stored[window.header.opens_at - 30_000] == sorted(TEXTS)


def test_texts_of_an_attempt_that_was_given_up_do_not_stay(service: Service) -> None:
    with pytest.raises(PolicyError, match="committed before it opens"):
        service.commit(progress=hours_a_step(service))
    path = service.root / "window" / "documents.sqlite"
    with DocumentStore(path) as documents:
        documents.replace("another", {0: passage("A text of a tenant that the policy no longer has.")})
    with service.commit(opens_in=30_000), DocumentStore(path) as documents:
        assert sorted(documents.tenants()) == sorted(TEXTS)


def test_a_window_that_took_longer_than_its_date_is_not_opened_and_goes_on_with_another(
    service: Service, work: list[Any]
) -> None:
    with pytest.raises(PolicyError, match="committed before it opens") as caught:
        service.commit(system="scan", progress=hours_a_step(service))
    assert caught.value.field == "policy.opens_at" and "--opens-in" in str(caught.value.hint)
    directory = service.root / "window"
    assert not list((directory / "public").iterdir()) and not (directory / "ledger.sqlite").exists()
    before = kept(directory)
    assert TEXTS["law"] in work
    work.clear()
    with service.commit(system="scan"):
        assert work == [] and kept(directory) == before
