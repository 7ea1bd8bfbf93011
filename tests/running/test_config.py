"""provider.toml: a wrong field is named with its line; what is taken or missing is said before anything starts."""

from __future__ import annotations

import json
import re
import socket
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from rag_audit.cli import main
from rag_audit.errors import SchemaError, SetupError
from rag_audit.service.lines import listening
from rag_audit.service.running.config import (
    Config,
    Documents,
    Enrolling,
    Proving,
    RunConfig,
    Schedule,
    Serve,
    WitnessKey,
    line_of,
)
from rag_audit.service.windows import NoWindow, Windows
from tests.running.play import Play


@pytest.fixture
def play(tmp_path: Path) -> Play:
    return Play(tmp_path)


def run(path: Path) -> Result:
    return CliRunner().invoke(main, ["run", str(path)])


@pytest.mark.parametrize(
    ("old", "new", "place", "expected"),
    tomllib.loads(Path(__file__).with_name("config_faults.toml").read_text())["faults"],
)
def test_a_wrong_field_is_named_with_its_line(
    play: Play, old: str, new: str, place: str, expected: str
) -> None:
    path = play.root / "provider.toml"
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))
    with pytest.raises(SchemaError) as caught:
        RunConfig.load(path)
    where, _, result = str(caught.value.field).rpartition(": ")
    line = int(where.rpartition("line ")[2])
    shown = path.read_text().split("\n")[line - 1]
    assert result == place and expected in str(caught.value.expected), (result, caught.value.expected)
    if new:
        assert shown in (new.rpartition("\n")[2], "[[witness]]", "[serve]", "[documents]")
    else:
        assert shown == ("[documents]" if "documents" in place else path.read_text().split("\n")[0])
    done = run(path)
    assert done.exit_code == 2 and f"line {line}" in done.stderr and not (play.root / "run").exists()


def test_the_line_of_a_field() -> None:
    text = 'a = 1\n# [b]\n[b]\nc = 2\n[[d]]\ne = 3\n[[d]]\n"e" = 4\n[b.x]\ny = 5\n'
    places = {("a",): 1, ("b", "c"): 4, ("b", "none"): 3, ("d", 0, "e"): 6, ("d", 1, "e"): 8, ("d", 1): 7,
              ("b", "x", "y"): 10, ("nothing",): 1}  # fmt: skip
    assert {place: line_of(text, place) for place in places} == places


def test_the_sample_has_every_field_and_can_be_read() -> None:
    sample = Path(__file__).resolve().parents[2] / "docs" / "deploy" / "provider.toml"
    RunConfig.load(sample)
    text = sample.read_text()
    names = {
        "": Config,
        "documents": Documents,
        "schedule": Schedule,
        "serve": Serve,
        "proving": Proving,
        "enrolment": Enrolling,
        "witness": WitnessKey,
    }
    for table, model in names.items():
        part = text if not table else re.split(r"^\[", text.partition(f"[{table}]")[2], flags=re.MULTILINE)[0]
        for field in set(model.model_fields) - set(names):
            assert re.search(rf"^(# )?(\[)?{field}( = |\])", part, re.MULTILINE), (table, field)


def test_paths_are_relative_to_the_file(play: Play, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    config = RunConfig.load(Path("../provider.toml"))
    assert config.folder.resolve() == (tmp_path / "run").resolve()
    assert config.policy("w-7", 5_000).window == "w-7"


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("policy.json", "{", "policy"),
        ("roster.json", "{}", "not a roster"),
        ("key", "no key", "key"),
        ("provider.toml", "folder = ", "not valid TOML"),
    ],
)
def test_a_file_that_cannot_be_read_is_named_before_anything_starts(
    play: Play, file: str, content: str, message: str
) -> None:
    (play.root / file).write_text(content)
    done = run(play.root / "provider.toml")
    assert done.exit_code == 2 and message in done.stderr and file in done.stderr
    assert not (play.root / "run").exists()


@pytest.mark.parametrize(
    ("table", "message"),
    [({"embedder": "unknown"}, "unknown embedder"), ({"embedder": "bge-small-en-v1.5"}, "needs its files")],
)
def test_an_embedder_that_is_not_there_is_said_before_anything_starts(
    play: Play, table: dict[str, str], message: str
) -> None:
    done = run(play.configure(documents=table))
    assert done.exit_code == 2 and message in done.stderr and not (play.root / "run").exists()


def test_a_policy_that_keeps_no_promise_is_said_before_anything_starts(play: Play) -> None:
    policy = json.loads((play.root / "policy.json").read_text())
    (play.root / "policy.json").write_text(json.dumps({**policy, "eps_acc": "1"}))
    done = run(play.root / "provider.toml")
    assert done.exit_code == 2 and "calibration" in done.stderr and not (play.root / "run").exists()


@contextmanager
def taken(path: Path) -> Iterator[None]:
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(path))
        other.listen()
        yield


def test_a_socket_that_another_process_listens_on_is_not_taken_from_it(play: Play) -> None:
    with taken(play.root / "socket"):
        done = run(play.root / "provider.toml")
    assert done.exit_code == 2 and "another process listens on the socket" in done.stderr
    assert (play.root / "socket").exists()
    with listening(Windows(), play.root / "socket", print, print):  # left by a process that is gone
        assert (play.root / "socket").stat().st_mode & 0o777 == 0o600
    assert not (play.root / "socket").exists()


@pytest.mark.parametrize("kind", ["file", "folder that is not there", "too long"])
def test_a_socket_that_cannot_be_made(tmp_path: Path, kind: str) -> None:
    path = {"file": tmp_path / "file", "too long": tmp_path / ("x" * 120)}.get(
        kind, tmp_path / "none" / "socket"
    )
    (tmp_path / "file").write_text("mine")
    with pytest.raises(SetupError) as caught, listening(Windows(), path, print, print):
        pass
    assert caught.value.field == "serve.socket" and (tmp_path / "file").read_text() == "mine"


def test_without_a_window_a_connection_ends_without_an_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rag_audit.service.windows.NO_WINDOW_S", 0.01)
    faults: list[BaseException] = []
    with pytest.raises(NoWindow):
        Windows().handle({})
    with (
        listening(Windows(), tmp_path / "s", print, faults.append),
        socket.socket(socket.AF_UNIX) as account,
    ):
        account.settimeout(30)
        account.connect(str(tmp_path / "s"))
        account.sendall(b"{}\n")
        assert account.recv(1) == b""
    assert faults == []
