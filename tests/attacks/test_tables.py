"""The papers' tables, and what mechanisms cost those who ask."""

from pathlib import Path

import pytest

from rag_audit.commit.explore import collections
from rag_audit.lab.attacks import tables
from rag_audit.lab.attacks.cells import Bench, Cell
from rag_audit.lab.attacks.methods import ATTACKS
from rag_audit.lab.attacks.runner import Result
from rag_audit.lab.attacks.split import Split
from rag_audit.lab.attacks.tables import Question, Utility, utility

FIGURES = {name: (0.5, 0.4, 0.6) for name in
           ("auc", "tpr_at_1pct", "accuracy", "adjusted_accuracy", "precision", "recall", "f1", "ks")}  # fmt: skip


def test_every_table_is_measured_by_attacks_that_exist() -> None:
    wanted = {
        attack
        for part in (tables.MASKS_1, tables.MASKS_2, tables.SHADOW_1, tables.MIRABEL_2, tables.MIRABEL_12)
        for attacks in part.values()
        for attack in attacks
    }
    planned = {a for groups in tables.GROUPS.values() for attacks, _ in groups for a in attacks}
    assert wanted <= planned <= set(ATTACKS)
    assert set(tables.GROUPS) <= set(collections.NAMES)


def test_each_figure_stands_beside_the_papers() -> None:
    results = {
        (corpus, attack, cell): Result(
            attack, cell, 1, 40, 0, FIGURES, (0.9, 0.8, 1.0), (0.9, 0.1), None, None
        )
        for corpus, groups in tables.GROUPS.items()
        for attacks, cells in groups
        for attack in attacks
        for cell in cells
    }
    cost = Utility((0.7, 0.6, 0.8), (0.6, 0.5, 0.7), (0.1, 0.0, 0.2))
    costs = {
        (corpus, cell): cost
        for corpus in tables.GROUPS
        for cell in (tables.PLAIN, tables.MIRABEL, tables.NOISE, tables.BOTH)
    }
    text = tables.render(tables.Measured(results, costs, {}))
    assert "| mts | mba | 0.90 ± 0.10 (0.87) | 0.50 ± 0.10 (0.88) |" in text
    assert "| medquad | ia | 0.900 (0.799) | 0.900 (0.750) | 0.900 (0.896) | 0.900 (0.817) | 0.100 |" in text
    assert "| noise | 0.60 ± 0.10 (0.03) | 0.70 ± 0.10 |" in text
    for line in text.splitlines():
        assert not line.startswith("|") or "-" * 3 in line or "| - |" not in line, line


def test_noise_and_mirabel_cost_those_who_ask(bench: Bench, split: Split) -> None:
    requested = [Question(" ".join(text.split()[:18]), frozenset({n}), (text.split()[2],))
             for n, text in enumerate(split.members)]  # fmt: skip
    plain = utility(bench.engine(Cell("none")), requested)
    assert plain.recall[0] > 0.8
    assert plain.exact is not None
    assert plain.exact[0] >= plain.recall[0]
    assert plain.hidden[0] == 0
    assert utility(bench.engine(Cell("noise:1,8,64:32")), requested).recall[0] < 0.3
    hidden = utility(bench.engine(Cell("none", "mirabel")), requested)
    assert hidden.recall[0] <= plain.recall[0] - hidden.hidden[0] / 2
    assert utility(bench.engine(Cell("none")), [Question("a", frozenset({1}))]).exact is None


@pytest.mark.full
@pytest.mark.data
def test_a_collections_tables_are_measured_and_kept(tmp_path: Path) -> None:
    first = tables.measure(tmp_path, members=20, names=["squad"])
    files = {p.name: p.stat().st_mtime_ns for p in (tmp_path / "cells").iterdir()}
    assert tables.measure(tmp_path, members=20, names=["squad"]).results == first.results
    assert {p.name: p.stat().st_mtime_ns for p in (tmp_path / "cells").iterdir()} == files
    assert first.results["squad", "mba", tables.PLAIN].figures["auc"][0] > 0.8
