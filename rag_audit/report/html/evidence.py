"""The page's evidence: every check, as far as there is room, and the fields of NIST SP 800-226."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from markupsafe import Markup

from rag_audit._internal.words import day, marked, some_of
from rag_audit.mechanisms import named
from rag_audit.mechanisms.descriptions import description
from rag_audit.report.claims import chosen, condition
from rag_audit.report.html import verdict
from rag_audit.report.html.words import clip
from rag_audit.report.language import Language
from rag_audit.report.model import CheckLine, Report, TenantReport

GROUPS = {
    "header": marked("window header"),
    "ledger": marked("ledger"),
    "proof": marked("proofs"),
    "receipt": marked("receipts"),
    "coalition": marked("coalitions"),
    "bound": marked("privacy bound"),
    "trust": marked("requirements"),
}
"""The first parts of checks' ids, in the order of a verification."""
MAX_PASSED, MAX_OTHERS = 60_000, 90_000
"""Maximum letters of markup for the rows of the table of checks, because a window with many tenants can have any
number."""
MAX_FILES = 30
SETUPS = {
    "unsafe": marked("made by one party"),
    "ceremony": marked("made by several parties"),
    "transparent": marked("not needed"),
}
"""The set-ups of keys in words."""


def role(say: Language, name: str) -> Markup:
    """The role of a file of the verification."""
    return {
        "window": say.text("window"),
        "trust": say.text("trust file"),
        "sibling": say.text("sibling"),
        "previous": say.text("previous window"),
        "challenge": say.text("challenge"),
        "attacks": say.text("attacks"),
    }.get(name) or say.shown(name)


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


def _whose(say: Language, report: Report, tenants: list[TenantReport], words: Markup) -> Markup:
    """A sentence about tenants, which it names unless it is about every tenant."""
    if len(tenants) == len(report.tenants):
        return words
    names = some_of(say, [clip(t.tenant, 60) for t in tenants], 3)
    return say.text("%(tenants)s: %(words)s", tenants=names, words=words)


def _units(say: Language, report: Report) -> Iterator[Markup]:
    """The unit of privacy: positions, and for each tenant with a document table its documents."""
    if by_position := [t for t in report.tenants if t.documents is None]:
        yield _whose(say, report, by_position, say.text(
            "one committed position of one tenant's index. A document with several positions is several units, and the"
            " losses of the units add up."
        ))  # fmt: skip
    for tenant in report.tenants:
        if (table := tenant.documents) is not None and named(tenant.mechanism).uses_delta:
            yield say.plural(
                "one document of tenant %(tenant)s, of at most %(count)s position.",
                "one document of tenant %(tenant)s, of at most %(count)s positions, over which the losses add up.",
                table.positions_per_document,
                tenant=clip(tenant.tenant, 60),
            )
        elif table is not None:
            yield say.plural(
                "one document of tenant %(tenant)s, of at most %(count)s position, which one Bernoulli bit samples.",
                "one document of tenant %(tenant)s, of at most %(count)s positions, which one Bernoulli bit samples.",
                table.positions_per_document,
                tenant=clip(tenant.tenant, 60),
            )


def _neighbours(say: Language, report: Report) -> Iterator[Markup]:
    """The neighbour relation, for tenants without and with a document table."""
    if by_position := [t for t in report.tenants if t.documents is None]:
        yield _whose(say, report, by_position, say.text(
            "two indices that differ in one position: one document of one position is added, removed or replaced. The"
            " number of positions is fixed and public."
        ))  # fmt: skip
    if tables := [t for t in report.tenants if t.documents is not None]:
        yield _whose(say, report, tables, say.text(
            "two indices that differ in one document: it is added, removed or replaced, with all its positions. The"
            " numbers of positions and of rows are fixed and public."
        ))  # fmt: skip


def _sensitivity(say: Language, report: Report) -> Markup:
    """The largest change of scores by one document, for a window with noise."""
    sizes = [t.document_positions for t in report.tenants if named(t.mechanism).uses_delta]
    if max(sizes) == 1:
        return say.text(
            "one document of one position changes one score by at most the whole lattice; the proof includes the"
            " clamping of scores"
        )
    return say.text(
        "one document of at most %(positions)s positions changes so many scores, each by at most the whole lattice; the"
        " proofs include the clamping of scores and the limit of positions",
        positions=max(sizes),
    )


def nist_fields(say: Language, report: Report) -> Iterator[tuple[Markup, Markup]]:
    """Each field, with this window's value."""
    f, w = report.figures, report.window
    kinds = [named(t.mechanism) for t in report.tenants]
    noise = any(kind.uses_delta for kind in kinds)
    established = f.standing != "not-established"
    yield say.text("Unit of privacy"), say.joined(_units(say, report))
    yield say.text("Neighbour relation"), say.joined(_neighbours(say, report))
    yield say.text("Epsilon (ε)"), _epsilon(say, report)
    yield (
        say.text("Delta (δ)"),
        say.shown(say.number(f.delta)) if noise else say.text("0: the closed forms have none"),
    )
    yield say.text("Mechanism"), say.joined(_mechanisms(say, report), "; ")
    yield (
        say.text("Sensitivity"),
        _sensitivity(say, report)
        if noise
        else say.text(
            "does not apply: random bits protect documents, and no noise has the size of a sensitivity"
        ),
    )
    yield say.text("Composition"), _composition(say, report)
    yield (
        say.text("Query model"),
        say.text(
            "interactive: each account asks up to %(questions)s questions, each answered with up to %(passages)s"
            " passages",
            questions=f.n,
            passages=_longest(report),
        ),
    )
    yield (
        say.text("Trust model"),
        say.text(
            "central: the provider has the documents and the seed, and in this pilot it operates the witnesses, so it"
            " could have chosen the randomness"
        )
        if report.vouching.pilot
        else say.text(
            "central: the provider has the documents and the seed, and its own witnesses alone made the beacon, so it"
            " could have chosen the randomness"
        )
        if chosen(report.vouching, report.tenants)
        else {
            "proved": say.text(
                "central: the provider has the documents and the seed. Its use of the promised randomness is proved,"
                " not trusted"
            ),
            "not-established": say.text(
                "central: the provider has the documents and the seed. This verification did not establish its use of"
                " the promised randomness"
            ),
        }.get(
            f.standing,
            say.text(
                "central: the provider has the documents and the seed. Its use of the promised randomness is proved for"
                " the records that were drawn"
            ),
        ),
    )
    yield (
        say.text("Correctness of the implementation"),
        say.text(
            "%(arithmetic)s; proofs: %(proofs)s; keys: %(keys)s; query vectors: %(query)s; document vectors:"
            " %(document)s",
            arithmetic=say.text("integer arithmetic and a published noise table")
            if noise
            else say.text("integer arithmetic and published probabilities of random bits"),
            proofs=_level(say, f.proofs),
            keys=say.text(SETUPS[f.setup]) if f.setup in SETUPS else _level(say, f.setup),
            query=_level(say, f.query_embedding),
            document=_level(say, f.document_embedding),
        ),
    )
    yield (
        say.text("Utility and bias"),
        say.text(
            "measured on public collections (above). The mechanism treats all positions alike; no measurement compares"
            " the questions of different groups"
        )
        if established
        else say.text("not established"),
    )
    yield (
        say.text("Side channels"),
        say.joined(
            [
                say.text(
                    "the figures do not cover the time and size of answers, the text that a model writes, and the"
                    " counts and times of honest accounts."
                ),
                _drawn_before(say, report, noise=noise),
            ]
        ),
    )
    yield (
        say.text("Security and access control"),
        say.text("the provider is responsible; this verification does not cover it"),
    )
    yield (
        say.text("Data collection exposure"),
        say.text(
            "the provider has the documents in plain text; this verification does not cover their origin and other"
            " copies. The figures do not cover the text of a returned passage, which its account reads."
        ),
    )
    yield (
        say.text("Data stored after the window"),
        say.text(
            "by its policy, the provider deletes the seed and the private inputs after %(day)s",
            day=day(w.delete_after),
        ),
    )


def _level(say: Language, level: str) -> Markup:
    """The name of a level of evidence, which is a name of the verdict line."""
    return say.text("not established") if level == "not established" else say.shown(level)


def _epsilon(say: Language, report: Report) -> Markup:
    f = report.figures
    if f.standing == "not-established":
        return say.text("not established")
    if f.eps is None:
        return say.text("not computed")
    if f.eps == "inf":
        own = [
            say.text("%(tenant)s: %(eps)s", tenant=clip(t.tenant, 60), eps=say.number(t.eps))
            for t in report.tenants
            if t.eps not in (None, "inf")
        ]
        bare = some_of(say, [clip(t.tenant, 60) for t in report.tenants if t.eps in (None, "inf")], 3)
        return say.joined([*own, say.text("none (unbounded) for %(tenants)s", tenants=bare)], "; ")
    kinds = {description(t.mechanism) for t in report.tenants}
    kind = next((k for k in kinds if not k.any_coalition), next(iter(kinds)))
    covered = {"eps": say.number(f.eps), "who": verdict.who(say, report, kind)}
    if all(_chained(t) for t in report.tenants) and f.standing != "if-conforming":
        return say.text("%(eps)s; for %(who)s, in all windows of the chain together", **covered)
    if f.standing == "if-conforming":
        return say.text("%(eps)s, for the answers that conform; for %(who)s, in one window", **covered)
    return say.text("%(eps)s; for %(who)s, in one window", **covered)


def _chained(tenant: TenantReport) -> bool:
    """Whether one epsilon of pooled listing covers the whole chain of windows."""
    return named(tenant.mechanism).pools and tenant.persists


def _composition(say: Language, report: Report) -> Markup:
    f, c = report.figures, report.figures.cumulative
    shared = all(named(t.mechanism).pools for t in report.tenants)
    over = (
        say.text("adaptive, over all queries of all accounts")
        if shared
        else say.text("adaptive, over all queries of a coalition")
    )
    parts = [over]
    if f.by:
        parts.append(say.text("the bound that counts: %(name)s", name=f.by))
    chained = [clip(t.tenant, 60) for t in report.tenants if _chained(t)]
    if chained:
        parts.append(
            say.text(
                "%(tenants)s: documents keep their random bit and stay listed, so one ε covers the whole chain of"
                " windows, and a further window adds none; its random bits raise the exclusion factor",
                tenants=some_of(say, chained, 3),
            )
        )
    if len(chained) == len(report.tenants):
        return say.joined(parts, "; ")
    parts.append(
        say.text("one window only")
        if c is None
        else say.plural(
            "%(windows)s windows in total: ε %(eps)s at δ %(delta)s about a document of one position, and"
            " %(condition)s",
            "%(windows)s windows in total: ε %(eps)s at δ %(delta)s about a document of at most %(count)s positions,"
            " and %(condition)s",
            c.positions_per_document,
            windows=c.windows,
            eps=say.number(c.eps),
            delta=say.number(c.delta),
            condition=condition(say, c.windows - 1),
        )
    )
    return say.joined(parts, "; ")


def _longest(report: Report) -> int:
    return max((t.longest for t in report.tenants), default=report.window.top_k)


def _mechanisms(say: Language, report: Report) -> Iterator[Markup]:
    """The mechanisms of the tenants, with equal ones grouped."""
    groups: dict[Markup, list[str]] = {}
    for t in report.tenants:
        kind = description(t.mechanism)
        how = say.joined([say.text(kind.words), kind.details(t, say)], "")
        groups.setdefault(how, []).append(clip(t.tenant, 60))
    for how, tenants in [*groups.items()][:12]:
        yield say.text("%(tenants)s: %(words)s", tenants=some_of(say, tenants), words=how)
    if len(groups) > 12:
        yield say.plural("and %(count)s more", "and %(count)s more", len(groups) - 12)


def _drawn_before(say: Language, report: Report, *, noise: bool) -> Markup:
    """When the provider draws randomness: proved by the witnesses, or stated by the provider alone."""
    if report.shows("randomness") and not report.vouching.pilot:
        if noise:
            return say.text("The provider draws noise in constant work before it knows the question.")
        return say.text("The random bits follow from a seed that was fixed before the first question.")
    if noise:
        return say.text(
            "By the provider's word only, it draws noise in constant work before it knows the question."
        )
    return say.text(
        "The random bits follow from a seed that, by the provider's word only, was fixed before the first question."
    )
