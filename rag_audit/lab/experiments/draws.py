"""Fast draws of the engine's noise with exactly its distribution (docs/relation.md, "Noise").

The attested engine takes its noise from Poseidon under the window's seed, which is too slow for 10^9 draws. Here
numpy's generator samples the same published table; `committed` compares the two.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from rag_audit.mechanisms.accounting import Mechanism
from rag_audit.relation.noise import MASS_BITS, MAX_MAGNITUDE, base_pmf

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_CHUNK = 1 << 11


def noise_sums(rng: np.random.Generator, mechanism: Mechanism, queries: int, trials: int) -> Ints:
    """Sums of `queries` independent draws of z at one position, shape (trials,).

    Each component's draws are summed by how often each value of the table occurs, which is multinomial: exact for any
    number of queries, and as fast for a million as for one.
    """
    values = np.arange(-MAX_MAGNITUDE, MAX_MAGNITUDE + 1)
    masses = np.array([base_pmf()[int(x)] for x in values]) / 2.0**MASS_BITS
    # The likeliest value goes last, because numpy assigns the rounding remainder there; a tail value could be rarer
    # than that remainder.
    order = np.argsort(masses, kind="stable")
    values, masses = values[order], masses[order]
    sums = np.zeros(trials, np.int64)
    for gain in mechanism.gains:
        for first in range(0, trials, _CHUNK):
            counts = rng.multinomial(queries, masses, size=min(_CHUNK, trials - first))
            sums[first : first + _CHUNK] += gain * (counts @ values)
    return sums


@lru_cache(maxsize=4)
def survival(mechanism: Mechanism) -> Floats:
    """P(z > v) for each v of the noise's support, in the order of `Mechanism.pmf`."""
    above = np.cumsum(mechanism.pmf[::-1])[::-1]
    result: Floats = np.append(above[1:], 0.0)
    return result


def above(mechanism: Mechanism, values: Ints) -> Floats:
    """P(z > v) for any integers v."""
    table = survival(mechanism)
    half = len(table) // 2
    inside = table[np.clip(values, -half, half) + half]
    result: Floats = np.where(values < -half, 1.0, np.where(values > half, 0.0, inside))
    return result


def ranks(mechanism: Mechanism, target: int, others: dict[int, int], maximum: int) -> Floats:
    """The distribution of the target's rank in one answer, shape (most + 1,): ranks 0..most - 1, then none of them.

    The target has position 0, so that it wins ties under the relation's order. The number of others above a noised
    target is a sum of independent Bernoulli bits. Its distribution is computed exactly.

    :param target: the target's lattice score
    :param others: the number of other positions with each lattice score
    """
    half = len(mechanism.pmf) // 2
    noised = np.arange(-half, half + 1) + target
    counts = np.zeros((maximum, len(noised)))
    counts[0] = 1.0
    for score, number in others.items():
        if number == 0:
            continue
        counts = _convolved(counts, _binomial(number, above(mechanism, noised - score), maximum))
    listed = counts @ mechanism.pmf
    result: Floats = np.append(listed, max(0.0, 1.0 - float(listed.sum())))
    return result


def _binomial(number: int, chance: Floats, maximum: int) -> Floats:
    """P(Binomial(number, chance) = j) for j below `maximum`, shape (most, len(chance))."""
    logs = np.full((maximum, len(chance)), -np.inf)
    with np.errstate(divide="ignore"):
        yes, no = np.log(chance), np.log1p(-chance)
    ways = 0.0
    for j in range(min(maximum, number + 1)):
        if j:
            ways += np.log((number - j + 1) / j)
        logs[j] = ways + _times(j, yes) + _times(number - j, no)
    result: Floats = np.exp(logs)
    return result


def _times(count: int, logs: Floats) -> Floats:
    return np.zeros_like(logs) if count == 0 else count * logs


def _convolved(a: Floats, b: Floats) -> Floats:
    """The distribution of a sum, cut to the number of values of `a`."""
    if not np.any(a[1:]):
        first: Floats = a[0] * b
        return first
    result = np.zeros_like(a)
    for j in range(len(a)):
        result[j:] += a[j] * b[: len(a) - j]
    return result
