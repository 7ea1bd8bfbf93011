"""The first part of the page: the verdict, its basis, and the proved and unproved claims."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from markupsafe import Markup

from rag_audit._internal.words import marked, some_of
from rag_audit.mechanisms.descriptions import ALL, Description
from rag_audit.report.explanations import OWN_SENTENCES, SENTENCES, Cause, cause_of, evidence, own_input
from rag_audit.report.html import overview, words
from rag_audit.report.html.curves import Protection, protections
from rag_audit.report.html.recognised import recognised
from rag_audit.report.language import Language
from rag_audit.report.model import CheckLine, Report, ShortReport
from rag_audit.report.strength import tier
from rag_audit.verify.checks.trust import ABSENT

OUTCOMES = {
    "PASS": (
        "pass",
        marked("Every check passed, and the window meets every requirement of the verifier's trust file."),
    ),
    "PASS-SAMPLED": ("pass", marked("Every check passed, on a random sample of the answers.")),
    "PASS-INTEGRITY": (
        "pass",
        marked(
            "Every check passed. The checks show that answers are correct. They do not show that documents are private."
        ),
    ),
    "PASS-INTEGRITY-SAMPLED": (
        "pass",
        marked(
            "Every check passed, on a random sample of the answers. The checks show that answers are correct. They do"
            " not show that documents are private."
        ),
    ),
    "FAIL": ("fail", SENTENCES[Cause.WINDOW]),
    "UNDECIDED": (
        "undecided",
        marked("The verifier could not judge the files. This result does not support the provider."),
    ),
    "UNPROVEN": (
        "unproven",
        marked(
            "No check found a false statement, and the evidence for this window's figures is incomplete. The window has"
            " no privacy figure."
        ),
    ),
    "UNMET": (
        "unmet",
        marked(
            "The window's statements are true, and the window does not meet every requirement of the reader's trust"
            " file."
        ),
    ),
}
"""By outcome: its colour, and its meaning in a sentence."""
IN_PART = marked(
    "Every check passed. The window meets the requirements of the verifier's trust file, some of them only in part."
)
"""The meaning of a window that passed and meets a requirement only for some tenants, or by the rules of a pilot."""
OPEN = {
    "FAIL": marked("No statement on this page counts as proved, because a check did not pass."),
    "UNDECIDED": marked("No statement on this page counts as proved, because a check could not be decided."),
    "UNPROVEN": marked("No statement on this page counts as proved, because the evidence is incomplete."),
}
"""Why no claim counts as proved, by outcome."""
MAX_SHOWN, MAX_EXPLAINED = 12, 4
"""Maximum checks that are shown one by one, and maximum explained ones among them; equal checks of several tenants
count once."""
MAX_QUOTE = 300
"""Maximum characters of a value that the page quotes about a check that did not pass."""
MAX_MECHANISMS = 4


class Decided(NamedTuple):
    """The checks that did not pass: each shown check, with whether it is explained, and the number of the other
    checks."""

    shown: list[tuple[CheckLine, bool]]
    left: int


def outcome(report: Report) -> tuple[str, str]:
    """The verdict's colour, and its meaning in a sentence."""
    colour, meaning = OUTCOMES[report.outcome]
    own = own_input(report.checks)
    if own in OWN_SENTENCES:
        return colour, OWN_SENTENCES[own]
    if report.vouching.pilot and colour == "pass":
        colour = "unproven"
    if report.outcome == "PASS" and overview.partly(report):
        return colour, IN_PART
    return colour, SENTENCES[cause_of(report.checks)] if report.outcome == "FAIL" else meaning


def decided(report: Report) -> Decided:
    """The checks that did not pass, with the deciding checks first. The first check of each kind is explained."""
    wrong = sorted((c for c in report.checks if c.outcome != "pass"), key=lambda c: not c.decides)
    first = {check.base: check for check in reversed(wrong)}
    explained = [first[base] for base in [*dict.fromkeys(c.base for c in wrong)][:MAX_EXPLAINED]]
    shown = [(check, any(check is e for e in explained)) for check in wrong[:MAX_SHOWN]]
    return Decided(shown, len(wrong) - MAX_SHOWN)


def status(say: Language, outcome: str) -> Markup:
    """The result of a check."""
    return {
        "pass": say.text("pass"),
        "fail": say.text("fail"),
        "undecided": say.text("undecided"),
        "unproven": say.text("unproven"),
        "unmet": say.text("unmet"),
    }[outcome]


def check_lines(say: Language, check: CheckLine, explained: bool) -> list[tuple[Markup, str]]:
    """The lines about a check that did not pass: the name of a line, and its text. What the check read is quoted, and
    shortened, since it can contain words of any length from other parties' files."""
    e = check.explanation if explained else None
    quotes = [
        (say.text("read by the verifier"), recognised(say, check.actual)),
        (say.text("expected"), recognised(say, check.expected)),
        (say.text("place"), say.quoted(check.at)),
    ]
    lines: list[tuple[Markup, str]] = [(name, words.shortened(text, MAX_QUOTE)) for name, text in quotes]
    if e is not None:
        failed, ask = say.known(e.failed), say.known(e.ask)
        if check.expected.startswith(ABSENT):
            name = check.base.partition(".")[2]
            failed = say.text("trust.toml lacks %(name)s, and an absent limit counts as not met.", name=name)
            ask = say.text("set %(names)s in trust.toml, and repeat the verification", names=name)
        lines = [
            (say.text("passes if"), say.known(e.means)),
            (say.text("consequence"), failed),
            *lines,
            (say.text("honest causes"), say.joined(map(say.known, e.honest_causes), "; ")),
            (say.text("next step"), ask),
            (say.text("more"), say.shown(e.section)),
        ]
    return [(name, text) for name, text in lines if text]


def unused(say: Language, report: ShortReport) -> list[tuple[Markup, str]]:
    """The input that a run could not use."""
    result = report.malformed
    if result is None:
        return []
    lines = [
        (say.text("object"), result.object),
        (say.text("expected"), result.expected),
        (say.text("read by the verifier"), result.actual),
        (say.text("next step"), result.next_step),
    ]
    return [(name, text) for name, text in lines if text is not None]


def not_passed(report: ShortReport) -> list[tuple[str, str]]:
    """The checks of a short report that did not pass."""
    return [(c.id, f"{c.outcome}. {evidence(c)}") for c in report.checks if c.outcome != "pass"]


def files(report: ShortReport) -> list[tuple[str, str]]:
    """The files of a short report."""
    return [(f.role, f"{f.name} {f.sha256 or '(no file)'}") for f in report.filing.inputs]


def figures(say: Language, report: Report) -> Iterator[tuple[Markup, Markup, Markup]]:
    """The verdict's figures: name, value, meaning. Different mechanisms have separate figures."""
    f = report.figures
    groups = protections(report)
    shown = groups[:MAX_MECHANISMS]
    if f.eps is None:
        yield (
            say.text("Epsilon (ε)"),
            say.text("not computed"),
            say.text("because an earlier check could not be decided."),
        )
    else:
        for protection in shown:
            yield _epsilon(say, report, protection, alone=len(groups) == 1)
    if f.eps is not None and any(p.kind.mechanism.uses_delta and p.first.eps != "inf" for p in shown):
        yield (
            say.text("Delta (δ)"),
            say.text("at most %(chance)s", chance=words.one_in(float(f.delta), say)),
            say.text("is the additive slack in probability that the bound with epsilon leaves."),
        )
    if f.exclusion_factor is not None:
        yield (
            _of_tenants(say, report),
            say.text("factor %(factor)s", factor=say.number(f.exclusion_factor)),
            say.joined([
                say.plural(
                    "is the maximum factor by which the absence of a document becomes more likely for %(count)s account"
                    " that never received it; for all accounts of a tenant the factor is %(every)s.",
                    "is the maximum factor by which the absence of a document becomes more likely for %(count)s"
                    " accounts that never received it; for all accounts of a tenant the factor is %(every)s.",
                    f.k_max,
                    every=say.number(f.exclusion_factor_all_accounts or ""),
                ),
                _size(say, f.positions_per_document or 1),
                say.text("The presence of a document that an account asks for has no protection."),
            ]),
        )  # fmt: skip
    if f.tpr_at_fpr_1pct is not None:
        yield (
            say.text("Recognised by the best test"),
            say.text("at most %(share)s", share=words.in_hundred(float(f.tpr_at_fpr_1pct), say)),
            say.plural(
                "present documents of one position, if the test may wrongly report 1 in 100 absent documents.",
                "present documents of at most %(count)s positions, if the test may wrongly report 1 in 100 absent"
                " documents.",
                f.positions_per_document or 1,
            ),
        )


def _size(say: Language, positions: int) -> Markup:
    """The documents that the factor covers. A tenant that samples positions has the number 1."""
    if positions > 1:
        return say.text(
            "Both factors are for a document of at most %(positions)s positions.", positions=positions
        )
    return say.text(
        "Both factors are for a document in one position of the index. If the tenant samples positions, the limit for a"
        " document in s positions is the s-th power of the factor, and with noise it is higher."
    )


def _of_tenants(say: Language, report: Report) -> Markup:
    """The name of the window's factor, with its tenants if other tenants have a smaller factor or none."""
    whose = [t.tenant for t in report.tenants if t.exclusion_factor == report.figures.exclusion_factor]
    if len(whose) == len(report.tenants):
        return say.text("A document that was not received")
    tenants = some_of(say, [words.clip(t, 60) for t in whose], 3)
    return say.text("A document that was not received (%(tenants)s)", tenants=tenants)


def who(say: Language, report: Report, kind: type[Description]) -> Markup:
    """The accounts that an epsilon covers."""
    if kind.any_coalition:
        return say.text("any number of accounts")
    f = report.figures
    return say.text(
        "%(accounts)s with %(queries)s each",
        accounts=say.plural("%(count)s account", "%(count)s accounts", f.k_max),
        queries=say.plural("%(count)s query", "%(count)s queries", f.n),
    )


def _epsilon(
    say: Language, report: Report, protection: Protection, *, alone: bool
) -> tuple[Markup, Markup, Markup]:
    kind, eps = protection.kind, protection.first.eps or "inf"
    covered = who(say, report, kind)
    name = say.text("Epsilon (ε) for %(who)s", who=covered)
    if not alone:
        name = say.text(
            "%(tenants)s, %(mechanism)s: epsilon (ε) for %(who)s",
            tenants=some_of(say, [words.clip(t, 60) for t in protection.tenants], 3),
            mechanism=kind.mechanism.name,
            who=covered,
        )
    if eps == "inf":
        return (
            name,
            say.text("none"),
            say.text(
                "An account that receives a document knows that the document is present, and %(why)s",
                why=say.text(kind.unbounded),
            ),
        )
    value = float(eps)
    change = {"factor": words.factor(value, say), "belief": words.belief(value, say)}
    return (
        name,
        say.shown(say.number(eps)),
        say.joined([
            _protects(say, report, protection, value),
            say.text(
                "Until a document is listed for the first time, everything that these accounts see changes the odds"
                " that it is in the index by a factor of at most %(factor)s: %(belief)s.",
                **change,
            )
            if kind.mechanism.pools
            else say.text(
                "The lists of passages that these accounts receive change the odds that one particular document is in"
                " the index by a factor of at most %(factor)s: %(belief)s.",
                **change,
            ),
        ]),
    )  # fmt: skip


def _protects(say: Language, report: Report, protection: Protection, value: float) -> Markup:
    """The strength of an epsilon, with its condition if the table of protection gives a lower one."""
    for group in overview.groups(report):
        lists = group.protection.lists
        if group.first.tenant == protection.first.tenant and lists.strength not in (
            "not-established",
            tier(value),
        ):
            return say.text(
                "This would be %(strength)s %(condition)s.",
                strength=words.strength(value, say),
                condition=overview.unless(say, group),
            )
    return say.text("This is %(strength)s.", strength=words.strength(value, say))


def not_proved(say: Language, report: Report) -> Iterator[Markup]:
    """Claims that a reader might assume but that are not proved, in plain words; `outside` has the complete list."""
    f = report.figures
    names = {
        kind: [words.clip(t.tenant, 128) for t in report.tenants if t.mechanism == kind.mechanism.name]
        for kind in ALL
    }
    bare = [name for kind, own in names.items() if not kind.mechanism.protects for name in own]
    revealed = [name for kind, own in names.items() if kind.texts_reveal for name in own]
    if report.vouching.pilot:
        yield say.text(
            "Anything that the provider can forge alone: that it did not choose the randomness, rewrite the ledger,"
            " date its commitments back, leave out a window, or invent accounts."
        )
    yield say.text(
        "The secrecy of a returned passage: its account reads the passage. The figures are about the choice of"
        " passages."
    )
    if bare:
        yield say.text(
            "Any privacy of %(tenants)s: answers are exact, and the window only shows that they are correct.",
            tenants=some_of(say, bare),
        )
    if revealed:
        yield say.text(
            "The privacy of returned documents of %(tenants)s: their accounts know that these documents are present.",
            tenants=some_of(say, revealed),
        )
    yield say.text("The text that a language model writes from the passages.")
    if not all(kind.any_coalition for kind, own in names.items() if own):
        yield say.plural(
            "A limit for groups of more than %(count)s account that cooperate, except for the figure for all accounts.",
            "A limit for groups of more than %(count)s accounts that cooperate, except for the figure for all"
            " accounts.",
            f.k_max,
        )
    if f.mode == "sampled":
        yield say.text(
            "Each single answer: the draw covers %(drawn)s of %(records)s answers, and it can miss a few false ones.",
            drawn=f.sampled or 0,
            records=report.counts.records,
        )
    if f.setup == "unsafe":
        yield say.text(
            "That no proof is forged: one party made the keys of the proofs and could forge them (a one-party setup)."
        )
    if f.document_embedding != "proved":
        yield say.text(
            "That the index represents the documents: the provider's word is the only evidence for the vectors of"
            " texts."
        )
    if f.query_embedding != "proved":
        yield say.text("That the vectors of questions do not depend on the index, as epsilon assumes.")
    if f.coalition != "checked":
        yield say.text(
            "The number of accounts that repeated a question almost word for word: the provider's word is its only"
            " evidence."
        )
    else:
        yield say.text(
            "The number of cooperating accounts that asked in other words: the estimate only counts repeated questions."
        )
    yield say.text("Answers that the provider gave outside of this ledger, and the quality of its answers.")
