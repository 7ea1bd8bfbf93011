"""The report's claims about a window: each sentence with the checks that it depends on.

One table has every sentence by an id. A report contains a sentence only if each check of its row passed, and every
format of a report renders the sentences of that one list. A check that did not run counts as passed only if the window
contains no part that the check is about (`needed.needed_checks`). The same table decides which facts tables and
pictures may show: an instant of the window, a witness's act, and whether a requirement of trust.toml counts as met.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from rag_audit._internal.words import PLAIN, Say, marked, some_of
from rag_audit.mechanisms import named
from rag_audit.mechanisms.descriptions import description
from rag_audit.report.model import Chain, ClaimLine, Counts, Figures, Report, TenantReport, Vouching
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
    "questions-drawn": Claim(
        (*_EMBED, *_ANSWERS, *_DRAW, "trust.embedder", "trust.manifest"), ran=(*_EMBED, *_DRAW)
    ),
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
    "max_fresh_share": Claim(("trust.max_fresh_share", *_POLICY)),
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
        words = _WORDS[name](PLAIN, window) if passed.holds(claim) else None
        if words is not None:
            lines.append(ClaimLine(id=name, words=words, checks=list(claim.checks)))
    return lines


_LEVELS = {
    "keys": ("setup", "unsafe"),
    "coalition": ("coalition", "checked"),
    "questions": ("query_embedding", "proved"),
    "questions-drawn": ("query_embedding", "proved"),
}
"""The level of a figure that a sentence implies. A report of a window that is not established has the sentence, because
its own checks passed, and no levels."""


def sentences(say: Say, report: Report) -> list[str]:
    """The sentences of a report's claims in a language."""
    levels = dict(_LEVELS[line.id] for line in report.claims if line.id in _LEVELS)
    figures = report.figures.model_copy(update=levels)
    window = Window(figures, report.counts, report.vouching, report.tenants, report.chain)
    words = {line.id: _WORDS[line.id](say, window) for line in report.claims if line.id in _WORDS}
    return [words.get(line.id) or say.quoted(line.words) for line in report.claims]


_PILOT_FIGURES = marked(
    "In this pilot, the provider could have chosen the randomness, so the figure is valid only if the provider followed"
    " its own rules."
)


_CHOSEN_FIGURES = marked(
    "The provider's own witnesses alone made the beacon, so the provider could have chosen the randomness, and the"
    " figure is valid only if the provider did not choose it."
)


def chosen(vouching: Vouching, tenants: Sequence[TenantReport]) -> bool:
    """Whether figures depend on randomness that the provider could have chosen, although no pilot says so."""
    return vouching.chosen and not vouching.pilot and any(named(t.mechanism).protects for t in tenants)


def _privacy(say: Say, w: Window) -> str | None:
    f = w.figures
    if f.standing == "not-established" or f.eps is None:
        return None
    who = (
        say.text("any number of colluding accounts")
        if all(description(t.mechanism).any_coalition for t in w.tenants)
        else say.text(
            "up to %(accounts)s of %(queries)s each",
            accounts=say.plural("%(count)s colluding account", "%(count)s colluding accounts", f.k_max),
            queries=say.plural("%(count)s query", "%(count)s queries", f.n),
        )
    )
    condition = say.text(_PILOT_FIGURES) if w.vouching.pilot else ""
    if chosen(w.vouching, w.tenants):
        condition = say.text(_CHOSEN_FIGURES)
    conforming = f.standing == "if-conforming" and f.sampled != w.counts.records
    limits = {"who": who, "delta": say.number(f.delta)}
    if f.eps == "inf":
        bare = [t.tenant for t in w.tenants if t.eps in (None, "inf")]
        own = [(t.eps, t.tenant) for t in w.tenants if t.eps not in (None, "inf")]
        if not own:  # an absent promise is no proved statement
            return None
        none = say.text("No epsilon is promised for %(tenants)s.", tenants=some_of(say, dict.fromkeys(bare)))
        values = some_of(
            say,
            dict.fromkeys(
                say.text("%(eps)s for %(tenant)s", eps=say.number(str(eps)), tenant=tenant)
                for eps, tenant in own
            ),
        )
        bounded = (
            say.text(
                "Epsilon is %(values)s, for %(who)s, at delta %(delta)s, for the answers that conform.",
                values=values,
                **limits,
            )
            if f.standing == "if-conforming"
            else say.text("Epsilon is %(values)s, for %(who)s, at delta %(delta)s.", values=values, **limits)
        )
        return say.joined(filter(None, [bounded, condition, none]))
    figure = {"name": f.name, "eps": say.number(f.eps), **limits}
    words = (
        say.text(
            "The window's %(name)s is %(eps)s for %(who)s, at delta %(delta)s, for the answers that conform.",
            **figure,
        )
        if conforming
        else say.text("The window's %(name)s is %(eps)s for %(who)s, at delta %(delta)s.", **figure)
    )
    return say.joined(filter(None, [words, condition]))


def _made(say: Say, w: Window) -> str:
    if w.vouching.pilot:
        return say.text(
            "follows the published rule, from the index (the documents in searchable form) in the provider's"
            " commitment; no independent party confirms when the provider made this commitment"
        )
    if any(named(t.mechanism).protects for t in w.tenants) and not w.vouching.chosen:
        return say.text(
            "follows the published rule, with the randomness that the policy promises, from the index (the documents in"
            " searchable form) that the provider committed to before the window opened"
        )
    return say.text(
        "follows the published rule, from the index (the documents in searchable form) that the provider committed to"
        " before the window opened"
    )


def _answers(say: Say, w: Window) -> str | None:
    if w.figures.mode != "full" or not w.counts.records:
        return None
    return say.plural(
        "The %(count)s answer in the window's public record, the ledger, %(made)s.",
        "Each of the %(count)s answers in the window's public record, the ledger, %(made)s.",
        w.counts.records,
        made=_made(say, w),
    )


def _drawn(say: Say, w: Window) -> str | None:
    f = w.figures
    if f.mode != "sampled" or not f.sampled or not w.counts.records:
        return None
    drawn = {
        "own": say.text(", drawn by the verifier"),
        "published": say.text(", drawn by a draw that the provider published"),
    }.get(f.challenge or "", "")
    first = say.plural(
        "%(sampled)s of %(count)s answer%(drawn)s: each %(made)s.",
        "%(sampled)s of %(count)s answers%(drawn)s: each %(made)s.",
        w.counts.records,
        sampled=f.sampled,
        drawn=drawn,
        made=_made(say, w),
    )
    if f.beta is None or f.eta is None or f.sampled == w.counts.records:
        return first
    share = say.text(
        "If more than a share of %(beta)s of all answers were false, the draw would miss all false answers with a"
        " probability of at most %(eta)s.",
        beta=say.number(f.beta),
        eta=say.number(f.eta),
    )
    return say.joined([first, share])


def _keys(say: Say, w: Window) -> str | None:
    if w.figures.setup != "unsafe":
        return None
    return say.text(
        "Each statement that depends on proofs is true only if the one party that made their keys forged no proof."
    )


def _randomness(say: Say, w: Window) -> str | None:
    beacon = w.vouching.beacon
    # The provider operates the witnesses of a pilot, so it chooses their values, or the date of its own commitment.
    if w.vouching.pilot or w.vouching.chosen or not any(named(t.mechanism).protects for t in w.tenants):
        return None
    if beacon.source == "witnesses":
        if not beacon.witnesses:
            return None
        return say.text(
            "The provider could not choose the randomness: it depends on values of the witnesses %(witnesses)s that"
            " became known after the provider's commitment, so a choice would have required all of these witnesses'"
            " help.",
            witnesses=some_of(say, dict.fromkeys(beacon.witnesses)),
        )
    # A round is public after several window headers could have got a quorum each, and it helps to choose among them.
    if w.vouching.forkable:
        return None
    return say.text(
        "The provider could not choose the randomness: it depends on values of a public beacon (drand) that became"
        " known after the provider's commitment, so a choice would have required the beacon's help."
    )


def _provider(say: Say, w: Window) -> str | None:
    key = w.vouching.provider
    if not key.name or key.key_id is None:
        return None
    return say.text(
        "The provider %(name)s signed the ledger with its key %(key)s.", name=key.name, key=key.key_id
    )


def _ledger(say: Say, w: Window) -> str | None:
    v = w.vouching
    start, end = ([k.name for k in v.witnesses if getattr(k, part)] for part in ("header", "end"))
    if not start or not end or v.pilot or v.forkable:
        return None
    enough = say.plural(
        "%(quorum)s of %(count)s witness",
        "%(quorum)s of %(count)s witnesses",
        len(v.witnesses),
        quorum=v.quorum,
    )
    names = some_of(say, dict.fromkeys(start))
    if start == end:
        return say.text(
            "The ledger was not rewritten: %(names)s cosigned its beginning and its end, and the trust file requires"
            " %(enough)s.",
            names=names,
            enough=enough,
        )
    return say.text(
        "The ledger was not rewritten: %(names)s cosigned its beginning, and %(others)s its end, and the trust file"
        " requires %(enough)s.",
        names=names,
        others=some_of(say, dict.fromkeys(end)),
        enough=enough,
    )


def _receipts(say: Say, w: Window) -> str | None:
    if not (count := w.counts.receipts_agreeing):
        return None
    return say.plural(
        "%(count)s receipt that an account received with its answer agrees with the ledger.",
        "%(count)s receipts that accounts received with their answers agree with the ledger.",
        count,
    )


def _independent(say: Say, w: Window) -> str | None:
    parts = []
    if count := w.counts.receipts_independent:
        parts.append(
            say.plural(
                "%(count)s receipt is from an account that the trust file calls independent of the provider.",
                "%(count)s receipts are from accounts that the trust file calls independent of the provider.",
                count,
            )
        )
    if count := w.counts.receipts_dependent:
        parts.append(
            say.plural(
                "%(count)s receipt is from an account that the trust file calls not independent of the provider.",
                "%(count)s receipts are from accounts that the trust file calls not independent of the provider.",
                count,
            )
        )
    return say.joined(parts) or None


def _coalition(say: Say, w: Window) -> str | None:
    f = w.figures
    if f.coalition != "checked" or f.largest_cluster is None:
        return None
    if f.largest_cluster <= 1:
        return say.text(
            "By the published measure of similarity, no account repeated another account's question almost word for"
            " word; the policy covers %(covered)s cooperating accounts.",
            covered=f.k_max,
        )
    return say.plural(
        "By the published measure of similarity, at most %(count)s account repeated a question almost word for word;"
        " the policy covers %(covered)s cooperating accounts.",
        "By the published measure of similarity, at most %(count)s accounts repeated a question almost word for word;"
        " the policy covers %(covered)s cooperating accounts.",
        f.largest_cluster,
        covered=f.k_max,
    )


def _questions(say: Say, w: Window) -> str | None:
    if w.figures.query_embedding != "proved" or w.figures.mode != "full":
        return None
    return say.text(
        "The published method computed the vector of each question, and the vector does not depend on the index."
    )


def _questions_drawn(say: Say, w: Window) -> str | None:
    f = w.figures
    if f.query_embedding != "proved" or f.mode != "sampled" or not f.sampled:
        return None
    return say.plural(
        "The published method computed the vector of the %(count)s drawn question, and this vector does not depend on"
        " the index.",
        "The published method computed the vector of each of the %(count)s drawn questions, and these vectors do not"
        " depend on the index.",
        f.sampled,
    )


def _questions_again(say: Say, w: Window) -> str | None:
    if not w.figures.query_embedding.startswith("re-executed"):
        return None
    done, _, total = w.figures.query_embedding.partition("(")[2].rstrip(")").partition("/")
    return say.text(
        "This verifier recomputed the vectors of disclosed questions, for %(done)s of %(total)s records.",
        done=done,
        total=total,
    )


def _chain(say: Say, w: Window) -> str | None:
    before = w.chain.before
    alone = []
    if w.vouching.pilot:
        alone = [
            say.text("In this pilot, no independent party confirms that the provider made no other window.")
        ]
    elif w.vouching.forkable:
        alone = [
            say.text(
                "Two quorums may have no independent witness in common, so no independent party confirms that the"
                " provider made no other window."
            )
        ]
    if before is None and alone:
        return say.joined([say.text("The window header names no previous window."), *alone])
    if before is None:
        return say.text("The window header names no previous window: this window is the origin's first.")
    lost = say.plural("%(count)s window", "%(count)s windows", before.abandoned)
    idle = say.plural("%(count)s window", "%(count)s windows", before.empty)
    name = f"{before.header[:16]}.."
    parts = [
        say.text(
            "The window header names the previous window, %(name)s, which was not supplied: the witnesses are the only"
            " evidence.",
            name=name,
        )
        if not w.chain.reached
        else say.plural(
            "The window header names the previous window, %(name)s, and %(count)s supplied earlier window confirms the"
            " chain.",
            "The window header names the previous window, %(name)s, and %(count)s supplied earlier windows confirm the"
            " chain.",
            w.chain.reached,
            name=name,
        )
    ]
    if before.abandoned:
        parts.append(say.text("%(lost)s abandoned since the last complete one.", lost=lost))
    if before.empty:
        parts.append(say.text("%(idle)s without a query since the last complete one.", idle=idle))
    return say.joined([*parts, *alone])


def _next(say: Say, w: Window) -> str | None:
    after = w.chain.after
    if after is None:
        return None
    return say.text(
        "The next window has to name this header, %(header)s, and this final root, %(root)s.",
        header=f"{after.header[:16]}..",
        root=f"{after.root[:16]}..",
    )


def _cumulative(say: Say, w: Window) -> str | None:
    c = w.figures.cumulative
    if c is None or c.eps == "inf":
        return None
    return say.plural(
        "The eps of %(windows)s windows over one index is %(eps)s in total, at delta %(delta)s, about a document of one"
        " position; %(condition)s.",
        "The eps of %(windows)s windows over one index is %(eps)s in total, at delta %(delta)s, about a document of at"
        " most %(count)s positions; %(condition)s.",
        c.positions_per_document,
        windows=c.windows,
        eps=say.number(c.eps),
        delta=say.number(c.delta),
        condition=condition(say, c.windows - 1),
    )


def condition(say: Say, others: int) -> str:
    """The condition of a figure for several windows, if this run did not verify the given number of them."""
    return say.plural(
        "the figure is valid only if the other window verifies, and this run did not verify it",
        "the figure is valid only if each of the other %(count)s windows verifies, and this run did not verify them",
        others,
    )


_WORDS: Mapping[str, Callable[[Say, Window], str | None]] = {
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
    "questions-drawn": _questions_drawn,
    "questions-again": _questions_again,
    "chain": _chain,
    "next": _next,
    "cumulative": _cumulative,
}
"""Each sentence, or None if the window lacks the subject of the sentence."""
