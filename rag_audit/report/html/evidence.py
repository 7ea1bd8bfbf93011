"""The page's evidence: every check, as far as there is room, and the fields of NIST SP 800-226."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from rag_audit._internal.words import counted, day, some
from rag_audit.mechanisms import accounting, named
from rag_audit.mechanisms.descriptions import description
from rag_audit.report.html import words
from rag_audit.report.model import CheckLine, Report
from rag_audit.report.policy_text import COVERS

GROUPS = {
    "header": "window header",
    "ledger": "ledger",
    "proof": "proofs",
    "receipt": "receipts",
    "coalition": "coalitions",
    "bound": "privacy bound",
    "trust": "requirements",
}
"""The first parts of checks' ids, in the order of a verification."""
MAX_PASSED, MAX_OTHERS = 60_000, 90_000
"""Maximum letters of markup for the rows of the table of checks, because a window with many tenants can have any
number."""
MAX_FILES = 30
SETUPS = {
    "unsafe": "made by one party",
    "ceremony": "made by several parties",
    "transparent": "not needed",
}
"""The set-ups of keys in words."""


def fitting(checks: Sequence[CheckLine], row: Callable[[CheckLine], str]) -> list[str]:
    """The rows that fit into the table, in the order of the checks.

    :param row: makes the markup of a row
    """
    others = [c for c in checks if c.outcome != "pass"]
    passed = [c for c in checks if c.outcome == "pass"]
    rows = {**_rows(others, MAX_OTHERS, row), **_rows(passed, MAX_PASSED, row)}
    return [rows[id(c)] for c in checks if id(c) in rows]


def _rows(checks: Sequence[CheckLine], room: int, row: Callable[[CheckLine], str]) -> dict[int, str]:
    """The rows of the first checks, as long as they fit into the room (in letters of markup)."""
    rows: dict[int, str] = {}
    for check in checks:
        markup = row(check)
        room -= len(markup)
        if room < 0:
            break
        rows[id(check)] = markup
    return rows


def group(check: CheckLine) -> str:
    """The first part of a check's id. The row of the check has this class if `GROUPS` contains it."""
    return check.id.partition(".")[0]


def present(checks: Sequence[CheckLine]) -> list[str]:
    """The groups that have at least one check."""
    return [name for name in GROUPS if any(group(check) == name for check in checks)]


def _units(report: Report) -> Iterator[str]:
    """The unit of privacy: positions, and for each tenant with a document table its documents."""
    by_position = [t for t in report.tenants if t.documents is None]
    if by_position:
        whose = (
            ""
            if len(by_position) == len(report.tenants)
            else f" ({some([t.tenant for t in by_position], 3)})"
        )
        yield (
            f"{accounting.UNIT}{whose}. A document with several positions is several units, and the losses of the units"
            " add up."
        )
    for tenant in report.tenants:
        if (table := tenant.documents) is not None:
            yield (
                f"one document of tenant {words.clip(tenant.tenant, 60)}, of at most"
                f" {counted(table.positions_per_document, 'position')}, which share one Bernoulli bit."
            )


def nist_fields(report: Report) -> Iterator[tuple[str, str]]:
    """Each field, with this window's value."""
    f, w = report.figures, report.window
    kinds = {named(t.mechanism) for t in report.tenants}
    established = f.standing != "not-established"
    conforming = ", for the answers that conform" if f.standing == "if-conforming" else ""
    yield "Unit of privacy", " ".join(_units(report))
    yield (
        "Neighbour relation",
        f"{accounting.ADJACENCY}; the number of positions is fixed (bounded differential privacy)"
        if any(t.documents is None for t in report.tenants)
        else "a document added or removed; the numbers of positions and of rows are fixed",
    )
    eps = "not computed" if f.eps is None else "none (unbounded)" if f.eps == "inf" else f.eps
    if f.standing == "not-established":
        eps = "not established"
    yield (
        "Epsilon (ε)",
        f"{eps}{conforming}; for {counted(f.k_max, 'account')} with {f.n:,} queries each in one window",
    )
    yield "Delta (δ)", f.delta if any(kind.uses_delta for kind in kinds) else "0: the closed forms have none"
    yield "Mechanism", "; ".join(_mechanisms(report))
    yield (
        "Sensitivity",
        "one document changes one score by at most the whole lattice; the proof includes the clamping of scores",
    )
    yield (
        "Composition",
        (
            "adaptive, over all queries of a coalition"
            + (f"; the bound that counts: {f.by}" if f.by else "")
            + (
                f"; {f.cumulative.windows} windows in total: ε {f.cumulative.eps}, and {f.cumulative.condition}"
                if f.cumulative
                else "; one window only"
            )
        ),
    )
    yield (
        "Query model",
        f"interactive: each account asks up to {f.n:,} questions, each answered with up to"
        f" {_longest(report):,} passages",
    )
    yield (
        "Trust model",
        (
            "central: the provider has the documents and the seed. Its use of the promised randomness is "
            + (
                "proved, not trusted"
                if f.standing == "proved"
                else "not established by this verification"
                if f.standing == "not-established"
                else "proved for the records that were drawn"
            )
        ),
    )
    yield (
        "Correctness of the implementation",
        (
            f"integer arithmetic and a published noise table; proofs: {f.proofs}; keys: {SETUPS.get(f.setup, f.setup)};"
            f" query vectors: {f.query_embedding}; document vectors: {f.document_embedding}"
        ),
    )
    yield (
        "Utility and bias",
        (
            ("measured on public collections (above)" if established else "not established")
            + ". Noise and samples treat all positions alike; no"
            " measurement compares the questions of different groups"
        ),
    )
    yield (
        "Side channels",
        (
            "the figures do not cover the time and size of answers, the text that a model writes, and the counts and"
            " times of honest accounts. The provider draws noise in constant work before it knows the question"
        ),
    )
    yield "Security and access control", "the provider is responsible; this verification does not cover it"
    yield (
        "Data collection exposure",
        (
            "the provider has the documents in plain text; this verification does not cover their origin and other"
            " copies. " + COVERS.partition(". ")[0] + "."
        ),
    )
    yield (
        "Data stored after the window",
        f"by its policy, the provider deletes the seed and the private inputs after {day(w.delete_after)}",
    )


def _longest(report: Report) -> int:
    return max((t.longest for t in report.tenants), default=report.window.top_k)


def _mechanisms(report: Report) -> Iterator[str]:
    """The mechanisms of the tenants, with equal ones grouped."""
    groups: dict[str, list[str]] = {}
    for t in report.tenants:
        how = words.clip(t.words, 200)
        how += description(t.mechanism).details(t)
        groups.setdefault(how, []).append(t.tenant)
    for how, tenants in [*groups.items()][:12]:
        yield f"{some(tenants)}: {how}"
    if len(groups) > 12:
        yield f"and {len(groups) - 12:,} more"
