"""The first part of the page: what the window means for a record in the index, which rules the provider followed, who
is protected from whom, and which parties vouch for it.

Each sentence comes from typed values of the report and from the message catalogue. A value that depends on checks is
null in the report unless all of these checks passed, and its sentence then says so.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from typing import Literal, NamedTuple, TypeAlias

from markupsafe import Markup

from rag_audit._internal.canonical import sha256
from rag_audit._internal.errors import RagAuditError
from rag_audit._internal.words import instant, marked, some_of
from rag_audit.log.keys import VerifierKey
from rag_audit.mechanisms import named
from rag_audit.report.claims import SENTENCES, chosen
from rag_audit.report.explanations import Cause, cause_of
from rag_audit.report.html import words
from rag_audit.report.language import Language
from rag_audit.report.model import (
    AbsenceLine,
    IsolationLine,
    Level,
    ListsLine,
    Odds,
    PresenceLine,
    ProtectionLine,
    Report,
    Requirement,
    TenantProtection,
    TenantReport,
    WitnessReport,
)
from rag_audit.report.protection import conditions, exclusion_tier, exposed_by_position
from rag_audit.report.requirements import pilot_scope
from rag_audit.report.strength import tier

MAX_GROUPS, MAX_LISTED = 3, 40
"""Maximum groups of tenants with equal protection that the page describes in full, and that its table of further
groups lists; the report in JSON has all tenants."""
MAX_WITNESSES = 8
Answer: TypeAlias = Literal["yes", "drawn", "part", "unchecked", "no", "open"]


class Group(NamedTuple):
    """Tenants with equal protection, and the first of them."""

    tenants: list[str]
    realised: list[int]
    """the number of documents that the log returned at most, for each tenant with an established number"""
    first: TenantReport
    protection: TenantProtection
    pilot: bool
    """whether every figure depends on a provider that followed its own rules (`Vouching.pilot`)"""
    forgeable: bool
    """whether the one party of a pilot can also forge proofs, because it made their keys"""
    conditions: tuple[bool, bool]
    """`protection.conditions` of the tenants"""


class Row(NamedTuple):
    """A row of the table of protection: the adversary, what it sees, the line of the report, its figure in words."""

    id: str
    adversary: Markup
    sees: Markup
    line: ProtectionLine
    figure: Markup


class Rule(NamedTuple):
    """A rule, whether the provider followed it, and the checks that decide this."""

    words: Markup
    answer: Answer
    checks: list[str]


def groups(report: Report) -> list[Group]:
    """The tenants with equal protection, in the order of the report. The number of documents that the log returned may
    differ, because it depends on the questions."""
    found: dict[object, Group] = {}
    pilot, forgeable = report.vouching.pilot, forgeable_proofs(report)
    for tenant, protection in zip(report.tenants, report.protections, strict=False):
        figures = {name: line.model_dump(exclude={"figure": True, "exposure": {"realised"}})
                   for name, line in protection.lines.items()}  # fmt: skip
        key = (tenant.mechanism, tenant.longest, tenant.documents is None, repr(figures))
        new = Group([], [], tenant, protection, pilot, forgeable, conditions(report, protection))
        group = found.setdefault(key, new)
        group.tenants.append(words.clip(tenant.tenant, 60))
        if protection.presence.exposure is not None:
            group.realised.append(protection.presence.exposure.realised)
    return [*found.values()]


def names(say: Language, group: Group, maximum: int = 4) -> Markup:
    """The tenants of a group, at most four of them by name."""
    more = len(group.tenants) - maximum
    if more <= 0:
        return say.listed(group.tenants)
    rest = say.plural("%(count)s more", "%(count)s more", more)
    return say.listed([*group.tenants[:maximum], rest])


PILOT_CONDITION = marked(
    "This is a pilot: the following statements hold if the provider followed its rules, which no other party confirms."
)


def person(say: Language, group: Group) -> list[Markup]:
    """What the window means for a person whose record is in the index of these tenants: who receives the record, what
    other tenants receive, what a missing result shows, and what accounts of the tenant learn about one another."""
    p = group.protection
    if p.presence.strength == "not-established":
        return [
            say.text(
                "This verification established nothing about your record, because a check did not pass or evidence is"
                " missing."
            )
        ]
    parts = [
        _receives(say, group),
        _others(say, p.isolation, group),
        _missing(say, p.absence, group.first),
        _shared(say, group.first),
    ]
    return [sentence_start(part) + Markup(".") for part in parts if part]


def persons(say: Language, shown: list[Group]) -> list[tuple[Markup | None, list[Markup]]]:
    """`person` of several groups of tenants, each with the names of its tenants. A sentence that is the same for all
    groups comes once, at the end, and names all tenants itself."""
    parts = [(names(say, group), person(say, group)) for group in shown]
    same = (
        [part for part in parts[0][1] if all(part in own for _, own in parts[1:])] if len(parts) > 1 else []
    )
    result: list[tuple[Markup | None, list[Markup]]] = [
        (name, [part for part in own if part not in same]) for name, own in parts
    ]
    everybody = Markup("<strong>{}</strong> {}")
    shared = [everybody.format(say.text("All tenants above:"), part) for part in same]
    return [(name, own) for name, own in [*result, (None, shared)] if own]


def _receives(say: Language, group: Group) -> Markup:
    """Who can retrieve the record, and with which probability."""
    tenant, keep = group.first, group.protection.presence.keep
    best = tenant.longest
    if not named(tenant.mechanism).protects:
        return say.text(
            "every account of the tenant whose question matches your record receives it, in 100 of 100 cases in which"
            " the record is among the %(best)s best matches",
            best=best,
        )
    if keep is None:
        return say.text(
            "an account of the tenant whose question matches your record can receive it; random noise selects the"
            " %(best)s passages of an answer, so no fixed probability applies",
            best=best,
        )
    if named(tenant.mechanism).uses_delta:
        return say.text(
            "an account of the tenant whose question matches your record can receive it, with a probability of at most"
            " %(share)s in 100%(size)s; random noise selects the %(best)s passages of an answer",
            share=say.number(f"{100 * float(keep):.3g}"),
            size=_longer(say) if tenant.documents is None else Markup(),
            best=best,
        )
    size = _longer(say) if tenant.documents is None else _bit(say, tenant)
    if named(tenant.mechanism).pools:
        return say.text(
            "a question of any account of the tenant lists your record if the record's score for this question reaches"
            " the threshold of %(threshold)s, unless your record is one of the %(omitted)s in 100 that the sample"
            " omits%(size)s. Chance can list any record. A listed record stays listed for %(span)s: each account of the"
            " tenant receives it for a question if it is among the %(best)s best listed matches",
            threshold=str(tenant.threshold),
            omitted=say.number(f"{100 * (1 - float(keep)):.3g}"),
            size=size,
            span=say.text("the whole chain of windows") if tenant.persists else say.text("the window"),
            best=best,
        )
    return say.text(
        "an account of the tenant whose question matches your record receives it with a probability of %(share)s in"
        " 100%(size)s if it is among the %(best)s best matches",
        share=say.number(f"{100 * float(keep):.3g}"),
        size=size,
        best=best,
    )


def _bit(say: Language, tenant: TenantReport) -> Markup:
    """How often the random bit of a document is drawn, which decides whether another question can succeed."""
    if tenant.documents is None:
        return Markup()
    if tenant.persists:
        return say.text(
            " (one random bit for the whole chain of windows: asking again, now or in a later window, changes nothing)"
        )
    return say.text(" (one random bit for the whole window: asking again changes nothing)")


def _once(say: Language, tenant: TenantReport) -> Markup:
    """The same in few words."""
    if tenant.documents is None:
        return Markup()
    if tenant.persists:
        return say.text(" (one random bit for the whole chain of windows)")
    return say.text(" (one random bit for the window)")


def _longer(say: Language) -> Markup:
    return say.text(" (for a record in one position of the index; more for a longer record)")


def forgeable_proofs(report: Report) -> bool:
    """Whether the one party of a pilot can forge proofs, because it made their keys, so that nothing is proved."""
    return report.vouching.pilot and report.figures.setup == "unsafe"


def _others(say: Language, line: IsolationLine, group: Group) -> Markup:
    """What accounts of other tenants receive."""
    if line.strength == "not-established" or not line.other_tenants:
        return Markup()
    if group.forgeable:
        return say.text("no answer in the ledger gives this index's record to an account of another tenant")
    if line.proved and group.pilot:
        return say.text(
            "no answer in the ledger gives this index's record to an account of another tenant (proved for this ledger,"
            " which the provider can replace)"
        )
    if line.proved:
        return say.text(
            "no answer in the ledger gives this index's record to an account of another tenant (proved, whatever vector"
            " stands for a question)"
        )
    return say.text("accounts of other tenants did not receive it in the answers that were drawn and proved")


def _shared(say: Language, tenant: TenantReport) -> Markup:
    """What accounts of one tenant learn about one another, if all of them share the listed documents."""
    if not named(tenant.mechanism).pools:
        return Markup()
    return say.text(
        "accounts of this tenant are not private from one another: an account can find out what others asked about"
    )


def _missing(say: Language, line: AbsenceLine, tenant: TenantReport) -> Markup:
    """The sentence about the conclusion that a missing result permits."""
    if line.strength == "not-established":
        return Markup()
    if line.exclusion_factor is not None:
        return say.text(
            "a missing result is no proof of absence: it raises the odds that your record is absent by a factor of at"
            " most %(factor)s (%(odds)s), %(size)s",
            factor=say.number(line.exclusion_factor),
            odds=say.text("a probability of 1 in 2 becomes %(odds)s", odds=odds(say, line.odds)),
            size=_limits(say, line.positions, tenant),
        )
    if named(tenant.mechanism).protects:
        return say.text("no figure limits what a missing result reveals to an account that reads the answers")
    return say.text("a missing result shows that your record is absent, or that other passages match better")


def _limits(say: Language, positions: int | None, tenant: TenantReport) -> Markup:
    """The records to which the limit about missing results applies."""
    if tenant.documents is not None:
        return say.plural(
            "if the record fills at most %(count)s position of the index",
            "if the record fills at most %(count)s positions of the index",
            positions or 1,
        )
    if named(tenant.mechanism).uses_delta:
        return say.text(
            "if the record fills one position of the index; for a longer record the limit is higher"
        )
    return say.text(
        "if the record fills one position of the index; for a record in s positions the limit is the s-th power of this"
        " factor"
    )


def odds(say: Language, value: Odds | None) -> Markup:
    """The most that a probability of 1 in 2 becomes."""
    if value is None:
        return say.text("up to nearly 1")
    return say.text("at most %(likely)s in %(of)s", likely=value.likely, of=value.of)


def level(say: Language, strength: str) -> Markup:
    """The name of a strength."""
    return {
        "strong": say.text("strong"),
        "moderate": say.text("moderate"),
        "weak": say.text("weak"),
        "none": say.text("none"),
        "not-established": say.text("not established"),
    }[strength]


def rows(say: Language, group: Group) -> list[Row]:
    """One row for each adversary. No row depends on another row."""
    p = group.protection
    return [
        Row("isolation", say.text("accounts of other tenants"), say.text("no data of this index"), p.isolation,
            _isolation(say, p.isolation, group)),
        Row("lists", say.text("observers of lists"),
            say.text("which documents are listed for the first time, without texts")
            if named(group.first.mechanism).pools
            else say.text("which positions are selected, without texts"),
            p.lists, _lists(say, p.lists, group.first)),
        Row("presence", say.text("accounts that ask for the document"), say.text("its text, if it is returned"),
            p.presence, _presence(say, p.presence, group.first)),
        Row("absence", say.text("accounts that never received the document"), say.text("that it is missing"), p.absence,
            _absence(say, p.absence, group.first)),
    ]  # fmt: skip


def shared_rows(say: Language, shown: list[Group]) -> list[tuple[Group, Row]]:
    """The rows of several groups in one table, adversary by adversary: groups with equal rows share one row."""
    result: list[tuple[Group, Row]] = []
    for same in zip(*(rows(say, group) for group in shown), strict=True):
        merged: dict[tuple[Markup, str, Markup], tuple[Group, Row]] = {}
        for group, row in zip(shown, same, strict=True):
            key = (row.sees, row.line.strength, row.figure)
            tenants = [*(merged[key][0].tenants if key in merged else ()), *group.tenants]
            merged[key] = (group._replace(tenants=tenants), row)
        result += merged.values()
    return result


def cell(say: Language, row: Row) -> Markup:
    """A row of the table of protection as a cell: the strength, and the figure that decides it."""
    strength = Markup('<span class="tag level-{}">{}</span>').format(
        row.line.strength, level(say, row.line.strength)
    )
    match row.line:
        case ListsLine(eps=eps) if eps is not None:
            figure = say.text("epsilon %(eps)s", eps=say.number(eps))
        case AbsenceLine(exclusion_factor=factor) if factor is not None:
            figure = say.text("factor %(factor)s", factor=say.number(factor))
        case _:
            return strength
    return Markup("{} ({})").format(strength, figure)


def _open(say: Language) -> Markup:
    return say.text("no figure, because a check of this verification did not pass")


def _isolation(say: Language, line: IsolationLine, group: Group) -> Markup:
    if line.strength == "not-established":
        return _open(say)
    if group.forgeable:
        return say.text(
            "each answer in the ledger comes from the index of its account's own tenant, but one party could forge the"
            " proofs of this"
        )
    if line.proved and group.pilot:
        return say.text(
            "each answer in this ledger is proved to come from the index of its account's own tenant, but the provider"
            " can replace the ledger"
        )
    if line.proved:
        return say.text(
            "each answer in the ledger is proved to come from the index of its account's own tenant, whatever vector"
            " stands for the question"
        )
    return say.text("each drawn answer is proved to come from the index of its account's own tenant")


def _accounts(say: Language, accounts: int | None) -> Markup:
    if accounts is None:
        return say.text("any number of accounts")
    return say.plural("%(count)s account", "%(count)s accounts", accounts)


def _document(say: Language, positions: int | None) -> Markup:
    if (positions or 1) == 1:
        return say.text("a document of one position")
    return say.text("a document of at most %(positions)s positions", positions=positions)


def _lists(say: Language, line: ListsLine, tenant: TenantReport) -> Markup:
    if line.strength == "not-established":
        return _open(say)
    if line.eps is None:
        if named(tenant.mechanism).protects:
            return say.text("no epsilon limits what the lists reveal")
        return say.text("no limit: answers are exact")
    delta = Markup()
    probability = 0.0 if line.delta is None else float(line.delta)
    if 1e-15 < probability < 1:
        inverse = math.floor(1 / probability * (1 + 1e-9))
        delta = say.text(", except with a probability of 1 in %(inverse)s", inverse=inverse)
    elif probability != 0:
        delta = say.text(", except with probability %(delta)s", delta=say.number(str(line.delta)))
    if named(tenant.mechanism).pools:
        return say.text(
            "until the document is listed for the first time: a probability of 1 in 2 that %(document)s is present"
            " becomes %(odds)s, for all that %(accounts)s see%(span)s (epsilon %(eps)s)",
            span=_span(say, tenant),
            odds=odds(say, line.odds),
            document=_document(say, line.positions),
            accounts=_accounts(say, line.accounts),
            eps=say.number(line.eps),
        )
    return say.text(
        "a probability of 1 in 2 that %(document)s is present becomes %(odds)s%(delta)s, for the lists of %(accounts)s"
        " (epsilon %(eps)s)",
        odds=odds(say, line.odds),
        document=_document(say, line.positions),
        delta=delta,
        accounts=_accounts(say, line.accounts),
        eps=say.number(line.eps),
    )


def _span(say: Language, tenant: TenantReport) -> Markup:
    """The windows that one epsilon of pooled listing covers."""
    if tenant.persists:
        return say.text(" in all windows of the chain together")
    return say.text(" in this window; each further window adds its own epsilon")


def _presence(say: Language, line: PresenceLine, tenant: TenantReport) -> Markup:
    if line.strength == "not-established":
        return _open(say)
    match line.keep:
        case None:
            return say.text("no protection of presence: a returned document is read")
        case share if named(tenant.mechanism).pools:
            return say.text(
                "no protection of presence: a document with a score of at least %(threshold)s for a question of any"
                " account is listed in %(share)s of 100 cases%(bit)s; a listed document among the best matches is"
                " returned and then read",
                threshold=str(tenant.threshold),
                bit=_once(say, tenant),
                share=say.number(f"{100 * float(share):.3g}"),
            )
        case share:
            return say.text(
                "no protection of presence: a matching document is returned in %(share)s of 100 cases%(bit)s and then"
                " read",
                bit=_once(say, tenant),
                share=say.number(f"{100 * float(share):.3g}"),
            )


def _absence(say: Language, line: AbsenceLine, tenant: TenantReport) -> Markup:
    if line.strength == "not-established":
        return _open(say)
    if line.exclusion_factor is None:
        if named(tenant.mechanism).protects:
            return say.text("no figure limits what a missing result reveals")
        return say.text("no limit: answers are exact, so a missing result shows absence")
    return say.text(
        "a probability of 1 in 2 that %(document)s is absent becomes %(odds)s, for %(accounts)s (factor %(factor)s)",
        odds=odds(say, line.odds),
        document=_document(say, line.positions),
        accounts=_accounts(say, line.accounts),
        factor=say.number(line.exclusion_factor),
    )


def exposure(say: Language, group: Group) -> Markup:
    """The number of documents that a coalition can read, next to exact retrieval, chance and the log. It is empty if
    the verification did not establish it."""
    value = group.protection.presence.exposure
    if value is None:
        return Markup()
    numbers = {"limit": value.limit, "documents": value.documents, "exact": value.exact}
    limit = (
        say.plural(
            "%(count)s account together can read the texts of at most %(limit)s of %(documents)s positions; with exact"
            " retrieval it would be %(exact)s.",
            "%(count)s accounts together can read the texts of at most %(limit)s of %(documents)s positions; with exact"
            " retrieval it would be %(exact)s.",
            value.accounts,
            **numbers,
        )
        if exposed_by_position(group.first)
        else say.plural(
            "%(count)s account can read at most %(limit)s documents; with exact retrieval it would be %(exact)s.",
            "%(count)s accounts together can read at most %(limit)s documents; with exact retrieval it would be"
            " %(exact)s.",
            value.accounts,
            **numbers,
        )
    )
    chance = Markup()
    if value.by_chance is not None:
        chance = say.text(
            "Chance alone returns at most %(chance)s of them on average.",
            chance=say.number(f"{float(value.by_chance):,.0f}"),
        )
    elif named(group.first.mechanism).uses_delta:
        chance = say.text(
            "Noise also returns documents that do not match the question, and no figure counts them."
        )
    log = say.text(
        "All questions in the log together returned at most %(realised)s.", realised=max(group.realised)
    )
    return Markup(" ").join(part for part in (limit, chance, log) if part)


def good(say: Language, group: Group) -> Markup:
    """Whether each row of a group's table is good, in one sentence for each row. No sentence is about two rows."""
    table = rows(say, group)
    if all(row.line.strength == "not-established" for row in table):
        return say.text("This cannot be said: no row has an established figure.")
    parts = [_judged(say, row, group) for row in table]
    if group.pilot:
        first = say.text(
            "No row of a pilot is good for another party. The rows would be as follows %(condition)s.",
            condition=unless(say, group),
        )
        parts.insert(0, first)
    return Markup(" ").join(parts)


def unless(say: Language, group: Group) -> Markup:
    """The condition under which a figure would have the strength that its number alone gives."""
    others, gap = group.conditions
    if others and gap:
        return say.text("if other parties confirmed it and each answer were proved")
    return say.text("if other parties confirmed it") if others else say.text("if each answer were proved")


def _graded(say: Language, line: ProtectionLine, alone: Level, condition: Markup) -> Markup:
    """The strength of a line in its table, and the strength that its number alone would give if they differ."""
    if line.strength == alone:
        return level(say, alone)
    return say.text(
        "%(strength)s (would be %(alone)s %(condition)s)",
        strength=level(say, line.strength),
        alone=level(say, alone),
        condition=condition,
    )


def _judged(say: Language, row: Row, group: Group) -> Markup:
    """Whether one row of a group's table is good, in a sentence about this row alone."""
    return say.text(
        "%(whom)s: %(words)s.", whom=sentence_start(row.adversary), words=_judgement(say, row.line, group)
    )


def _judgement(say: Language, line: ProtectionLine, group: Group) -> Markup:
    """Whether a line of a group is good, in a few words: its strength, and the figure that decides it."""

    def graded(alone: Level) -> Markup:
        return level(say, alone) if group.pilot else _graded(say, line, alone, unless(say, group))

    if line.strength == "not-established":
        return say.text("not established")
    match line:
        case IsolationLine() if group.forgeable:
            return say.text("%(strength)s, separated", strength=graded("strong"))
        case IsolationLine(proved=True):
            return say.text("%(strength)s, separated by proof", strength=graded("strong"))
        case IsolationLine():
            return say.text("%(strength)s, separated in the drawn answers only", strength=graded("strong"))
        case ListsLine(eps=eps) if eps is not None:
            return say.text(
                "%(strength)s, for lists only (epsilon %(eps)s)",
                strength=graded(tier(float(eps))),
                eps=say.number(eps),
            )
        case AbsenceLine(exclusion_factor=factor) if factor is not None:
            return say.text(
                "%(strength)s (factor %(factor)s)",
                strength=graded(exclusion_tier(float(factor))),
                factor=say.number(factor),
            )
        case PresenceLine():
            return say.text("no protection; only access rights and contracts help")
    return say.text("no limit")


def sentence_start(text: Markup) -> Markup:
    """Markup that begins with a capital."""
    return text[:1].upper() + text[1:]


def rules(say: Language, report: Report) -> list[Rule]:
    """The rules of the window, each with the checks that decide it. A rule that the window cannot break is left out."""
    sampled = report.figures.mode == "sampled"
    named_rules = {
        "answers-drawn" if sampled else "answers": say.text(
            "Each answer in the ledger follows the published rule, from the committed index. No other party confirms"
            " when the provider fixed this index."
        )
        if report.vouching.pilot
        else say.text(
            "Each answer follows the published rule, from the index that was fixed before the period began."
        ),
        "randomness": say.text("The provider could not choose the randomness."),
        "ledger": say.text(
            "The public record, the ledger, was not rewritten, and enough witnesses confirm this."
        ),
        "chain": _order(say, report),
        "coalition": say.text(
            "No more accounts than the policy covers repeated a question almost word for word."
        ),
        "receipts-independent": say.text("Receipts of independent accounts agree with the ledger.")
        if report.counts.receipts_independent or not report.counts.receipts_dependent
        else say.text(
            "Receipts agree with the ledger. The trust file calls their accounts not independent of the provider."
        ),
    }
    return [
        Rule(text, answer, [*SENTENCES[name].checks])
        for name, text in named_rules.items()
        if (answer := _followed(report, name)) is not None
    ]


def _order(say: Language, report: Report) -> Markup:
    """The rule about the order of windows, with its evidence in this run."""
    confirmed = report.shows("chain") and not report.vouching.pilot and not report.vouching.forkable
    if report.chain.before is None and not confirmed:
        return say.text(
            "Whether the window is the first one of the service: its header says so, and no independent party confirms"
            " it."
        )
    if not report.chain.reached and not confirmed:
        return say.text(
            "Whether a window was left out: the window header names a previous window, which was not supplied, and no"
            " independent party confirms the order."
        )
    if not confirmed:
        return say.text(
            "Whether a window was left out: the window header names a previous window, and no independent party"
            " confirms that the provider made no other window."
        )
    if report.chain.before is None:
        return say.text(
            "The window is the first one of the service: its header names no previous window, and witnesses confirm"
            " only one such window."
        )
    if not report.chain.reached:
        return say.text(
            "The window header names a previous window, which was not supplied: only the witnesses confirm that no"
            " window in between was left out."
        )
    return say.text("The window follows the previous one, and no window in between was left out.")


_WITNESSED, _PROVED = ("randomness", "ledger", "chain"), ("answers", "answers-drawn", "coalition")
"""The rules that depend on witnesses, and the rules that depend on proofs."""


def _followed(report: Report, name: str) -> Answer | None:
    """Whether the provider followed a rule, or None if the window contains no part that the rule is about.

    A copy of the file that is damaged, or a wrong pin of the reader, shows no breach of a rule. The checks of the
    ledger's end are evidence for every rule, so their failure alone leaves the other rules open.
    """
    if report.shows(name):
        # One party of a pilot makes each witness's statement, and with its own keys also each proof.
        forged = [*_WITNESSED, *(_PROVED if forgeable_proofs(report) else ())]
        if (report.vouching.pilot and name in forged) or (report.vouching.forkable and name == "chain"):
            return "open"
        unseen = name == "chain" and report.chain.before is not None and not report.chain.reached
        return "unchecked" if unseen else "drawn" if name == "answers-drawn" else "yes"
    mine = [check for check in report.checks if check.base in SENTENCES[name].checks]
    common = () if name == "ledger" else SENTENCES["provider"].checks
    false = any(check.outcome == "fail" and check.base not in common for check in mine)
    if false and cause_of(report.checks) is Cause.WINDOW:
        return "no"
    if report.claims and all(check.outcome == "pass" for check in mine) and _absent(report, name):
        return None
    return "open"


def _absent(report: Report, name: str) -> bool:
    """Whether the window lacks the subject of a rule."""
    if name == "randomness":
        return not any(named(t.mechanism).protects for t in report.tenants)
    if name == "receipts-independent":
        return not report.counts.receipts_independent + report.counts.receipts_dependent
    if name == "coalition":
        return report.figures.coalition != "checked"
    return False


def answer(say: Language, value: Answer) -> Markup:
    """An answer to the question whether a rule was followed."""
    return {
        "yes": say.text("yes"),
        "drawn": say.text("yes, for the drawn answers"),
        "part": say.text("in part"),
        "unchecked": say.text("not checked here"),
        "no": say.text("no"),
        "open": say.text("not established"),
    }[value]


def followed(report: Report) -> Answer:
    """Whether the provider followed the rules of the window."""
    if report.outcome == "FAIL" and cause_of(report.checks) is Cause.WINDOW:
        return "no"
    v = report.vouching
    trusted = v.pilot or v.forkable or chosen(v, report.tenants)
    if report.outcome in ("FAIL", "UNDECIDED", "UNPROVEN") or trusted:
        return "open"
    return "drawn" if report.figures.mode == "sampled" else "yes"


def partly(report: Report) -> list[Requirement]:
    """The requirements that a window that passed meets only for some tenants, or only by the rules of a pilot."""
    if not report.outcome.startswith("PASS"):
        return []
    return [r for r in report.requirements if r.outcome == "pass" and r.scope is not None]


def meets(report: Report) -> Answer:
    """Whether the window meets the requirements of the trust file."""
    if report.exit_code == 0:
        return "part" if partly(report) else "yes"
    return "no" if report.outcome == "UNMET" else "open"


def required(say: Language, report: Report) -> Markup:
    """Whether the window meets the requirements of the trust file."""
    unmet = sum(r.outcome == "unmet" for r in report.requirements)
    limited = partly(report)
    if limited:
        words = say.plural(
            "The window meets the requirements of the trust file, %(count)s of them only in part: %(names)s.",
            "The window meets the requirements of the trust file, %(count)s of them only in part: %(names)s.",
            len(limited),
            names=say.listed([r.name for r in limited]),
        )
        if any(pilot_scope(say, r.name, report.vouching) for r in limited):
            receipts = say.text(
                "Required receipts of independent accounts can be missing: this pilot counts receipts of other accounts"
                " too."
            )
            return say.joined([words, receipts])
        return words
    if report.outcome.startswith("PASS"):
        return say.text("The window meets every requirement of the trust file.")
    if unmet and report.outcome == "UNMET":
        return say.plural(
            "The window does not meet %(count)s requirement of the trust file.",
            "The window does not meet %(count)s requirements of the trust file.",
            unmet,
        )
    return say.text("Whether the window meets the requirements of the trust file is not established.")


def own_verifier(report: Report) -> bool:
    """Whether the provider also holds a key of a verifier, whose draws count or who signed this report."""
    v = report.vouching
    keys = {key.fingerprint for key in v.verifiers}
    if report.signature is not None:
        with suppress(RagAuditError):
            key = VerifierKey.parse(report.signature.vkey)
            keys.add(sha256(key.public).hex())
    return v.provider.fingerprint is not None and v.provider.fingerprint in keys


def alone(report: Report) -> bool:
    """Whether only the provider vouches for the window."""
    return report.vouching.pilot or own_verifier(report)


def banner(say: Language, report: Report) -> tuple[Markup, list[Markup]] | None:
    """The heading and the sentences about a window that the provider vouches for, alone or for a fact that a report
    would otherwise claim; None for any other window."""
    names, pilot = report.vouching.dependent, report.vouching.pilot
    parts = [] if pilot else _assumed(say, report)
    if not alone(report):
        return (say.text("The provider takes part in its own control."), parts) if parts else None
    if pilot:
        own = say.listed([_of_provider(say, w) for w in report.vouching.witnesses if w.name in names][:4])
        parts.append(
            say.text("The provider operates enough witnesses for a quorum: %(names)s.", names=own)
            if report.vouching.dependence.alone
            else say.text("The provider operates witnesses that the quorum needs: %(names)s.", names=own)
        )
    if report.vouching.accounts_dependent and not report.vouching.accounts_named:
        parts.append(say.text("The trust file calls no account independent of the provider."))
    if own_verifier(report):
        parts.append(say.text("The verifier's key is the provider's key."))
    if pilot:
        if report.outcome.startswith("PASS"):
            parts.append(say.text("This report shows that the steps work."))
        parts.append(
            say.text("It proves nothing to other people, because the provider can forge each confirmation.")
            if report.outcome.startswith("PASS")
            else say.text(
                "This report proves nothing to other people, because the provider can forge each confirmation."
            )
        )
    else:
        parts.append(
            say.text(
                "The report is the provider's own statement about itself: a verifier of another party has to repeat the"
                " verification."
            )
        )
    if not pilot:
        return say.text("The provider takes part in its own control."), parts
    if len(names) == len(report.vouching.witnesses):
        return say.text("PILOT: One party plays all roles."), parts
    return say.text("PILOT: The provider takes part in its own control."), parts


def _assumed(say: Language, report: Report) -> list[Markup]:
    """The facts of a window for which the provider's witnesses vouch alone, although no pilot says so (`allow=` of the
    verdict)."""
    v, parts = report.vouching, []
    names = say.listed([_of_provider(say, w) for w in v.witnesses if not w.independent][:4])
    if v.forkable and v.dependent and not v.dependence.minority:
        parts.append(
            say.text(
                "Two quorums may have only witnesses of the provider in common (%(names)s), so two ledgers could each"
                " have a quorum.",
                names=names,
            )
        )
    if v.chosen:
        parts.append(
            say.text(
                "Witnesses of the provider alone made the beacon (%(names)s), so the provider could have chosen the"
                " randomness.",
                names=names,
            )
        )
    return parts


def _of_provider(say: Language, witness: WitnessReport) -> Markup:
    """A witness of the provider in the banner, with the relation that a verifier wrote."""
    if witness.relation is None or witness.relation in words.KNOWN:
        return say.shown(words.clip(witness.name, 80))
    return say.text(
        "%(name)s (%(relation)s)", name=words.clip(witness.name, 80), relation=relation(say, witness)
    )


def relation(say: Language, witness: WitnessReport) -> Markup:
    """A witness's relation to the provider, and its independence, as the trust file states them."""
    stated = None if witness.relation is None else say.shown(words.clip(witness.relation, 120))
    if witness.relation in words.KNOWN:
        stated = say.known(witness.relation)
    if witness.independent:
        if stated is None:
            return say.text("independent of the provider, relation not stated")
        return say.text("independent of the provider, %(relation)s", relation=stated)
    if stated is None:
        return say.text("not independent of the provider")
    return say.text("not independent of the provider, %(relation)s", relation=stated)


def strip(say: Language, report: Report) -> Iterator[tuple[str, Markup, Markup, Markup]]:
    """The facts about service and parties: id, name, value, source. An unknown value says that it is not stated."""
    v, filing = report.vouching, report.filing
    stated, service = say.text("stated by the trust file"), v.service
    published = say.text("published in the window")
    unstated = say.text("not stated")

    def told(name: str) -> tuple[Markup, Markup]:
        value = None if service is None else getattr(service, name)
        place = say.text("in trust.toml: [service] %(name)s", name=name)
        return (unstated, place) if value is None else (say.shown(words.clip(value, 160)), stated)

    yield "service", say.text("Service"), say.shown(words.clip(report.window.origin, 120)), stated
    yield "purpose", say.text("Purpose"), *told("purpose")
    yield "operator", say.text("Operator"), *told("operator")
    yield "contact", say.text("Contact"), *told("contact")
    dated = {event.kind for event in report.timeline.events}
    known = (
        say.text("signed by the provider") if {"opens", "closes"} <= dated else say.text("not established")
    )
    yield (
        "period",
        say.text("Period"),
        say.text(
            "%(start)s to %(end)s",
            start=instant(report.window.opens_at),
            end=instant(report.window.closes_at),
        ),
        known,
    )
    yield "size", say.text("Index"), _size(say, report), published
    yield "answers", say.text("Answers"), _answers_of(say, report), published
    signed = report.signature
    yield (
        "verifier",
        say.text("Verifier"),
        unstated if signed is None else say.shown(words.clip(signed.name, 120)),
        say.text("this report is not signed") if signed is None else say.text("signed this report"),
    )
    trust = next((file for file in filing.inputs if file.role == "trust"), None)
    digest = None if trust is None else trust.sha256
    yield (
        "trust",
        say.text("Trust file"),
        say.shown("trust.toml" if trust is None else words.clip(trust.name, 80)),
        say.text("not read from a file") if digest is None else Markup("<code>{}</code>").format(digest),
    )
    for witness in v.witnesses[:MAX_WITNESSES]:
        acts = [
            act
            for act, done in (
                (say.text("confirmed the beginning"), witness.header),
                (say.text("confirmed the end"), witness.end),
                (say.text("contributed randomness"), witness.beacon),
            )
            if done
        ]
        yield (
            "witness",
            say.text("Witness"),
            say.text(
                "%(name)s: %(relation)s",
                name=words.clip(witness.name, 80),
                relation=relation(say, witness),
            ),
            say.listed(acts) if acts else say.text("no signature counts"),
        )
    if len(v.witnesses) > MAX_WITNESSES:
        more = len(v.witnesses) - MAX_WITNESSES
        yield "witness", say.text("Witness"), say.plural("%(count)s more", "%(count)s more", more), Markup()
    who, source = told("keys_made_by")
    made = {
        "unsafe": say.text("one party made the keys of the proofs"),
        "ceremony": say.text("several parties made the keys of the proofs"),
        "transparent": say.text("the proofs need no keys"),
    }.get(report.figures.setup, say.text("not established"))
    needed = report.figures.setup != "transparent"
    yield "setup", say.text("Keys of proofs"), made, who if needed and source == stated else Markup()


def _size(say: Language, report: Report) -> Markup:
    """The published sizes of the tenants' indices. Different indices are never added up."""
    whose: dict[Markup, list[str]] = {}
    for tenant in report.tenants:
        table = tenant.documents
        room = say.plural("%(count)s position", "%(count)s positions", tenant.capacity)
        if table is not None:
            documents = table.rows - (table.fresh_rows or 0)
            room = say.plural(
                "%(count)s document in %(positions)s",
                "%(count)s documents in %(positions)s",
                documents,
                positions=room,
            )
        whose.setdefault(room, []).append(words.clip(tenant.tenant, 60))
    sizes = [
        say.text("%(tenants)s: each with room for %(room)s", tenants=some_of(say, names), room=room)
        if len(names) > 1
        else say.text("%(tenants)s: room for %(room)s", tenants=names[0], room=room)
        for room, names in whose.items()
    ]
    if any(tenant.documents is not None for tenant in report.tenants):
        sizes.append(say.text("the number of documents is not published"))
    return say.joined(sizes, "; ")


def _answers_of(say: Language, report: Report) -> Markup:
    """The answers of each tenant, as far as their number is known."""
    c = report.counts
    counts: dict[str, tuple[int, int]] = {}
    for line in c.queries_by_account:
        answers, accounts = counts.get(line.tenant, (0, 0))
        counts[line.tenant] = (answers + line.queries * line.accounts, accounts + line.accounts)
    longest = max((t.longest for t in report.tenants), default=report.window.top_k)
    parts = [
        say.text(
            "%(tenant)s: %(answers)s to %(accounts)s",
            tenant=words.clip(tenant, 60),
            answers=say.plural("%(count)s answer", "%(count)s answers", answers),
            accounts=say.plural("%(count)s account", "%(count)s accounts", accounts),
        )
        for tenant, (answers, accounts) in counts.items()
    ]
    more = len(parts) - MAX_GROUPS
    rest = [say.plural("%(count)s more", "%(count)s more", more)] if more > 0 else []
    return say.joined(
        [*parts[:MAX_GROUPS], *rest, say.text("up to %(longest)s passages in each answer", longest=longest)],
        "; ",
    )
