"""The first part of the page: the verdict, its basis, and the proved and unproved claims."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from markupsafe import Markup

from rag_audit._internal.words import counted, marked, some
from rag_audit.mechanisms.descriptions import ALL, Description
from rag_audit.report.explanations import SENTENCES, Cause, cause_of, evidence
from rag_audit.report.html import words
from rag_audit.report.html.curves import protections
from rag_audit.report.language import Language
from rag_audit.report.model import CheckLine, Report, ShortReport

OUTCOMES = {
    "PASS": (
        "pass",
        marked("Every check passed, and the window meets every requirement of the reader's trust file."),
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
OPEN = {
    "FAIL": "a check found a false statement.",
    "UNDECIDED": "a check could not be decided.",
    "UNPROVEN": "the evidence is incomplete.",
}
"""The reason why no claim counts as proved, by outcome."""
MAX_SHOWN, MAX_EXPLAINED = 12, 4
"""Maximum checks that are shown one by one, and maximum explained ones among them; equal checks of several tenants
count once."""
MAX_MECHANISMS = 4


class Decided(NamedTuple):
    """The checks that did not pass: each shown check, with whether it is explained, and the number of the other
    checks."""

    shown: list[tuple[CheckLine, bool]]
    left: int


def outcome(report: Report) -> tuple[str, str]:
    """The verdict's colour, and its meaning in a sentence."""
    colour, meaning = OUTCOMES[report.outcome]
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
    """The lines about a check that did not pass: the name of a line, and the text of the report."""
    e = check.explanation if explained else None
    lines: list[tuple[Markup, str | None]] = [
        (say.text("read by the verifier"), check.actual),
        (say.text("expected"), check.expected),
        (say.text("place"), check.at),
    ]
    if e is not None:
        lines = [
            (say.text("passes if"), e.means),
            (say.text("consequence"), e.failed),
            *lines,
            (say.text("honest causes"), "; or ".join(e.honest_causes)),
            (say.text("next step"), e.ask),
            (say.text("more"), e.section),
        ]
    return [(name, text) for name, text in lines if text]


def unused(report: ShortReport) -> list[tuple[str, str]]:
    """The input that a run could not use."""
    result = report.malformed
    if result is None:
        return []
    lines = [
        ("Object", result.object),
        ("Expected", result.expected),
        ("Read by the verifier", result.actual),
        ("Next step", result.next_step),
    ]
    return [(name, text) for name, text in lines if text is not None]


def not_passed(report: ShortReport) -> list[tuple[str, str]]:
    """The checks of a short report that did not pass."""
    return [(c.id, f"{c.outcome}. {evidence(c)}") for c in report.checks if c.outcome != "pass"]


def files(report: ShortReport) -> list[tuple[str, str]]:
    """The files of a short report."""
    return [(f.role, f"{f.name} {f.sha256 or '(no file)'}") for f in report.filing.inputs]


def figures(report: Report) -> Iterator[tuple[str, str, str]]:
    """The verdict's figures: name, value, meaning. Different mechanisms have separate figures."""
    f = report.figures
    groups = protections(report)
    shown = groups[:MAX_MECHANISMS]
    if f.eps is None:
        yield "Epsilon (ε)", "not computed", "because an earlier check could not be decided."
    elif len(groups) == 1 and f.eps != "inf":
        yield _epsilon(report, f"Epsilon (ε) for {_pooled(report)}", f.eps, groups[0].kind)
    else:
        for protection in shown:
            eps = protection.first.eps or "inf"
            whose = f"{some([words.clip(t, 60) for t in protection.tenants], 3)}, {protection.kind.mechanism.name}"
            yield _epsilon(report, f"{whose}: epsilon (ε) for {_pooled(report)}", eps, protection.kind)
    if f.eps is not None and any(p.kind.mechanism.uses_delta and p.first.eps != "inf" for p in shown):
        chance = f"at most {words.one_in(float(f.delta))}"
        yield "Delta (δ)", chance, "is the additive slack in probability that the bound with epsilon leaves."
    if f.exclusion_factor is not None:
        yield (
            f"A document that was not received{_of_tenants(report)}",
            f"factor {f.exclusion_factor}",
            f"is the maximum factor by which the absence of a document becomes more likely for"
            f" {counted(f.k_max, 'account')} that never received it; for all accounts of a tenant the factor is"
            f" {f.exclusion_factor_all_accounts}. {_size(f.positions_per_document or 1)} The presence of a document"
            " that an account asks for has no protection.",
        )
    if f.tpr_at_fpr_1pct is not None:
        yield (
            "Recognised by the best test",
            f"at most {words.in_hundred(float(f.tpr_at_fpr_1pct))}",
            "present documents of one position, if the test may wrongly report 1 in 100 absent documents.",
        )


def _size(positions: int) -> str:
    """The documents that the factor covers. A tenant that samples positions has the number 1."""
    if positions > 1:
        return f"Both figures are for a document of at most {positions} positions."
    return (
        "Both figures are for a document of 1 position: if the tenant samples positions, a document of s positions has"
        " at least the s-th power of the factor."
    )


def _of_tenants(report: Report) -> str:
    """The tenants that determine the window's factor, if other tenants have a smaller factor or none."""
    whose = [t.tenant for t in report.tenants if t.exclusion_factor == report.figures.exclusion_factor]
    return "" if len(whose) == len(report.tenants) else f" ({some([words.clip(t, 60) for t in whose], 3)})"


def _pooled(report: Report) -> str:
    f = report.figures
    return f"{counted(f.k_max, 'account')} with {counted(f.n, 'query', 'queries')} each"


def _epsilon(report: Report, name: str, eps: str, kind: type[Description]) -> tuple[str, str, str]:
    if eps == "inf":
        return (
            name,
            "none",
            f"An account that receives a document knows that the document is present, and {kind.unbounded}",
        )
    value = float(eps)
    return (
        name,
        eps,
        f"This is {words.strength(value)}. The lists of passages that these accounts receive change the odds that one"
        f" particular document is in the index by a factor of at most {words.factor(value)}: {words.belief(value)}.",
    )


def not_proved(report: Report) -> Iterator[str]:
    """Claims that a reader might assume but that are not proved, in plain words; `outside` has the complete list."""
    f = report.figures
    names = {
        kind: [words.clip(t.tenant, 128) for t in report.tenants if t.mechanism == kind.mechanism.name]
        for kind in ALL
    }
    bare = [name for kind, own in names.items() if not kind.mechanism.protects for name in own]
    revealed = [name for kind, own in names.items() if kind.texts_reveal for name in own]
    yield (
        "The secrecy of a returned passage: its account reads the passage. The figures are about the choice of"
        " passages."
    )
    if bare:
        yield f"Any privacy of {some(bare)}: answers are exact, and the window only shows that they are correct."
    if revealed:
        yield (
            f"The privacy of returned documents of {some(revealed)}: their accounts know that these documents are"
            " present."
        )
    yield "The text that a language model writes from the passages."
    coalition = counted(f.k_max, "account")
    yield f"A limit for groups of more than {coalition} that cooperate, except for the figure for all accounts."
    if f.mode == "sampled":
        drawn = f"{f.sampled or 0:,} of {report.counts.records:,}"
        yield f"Each single answer: the draw covers {drawn} answers, and it can miss a few false ones."
    if f.setup == "unsafe":
        yield "That no proof is forged: one party made the keys of the proofs and could forge them (a one-party setup)."
    if f.document_embedding != "proved":
        yield (
            "That the index represents the documents: the provider's word is the only evidence for the vectors of"
            " texts."
        )
    if f.query_embedding != "proved":
        yield "That the vectors of questions do not depend on the index, as epsilon assumes."
    if f.coalition != "checked":
        yield (
            "The number of accounts that repeated a question almost word for word: the provider's word is its only"
            " evidence."
        )
    else:
        yield (
            "The number of cooperating accounts that asked in other words: the estimate only counts repeated"
            " questions."
        )
    yield "Answers that the provider gave outside of this ledger, and the quality of its answers."
