"""What the command loads before it works: modules, since a test of times would depend on the machine."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import click
import pytest

from rag_audit.cli import COMMANDS, main
from tests.cli.tree import commands

EXAMPLES = Path(__file__).parents[2] / "docs/examples"
_COUNT = """
import json, sys
before = set(sys.modules)
from rag_audit.cli import main
try:
    main(sys.argv[1:], standalone_mode=False)
finally:
    print(json.dumps(sorted(set(sys.modules) - before)), file=sys.stderr)
"""


def loaded(*arguments: str) -> list[str]:
    """The modules that a command loads beyond those of Python's own start."""
    done = subprocess.run(
        [sys.executable, "-c", _COUNT, *arguments], capture_output=True, text=True, check=True
    )
    modules: list[str] = json.loads(done.stderr.splitlines()[-1])
    return modules


def own(modules: list[str]) -> list[str]:
    """Those of this package."""
    return [name for name in modules if name.partition(".")[0] == "rag_audit"]


def test_help_loads_no_command() -> None:
    modules = loaded("--help")
    assert len(own(modules)) <= 8, own(modules)
    assert len(modules) <= MAX_OF_HELP, f"{len(modules)} modules: {modules}"
    assert not {"pydantic", "numpy", "cryptography", "importlib.metadata"} & set(modules)


def test_verify_loads_what_it_needs() -> None:
    example = [
        EXAMPLES / "window.json",
        "--trust",
        EXAMPLES / "trust.toml",
        "--receipts",
        EXAMPLES / "receipts",
    ]
    modules = loaded("verify", *map(str, example))
    assert len(own(modules)) <= MAX_OF_VERIFY_OWN, f"{len(own(modules))} of this package: {own(modules)}"
    assert len(modules) <= MAX_OF_VERIFY, f"{len(modules)} modules: {modules}"
    unused = (
        *("jinja2", "cryptography", "tomlkit", "multiprocessing", "httpx", "py_ecc"),
        *("platformdirs", "concurrent", "logging"),
    )
    assert {name.partition(".")[0] for name in modules}.isdisjoint(unused)
    scan = {name for name in own(modules) if name.startswith("rag_audit.proofs.backends.scan.")}
    assert scan == {"rag_audit.proofs.backends.scan.about"}  # for --help; the window names it not


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("width", [30, 60, 100, 1000])
def test_the_table_has_each_command_s_own_words(name: str, width: int) -> None:
    command = dict(commands(main))[tuple(name.split())]
    assert click.Command(name, help=COMMANDS[name][1]).get_short_help_str(
        width
    ) == command.get_short_help_str(width)


MAX_OF_HELP = 100
MAX_OF_VERIFY = 489
MAX_OF_VERIFY_OWN = 175
