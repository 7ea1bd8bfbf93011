"""A report can say every value that a check can judge: a provider's values turn no verdict into a fault of the
program."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rag_audit._internal.canonical import MAX_SAFE_INTEGER
from rag_audit.cli.reports import FORMATS
from rag_audit.models.attacks import _epsilon, _share
from rag_audit.models.chain import Outcome, Unanswered
from rag_audit.report import render_report
from rag_audit.report.build import report_of
from rag_audit.report.model import Report
from rag_audit.report.verification import verify_window
from tests.simulate.cases import FOLDER

FEW, TRUST = FOLDER / "few/window.json", FOLDER / "honest/trust.toml"
Change = Callable[[dict[str, Any]], object]


def noise(**values: int) -> Change:
    return lambda v: v["policy"]["noise"].update(values)


def dimension(value: int) -> Change:
    return lambda v: v["embedder"]["schema"].update(dimension=value)


def previous(abandoned: int, empty: int = 0) -> Change:
    named = {"header": "0" * 64, "root": "0" * 64, "abandoned": abandoned, "empty": empty}
    return lambda v: v["entries"][0].update(previous=named)


HOSTILE: dict[str, Change] = {
    "lo above hi": noise(lo=900, hi=100),
    "hi at the limit of integers": noise(lo=0, hi=MAX_SAFE_INTEGER),
    "a lattice at the limit": noise(lattice=MAX_SAFE_INTEGER),
    "a negative dimension": dimension(-256),
    "no dimension": dimension(0),
    "a dimension of 2^48": dimension(1 << 48),
    "a dimension at the limit": dimension(MAX_SAFE_INTEGER),
    "a negative dimension at the limit": dimension(-MAX_SAFE_INTEGER),
    "a count of abandoned windows at the limit": previous(MAX_SAFE_INTEGER),
    "a count of empty windows at the limit": previous(0, empty=MAX_SAFE_INTEGER),
    "times at the limit": lambda v: v["entries"][0].update(
        opens_at=MAX_SAFE_INTEGER, closes_at=MAX_SAFE_INTEGER
    ),
    "a window that ends before it begins": lambda v: v["entries"][0].update(
        opens_at=MAX_SAFE_INTEGER, closes_at=0
    ),
    "queries without limit": lambda v: v["policy"].update(n=MAX_SAFE_INTEGER),
    "a coalition without limit": lambda v: v["policy"].update(k_max=MAX_SAFE_INTEGER),
    "capacities at the limit": lambda v: [
        t.update(capacity=MAX_SAFE_INTEGER) for t in v["policy"]["tenants"]
    ],
    "accounts at the limit": lambda v: [
        t.update(accounts_max=MAX_SAFE_INTEGER) for t in v["policy"]["tenants"]
    ],
    "lists at the limit": lambda v: v["policy"].update(top_k=MAX_SAFE_INTEGER),
    "theta above 1": lambda v: v["policy"]["estimator"].update(theta=[MAX_SAFE_INTEGER, 1]),
    "a tau at the limit": lambda v: v["policy"]["estimator"].update(tau=MAX_SAFE_INTEGER),
    "a delta at the limit": lambda v: v["policy"].update(delta_policy="1e-999"),
    "a deletion at the limit": lambda v: v["policy"].update(delete_after=MAX_SAFE_INTEGER),
    "gains at the limit": noise(gains=[MAX_SAFE_INTEGER]),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", HOSTILE)
def test_every_format_says_what_the_checks_found(name: str, tmp_path: Path) -> None:
    value = json.loads(FEW.read_text())
    HOSTILE[name](value)
    (tmp_path / "window.json").write_text(json.dumps(value))
    verdict = verify_window(tmp_path / "window.json", trust=TRUST)
    assert verdict.exit_code == 1
    report = report_of(verdict)
    formats = {kind: render_report(report, kind, checks=True) for kind in FORMATS}
    assert json.loads(formats["json"])["exit_code"] == 1
    assert all("header" in text for text in formats.values())


def test_the_count_of_abandoned_windows_ends_at_the_largest_integer() -> None:
    maximum = Unanswered(MAX_SAFE_INTEGER, MAX_SAFE_INTEGER)
    assert maximum.after(Outcome.ABANDONED) == maximum.after(Outcome.EMPTY) == maximum
    assert Unanswered(MAX_SAFE_INTEGER - 1, 0).after(Outcome.ABANDONED) == Unanswered(MAX_SAFE_INTEGER, 0)
    assert maximum.after(Outcome.COMPLETE) == Unanswered()


def test_no_number_of_a_report_has_limits() -> None:
    """Of the report's own fields only the exit code has a range."""

    def limited(node: Any, place: str) -> list[str]:
        if isinstance(node, list):
            return [p for item in node for p in limited(item, place)]
        if not isinstance(node, dict):
            return []
        own = (
            [place]
            if {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "maxLength"} & node.keys()
            else []
        )
        return own + [p for key, inner in node.items() for p in limited(inner, f"{place}.{key}")]

    assert limited(Report.model_json_schema(), "report") == ["report.properties.exit_code"]


@pytest.mark.parametrize("zero", ["-0.0", "-0", "-0e0", "-0.0e-5"])
def test_a_negative_zero_of_an_attacks_file_is_zero(zero: str) -> None:
    assert str(_share(zero)) == str(_epsilon(zero)) == "0.0"
