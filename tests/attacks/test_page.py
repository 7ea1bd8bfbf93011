"""The statements of docs/attacks.md about bounds follow from the table on the page."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

from rag_audit.lab.attacks.generators.extractive import LABEL
from rag_audit.lab.experiments.statistics import auc_error
from rag_audit.models.attacks import AttackRun
from tests.attacks.test_beside import result, run_value

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


def test_the_page_compares_each_figure_of_a_paper_once(generate: ModuleType) -> None:
    page = (ROOT / "docs/attacks.md").read_text()
    assert f"<!-- papers -->\n{generate.papers(page)}\n<!-- end -->" in page
    table = "**{}**\n\n| corpus | attack | AUC | recall |\n|---|---|---|---|\n| a | b | {} | 1.00 ± 0.00 (0.5) |\n"
    same = "<!-- tables -->\n" + table.format("Masks, table 1", "0.50 ± 0.10 (0.9)")
    again = same + table.format("Masks, table 2", "0.50 ± 0.10 (0.9)") + "<!-- end -->"
    text = generate.papers(again)
    assert (
        "AUC: 1 figures, 1 further than 2 standard errors (0.0 expected; probability of 1 or more: 0.046)"
        in text
    )
    assert "recall: 0 figures, 0 further" in text and "and 1 figures without a standard error" in text
    other = same + table.format("Mirabel, table 2", "0.88 ± 0.10 (0.9)") + "<!-- end -->"
    assert "AUC: 2 figures, 1 further" in generate.papers(other)


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


def test_a_language_model_stands_beside_the_baseline_and_the_papers(
    generate: ModuleType, tmp_path: Path
) -> None:
    forms = {"followed": 30, "declined": 4, "ignored": 5, "repeated": 1, "empty": 0}
    written = {"forms": forms, "copied": [0.25, 0.2, 0.3], "verbatim": [0.5, 0.4, 0.6], "longest": 17}
    runs = []
    for label, auc in (("language model Fake (sha256 00)", 0.61), (LABEL, 0.98)):
        one = result("mba", "none", written=written)
        one["figures"]["auc"] = [auc, 0.5, 1.0]
        path = tmp_path / f"{auc}.json"
        path.write_text(json.dumps(run_value(data="mts", generator=label, results=[one])))
        runs.append(AttackRun.load(path))
    (row,) = generate.beside(runs).splitlines()[2:]
    assert "0.61 (0.50 to 1.00) | 0.98 (0.50 to 1.00) | 0.88 | 0.95 |" in row
    rows = generate.answers(runs).splitlines()[2:]
    counts = "40 | 30 | 4 | 5 | 1 | 0 | 0.250 (0.200 to 0.300) | 0.50 | 17 |"
    assert f"| language model | `mba` | plain | {counts}" in rows[0]
    assert "extractive baseline" in rows[1]
