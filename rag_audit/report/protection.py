"""Who is protected from whom: four lines for each tenant, one for each adversary (docs/report.md, "Protection").

The lines are about accounts of other tenants, observers of lists without texts, accounts that ask for a document, and
accounts that never received it. No function here combines lines of different adversaries: an epsilon about lists
protects no document from an account that receives its text.

A line has a figure only if every check passed that the figure depends on (`claims.SENTENCES`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from rag_audit._internal.words import PLAIN, Say, counted, marked, of_positions, some, some_of
from rag_audit.mechanisms import named
from rag_audit.mechanisms.accounting.documents import EXPOSURE_RATIO
from rag_audit.mechanisms.descriptions import description
from rag_audit.report.claims import SENTENCES, Claim, Passed, chosen
from rag_audit.report.model import (
    AbsenceLine,
    Counts,
    Exposure,
    Figures,
    IsolationLine,
    Level,
    ListsLine,
    Odds,
    PresenceLine,
    ProtectionLine,
    Report,
    TenantProtection,
    TenantReport,
    Vouching,
)
from rag_audit.report.strength import ORDER, tier

ADVERSARIES = {
    "isolation": "accounts of other tenants",
    "lists": "observers of lists without texts",
    "presence": "accounts that ask for the document",
    "absence": "accounts that never received it",
}
"""Each line's adversary, in the order of every format."""
ORDER_OF_ROWS: tuple[Level, ...] = ("not-established", *ORDER)
"""The order of lines in a text: the weakest first."""
_MILLION = 1_000_000
_LOG = "all questions in the log: "
NOT_ESTABLISHED = "no figure, because a check of this verification did not pass"


@dataclass(frozen=True)
class _Window:
    """The parts of a window that every tenant's lines depend on.

    :param figures: whether the window's privacy figures are established
    :param answers: the claim that each answer, or each drawn answer, is proved; None if it is not
    :param gap: why some answers have no proof; None if every answer has one
    :param pilot: whether one party can forge each confirmation, so that every line depends on this party
    :param chosen: whether the provider could have chosen the randomness, so that lines with randomness depend on it
    :param own_keys: whether one party made the keys of the proofs, and could forge proofs
    """

    k_max: int
    delta: str
    tenants: int
    figures: bool
    answers: Claim | None
    gap: str | None
    pilot: bool
    chosen: bool
    own_keys: bool


PILOT_GAP = marked("one party plays all roles and can forge each confirmation (a pilot)")
CHOSEN_GAP = marked("the provider's own witnesses alone made the beacon")
_IF_CHOSEN = "only if the provider did not choose the randomness, which its own witnesses made: "
_IF_PILOT = "only if the provider followed its own rules, which a pilot does not show: "


def protections_of(
    figures: Figures,
    counts: Counts,
    tenants: list[TenantReport],
    passed: Passed,
    *,
    judged: bool,
    vouching: Vouching,
) -> list[TenantProtection]:
    """The four lines of each tenant, in the order of `tenants`.

    :param vouching: the witnesses, on which every line or the lines with randomness may depend
    :param judged: whether no check of the window is false or undecided, so that a report may show proved facts
    """
    sampled = figures.mode == "sampled"
    answers = SENTENCES["answers-drawn" if sampled else "answers"]
    gap = None
    if sampled and (figures.sampled is None or figures.sampled < counts.records):
        share = "a share" if figures.beta is None else f"a share {figures.beta}"
        gap = f"some answers have no proof: up to {share} of them may break the rules"
    window = _Window(
        figures.k_max,
        figures.delta,
        len(tenants),
        figures.standing != "not-established",
        answers if judged and counts.records and passed.holds(answers) else None,
        gap,
        vouching.pilot,
        chosen(vouching, tenants),
        figures.setup == "unsafe",
    )
    return [
        TenantProtection(
            tenant=tenant.tenant,
            isolation=_isolation(window),
            lists=_lists(tenant, window),
            presence=_presence(tenant, window),
            absence=_absence(tenant, window),
        )
        for tenant in tenants
    ]


def conditions(report: Report, own: TenantProtection) -> tuple[bool, bool]:
    """The conditions under which the figures of a tenant would have the strengths that their numbers alone give.

    :returns: whether parties other than the provider would have to confirm them, and whether each answer would have to
        be proved
    """
    return report.vouching.pilot or chosen(report.vouching, report.tenants), not own.isolation.proved


def exclusion_tier(factor: float) -> Level:
    """The level of an exclusion factor, which is the maximum Bayes factor for a document's absence.

    The limits are the choice of this program. They follow the scale of Kass and Raftery (1995, "Bayes factors") for
    evidence, which is not about privacy: a factor of at most 3 is barely worth mention, at most 20 positive, and above
    150 very strong.

    >>> [exclusion_tier(factor) for factor in (3, 10, 22, 151)]
    ['strong', 'moderate', 'weak', 'none']
    """
    if factor <= 3:
        return "strong"
    if factor <= 20:
        return "moderate"
    return "weak" if factor <= 150 else "none"


def odds_after(factor: float) -> Odds | None:
    """The most that an even chance becomes by a factor of the odds, rounded up; None beyond a factor of a million.

    >>> odds = odds_after(10.0)
    >>> odds.likely, odds.of
    (10, 11)
    >>> odds_after(math.inf) is None
    True
    """
    if not factor <= _MILLION:
        return None
    # Below 10 a tenth matters: a factor of 2.1 is 21 in 31.
    ratio = Fraction(math.ceil(10 * factor - 1e-9), 10) if factor < 10 else Fraction(math.ceil(factor))
    return Odds(likely=ratio.numerator, of=ratio.numerator + ratio.denominator)


def odds_words(factor: float, event: str) -> str:
    """The same in words.

    >>> odds_words(10.0, "a document is absent")
    'a probability of 1 in 2 that a document is absent becomes at most 10 in 11'
    """
    even = f"a probability of 1 in 2 that {event}"
    odds = odds_after(factor)
    if odds is None:
        return f"{even} can become nearly 1"
    return f"{even} becomes at most {odds.likely:,} in {odds.of:,}"


def line_words(name: str, line: ProtectionLine) -> str:
    """A line in one sentence: the adversary, the strength and the figure."""
    return f"{ADVERSARIES[name]}: {line.strength.replace('-', ' ')}; {line.figure}"


def _capped(
    level: Level, reasons: list[str], window: _Window, *, random: bool = True
) -> tuple[Level, list[str]]:
    """The strength of a line whose figure is valid for proved answers only."""
    gaps = [*([] if window.gap is None else [window.gap]), *([PILOT_GAP] if window.pilot else [])]
    if random and window.chosen:
        gaps.append(CHOSEN_GAP)
    if not gaps:
        return level, reasons
    return min(level, "weak", key=ORDER.index), [*reasons, *gaps]


def _if(window: _Window, *, random: bool = True) -> str:
    """The condition of a figure: of every figure of a pilot, or of a figure with randomness."""
    if window.pilot:
        return _IF_PILOT
    return _IF_CHOSEN if random and window.chosen else ""


def _isolation(window: _Window) -> IsolationLine:
    claim = window.answers
    if claim is None:
        return IsolationLine(strength="not-established", figure=NOT_ESTABLISHED, reasons=[], checks=[],
                             proved=False, other_tenants=None)  # fmt: skip
    others = window.tenants - 1
    level, reasons = _capped("strong", [], window, random=False)
    which = "each answer" if window.gap is None else "each drawn answer"
    # A provider that made the keys of the proofs of its own pilot can forge the proofs too.
    forged = _IF_PILOT if window.pilot and window.own_keys else ""
    comes = "comes" if window.pilot else "is proved to come"
    figure = (
        f"{forged}accounts of other tenants see no data of this index: {which} in the ledger {comes} from the"
        " index of its account's own tenant, whatever vector stands for the question"
    )
    if window.pilot:
        figure += ", but the provider can replace the ledger"
    if not others:
        figure += "; the window has no other tenant"
    return IsolationLine(strength=level, figure=figure, reasons=reasons, checks=[*claim.checks],
                         proved=window.gap is None, other_tenants=others)  # fmt: skip


def _accounts(tenant: TenantReport, window: _Window) -> int:
    return min(window.k_max, tenant.accounts_max)


def _lists(tenant: TenantReport, window: _Window) -> ListsLine:
    if not window.figures or tenant.eps is None:
        return ListsLine(strength="not-established", figure=NOT_ESTABLISHED, reasons=[], checks=[], eps=None,
                         delta=None, accounts=None, positions=None, odds=None)  # fmt: skip
    checks, kind = [*SENTENCES["privacy"].checks], description(tenant.mechanism)
    eps = float(tenant.eps)
    if not math.isfinite(eps):
        why = _NO_BOUND % {"mechanism": tenant.mechanism} if kind.mechanism.protects else _EXACT
        return ListsLine(strength="none", figure=f"no epsilon: {why}", reasons=[why], checks=checks, eps=None,
                         delta=None, accounts=None, positions=None, odds=None)  # fmt: skip
    accounts = None if kind.any_coalition else _accounts(tenant, window)
    who = "any number of accounts" if accounts is None else counted(accounts, "account")
    delta = window.delta if kind.mechanism.uses_delta else "0"
    level = tier(eps)
    where = {"moderate": ["epsilon is above 1"], "weak": ["epsilon is above 10"]}.get(level, [])
    factor = math.exp(min(eps, 700.0))
    apart = f", except with probability {delta} (delta)" if delta != "0" else ""
    size = tenant.document_positions
    figure = (
        f"{_if(window)}epsilon {tenant.eps} for {kind.observed.format(who)}: "
        f"{odds_words(factor, f'a document {of_positions(size)} is present')}{apart}"
    )
    strength, reasons = _capped(level, where, window)
    return ListsLine(strength=strength, figure=figure, reasons=reasons, checks=checks, eps=tenant.eps,
                     delta=delta, accounts=accounts, positions=size, odds=odds_after(factor))  # fmt: skip


def _presence(tenant: TenantReport, window: _Window) -> PresenceLine:
    exposure = tenant.exposure
    if not window.figures or exposure is None:
        return PresenceLine(strength="not-established", figure=NOT_ESTABLISHED, reasons=[], checks=[], keep=None,
                            exposure=None)  # fmt: skip
    returned = description(tenant.mechanism).returned(tenant)
    figure = f"{returned}; {exposure_words(exposure, by_position=exposed_by_position(tenant))}"
    return PresenceLine(strength="none", figure=figure, reasons=["retrieval is the purpose of the service"],
                        checks=[*SENTENCES["privacy"].checks], keep=tenant.keep, exposure=exposure)  # fmt: skip


def exposed_by_position(tenant: TenantReport) -> bool:
    """Whether the exposure counts positions: without a document table, and with noise, which withholds no text."""
    return tenant.documents is None or named(tenant.mechanism).noised


def exposure_words(exposure: Exposure, *, by_position: bool) -> str:
    """The number of documents that accounts can read, next to exact retrieval and chance.

    :param by_position: whether the numbers are positions of the index
    """
    of = (
        f"{exposure.limit:,} of {exposure.documents:,} positions ("
        if by_position
        else f"{counted(exposure.limit, 'document')} (the table has room for {exposure.documents:,}; the number of"
        " documents is not published; "
    )
    words = (
        f"{counted(exposure.accounts, 'account')} can read up to {of}exact retrieval: {exposure.exact:,};"
        f" {_LOG}{exposure.realised:,})"
    )
    if exposure.by_chance is not None:
        words += f", of which chance alone returns at most {float(exposure.by_chance):,.0f} on average"
    return words


def _absence(tenant: TenantReport, window: _Window) -> AbsenceLine:
    if not window.figures or tenant.eps is None:
        return AbsenceLine(strength="not-established", figure=NOT_ESTABLISHED, reasons=[], checks=[],
                           exclusion_factor=None, exclusion_factor_all_accounts=None, accounts=None,
                           positions=None, odds=None)  # fmt: skip
    checks = [*SENTENCES["privacy"].checks]
    factor = math.inf if tenant.exclusion_factor is None else float(tenant.exclusion_factor)
    if not math.isfinite(factor):
        why = (
            f"mechanism {tenant.mechanism} bounds no exclusion factor for accounts that read texts"
            if named(tenant.mechanism).protects
            else "answers are exact, so a missing result shows that the document is absent"
        )
        return AbsenceLine(strength="none", figure=f"no exclusion factor: {why}", reasons=[why], checks=checks,
                           exclusion_factor=None, exclusion_factor_all_accounts=None, accounts=None,
                           positions=None, odds=None)  # fmt: skip
    every = tenant.exclusion_factor_all_accounts
    accounts = None if every == tenant.exclusion_factor else _accounts(tenant, window)
    who = "any number of accounts" if accounts is None else counted(accounts, "account")
    more = "" if accounts is None else f" ({every} for all accounts)"
    size = tenant.document_positions
    level = exclusion_tier(factor)
    where = [] if level == "strong" else [f"the factor is {tenant.exclusion_factor}, above 3"]
    strength, reasons = _capped(level, where, window)
    figure = (
        f"{_if(window)}a missing result makes absence more likely, by a factor of at most {tenant.exclusion_factor} for"
        f" {who}{more}: {odds_words(factor, f'a document {of_positions(size)} is absent')}"
    )
    return AbsenceLine(strength=strength, figure=figure, reasons=reasons, checks=checks,
                       exclusion_factor=tenant.exclusion_factor, exclusion_factor_all_accounts=every,
                       accounts=accounts, positions=size, odds=odds_after(factor))  # fmt: skip


def by_adversary(protections: Sequence[TenantProtection]) -> list[tuple[str, list[str]]]:
    """Each adversary's lines as sentences, the weakest protection first; tenants with equal lines share a sentence.

    Tenants that differ only in the documents that their logged questions returned share a sentence with the maximum.
    """
    result = []
    for name in ADVERSARIES:
        whose: dict[str, list[TenantProtection]] = {}
        for protection in protections:
            line = protection.lines[name]
            words = f"{line.strength.replace('-', ' ')}; {line.figure}"
            exposure = protection.presence.exposure
            if name == "presence" and exposure is not None:
                words = words.replace(f"{_LOG}{exposure.realised:,}", _LOG)
            whose.setdefault(words, []).append(protection)
        ordered = sorted(
            whose.items(), key=lambda group: ORDER_OF_ROWS.index(group[1][0].lines[name].strength)
        )
        sentences = []
        for words, own in ordered:
            counts = {p.presence.exposure.realised for p in own if p.presence.exposure is not None}
            most = f"{_LOG}{'at most ' if len(counts) > 1 else ''}{max(counts, default=0):,}"
            shown = words.replace(_LOG, most) if name == "presence" and counts else words
            sentences.append(f"{some([p.tenant for p in own])}: {shown}")
        result.append((name, sentences))
    return result


def warnings_of(protections: Sequence[TenantProtection], say: Say = PLAIN) -> list[str]:
    """Warnings about lists and exposure, for every mechanism; equal warnings of several tenants are one.

    A window without established figures gets none, because its lines have no figure.

    :param say: the language of the warnings
    """
    whose: dict[str, list[str]] = {}
    for protection in protections:
        lists, exposure = protection.lists, protection.presence.exposure
        if lists.strength == "none":
            words = say.text(
                "no epsilon bounds what lists reveal (%(reason)s)",
                reason=_shown_reason(say, lists.reasons[0]),
            )
            whose.setdefault(words, []).append(protection.tenant)
        elif lists.eps is not None and float(lists.eps) > 10:
            words = say.text(
                "epsilon %(eps)s is above 10, and promises little about what lists reveal",
                eps=say.number(lists.eps),
            )
            whose.setdefault(words, []).append(protection.tenant)
        if exposure is not None and exposure.exceeds_exact:
            words = say.plural(
                "chance alone returns %(chance)s documents to %(count)s account on average, more than %(ratio)s times"
                " the %(exact)s that exact retrieval can return",
                "chance alone returns %(chance)s documents to %(count)s accounts on average, more than %(ratio)s times"
                " the %(exact)s that exact retrieval can return",
                exposure.accounts,
                chance=say.number(f"{float(exposure.by_chance or 0):,.0f}"),
                ratio=say.number(str(EXPOSURE_RATIO)),
                exact=exposure.exact,
            )
            whose.setdefault(words, []).append(protection.tenant)
    return [
        say.text("%(tenants)s: %(warning)s", tenants=some_of(say, names), warning=words)
        for words, names in whose.items()
    ]


_EXACT = marked("answers are exact, and no mechanism protects the lists")
_NO_BOUND = marked("mechanism %(mechanism)s bounds no epsilon")


def _shown_reason(say: Say, reason: str) -> str:
    """The reason why lists have no epsilon, as `_lists` writes it, in a language."""
    before, after = _NO_BOUND.split("%(mechanism)s")
    if reason.startswith(before) and reason.endswith(after):
        return say.text(_NO_BOUND, mechanism=reason[len(before) : -len(after)])
    return say.text(_EXACT) if reason == _EXACT else say.quoted(reason)


def weakest(protections: Sequence[TenantProtection]) -> dict[str, Level]:
    """Each adversary's strength for the tenant with the weakest protection from it; empty without tenants."""
    return {
        name: min((p.lines[name].strength for p in protections), key=ORDER_OF_ROWS.index)
        for name in (ADVERSARIES if protections else ())
    }


def pilot_warnings(vouching: Vouching) -> list[str]:
    """The label of a pilot: a quorum needs witnesses that trust.toml calls dependent on the provider."""
    dependent = vouching.dependent
    if not vouching.pilot:
        return []
    verb = "is" if len(dependent) == 1 else "are"
    return [
        f"PILOT: trust.toml shows that {some(dependent)} {verb} not independent of the provider, so this verdict shows"
        " nothing to a party that does not trust the provider"
    ]


def shown_warnings(say: Say, report: Report) -> list[str]:
    """The warnings of a report in a language, without the label of a pilot, which the page's banner explains."""
    english, own = (warnings_of(report.protections, language) for language in (PLAIN, say))
    shown = dict(zip(english, own, strict=True))
    label = pilot_warnings(report.vouching)
    return [shown.get(warning) or say.quoted(warning) for warning in report.warnings if warning not in label]
