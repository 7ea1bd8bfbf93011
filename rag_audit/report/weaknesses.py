"""The aspects of a window that could be stronger, and the cost of its mechanisms for their readers."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rag_audit._internal.words import PLAIN, Say, some_of
from rag_audit.mechanisms import ALL, named
from rag_audit.mechanisms.descriptions import description
from rag_audit.report.claims import chosen
from rag_audit.report.model import (
    Counts,
    Figures,
    Measured,
    Report,
    Retrieval,
    TenantReport,
    Vouching,
    Weakness,
)


def weaknesses_of(
    figures: Figures,
    tenants: list[TenantReport],
    vouching: Vouching,
    counts: Counts,
    previous: tuple[bool, int],
) -> list[Weakness]:
    """Each weakness in words, with a stronger alternative.

    :param previous: whether the window header names a previous window, and the number of supplied previous windows
    """
    return [
        Weakness.parse({"id": name, "words": words, "better": better}, field="weaker")
        for name, words, better in _weaknesses(PLAIN, figures, tenants, vouching, counts, previous)
    ]


_RECOMPUTED = re.compile(r"recomputed the query vectors of ([0-9]+) of ([0-9]+) records")


def shown_weaknesses(say: Say, report: Report) -> list[tuple[str, str]]:
    """Each weakness of a report in a language, with its stronger alternative. A weakness of a bundle stays English.

    A window that is not established has no level of its set-up and of its query vectors, so the words of each level
    are compared with the words of the report.
    """
    previous = (report.chain.before is not None, report.chain.given)
    done = next(filter(None, (_RECOMPUTED.search(w.words) for w in report.weaker)), None)
    level = report.figures.query_embedding if done is None else f"re-executed({done[1]}/{done[2]})"
    shown: dict[str, tuple[str, str]] = {}
    for setup in (report.figures.setup, "unsafe", "ceremony"):
        figures = report.figures.model_copy(update={"setup": setup, "query_embedding": level})
        english, own = (
            list(_weaknesses(language, figures, report.tenants, report.vouching, report.counts, previous))
            for language in (PLAIN, say)
        )
        shown |= {e[1]: (o[1], o[2]) for e, o in zip(english, own, strict=True)}
    return [shown.get(w.words, (say.quoted(w.words), say.quoted(w.better))) for w in report.weaker]


def _weaknesses(
    say: Say,
    figures: Figures,
    tenants: list[TenantReport],
    vouching: Vouching,
    counts: Counts,
    previous: tuple[bool, int],
) -> Iterator[tuple[str, str, str]]:
    """The weaknesses in a language: id, words, alternative."""
    protecting = [mechanism.name for mechanism in ALL if mechanism.protects]
    none = [t.tenant for t in tenants if not named(t.mechanism).protects]
    if none:
        yield (
            "mechanism",
            say.text(
                "no mechanism protects the documents of %(tenants)s: their answers are exact",
                tenants=say.listed(none),
            ),
            say.text("one of the mechanisms %(names)s", names=say.listed(protecting)),
        )
    yield from _of_proofs(say, figures, counts)
    if chosen(vouching, tenants):
        yield (
            "beacon",
            say.text(
                "the provider's own witnesses alone made the beacon, so the provider could have chosen the randomness"
            ),
            say.text("a beacon with the value of an independent witness, or drand"),
        )
    yield from _of_parties(say, figures, vouching, counts, previous)


def _of_proofs(say: Say, figures: Figures, counts: Counts) -> Iterator[tuple[str, str, str]]:
    """What proofs leave open: id, words, alternative."""
    if figures.setup == "unsafe":
        yield (
            "setup",
            say.text(
                "one party made the keys of the proofs and could forge proofs with secrets that it should have"
                " destroyed"
            ),
            say.text("keys by several parties (docs/setup.md), or scan proofs, which need no keys"),
        )
    elif figures.setup == "ceremony":
        yield (
            "setup",
            say.text("proofs depend on one honest contributor to their keys"),
            say.text("scan proofs, which need no keys"),
        )
    if figures.query_embedding != "proved":
        yield (
            "query_embedding",
            say.text(
                "%(origin)s; epsilon holds only if no query vector depends on the index",
                origin=_origin(say, figures.query_embedding),
            ),
            say.text("an embedder with proofs of query vectors (A1 proved)"),
        )
    if figures.document_embedding != "proved":
        yield (
            "document_embedding",
            say.text(
                "only the provider's word shows that the committed vectors are computed from the documents' texts"
            ),
            say.text("no release proves this origin yet"),
        )
    if figures.mode == "sampled":
        missed = say.text("no valid draw determines the records that need a proof")
        if figures.sampled is not None and figures.beta is not None and figures.eta is not None:
            missed = say.plural(
                "%(drawn)s of %(count)s record needed a proof: up to a share of %(beta)s may be false, and the draw"
                " misses a larger share with probability %(eta)s",
                "%(drawn)s of %(count)s records needed a proof: up to a share of %(beta)s may be false, and the draw"
                " misses a larger share with probability %(eta)s",
                counts.records,
                drawn=figures.sampled,
                beta=say.number(figures.beta),
                eta=say.number(figures.eta),
            )
        yield "sampled", missed, say.text('mode = "full" in trust.toml')
    if figures.challenge == "published":
        yield (
            "challenge",
            say.text("the provider published the draw and may have chosen one of several draws"),
            say.text("a draw of the verifier's own (rag-audit verifier challenge, verify --challenge)"),
        )


def _of_parties(
    say: Say, figures: Figures, vouching: Vouching, counts: Counts, previous: tuple[bool, int]
) -> Iterator[tuple[str, str, str]]:
    """What other parties do not confirm: id, words, alternative."""
    if figures.coalition != "checked":
        yield (
            "coalition",
            say.text("no proof shows how many accounts repeated a question almost word for word"),
            say.text("a coalition proof (rag-audit provider policy new --coalition-proof)"),
        )
    if vouching.forkable and not vouching.dependence.minority and not vouching.pilot:
        yield (
            "quorum",
            say.text(
                "two quorums of %(quorum)s of %(count)s witnesses may have only witnesses of the provider"
                " (%(dependent)s) in common: two ledgers could each have a quorum",
                count=len(vouching.witnesses),
                quorum=vouching.quorum,
                dependent=some_of(say, vouching.dependent),
            ),
            say.text("a quorum of more witnesses, or fewer witnesses of the provider"),
        )
    elif vouching.dependence.minority:
        yield (
            "quorum",
            say.text("the quorum is at most half of the witnesses: two ledgers could each have a quorum"),
            say.text("a quorum of more than half"),
        )
    missing = counts.records - counts.receipts_independent
    if missing > 0:
        yield (
            "receipts",
            say.plural(
                "%(missing)s of %(count)s record has no receipt of an independent account that trust.toml lists",
                "%(missing)s of %(count)s records have no receipt of an independent account that trust.toml lists",
                counts.records,
                missing=missing,
            ),
            say.text("receipts of more independent accounts"),
        )
    chained, given = previous
    if chained and not given:
        yield (
            "chain",
            say.text("the previous windows were not supplied: their count depends on the witnesses"),
            say.text("verify --previous with the previous windows"),
        )


def _origin(say: Say, level: str) -> str:
    """The evidence for the origin of query vectors."""
    name, _, share = level.rstrip(")").partition("(")
    if name == "re-executed":
        done, _, total = share.partition("/")
        return say.text(
            "this verifier recomputed the query vectors of %(done)s of %(total)s records, and no others",
            done=done,
            total=total,
        )
    if name == "proved":
        return say.text("query vectors are proved from an embedder's table that trust.toml does not pin")
    return say.text("only the provider's word shows how query vectors were computed")


def retrieval_of(tenants: list[TenantReport]) -> list[Retrieval]:
    """The cost of each tenant's mechanism for its readers."""
    return [
        Retrieval(tenant=t.tenant, words=description(t.mechanism).cost(t), measured=_measured(t))
        for t in tenants
    ]


def _measured(tenant: TenantReport) -> list[Measured]:
    """The results on public collections under the nearest measured settings below and above the tenant's setting."""
    from rag_audit.report.html.study import settings_of, strength, study

    kind = description(tenant.mechanism)
    own = kind.setting(tenant)
    if own is None:
        return []
    settings = sorted(settings_of(kind), key=strength)
    weaker = [s for s in settings if strength(s) <= float(own)]
    stronger = [s for s in settings if strength(s) >= float(own)]
    results = []
    near = [*weaker[-1:], *(s for s in stronger[:1] if s not in weaker[-1:])]
    for s in near:
        at = f"{s.mechanism} at {kind.settings.plain.format(kind.setting(s))}"
        results += [
            Measured(collection=c.name, setting=at, exact=c.exact, actual=s.actual[c.name][0])
            for c in study().collections
        ]
    return results
