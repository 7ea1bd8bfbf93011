"""`rag-audit lab experiment`: runs that go on, folders that are not mixed, and bad input without tracebacks."""

from __future__ import annotations

import importlib.util
import json
import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from rag_audit.cli import main
from rag_audit.lab.experiments import registry, store
from rag_audit.lab.experiments.model import Cell, Experiment, Figure, Size
from rag_audit.lab.experiments.run import CellJob, collect, measure
from rag_audit.lab.experiments.store import Store

MEASURED: list[str] = []


def _cells(size: Size) -> list[Cell]:
    return [
        Cell(f"k{k}", "engine", {"k": k, "share": 0.5}) for k in (range(3) if size == "full" else range(2))
    ]


def _run(cell: Cell, rng: np.random.Generator) -> list[Figure]:
    MEASURED.append(cell.key)
    if cell["k"] == 1 and "interrupt" in MEASURED:
        MEASURED.remove("interrupt")
        raise KeyboardInterrupt
    return [Figure("auc", 0.5 + rng.random() / 10, 0.01, paper=0.55, paper_error=0.01, bound=0.7)]


TOY = Experiment("toy", "Section 0", "two cells", _cells, _run)


@pytest.fixture(autouse=True)
def _only_the_toy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "revision", lambda: "r1")
    monkeypatch.setitem(registry.EXPERIMENTS, "toy", TOY)
    MEASURED.clear()


def call(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["lab", "experiment", *map(str, arguments)])


def refused(*arguments: object) -> dict[str, str]:
    done = call(*arguments)
    assert done.exit_code == 2, done.output
    lines = done.stderr.splitlines()
    named = dict(line.strip().split(": ", 1) for line in lines[1:])
    return {"error": lines[0], **named}


def test_a_run_writes_every_form_and_says_how_near_it_is(tmp_path: Path) -> None:
    done = call("run", "toy", "--out", tmp_path / "r", "--no-pictures", "--json")
    assert done.exit_code == 0, done.output
    summary = json.loads(done.stdout)
    assert summary["paper"]["compared"] + summary["others"]["compared"] == 2
    assert summary["bounds"]["AUC"]["sampled"] == 2
    value = json.loads((tmp_path / "r/toy.json").read_text())
    assert (value["seed"], value["revision"], value["size"]) == (1, "r1", "test")
    assert {"cpu", "cores", "load"} <= set(value["machine"]) and "numpy" in value["versions"]
    rows = (tmp_path / "r/toy.csv").read_text().splitlines()
    assert len(rows) == 3 and rows[1].startswith("toy,k0,engine,auc,0.5")
    shown = call("report", tmp_path / "r").stdout
    assert (
        "the paper's figures, each once: 1 figures, 0 further than 2 standard errors (0.0 expected" in shown
    )
    assert MEASURED == ["k0", "k1"]


def test_an_interrupted_run_goes_on_with_what_is_left(tmp_path: Path) -> None:
    MEASURED.append("interrupt")
    first = call("run", "toy", "--out", tmp_path / "r", "--no-pictures")
    assert first.exit_code == 130 and "the same command continues" in first.stderr
    kept = (tmp_path / "r/toy/k0.json").read_bytes()
    assert call("run", "toy", "--out", tmp_path / "r", "--no-pictures").exit_code == 0
    assert MEASURED == ["k0", "k1", "k1"]
    assert (tmp_path / "r/toy/k0.json").read_bytes() == kept


@pytest.mark.parametrize(
    ("option", "value", "field"),
    [("--seed", "2", "seed"), ("--size", "full", "size"), (None, "r2", "revision")],
)
def test_results_of_another_run_are_refused(
    option: str | None, value: str, field: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert call("run", "toy", "--out", tmp_path, "--no-pictures").exit_code == 0
    if option is None:
        monkeypatch.setattr(store, "revision", lambda: value)
    before = {p: p.read_bytes() for p in tmp_path.rglob("*.json")}
    error = refused("run", "toy", "--out", tmp_path, "--no-pictures", *([option, value] if option else []))
    assert f"results of another {field}" in error["error"]
    assert error["expected"].strip("'") == value and "--out" in error["hint"]
    assert {p: p.read_bytes() for p in tmp_path.rglob("*.json")} == before


def test_a_folder_of_other_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    assert "no folder of results" in refused("run", "toy", "--out", tmp_path, "--no-pictures")["error"]
    assert "no folder of results" in refused("report", tmp_path)["error"]


@pytest.mark.parametrize("fault", ["cut", "another figure", "another cell", "not a figure"])
def test_a_corrupted_cell_is_named_and_measured_again(
    fault: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert call("run", "toy", "--out", tmp_path, "--no-pictures").exit_code == 0
    path = tmp_path / "toy/k1.json"
    whole = path.read_text()
    value = json.loads(whole)
    if fault == "another figure":
        value["figures"][0]["value"] = "0.9"
    elif fault == "not a figure":
        value["figures"] = [7]
    broken = {"cut": whole[:-20], "another cell": (tmp_path / "toy/k0.json").read_text()}
    path.write_text(broken.get(fault) or json.dumps(value))
    assert str(path) in refused("report", tmp_path)["at"]
    MEASURED.clear()
    assert call("run", "toy", "--out", tmp_path, "--no-pictures").exit_code == 0
    assert MEASURED == ["k1"] and str(path) in caplog.text
    figures = [json.loads(text)["figures"] for text in (path.read_text(), whole)]
    assert figures[0] == figures[1]


def test_an_unknown_experiment_is_named(tmp_path: Path) -> None:
    error = refused("run", "toy", "figure-9", "--out", tmp_path / "r")
    assert error["actual"] == "figure-9" and "toy" in error["expected"]
    assert not (tmp_path / "r").exists()


def test_a_missing_package_is_told_before_anything_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "matplotlib" else result(name)
    )
    error = refused("run", "toy", "--out", tmp_path / "r")
    assert error["at"] == "matplotlib" and "pip install 'ragaudit-zk[experiments]'" in error["hint"]
    assert MEASURED == []
    assert call("run", "toy", "--out", tmp_path / "r", "--no-pictures").exit_code == 0


def test_two_runs_are_held_against_each_other(tmp_path: Path) -> None:
    for seed in (1, 2):
        assert (
            call("run", "toy", "--out", tmp_path / str(seed), "--seed", seed, "--no-pictures").exit_code == 0
        )
    done = call("report", tmp_path / "1", "--against", tmp_path / "2", "--json")
    value = json.loads(done.stdout)
    assert value["figures"] == 2 and 0 < float(value["root_mean_square_se"]) < 10


def test_an_executor_measures_the_same(tmp_path: Path) -> None:
    for cell in TOY.cells("full"):
        job = CellJob("toy", cell, 3)
        assert pickle.loads(pickle.dumps(job)) == job  # as it travels
    alone, apart = Store.create(tmp_path / "a", "full", 3), Store.create(tmp_path / "b", "full", 3)
    measure(alone, [TOY])
    with ThreadPoolExecutor(2) as pool:
        measure(apart, [TOY], pool)
    assert [figures for _, figures in collect(alone, [TOY])["toy"]] == [
        figures for _, figures in collect(apart, [TOY])["toy"]
    ]


def test_every_experiment_is_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    value = json.loads(call("list", "--json").stdout)
    assert set(value) == set(registry.EXPERIMENTS)
    (tmp_path / "collection").touch()
    monkeypatch.setenv("RAG_AUDIT_DATA", str(tmp_path))  # `recall` has cells where it finds the collections
    assert all((e.cells("test") or e.after) and len({c.key for c in e.cells("full")}) == len(e.cells("full"))
               for e in registry.EXPERIMENTS.values())  # fmt: skip


def test_only_recall_has_no_cells_without_the_collections(monkeypatch: pytest.MonkeyPatch) -> None:
    """No experiment looks for the collections anywhere but in the folder that the variable names."""
    monkeypatch.delenv("RAG_AUDIT_DATA", raising=False)
    assert [n for n, e in registry.EXPERIMENTS.items() if not e.cells("full") and not e.after] == ["recall"]


def test_missing_texts_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAG_AUDIT_DATA", str(tmp_path / "none"))
    done = call("run", "recall", "--out", tmp_path / "r", "--no-pictures")
    assert done.exit_code == 0 and "RAG_AUDIT_DATA" in done.stderr
