"""Code outside the files of mechanisms asks a mechanism and never compares its name, its class or its parameters."""

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NAMES = {"noise", "sampling", "pooled-listing"}
CLASSES = {"Noise", "Sampling", "PooledListing", "Exact", "SampledTopK", "Plain"}
PARAMETERS = {"gains", "flip_probability", "threshold", "keep"}
MECHANISMS = ("rag_audit/mechanisms/", "rag_audit/retrieval/serving/", "rag_audit/lab/attacks/mechanisms/")
"""The folders with a file for each mechanism: what both parties read, the part that a provider runs, and the engine
under attack."""
ALLOWED = {
    "rag_audit/commit/explore/bernoulli.py": "the simulated list reads the threshold of its own class",
    "rag_audit/proofs/": "proof systems read the constants of circuits and statements",
}
"""Files, or folders, that may compare, and why."""


def branches(source: str) -> list[int]:
    """The lines of a module that branch on a mechanism."""
    result = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            words = {
                c.value
                for s in sides
                for c in ast.walk(s)
                if isinstance(c, ast.Constant) and isinstance(c.value, str)
            }
            named = any(re.search(r"mechanism|kind", ast.unparse(s)) for s in sides)
            own = {s.attr for s in sides if isinstance(s, ast.Attribute)}
            if words & NAMES or (named and words & {"none"}) or own & PARAMETERS:
                result.append(node.lineno)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("isinstance", ".startswith")):
            inside = {n.id for a in node.args for n in ast.walk(a) if isinstance(n, ast.Name)}
            words = {c.value for a in node.args for c in ast.walk(a) if isinstance(c, ast.Constant)}
            if inside & CLASSES or words & NAMES:
                result.append(node.lineno)
        result += [t.lineno for t in _tested(node) if isinstance(t, ast.Attribute) and t.attr in PARAMETERS]
    return sorted(set(result))


def _tested(node: ast.AST) -> list[ast.expr]:
    """The expressions whose truth a node asks for."""
    if isinstance(node, ast.If | ast.IfExp | ast.While | ast.Assert):
        return [node.test]
    if isinstance(node, ast.BoolOp):
        return node.values
    if isinstance(node, ast.comprehension):
        return node.ifs
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return [node.operand]
    if isinstance(node, ast.Call) and ast.unparse(node.func) in ("any", "all", "bool"):
        return [a.elt if isinstance(a, ast.GeneratorExp | ast.ListComp) else a for a in node.args]
    return []


def _found() -> dict[str, list[int]]:
    names = subprocess.run(
        ["git", "ls-files", "rag_audit/*.py"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    inside = [n for n in names.stdout.split() if not n.startswith(MECHANISMS)]
    return {name: lines for name in inside if (lines := branches((ROOT / name).read_text()))}


FOUND = _found()


def test_no_code_outside_the_mechanisms_branches_on_one() -> None:
    unexpected = {n: lines for n, lines in FOUND.items() if not any(n.startswith(a) for a in ALLOWED)}
    assert not unexpected


def test_every_exception_is_needed() -> None:
    assert [a for a in ALLOWED if not any(n.startswith(a) for n in FOUND)] == []


@pytest.mark.parametrize(
    "source",
    [
        'if t.mechanism == "sampling": pass',
        "x = 1 if rules.flip_probability is not None else 2",
        "if m.gains: pass",
        "y = isinstance(m, PooledListing)",
        'z = [t for t in tenants if t.mechanism in ("noise", "pooled-listing")]',
        'w = written.startswith("noise")',
        "u = any(m.gains for m in found)",
        'v = "none" if p.mechanism != "none" else ""',
    ],
)
def test_a_branch_is_found(source: str) -> None:
    assert branches(source) == [1]


@pytest.mark.parametrize("source", ["if m.protects: pass", 'a = f.get("setup", "none")', "n = len(m.gains)"])
def test_what_is_no_branch_is_not(source: str) -> None:
    assert branches(source) == []
