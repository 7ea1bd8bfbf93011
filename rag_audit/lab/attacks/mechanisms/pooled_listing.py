"""Pooled listing under attack: one set of listed documents for all accounts, and requests that take effect in order."""

from __future__ import annotations

import re
from typing import Self

import numpy as np

from rag_audit._internal.errors import PolicyError
from rag_audit.lab.attacks.mechanisms.base import (
    ON_ANSWERS,
    Attacked,
    Ints,
    Selected,
    Usual,
    Window,
    Written,
)
from rag_audit.mechanisms.base import Mechanism, Scores, TableShape, Tenant
from rag_audit.mechanisms.descriptions import chosen
from rag_audit.relation.bernoulli import PROBABILITY_RANGE
from rag_audit.relation.scores import LARGEST_SCORE

QUERIES = 200
"""The default m: the maximum queries of all accounts in a window, which determines the flip probability."""


class AttackedPooledListing(Attacked):
    """The first K of the listed documents; every document fills one position.

    Mirabel is not defined here: chance also lists documents that Mirabel would hide.
    """

    name = "pooled-listing"
    form = "pooled-listing:KEEP[:F:THRESHOLD[:QUERIES]]"
    usual = (Usual("pooled-listing:0.9", "pooled listing"),)
    defences = ON_ANSWERS

    @classmethod
    def read(cls, written: Written) -> Self:
        """See `Attacked.read`. The value may also state m, the queries of all accounts of the tenant in a window."""
        if not re.fullmatch(r"[^:]+(:[^:]+)?|[^:]+(:[^:]+){3}(:[0-9]{1,9})?", written.text):
            raise PolicyError("the option names no mechanism", field="--mechanism", expected=written.expected,
                              actual=written.text)  # fmt: skip
        parts = written.text.split(":")
        draft = chosen(
            ":".join(parts[:4]), whole=written.text, expected=written.expected, relevance=written.relevance
        )  # fmt: skip
        queries = int(parts[4]) if len(parts) == 5 else QUERIES
        return cls(_placed(draft, written.capacity, queries))

    def select(self, window: Window, scores: Ints, account: int, read: Ints) -> Selected:
        """See `Attacked.select`. Every account reads the same set of listed documents, and extends it."""
        m, capacity = self.mechanism, len(scores)
        assert m.flip_probability is not None and m.threshold is not None  # as for every pooled listing
        chance = window.random.random(capacity) < m.flip_probability / PROBABILITY_RANGE
        window.listed |= chance | ((scores >= m.threshold) & window.sampled)
        places = np.flatnonzero(window.listed & (read > 0))
        best = places[np.argsort(-read[places], kind="stable")[: window.ranking.top_k]]
        return Selected(tuple(best.tolist()))


def _placed(draft: Mechanism, capacity: int, queries: int) -> Mechanism:
    """The mechanism of one tenant: a document for each position, and m queries in a window.

    :raises PolicyError: f and m give no flip probability
    """
    draft = draft.by_document(TableShape(capacity, 1, None)) or draft
    exact = Scores(0, LARGEST_SCORE, LARGEST_SCORE)
    return draft.placed(
        Tenant(capacity, 1, accounts_max=1, queries=queries), gains=(), noised=exact, exact=exact
    )


ATTACKED = AttackedPooledListing
