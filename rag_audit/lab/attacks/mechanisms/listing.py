"""Randomized response under attack: an account ranks all documents of its disclosed set."""

from __future__ import annotations

import numpy as np

from rag_audit.lab.attacks.mechanisms.base import ON_ANSWERS, Attacked, Ints, Selected, Usual, Window
from rag_audit.relation.coins import COIN_RANGE


class AttackedListing(Attacked):
    """Lists of positions that chance lists, and of relevant sampled positions, each once for an account.

    Mirabel is not defined here: chance also lists documents that Mirabel would hide.
    """

    name = "listing"
    form = "listing:KEEP, or listing:KEEP:CHANCE:THRESHOLD[:MOST]"
    usual = (Usual("listing:0.7", "listing:0.7"),)
    defences = ON_ANSWERS

    def select(self, window: Window, scores: Ints, account: int, read: Ints) -> Selected:
        """See `Attacked.select`."""
        m, capacity = self.mechanism, len(scores)
        assert m.chance is not None and m.threshold is not None  # as for every listing mechanism
        held = window.held.setdefault(account, np.zeros(capacity, np.bool_))
        chance = window.random.random(capacity) < m.chance / COIN_RANGE
        listed = np.flatnonzero(chance | ((scores >= m.threshold) & window.kept & ~held))[: m.longest]
        held[listed] = True
        # An account stores the documents of earlier answers, and ranks them itself.
        mine = np.flatnonzero(held)
        best = mine[np.argsort(-read[mine], kind="stable")[: window.ranking.top_k]]
        return Selected(tuple(best.tolist()))


ATTACKED = AttackedListing
