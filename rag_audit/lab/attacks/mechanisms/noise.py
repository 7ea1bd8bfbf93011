"""Noise under attack: scores on the lattice, each with a fresh draw."""

from __future__ import annotations

import re
from typing import Self

import numpy as np

from rag_audit import _native
from rag_audit._internal.errors import PolicyError
from rag_audit.commit.explore.simulate import base_draws, weighted_sum
from rag_audit.lab.attacks.mechanisms.base import (
    ON_ANSWERS,
    Attacked,
    Floats,
    Ints,
    Selected,
    Usual,
    Window,
    Written,
)
from rag_audit.mechanisms.base import Scores, Tenant
from rag_audit.mechanisms.noise import Noise
from rag_audit.relation.noise import check_gains
from rag_audit.relation.scores import ScoreWindow

WEAK_NOISE = "noise:1,1,1,1:128"
STRONG_NOISE = "noise:1,8,64:32"


class AttackedNoise(Attacked):
    """Ranks of noised scores."""

    name = "noise"
    form = "noise:GAINS:R (noise:1,1,1,1:64)"
    usual = (Usual(WEAK_NOISE, "weak noise", ("mirabel",)), Usual(STRONG_NOISE, "strong noise"))
    bounded = ON_ANSWERS | {"mirabel"}

    @classmethod
    def read(cls, written: Written) -> Self:
        """See `Attacked.read`. The value states gains and R, which `provider policy new` takes from the policy."""
        form = re.fullmatch(r"noise:([0-9]{1,9}(?:,[0-9]{1,9}){0,5}):([0-9]{1,9})", written.text)
        if form is None:
            raise PolicyError(
                "the option names no mechanism",
                field="--mechanism",
                expected=written.expected,
                actual=written.text,
            )
        gains = tuple(int(g) for g in form[1].split(","))
        check_gains(gains)
        scores = ScoreWindow(written.window.lo, written.window.hi, int(form[2]))
        return cls(Noise(Tenant(0, 0), Scores.of(scores), None, gains))

    def select(self, window: Window, scores: Ints, account: int, read: Ints) -> Selected:
        """See `Attacked.select`."""
        gains, w = self.mechanism.gains, self.mechanism.window
        bits = window.random.bit_generator.random_raw(len(scores) * len(gains))
        noise = weighted_sum(gains, base_draws(bits).reshape(len(gains), len(scores)))
        hidden = window.hidden(scores, lambda: _noised(scores, noise, w))
        wanted = window.wanted(hidden)
        ranked = _native.noised_top_k(scores.tobytes(), w.lo, w.hi, w.lattice, noise.tobytes(), wanted)
        return window.without(ranked, hidden)


def _noised(scores: Ints, noise: Ints, window: ScoreWindow) -> Floats:
    """The lattice scores with their noise."""
    width = window.hi - window.lo
    clamped = np.clip(scores, window.lo, window.hi).astype(np.int64) - window.lo
    return ((clamped * window.lattice + width // 2) // width + noise).astype(np.float64)


ATTACKED = AttackedNoise
