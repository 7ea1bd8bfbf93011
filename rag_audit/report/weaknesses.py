"""The aspects of a window that could be stronger, and the cost of its mechanisms for their readers."""

from __future__ import annotations

from rag_audit._internal.words import counted, listed
from rag_audit.mechanisms import ALL, named
from rag_audit.mechanisms.descriptions import description
from rag_audit.report.model import Counts, Figures, Measured, Retrieval, TenantReport, Vouching, Weakness


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
    weaknesses: list[Weakness] = []

    def weak(name: str, words: str, better: str) -> None:
        weaknesses.append(Weakness.parse({"id": name, "words": words, "better": better}, field="weaker"))

    protecting = [mechanism.name for mechanism in ALL if mechanism.protects]
    none = [t.tenant for t in tenants if not named(t.mechanism).protects]
    if none:
        weak("mechanism", f"no mechanism protects the documents of {listed(none)}: their answers are exact",
             " or ".join([", ".join(protecting[:-1]), protecting[-1]]))  # fmt: skip
    if figures.setup == "unsafe":
        weak("setup", "one party made the keys of the proofs and could forge proofs with secrets that it should have"
                      " destroyed",
             "keys by several parties (docs/setup.md), or scan proofs, which need no keys")  # fmt: skip
    elif figures.setup == "ceremony":
        weak(
            "setup",
            "proofs depend on one honest contributor to their keys",
            "scan proofs, which need no keys",
        )
    if figures.query_embedding != "proved":
        weak(
            "query_embedding",
            f"{_origin(figures.query_embedding)}; epsilon holds only if no query vector depends on the index",
            "an embedder with proofs of query vectors (A1 proved)",
        )
    if figures.document_embedding != "proved":
        weak(
            "document_embedding",
            "only the provider's word shows that the committed vectors are computed from the documents' texts",
            "no release proves this origin yet",
        )
    if figures.mode == "sampled":
        missed = "no valid draw determines the records that need a proof"
        if figures.sampled is not None and figures.beta is not None and figures.eta is not None:
            drawn = f"{figures.sampled:,} of {counted(counts.records, 'record')} needed a proof"
            missed = (
                f"{drawn}: up to a share of {figures.beta} may be false, and the draw misses a larger share"
                f" with probability {figures.eta}"
            )
        weak("sampled", missed, 'mode = "full" in trust.toml')
    if figures.challenge == "published":
        weak("challenge", "the provider published the draw and may have chosen one of several draws",
             "a draw of the verifier's own (rag-audit verifier challenge, verify --challenge)")  # fmt: skip
    if figures.coalition != "checked":
        weak("coalition", "no proof shows how many accounts repeated a question almost word for word",
             "a coalition proof (rag-audit provider policy new --coalition-proof)")  # fmt: skip
    if 2 * vouching.quorum <= len(vouching.witnesses):
        weak("quorum", "the quorum is at most half of the witnesses: two ledgers could each have a quorum",
             "a quorum of more than half")  # fmt: skip
    missing = counts.records - counts.receipts_independent
    if missing > 0:
        have = "has" if missing == 1 else "have"
        weak("receipts", f"{missing:,} of {counted(counts.records, 'record')} {have} no receipt of an independent"
             " account that trust.toml lists", "receipts of more independent accounts")  # fmt: skip
    chained, given = previous
    if chained and not given:
        weak("chain", "the previous windows were not supplied: their count depends on the witnesses",
             "verify --previous with the previous windows")  # fmt: skip
    return weaknesses


def _origin(level: str) -> str:
    """The evidence for the origin of query vectors."""
    name, _, share = level.rstrip(")").partition("(")
    if name == "re-executed":
        return f"this verifier recomputed the query vectors of {share.replace('/', ' of ')} records, and no others"
    if name == "proved":
        return "query vectors are proved from an embedder's table that trust.toml does not pin"
    return "only the provider's word shows how query vectors were computed"


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
