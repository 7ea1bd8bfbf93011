"""The examples in docstrings, and that the functions which auditors call have one."""

from __future__ import annotations

import ast
import doctest
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SHOWN = (
    *("verify/verifier.py", "verify/verdict.py", "verify/case.py", "verify/standing.py"),
    *sorted(
        f"mechanisms/accounting/{path.name}"
        for path in (ROOT / "rag_audit/mechanisms/accounting").glob("[a-z]*.py")
    ),
)
"""Modules in which each public function has an example."""
MODULES = sorted(
    path.relative_to(ROOT) for path in (ROOT / "rag_audit").rglob("*.py") if "\n    >>> " in path.read_text()
)


@pytest.mark.parametrize("path", MODULES, ids=str)
def test_the_examples_are_right(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    module = importlib.import_module(".".join(path.with_suffix("").parts).removesuffix(".__init__"))
    failed, tried = doctest.testmod(module)
    assert tried > 0 and failed == 0


@pytest.mark.parametrize("name", SHOWN)
def test_what_auditors_call_has_an_example(name: str) -> None:
    tree = ast.parse((ROOT / "rag_audit" / name).read_text())
    functions = {
        n.name: n for n in tree.body if isinstance(n, ast.FunctionDef) and not n.name.startswith("_")
    }
    assert functions
    assert [f.name for f in functions.values() if ">>> " not in (ast.get_docstring(f) or "")] == []
