"""The exact bound over several windows of one index."""

from __future__ import annotations

from collections.abc import Sequence

from rag_audit._internal.errors import PolicyError
from rag_audit.mechanisms.accounting.bounds import Bound, finite_bound
from rag_audit.mechanisms.accounting.exact import Composition, Part
from rag_audit.mechanisms.accounting.values import Real, count, probability


def cumulative(parts: Sequence[Part], delta: Real, positions: int = 1) -> Bound:
    """The exact composed bound for several windows over one index.

    >>> from rag_audit.mechanisms.accounting.pmf import Mechanism
    >>> cumulative([(Mechanism((1, 8, 64), 1024), 10), (Mechanism((1, 8, 64), 1024), 10)], "1e-6").eps
    30.259

    :param parts: each window's mechanism and the maximum number of losses of a coalition in it (k_max n, for each
        position of a document)
    :param delta: total delta of all windows
    :param positions: the maximum number of positions of a document that the bound covers
    :raises PolicyError: no window is given, a count is not a positive integer, or delta is outside (0, 1)
    """
    if not parts:
        raise PolicyError("there is no window to compose", field="windows", expected="at least one")
    checked = [(mechanism, count(m, f"windows[{i}].compositions")) for i, (mechanism, m) in enumerate(parts)]
    total = probability(delta, "delta")
    note = (
        "at most k_max colluding accounts in each window; every window over this index is among those given"
    )
    return finite_bound("cumulative", Composition(checked, total).epsilon(), total, note, positions=positions)
