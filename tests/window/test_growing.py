"""What is published while a window is open: entries for witnesses, at a cost that does not grow with the window."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rag_audit.attest import publishing
from rag_audit.attest.publishing import Publisher
from rag_audit.attest.window import Window
from rag_audit.log.merkle import leaf_hash
from rag_audit.models import window_writer
from rag_audit.models.records import Entry, QueryRecord
from rag_audit.models.windowfile import WindowFile
from tests.counting import counted
from tests.window.simulator import QUESTIONS, Service
from tests.window.test_enrolled_batch import cosigned, drawn_for, lines_of

TILE = 20_000


@pytest.fixture
def window(service: Service, monkeypatch: pytest.MonkeyPatch) -> Iterator[Window]:
    monkeypatch.setattr(publishing, "OPEN_TILE_BYTES", TILE)
    with service.open(accounts_max=5) as window:
        service.ask(window, "law-1", QUESTIONS["law"][0])
        yield window


def grow(window: Window, entries: int) -> None:
    """Bring the ledger in memory to so many entries; those added are copies of its last record."""
    state = window.state
    record = next(e for e in reversed(state.entries) if isinstance(e, QueryRecord))
    for seq in range(len(state.entries), entries):
        entry: Entry = record.model_copy(update={"seq": seq})
        state.entries.append(entry)
        state.tree.append(leaf_hash(entry.canonical()))


def test_one_more_publication_costs_the_same_however_many_entries_there_are(
    window: Window, monkeypatch: pytest.MonkeyPatch
) -> None:
    public, looked = window.directory / "public", []
    monkeypatch.setattr(Publisher, "proof_path", lambda *args: looked.append(args))
    costs = []
    for size in (400, 800, 1600):
        grow(window, size)
        window.publisher.publish_enrolments(size)
        grow(window, size + 3)
        with (
            counted(window_writer, "replace_file", lambda path, data: len(data)) as written,
            counted(QueryRecord, "dump") as dumped,
        ):
            window.publisher.publish_enrolments(size + 3)
        costs.append((written.count, dumped.count))
        file = WindowFile.load(public)
        assert file.entries == [e.dump() for e in window.state.entries]
        assert file.final_head().root == window.state.tree.root(size + 3)
        assert len(list((public / "tiles").iterdir())) <= 2 + sum(len(str(e)) for e in file.entries) // TILE
    head = len((public / "window.json").read_bytes())
    assert all(size <= head + 2 * TILE and entries <= 2 * TILE // 500 for size, entries in costs), costs
    assert not looked


def test_witnesses_follow_a_window_in_tiles(service: Service, window: Window) -> None:
    public = window.directory / "public"
    first = window.enrol_all(lines_of(service, ("law-7",)), service.beacon())
    assert b'"tiles":[' not in (public / "window.json").read_bytes()
    window.admit(cosigned(service, window))
    publishing.OPEN_TILE_BYTES = 1_000  # which the fixture takes back
    second = window.enrol_all(lines_of(service, ("law-8", "law-9")), service.beacon())
    assert b'"tiles":[' in (public / "window.json").read_bytes()
    window.admit(cosigned(service, window))
    assert drawn_for(window) == [0, first[0].seq, *(e.seq for e in second)]


def test_who_publishes_late_leaves_the_later_file(window: Window) -> None:
    """Two batches may be published in another order than they were appended in."""
    public = window.directory / "public"
    grow(window, 8)
    window.publisher.publish_enrolments(8)
    window.publisher.publish_enrolments(5)
    assert (public / "checkpoint-5.txt").exists() and len(WindowFile.load(public).entries) == 8


def test_a_reader_of_the_file_before_still_finds_its_tiles(window: Window) -> None:
    public = window.directory / "public"
    names: list[set[str]] = []
    for size in (200, 203, 206):
        grow(window, size)
        window.publisher.publish_enrolments(size)
        names.append({p.name for p in (public / "tiles").iterdir()})
    (end,) = names[1] - names[0]
    assert end in names[2] and not names[0] <= names[2]


def test_a_closed_window_is_published_whole(service: Service, window: Window) -> None:
    """With a publication that comes too late, which would have no proofs."""
    service.finish(window)
    before = (window.directory / "public" / "window.json").read_bytes()
    window.publisher.publish_enrolments(2)
    assert (window.directory / "public" / "window.json").read_bytes() == before
