"""Attacks against the engine: what they get without a mechanism, and what a mechanism's bound allows."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from rag_audit.errors import StoreError
from rag_audit.lab.attacks import campaign, runner
from rag_audit.lab.attacks.cells import Bench, Cell, default_cells
from rag_audit.lab.attacks.interface import AttackError, Probe, Reply
from rag_audit.lab.attacks.mechanisms.noise import STRONG_NOISE, WEAK_NOISE
from rag_audit.lab.attacks.methods import ATTACKS, chosen
from rag_audit.lab.attacks.metrics import best_threshold
from rag_audit.lab.attacks.report import csv_of, section, table, verdict
from rag_audit.lab.attacks.split import Split

FAST = ("mba", "rag-mia", "s2mia-s", "ia", "jaccard")


def plan(split: Split, names: tuple[str, ...], *cells: Cell, trials: int = 0) -> runner.Plan:
    return runner.Plan(names, cells, trials, 1, (200, 4), runner.digest_of(split))


@pytest.mark.parametrize("name", list(ATTACKS))
def test_an_attack_tells_members_where_nothing_protects_them(name: str, bench: Bench, split: Split) -> None:
    (result,) = runner.run(plan(split, (name,), Cell("none")), chosen([name]), bench, split)
    assert result.figures["auc"][0] > (0.65 if name in ("min-k", "s2mia-p") else 0.8)
    assert result.retrieval is not None
    assert result.retrieval[0] > 0.9
    assert result.bounds is None


def test_strong_noise_leaves_chance_and_lists_refute_no_certificate(bench: Bench, split: Split) -> None:
    cells = (
        Cell(STRONG_NOISE),
        Cell("pooled-listing:0.7:0.1:3000"),
        Cell("pooled-listing:0.7:0.1:3000", accounts=2),
    )
    results = runner.run(plan(split, ("rag-mia",), *cells, trials=200), chosen(["rag-mia"]), bench, split)
    for r in results:
        assert r.bounds is not None
        assert math.isfinite(r.bounds.certified)
        assert r.bounds.distance >= 0
    noise, listing = results[0], results[2]
    assert noise.figures["auc"][0] < 0.7
    assert listing.bounds is not None
    assert listing.bounds.lower > 0.5, "listing finds relevant documents, so its epsilon cannot be near 0"
    assert runner.refuted(results) == []


def test_a_leak_beyond_the_certificate_is_refuted(bench: Bench, split: Split) -> None:
    """The check can fail: an engine that adds no noise under the certificate of strong noise."""
    engine = bench.engine(Cell("none"))
    prepared = campaign.prepare(chosen(["rag-mia"])[0], split, bench.tools)
    _, scorer = campaign.population(prepared, engine)
    inside, outside = campaign.worlds(prepared, engine, scorer, accounts=1, trials=200)
    lower = runner.clopper_pearson_epsilon(inside, outside, delta=runner.DELTA)
    certified = bench.attacked(STRONG_NOISE).certified(1, 1, runner.DELTA)[0]
    bounds = runner.Bounds(lower, lower, certified, certified, 1.0, 200)
    result = runner.Result("rag-mia", Cell(STRONG_NOISE), 1, 120, 0, {}, None, (0.0, 0.0), None, bounds)
    assert runner.refuted([result]) == [result]
    assert "lies above the certified" in verdict([result])[0]


def test_a_coalition_gets_more_through_weak_noise(bench: Bench, split: Split) -> None:
    cells = (Cell("noise:1,1,1,1:64"), Cell("noise:1,1,1,1:64", accounts=8))
    alone, batch = runner.run(plan(split, ("rag-mia",), *cells), chosen(["rag-mia"]), bench, split)
    assert batch.retrieval is not None
    assert alone.retrieval is not None
    assert batch.retrieval[0] > alone.retrieval[0]
    assert batch.figures["auc"][0] >= alone.figures["auc"][0]


@pytest.mark.parametrize(("defence", "name"), [("mirabel", "rag-mia"), ("prompt", "rag-mia")])
def test_a_defence_lowers_what_an_attack_gets(defence: str, name: str, bench: Bench, split: Split) -> None:
    cells = (Cell("none"), Cell("none", defence))  # type: ignore[arg-type]
    bare, defended = runner.run(plan(split, (name,), *cells), chosen([name]), bench, split)
    assert defended.figures["auc"][0] < bare.figures["auc"][0] - 0.2


def test_mirabel_on_exact_scores_has_no_certificate() -> None:
    assert Cell(STRONG_NOISE, "mirabel").certified
    assert not Cell(STRONG_NOISE, "mirabel-plain").certified
    assert not Cell("sampling:0.7", "mirabel").certified


def test_a_run_has_every_mechanism_by_default_and_coalitions_where_a_bound_covers_them() -> None:
    assert default_cells(1) == [
        *(Cell("none", defence) for defence in ("none", "mirabel", "prompt", "paraphrase")),
        *(Cell(WEAK_NOISE, defence) for defence in ("none", "mirabel")),
        *(Cell(written) for written in (STRONG_NOISE, "sampling:0.7", "pooled-listing:0.9")),
    ]
    coalitions = [cell for cell in default_cells(4) if cell.accounts == 4]
    assert coalitions == [
        Cell(written, accounts=4)
        for written in (
            WEAK_NOISE,
            STRONG_NOISE,
            "sampling:0.7",
            "pooled-listing:0.9",
        )
    ]


def test_finished_cells_are_kept_and_a_damaged_one_is_named(
    bench: Bench, split: Split, tmp_path: Path
) -> None:
    p = plan(split, FAST[:2], Cell("none"), Cell("sampling:0.7"))
    first = runner.run(p, chosen(list(FAST[:2])), bench, split, tmp_path)
    files = sorted((tmp_path / "cells").iterdir())
    assert len(files) == 4
    value = json.loads(files[0].read_text())
    value["figures"]["auc"][0] = 0.123
    files[0].write_text(json.dumps(value))
    again = runner.run(p, chosen(list(FAST[:2])), bench, split, tmp_path)
    assert sum(r.figures["auc"][0] == 0.123 for r in again) == 1, "a kept cell is read, not run"
    assert [r.cell for r in again] == [r.cell for r in first]
    files[1].write_text("{")
    with pytest.raises(StoreError) as caught:
        runner.run(p, chosen(list(FAST[:2])), bench, split, tmp_path)
    assert caught.value.field == str(files[1])


def test_results_are_written_for_people_and_programs(bench: Bench, split: Split) -> None:
    results = runner.run(plan(split, ("rag-mia",), Cell("none"), Cell("pooled-listing:0.9"), trials=40),
                         chosen(["rag-mia"]), bench, split)  # fmt: skip
    lines = csv_of(results).decode().splitlines()
    assert len(lines) == 3
    assert len({line.count(",") for line in lines}) == 1
    assert "| rag-mia |" in section(results, "a label")
    printed = table(results)
    assert len(printed) == 8 and "verbatim" in printed[4] and "       120       120" in printed[5]
    assert [runner.Result.parse(r.as_json()) for r in results] == results


def test_a_service_without_probabilities_is_told_apart(bench: Bench, split: Split) -> None:
    class Silent:
        label, probabilities = "silent", False

        def ask(self, probes: list[Probe]) -> list[Reply]:
            raise AssertionError("nothing is asked")

    prepared = campaign.prepare(chosen(["min-k"])[0], split, bench.tools)
    with pytest.raises(AttackError, match="no log-probabilities"):
        campaign.population(prepared, Silent())  # type: ignore[arg-type]


def test_a_threshold_lies_between_the_scores_that_it_divides() -> None:
    assert best_threshold(np.array([0.7, 0.8]), np.array([0.1, 0.3])) == pytest.approx(0.5)
    assert best_threshold(np.array([0.2, 0.8]), np.array([0.1, 0.3]), by="f1") == pytest.approx(0.15)


def test_an_unknown_attack_is_named() -> None:
    with pytest.raises(AttackError) as caught:
        chosen(["mba", "nonsense"])
    assert caught.value.actual == "nonsense"
    assert {a.name for a in chosen(["all"])} == set(ATTACKS)


def test_the_order_of_attacks_and_resumed_runs_change_no_task(bench: Bench, split: Split) -> None:
    alone = campaign.prepare(chosen(["ia"])[0], split, bench.tools)
    campaign.prepare(chosen(["mba-random"])[0], split, bench.tools)
    assert campaign.prepare(chosen(["ia"])[0], split, bench.tools).tasks == alone.tasks


def test_some_cells_are_run_as_they_are_with_all(bench: Bench, split: Split, tmp_path: Path) -> None:
    p = plan(split, ("ia",), Cell("none"), Cell("sampling:0.7"))
    session = runner.Session(p, chosen(["ia"]), bench, split)
    (second,) = session.run(tmp_path, only=[p.cells[1]])
    assert runner.run(p, chosen(["ia"]), bench, split)[1] == second
    assert len(list((tmp_path / "cells").iterdir())) == 1
