"""The commands: what they print and write, and how bad input ends."""

import importlib.util
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from rag_audit.cli import main
from rag_audit.lab.attacks.mechanisms import Attacked
from rag_audit.models.attacks import AttackRun


def run(*words: object) -> Result:
    return CliRunner().invoke(main, [str(w) for w in words])


@pytest.fixture
def notes(texts: list[str], tmp_path: Path) -> Path:
    path = tmp_path / "notes.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts[:160]))
    return path


def test_the_list_names_every_attack_and_its_paper() -> None:
    result = run("lab", "attack", "list")
    assert result.exit_code == 0
    assert (
        "mba " in result.output
        and "paper 000" in result.output
        and "needs log-probabilities" in result.output
    )


def test_a_run_prints_a_table_and_writes_its_files(notes: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = run(
        "lab",
        "attack",
        "run",
        "rag-mia",
        "--data",
        notes,
        "--members",
        30,
        "--mechanism",
        "none",
        "--mechanism",
        "noise:1,8,64:32",
        "--k",
        2,
        "--trials",
        30,
        "--out",
        out,
        "--json",
    )
    assert result.exit_code == 0, result.output
    value = json.loads(result.stdout)
    assert [r["cell"]["accounts"] for r in value["results"]] == [1, 1, 2]
    assert value["results"][0]["figures"]["auc"][0] > 0.7
    assert {p.name for p in out.iterdir()} == {"attacks.json", "attacks.csv", "section.md", "cells"}
    run_ = AttackRun.load(out / "attacks.json")
    assert (run_.n, run_.k_max, run_.top_k) == (200, 2, 5)
    kinds = {name: m.kind for name, m in run_.mechanisms.items()}
    assert kinds == {"none": "none", "noise:1,8,64:32": "noise"}
    assert "| rag-mia |" in (out / "section.md").read_text()


@pytest.mark.full
def test_cells_in_two_processes_are_those_of_one(notes: Path, tmp_path: Path) -> None:
    words = ["lab", "attack", "run", "rag-mia", "--data", notes, "--members", 30, "--trials", 20, "--mechanism", "none",
             "--mechanism", "noise:1:128", "--k", 1, "--json"]  # fmt: skip
    result = [run(*words, "--jobs", jobs, "--out", tmp_path / str(jobs)) for jobs in (1, 2)]
    assert [f.exit_code for f in result] == [0, 0]
    values = [[r["figures"]["auc"][0] for r in json.loads(f.stdout)["results"]] for f in result]
    assert values[0] == values[1]


def test_a_missing_classifier_is_named_before_anything_is_asked(
    notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "sklearn" else result(name))
    out = tmp_path / "out"
    done = run("lab", "attack", "run", "all", "--data", notes, "--out", out)
    assert done.exit_code == 2 and "scikit-learn" in done.stderr and "ragaudit-zk[experiments]" in done.stderr
    assert not [*out.rglob("*.json")]


def test_a_bound_that_is_exceeded_ends_in_one(
    notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Attacked, "certified", lambda *_: (0.001, 0.501))
    result = run(
        "lab",
        "attack",
        "run",
        "rag-mia",
        "--data",
        notes,
        "--members",
        40,
        "--mechanism",
        "sampling:0.7",
        "--k",
        1,
        "--trials",
        60,
        "--out",
        tmp_path / "out",
    )
    assert result.exit_code == 1
    assert "one of the two is wrong" in result.output


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["nonsense"], "no attack has this name"),
        (["rag-mia", "--members", "100"], "too few documents for the split"),
        (["rag-mia", "--mechanism", "loud"], "the option names no mechanism"),
        (
            ["rag-mia", "--target", "http://127.0.0.1:9/v1"],
            "the attack needs documents outside of the service",
        ),
        (["rag-mia", "--others", "NOTES"], "members and others overlap"),
        (["rag-mia", "--members", "30", "--generator", "http://127.0.0.1:9"], "needs the name of its model"),
    ],
)
def test_bad_input_is_named(options: list[str], said: str, notes: Path, tmp_path: Path) -> None:
    words = [str(notes) if word == "NOTES" else word for word in options]
    result = run("lab", "attack", "run", *words, "--data", notes, "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert said in result.output


def test_data_that_are_not_there_are_named(tmp_path: Path) -> None:
    result = run("lab", "attack", "run", "rag-mia", "--data", tmp_path / "none", "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert "the documents are unknown" in result.output


def test_canaries_from_coins_to_a_bound(notes: Path, tmp_path: Path) -> None:
    file, marked = tmp_path / "canaries", tmp_path / "marked.jsonl"
    assert run("lab", "canary", "new", file, "--docs", notes, "--count", 120).exit_code == 0
    inserted = sum(json.loads(line)["inserted"] for line in file.read_text().splitlines())
    assert run("lab", "canary", "insert", file, "--docs", notes, "--out", marked).exit_code == 0
    assert marked.read_text().count("\n") == 160 + inserted
    result = run("lab", "canary", "test", file, "--docs", notes, "--mechanism", "none", "--json")
    assert result.exit_code == 0, result.output
    assert float(json.loads(result.stdout)["eps_lower"]) > 0.3
