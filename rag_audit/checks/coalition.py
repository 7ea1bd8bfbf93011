"""`coalition.*`: the declared estimate against the policy, and its certificate where the window carries one."""

from __future__ import annotations

from rag_audit.checks.case import Case, Status


def check(case: Case) -> None:
    """Run the group. A declared estimate can fail a window; only a certificate could make it `checked`."""
    closing = case.closing
    declared = None if closing is None else closing.coalition
    case.figures["coalition"] = "not-checked"
    if declared is not None:
        policy, asking = case.policy, len({query.account for query in case.queries})
        c, c_tenant = declared.c, declared.c_tenant
        case.figures["c"] = {"all": c, "tenant": c_tenant}
        asked = f"theta {policy.estimator.theta}, tau {policy.estimator.tau} {policy.estimator.tau_unit}"
        found = f"theta {declared.theta}, tau {declared.tau} {declared.tau_unit}"
        case.report("coalition.parameters", found == asked, asked, found)
        case.report("coalition.count", min(1, asking) <= c_tenant <= c <= asking,
                    f"{min(1, asking)} <= c in one tenant <= c <= {asking} accounts with queries",
                    f"{c_tenant}, {c}")  # fmt: skip
        case.report("coalition.cap", c <= policy.k_max, f"c at most k_max = {policy.k_max}",
                    f"c = {c} (declared, not proved)")  # fmt: skip
    if case.file.certificate is not None or (declared is not None and declared.certificate is not None):
        case.record(
            "coalition.certificate",
            Status.UNDECIDED,
            "no certificate (this release verifies none)",
            "one is claimed",
        )
