"""From a real vector to an int4 one, by constants that are public before any tenant's data is seen."""

from __future__ import annotations

import hashlib
from fractions import Fraction
from functools import lru_cache
from math import isqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_audit.relation.scores import MAX_COMPONENT, ScoreWindow
from rag_audit.retrieval.embedders.base import NothingToEmbed, Vectors

TURN = "turn-1"
"""The name of `turned`, as manifests write it."""
_ROUNDS = 3
_WORD = 8

Floats = npt.NDArray[np.float64]


def published_scale(dimension: int) -> str:
    """The quantiser's scale of every embedder that has none of its own: 3 / sqrt(d), cut to thousandths, as a decimal
    string. A component of a unit vector of d components has the root mean square 1 / sqrt(d), once it is `turned`.
    """
    thousandths = isqrt(9_000_000 // dimension)
    return f"{thousandths // 1000}.{thousandths % 1000:03}"


def score_range(scale: Fraction) -> tuple[int, int]:
    """lo and hi of the score window of an embedder that has none of its own: 0.1 and 0.8 of the largest score."""
    window = ScoreWindow.for_scale(scale, 1)
    return window.lo, window.hi


def turned(x: Floats) -> Floats:
    """Vectors after an orthogonal map that depends only on their dimension; shape (.., d).

    The map preserves scores. It spreads a model's large components over all components, so that one scale fits every
    model. Each of three rounds applies public signs and a public permutation, then Hadamard's transform of the first
    2^b components, 2^b <= d, and, if d > 2^b, further signs and the transform of the last 2^b. All operations are sums
    and products of two numbers in a fixed order, so that machines agree.
    """
    dimension = x.shape[-1]
    size = 1 << (dimension.bit_length() - 1)
    out = x.astype(np.float64)
    for signs, order, further in _public(dimension):
        out = (out * signs)[..., order]
        out[..., :size] = _hadamard(out[..., :size])
        if size < dimension:
            out *= further  # without signs between them, the two transforms would cancel on their overlap
            out[..., -size:] = _hadamard(out[..., -size:])
    return out


@lru_cache(maxsize=16)
def _public(dimension: int) -> tuple[tuple[Floats, npt.NDArray[np.intp], Floats], ...]:
    """Signs, permutation and further signs of each round: the lowest bit, the order and the next bit of 64-bit words of
    SHAKE-256.
    """
    result: list[tuple[Floats, npt.NDArray[np.intp], Floats]] = []
    for number in range(_ROUNDS):
        stream = hashlib.shake_256(f"rag-audit/{TURN}/{dimension}/{number}".encode()).digest(
            _WORD * dimension
        )
        words = np.frombuffer(stream, ">u8")
        signs, further = (np.where(words & bit, -1.0, 1.0) for bit in (1, 2))
        result.append((signs, np.argsort(words, kind="stable"), further))
    return tuple(result)


def _hadamard(x: Floats) -> Floats:
    size, half = x.shape[-1], 1
    out = x
    while half < size:
        pairs = out.reshape(*x.shape[:-1], -1, 2, half)
        low, high = pairs[..., 0, :], pairs[..., 1, :]
        out = np.stack([low + high, low - high], axis=-2).reshape(x.shape)
        half *= 2
    return np.asarray(out * size**-0.5, np.float64)


def quantise_unit(
    x: npt.NDArray[np.floating[Any]], scale: Fraction, cut: int | None = None, *, turn: bool = False
) -> Vectors:
    """The int4 vector clip(round(7 u / scale), -7, 7) of u = x / |x|, in float64; shape (d,).

    :param cut: number of first components to use, if not all; u then contains only these
    :param turn: whether x is `turned`, after the cut
    :raises NothingToEmbed: x is zero, or not finite
    """
    wide = x[:cut].astype(np.float64)
    norm = float(np.linalg.norm(wide))
    if norm == 0 or not np.isfinite(norm):
        raise NothingToEmbed(
            "the text has no token to embed", expected="a vector with a direction", actual=f"norm {norm}"
        )
    unit = wide / norm
    steps = np.rint(MAX_COMPONENT * (turned(unit) if turn else unit) / float(scale))
    return np.clip(steps, -MAX_COMPONENT, MAX_COMPONENT).astype(np.int8)
