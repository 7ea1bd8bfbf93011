"""`rag-audit verify --example`: the packaged window passes, and the first verdict is short and without exceptions."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from rag_audit._internal.canonical import jcs
from rag_audit.cli import main
from rag_audit.cli import verify as command
from rag_audit.report.verification import verify_window
from tests.named import error_name


def run(*words: object) -> Result:
    return CliRunner().invoke(main, ["verify", "--example", *map(str, words)])


def test_the_first_verdict_has_four_lines() -> None:
    done = run()
    assert done.exit_code == 0, done.output
    verdict, checked, meaning, following = done.stdout.splitlines()
    assert re.fullmatch(r"PASS eps_audit=\d\.\d+ delta=1e-5 k_max=2 decisive=law", verdict)
    assert checked.startswith("checked: all ") and "3 of 3 answers are proved; 3 receipts agree" in checked
    assert meaning.startswith("meaning: ") and " at most a factor " in meaning
    assert following == (
        "next: rag-audit verify --example --format text prints the full report, with the limits of a PASS"
    )


def test_the_window_has_a_finite_epsilon_and_no_exception() -> None:
    folder = command.EXAMPLE
    verdict = verify_window(
        folder / "window.json", trust=folder / "trust.toml", receipts=[folder / "receipts"]
    )
    assert verdict.passed
    assert float(verdict.figures["eps_audit"]) <= 10
    assert not re.search(r"\binf\b|allow=|unsafe", verdict.line)
    for level in ("query_embedding=proved", "coalition=checked", "proofs=scan", "setup=transparent"):
        assert f" {level} " in verdict.line
    # More than half of the bytes are the key of query embeddings: commitments to the 768 columns of the table.
    assert (folder / "window.json").stat().st_size < 600_000


@pytest.mark.parametrize("words", [["--details"], ["--format", "text"]])
def test_the_report_of_the_example(words: list[str]) -> None:
    done = run(*words)
    assert done.exit_code == 0 and "\nthis does not prove\n" in done.stdout
    assert "  repeat     rag-audit verify --example\n" in done.stdout


def test_json_of_the_example() -> None:
    assert json.loads(run("--json").stdout)["outcome"] == "PASS"


@pytest.mark.parametrize(
    "words",
    [
        ["window.json"],
        ["--trust", "trust.toml"],
        ["--receipts", "r"],
        ["--previous", "w"],
        ["--challenge", "c"],
    ],
)
def test_the_example_takes_no_files(words: list[str]) -> None:
    done = run(*words)
    assert done.exit_code == 2 and "--example verifies the packaged window" in done.stderr


@pytest.mark.parametrize(
    ("words", "absent"), [([], "argument 'WINDOW'"), (["window.json"], "option '--trust'")]
)
def test_without_the_example_window_and_trust_are_required(words: list[str], absent: str) -> None:
    done = CliRunner().invoke(main, ["verify", *words])
    assert done.exit_code == 2 and f"Missing {absent}" in done.stderr


def test_a_damaged_example_has_a_whole_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = shutil.copytree(command.EXAMPLE, tmp_path / "example")
    value = json.loads((folder / "window.json").read_text())
    value["proofs"] = {}
    (folder / "window.json").write_bytes(jcs(value))
    monkeypatch.setattr(command, "EXAMPLE", folder)
    done = run("--details")
    assert done.exit_code == 2, done.output
    assert done.stdout.startswith("UNDECIDED proof.present") and "\nchecks\n" in done.stdout
    (folder / "trust.toml").unlink()
    done = run()
    assert done.exit_code == 2 and error_name(done) == "EncodingError"


def test_brief_prints_reason_and_next_step_of_a_window_that_does_not_pass(tmp_path: Path) -> None:
    folder = shutil.copytree(command.EXAMPLE, tmp_path / "example")
    value = json.loads((folder / "window.json").read_text())
    value["proofs"] = {}
    (folder / "window.json").write_bytes(jcs(value))
    words = ["verify", folder / "window.json", "--trust", folder / "trust.toml", "--brief"]
    done = CliRunner().invoke(main, [str(word) for word in words])
    line, sentence, reason, following = done.stdout.splitlines()
    assert done.exit_code == 2 and line.startswith("UNDECIDED proof.present")
    assert sentence.endswith(".") and following.startswith("next: ")
    assert reason.startswith("reason: proof.present: read 0 of 3 records") and "; expected " in reason


@pytest.mark.parametrize("other", ["--json", "--details"])
def test_brief_is_the_only_report_on_standard_output(other: str) -> None:
    done = run("--brief", other)
    assert done.exit_code == 2 and ("one report" in done.stderr or "--details" in done.stderr)
