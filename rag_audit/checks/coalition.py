"""`coalition.*`: the certificate of the coalition estimate, where the window carries one."""

from __future__ import annotations

from rag_audit.checks.case import Case, Status


def check(case: Case) -> None:
    """Run the group: until an estimator exists, a window says that nothing was checked, and no more."""
    closing = case.closing
    claimed = None if closing is None else closing.coalition
    case.figures["coalition"] = "not-checked"
    if claimed is not None or case.file.certificate is not None:
        case.record(
            "coalition.certificate",
            Status.UNDECIDED,
            "no certificate (this release verifies none)",
            "one is claimed",
        )
