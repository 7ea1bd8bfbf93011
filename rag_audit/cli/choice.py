"""The choice of a tenant's mechanism from the number of accounts, their questions and the rights of users."""

from __future__ import annotations

import math

from rag_audit._internal.errors import SetupError
from rag_audit.mechanisms import defaults
from rag_audit.mechanisms.accounting.curves import probability_over_range
from rag_audit.mechanisms.accounting.documents import largest_queries
from rag_audit.mechanisms.descriptions.pooled_listing import MAX_UNREQUESTED, UNREQUESTED
from rag_audit.retrieval.embedders import DEFAULT_EMBEDDER

KEEPS = ("0.9", "0.8", "0.7")
"""The sampled shares of documents, the first choice first: more queries need a smaller share for the same epsilon."""


RIGHTS = "do users of a tenant have individual rights to documents, or need privacy from one another?"
"""The question that decides between sampling and pooled listing."""


def reason(rights: bool) -> str:
    """The reason of the choice in words."""
    if rights:
        return (
            "The command chose sampling, because the users of a tenant have individual rights: no question of one"
            " account changes an answer to another account."
        )
    return (
        "The command chose pooled listing, because the users of a tenant have no individual rights: epsilon holds for"
        " any number of accounts, and depends on the number m of all their questions."
    )


def coalition(accounts: int) -> int:
    """The largest coalition that a policy for this number of accounts covers."""
    return min(accounts, defaults.K_MAX)


def choose_mechanism(*, rights: bool, accounts: int, questions: int, relevance: int | None) -> str:
    """The value of the option --mechanism for a tenant.

    If users have individual rights, the mechanism is sampling: no account's questions change the answers to another
    account. Otherwise it is pooled listing, which has an epsilon for any number of accounts. Its threshold is the
    embedder's relevance threshold, which public texts determine: the threshold does not change epsilon, and a larger
    one finds fewer passages.

    >>> choose_mechanism(rights=True, accounts=16, questions=200, relevance=601)
    'sampling:0.9'
    >>> choose_mechanism(rights=False, accounts=4, questions=50, relevance=601)
    'pooled-listing:0.9:0.1:601'

    :param rights: whether users of a tenant have individual rights
    :param accounts: the maximum accounts of the tenant
    :param questions: the maximum questions of an account in a window
    :param relevance: the embedder's minimum raw score of a relevant passage; None if it is unknown
    :raises SetupError: the mechanism needs a threshold, and none was measured for the embedder; or there are too many
        questions for an epsilon that the default trust file accepts
    """
    if rights:
        return f"sampling:{defaults.KEEP}"
    if relevance is None:
        raise SetupError(
            "pooled listing needs the score of a relevant passage, which is not known for this embedder",
            field="--embedder", expected=DEFAULT_EMBEDDER, actual="an embedder without a measured score",
            hint="choose such an embedder, or sampling (--rights); `rag-audit provider policy new --mechanism"
                 " pooled-listing:KEEP:F:THRESHOLD` takes a measured threshold",
        )  # fmt: skip
    keep, unrequested = _parameters(accounts * questions)
    return f"pooled-listing:{keep}:{unrequested}:{relevance}"


def _parameters(queries: int) -> tuple[str, str]:
    """The sampled share of documents, and f, for m queries of all accounts.

    f is `UNREQUESTED`, and the share is the largest of `KEEPS` with an epsilon that the default trust file accepts. If
    there is none, the share is the smallest of `KEEPS`, and f is as large as this epsilon requires.

    :raises SetupError: f would exceed `MAX_UNREQUESTED`
    """
    limit = float(defaults.EPS_POOLED_LISTING)
    for keep in KEEPS:
        if queries <= largest_queries(probability_over_range(keep, "keep"), UNREQUESTED, eps=limit):
            return keep, UNREQUESTED
    pi = float(KEEPS[-1])
    # eps = ln((pi/q + 1 - pi)/(1 - pi)) (docs/accounting.md), solved for q; the margin covers the rounding of figures.
    least = pi / (1 - pi) / math.expm1(limit * (1 - 1e-4))
    unrequested = -math.expm1(queries * math.log1p(-least))
    if unrequested > float(MAX_UNREQUESTED):
        most = largest_queries(probability_over_range(KEEPS[-1], "keep"), MAX_UNREQUESTED, eps=limit)
        raise SetupError(
            "there are too many questions in a window for an epsilon that the trust file accepts",
            field="--accounts, --questions", expected=f"accounts times questions at most {most:,}",
            actual=f"{queries:,}",
            hint="answer with fewer accounts or questions, or with --rights, which chooses sampling",
        )  # fmt: skip
    return KEEPS[-1], f"{math.ceil(unrequested * 1e6) / 1e6:.6f}"
