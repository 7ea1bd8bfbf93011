"""The thread: commit, attest, verify on real text, with real proofs."""

from rag_audit.errors import ExitCode
from rag_audit.report import render
from rag_audit.verify.policy_check import policy_checks
from tests.window.simulator import Finished


def test_an_honest_window_passes(finished: Finished) -> None:
    verdict = finished.verify()
    assert [c for c in verdict.checks if c.status.value != "pass"] == []
    assert verdict.exit_code is ExitCode.PASS
    assert verdict.line.startswith("PASS eps_audit=")
    for part in (
        "mode=full",
        "records=6",
        "scores=40..320",
        "query_embedding=proved",
        "coalition=not-checked",
        "setup=unsafe",
    ):
        assert part in verdict.line


def test_the_score_window_is_in_line_figures_and_report(finished: Finished) -> None:
    verdict = finished.verify()
    assert " scores=40..320" in verdict.line
    assert (verdict.figures["scores"], verdict.figures["dimension"]) == ("40..320", 64)
    assert verdict.figures["lattice"] == 64
    assert f"scores         40..320 of at most {64 * 64}; a score outside counts as the nearer end" in render(
        verdict
    )


def test_what_is_said_before_the_window_is_what_the_verdict_says(finished: Finished) -> None:
    """Under a trust file that asks for more than the window has, in several ways."""
    trust = finished.service.trust(
        finished.policy, max_epsilon="1", min_k_max=9, coalition="checked", max_theta=None
    )
    said = {c.id: (c.status, c.expected, c.actual) for c in policy_checks(finished.policy, trust)}
    verdict = {c.id: (c.status, c.expected, c.actual) for c in finished.verify(trust=trust).checks}
    shared = {name for name in said if name.startswith("trust.")}
    assert {"trust.max_epsilon", "trust.min_k_max", "trust.coalition", "trust.max_theta"} <= shared
    assert {name: said[name] for name in shared} == {name: verdict[name] for name in shared}
