"""What others wrote cannot add a line to what is printed, nor make a terminal act."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from rag_audit._internal.canonical import jcs
from rag_audit._internal.printable import json_text, printable, printable_text
from rag_audit.cli import main
from rag_audit.cli.account import _shown
from rag_audit.cli.reports import FORMATS
from rag_audit.errors import RagAuditError
from rag_audit.report import as_json, render, render_report
from rag_audit.report.build import report_of
from rag_audit.report.verification import ReportedVerdict, verify_window
from tests.cli.conftest import Shell, arguments

FALSE = "PASS eps_audit=0.001 delta=1e-5 k_max=2 mode=full records=9 receipts=9 query_embedding=proved"
NASTY = f"example.org\n{FALSE}\r\x1b[2J\x1b[31m\u202e\u2066\u2028\u2029\x85\x9b2J\x00\x7f\u200b\ud800"


def visible(text: str) -> bool:
    """Only visible characters and this program's own line breaks."""
    return all(line.isprintable() for line in text.split("\n"))


def test_every_acting_character_is_escaped() -> None:
    shown = printable(NASTY)
    assert shown.isprintable() and "\\n" in shown and "\\x1b[2J" in shown and "\\u202e" in shown
    assert printable("Bücherei 図書館 ✓ a\\b") == "Bücherei 図書館 ✓ a\\b"
    text = printable_text("a\n\tb \u200d\x1b[31m\u202e\r")
    assert text == "a\n\tb \u200d\\x1b[31m\\u202e\\r"
    value = {NASTY[:-1]: [NASTY[:-1]]}
    assert visible(json_text(value)) and json.loads(json_text(value)) == value


def test_every_part_of_an_error_is_escaped() -> None:
    error = RagAuditError(NASTY, field=NASTY, expected=[NASTY], actual=NASTY, hint=NASTY)
    assert error.diagnostics().count("\n") == 4
    for text in (error.diagnostics(), str(error), json_text(error.as_json())):
        assert visible(text) and f"\n{FALSE}" not in text
    assert len(str(RagAuditError("x", field="a" * 10_000, actual="b" * 10_000))) < 600


@pytest.fixture
def passed(service: Shell, monkeypatch: pytest.MonkeyPatch) -> ReportedVerdict:
    monkeypatch.chdir(service.root)
    return verify_window(
        Path("window/public"), trust=Path("verifier/trust.toml"), receipts=[Path("verifier/receipts")]
    )


def test_every_part_of_a_verdict_is_escaped(passed: ReportedVerdict) -> None:
    """Whatever a check or a figure takes from a file."""

    def spoilt(value: Any) -> Any:
        if isinstance(value, dict):
            # A mechanism's name is one of a closed list, by which the verdict finds the mechanism.
            return {k: v if k == "mechanism" and isinstance(v, str) else spoilt(v) for k, v in value.items()}
        if isinstance(value, list):
            return [spoilt(v) for v in value]
        return NASTY if isinstance(value, str) else value

    from dataclasses import replace

    checks = [replace(c, expected=NASTY, actual=NASTY, at=NASTY) for c in passed.checks]
    figures = spoilt(dict(passed.figures))
    verdict = replace(passed, checks=checks, figures=figures, notes=[NASTY])
    assert visible(verdict.line) and "\n" not in verdict.line
    # A report takes nothing for a figure that is none, so only checks and notes can hold such a text.
    verdict = replace(verdict, figures=passed.figures)
    assert visible(json_text(as_json(verdict)))
    for name in FORMATS:
        text = render_report(report_of(verdict, command=(NASTY,)), name, checks=True)
        assert visible(text), name
        assert "\x1b" not in text and "\u202e" not in text, name
    text = render(verdict)
    assert [line for line in text.split("\n") if line.lstrip(" -").startswith("PASS")] == [verdict.line]


def invoke(monkeypatch: pytest.MonkeyPatch, *words: object) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["rag-audit", *map(str, words)])
    done = CliRunner().invoke(main, [str(word) for word in words])
    return done.exit_code, done.stdout, done.stderr


def test_an_origin_with_a_false_verdict(
    service: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(service.root)
    value = json.loads((service.root / "window/public/window.json").read_text())
    value["entries"][0]["origin"] = f"x\n{FALSE}"
    path = tmp_path / "window.json"
    path.write_bytes(jcs(value))
    trust = ("--trust", "verifier/trust.toml")
    for words in (
        ("verify", path, *trust),
        ("verify", path, *trust, "--json"),
        ("verifier", "trust", "new", tmp_path / "out", "--show", path),
        ("verifier", "challenge", path, "--key", "verifier/key", *trust, "--out", tmp_path / "out"),
        (
            "account",
            "receipt",
            "verify",
            "verifier/receipts/law-1-1.json",
            "--window",
            path,
            "--provider",
            "provider/key.pub",
        ),
    ):
        code, out, err = invoke(monkeypatch, *words)
        assert code == 2 and visible(out) and visible(err), words
        assert not [line for line in (out + err).split("\n") if line.startswith("PASS")], words
    assert not (tmp_path / "out").exists()


def test_a_receipts_name_with_a_false_verdict(
    service: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name of a file is its sender's too."""
    monkeypatch.chdir(service.root)
    (tmp_path / f"a\n{FALSE}\x1b[2J.json").write_text("{}")
    code, out, err = invoke(monkeypatch, *arguments(), "--receipts", tmp_path)
    assert code == 2 and err == "" and visible(out)
    assert out.startswith("UNDECIDED receipt.accepted") and "\\x1b[2J" in out
    assert not [line for line in out.split("\n") if line.startswith("PASS")]


def test_a_manifest_with_a_false_verdict(
    service: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A part of the window that has no format of its own."""
    monkeypatch.chdir(service.root)
    value = json.loads((service.root / "window/public/window.json").read_text())
    value["embedder"]["embedder"]["kind"] = f"x\n{FALSE}\x1b[2J"
    value["challenges"] = [f"x\n{FALSE}\n"]
    path = tmp_path / "window.json"
    path.write_bytes(jcs(value))
    code, out, err = invoke(monkeypatch, *arguments(str(path)))
    assert code == 1 and visible(out) and visible(err)
    assert not [line for line in out.split("\n") if line.startswith("PASS")]
    code, out, err = invoke(
        monkeypatch, "verifier", "trust", "new", tmp_path / "out", "--show", path, "--origin", "x"
    )
    assert visible(out) and visible(err) and "UNVERIFIED" in err
    assert not [line for line in err.split("\n") if line.startswith("PASS")]


def test_an_answer_keeps_its_lines_and_loses_what_acts(
    service: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rag_audit.models.requests import Answer, AnsweredDocument

    shutil.copytree(service.root / "accounts/law-1", tmp_path / "account")
    document = AnsweredDocument(position=0, text="a line\nanother\x1b[2J\u202e", metadata={}, name=None)
    answer = Answer(type="answer", v=1, documents=[document], receipt="")
    monkeypatch.setattr("rag_audit.account.account.Account.ask", lambda *_, **__: answer)
    monkeypatch.chdir(service.root)
    words = ("account", "query", "why?", "--account", tmp_path / "account", "--window", "window/public",
             "--provider", "provider/key.pub", "--provider-dir", "window")  # fmt: skip
    code, out, err = invoke(monkeypatch, *words)
    assert (code, out) == (0, "a line\nanother\\x1b[2J\\u202e\n") and visible(err)
    assert _shown([document], [7], threshold=1) == "a line\nanother\\x1b[2J\\u202e\n[score band 7 of 10]"
    assert "reaches the policy's relevance threshold" in _shown([document], [None], threshold=1)
    code, out, err = invoke(monkeypatch, *words, "--json")
    assert visible(out) and json.loads(out)["documents"][0]["text"] == document.text
