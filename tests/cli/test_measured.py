"""`verify --attacks`: a provider's own measurement beside the verdict of the worked example, which it does not
change."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from rag_audit.cli import main
from tests.attacks.test_beside import NOISE, result, run_value
from tests.named import error_name

EXAMPLE = Path(__file__).resolve().parents[2] / "docs/examples"


def verify(*words: object) -> Result:
    arguments = [
        "verify",
        EXAMPLE / "window.json",
        "--trust",
        EXAMPLE / "trust.toml",
        "--receipts",
        EXAMPLE / "receipts",
    ]
    return CliRunner().invoke(main, [str(w) for w in [*arguments, *words]])


def value(*words: object) -> Any:
    return json.loads(verify(*words, "--json").stdout)


@pytest.fixture(scope="module")
def plain() -> Any:
    return value()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "attacks.json"


def test_attacks_stand_beside_a_verdict_and_change_nothing_of_it(plain: Any, file: Path) -> None:
    file.write_text(json.dumps(run_value(generator="a model\x1b[2J")))
    match = value("--attacks", file)
    measured = match.pop("attacks")
    same = [name for name in plain if name not in ("filing", "timeline", "notes", "attacks")]
    assert {n: match[n] for n in same} == {n: plain[n] for n in same} and plain["attacks"] is None
    assert match["line"].startswith("PASS")
    assert "does not prove" in measured["label"] and measured["above_certified"] == []
    (part,) = measured["parts"]
    assert part["tenants"] == ["law", "medicine"]
    (row,) = part["rows"]
    assert row["without_noise"] == ["0.9000", "0.8500", "0.9500"]
    certified, audited = row["points"][-1]["eps_certified"], plain["figures"]["eps"]
    assert 0.7 < float(certified) < float(audited), "two questions come to less than the policy's six"


def test_a_lower_bound_above_the_certified_is_said_loudly_and_the_verdict_stays(
    plain: Any, file: Path
) -> None:
    results = [result("mba", NOISE, lower=90.5), result("ia", NOISE)]
    file.write_text(json.dumps(run_value(generator="a model\x1b[2J", results=results)))
    short = verify("--attacks", file).stdout.splitlines()
    assert (
        len(short) <= 12 and sum("WARNING" in line and "ABOVE the certified" in line for line in short) == 1
    )
    match = verify("--attacks", file, "--format", "text")
    assert match.exit_code == 0
    lines = match.stdout.splitlines()
    assert lines[0] == plain["line"]
    assert lines[2].startswith("WARNING: a lower bound on epsilon from the provider's attacks is ABOVE")
    (head,) = (
        number
        for number, line in enumerate(lines)
        if line.startswith("attacks: the provider's own measurement")
    )
    assert lines[head + 1] == r"  answered by a model\x1b[2J; 200 members, 200 others, seed 0"
    (above,) = (line for line in lines[head:] if line.endswith("ABOVE"))
    assert above.startswith("  mba ") and "90.500 / " in above
    assert lines.index("this does not prove") > head
    as_json = verify("--attacks", file, "--json")
    assert "WARNING: a lower bound is above the certified epsilon" in as_json.stderr
    (said,) = json.loads(as_json.stdout)["attacks"]["above_certified"]
    assert said.startswith("mba by 1 account on law, medicine")


def test_attacks_on_something_else_are_refused(file: Path) -> None:
    for text, code, error in (
        (json.dumps(run_value(n=200)), 3, "MeasurementError"),
        (json.dumps({**run_value(), "more": 1}), 2, "SchemaError"),
        ("{", 2, "EncodingError"),
    ):
        file.write_text(text)
        match = verify("--attacks", file)
        assert (match.exit_code, match.stdout) == (code, "")
        assert error_name(match) == error and "attacks.json" in match.stderr
    assert verify("--attacks", file.with_name("none")).exit_code == 2
