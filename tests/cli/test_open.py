"""`open` shows how far it is, can be interrupted, and goes on when it is run again."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from rag_audit.cli import main
from rag_audit.parties.provider.window import now_ms
from rag_audit.proofs.scan import store as index_store
from rag_audit.proofs.scan.store import RUN
from tests.cli.conftest import Shell
from tests.window.simulator import TEXTS

PLACE = ("index of law", 3 * RUN)


@pytest.fixture
def command(service: Shell, tmp_path: Path) -> list[str]:
    """A window of scan tenants in a folder of its own, for the parties of `service`."""
    root, policy = service.root, tmp_path / "policy.json"
    service.ok("policy", "new", policy, "--window", tmp_path.name, "--tenant", "law=8", "--tenant", "medicine=8",
               "--n", "3", "--k-max", "2", "--eps-acc", "14", "--gains", "1,4", "--lattice", "64", "--top-k", "2",
               "--accounts-max", "3", "--lasts", "1h", "--opens-in", "1h", "--query-tokens", "2")  # fmt: skip
    options = {"--policy": policy, "--roster": root / "roster.json", "--docs": root / "docs",
               "--key": root / "provider" / "key"}  # fmt: skip
    nonces = [a for name in ("w1", "w2") for a in ("--witness", str(root / f"{name}.nonce"))]
    return ["open", str(tmp_path / "window"), *(str(a) for pair in options.items() for a in pair), *nonces]


def test_an_interrupted_opening_goes_on(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(step: str, done: int, _: int) -> None:
        if (step, done) == PLACE:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("rag_audit.cli.opening.stages", lambda: stop)
        interrupted = CliRunner().invoke(main, command)
    assert interrupted.exit_code == 130 and "run the same command to go on" in interrupted.stderr
    folder = tmp_path / "window"
    secrets = json.loads((folder / "secrets.json").read_bytes())
    assert not list((folder / "public").iterdir())
    other = CliRunner().invoke(main, command[:2])  # without what a new window needs
    assert other.exit_code == 2 and "--policy" in other.stderr

    firsts: list[tuple[str, int]] = []
    commit = index_store._commit

    def watched(rows: object, first: int, *rest: object) -> bytes:
        firsts.append((Path(rows.filename).stem, first))  # type: ignore[attr-defined]
        return commit(rows, first, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(index_store, "_commit", watched)
    done = CliRunner().invoke(main, [*command, "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["status"] == "committed"
    assert firsts == [("law", n) for n in range(3 * RUN, 256, RUN)] + [
        ("medicine", n) for n in range(0, 256, RUN)
    ]
    kept = json.loads((folder / "secrets.json").read_bytes())
    changed = {name for name, value in kept.items() if value != secrets[name]}
    assert (
        changed == {"s0", "s1"} and kept.keys() == secrets.keys()
    )  # the seed is drawn when the window opens
    again = CliRunner().invoke(main, [*command[:2], "--json"])
    assert json.loads(again.stdout) == json.loads(done.stdout)


def test_an_opening_cut_off_before_it_was_published_is_published(command: list[str], tmp_path: Path) -> None:
    folder = tmp_path / "window"
    done = CliRunner().invoke(main, [*command, "--json"])
    (folder / "unfinished.json").write_text("{}")
    for path in (folder / "public").glob("*.*"):
        path.unlink()
    again = CliRunner().invoke(main, [*command, "--json"])
    assert json.loads(again.stdout) == json.loads(done.stdout)
    assert (folder / "public" / "opening.json").exists() and not (folder / "unfinished.json").exists()


def test_progress_is_shown_on_a_terminal(command: list[str]) -> None:
    master, slave = pty.openpty()
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    with subprocess.Popen(
        [sys.executable, "-m", "rag_audit", *command], stdout=subprocess.PIPE, stderr=slave, env=environment
    ) as child:
        os.close(slave)
        shown = b""
        try:
            while data := os.read(master, 1 << 16):
                shown += data
        except OSError:  # how Linux says that the other end is closed
            pass
        assert child.stdout is not None and b"committed" in child.stdout.read()
    os.close(master)
    for line in (b"documents of law 5/5", b"index of law 48/256", b"index of medicine 256/256"):
        assert line in shown


def test_a_window_is_dated_on_request_once_it_is_prepared(command: list[str], tmp_path: Path) -> None:
    began = now_ms()
    done = CliRunner().invoke(main, [*command, "--opens-in", "20s", "--json"])
    result = json.loads(done.stdout)
    # The policy alone says in an hour.
    assert began + 20_000 <= result["opens_at"] <= now_ms() + 20_000
    published = json.loads((tmp_path / "window" / "public" / "opening.json").read_text())
    assert published["policy"]["opens_at"] == published["opening"]["opens_at"] == result["opens_at"]
    assert published["policy"]["closes_at"] - result["opens_at"] == 3_600_000


def test_documents_beyond_the_limit_are_counted_on_standard_error(command: list[str], tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    for tenant, texts in {**TEXTS, "law": [*TEXTS["law"], "whereas " * 600]}.items():
        lines = "".join(json.dumps({"text": text}) + "\n" for text in texts)
        (tmp_path / "docs" / f"{tenant}.jsonl").write_text(lines)
    command[command.index("--docs") + 1] = str(tmp_path / "docs")
    done = CliRunner().invoke(main, command)
    assert done.exit_code == 0, done.output
    said = [line for line in done.stderr.splitlines() if "tokens" in line]
    assert len(said) == 1 and "1 of 6 documents of law are longer than 512 tokens" in said[0]
