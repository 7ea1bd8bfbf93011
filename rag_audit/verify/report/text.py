"""The verdict for people: one line, the table of checks, the figures, and what is not proved.

The verdict quotes files, so each of its lines is escaped: a file can neither add a line nor control a terminal.
"""

from __future__ import annotations

import textwrap

from rag_audit.errors.printable import printable
from rag_audit.privacy.explain import COVERS, mechanism_lines
from rag_audit.relation.scores import LARGEST_PRODUCT
from rag_audit.verify.measured import LABEL, Measured, Point
from rag_audit.verify.verifier import Verdict

_WIDTH = 100


def render(verdict: Verdict, *, every_check: bool = True) -> str:
    """The report as text.

    :param every_check: False leaves passed checks out
    """
    lines = [verdict.line, *_alarm(verdict.measured), ""]
    for check in verdict.checks:
        if check.status.value == "pass" and not every_check:
            continue
        place = "" if check.at is None else f"  at {check.at}"
        lines.append(f"{check.status.value:9}  {check.id:24} {_clip(check.found)}{place}")
        if check.status.value != "pass":
            lines.append(f"{'':11}{'':24} expected {_clip(check.expected, 160)}")
    lines += ["", *_figures(verdict)]
    if verdict.notes:
        lines += ["", "notes", *_bullets(verdict.notes)]
    if verdict.measured is not None:
        lines += ["", *_attacks(verdict.measured)]
    lines += ["", "this does not prove", *_bullets(verdict.does_not_prove)]
    return "\n".join(printable(line) for line in lines) + "\n"


def _figures(verdict: Verdict) -> list[str]:
    f = verdict.figures
    if "eps_audit" not in f:
        return []
    lines = [
        *textwrap.wrap(COVERS, _WIDTH),
        "",
        "privacy of the list of selected positions when one committed position changes",
    ]
    if "tenants" in f:
        lines += [f"  {line}" for line in mechanism_lines(f["tenants"])]
        lines += [
            f"  {name}: at most {listable:,} of its positions were listed"
            for name, listable in f.get("listable", {}).items()
        ]
    lines += [
        f"  {name}: chance alone lists a given position to one of {f['k_max']} accounts with probability {chance}"
        for name, chance in f.get("by_chance", {}).items()
    ]
    if "tenants" in f and "bounds" in f:
        lines.append("  of the noise, for tenants that have it:")
    for bound in f["bounds"]["bounds"] if "bounds" in f else ():
        why = "" if bound["valid"] else f"  not valid: {bound['reason']}"
        counts = "  <- eps_audit" if bound["name"] == f["eps_audit_by"] else ""
        lines.append(f"  {bound['name'].replace('_', ' '):14} eps {bound['eps']}{counts}{why}")
    lines += [
        f"  one account    eps {f['eps_one_account']}",
        f"  all {f['accounts_max']:<3} accounts eps {f['eps_all_accounts']}  (no assumption on coalitions)",
    ]
    if "eps_realised" in f:
        lines.append(
            f"  realised       eps {f['eps_realised']}  (the ledger's own counts, odometer-corrected)"
        )
    steps = f", in {f['lattice']} steps" if "tenants" not in f else ""  # tenants have lattices of their own
    lines.append(
        f"  scores         {f['scores']} of at most {LARGEST_PRODUCT * f['dimension']}{steps};"
        " what lies outside counts as the nearer end"
    )
    if (membership := f.get("membership")) is not None:
        lines.append(
            f"  membership inference by k_max accounts: AUC at most {membership['auc_bound']},"
            f" TPR at 1 % FPR at most {membership['tpr_at_fpr_1pct']}"
        )
    lines.append(
        f"  accounts {f.get('accounts')}, of which {f.get('accounts_holding_their_keys')} hold their own keys;"
        f" enrolments void or unused {f.get('enrolments_void_or_unused', 0)}"
    )
    if f.get("abandoned"):
        lines.append(f"  windows opened since the last complete one that came to nothing: {f['abandoned']}")
    return lines


def _alarm(measured: Measured | None) -> list[str]:
    """Lower bounds above certified ones, right under the verdict line."""
    if measured is None or not measured.above:
        return []
    return [
        "",
        "WARNING: a lower bound on epsilon from the provider's attacks lies ABOVE the certified epsilon.",
        "One of the two is wrong: the accounting, the engine, or the measurement. The verdict does not say which.",
        *(f"  {line}" for line in measured.above),
    ]


def _attacks(measured: Measured) -> list[str]:
    """What the provider's attacks got beside what is certified."""
    run = measured.run
    lines = [
        f"attacks: {LABEL}",
        f"  answered by {run.generator}; {run.members} members, {run.others} others, seed {run.seed}",
    ]
    if run.index is not None:
        lines.append(f"  the reference engine held {run.index} documents on {run.capacity} positions")
    for part in measured.parts:
        lines += [
            f"  {', '.join(part.tenants)}: {part.mechanism}",
            "  AUC of members against others with its 95 % interval, and from lists alone beside its ceiling",
            f"  {'attack':12} {'questions':>9}  {'no noise':16}  {'accounts':>8}  {'AUC':16}  {'lists / at most':15}"
            "  eps at least / certified",
        ]
        for row in part.rows:
            first = f"{row.attack:12} {row.queries:9}  {_interval(row.without):16}"
            for point in row.points:
                lines.append(f"  {first}  {_point(point)}".rstrip())
                first = " " * len(first)
    if measured.left_out:
        lines.append(
            f"  results left out, of other mechanisms, of defences, or of more accounts or questions than the policy"
            f" allows: {measured.left_out}"
        )
    if any(point.lower is not None for part in measured.parts for row in part.rows for point in row.points):
        lines.append(
            "  certified is what the queries asked come to by this verifier's accountant, for lists alone"
        )
    return lines


def _point(p: Point) -> str:
    lists = f"{_share(p.lists_auc)} / {_share(p.ceiling)}"
    eps = "" if p.lower is None or p.certified is None else f"{p.lower:.3f} / {p.certified:.4g}"
    return f"{p.accounts:8}  {_interval(p.auc):16}  {lists:15}  {eps}{'  ABOVE' if p.above else ''}"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _interval(value: tuple[float, float, float] | None) -> str:
    return "-" if value is None else f"{value[0]:.3f} {value[1]:.2f}..{value[2]:.2f}"


def _bullets(items: tuple[str, ...] | list[str] | object) -> list[str]:
    assert isinstance(items, tuple | list)
    return [
        line
        for item in items
        for line in textwrap.wrap(item, _WIDTH, initial_indent="  - ", subsequent_indent="    ")
    ]


def _clip(text: str, limit: int = 90) -> str:
    return text if len(text) <= limit else text[: limit - 2] + ".."
