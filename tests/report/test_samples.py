"""docs/report.md shows what the faces really say of the worked example, and so does the page beside it."""

from rag_audit.report.html.page import render
from rag_audit.report.model import Report
from tests.report.conftest import sampled_reports
from tests.report.samples import BLOCK, EXAMPLE, PAGE, blocks, filled

SAMPLED: dict[str, Report] = {}
"""The reports, which take seconds, for all tests of this file."""


def _reports() -> dict[str, Report]:
    if not SAMPLED:
        SAMPLED.update(sampled_reports())
    return SAMPLED


def test_the_samples_are_the_faces_own() -> None:
    result = blocks(**_reports())
    page = PAGE.read_text()
    assert {m["name"] for m in BLOCK.finditer(page)} == set(result)
    assert filled(page, result) == page, "run: python -m tests.report.samples"


def test_the_example_page_is_rendered_from_the_example() -> None:
    assert EXAMPLE.read_text(encoding="utf-8") == render(_reports()["passed"]), (
        "run: python -m tests.report.samples"
    )
    assert EXAMPLE.stat().st_size < 150_000
