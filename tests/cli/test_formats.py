"""`verify --format --output`: which face goes where, and that no report costs a verdict."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from rag_audit.cli import main
from rag_audit.log.signing import SigningKey
from tests.named import error_name

EXAMPLE = Path(__file__).resolve().parents[2] / "docs/examples"


def verify(*words: object, example: Path = EXAMPLE, **environment: str) -> Result:
    arguments = [
        "verify",
        example / "window.json",
        "--trust",
        example / "trust.toml",
        "--receipts",
        example / "receipts",
    ]
    return CliRunner().invoke(main, [str(w) for w in [*arguments, *words]], env=environment)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """One verification for the whole file."""
    from rag_audit.report import verification

    real = verification.verify_window

    def once(*arguments: Any, **options: Any) -> Any:
        key = repr((arguments, options))
        if key not in CACHE:
            CACHE[key] = real(*arguments, **options)
        return CACHE[key]

    monkeypatch.setattr(verification, "verify_window", once)


CACHE: dict[str, Any] = {}


def test_text_is_printed_and_the_others_are_written(tmp_path: Path) -> None:
    key = SigningKey.generate("verifier.example.org")
    key.save(tmp_path / "key")
    words: list[object] = []
    for name in ("json", "sarif", "junit", "vsa", "svr", "text"):
        words += ["--format", name, "--output", tmp_path / f"report.{name}"]
    done = verify(*words, "--sign", tmp_path / "key")
    assert done.exit_code == 0 and done.stdout.startswith("PASS eps_audit=") and "WARNING" not in done.stderr
    text = (tmp_path / "report.text").read_text()
    assert text.startswith(done.stdout.splitlines()[0]) and "\nsignature of the verifier\n" in text
    assert "report signed with verifier.example.org+" in done.stdout
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["line"] == done.stdout.split("\n")[0]
    assert report["filing"]["command"] == [
        "rag-audit", "verify", "window.json", "--trust", "trust.toml", "--receipts", "receipts"
    ]  # fmt: skip
    assert json.loads((tmp_path / "report.vsa").read_text())["signatures"]
    assert json.loads((tmp_path / "report.svr").read_text())["signatures"]
    assert "<testsuites " in (tmp_path / "report.junit").read_text()
    assert json.loads((tmp_path / "report.sarif").read_text())["version"] == "2.1.0"


def test_one_face_on_standard_output(tmp_path: Path) -> None:
    done = verify("--format", "json")
    assert json.loads(done.stdout)["type"] == "report"
    done = verify("--format", "sarif", "--output", "-", "--format", "json", "--output", tmp_path / "r")
    assert json.loads(done.stdout)["version"] == "2.1.0" and (tmp_path / "r").exists()
    done = verify("--json", "--format", "json", "--output", tmp_path / "r2")
    assert json.loads(done.stdout) | {"filing": 0} == json.loads((tmp_path / "r2").read_text()) | {
        "filing": 0
    }


def test_a_report_that_cannot_be_written_loses_no_verdict(tmp_path: Path) -> None:
    """The verdict is on standard output, the exit code is its own, and the other reports are written."""
    missing = tmp_path / "none" / "r.json"
    done = verify(
        "--format", "json", "--output", missing, "--format", "junit", "--output", tmp_path / "r.xml"
    )
    assert done.exit_code == 0 and done.stdout.startswith("PASS eps_audit=")
    assert "WARNING: the json report was not written; the verdict is valid: cannot be written" in done.stderr
    assert (tmp_path / "r.xml").exists()
    done = verify("--format", "json", "--output", missing, "--max-epsilon", "1")
    assert done.exit_code == 3 and done.stdout.startswith("UNMET trust.max_epsilon")


PLACES = ("build.report_of", "summary.render", "sarif.value", "junit._case", "vsa.statement", "svr.statement")


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    ("options", "code", "line"),
    [([], 0, "PASS eps_audit="), (["--max-epsilon", "1"], 3, "UNMET trust.max_epsilon")],
)
def test_a_fault_of_a_report_keeps_the_verdict_and_its_exit_code(
    place: str, options: list[object], code: int, line: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The fault is printed with a report to send, and the other formats are written."""

    def fault(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(f"rag_audit.report.{place}", fault)
    words: list[object] = [*options]
    for name in ("json", "sarif", "junit", "vsa", "svr"):
        words += ["--format", name, "--output", tmp_path / f"r.{name}"]
    done = verify(*words)
    assert done.exit_code == code and done.stdout.startswith(line)
    assert "the verdict is valid: InternalError" in done.stderr and "(ZeroDivisionError)" in done.stderr
    (report,) = (tmp_path / "cache").rglob("*.txt")
    assert "builtins.ZeroDivisionError" in report.read_text() and str(report) in done.stderr.replace("\n", "")
    written = {p.suffix[1:]: p.read_text() for p in tmp_path.glob("r.*")}
    assert written.keys() == {"json", "sarif", "junit", "vsa", "svr"}
    assert all(line in text for text in written.values())
    plain = {name for name, text in written.items() if text[0] not in "{<"}
    faulty = place.partition(".")[0]
    assert plain == ({faulty} if faulty in ("sarif", "junit", "vsa", "svr") else set())


def test_a_fault_of_what_a_report_describes_keeps_the_verdict(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The facts of a report are taken from the window after its checks have decided."""

    def fault(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("rag_audit.report.facts._window", fault)
    monkeypatch.setattr("tests.cli.test_formats.CACHE", {})
    done = verify("--max-epsilon", "1")
    assert done.exit_code == 3 and done.stdout == "UNMET" + done.stdout[5:] and "InternalError" in done.stderr


WRONG: dict[str, list[object]] = {
    "two on standard output": ["--format", "json", "--format", "sarif"],
    "beside --json": ["--json", "--format", "json"],
    "an output without a format": ["--output", "x"],
    "a format that is none": ["--format", "pdf"],
    "an output that is an input": ["--format", "json", "--output", EXAMPLE / "window.json"],
    "an output among the receipts": ["--format", "json", "--output", EXAMPLE / "receipts/law-1-1.json"],
    "an output that is the trust file by another way": [
        "--format", "json", "--output", EXAMPLE / "receipts/../trust.toml"
    ],
    "an output that is a folder": ["--format", "json", "--output", EXAMPLE],
    "two outputs in one file": ["--format", "json", "--output", "x", "--format", "text", "--output", "x"],
    "a key that signs nothing": ["--format", "sarif", "--sign", EXAMPLE / "trust.toml"],
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_options_that_contradict_one_another_are_refused_before_anything_is_read(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    copy = tmp_path / "copy"  # which a command that is not refused may write over
    shutil.copytree(EXAMPLE, copy, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    before = {p: p.read_bytes() for p in copy.rglob("*") if p.is_file()}
    words = [copy / word.relative_to(EXAMPLE) if isinstance(word, Path) else word for word in WRONG[name]]
    done = verify(*words, example=copy)
    assert (done.exit_code, done.stdout) == (2, "") and "Error: " in done.stderr
    assert list((tmp_path / "here").iterdir()) == []
    assert {p: p.read_bytes() for p in copy.rglob("*") if p.is_file()} == before


def test_a_key_that_others_can_read_signs_nothing(tmp_path: Path) -> None:
    key = SigningKey.generate("v")
    key.save(tmp_path / "key")
    (tmp_path / "key").chmod(0o644)
    done = verify("--format", "vsa", "--output", tmp_path / "r", "--sign", tmp_path / "key")
    assert (
        (done.exit_code, done.stdout) == (2, "")
        and error_name(done) == "SetupError"
        and not (tmp_path / "r").exists()
    )


def test_colour_is_for_terminals_and_for_who_asks() -> None:
    """Standard output of a test is no terminal."""
    plain = verify(NO_COLOR="", FORCE_COLOR="").stdout
    assert "\x1b" not in plain
    forced = verify(NO_COLOR="", FORCE_COLOR="1").stdout
    assert forced.startswith("\x1b[1;32mPASS\x1b[0m eps_audit=")
    assert "\x1b" not in verify(NO_COLOR="1", FORCE_COLOR="1").stdout
    assert "\x1b" not in verify(NO_COLOR="", FORCE_COLOR="0").stdout


def test_a_terminal_has_colour_unless_it_is_dumb(monkeypatch: pytest.MonkeyPatch) -> None:
    from rag_audit.cli import reports

    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert reports.coloured()
    monkeypatch.setenv("TERM", "dumb")
    assert not reports.coloured()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    assert not reports.coloured()


def test_colour_never_goes_into_a_file(tmp_path: Path) -> None:
    verify("--format", "text", "--output", tmp_path / "r", FORCE_COLOR="1", NO_COLOR="")
    assert "\x1b" not in (tmp_path / "r").read_text()
