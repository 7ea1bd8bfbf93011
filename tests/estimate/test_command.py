"""`rag-audit provider estimate`: results, and bad input without tracebacks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from rag_audit._internal.canonical import jcs
from rag_audit._internal.durable import replace_file
from rag_audit.cli import main
from tests.named import error_name
from tests.window.simulator import QUESTIONS, Service


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["provider", "estimate", *map(str, arguments)])


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    lines = [
        json.dumps({"question": f"What is the {n}th word of {topic}?"})
        for topic in QUESTIONS
        for n in range(6)
    ]
    path = tmp_path / "questions.jsonl"
    path.write_text("\n".join(lines) + "\n\n")
    return path


def test_questions_are_judged_with_the_embedder(questions: Path, tmp_path: Path) -> None:
    small = ("--accounts", 4, "--queries", 2, "--trials", 3, "--k-max", 1)
    done = run("calibrate", "--questions", questions, *small, "--out", tmp_path, "--json")
    assert done.exit_code == 0, done.output
    value = json.loads(done.stdout)
    assert (value["questions"], value["embedder"]) == (12, "wordllama-lexical-768")
    assert value["fpr"] == value["gate_fpr"] == 1
    assert value["theta_fpr"] > 0.8
    assert len((tmp_path / "calibration.csv").read_text().splitlines()) == 17
    plain = tmp_path / "plain.txt"
    plain.write_text(
        "\n".join(json.loads(line)["question"] for line in questions.read_text().split("\n") if line)
    )
    assert json.loads(run("calibrate", "--questions", plain, *small, "--json").stdout) == value


def test_the_paper_in_one_command(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    done = run("calibrate", "--paper", "--trials", 2, "--out", tmp_path)
    assert done.exit_code == 0, done.output
    assert "P-B k=20  TPR 1.000" in done.stdout
    assert sorted(p.name for p in tmp_path.iterdir()) == ["calibration.csv", "calibration.png"]


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (None, "EncodingError|SetupError|StoreError"),
        (b"\xff\xfe", "EncodingError"),
        (b'{"question": 1}\n', "SchemaError"),
        (b'{"question": "a", \n', "EncodingError"),
        (b"", "SchemaError"),
        (b"What is law?\n", "SchemaError"),
    ],
    ids=["missing", "not UTF-8", "no question", "broken JSON", "empty", "too few"],
)
def test_a_bad_file_of_questions_is_named(content: bytes | None, error: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    if content is not None:
        path.write_bytes(content)
    done = run("calibrate", "--questions", path)
    assert done.exit_code == 2
    assert error_name(done) in error.split("|"), done.output
    assert "Traceback" not in done.output


@pytest.mark.parametrize("theta", ["0", "1", "1.5", "-0.8", "nan"])
def test_theta_outside_the_unit_interval_is_refused(theta: str, questions: Path) -> None:
    done = run("calibrate", "--questions", questions, "--theta", theta)
    assert done.exit_code == 2
    # The option's range refuses what lies outside of it, the policy's rules its two ends.
    refused_by_range = error_name(done) is None and "Invalid value for '--theta'" in done.output
    assert refused_by_range if theta not in ("0", "1") else error_name(done) == "PolicyError"


def test_one_source_of_queries(questions: Path) -> None:
    assert run("calibrate").exit_code == 2
    assert run("calibrate", "--paper", "--questions", questions).exit_code == 2
    done = run("calibrate", "--paper", "--out", questions.parent / "nowhere")
    assert done.exit_code == 2 and "the folder does not exist" in done.output


def test_a_window_is_estimated_while_it_is_open(tmp_path: Path) -> None:
    service = Service(tmp_path)
    window = service.open()
    for account in ("law-1", "medicine-1", "law-2"):
        service.ask(window, account, "Did the clinic treat Jane Roe in 2019?")
    window.shut()
    service.key.save(tmp_path / "provider.skey")
    replace_file(window.directory / "settings.json", jcs({"key": str(tmp_path / "provider.skey")}))
    done = run("window", window.directory)
    assert done.exit_code == 0, done.output
    assert "c = 3 over all tenants, 2 within one, k_max = 2: ABOVE THE CAP" in done.stdout
    assert "cluster of 3: law-1, law-2, medicine-1" in done.stdout
    value = json.loads(run("window", window.directory, "--json").stdout)
    assert (value["c"], value["k_max"], value["records"], len(value["joins"])) == (3, 2, 3, 2)
    assert run("window", tmp_path / "nowhere").exit_code == 2
