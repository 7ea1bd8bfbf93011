"""A window in two parts: prepared ahead while another one serves, and opened later without its texts and rows."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from rag_audit.attest.window import Window
from rag_audit.commit.commitment import WindowSecrets
from rag_audit.commit.preparing import load_preparation, open_prepared, prepare
from rag_audit.commit.stored import load_commitment, unfinished
from rag_audit.errors import PolicyError, StoreError, WindowStateError
from rag_audit.models.chain import ClosedWindow
from rag_audit.models.publication import Publication
from rag_audit.models.records import WindowHeader
from rag_audit.models.windowfile import WindowFile
from rag_audit.proofs.backends.scan.store import RUN
from rag_audit.report.verification import verify_window
from rag_audit.retrieval.embedders import get_embedder
from rag_audit.retrieval.vectors import CachedEmbedder
from tests.window.simulator import EMBEDDER, ORIGIN, QUERY_TOKENS, QUESTIONS, TEXTS, Service
from tests.window.test_crash import KILLED, die_in_files, die_in_store, in_child
from tests.window.test_open import kept


def precomputed(
    service: Service,
    name: str = "next",
    *,
    texts: Mapping[str, Sequence[str]] = TEXTS,
    embedder: Any = None,
    progress: Any = None,
    **changes: Any,
) -> Path:
    """A prepared window of scan tenants; its policy has the witnesses' nonces."""
    prepare(
        service.root / name,
        policy=service.policy(system="scan", **{"window": name, **changes}),
        roster=[a.roster_entry for a in service.accounts.values()],
        documents=texts,
        embedder=embedder or get_embedder(EMBEDDER, query_tokens=QUERY_TOKENS),
        origin=ORIGIN,
        beacon=service.beacon(),
        progress=progress,
    )
    return service.root / name


def opened(service: Service, folder: Path, **options: Any) -> WindowHeader:
    return open_prepared(folder, key=service.key, clock=service.clock, **options)


def resumed(service: Service, folder: Path) -> Window:
    return Window.resume(folder, key=service.key, clock=service.clock)


def test_the_next_window_is_prepared_while_one_serves_and_follows_it(
    service: Service, work: list[Any], tmp_path: Path
) -> None:
    with service.open("first", system="scan", window="first") as first:
        service.ask(first, "law-1", QUESTIONS["law"][0])
        folder = precomputed(service)
        service.ask(first, "medicine-1", QUESTIONS["medicine"][0])
        service.finish(first)  # an hour before its date
    assert not list((folder / "public").iterdir()) and unfinished(folder)
    work.clear()
    before = kept(folder)
    previous = ClosedWindow.of(WindowFile.load(first.directory / "public"), field="first").as_previous()
    header = opened(service, folder, previous=previous, opens_in=5_000)
    assert header.opens_at == service.clock() + 5_000 < first.header.closes_at
    assert Publication.load(folder / "public").parsed_header() == header and work == []
    with resumed(service, folder) as second:
        assert kept(folder) == before and work == []
        assert not (folder / "prepared.json").exists() and not (folder / "unfinished.json").exists()
        service.cosign_header(second)
        service.clock.now = header.opens_at
        service.ask(second, "law-1", QUESTIONS["law"][0])
        service.ask(second, "medicine-1", QUESTIONS["medicine"][0])
        service.finish(second)
        second.prove()
        verdict = verify_window(
            WindowFile.load(folder / "public"),
            trust=service.trust(second.policy),
            receipts=[service.receipts(second, tmp_path / "receipts")],
            previous=[first.directory / "public" / "window.json"],
        )
    assert verdict.passed, verdict.deciding
    assert "1 earlier window, " in next(c.actual for c in verdict.checks if c.id == "header.chain")


def test_a_preparation_that_was_killed_goes_on_where_it_stopped(service: Service, work: list[Any]) -> None:
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:

        def stop(step: str, done: int, _: int) -> None:
            if (step, done) == ("index of law", 3 * RUN):
                os.write(writer, b"here")
                time.sleep(600)

        try:
            precomputed(service, progress=stop)
        finally:
            os._exit(1)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        assert pipe.read(4) == b"here"
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    folder = service.root / "next"
    before = kept(folder)
    with pytest.raises(WindowStateError, match="no window is prepared"):
        opened(service, folder)
    precomputed(service)
    law = [("law.npy", first) for first in range(3 * RUN, 64, RUN)]
    assert work == [*law, TEXTS["medicine"], *[("medicine.npy", first) for first in range(0, 64, RUN)]]
    assert kept(folder) == before
    assert opened(service, folder).window == "next"


def test_a_late_preparation_is_dated_anew_with_the_index_kept(service: Service, work: list[Any]) -> None:
    folder = precomputed(service, progress=lambda *_: service.clock.advance(3_600_000))
    result, _ = load_preparation(folder)
    draft = result.parsed_policy()
    assert draft.opens_at < service.clock()
    before = kept(folder)
    work.clear()
    with pytest.raises(PolicyError, match="before it opens") as caught:
        opened(service, folder)
    assert "--opens-in" in str(caught.value.hint) and unfinished(folder)
    shutil.copytree(folder, service.root / "copy")
    moved = opened(service, folder, opens_in=30_000)
    later = draft.moved(service.clock() + 60_000).model_copy(update={"window": "w-later"})
    other = opened(service, service.root / "copy", policy=later)
    assert (moved.window, other.window) == ("next", "w-later")
    assert (
        other.opens_at == later.opens_at
        and moved.closes_at - moved.opens_at == later.closes_at - later.opens_at
    )
    assert work == [] and kept(folder) == before
    for directory in (folder, service.root / "copy"):
        commitment, _ = load_commitment(directory, service.clock())
        assert [t.entry for t in commitment.tenants.values()] == result.tenants


def test_another_policy_needs_the_documents_again_and_keeps_the_index(
    service: Service, work: list[Any]
) -> None:
    folder = precomputed(service)
    before = kept(folder)
    work.clear()
    with pytest.raises(PolicyError, match="another policy") as caught:
        opened(service, folder, policy=service.policy(system="scan", window="next", n=2))
    assert caught.value.field == "policy.n" and "--docs" in str(caught.value.hint)
    with service.commit("next", system="scan", window="next", n=2) as window:
        assert window.policy.n == 2 and work == [] and kept(folder) == before


def test_a_prepared_window_is_neither_prepared_nor_opened_twice(service: Service) -> None:
    folder = precomputed(service)
    opened(service, folder)
    for again in (lambda: opened(service, folder), lambda: precomputed(service)):
        with pytest.raises(WindowStateError, match="the folder already contains a window"):
            again()


def test_a_copy_of_a_prepared_window_draws_no_noise_from_its_seed(service: Service) -> None:
    folder = precomputed(service)
    before = WindowSecrets.load(folder / "secrets.json")
    shutil.copytree(folder, service.root / "copy")
    openings = [opened(service, folder), opened(service, service.root / "copy")]
    assert openings[0].c_seed != openings[1].c_seed and openings[0].tenants == openings[1].tenants
    result = [WindowSecrets.load(f / "secrets.json") for f in (folder, service.root / "copy")]
    assert len({s.s0 for s in (before, *result)}) == len({s.s1 for s in (before, *result)}) == 3
    for place in (folder, service.root / "copy"):
        assert (place / "secrets.json").stat().st_mode & 0o777 == 0o600
        resumed(service, place).shut()


def test_a_part_that_is_missing_is_said_before_anything_is_published(service: Service) -> None:
    folder = precomputed(service)
    (folder / "documents.sqlite").unlink()
    with pytest.raises(StoreError, match="part of the prepared window is missing"):
        opened(service, folder)
    assert not list((folder / "public").iterdir())
    precomputed(service)
    opened(service, folder)


@pytest.mark.parametrize("arm", [die_in_files, die_in_store], ids=["files", "ledger"])
def test_opening_what_is_prepared_survives_a_crash_at_every_write(service: Service, arm: Any) -> None:
    template = precomputed(service)
    status, at = KILLED, 0
    while status == KILLED:
        assert at < 60
        folder = service.root / f"at-{at}"
        shutil.copytree(template, folder)

        def work(_: Any, folder: Path = folder, at: int = at) -> None:
            arm(at)
            opened(service, folder)

        status, _ = in_child(work)
        if unfinished(folder):
            opened(service, folder)
        with resumed(service, folder) as window:
            public = Publication.load(folder / "public")
            public.check()
            assert public.parsed_header() == window.header and len(window.state.entries) == 1
            assert (folder / "public" / "checkpoint-1.txt").exists()
        shutil.rmtree(folder)
        at += 1
    assert status == 0 and at > 3


def test_windows_over_the_same_vectors_share_no_commitment_position_or_blinding(
    service: Service, work: list[Any], tmp_path: Path
) -> None:
    cache = tmp_path / "vectors" / "cache.sqlite"
    plain = get_embedder(EMBEDDER, query_tokens=QUERY_TOKENS)
    folders, said = [], []
    for name in ("a", "b"):
        with CachedEmbedder(plain, cache, say=said.append) as cached:
            folders.append(precomputed(service, name, embedder=cached, capacities=dict.fromkeys(TEXTS, 80)))
            assert cached.reused == (0 if name == "a" else sum(map(len, TEXTS.values())))
    assert [texts for texts in work if isinstance(texts, list)] == list(TEXTS.values()) and said == []
    for folder in folders:
        opened(service, folder)
    (one, _), (two, _) = (load_commitment(folder, service.clock()) for folder in folders)
    secrets = [WindowSecrets.load(folder / "secrets.json") for folder in folders]
    for part in ("s0", "s1", "document_key", "retention_key"):
        assert getattr(secrets[0], part) != getattr(secrets[1], part)
    for tenant in TEXTS:
        first, second = one.tenants[tenant], two.tenants[tenant]
        assert secrets[0].index_salts[tenant] != secrets[1].index_salts[tenant]
        assert first.index.positions != second.index.positions
        assert first.entry.c_idx != second.entry.c_idx and first.entry.c_docs != second.entry.c_docs
        points = [{p.points[i : i + 32] for i in range(0, len(p.points), 32)} for p in (first, second)]
        assert points[0] and not points[0] & points[1]
        assert set(first.documents_at.values()) == set(second.documents_at.values())
    assert one.header.c_seed != two.header.c_seed
