"""Windows whose entries and proofs are in tiles: written above a size, read as a stream, each fault by its name."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from rag_audit._internal.canonical import jcs, sha256
from rag_audit.account.packing import pack_receipts
from rag_audit.attest.window import Window
from rag_audit.cli import main
from rag_audit.errors import (
    AlteredTile,
    EncodingError,
    ExitCode,
    ForeignTile,
    MissingTile,
    RagAuditError,
    ReorderedTile,
    SchemaError,
    SizeError,
    VersionError,
)
from rag_audit.models.tiles import TiledProofs
from rag_audit.models.window_writer import save_window, stray_siblings
from rag_audit.models.windowfile import WindowFile
from tests.window.outcomes import assert_malformed
from tests.window.simulator import Finished

OTHER = "00" * 32


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sizes by which the window of the tests has several tiles of each part."""
    monkeypatch.setattr("rag_audit.models.window_writer.TILED_BYTES", 1000)
    monkeypatch.setattr("rag_audit.models.window_writer.TILE_BYTES", 2000)


@pytest.fixture
def tiled(finished: Finished, tmp_path: Path, small: None) -> Path:
    save_window(finished.file, tmp_path / "window.json")
    return tmp_path


def index(folder: Path) -> dict[str, Any]:
    value: dict[str, Any] = json.loads((folder / "window.json").read_bytes())
    return value


def test_a_window_in_tiles_gets_the_same_verdict(finished: Finished, tiled: Path) -> None:
    value = index(tiled)
    assert all(len(value[part]["tiles"]) > 2 for part in ("entries", "proofs"))
    read = WindowFile.load(tiled)
    assert read.entries == finished.file.entries and dict(read.proofs) == finished.file.proofs
    one, other = finished.verify(), finished.verify(read)
    assert one.passed and other.line == one.line and other.checks == one.checks


@pytest.mark.parametrize("name", ["scanned"])
def test_scan_proofs_too(name: str, request: pytest.FixtureRequest, tmp_path: Path, small: None) -> None:
    window: Finished = request.getfixturevalue(name)
    save_window(window.file, tmp_path / "window.json")
    read = WindowFile.load(tmp_path)
    assert isinstance(read.proofs, TiledProofs)
    assert window.verify(read).checks == window.verify().checks


def test_a_window_below_the_size_stays_one_file(finished: Finished, tmp_path: Path) -> None:
    save_window(finished.file, tmp_path / "window.json")
    assert isinstance(index(tmp_path)["entries"], list) and not (tmp_path / "tiles").exists()


def test_what_was_read_from_tiles_is_written_as_one_file_again(
    finished: Finished, tiled: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = WindowFile.load(tiled)
    monkeypatch.undo()
    save_window(read, (other := tmp_path_factory.mktemp("other")) / "window.json")
    assert WindowFile.load(other) == finished.file


def test_proofs_stand_by_tenant_and_each_tile_is_read_once(
    finished: Finished, tiled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, seqs = WindowFile.load(tiled), [seq for t in index(tiled)["proofs"]["tiles"] for seq in t["seqs"]]
    tenants = [finished.file.entries[seq]["tenant"] for seq in seqs]  # type: ignore[call-overload,index]
    assert tenants == sorted(tenants) and len(set(tenants)) > 1
    read: list[Path] = []
    monkeypatch.setattr(
        "rag_audit.models.tiles.read_bytes", lambda path, max_bytes: read.append(path) or path.read_bytes()
    )
    assert len(list(file.proofs.items())) == len(seqs)
    assert len(read) == len(set(read)) == len(index(tiled)["proofs"]["tiles"])


def test_a_ledger_that_grew_keeps_its_tiles(finished: Finished, tiled: Path) -> None:
    before = {tile["sha256"] for tile in index(tiled)["entries"]["tiles"]}
    grown = finished.changed(entries=[*finished.file.entries, finished.file.entries[-1]])
    save_window(grown, tiled / "window.json")
    after = {tile["sha256"] for tile in index(tiled)["entries"]["tiles"]}
    assert len(before - after) <= 1
    stray = stray_siblings(tiled / "window.json")
    assert {path.stem for path in stray} == before - after
    for path in stray:
        path.unlink()
    assert WindowFile.load(tiled).entries == grown.entries


# -- each fault by its name ----------------------------------------------------------------------------------


def rewritten(folder: Path, part: str, number: int, change: Callable[[dict[str, Any]], object]) -> None:
    """Change a tile, under its new digest, as who made the window could."""
    value = index(folder)
    named = value[part]["tiles"][number]
    tile = json.loads((folder / "tiles" / f"{named['sha256']}.json").read_bytes())
    change(tile)
    data = jcs(tile)
    named["sha256"] = sha256(data).hex()
    (folder / "tiles" / f"{named['sha256']}.json").write_bytes(data)
    (folder / "window.json").write_bytes(jcs(value))


def path_of(folder: Path, part: str, number: int) -> Path:
    return folder / "tiles" / f"{index(folder)[part]['tiles'][number]['sha256']}.json"


def swapped(folder: Path, part: str) -> None:
    value = index(folder)
    tiles = value[part]["tiles"]
    digests = [tile["sha256"] for tile in tiles]
    for tile, digest in zip(tiles, digests[1::-1] + digests[2:], strict=True):
        tile["sha256"] = digest
    (folder / "window.json").write_bytes(jcs(value))


def edited(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    value = index(folder)
    change(value)
    (folder / "window.json").write_bytes(jcs(value))


def another_count(folder: Path) -> None:
    edited(folder, lambda v: v["entries"]["tiles"][1].update(count=99))


def other_seqs(folder: Path) -> None:
    edited(folder, lambda v: v["proofs"]["tiles"][0]["seqs"].append(10**6))


FAULTS: dict[str, tuple[Callable[[Path], object], type[RagAuditError], str]] = {
    **{
        f"{what} {part}": (change, error, f"{part}")
        for part in ("entries", "proofs")
        for what, change, error in (
            ("a missing tile of", lambda f, p=part: path_of(f, p, 1).unlink(), MissingTile),
            ("an altered tile of", lambda f, p=part: path_of(f, p, 1).write_bytes(b"{}"), AlteredTile),
            ("swapped tiles of", lambda f, p=part: swapped(f, p), ReorderedTile),
            (
                "another window's tile of",
                lambda f, p=part: rewritten(f, p, 1, lambda t: t.update(header=OTHER)),
                ForeignTile,
            ),
            (
                "a later version's tile of",
                lambda f, p=part: rewritten(f, p, 1, lambda t: t.update(mediaType="x")),
                VersionError,
            ),
            (
                "a tile with more of",
                lambda f, p=part: rewritten(f, p, 1, lambda t: t.update(x=1)),
                SchemaError,
            ),
        )
    },
    "a tile of the other part": (
        lambda f: rewritten(f, "proofs", 0, lambda t: t.update(part="entries")),
        ReorderedTile,
        "proofs.tiles[0]",
    ),
    "another count": (another_count, SchemaError, "entries.tiles[1]"),
    "proofs that are not there": (other_seqs, SchemaError, "proofs.tiles[0]"),
    "proofs of other records": (
        lambda f: rewritten(f, "proofs", 0, lambda t: t["values"][0].__setitem__(0, 77)),
        SchemaError,
        "proofs.tiles[0]",
    ),
    "proofs twice": (
        lambda f: edited(f, lambda v: v["proofs"]["tiles"].append(v["proofs"]["tiles"][0])),
        SchemaError,
        "proofs.tiles",
    ),
    "another opening": (
        lambda f: edited(f, lambda v: v.update(header=OTHER)),
        ForeignTile,
        "entries.tiles[0]",
    ),
    "no opening": (lambda f: edited(f, lambda v: v.pop("header")), SchemaError, "window.json.header"),
    "no entries": (
        lambda f: edited(f, lambda v: v["entries"].update(tiles=[])),
        SchemaError,
        "window.json.proofs.tiles",
    ),
    "a path for a digest": (
        lambda f: edited(f, lambda v: v["proofs"]["tiles"][0].update(sha256="../../x")),
        SchemaError,
        "sha256",
    ),
}


@pytest.mark.parametrize(("change", "error", "place"), FAULTS.values(), ids=FAULTS.keys())
def test_each_fault_has_its_name(
    change: Callable[[Path], object], error: type[RagAuditError], place: str, finished: Finished, tiled: Path
) -> None:
    change(tiled)
    with pytest.raises(RagAuditError) as caught:
        finished.verify(WindowFile.load(tiled))
    assert_malformed(caught.value, error, place)


def test_a_tile_is_checked_each_time_that_it_is_read(tiled: Path) -> None:
    file = WindowFile.load(tiled)
    first = next(iter(file.proofs))
    assert file.proofs[first]
    for seq in list(file.proofs)[1:]:
        assert file.proofs[seq]
    path_of(tiled, "proofs", 0).write_bytes(b"{}")
    with pytest.raises(AlteredTile):
        assert file.proofs[first]


def test_entries_that_do_not_fit_are_refused(tiled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, maximum in (("MAX_ENTRIES_BYTES", 3000), ("MAX_VALUES", 20)):
        with monkeypatch.context() as patch:
            patch.setattr(f"rag_audit.models.tiles.{name}", maximum)
            with pytest.raises(SizeError, match="entries are too large"):
                WindowFile.load(tiled)
    monkeypatch.setattr("rag_audit.models.tiles.MAX_TILE_BYTES", 100)
    with pytest.raises(SizeError, match="file too large"):
        WindowFile.load(tiled)


def test_a_value_that_no_tile_holds_is_not_written(
    finished: Finished, tmp_path: Path, small: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rag_audit.models.tiles.MAX_TILE_BYTES", 100)
    with pytest.raises(SizeError, match="larger than a tile"):
        save_window(finished.file, tmp_path / "window.json")
    assert not (tmp_path / "window.json").exists()


def test_a_provider_writes_tiles_without_holding_every_proof(
    finished: Finished, tmp_path: Path, small: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "window"
    shutil.copytree(finished.window, folder)
    with Window.resume(folder, key=finished.service.key, clock=finished.service.clock) as window:
        reads: list[int] = []
        proofs = window.publisher.proofs
        monkeypatch.setattr(
            window.publisher, "proofs", lambda record: reads.append(record.seq) or proofs(record)
        )
        window.export()
    read = WindowFile.load(folder / "public")
    assert "tiles" in index(folder / "public")["entries"] and dict(read.proofs) == finished.file.proofs
    assert read.verification_keys == finished.file.verification_keys
    # Once for the keys; then again for the size, as far as it takes to see that it is large, and for order and tiles.
    assert max(reads.count(seq) for seq in set(reads)) > 1
    assert finished.verify(read).passed


# -- receipts ------------------------------------------------------------------------------------------------


@pytest.fixture
def packed(finished: Finished, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The window's receipts in tiles of one each."""
    monkeypatch.setattr("rag_audit.models.window_writer.TILE_BYTES", 1)
    words = [
        "account",
        "receipt",
        "pack",
        str(finished.receipts),
        "--window",
        str(finished.window / "public"),
        "--out",
    ]
    done = CliRunner().invoke(main, [*words, str(tmp_path / "packed"), "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.output)["receipts"] == len(list(finished.receipts.iterdir()))
    return tmp_path / "packed"


def test_receipts_in_tiles_count_as_they_do_alone(finished: Finished, packed: Path) -> None:
    alone = finished.verify()
    for given in (packed, packed / "receipts.json"):
        verdict = finished.verify(receipts=[given])
        assert verdict.passed and verdict.line == alone.line
    assert len(list((packed / "tiles").iterdir())) == len(list(finished.receipts.iterdir())) > 1


def receipts_changed(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    value = json.loads((folder / "receipts.json").read_bytes())
    change(value)
    (folder / "receipts.json").write_bytes(jcs(value))


def first_tile(folder: Path) -> Path:
    value = json.loads((folder / "receipts.json").read_bytes())
    return folder / "tiles" / f"{value['tiles'][0]['sha256']}.json"


LOST: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing": (lambda f: first_tile(f).unlink(), "a tile is missing"),
    "altered": (lambda f: first_tile(f).write_bytes(b"{}"), "the content of a tile does not match its name"),
    "reordered": (
        lambda f: receipts_changed(f, lambda v: v["tiles"].append(v["tiles"][0])),
        "a tile is at the place of another tile",
    ),
    "of another window": (
        lambda f: receipts_changed(f, lambda v: v.update(header=OTHER)),
        "a tile belongs to another window",
    ),
    "of another number": (
        lambda f: receipts_changed(f, lambda v: v["tiles"][0].update(count=5)),
        "a tile has another number of receipts",
    ),
}


@pytest.mark.parametrize(("change", "error"), LOST.values(), ids=LOST.keys())
def test_a_tile_of_receipts_that_is_lost_is_a_complaint(
    change: Callable[[Path], object], error: str, finished: Finished, packed: Path
) -> None:
    change(packed)
    verdict = finished.verify(receipts=[packed])
    result = next(c for c in verdict.checks if c.id == "receipt.accepted")
    assert verdict.exit_code is not ExitCode.PASS and error in result.actual


def test_what_is_no_receipt_is_not_packed(finished: Finished, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("{}")
    with pytest.raises(EncodingError, match="the file is not a countersigned receipt"):
        pack_receipts([finished.receipts, tmp_path], tmp_path / "out", OTHER)
    assert not (tmp_path / "out").exists()
