"""The type stub of the native module says what the module has, and what stands for it in a page: names, parameters."""

from __future__ import annotations

import ast
import inspect
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from rag_audit.report.browser.inside import native

ROOT = Path(__file__).resolve().parents[2]


def test_stub_agrees_with_the_module(tmp_path: Path) -> None:
    # Apart from the package, all of which would be checked on the way to the stub: `make lint` does that.
    package = tmp_path / "rag_audit"
    package.mkdir()
    (package / "__init__.pyi").touch()
    shutil.copy(ROOT / "rag_audit" / "_native.pyi", package)
    done = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "--mypy-config-file", "pyproject.toml", "rag_audit._native"],
        cwd=ROOT,
        env={**os.environ, "MYPYPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def _of_stub() -> dict[str, list[str]]:
    """The parameters of every function and method of the stub; a class has those with which it is made."""
    result = {}
    for node in ast.parse((ROOT / "rag_audit" / "_native.pyi").read_text()).body:
        for part in node.body if isinstance(node, ast.ClassDef) else [node]:
            if isinstance(part, ast.FunctionDef):
                owner = f"{node.name}." if isinstance(node, ast.ClassDef) and part.name != "__new__" else ""
                name = node.name if isinstance(node, ast.ClassDef) and not owner else owner + part.name
                result[name] = [a.arg for a in part.args.args if a.arg not in ("self", "cls")]
    return result


def _of_page() -> Iterator[tuple[str, inspect.Signature]]:
    """The signature of everything public that the page's module defines."""
    for name, value in vars(native).items():
        if name.startswith("_") or getattr(value, "__module__", "") != native.__name__:
            continue
        yield name, inspect.signature(value)
        if inspect.isclass(value):
            for method, function in inspect.getmembers(value, inspect.isfunction):
                if not method.startswith("_"):
                    yield f"{name}.{method}", inspect.signature(function)


def test_stub_agrees_with_what_stands_for_the_module_in_a_page() -> None:
    stub, page = _of_stub(), dict(_of_page())
    assert len(page) > 40 and page.keys() <= stub.keys()
    for name, signature in page.items():
        parameters = [p for p in signature.parameters.values() if p.name != "self"]
        named = [p for p in parameters if p.kind is not p.VAR_POSITIONAL]
        assert len(named) == len(stub[name]) or len(named) < min(len(stub[name]), len(parameters)), name
        for mine, theirs in zip(named, stub[name], strict=False):
            assert mine.kind is mine.POSITIONAL_ONLY or mine.name == theirs, name
