"""What is published over HTTP: the public folder's files, the ledger as tiles, and how long caches keep them."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rag_audit.attest.window import Window
from rag_audit.log.checkpoint import Checkpoint, open_checkpoint
from rag_audit.log.merkle import leaf_hash
from rag_audit.log.note import parse_note
from rag_audit.log.signing import SigningKey
from rag_audit.log.tiles import export_tiles, read_tiles
from rag_audit.log.tree import MerkleTree
from rag_audit.models.publication import Publication
from rag_audit.service import public
from rag_audit.service.public import CHECKPOINT_S, LiveLog, open_public
from rag_audit.service.windows import Windows
from tests.serving.conftest import Served, serving
from tests.window.simulator import Service


def test_the_publication_is_the_window_s_and_a_cache_asks_for_it_each_time(served: Served) -> None:
    result = served.get("/public/header.json")
    assert (result.status, result.headers["content-type"]) == (200, "application/json")
    assert result.headers["cache-control"] == "no-cache"
    assert Publication.parse(result.value, field="header.json") == served.publication
    same = served.get("/public/header.json", If_None_Match=result.headers["etag"])
    assert (same.status, same.body, same.headers["etag"]) == (304, b"", result.headers["etag"])
    other = served.get("/public/header.json", If_None_Match='"another"')
    assert (other.status, other.body) == (200, result.body)
    head = served.get("/public/header.json", "HEAD")
    assert (head.status, head.body) == (200, b"")
    assert head.headers["content-length"] == str(len(result.body))


def test_a_file_that_is_replaced_has_another_tag(parties: Service) -> None:
    # The window is the test's own: other tests count on the shared one having no window.json.
    with parties.open(system="scan") as window, serving(parties, window) as served:
        window.export()
        before = served.get("/public/window.json")
        window.export()
        after = served.get("/public/window.json", If_None_Match=before.headers["etag"])
    assert after.status == 200 and after.headers["etag"] != before.headers["etag"]


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("checkpoint-1.txt", "no-cache"),
        ("checkpoint", "no-cache"),
        ("tile/0/000.p/2", "public, max-age=60"),
        ("tile/entries/000.p/1", "public, max-age=60"),
        ("challenges/" + "a" * 64 + ".txt", "public, max-age=31536000, immutable"),
        ("b" * 64 + ".json", "public, max-age=31536000, immutable"),
        ("tiles/" + "c" * 64 + ".json", "public, max-age=31536000, immutable"),
        ("notes/cosign-1-w1.txt", "no-cache"),
    ],
)
def test_a_window_s_own_address_is_kept_for_as_long_as_it_stays_true(
    served: Served, name: str, kept: str
) -> None:
    path = served.window.directory / "public" / name
    if not path.exists() and not name.startswith(("tile/", "checkpoint")):
        path.parent.mkdir(exist_ok=True)
        path.write_text("content")
    lasting, current = served.get(f"/windows/w-1/{name}"), served.get(f"/public/{name}")
    assert lasting.status == current.status == 200
    assert lasting.headers["cache-control"] == kept
    assert current.headers["cache-control"] == "no-cache", "the next window has the same address"
    again = served.get(f"/windows/w-1/{name}", If_None_Match="W/" + lasting.headers["etag"])
    assert again.status == 304


OUTSIDE = [
    "../secrets.json",
    "..%2fsecrets.json",
    "%2e%2e/secrets.json",
    "notes/../../secrets.json",
    "notes%2f..%2f..%2fsecrets.json",
    "/etc/passwd",
    "%2fetc%2fpasswd",
    ".lock",
    "",
    "notes",
    "notes/",
    "notes/.hidden.txt",
    "header.json%00.txt",
    "settings.json",
    "checkpoint-0.txt",
    "tile/0/000",
    "tile/0/0",
    "tile/0/x000/000",
    "tile/8/000.p/1",
    "tile/0/000.p/0",
    "tile/0/000.p/256",
    "tile/00/000.p/1",
    "tile/entries/000.p/999",
]


@pytest.mark.parametrize("name", OUTSIDE)
def test_nothing_else_is_served(served: Served, name: str) -> None:
    assert (served.window.directory / "secrets.json").exists()
    for prefix in ("/public/", "/windows/w-1/", "/windows/w-2/"):
        assert served.get(prefix + name).status == 404


def test_another_window_s_address_has_nothing(served: Served) -> None:
    assert served.get("/windows/w-2/header.json").status == 404
    assert served.get("/windows/w-1/header.json").status == 200


def test_links_to_what_is_not_public_are_not_followed(served: Served) -> None:
    secrets = served.window.directory / "secrets.json"
    notes = served.window.directory / "public/notes"
    notes.mkdir(exist_ok=True)
    (notes / "link.txt").symlink_to(secrets)
    os.link(secrets, notes / "second-name.txt")
    os.mkfifo(notes / "fifo.txt")
    (notes / "folder.txt").mkdir()
    (notes / "plain.txt").write_text("a note")
    for name in ("link", "second-name", "fifo", "folder"):
        assert served.get(f"/public/notes/{name}.txt").status == 404
    assert served.get("/public/notes/plain.txt").body == b"a note"


def test_a_file_is_closed_though_its_client_left_before_the_first_part(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[Any] = []

    def recorded(folder: Path, name: str) -> Any:
        opened.append(result := open_public(folder, name))
        return result

    async def send(message: Any) -> None:
        raise ConnectionResetError

    async def receive() -> Any:
        await asyncio.Event().wait()

    monkeypatch.setattr(public, "open_public", recorded)
    scope: dict[str, Any] = {
        "type": "http", "asgi": {"version": "3.0", "spec_version": "2.4"}, "http_version": "1.1", "method": "GET",
        "scheme": "http", "path": "/public/header.json", "root_path": "", "query_string": b"", "headers": [],
    }  # fmt: skip
    asyncio.run(served.service.app(scope, receive, send))
    [(file, _)] = opened
    assert file.closed


def test_files_of_any_size_arrive_whole(served: Served) -> None:
    content = os.urandom(700_000)
    name = hashlib.sha256(content).hexdigest() + ".json"
    (served.window.directory / "public" / name).write_bytes(content)
    assert served.get(f"/public/{name}").body == content


def test_an_open_window_s_ledger_is_read_by_a_tile_reader(served: Served, tmp_path: Path) -> None:
    request = served.request("law-1", "What is a contract?")
    served.accept("law-1", request, served.post("/v1/query", request.canonical()))
    size = served.window.state.tree.size
    served.service.app.public._log(served.window)._signed = None  # as after `CHECKPOINT_S`
    for name in ("checkpoint", f"tile/0/000.p/{size}", f"tile/entries/000.p/{size}"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(served.get(f"/windows/w-1/{name}").body)
    note, entries = read_tiles(tmp_path)
    head = open_checkpoint(note, origin=served.window.header.log, log_key=served.parties.key.verifier)
    assert head.checkpoint.size == len(entries) == size
    assert entries == list(served.window.state.store.entries())


class Log:
    """A window with nothing but a ledger, of more entries than a tile of tiles has."""

    def __init__(self, count: int) -> None:
        self.bodies = [b"entry %d" % number for number in range(count)]
        self.key = SigningKey.generate("log.example.org")
        self.state = SimpleNamespace(
            tree=MerkleTree(leaf_hash(body) for body in self.bodies),
            store=SimpleNamespace(entries=self.entries),
            ended=False,
        )

    def entries(self, start: int) -> Iterator[bytes]:
        return iter(self.bodies[start:])

    def checkpoint(self) -> str:
        tree = self.state.tree
        return str(Checkpoint("log.example.org/w", tree.size, tree.root()).sign(self.key))


def test_live_tiles_are_those_of_an_exported_log(tmp_path: Path) -> None:
    log: Any = Log(66_000)
    export_tiles(tmp_path, log.bodies, parse_note(log.checkpoint()))
    live = LiveLog(log)
    names = sorted(str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if p.is_file())
    assert {"tile/0/256", "tile/1/001.p/1", "tile/2/000.p/1", "tile/entries/257.p/208"} <= set(names)
    for name in names:
        assert live.file(name) == (tmp_path / name).read_bytes(), name
    assert live.file("tile/0/258") is None and live.file("tile/2/000.p/2") is None


def test_a_checkpoint_is_one_for_all_readers_until_the_next() -> None:
    log: Any = Log(3)
    now = [100.0]
    live = LiveLog(log, clock=lambda: now[0])
    first = live.checkpoint()
    log.state.tree.append(leaf_hash(b"more"))
    now[0] += CHECKPOINT_S / 2
    assert live.checkpoint() == first
    now[0] += CHECKPOINT_S / 2
    assert Checkpoint.parse(parse_note(live.checkpoint()).text).size == 4


def test_a_closed_window_publishes_its_cosigned_checkpoint(parties: Service) -> None:
    window = parties.open(system="scan")
    with window, serving(parties, window) as served:
        parties.finish(window)
        result = served.get("/windows/w-1/checkpoint").body
        head = open_checkpoint(
            result, origin=window.header.log, log_key=parties.key.verifier, witnesses=window.witnesses
        )
        assert len(head.cosignatures) == 2
        assert head.checkpoint.size == len(window.state.entries)


def test_an_exchanged_window_answers_repeated_requests_under_its_own_name(
    opened: tuple[Service, Window], parties: Service
) -> None:
    old, now = opened[1], parties.open(system="scan", window="w-2")
    windows = Windows(old)
    with now, serving(*opened, served=windows) as served:
        request = served.request("law-2", "What is a contract?")
        first = served.post("/v1/query", request.canonical())  # and its answer gets lost
        tag = served.get("/public/header.json").headers["etag"]
        windows.put(now)
        assert windows.unused(old, 60)
        assert served.get("/public/header.json", If_None_Match=tag).status == 200
        assert served.get("/windows/w-2/header.json").status == 200
        again = served.post("/v1/query", request.canonical())
        assert again.value["documents"] == first.value["documents"]
        served.accept("law-2", request, again)


def test_a_window_in_use_is_not_unused(opened: tuple[Service, Window]) -> None:
    with serving(*opened) as served:
        windows = served.service.windows
        with windows.using() as window:
            assert window is opened[1]
            assert not windows.unused(opened[1], 0)
        assert windows.unused(opened[1], 0)
