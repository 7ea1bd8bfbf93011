"""What tests ask of a verdict, and of the error of a file that cannot be read."""

from __future__ import annotations

from pathlib import Path

from rag_audit.errors import ExitCode, RagAuditError
from rag_audit.report.verification import ReportedVerdict
from tests.window.forge import Forge
from tests.window.simulator import Finished


def not_passed(verdict: ReportedVerdict) -> set[str]:
    """The checks that do not pass."""
    return set(exit_codes(verdict))


def exit_codes(verdict: ReportedVerdict) -> dict[str, ExitCode]:
    """The exit code of each check that does not pass."""
    return {c.id: c.status.exit_code for c in verdict.checks if c.status.value != "pass"}


def complaints(verdict: ReportedVerdict) -> dict[str, str | None]:
    """The record or other place that each check names that does not pass."""
    return {c.id: c.at for c in verdict.checks if c.status.value != "pass"}


def assert_malformed(error: RagAuditError, kind: type[RagAuditError], place: str) -> None:
    """Assert that the error is of this kind, at this place, and counts as malformed input."""
    assert type(error) is kind, error
    assert error.exit_code is ExitCode.MALFORMED and place in str(error.field or "")


def assert_uncovered_record_fails(paired: Finished, like: tuple[str, int], tmp_path: Path) -> None:
    """Assert that the verdict names a record that is put under the shared proof of another, `like`."""
    forge = Forge(paired)
    result = forge.another_query("law-2", 2, like)
    verdict = forge.verify(tmp_path)
    assert verdict.exit_code is ExitCode.FAIL and verdict.figures["proved"] == 6
    assert complaints(verdict) == {"proof.valid.law": f"record {result['seq']}"}
