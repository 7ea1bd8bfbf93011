"""One report of several measurements: what is read back, shown and compared."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from bench import compare, suite
from bench.model import Report, ReportError, Result, shown

MACHINE = {"cpu": "a processor", "cores": 2, "lanes": "8 residues at a time", "load": 0.5}
COSTS = {"seconds": {"prove": 2.0, "verify": 0.25}, "cpu_seconds": {"prove": 4.0, "verify": 0.5}}


def result(
    name: str = "scan", *, command: str = "python -m bench.scan", load: float = 0.5, **figures: Any
) -> Result:
    return Result(name, {**MACHINE, "load": load}, 2, {"documents": 100, **COSTS, **figures}, command, 0.25)


def test_a_report_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    report = Report("2026-01-01T00:00:00+00:00", [result(), result("other", bytes=7)], {"recall": "no data"})
    (tmp_path / "bench.json").write_text(report.dumps())
    assert Report.load(tmp_path / "bench.json") == report


def test_a_script_s_output_is_a_report_of_one(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(result().output()))
    (match,) = Report.load(path).results
    assert (match.name, match.threads, match.figures) == ("mine", 2, result().figures)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "not JSON"),
        ("[]", "not a report"),
        ('{"format": "rag-audit-bench/9"}', "expected format rag-audit-bench/1, found rag-audit-bench/9"),
        ('{"format": "rag-audit-bench/1", "created": "", "missing": {}}', "missing or unknown: 'results'"),
        ('{"format": "rag-audit-bench/1", "created": "", "missing": {}, "results": [{"x": 1}]}', "unknown"),
        ('{"seconds": 1}', "which has machine and threads"),
    ],
)
def test_a_file_that_is_no_report_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "bench.json"
    path.write_text(text)
    with pytest.raises(ReportError, match="bench.*" + reason):
        Report.load(path)
    assert compare.main([str(path), str(path)]) == 2


def test_tables_have_a_row_for_each_step_and_name_the_machine_once() -> None:
    text = Report(
        "2026", [result(part={"deep": {"x": 1}}), result("other")], {"recall": "no data: here"}
    ).markdown()
    assert "| step | seconds | cpu_seconds |" in text and "| prove | 2 | 4 |" in text
    assert "| documents | 100 |" in text and "| part.deep.x | 1 |" in text
    assert text.count("a processor") == 1 and "lanes 8 residues" in text
    assert "`python -m bench.scan`; load 0.25 before, 0.5 after" in text and "- recall: no data: here" in text


def test_figures_have_the_digits_that_are_worth_reading() -> None:
    assert [shown(v) for v in (1234567, 0.0123456, 123456.7, True, "a|b", [1, 2.5])] == [
        "1,234,567", "0.01235", "123,457", "True", "a\\|b", "1, 2.5"
    ]  # fmt: skip


def test_ratios_are_new_over_old() -> None:
    new = result(seconds={"prove": 1.0, "verify": 0.25})
    lines = compare.compare(Report("a", [result()]), Report("b", [new]))
    assert (
        "| seconds.prove | 2 | 1 | 0.500 |" in lines and "| seconds.verify | 0.25 | 0.25 | 1.000 |" in lines
    )
    changed = compare.compare(Report("a", [result()]), Report("b", [new]), changed=10)
    assert [line for line in changed if "0.500" in line] and not [line for line in changed if "1.000" in line]


def test_what_one_report_lacks_is_named() -> None:
    old = Report("a", [result(peak=3), result("gone"), result("moved")], {})
    new = Report(
        "b",
        [result(new=1), result("moved", command="python -m bench.scan --documents 7")],
        {"gone": "failed: x"},
    )
    lines = compare.compare(old, new)
    assert {"- scan.peak: not in NEW", "- scan.new: not in OLD", "- gone: not in NEW (failed: x)"} <= set(
        lines
    )
    assert any(line.startswith("- moved: not compared") for line in lines)
    assert "## gone" not in lines and "## moved" not in lines
    assert compare.compare(old, new, only=["gone"]) == [
        "## In one alone",
        "",
        "- gone: not in NEW (failed: x)",
    ]


def test_another_machine_and_load_are_said() -> None:
    other = Result(
        "scan", {**MACHINE, "lanes": "1 residue at a time", "load": 9.0}, 4, COSTS, "python -m bench.scan"
    )
    match = list(compare.differences(result(), other))
    assert match == [
        "lanes: 8 residues at a time, then 1 residue at a time",
        "threads: 2, then 4",
        "load: 0.5, then 9.0",
    ]
    assert list(compare.differences(result(), result(load=0.9))) == []


def test_a_suite_goes_on_after_a_failure_and_keeps_the_report_before(tmp_path: Path) -> None:
    chosen = [
        suite.Measurement("ledger", "", "--records 8 --appenders 1"),
        suite.Measurement("nothing", "", ""),
    ]
    suite.measure_all([], tmp_path, tiny=True)
    (tmp_path / "bench.json").write_text("older")
    report = suite.measure_all(chosen, tmp_path, tiny=True)
    assert (
        Report.load(tmp_path / "bench.json") == report and (tmp_path / "before.json").read_text() == "older"
    )
    (match,) = report.results
    assert (
        match.command == "python -m bench.ledger --records 8 --appenders 1" and match.load_before is not None
    )
    assert set(report.missing) == {"nothing"} and report.missing["nothing"].endswith(
        "No module named bench.nothing"
    )
    assert "## ledger" in (tmp_path / "bench.md").read_text()


def test_names_of_measurements_are_their_scripts(tmp_path: Path) -> None:
    names = [m.name for m in suite.MEASUREMENTS]
    assert len(names) == len(set(names))
    root = Path(suite.__file__).parent
    assert all((root / f"{m.module.removeprefix('bench.')}.py").is_file() for m in suite.MEASUREMENTS)


def test_the_page_names_measurements_that_there_are() -> None:
    page = (Path(suite.__file__).parents[1] / "docs/performance.md").read_text()
    rows = page.partition("| table | measurement in the report |")[2].partition("\n\n")[0]
    named = set(re.findall(r"`([a-z_]+)[-`]", rows.replace("--low-memory", "")))
    assert (
        {"scan", "whole", "batch_proving"} <= named <= {m.name.partition("-")[0] for m in suite.MEASUREMENTS}
    )


@pytest.mark.full
def test_the_whole_suite_at_tiny_sizes(tmp_path: Path) -> None:
    chosen = [m for m in suite.MEASUREMENTS if m.tiny is not None]
    report = suite.measure_all(chosen, tmp_path, tiny=True)
    assert report.missing == {} and len(report.results) == len(chosen)
