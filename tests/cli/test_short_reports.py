"""A run without a verdict writes every report that it was asked for, so that no earlier report outlives it."""

from __future__ import annotations

import itertools
import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from rag_audit.cli import main
from rag_audit.cli.reports import FORMATS
from rag_audit.report import language
from rag_audit.report.model import NO_FILE, Report, ShortReport
from tests.report.test_messages import CLASSES, UNREADABLE
from tests.simulate.cases import FOLDER

STALE = "an earlier report: PASS"


def verify(window: Path, trust: Path, *words: object) -> Result:
    return CliRunner().invoke(main, ["verify", str(window), "--trust", str(trust), *map(str, words)])


def outputs(folder: Path) -> list[object]:
    """Options for every format, each with a file that an earlier run left."""
    words: list[object] = []
    for name in FORMATS:
        (folder / f"r.{name}").write_text(STALE)
        words += ["--format", name, "--output", folder / f"r.{name}"]
    return words


def written(folder: Path) -> dict[str, str]:
    return {name: (folder / f"r.{name}").read_text() for name in FORMATS}


def says_no_pass(faces: dict[str, str], outcome: str, exit_code: int) -> dict[str, Any]:
    """Check that each format says that there is no verdict, and return the JSON."""
    assert all(STALE not in text and text.endswith("\n") for text in faces.values())
    value: dict[str, Any] = json.loads(faces["json"])
    assert (value["outcome"], value["exit_code"]) == (outcome, exit_code)
    assert ShortReport.parse(value, field="report") and set(value) == set(Report.model_fields)
    assert faces["text"].startswith(f"{outcome} ") and f"<h1>{outcome} " in faces["html"]
    suites = ET.fromstring(faces["junit"])
    assert int(suites.get("errors") or 0) == 1 and len(list(suites.iter("error"))) == 1
    (run,) = json.loads(faces["sarif"])["runs"]
    (result,) = run["results"]
    assert (result["kind"], result["level"]) == ("fail", "error")
    assert run["invocations"][0]["exitCode"] == exit_code
    assert json.loads(faces["vsa"])["predicate"]["verificationResult"] == "FAILED"
    return value


@pytest.mark.parametrize("name", UNREADABLE)
def test_an_unreadable_window_replaces_every_report(name: str, tmp_path: Path) -> None:
    case = json.loads((FOLDER / name / "case.json").read_text())
    words = outputs(tmp_path)
    for option, value in (("--challenge", case["challenges"]), ("--receipts", case["receipts"])):
        words += itertools.chain.from_iterable((option, FOLDER / name / path) for path in value)
    done = verify(FOLDER / name / case["window"], FOLDER / name / case["trust"], *words)
    assert done.exit_code == 2 and done.stdout == "" and done.stderr.startswith("rag-audit: ")
    assert not CLASSES.search(done.stderr)
    faces = written(tmp_path)
    value = says_no_pass(faces, "MALFORMED", 2)
    malformed = value["malformed"]
    assert malformed["error"] == case["expect"]["error"]
    assert all(malformed[key] for key in ("object", "expected", "actual", "next_step", "message"))
    assert malformed["expected"] != malformed["actual"]
    assert all(line.isprintable() for text in faces.values() for line in text.split("\n"))
    assert not [kind for kind, text in faces.items() if str(FOLDER) in text], (
        "paths have their last names alone"
    )


@pytest.mark.parametrize("options", [["--json"], ["--format", "json"]], ids=["json", "format"])
def test_standard_output_has_the_same_object(options: list[str], tmp_path: Path) -> None:
    done = verify(FOLDER / "few/window.json", tmp_path / "t.toml", *options)
    assert done.exit_code == 2
    value = json.loads(done.stdout)
    assert value["outcome"] == "MALFORMED" and value["malformed"]["object"] == "t.toml"
    assert (
        done.stderr
        == f"rag-audit: trust file not found: {tmp_path}/t.toml (create one with `rag-audit verifier trust new`)\n"
    )
    passed = verify(FOLDER / "few/window.json", FOLDER / "honest/trust.toml", *options)
    assert json.loads(passed.stdout).keys() == value.keys()


def raising(error: type[BaseException]) -> Callable[..., None]:
    """A function of any arguments that raises this."""

    def fault(*_: object, **__: object) -> None:
        raise error

    return fault


@pytest.fixture
def fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """What a verification prints whose bound's check, or another function, raises an error."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def run(error: type[BaseException], function: str = "rag_audit.verify.checks.bound.check") -> Result:
        monkeypatch.setattr(function, raising(error))
        return verify(FOLDER / "few/window.json", FOLDER / "honest/trust.toml", *outputs(tmp_path))

    return run


def test_a_fault_before_the_verdict_replaces_every_report(
    fails: Callable[..., Result], tmp_path: Path
) -> None:
    done = fails(ZeroDivisionError)
    assert done.exit_code == 70 and done.stdout == "" and "InternalError" in done.stderr
    value = says_no_pass(written(tmp_path), "INTERNAL", 70)
    assert value["malformed"] is None and value["fault"] == "ZeroDivisionError"


def test_a_full_memory_is_no_fault(fails: Callable[..., Result], tmp_path: Path) -> None:
    done = fails(MemoryError)
    assert done.exit_code == 2 and done.stderr.startswith("rag-audit: not enough memory")
    assert says_no_pass(written(tmp_path), "MALFORMED", 2)["malformed"]["error"] == "MemoryLimitError"


def test_a_run_that_is_stopped_leaves_no_earlier_report(fails: Callable[..., Result], tmp_path: Path) -> None:
    assert fails(KeyboardInterrupt).exit_code == 130
    says_no_pass(written(tmp_path), "UNFINISHED", 2)


def test_a_format_that_cannot_be_rendered_is_replaced_by_its_short_form(
    fails: Callable[..., Result], tmp_path: Path
) -> None:
    done = fails(ZeroDivisionError, "rag_audit.report.build._figures")
    assert (
        done.exit_code == 3
        and done.stdout
        == written(tmp_path)["text"].partition("\n")[0] + done.stdout[len(done.stdout.partition("\n")[0]) :]
    )
    value = json.loads(written(tmp_path)["json"])
    assert (value["outcome"], value["exit_code"], value["fault"]) == ("UNMET", 3, "ZeroDivisionError")
    assert value["decided_by"] == ["receipt.independent"] and len(value["checks"]) > 40
    assert all("UNMET" in text and STALE not in text for text in written(tmp_path).values())


def rules_of_a_code_host(log: Any) -> list[str]:
    """What a code host asks of a SARIF log beyond the standard's schema."""
    (run,) = log["runs"]
    wrong = []
    for rule in run["tool"]["driver"]["rules"]:
        for name in ("shortDescription", "fullDescription", "help"):
            if not rule.get(name, {}).get("text"):
                wrong.append(f"{rule['id']} has no {name}")
        if rule["defaultConfiguration"]["level"] not in ("note", "warning", "error"):
            wrong.append(f"{rule['id']} has no level")
    for result in run["results"]:
        if not result["locations"]:
            wrong.append(f"{result['ruleId']} has no place")
        for place in result["locations"]:
            at = place["physicalLocation"]
            if re.match(r"[A-Za-z]+:|/|\\.\\./", at["artifactLocation"]["uri"]):
                wrong.append(f"{result['ruleId']} has no relative path")
            if at.get("region", {}).get("startLine", 0) < 1:
                wrong.append(f"{result['ruleId']} has no region")
    return wrong


WINDOWS = [
    "few",
    "trust-without-the-provider",
    "window-cut",
    "rest-on-another-root",
    "quorum-of-half",
]


@pytest.mark.parametrize("name", WINDOWS)
def test_sarif_has_what_a_code_host_asks(name: str, tmp_path: Path) -> None:
    folder = FOLDER / name if (FOLDER / name).exists() else FOLDER / "few"
    case = json.loads((folder / "case.json").read_text())
    verify(folder / case["window"], folder / case["trust"], "--format", "sarif", "--output", tmp_path / "r")
    log = json.loads((tmp_path / "r").read_text())
    assert log["runs"][0]["results"] and rules_of_a_code_host(log) == []


@pytest.fixture
def evidence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A working folder with a window in its folder `evidence`."""
    (tmp_path / "evidence").mkdir()
    (tmp_path / "evidence/window.json").write_bytes((FOLDER / "few/window.json").read_bytes())
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("evidence")
def test_a_place_below_the_working_folder_is_relative_to_it(tmp_path: Path) -> None:
    verify(tmp_path / "evidence", FOLDER / "honest/trust.toml", "--format", "sarif", "--output", "r")
    (run,) = json.loads((tmp_path / "r").read_text())["runs"]
    assert [a["location"]["uri"] for a in run["artifacts"]] == ["evidence/window.json", "trust.toml"]


def test_a_trust_file_that_is_missing_is_named_once_and_in_its_own_place(tmp_path: Path) -> None:
    done = verify(FOLDER / "few/window.json", tmp_path / "nope.toml", *outputs(tmp_path))
    faces = written(tmp_path)
    malformed = says_no_pass(faces, "MALFORMED", 2)["malformed"]
    assert done.exit_code == 2 and (malformed["expected"], malformed["actual"]) == ("a file", NO_FILE)
    for kind in ("junit", "sarif"):
        assert "nope.toml: trust file" not in faces[kind]
    assert "this does not prove" not in faces["junit"]
    (result,) = json.loads(faces["sarif"])["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "nope.toml"
    assert "<li>Create one with <code>rag-audit verifier trust new</code>" in faces["html"]


@pytest.mark.parametrize("option", ["--receipts", "--previous"])
def test_what_is_not_there_is_one_line_and_no_verdict(option: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    place = tmp_path / "nope" if option == "--receipts" else tmp_path / "empty"
    done = verify(FOLDER / "few/window.json", FOLDER / "honest/trust.toml", option, place)
    assert done.exit_code == 2 and done.stdout == ""
    said = (
        f"receipts not found: {place}"
        if option == "--receipts"
        else f"previous window not found: {place}/window.json"
    )
    assert done.stderr.startswith(f"rag-audit: {said} (") and len(done.stderr.splitlines()) == 1
    assert ("or omit it if no account asked" in done.stderr) is (option == "--receipts")


def test_a_folder_without_a_window_is_named_with_the_file_that_it_lacks(tmp_path: Path) -> None:
    (tmp_path / "receipts").mkdir()
    done = verify(tmp_path / "receipts", FOLDER / "honest/trust.toml")
    assert done.exit_code == 2 and done.stderr.startswith(
        f"rag-audit: window file not found: {tmp_path}/receipts/window.json ("
    )


@pytest.mark.usefixtures("evidence")
def test_the_command_of_a_report_names_paths_below_the_working_folder() -> None:
    done = verify(Path("evidence/window.json"), FOLDER / "honest/trust.toml", "--details")
    assert "rag-audit verify evidence/window.json --trust trust.toml" in " ".join(done.stdout.split())


@pytest.mark.parametrize("data", [None, b"no catalogue"], ids=["missing", "damaged"])
def test_a_translation_that_is_missing_or_damaged_is_an_error_of_the_installation(
    data: bytes | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was called a fault of this program after the verification, and left a report without a page."""
    (tmp_path / "locale").mkdir()
    if data is not None:
        (tmp_path / "locale" / "de.mo").write_bytes(data)
    language.language_of.cache_clear()
    monkeypatch.setattr(language.resources, "files", lambda package: tmp_path)
    page = tmp_path / "page.html"
    words = ("--format", "html", "--output", page, "--language", "de")
    done = verify(FOLDER / "few/window.json", FOLDER / "honest/trust.toml", *words)
    assert done.exit_code == 2 and done.stdout == "" and not page.exists()
    assert "rag-audit: the message catalogue of this language is" in done.stderr
    assert "choose --language en" in done.stderr and "fault of this program" not in done.stderr
