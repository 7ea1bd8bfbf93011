"""What a provider asks of a window beside the service: where it stands, what is left over, and who opened it."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from rag_audit._internal import lock
from rag_audit.account.account import Account
from rag_audit.cli import main
from rag_audit.errors import SizeError
from rag_audit.models.roster import add_to_roster
from rag_audit.service.running.directory import RunDirectory
from tests.clock import set_clock
from tests.running.play import Play
from tests.window.simulator import QUESTIONS, Service


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(a) for a in arguments])


@pytest.fixture
def service(tmp_path: Path) -> Service:
    return Service(tmp_path)


def test_a_window_is_read_while_a_process_has_it_open(service: Service) -> None:
    with service.open() as window:
        service.ask(window, "law-1", QUESTIONS["law"][0])
        result = json.loads(run("provider", "status", window.directory, "--json").stdout)
        assert (result["status"], result["is_open"], result["records"]) == ("active", True, 1)
        assert "open in a process" in run("provider", "status", window.directory).stdout
        estimated = run("provider", "estimate", "window", window.directory)
        assert estimated.exit_code == 0 and "records 1" in estimated.stdout
        for command in (["provider", "close", window.directory], ["provider", "clean", window.directory]):
            assert run(*command).exit_code == 2
    assert not json.loads(run("provider", "status", window.directory, "--json").stdout)["is_open"]


def test_the_commands_take_over_a_window_that_a_program_opened(service: Service, tmp_path: Path) -> None:
    with service.open() as window:
        folder = window.directory
    service.key.save(tmp_path / "key")
    refused = run("provider", "close", folder)
    assert refused.exit_code == 2 and f"rag-audit provider open {folder} --key FILE" in refused.stderr
    assert run("provider", "open", folder, "--key", tmp_path / "none").exit_code == 2
    assert not (folder / "settings.json").exists()
    taken = run("provider", "open", folder, "--key", tmp_path / "key", "--json")
    assert json.loads(taken.stdout)["status"] == "active"
    assert json.loads(run("provider", "close", folder, "--json").stdout)["status"] == "closed"


def test_parts_that_no_window_file_names_are_removed(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with service.open() as window:
        folder = window.directory
        refused = run("provider", "clean", folder)
        assert refused.exit_code == 2 and "no window file is published" in refused.stderr
        monkeypatch.setattr("rag_audit.models.window_writer.INLINE_BYTES", 500)
        window.export()
        before = {path.name for path in (folder / "public").iterdir()}
        service.ask(window, "law-1", QUESTIONS["law"][0])
        window.export()
    shutil.copytree(folder / "public", tmp_path / "kept")
    removed = json.loads(run("provider", "clean", folder, "--json").stdout)["removed"]
    assert removed and set(removed) <= before
    assert {p.name for p in (tmp_path / "kept").iterdir()} - set(removed) == {
        p.name for p in (folder / "public").iterdir()
    }
    assert json.loads(run("provider", "clean", folder, "--json").stdout)["removed"] == []


def test_a_roster_that_nobody_could_read_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "roster.json"
    lines = [Account.create(tmp_path / name, name, "law").roster_entry for name in ("a", "b")]
    add_to_roster(path, lines[0])
    before = path.read_bytes()
    monkeypatch.setattr("rag_audit.models.roster.MAX_ROSTER_BYTES", len(before))
    with pytest.raises(SizeError):
        add_to_roster(path, lines[1])
    assert path.read_bytes() == before


def test_a_run_that_has_written_nothing_yet_is_starting(tmp_path: Path) -> None:
    """As `rag-audit run provider.toml &` leaves it while Python loads: a look neither fails nor makes anything."""
    play = Play(tmp_path)
    config = tmp_path / "provider.toml"

    def actual(path: Path) -> tuple[str, bool, list[str]]:
        done = run("provider", "status", path, "--json")
        assert done.exit_code == 0, done.stderr
        value = json.loads(done.stdout)
        return value["status"], value["running"], [w["window"] for w in value["windows"]]

    assert actual(config) == ("starting", False, [])
    assert not play.folder.exists() and "starting" in run("provider", "status", config).stdout
    directory = RunDirectory(play.folder, "w-")
    (play.folder / "run.json").rename(tmp_path / "later")  # the lock is there before the state
    assert actual(config) == ("starting", True, [])
    (tmp_path / "later").rename(play.folder / "run.json")
    assert actual(config) == actual(play.folder) == ("starting", True, [])
    directory.close()
    assert actual(config) == ("stopped", False, [])
    supervisor = play.supervisor()
    play.settle(supervisor)
    assert actual(config) == ("running", True, ["w-1"])
    supervisor.stop(1)
    assert actual(config) == ("stopped", False, ["w-1"])


def test_a_look_at_a_run_s_lock_does_not_keep_it_from_starting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "lock"
    path.touch()
    looking = os.open(path, os.O_RDONLY)
    fcntl.flock(looking, fcntl.LOCK_SH)  # as `is_locked` has it for a moment

    def looked(seconds: float) -> None:
        fcntl.flock(looking, fcntl.LOCK_UN)

    set_clock(monkeypatch, lock, sleep=looked)
    handle = lock.lock_file(path, wait=False)
    assert handle is not None and lock.is_locked(path)
    assert lock.lock_file(path, wait=False) is None
    os.close(handle)
    assert not lock.is_locked(path)
    os.close(looking)
