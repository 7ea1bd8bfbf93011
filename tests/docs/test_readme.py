"""The README's library example is the one that runs."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

import rag_audit
from rag_audit.cli import main

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "docs/examples/library.py"


def _shown() -> str:
    (block,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    return str(block)


def test_readme_shows_the_example() -> None:
    marked = re.search(r"# -- README --\n(.*?)# -- end --", EXAMPLE.read_text(), re.DOTALL)
    assert marked is not None
    assert _shown() == re.sub(r"  # fmt: skip", "", marked[1])


# Under a clock that sleeping puts forward, and that is slow otherwise: nobody waits for the example's window to open,
# and it is committed in time on a busy machine too.
RUN = """
import runpy, sys, time
began, system, slept = time.time_ns(), time.time_ns, 0

def now():
    return began + (system() - began) // 100 + slept

def sleep(seconds):
    global slept
    slept += int(seconds * 1e9)

time.time_ns, time.time, time.sleep = now, lambda: now() / 1e9, sleep
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def test_example_runs(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(EXAMPLE), str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("PASS eps_audit=")


def test_the_example_needs_public_names_only() -> None:
    imported = [n for n in ast.walk(ast.parse(EXAMPLE.read_text())) if isinstance(n, ast.ImportFrom)]
    ours = [n for n in imported if (n.module or "").startswith("rag_audit")]
    assert [n.module for n in ours] == ["rag_audit"]
    assert {alias.name for alias in ours[0].names} <= set(rag_audit.__all__)


def test_exports() -> None:
    for name in rag_audit.__all__:
        assert getattr(rag_audit, name).__module__.startswith("rag_audit."), name
    with pytest.raises(AttributeError):
        rag_audit.no_such_name  # noqa: B018
    assert set(rag_audit.__all__) <= set(dir(rag_audit))


def test_every_command_is_listed() -> None:
    table = (ROOT / "README.md").read_text().split("## Commands")[1].split("## ")[0]
    context = click.Context(main)
    names = main.list_commands(context)
    assert {"verify", "open", "witness"} <= set(names)
    for name in names:
        command = main.get_command(context, name)
        assert re.search(rf"`{name}\b", table), name
        for part in getattr(command, "commands", {}):
            assert re.search(rf"`(?:{name} )?{part}`", table), f"{name} {part}"
