"""docs/report.md shows what the faces really say of the worked example."""

from tests.report.conftest import sampled_reports
from tests.report.samples import BLOCK, PAGE, blocks, filled


def test_the_samples_are_the_faces_own() -> None:
    made = blocks(**sampled_reports())
    page = PAGE.read_text()
    assert {m["name"] for m in BLOCK.finditer(page)} == set(made)
    assert filled(page, made) == page, "run: python -m tests.report.samples"
