"""`rag-audit doctor --backup`: complete parts, damaged parts, and parts that must not be restored."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from rag_audit.cli import main
from rag_audit.models.publication import Publication
from tests.running.play import LASTS, Play
from tests.window.simulator import QUESTIONS


def check(folder: Path, code: int = 0) -> dict[str, tuple[str, str]]:
    """The state of each part, and the text about it."""
    done = CliRunner().invoke(main, ["doctor", "--backup", str(folder), "--json"])
    assert done.exit_code == code, done.output
    return {part["name"]: (part["state"], part["told"]) for part in json.loads(done.stdout)["parts"]}


@pytest.fixture
def play(tmp_path: Path) -> Play:
    """The first window is open, with one question."""
    (tmp_path / "live").mkdir()
    result = Play(tmp_path / "live")
    run = result.supervisor()
    result.settle(run)
    result.activate(run, "w-1")
    result.ask(run, "w-1", "law-1", QUESTIONS["law"][0])
    run.stop(1)
    return result


def backup(play: Play) -> Path:
    return Path(shutil.copytree(play.root, play.root.parent / "backup", symlinks=True))


def end(play: Play) -> None:
    run = play.supervisor()
    play.clock.advance(LASTS + 1)
    play.settle(run)
    play.witness("w-1")
    play.settle(run)
    run.stop(1)


def test_an_ended_window_can_be_restored(play: Play) -> None:
    end(play)
    found = check(backup(play))
    assert {name: state for name, (state, _) in found.items() if name != "w-2"} == {
        "provider.toml": "ok", "key": "ok", "w-1": "ok"
    }  # fmt: skip
    assert "with its secrets" in found["w-1"][1]


def test_an_open_window_must_not_be_restored_and_can_be_abandoned(play: Play) -> None:
    copy = backup(play)
    state, told = check(copy)["w-1"]
    assert state == "not restorable" and "close --abandon" in told
    # The original goes on and is lost. The copy ends the window without serving it, and the witnesses accept that end.
    run = play.supervisor()
    play.settle(run)
    play.ask(run, "w-1", "law-1", QUESTIONS["law"][1])
    run.stop(1)
    shutil.rmtree(play.folder)
    shutil.copytree(copy / "run", play.folder, symlinks=True)
    restored = play.supervisor()
    while "w-1" not in restored.windows:
        restored.step()
    restored.windows["w-1"].close(abandoned=True)
    play.witness("w-1")
    assert "open w-2" in play.settle(restored)
    previous = Publication.load(play.public("w-2")).parsed_header().previous
    assert previous is not None and previous.abandoned == 1
    restored.stop(1)


def test_a_ledger_that_is_older_than_the_public_folder_is_a_fork(play: Play) -> None:
    copy = backup(play)
    end(play)
    shutil.rmtree(copy / "run/windows/w-1/public")
    shutil.copytree(play.public("w-1"), copy / "run/windows/w-1/public")
    state, told = check(copy)["w-1"]
    assert state == "not restorable" and "would be a fork" in told and "checkpoint-" in told


@pytest.mark.parametrize(
    ("part", "damage"),
    [
        ("key", lambda root: (root / "key").unlink()),
        ("key", lambda root: (root / "key").chmod(0o644)),
        ("provider.toml", lambda root: (root / "policy.json").unlink()),
        ("provider.toml", lambda root: (root / "provider.toml").write_text("folder = 5\n")),
        ("run.json", lambda root: (root / "run/run.json").write_text("{")),
        ("w-1", lambda root: (root / "run/windows/w-1/ledger.sqlite").write_bytes(b"x" * 4096)),
        ("w-1", lambda root: (root / "run/windows/w-1/ledger.sqlite").unlink()),
        ("w-1", lambda root: (root / "run/windows/w-1/public/checkpoint-1.txt").write_text("no note\n")),
    ],
)
def test_a_damaged_part_is_named(play: Play, part: str, damage: Callable[[Path], object]) -> None:
    end(play)
    copy = backup(play)
    damage(copy)
    found = check(copy, 2)
    assert found[part][0] == "damaged" and [s for s, _ in found.values()].count("damaged") == 1


def test_another_ledger_does_not_match_the_signed_checkpoints(play: Play, tmp_path: Path) -> None:
    end(play)
    copy = backup(play)
    public = copy / "run/windows/w-1/public"
    first, last = (public / "checkpoint-1.txt").read_text(), max(public.glob("checkpoint-*.txt"))
    (public / "checkpoint-1.txt").write_text(
        first.replace(first.split("\n")[2], last.read_text().split("\n")[2], 1)
    )
    state, told = check(copy, 2)["w-1"]
    assert state == "damaged" and "does not match a signed checkpoint" in told


def test_an_account_and_a_witness(play: Play) -> None:
    account = play.service.accounts["law-1"].directory
    found = check(account)
    assert found["account"] == ("ok", "law-1 of law") and found["receipts"][1].startswith("1 of 1 windows")
    next((account / "receipts").glob("*.json")).write_text("{}")
    assert check(account, 2)["receipts"][0] == "damaged"
    witness = next(play.root / name for name in play.service.witnesses)
    found = check(witness)
    assert found["key"][0] == "ok" and found["state.json"][0] == "not restorable"
    (witness / "state.json").write_text("{")
    assert check(witness, 2)["witness"][0] == "damaged"


def test_another_folder_is_refused(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["doctor", "--backup", str(tmp_path)])
    assert done.exit_code == 2 and "the folder is no backup" in done.stderr
    done = CliRunner().invoke(main, ["doctor", "--backup", str(tmp_path), "--role", "witness"])
    assert done.exit_code == 2 and "give one of them" in done.stderr
