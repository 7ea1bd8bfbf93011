"""Every check has an explanation that leads somewhere."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from rag_audit.cli import main
from rag_audit.errors import SetupError
from rag_audit.report import render_report
from rag_audit.report.build import ABSENT_LIMIT
from rag_audit.report.explanations import GROUPS, base_id, explained, explanations
from rag_audit.report.model import Report
from rag_audit.verify.checks.trust import ABSENT
from tests.report.conftest import OUTCOMES

ROOT = Path(__file__).resolve().parents[2]
GROUP = "|".join(GROUPS)


def documented() -> set[str]:
    """The ids in docs/protocol.md's table of checks, whose set tests/docs/test_protocol.py holds against the code's."""
    page = (ROOT / "docs/protocol.md").read_text()
    table = page[page.index("| id | passes if |") : page.index("## Levels")]
    first = "\n".join(line.split("|")[1] for line in table.splitlines()[2:] if line.startswith("|"))
    return {name.removesuffix(".") for name in re.findall(rf"`((?:{GROUP})(?:\.[A-Za-z0-9_]+)+\.?)", first)}


def test_every_check_has_an_explanation() -> None:
    assert documented() == set(explanations())
    assert len(documented()) == 78


def _anchors(page: Path) -> set[str]:
    titles = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^a-z0-9 _-]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("name", sorted(explanations()))
def test_an_explanation_is_whole(name: str) -> None:
    e = explanations()[name]
    path, _, anchor = e.section.partition("#")
    assert (ROOT / path).is_file() and (not anchor or anchor in _anchors(ROOT / path)), e.section
    assert e.failed.endswith(".") and e.failed[0].isupper()
    assert e.honest_causes and all(cause and not cause.endswith(".") for cause in e.honest_causes)
    assert not e.means.endswith(".") and not e.ask.endswith(".") and e.means[0].islower()
    assert "..." not in e.model_dump_json() and "\u2026" not in e.model_dump_json()


@pytest.mark.parametrize("name", OUTCOMES)
def test_every_check_that_did_not_pass_is_explained(name: str, reports: dict[str, Report]) -> None:
    report = reports[name]
    for check in report.checks:
        assert (check.explanation is None) == (check.outcome == "pass")
        if check.explanation is not None and check.expected != ABSENT:
            generic = explanations()[base_id(check.id)[0]]
            present = [cause for cause in generic.honest_causes if cause != ABSENT_LIMIT]
            assert check.explanation == generic.model_copy(update={"honest_causes": present})
    if report.decided_by:
        text = " ".join(render_report(report, "text").split())
        first = next(c for c in report.checks if c.decides)
        assert first.explanation is not None
        for said in (first.explanation.failed, *first.explanation.honest_causes, first.explanation.ask):
            assert said in text
        assert f"More: {first.explanation.section}" in text


def explain(*words: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(main, ["verifier", "explain", *words])
    return done.exit_code, done.stdout, done.stderr


def test_the_command_takes_an_id_with_or_without_its_tenant() -> None:
    code, out, _ = explain("proof.valid.law")
    assert (
        code == 0
        and out.startswith("proof.valid.law\n")
        and explained("proof.valid").failed in " ".join(out.split())
    )
    assert explain("proof.valid")[1].split("\n")[1:] == out.split("\n")[1:]
    code, out, _ = explain("ledger.root", "--json")
    assert json.loads(out) == {"check": "ledger.root", **explained("ledger.root").dump()}


def test_the_command_lists_all_or_a_group() -> None:
    code, out, _ = explain("--json")
    assert code == 0 and set(json.loads(out)["checks"]) == set(explanations())
    assert set(json.loads(explain("trust", "--json")[1])["checks"]) == {
        n for n in explanations() if n.startswith("trust.")
    }
    assert all(len(line) <= 100 for line in explain()[1].split("\n"))


def test_a_check_that_is_none_is_refused_by_name() -> None:
    code, out, err = explain("trust.max_epsilom\x1b[2J")
    assert (code, out) == (2, "") and "rag-audit: no check has this id" in err
    assert "trust.max_epsilon" in err and "\x1b" not in err
    with pytest.raises(SetupError):
        explained("proof")
