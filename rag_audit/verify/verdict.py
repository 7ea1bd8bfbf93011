"""The outcome of a verification: checks, figures and the verdict line (docs/protocol.md, "Verdict").

The figures are computed from the policy, so even a window that violates its policy has them. A reader takes a number
for a result, so a verdict of FAIL, UNDECIDED or UNPROVEN contains no privacy figure, neither among its figures nor in
the findings of its checks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, TypeAlias, cast

from rag_audit._internal.errors import ExitCode
from rag_audit._internal.printable import printable
from rag_audit.mechanisms import named
from rag_audit.mechanisms.accounting.figures import TenantFigures
from rag_audit.verify.case import Check, Figures, Status, shortfall, worst

OutcomeName: TypeAlias = Literal[
    "PASS",
    "PASS-SAMPLED",
    "PASS-INTEGRITY",
    "PASS-INTEGRITY-SAMPLED",
    "FAIL",
    "UNDECIDED",
    "UNPROVEN",
    "UNMET",
]
CONDITIONAL = "epsilon holds only if no query vector depends on the index"
"""The meaning of the level of A1 for epsilon; a window without a figure has no such note."""
WITHHELD = "no figure is shown: the figures of this window are not established"
QUOTING = frozenset(
    {"bound.computed", "trust.max_epsilon", "trust.max_exclusion_factor", "trust.max_exposure"}
)
"""The checks with findings that quote a privacy figure."""


def decisive(figures: Figures) -> str | None:
    """The tenant with the largest epsilon, the first of several; None if no check computed the tenants' figures.

    >>> decisive({"tenants": {"law": {"eps": "3"}, "hr": {"eps": "inf"}}})
    'hr'
    """
    tenants = figures.get("tenants", {})
    return max(tenants, key=lambda name: _rank(tenants[name]["eps"]), default=None)


def _finite(eps: str) -> float | None:
    """An epsilon; None if it is no finite number, so that no text of a figure can prevent a verdict line."""
    try:
        value = float(eps)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _rank(eps: str) -> float:
    value = _finite(eps)
    return math.inf if value is None else value


def epsilon_text(figures: Figures) -> str:
    """The epsilon of a verdict line: a number, or `none` with the mechanism that bounds no epsilon.

    >>> epsilon_text({"eps_audit": "inf", "tenants": {"hr": {"eps": "inf", "mechanism": "sampling"}}})
    'none(sampling)'
    """
    eps = figures.get("eps_audit")
    if eps is not None and _finite(eps) is not None:
        return eps
    tenant = decisive(figures)
    reason = "not-computed" if eps is None or tenant is None else figures["tenants"][tenant]["mechanism"]
    return f"none({reason})"


def without_figures(figures: Figures) -> Figures:
    """The figures of a verdict without the privacy figures.

    >>> without_figures({"eps_audit": "12.39", "records": 7})
    {'records': 7}
    """
    result: Figures = figures.copy()
    for name in ("bounds", "eps_audit", "eps_audit_by", "eps_one_account", "eps_all_accounts", "eps_realised",
                 "membership", "exclusion_factor", "exclusion_factor_all_accounts", "positions_per_document",
                 "by_chance", "listable", "exposed"):  # fmt: skip
        result.pop(name, None)  # type: ignore[misc]  # a TypedDict's key is a literal to the type checker
    if "tenants" in result:
        kinds = {tenant: {"mechanism": part["mechanism"]} for tenant, part in result["tenants"].items()}
        result["tenants"] = cast("dict[str, TenantFigures]", kinds)
    return result


def without_findings(checks: Sequence[Check]) -> tuple[Check, ...]:
    """The checks without the privacy figures in their findings. A failed check retains its reason, which is no figure.

    >>> [check] = without_findings([Check("bound.computed", Status.PASS, "a finite bound", "exact 12.39")])
    >>> check.actual == WITHHELD
    True
    """
    return tuple(
        replace(c, actual=WITHHELD)
        if c.id in QUOTING and c.status in _QUOTED and c.actual != "unknown"
        else c
        for c in checks
    )


_QUOTED = (Status.PASS, Status.UNMET, Status.UNPROVEN)


@dataclass(frozen=True)
class Verdict:
    """The outcome of a verification: every check, the figures, and the verdict line.

    :param needed: the ids of the checks that had to run on the window (`verifier.needed_checks`)
    """

    exit_code: ExitCode
    checks: Sequence[Check]
    figures: Figures
    notes: Sequence[str]
    needed: frozenset[str] = field(default=frozenset(), repr=False, compare=False)

    @property
    def passed(self) -> bool:
        """Whether every check passed and every requirement is met."""
        return self.exit_code is ExitCode.PASS

    @cached_property
    def status(self) -> Status:
        """The worst outcome of a check, which is the verdict's. Each check is compared with it (`decides`)."""
        return worst({c.status for c in self.checks})

    @property
    def established(self) -> bool:
        """Whether everything that the window's figures rest on passed. If not, the verdict has no privacy figure."""
        return self.status in (Status.PASS, Status.UNMET)

    @property
    def deciding(self) -> Check | None:
        """The first check with the verdict's outcome, or None for a PASS."""
        return next((c for c in self.checks if self.decides(c)), None)

    def decides(self, check: Check) -> bool:
        """Whether a check's outcome is the verdict's; of a PASS none decides."""
        return check.status is self.status and not self.passed

    @property
    def outcome(self) -> OutcomeName:
        """The first word of the verdict line."""
        words: dict[Status, OutcomeName] = {
            Status.FAIL: "FAIL",
            Status.UNDECIDED: "UNDECIDED",
            Status.UNPROVEN: "UNPROVEN",
            Status.UNMET: "UNMET",
        }
        if not self.passed:
            return words[self.status]
        sampled = self.figures.get("mode") == "sampled"
        if not all(named(t["mechanism"]).protects for t in self.figures.get("tenants", {}).values()):
            return "PASS-INTEGRITY-SAMPLED" if sampled else "PASS-INTEGRITY"
        return "PASS-SAMPLED" if sampled else "PASS"

    @property
    def line(self) -> str:
        """The verdict line (docs/protocol.md, "Verdict")."""
        f = self.figures
        parts: list[str] = [self.outcome]
        sampled = f.get("mode") == "sampled"
        if self.deciding is not None:
            parts.append(self.deciding.id)
        if self.established:
            parts.append(f"{'eps_if_conforming' if sampled else 'eps_audit'}={epsilon_text(f)}")
            if "exclusion_factor" in f:
                parts.append(f"exclusion_factor={f['exclusion_factor']}")
                parts.append(f"exclusion_factor_all_accounts={f['exclusion_factor_all_accounts']}")
            if "positions_per_document" in f:
                parts.append(f"positions_per_document={f['positions_per_document']}")
            parts += [f"delta={f.get('delta')}", f"k_max={f.get('k_max')}"]
            if (tenant := decisive(f)) is not None:
                parts.append(f"decisive={tenant}")
            parts.append(
                "mechanisms=" + ",".join(f"{t}:{v['mechanism']}" for t, v in f.get("tenants", {}).items())
            )
            drawn = ("beta", "eta", "challenge") if sampled else ()
            levels = ("query_embedding", "document_embedding", "coalition", "proofs", "setup")
            keys = (*drawn, "mode", "records", "receipts", *levels, "abandoned", "empty", "scores")
            parts += [f"{k}={f.get(k)}" for k in keys]
            parts += [f"allow={name}" for name in f.get("allowed", [])]
        return printable(" ".join(parts))


def concluded(
    checks: Sequence[Check],
    figures: Figures,
    notes: Sequence[str],
    needed: frozenset[str],
) -> Verdict:
    """The verdict on checks that have run.

    Only `standing.RULES` decides whether an unmet check is a limit or leaves the figures unestablished. A window that
    would pass although a necessary check did not run is not established: each such check is added as an unmet one. A
    verdict on an unestablished window has no privacy figure.

    :param needed: the ids of the checks that had to run on the window

    >>> ran = [Check("ledger.root", Status.PASS, "aa", "aa")]
    >>> concluded(ran, {}, [], frozenset({"ledger.root"})).outcome
    'PASS'
    >>> concluded(ran, {}, [], frozenset({"ledger.root", "ledger.size"})).line  # a check that did not run is no pass
    'UNPROVEN ledger.size'
    """
    short = (Status.UNMET, Status.UNPROVEN)
    checks = [replace(c, status=shortfall(c.id)) if c.status in short else c for c in checks]
    if worst({c.status for c in checks}) in (Status.PASS, Status.UNMET):
        checks = [*checks, *_absent(checks, needed)]
    code = worst({c.status for c in checks}).exit_code
    verdict = Verdict(code, tuple(checks), figures, tuple(notes), needed=needed)
    if verdict.established:
        return verdict
    return replace(
        verdict,
        checks=without_findings(verdict.checks),
        notes=[note for note in notes if not note.endswith(CONDITIONAL)],
        figures=without_figures(figures),
    )


def _absent(checks: Sequence[Check], needed: frozenset[str]) -> list[Check]:
    """An unmet check for each necessary check that did not run."""
    return [Check(name, shortfall(name), "a check that runs on this window", "it did not run")
            for name in sorted(needed - {c.id for c in checks})]  # fmt: skip
