"""The thread: commit, attest, verify on real text, with real proofs."""

from rag_audit.errors import ExitCode
from rag_audit.verify.report import render
from tests.window.simulator import Finished


def test_an_honest_window_passes(finished: Finished) -> None:
    verdict = finished.verify()
    assert [c for c in verdict.checks if c.status.value != "pass"] == []
    assert verdict.exit_code is ExitCode.PASS
    assert verdict.line.startswith("PASS eps_audit=")
    for part in (
        "mode=full",
        "records=6",
        "scores=101..810",
        "a1=proved",
        "coalition=not-checked",
        "setup=unsafe",
    ):
        assert part in verdict.line


def test_the_score_window_is_in_line_figures_and_report(finished: Finished) -> None:
    verdict = finished.verify()
    assert " scores=101..810" in verdict.line
    assert (verdict.figures["scores"], verdict.figures["dimension"]) == ("101..810", 256)
    assert f"scores         101..810 of at most {64 * 256}, in " in render(verdict)
