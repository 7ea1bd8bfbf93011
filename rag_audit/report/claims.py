"""The report's claims about a window: each sentence with the checks that it depends on.

One table has every sentence by an id. A report contains a sentence only if each check of its row passed, and every
format of a report renders the sentences of that one list. A check that did not run counts as passed only if the window
contains no part that the check is about (`needed.needed_checks`). The same table decides which facts tables and
pictures may show: an instant of the window, a witness's act, and whether a requirement of trust.toml counts as met.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from rag_audit._internal.words import counted, some
from rag_audit.mechanisms import named
from rag_audit.mechanisms.descriptions import description
from rag_audit.report.model import Chain, ClaimLine, Counts, Figures, TenantReport, Vouching
from rag_audit.verify.case import Check, Status
from rag_audit.verify.standing import RULES, Kind, base_id

_OPENED = ("header.signature", "header.quorum", "header.root", "header.published", "header.complete",
           "header.indices", "header.policy")  # fmt: skip
_END = ("ledger.checkpoint", "ledger.size", "ledger.root")
_LEDGER = (*_END, "ledger.quorum", "ledger.consistency", "ledger.sequence", "ledger.trailer", "ledger.timestamps",
           "ledger.clock", "ledger.accounts", "ledger.requests", "ledger.slots", "ledger.limit")  # fmt: skip
_RANDOMNESS = ("header.signature", "header.quorum", "header.root", "header.complete", "header.beacon",
               "ledger.root", "ledger.enrolment", "ledger.beacons", "ledger.sample", "header.tables")  # fmt: skip
_PROOFS = ("proof.present", "proof.records", "proof.pinned", "proof.system", "proof.circuit", "proof.key",
           "proof.valid", "proof.sample", "proof.chain", "ledger.listed_rows", "trust.setup", "trust.records",
           "trust.noise_table")  # fmt: skip
_ANSWERS = tuple(dict.fromkeys((*_OPENED, *_LEDGER, *_RANDOMNESS, *_PROOFS)))
_DRAW = ("proof.challenge", "trust.challenge")
_EMBED = ("proof.embed.circuit", "proof.embed.key", "proof.embed.valid")
_COALITION = ("coalition.parameters", "coalition.count", "coalition.circuit", "coalition.key", "coalition.proof",
              "coalition.cap")  # fmt: skip
_RECEIPTS = ("receipt.accepted", "receipt.consistent", *_END)
_FIGURES = tuple(check for check, rule in RULES.items() if rule.kind is Kind.EVIDENCE)
"""Every check that the figures of a window rest on."""
_POLICY = ("header.signature", "header.root", "header.complete", "header.policy")


@dataclass(frozen=True)
class Claim:
    """The checks that a sentence depends on.

    :param checks: the checks that must have passed, by their ids without a tenant
    :param ran: the subset of checks that must have run, whatever the window contains
    """

    checks: tuple[str, ...]
    ran: tuple[str, ...] = ()


SENTENCES: Mapping[str, Claim] = {
    "privacy": Claim(_FIGURES),
    "answers": Claim(_ANSWERS),
    "answers-drawn": Claim((*_ANSWERS, *_DRAW), ran=_DRAW),
    "keys": Claim(_PROOFS),
    "randomness": Claim(_RANDOMNESS),
    "provider": Claim(_END),
    "ledger": Claim(
        ("header.signature", "header.quorum", "header.root", "ledger.quorum", "ledger.consistency", *_END)
    ),
    "receipts": Claim(_RECEIPTS),
    "receipts-independent": Claim((*_RECEIPTS, "receipt.independent")),
    "coalition": Claim((*_COALITION, *_END, "ledger.accounts", "trust.setup"), ran=_COALITION),
    "questions": Claim((*_EMBED, *_ANSWERS, "trust.embedder", "trust.manifest"), ran=_EMBED),
    "questions-again": Claim(
        ("proof.query_embedding", "receipt.accepted", "receipt.disclosed", "trust.embedder", *_END),
        ran=("proof.query_embedding",),
    ),
    "chain": Claim(("header.chain", "header.abandoned", "header.empty", *_POLICY)),
    "next": Claim(
        (
            "header.signature",
            "header.root",
            "header.chain",
            "header.abandoned",
            "header.empty",
            "ledger.trailer",
            *_END,
        )
    ),
    "cumulative": Claim(_FIGURES),
}
"""The sentences of `report.claims`, in their order."""

INSTANTS: Mapping[str, Claim] = {
    "header-quorum": Claim(("header.signature", "header.quorum", "header.root")),
    "beacon": Claim(("header.beacon",)),
    "opens": Claim(("header.signature", "header.root", "header.complete")),
    "first-query": Claim(("ledger.timestamps", "ledger.clock", *_END)),
    "last-query": Claim(("ledger.timestamps", "ledger.clock", *_END)),
    "trailer": Claim(("ledger.trailer", "ledger.clock", *_END)),
    "closes": Claim(("header.signature", "header.root", "header.complete")),
    "final-quorum": Claim(("ledger.quorum", *_END)),
    "delete-after": Claim(_POLICY),
}
"""The sentence for an event, by its kind. The other kinds (`challenge`, `verified`) describe the verifier's own
inputs."""

WITNESSED: Mapping[str, Claim] = {
    "header": Claim(("header.signature", "header.root")),
    "end": Claim(_END),
    "beacon": Claim(("header.beacon",)),
}
"""The claims that a witness's signature supports."""

REQUIREMENTS: Mapping[str, Claim] = {
    "mechanisms": Claim(("trust.mechanisms", *_POLICY)),
    "max_epsilon": Claim(("trust.max_epsilon", *_FIGURES)),
    "max_exclusion_factor": Claim(("trust.max_exclusion_factor", *_FIGURES)),
    "max_exposure": Claim(("trust.max_exposure", "bound.computed", *_POLICY)),
    "max_delta": Claim(("trust.max_delta", *_POLICY)),
    "min_k_max": Claim(("trust.min_k_max", *_POLICY)),
    "max_theta": Claim(("trust.max_theta", *_POLICY)),
    "min_tau": Claim(("trust.min_tau", *_POLICY)),
    "max_K_share": Claim(("trust.max_K_share", *_POLICY)),
    "max_score_hi": Claim(("trust.max_score_hi", *_POLICY)),
    "min_score_width": Claim(("trust.min_score_width", *_POLICY)),
    "min_keep": Claim(("trust.min_keep", *_POLICY)),
    "max_abandoned": Claim(("trust.max_abandoned", "header.chain", "header.abandoned", *_POLICY)),
    "max_empty": Claim(("trust.max_empty", "header.chain", "header.empty", *_POLICY)),
    "min_receipts": Claim(("receipt.independent", *_RECEIPTS)),
    "query_embedding": Claim(
        (
            "trust.query_embedding",
            *_EMBED,
            "proof.query_embedding",
            "receipt.disclosed",
            "trust.embedder",
            *_ANSWERS,
        )
    ),
    "document_embedding": Claim(("trust.document_embedding", "header.complete")),
    "coalition": Claim(("trust.coalition", *_COALITION, *_END)),
    "challenge": Claim(("trust.challenge", "proof.challenge", *_END)),
    "setup": Claim(("trust.setup", "proof.key", "proof.embed.key", "coalition.key")),
    "quorum": Claim(("header.signature", "header.quorum", "header.root", "ledger.quorum", *_END)),
}
"""The checks that must pass for a requirement of trust.toml to count as met, in addition to the requirement's own
check."""


class Passed:
    """The set of passed checks.

    :param checks: the checks that ran
    :param needed: the ids of the checks that had to run on the window
    """

    def __init__(self, checks: Sequence[Check], needed: frozenset[str]) -> None:
        ran = {check.id for check in checks}
        self._ran = {base_id(check)[0] for check in ran}
        self._open = {base_id(c.id)[0] for c in checks if c.status is not Status.PASS}
        self._open |= {base_id(check)[0] for check in needed - ran}

    def holds(self, claim: Claim) -> bool:
        """Whether every check of a claim passed."""
        return not self._open.intersection(claim.checks) and self._ran.issuperset(claim.ran)


@dataclass(frozen=True)
class Window:
    """The parts of a report that its sentences are made from."""

    figures: Figures
    counts: Counts
    vouching: Vouching
    tenants: list[TenantReport]
    chain: Chain


def claims_of(window: Window, passed: Passed) -> list[ClaimLine]:
    """The sentences with only passed checks, in the table's order, each with its checks."""
    lines = []
    for name, claim in SENTENCES.items():
        words = _WORDS[name](window) if passed.holds(claim) else None
        if words is not None:
            lines.append(ClaimLine(id=name, words=words, checks=list(claim.checks)))
    return lines


def _privacy(w: Window) -> str | None:
    f = w.figures
    if f.standing == "not-established" or f.eps is None:
        return None
    who = (
        "any number of colluding accounts"
        if all(description(t.mechanism).any_coalition for t in w.tenants)
        else f"up to {counted(f.k_max, 'colluding account')} of {counted(f.n, 'query', 'queries')} each"
    )
    if f.eps == "inf":
        bare = [t.tenant for t in w.tenants if t.eps in (None, "inf")]
        own = [f"{t.eps} for {t.tenant}" for t in w.tenants if t.eps not in (None, "inf")]
        conforming = ", for the answers that conform" if f.standing == "if-conforming" else ""
        bounded = (
            f"Epsilon is {some(dict.fromkeys(own))}, for {who}, at delta {f.delta}{conforming}. "
            if own
            else ""
        )
        return f"{bounded}No epsilon is promised for {some(dict.fromkeys(bare))}."
    holds = f"The window's {f.name} is {f.eps} for {who}, at delta {f.delta}"
    if f.standing == "if-conforming" and f.sampled != w.counts.records:
        return f"{holds}, for the answers that conform."
    return f"{holds}."


def _made(w: Window) -> str:
    randomness = any(named(t.mechanism).protects for t in w.tenants)
    protected = "with the randomness that the policy promises, " if randomness else ""
    return (
        f"follows the published rule, {protected}from the index (the documents in searchable form) that the provider"
        " committed to before the window opened"
    )


def _answers(w: Window) -> str | None:
    if w.figures.mode != "full" or not w.counts.records:
        return None
    return f"Each of the {counted(w.counts.records, 'answer')} in the window's public record, the ledger, {_made(w)}."


def _drawn(w: Window) -> str | None:
    f = w.figures
    if f.mode != "sampled" or not f.sampled or not w.counts.records:
        return None
    whose = {"own": "by the reader", "published": "by a draw that the provider published"}.get(
        f.challenge or ""
    )
    share = "" if f.beta is None or f.eta is None or f.sampled == w.counts.records else (
        f" If more than a share of {f.beta} of all answers were false, the draw would miss all false answers with a"
        f" probability of at most {f.eta}."
    )  # fmt: skip
    drawn = "" if whose is None else f", drawn {whose}"
    return f"{f.sampled:,} of {counted(w.counts.records, 'answer')}{drawn}: each {_made(w)}.{share}"


def _keys(w: Window) -> str | None:
    if w.figures.setup != "unsafe":
        return None
    return "Each statement that depends on proofs is true only if the one party that made their keys forged no proof."


def _randomness(w: Window) -> str | None:
    beacon = w.vouching.beacon
    if not any(named(t.mechanism).protects for t in w.tenants):
        return None
    source, unless = "a public beacon (drand)", "the beacon's"
    if beacon.source == "witnesses":
        if not beacon.witnesses:
            return None
        source, unless = f"the witnesses {some(dict.fromkeys(beacon.witnesses))}", "all of these witnesses'"
    return (
        f"The provider could not choose the randomness: it depends on values of {source} that became known after the"
        f" provider's commitment, so a choice would have required {unless} help."
    )


def _provider(w: Window) -> str | None:
    key = w.vouching.provider
    if not key.name or key.key_id is None:
        return None
    return f"The provider {key.name} signed the ledger with its key {key.key_id}."


def _ledger(w: Window) -> str | None:
    v = w.vouching
    start, end = ([k.name for k in v.witnesses if getattr(k, part)] for part in ("header", "end"))
    if not start or not end:
        return None
    both = (
        f"{some(dict.fromkeys(start))} cosigned its beginning and its end"
        if start == end
        else f"{some(dict.fromkeys(start))} cosigned its beginning, and {some(dict.fromkeys(end))} its end"
    )
    enough = f"{v.quorum} of {counted(len(v.witnesses), 'witness', 'witnesses')}"
    return f"The ledger was not rewritten: {both}, and the reader requires {enough}."


def _receipts(w: Window) -> str | None:
    count = w.counts.receipts_agreeing
    if not count:
        return None
    agree = "agrees" if count == 1 else "agree"
    return f"{counted(count, 'receipt')} that accounts received with their answers {agree} with the ledger."


def _independent(w: Window) -> str | None:
    parts = []
    if count := w.counts.receipts_independent:
        parts.append(
            "1 receipt is from an account that the trust file calls independent of the provider."
            if count == 1
            else f"{count:,} receipts are from accounts that the trust file calls independent of the provider."
        )
    if count := w.counts.receipts_dependent:
        parts.append(
            "1 receipt is from an account that the trust file calls not independent of the provider."
            if count == 1
            else f"{count:,} receipts are from accounts that the trust file calls not independent of the provider."
        )
    return " ".join(parts) or None


def _coalition(w: Window) -> str | None:
    f = w.figures
    if f.coalition != "checked" or f.largest_cluster is None:
        return None
    return (
        f"By the published measure of similarity, at most {counted(f.largest_cluster, 'account')} repeated a question"
        f" almost word for word; the policy covers {f.k_max:,} cooperating accounts."
    )


def _questions(w: Window) -> str | None:
    if w.figures.query_embedding != "proved":
        return None
    return "The published method computed the vector of each question, and the vector does not depend on the index."


def _questions_again(w: Window) -> str | None:
    if not w.figures.query_embedding.startswith("re-executed"):
        return None
    share = w.figures.query_embedding.partition("(")[2].rstrip(")").replace("/", " of ")
    return f"This verifier recomputed the vectors of disclosed questions, for {share} records."


def _chain(w: Window) -> str | None:
    before = w.chain.before
    if before is None:
        return "The window header names no previous window: this window is the origin's first."
    lost = counted(before.abandoned, "window")
    came = f"; {lost} abandoned since the last complete one" if before.abandoned else ""
    if before.empty:
        came += f"; {counted(before.empty, 'window')} without a query since the last complete one"
    named = f"{before.header[:16]}.."
    words = w.chain.words.removeprefix(f"header {named}, ")
    return f"The window header names the previous window, {named} ({words}){came}."


def _next(w: Window) -> str | None:
    after = w.chain.after
    if after is None:
        return None
    return f"The next window has to name this header, {after.header[:16]}.., and this final root, {after.root[:16]}.."


def _cumulative(w: Window) -> str | None:
    c = w.figures.cumulative
    if c is None:
        return None
    return f"The eps of {c.windows} windows over one index is {c.eps} in total, at delta {c.delta}; {c.condition}."


_WORDS: Mapping[str, Callable[[Window], str | None]] = {
    "privacy": _privacy,
    "answers": _answers,
    "answers-drawn": _drawn,
    "keys": _keys,
    "randomness": _randomness,
    "provider": _provider,
    "ledger": _ledger,
    "receipts": _receipts,
    "receipts-independent": _independent,
    "coalition": _coalition,
    "questions": _questions,
    "questions-again": _questions_again,
    "chain": _chain,
    "next": _next,
    "cumulative": _cumulative,
}
"""Each sentence, or None if the window lacks the subject of the sentence."""
