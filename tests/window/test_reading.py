"""A window that is read while its own process has it open."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rag_audit._internal.canonical import jcs
from rag_audit._internal.clock import local_time
from rag_audit.attest.reading import WindowReader
from rag_audit.commit.stored import load_stored
from rag_audit.errors import StoreError, WindowStateError
from rag_audit.log.store import LedgerStore, read_ledger
from rag_audit.models.layout import Layout
from rag_audit.service.running.directory import without_commands
from tests.window.simulator import QUESTIONS, Service


def test_a_ledger_is_read_beside_its_writer(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    with LedgerStore(path) as store:
        store.append(b"one").result()
        assert read_ledger(path) == [(b"one", None)]
        store.append(b"two", slot=("a", 1), private=b"sample").result()
        assert read_ledger(path) == [(b"one", None), (b"two", b"sample")]
        with pytest.raises(StoreError, match="cannot be opened"):
            LedgerStore(path)
    assert read_ledger(path) == [(b"one", None), (b"two", b"sample")]
    with LedgerStore(path) as store:
        assert list(store.entries()) == [b"one", b"two"]


def test_an_altered_ledger_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    with LedgerStore(path) as store:
        store.append(b"one", slot=("a", 1), private=b"sample").result()
        store._db.execute("UPDATE entry SET private = 'other'")
        with pytest.raises(StoreError, match="altered"):
            read_ledger(path)
    with pytest.raises(StoreError, match="the folder contains no ledger"):
        read_ledger(tmp_path / "none")


def test_a_window_says_what_it_waits_for(service: Service, tmp_path: Path) -> None:
    window = service.commit()
    folder, now = window.directory, service.clock
    first, second = service.witnesses.values()
    header, text = jcs(window.header.dump()), window.publisher.publish_checkpoint(1)

    def waits() -> str:
        result = WindowReader(folder).standing(now())
        assert result.is_open and result.status == window.status
        return result.waits_for

    with window:
        assert waits().startswith(f"cosignatures of {first.vkey.name}, {second.vkey.name}: ")
        window.admit([str(first.cosign_header(text, header, log_key=service.key.verifier))])
        assert waits().startswith(f"cosignatures of {second.vkey.name}: ")
        with pytest.raises(WindowStateError) as caught:
            window.precompute_noise_proofs(1)
        assert f"cosignatures of {second.vkey.name}" in str(caught.value.hint)
        service.cosign_header(window)
        assert waits() == f"its time: it opens at {local_time(window.header.opens_at)}"
        now.now = window.header.opens_at
        assert "`rag-audit provider serve`" in waits()
        assert WindowReader(folder).standing(now()).since == window.header.opens_at
        service.ask(window, "law-1", QUESTIONS["law"][0])
        result = WindowReader(folder).standing(now())
        assert (result.records, result.requested, result.proved) == (1, 1, 0)
        window.close()
        assert waits().startswith(
            f"cosignatures of {first.vkey.name}, {second.vkey.name} on the final checkpoint"
        )
        service.finish(window)
        left = "0 of 1 record proved, 1 remains"
        assert f"`rag-audit provider prove --challenge NOTE`): {left}" in waits()
        assert without_commands(waits()) == f"a verifier's challenge: {left}"
        result = WindowReader(folder).standing(now(), proves_all=True)
        assert result.waits_for == f"the run's proofs: {left}"
        window.prove()
        assert waits() == "nothing: its record is proved"
        written = sorted(Layout(folder).proofs.glob(f"{window.records[0].seq}-*.json"))
        assert len(written) == len(window.context.statements("law")) > 1
        written[0].rename(tmp_path / "moved")  # a record with a part of its proofs is not proved
        assert left in waits()
        (tmp_path / "moved").rename(written[0])
    result = WindowReader(folder).standing(now())
    assert (result.status, result.is_open, result.proved) == ("final", False, 1)


def test_an_open_window_is_estimated(service: Service) -> None:
    with service.open() as window:
        for account in ("law-1", "law-2"):
            service.ask(window, account, QUESTIONS["law"][0])
        result = WindowReader(window.directory).estimate()
        assert result.c == 2
        assert replace(result) == window.estimate()


def test_another_release_of_the_embedder_makes_no_estimate(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    with service.open() as window:
        service.ask(window, "law-1", QUESTIONS["law"][0])
        part = {**window.context.embedder.manifest(), "kind": "another"}
        monkeypatch.setattr(type(window.context.embedder), "manifest", lambda self: part)
        with pytest.raises(StoreError, match="the embedder differs from the committed embedder"):
            WindowReader(window.directory).estimate()


def test_a_folder_without_a_window_is_named(service: Service, tmp_path: Path) -> None:
    with pytest.raises(WindowStateError, match="the folder contains no window"):
        WindowReader(tmp_path / "none")
    with service.open() as window:
        assert load_stored(window.directory).header == window.header
