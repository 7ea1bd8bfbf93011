"""From a real vector to an int4 one, by constants that are public before any tenant's data is seen."""

from __future__ import annotations

from fractions import Fraction
from math import isqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_audit.index.embedders.base import NothingToEmbed, Vectors
from rag_audit.relation.vectors import MAX_COMPONENT


def published_scale(dimension: int) -> str:
    """The quantiser's scale of every embedder that has none of its own: 3 / sqrt(d), cut to thousandths, as a decimal
    string. A component of a unit vector of d components has the root mean square 1 / sqrt(d).
    """
    thousandths = isqrt(9_000_000 // dimension)
    return f"{thousandths // 1000}.{thousandths % 1000:03}"


def quantise_unit(x: npt.NDArray[np.floating[Any]], scale: Fraction, cut: int | None = None) -> Vectors:
    """The int4 vector clip(round(7 u / scale), -7, 7) of u = x / |x|, in float64; shape (d,).

    :param cut: how many of the first components count, where not all do; u is of them alone
    :raises NothingToEmbed: x is zero, or not finite
    """
    wide = x[:cut].astype(np.float64)
    norm = float(np.linalg.norm(wide))
    if norm == 0 or not np.isfinite(norm):
        raise NothingToEmbed(
            "there is nothing to embed", expected="a vector with a direction", found=f"norm {norm}"
        )
    steps = np.rint(MAX_COMPONENT * (wide / norm) / float(scale))
    return np.clip(steps, -MAX_COMPONENT, MAX_COMPONENT).astype(np.int8)
