"""No function of the package has more than ten parameters: what belongs together is one value with a name."""

from __future__ import annotations

import ast
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "rag_audit"
MAX_PARAMETERS = 10


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    """The names of a function's parameters, without those of the object or the class that it belongs to."""
    own = function.args
    names = [a.arg for a in (*own.posonlyargs, *own.args, *own.kwonlyargs)]
    return [name for name in names if name not in ("self", "cls")]


def test_no_function_has_more_than_ten_parameters() -> None:
    functions = [
        (path.relative_to(PACKAGE), node)
        for path in sorted(PACKAGE.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    assert functions
    above = [
        f"{path}:{node.lineno} {node.name} has {count}"
        for path, node in functions
        if (count := len(parameters(node))) > MAX_PARAMETERS
    ]
    assert above == []


def test_no_command_hides_its_options() -> None:
    """A command with `**options` would have as many parameters as it likes."""
    hidden = [
        f"{path.relative_to(PACKAGE)}:{node.lineno} {node.name}"
        for path in sorted(PACKAGE.glob("cli/**/*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef)
        and node.args.kwarg is not None
        and any("command(" in ast.unparse(d) for d in node.decorator_list)
    ]
    assert hidden == []
