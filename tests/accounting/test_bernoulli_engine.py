"""The real engine against the theorems about coins, by simulation at N = 8: lists of committed coins, in two worlds
that differ in one document (docs/accounting.md, "Mechanisms based on Bernoulli bits").

`test_coins` enumerates the theorems exactly on models of a few lines; here the functions run that answer queries.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from random import Random

import numpy as np

from rag_audit.mechanisms.accounting.bernoulli import Sampling
from rag_audit.relation.bernoulli import PROBABILITY_RANGE
from rag_audit.relation.field import MODULUS
from rag_audit.relation.scores import ScoreWindow
from rag_audit.retrieval.engine import Int8Array, TenantIndex, draw_bernoulli_bits, no_noise, select

N, PLACE, TRIALS = 8, 3, 1_200
KEEP = PROBABILITY_RANGE // 2
SIGMAS = 5.0
Transcript = tuple[tuple[int, ...], ...]


def world(document: bool) -> TenantIndex:
    """Eight positions; the one in question holds a document that answers the first question best, or nothing."""
    rows = np.array([[k % 5 - 2, 2 - k % 3, k % 4, 1] for k in range(N)], np.int8)
    rows[PLACE] = [7, 7, 0, 0] if document else 0
    return TenantIndex(rows, tuple(range(N)))


QUESTIONS: list[Int8Array] = [np.array(q, np.int8) for q in ([5, 4, 0, 0], [0, 0, 6, 1], [5, 4, 0, 0])]


def sampled(index: TenantIndex, random: Random) -> Transcript:
    """Three answers in one window: the exact first two of the kept positions."""
    kept, window = draw_bernoulli_bits(random.randrange(MODULUS), N, KEEP), ScoreWindow(0, 256, 256)
    return tuple(tuple(select(index, q, no_noise(N), window, 2, kept)) for q in QUESTIONS)


def shares(
    run: Callable[[TenantIndex, Random], Transcript], event: Callable[[Transcript], object]
) -> list[Counter[object]]:
    """How often each value of an event comes, with the document and without."""
    return [
        Counter(event(run(index, random)) for _ in range(TRIALS))
        for index, random in ((world(True), Random(1)), (world(False), Random(2)))
    ]


def ratios(actual: list[Counter[object]]) -> list[tuple[float, float]]:
    """Confidence limits of P_X / P_0 for every value that came often enough in either world."""
    limits = []
    for value in actual[0].keys() | actual[1].keys():
        with_it, without = actual[0][value], actual[1][value]
        if max(with_it, without) >= 50:
            # The logarithm of a ratio of counts, with a half added to each.
            middle = math.log((with_it + 0.5) / (without + 0.5))
            width = SIGMAS * math.sqrt(1 / (with_it + 0.5) + 1 / (without + 0.5))
            limits.append((middle - width, middle + width))
    assert len(limits) >= 2
    return limits


def where(transcript: Transcript) -> tuple[bool, ...]:
    """At which questions the position was listed."""
    return tuple(PLACE in positions for positions in transcript)


def test_what_is_not_listed_keeps_its_odds() -> None:
    """1 - pi <= P_X / P_0 <= 1 on every transcript that lists the position nowhere."""
    result = shares(sampled, lambda t: t if not any(where(t)) else None)
    for counter in result:
        del counter[None]
    dropped = math.log(float(Sampling(KEEP).dropped))
    for low, high in ratios(result):
        assert low <= 0 and high >= dropped
