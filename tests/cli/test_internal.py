"""What nobody foresaw: exit 70, a named internal error, and a report without anybody's data."""

from __future__ import annotations

import ast
import errno
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from rag_audit._internal.extras import EXTRAS
from rag_audit.cli import main
from rag_audit.errors import ExitCode, MemoryLimitError
from tests.cli.tree import leaves
from tests.named import error_name

ROOT = Path(__file__).parents[2]
SECRET = "s3cret-of-a-tenant"


def run(monkeypatch: pytest.MonkeyPatch, cache: Path, error: BaseException) -> Result:
    """`trust new` with a fault inside."""

    def fault(*_: object, **__: object) -> None:
        local = SECRET  # noqa: F841
        raise error

    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    monkeypatch.setattr("rag_audit.cli.trust._show", fault)
    words = ["verifier", "trust", "new", SECRET, "--show", SECRET]
    monkeypatch.setattr(sys, "argv", ["rag-audit", *words])
    return CliRunner().invoke(main, words)


def chained() -> BaseException:
    error = KeyError(SECRET)
    error.__cause__ = ValueError(SECRET)
    return error


FAULTS: dict[str, Callable[[], BaseException]] = {
    "KeyError": chained,
    "TypeError": lambda: TypeError(SECRET),
    "RecursionError": lambda: RecursionError(SECRET),
    "OverflowError": lambda: OverflowError(SECRET),
    "AssertionError": lambda: AssertionError(SECRET),
    "RuntimeError": lambda: RuntimeError(SECRET),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_ends_in_70_with_a_report_without_data(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = run(monkeypatch, tmp_path, FAULTS[name]())
    assert done.exit_code == ExitCode.INTERNAL == 70 and done.stdout == ""
    assert done.stderr.startswith("rag-audit: InternalError: a fault of this program, not of its input")
    assert "SECURITY.md" in done.stderr and "Traceback" not in done.stderr
    (report,) = tmp_path.rglob("*.txt")
    assert str(report) in done.stderr
    text = report.read_text()
    assert f"builtins.{name}" in text and "rag_audit/cli/trust.py:" in text and " in trust_new" in text
    assert ("caused by builtins.ValueError" in text) == (name == "KeyError")
    assert SECRET not in text + done.stderr
    assert str(ROOT) not in text and str(tmp_path) not in text
    assert report.stat().st_mode & 0o077 == 0


def test_the_same_fault_makes_one_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(3):
        run(monkeypatch, tmp_path, TypeError(SECRET))
    assert len(list(tmp_path.rglob("*.txt"))) == 1


def test_a_report_that_cannot_be_written_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = tmp_path / "file"
    cache.write_text("")
    done = run(monkeypatch, cache, TypeError(SECRET))
    assert done.exit_code == 70 and "builtins.TypeError" in done.stderr and SECRET not in done.stderr


def test_a_fault_as_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fault(*_: object) -> None:
        raise TypeError(SECRET)

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("rag_audit.report.cumulative.load_window", fault)
    words = ["verifier", "cumulative", SECRET, "--json"]
    monkeypatch.setattr(sys, "argv", ["rag-audit", *words])
    done = CliRunner().invoke(main, words)
    value: dict[str, Any] = json.loads(done.stdout)
    assert value["error"] == "InternalError" and value["hint"]
    assert SECRET not in done.output


def test_the_systems_refusals_are_no_faults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for error, name in (
        (MemoryError(), MemoryLimitError.__name__),
        (OSError(errno.ENOSPC, "No space left on device"), "StoreError"),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "x"), "EncodingError"),
    ):
        done = run(monkeypatch, tmp_path, error)
        assert done.exit_code == 2 and error_name(done) == name and name not in done.stderr
    done = run(monkeypatch, tmp_path, BrokenPipeError())
    assert done.exit_code == 2 and done.stderr == ""
    assert not list(tmp_path.rglob("*.txt"))


LEAVES = leaves(main)


@pytest.mark.parametrize("path", LEAVES, ids=" ".join)
def test_every_command_is_guarded(
    path: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever breaks in any of them, at whatever depth of groups, ends in 70 and never in 1."""
    command = LEAVES[path]

    def fault(*_: object, **__: object) -> None:
        raise ZeroDivisionError(SECRET)

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(command, "invoke", fault)
    monkeypatch.setattr(command, "params", [])
    done = CliRunner().invoke(main, list(path))
    assert done.exit_code == 70, done.output
    assert "rag-audit: InternalError: " in done.stderr
    (report,) = tmp_path.rglob("*.txt")
    assert f"command: {' '.join(path)}\n" in report.read_text()
    assert SECRET not in report.read_text() + done.output


def test_results_are_lines_that_the_command_made() -> None:
    """A text with line breaks in it would hide one that came from a file: `emit` takes the lines apart."""
    wrong = []
    for path in sorted((ROOT / "rag_audit/cli").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "emit":
                text = node.args[2] if len(node.args) > 2 else None
                if text is not None and not isinstance(text, ast.List | ast.ListComp):
                    constants = (n.value for n in ast.walk(text) if isinstance(n, ast.Constant))
                    split = isinstance(text, ast.Call) and ast.unparse(text.func).endswith(".split")
                    if not split and any(isinstance(c, str) and "\n" in c for c in constants):
                        wrong.append(f"{path.name}:{node.lineno}")
    assert wrong == []


@pytest.mark.parametrize(
    "words", [["lab", "attack", "run", "mba"], ["lab", "experiment", "run", "scalar", "--out", "results"]]
)
def test_a_package_of_another_role_is_named_with_what_installs_it(words: list[str], tmp_path: Path) -> None:
    """In a process of its own, since the packages are imported once in a process."""
    program = tmp_path / "without.py"
    program.write_text(
        "import sys\n"
        "class Missing:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] == 'scipy':\n"
        "            raise ModuleNotFoundError('none', name=name)\n"
        "sys.meta_path.insert(0, Missing())\n"
        "from rag_audit.cli import main\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, str(program), *words], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 2 and done.stderr.startswith("rag-audit: "), done.stderr
    assert "scipy" in done.stderr and "ragaudit-zk[experiments]" in done.stderr


def test_every_optional_package_names_its_extra() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    result = {(re.split(r"[\[>=]", need)[0], extra) for extra, needs in extras.items() for need in needs}
    distribution = {
        "docx": "python-docx",
        "faiss": "faiss-cpu",
        "haystack": "haystack-ai",
        "langchain_core": "langchain-core",
        "llama_cpp": "llama-cpp-python",
        "llama_index": "llama-index-core",
        "pptx": "python-pptx",
        "prometheus_client": "prometheus-client",
        "qdrant_client": "qdrant-client",
        "sentence_transformers": "sentence-transformers",
        "sklearn": "scikit-learn",
    }
    assert {(distribution.get(name, name), extra) for name, extra in EXTRAS.items()} <= result
