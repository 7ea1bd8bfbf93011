"""The statements of docs/attacks.md about bounds follow from the table on the page."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from rag_audit.lab.experiments.statistics import auc_error

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    spec = importlib.util.spec_from_file_location("attacks_page", ROOT / "docs/attacks/generate.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_the_page_has_the_statements_of_its_own_table(generate: ModuleType) -> None:
    page = (ROOT / "docs/attacks.md").read_text()
    compared = generate.of_page(page)
    assert len(compared) == 16 * len(generate.CERTIFIED)
    assert f"<!-- bounds -->\n{generate.bounds(compared)}\n<!-- end -->" in page


def test_every_lower_bound_of_the_page_is_below_its_certified_bound(generate: ModuleType) -> None:
    compared = generate.of_page((ROOT / "docs/attacks.md").read_text())
    assert all(c.lower < c.certified for c in compared)
    assert all((c.auc - c.ceiling) / auc_error(c.auc, generate.TRIALS) < 3 for c in compared)


def test_a_bound_above_the_certified_one_is_counted(generate: ModuleType) -> None:
    row = "| `ia` | 2.00 < 1.5 (0.70 / 0.60) |"
    (one,) = generate.of_page(row)
    assert (one.place, one.lower, one.certified, one.auc, one.ceiling) == (
        "ia, weak noise",
        2.0,
        1.5,
        0.7,
        0.6,
    )
    text = generate.bounds([one])
    assert "1, of which 1 are above the certified epsilon and 0 are 0;" in text
    assert "standard errors above its bound" in text
