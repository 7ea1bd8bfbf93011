"""Randomized response under attack: an account ranks all documents of its disclosed set."""

from __future__ import annotations

import numpy as np

from rag_audit.lab.attacks.mechanisms.base import ON_ANSWERS, Attacked, Ints, Selected, Usual, Window
from rag_audit.relation.bernoulli import PROBABILITY_RANGE


class AttackedRandomizedResponse(Attacked):
    """Lists of positions that chance lists, and of relevant sampled positions, each once for an account.

    Mirabel is not defined here: chance also lists documents that Mirabel would hide.
    """

    name = "randomized-response"
    form = "randomized-response:KEEP, or randomized-response:KEEP:FLIP_PROBABILITY:THRESHOLD[:MAXIMUM]"
    usual = (Usual("randomized-response:0.7", "randomized-response:0.7"),)
    defences = ON_ANSWERS

    def select(self, window: Window, scores: Ints, account: int, read: Ints) -> Selected:
        """See `Attacked.select`."""
        m, capacity = self.mechanism, len(scores)
        assert (
            m.flip_probability is not None and m.threshold is not None
        )  # as for every mechanism with randomized response
        disclosed = window.disclosed.setdefault(account, np.zeros(capacity, np.bool_))
        chance = window.random.random(capacity) < m.flip_probability / PROBABILITY_RANGE
        listed = np.flatnonzero(chance | ((scores >= m.threshold) & window.sampled & ~disclosed))[: m.longest]
        disclosed[listed] = True
        # An account stores the documents of earlier answers, and ranks them itself.
        mine = np.flatnonzero(disclosed)
        best = mine[np.argsort(-read[mine], kind="stable")[: window.ranking.top_k]]
        return Selected(tuple(best.tolist()))


ATTACKED = AttackedRandomizedResponse
