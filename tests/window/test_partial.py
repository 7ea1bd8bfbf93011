"""One part of a window that cannot be read hides nothing that the others prove, and is no proof of anything itself."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rag_audit._internal.canonical import jcs, sha256
from rag_audit.errors import ExitCode, MeasurementError, MissingTile, PolicyError, RagAuditError, SchemaError
from rag_audit.models import windowfile
from rag_audit.models.window_writer import save_window
from rag_audit.models.windowfile import MAX_CHALLENGES, WindowFile
from rag_audit.report.verification import ReportedVerdict, verify_window
from tests.simulate.cases import FOLDER

TRUST = FOLDER / "honest/trust.toml"
Change = Callable[[dict[str, Any]], object]


def tiled(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A case's window in tiles of one value each."""
    monkeypatch.setattr("rag_audit.models.window_writer.TILED_BYTES", 0)
    monkeypatch.setattr("rag_audit.models.window_writer.TILE_BYTES", 1)
    case = json.loads((FOLDER / name / "case.json").read_text())
    save_window(WindowFile.load(FOLDER / name / case["window"]), folder / "window.json")
    assert "tiles" in index(folder)["entries"]
    return folder


def index(folder: Path) -> dict[str, Any]:
    value: dict[str, Any] = json.loads((folder / "window.json").read_bytes())
    return value


def tiles(folder: Path, part: str) -> list[Path]:
    return [folder / "tiles" / f"{tile['sha256']}.json" for tile in index(folder)[part]["tiles"]]


def judged(window: Path, name: str, trust: Path | None = None, **options: Any) -> ReportedVerdict:
    case = json.loads((FOLDER / name / "case.json").read_text())
    return verify_window(
        window,
        trust=trust or FOLDER / name / case["trust"],
        receipts=[FOLDER / name / path for path in case["receipts"]],
        **options,
    )


def another_table(folder: Path, name: str) -> Path:
    """A trust file that pins another noise table, which each window is proven false by."""
    case = json.loads((FOLDER / name / "case.json").read_text())
    text = (FOLDER / name / case["trust"]).read_text()
    path = folder / "trust.toml"
    path.write_text(re.sub(r'noise_table = "[0-9a-f]*"', f'noise_table = "{"0" * 64}"', text))
    return path


@pytest.mark.parametrize("name", ["few", "embedded", "sampling", "certified"])
@pytest.mark.parametrize("part", ["entries", "proofs"])
def test_a_tile_that_is_missing_is_no_proof_of_anything(
    name: str, part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever tile it is: an honest window is not judged, and never found false."""
    folder = tiled(name, tmp_path, monkeypatch)
    assert judged(folder, name).passed
    paths = tiles(folder, part)
    for path in paths:
        data = path.read_bytes()
        path.unlink()
        with pytest.raises(MissingTile) as caught:
            judged(folder, name)
        assert caught.value.exit_code is ExitCode.MALFORMED and caught.value.hint
        path.write_bytes(data)
    assert len(paths) > 1


@pytest.mark.parametrize("part", ["entries", "proofs"])
@pytest.mark.parametrize("change", ["missing", "altered"])
def test_a_tile_that_cannot_be_read_hides_no_false_check(
    part: str, change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tiled("few", tmp_path, monkeypatch)
    for path in tiles(folder, part)[1:]:
        data = path.read_bytes()
        path.unlink()
        if change == "altered":
            path.write_bytes(b"{}")
        verdict = judged(folder, "few", another_table(tmp_path, "few"))
        assert verdict.exit_code is ExitCode.FAIL
        assert verdict.deciding is not None and verdict.deciding.id == "trust.noise_table"
        assert any("unreadable" in note and " a tile " in note for note in verdict.notes)
        path.write_bytes(data)


def test_a_false_proof_is_found_beside_a_tile_that_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two proofs one is false and the other one's tile is gone."""
    folder = tiled("few", tmp_path, monkeypatch)
    first, second = tiles(folder, "proofs")
    tile, other = json.loads(first.read_bytes()), json.loads(second.read_bytes())
    tile["values"][0][1] = other["values"][0][1]  # the proof of the other record
    value, data = index(folder), jcs(tile)
    value["proofs"]["tiles"][0]["sha256"] = sha256(data).hex()
    (folder / "tiles" / f"{sha256(data).hex()}.json").write_bytes(data)
    (folder / "window.json").write_bytes(jcs(value))
    second.unlink()
    verdict = judged(folder, "few")
    assert verdict.exit_code is ExitCode.FAIL
    assert any(c.id.startswith("proof.valid.") and c.status.value == "fail" for c in verdict.checks)


def inline(name: str, folder: Path, change: Change) -> Path:
    value = json.loads((FOLDER / name / "window.json").read_text())
    change(value)
    (folder / "window.json").write_text(json.dumps(value))
    return folder / "window.json"


@pytest.mark.parametrize("name", ["few", "sampling"])
def test_an_entry_that_cannot_be_read_is_no_proof_of_anything(name: str, tmp_path: Path) -> None:
    count = len(json.loads((FOLDER / name / "window.json").read_text())["entries"])
    for number in range(1, count):
        window = inline(name, tmp_path, lambda v, n=number: v["entries"][n].update(surprise=1))
        with pytest.raises(SchemaError) as caught:
            judged(window, name)
        assert caught.value.field == f"entries[{number}].surprise"


def test_an_entry_that_cannot_be_read_hides_no_false_check(tmp_path: Path) -> None:
    def change(value: dict[str, Any]) -> None:
        value["entries"][-1]["surprise"] = 1
        value["policy"]["k_max"] += 1  # which is not the committed one

    verdict = judged(inline("few", tmp_path, change), "few")
    assert verdict.exit_code is ExitCode.FAIL and verdict.line == "FAIL header.complete"
    assert not {c.id for c in verdict.checks if c.status.value == "fail"} & {
        "ledger.size", "ledger.root", "ledger.trailer", "ledger.sequence", "receipt.consistent"
    }  # fmt: skip


@pytest.mark.parametrize(("content", "error"), [("{", RagAuditError), (None, MeasurementError)])
def test_attacks_that_cannot_be_used_hide_no_false_check(
    content: str | None, error: type[RagAuditError], tmp_path: Path
) -> None:
    from tests.attacks.test_beside import run_value

    attacks = tmp_path / "attacks.json"
    attacks.write_text(json.dumps(run_value(n=200)) if content is None else content)
    with pytest.raises(error):
        judged(FOLDER / "few/window.json", "few", attacks=attacks)
    verdict = judged(FOLDER / "few/window.json", "few", another_table(tmp_path, "few"), attacks=attacks)
    assert verdict.exit_code is ExitCode.FAIL and verdict.measured is None
    assert any("unreadable" in note for note in verdict.notes)


def test_a_part_of_a_document_is_shown_without_its_class(tmp_path: Path) -> None:
    window = inline("sampling", tmp_path, lambda v: v["policy"]["tenants"][0].update(noise=True))
    with pytest.raises(PolicyError) as caught:
        judged(window, "sampling")
    said = caught.value.diagnostics()
    assert "  actual: {" in said and "'lattice': 4096" in said and "ScoresPolicy" not in said


# -- what costs too much ------------------------------------------------------------------------------------


def test_more_proofs_than_entries_are_refused_before_the_index_is_parsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tiled("few", tmp_path, monkeypatch)
    value = index(folder)
    value["proofs"]["tiles"][0]["seqs"] = list(range(100_000))
    (folder / "window.json").write_bytes(jcs(value))
    monkeypatch.setattr(windowfile, "TiledProofs", None)
    monkeypatch.setattr(windowfile.TiledParts, "parse", None)
    with pytest.raises(SchemaError, match="more proofs than its ledger has entries") as caught:
        judged(folder, "few")
    assert caught.value.field == "window.json.proofs.tiles"


@pytest.mark.parametrize("missing", [False, True], ids=["present", "missing"])
def test_counts_that_no_bytes_hold_let_the_index_name_no_more_proofs(
    missing: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tiled("few", tmp_path, monkeypatch)
    value = index(folder)
    for tile, path in zip(value["entries"]["tiles"], tiles(folder, "entries"), strict=True):
        tile["count"] = 3_000_000
        if missing:
            path.unlink()
    value["proofs"]["tiles"][0]["seqs"] = list(range(200_000))
    (folder / "window.json").write_bytes(jcs(value))
    monkeypatch.setattr(windowfile.TiledParts, "parse", None)
    with pytest.raises(SchemaError, match="more proofs than its ledger has entries"):
        judged(folder, "few")


def test_more_challenges_than_a_report_can_have_are_refused(tmp_path: Path) -> None:
    window = inline("few", tmp_path, lambda v: v.update(challenges=[""] * (MAX_CHALLENGES + 1)))
    with pytest.raises(SchemaError, match="the window file") as caught:
        judged(window, "few")
    assert caught.value.expected == f"at most {MAX_CHALLENGES} items"
