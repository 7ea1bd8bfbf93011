"""The way of one HTTP query from its handler to the ledger, as the interpreter's profiler sees it."""

from __future__ import annotations

import ast
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import CodeType, FrameType

import rag_audit
from rag_audit._internal.canonical import jcs
from tests.serving.conftest import serving
from tests.window.simulator import Service

ROOT = Path(rag_audit.__file__).parent
PAGE = (ROOT.parent / "docs/architecture.md").read_text()
MAX_CLIMBS = 2
"""The ledger's writer asks for an entry's bytes in ledger order, and the pool of draws asks for a slot's draw."""


def _module(code: CodeType) -> str | None:
    path = Path(code.co_filename)
    if not path.is_relative_to(ROOT):
        return None
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


@dataclass(frozen=True)
class Call:
    """A call of one function of the package by another, with what is called between them left out."""

    caller: str
    callee: str
    function: str


@contextmanager
def traced(calls: list[Call]) -> Iterator[None]:
    """Note the calls in threads that begin within the block."""
    frames: dict[int, FrameType] = {}  # which keeps each, so that no other gets its number

    def note(frame: FrameType, event: str, arg: object) -> None:
        callee = _module(frame.f_code)
        if event != "call" or callee is None or id(frame) in frames:
            return
        frames[id(frame)] = frame
        outer = frame.f_back
        while outer is not None and _module(outer.f_code) is None:
            outer = outer.f_back
        if outer is not None and (caller := _module(outer.f_code)) is not None:
            calls.append(Call(caller, callee, frame.f_code.co_qualname))

    threading.setprofile(note)
    try:
        yield
    finally:
        threading.setprofile(None)


def _layers() -> dict[str, int]:
    """The packages' layers in the drawing, from the top."""
    drawing = re.search(r"^```\n(lab[ ,].*?)```", PAGE, re.MULTILINE | re.DOTALL)
    assert drawing is not None
    rows = [line.partition("  ")[0].split() for line in drawing[1].splitlines()]
    return {package: number for number, row in enumerate(rows) for package in row}


@cache
def _imported(module: str) -> set[str]:
    """The modules that one imports, directly or by way of others."""
    result, left = set(), [module]
    while left:
        path = ROOT / (left.pop().replace(".", "/") + ".py")
        for node in ast.walk(ast.parse(path.read_text())) if path.exists() else ():
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("rag_audit."):
                parent = str(node.module).removeprefix("rag_audit.")
                named = {parent, *(f"{parent}.{alias.name}" for alias in node.names)}
                new = {n for n in named if (ROOT / (n.replace(".", "/") + ".py")).exists()} - result
                result |= new
                left += new
    return result


def test_one_query_climbs_at_most_twice_on_its_way_to_the_ledger(tmp_path: Path) -> None:
    calls: list[Call] = []
    parties = Service(tmp_path)
    with traced(calls), parties.open(system="scan") as window, serving(parties, window) as served:
        request = served.request("law-1", "What is a contract?")
        calls.clear()
        reply = served.post("/v1/query", request.canonical())
        assert reply.status == 200 and jcs(reply.value) == reply.body
        answered = list(calls)
    functions = {call.function for call in answered}
    assert {"Queries.query", "Answers.answer", "LedgerState.begin", "Ledger.append"} <= functions
    layer = _layers()

    def package(module: str) -> str:
        return module.split(".")[0]

    climbs = {c for c in answered if layer[package(c.callee)] < layer[package(c.caller)]}
    assert len(climbs) <= MAX_CLIMBS, climbs
    # Nor does the provider's own code call back into a module that imports the caller's.
    inside = {
        c
        for c in answered
        if package(c.caller) == package(c.callee)
        and package(c.caller) in ("attest", "service")
        and c.caller != c.callee
    }
    assert {c for c in inside if c.caller in _imported(c.callee)} == set()
    assert len({package(c.callee) for c in answered}) <= 9
