"""The provider's part of randomized response (docs/relation.md, "Coins"; docs/accounting.md)."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import numpy.typing as npt

from rag_audit._internal.errors import EncodingError, PolicyError
from rag_audit.mechanisms.base import SAMPLE, Mechanism
from rag_audit.mechanisms.randomized_response import ListRules, RandomizedResponse
from rag_audit.relation.scores import dot
from rag_audit.relation.selection import first_winners, winners
from rag_audit.retrieval.engine import Drawn, Int8Array, TenantIndex, draw_bernoulli_bits
from rag_audit.retrieval.serving.base import Asked, Columns, Serving

CACHED_BYTES = 1 << 27
"""Maximum total bytes of cached packed bits, for all accounts."""


class DisclosedBits:
    """The disclosed sets of accounts before their records, derived from the lists of the earlier records. Safe to use
    from several threads.

    For each account the object caches the packed bits before the latest requested record, so that consecutive records
    cost one list each.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._latest: OrderedDict[str, tuple[int, npt.NDArray[np.uint8]]] = OrderedDict()

    def before(
        self, account: str, i: int, capacity: int, listed: Callable[[int], Iterable[int]]
    ) -> Int8Array:
        """The disclosed set of an account before its record i, shape (capacity,), 0 or 1.

        :param listed: returns the positions of the account's record with a number below i; its errors propagate
        """
        with self._lock:
            at, packed = self._latest.get(account, (1, np.zeros(0, np.uint8)))
        bits = np.zeros(capacity, np.int8)
        if at > i:
            at = 1
        elif packed.size:
            bits = np.unpackbits(packed, count=capacity).view(np.int8)
        for number in range(at, i):
            bits[list(listed(number))] = 1
        packed = np.packbits(bits.view(np.uint8))
        with self._lock:
            self._latest.pop(account, None)
            self._latest[account] = (i, packed)
            while len(self._latest) > max(1, CACHED_BYTES // max(1, packed.nbytes)):
                self._latest.popitem(last=False)  # the least recently used
        return bits


def select_listed(
    index: TenantIndex,
    query: Int8Array,
    rules: ListRules,
    *,
    sampled: Int8Array,
    disclosed: Int8Array,
    flips: Drawn,
) -> list[int]:
    """The positions that an answer lists, ascending: the first M that chance lists, or that are relevant, sampled and
    not yet in the account's disclosed set.

    :param query: shape (d,), int8 in -7..7
    :param sampled: 1 for each sampled position, else 0, shape (capacity,); `disclosed` and `flips` have the same shape
    :raises EncodingError: an array has another shape or type
    :raises PolicyError: M is not in 1..capacity
    """
    _check(index, rules, sampled, disclosed, flips)
    relevant = index.scores(query) >= rules.threshold
    # Every comparison runs for every position, so that the time does not depend on the result.
    winning = flips.view(np.bool_) | (relevant & sampled.view(np.bool_) & ~disclosed.view(np.bool_))
    return [int(p) for p in np.flatnonzero(winning)[: rules.maximum]]


def reference_listed(
    index: TenantIndex,
    query: Int8Array,
    rules: ListRules,
    *,
    sampled: Int8Array,
    disclosed: Int8Array,
    flips: Drawn,
) -> list[int]:
    """The same as `select_listed`, by the relation's own functions in exact Python integers."""
    _check(index, rules, sampled, disclosed, flips)
    q = query.tolist()
    relevant = [dot(q, row) >= rules.threshold for row in index.rows.tolist()]
    bits = [[bool(bit) for bit in column.tolist()] for column in (sampled, disclosed, flips)]
    listed = first_winners(winners(relevant, *bits), rules.maximum)
    return [p for p, bit in enumerate(listed) if bit]


def _check(index: TenantIndex, rules: ListRules, *columns: Drawn) -> None:
    for name, column in zip(("sampled", "disclosed", "flips"), columns, strict=True):
        if (
            column.dtype != np.int8
            or column.shape != (index.capacity,)
            or int(column.view(np.uint8).max()) > 1
        ):
            raise EncodingError(
                "the column is not a bit for each position",
                field=name,
                expected=f"int8 ({index.capacity},), 0 or 1",
                actual=f"{column.dtype} {column.shape}",
            )
    if not 1 <= rules.maximum <= index.capacity:
        raise PolicyError("the length of lists is out of range", field="listed_max",
                          expected=f"1..{index.capacity}", actual=rules.maximum)  # fmt: skip


class RandomizedResponseServing(Serving):
    """Lists the positions that chance lists, and the relevant sampled positions that are not yet in the account's
    disclosed set.

    :param mechanism: the tenant's mechanism
    :raises TypeError: the mechanism is of another class
    """

    draws = True

    def __init__(self, mechanism: Mechanism) -> None:
        super().__init__(mechanism)
        if not isinstance(mechanism, RandomizedResponse):
            raise TypeError(f"the mechanism is {mechanism.name}")
        self.rules = mechanism.rules

    def draw(self, kappa: int, capacity: int) -> Int8Array:
        """The Bernoulli bits of a slot, shape (capacity,), 1 if chance lists the position."""
        return draw_bernoulli_bits(kappa, capacity, self.rules.flip_probability)

    def select(
        self, index: TenantIndex, requested: Sequence[Asked], columns: Columns
    ) -> list[list[int] | Exception]:
        """See `Serving.select`: the positions are ascending."""
        return [self._listed(index, one, columns[SAMPLE]) for one in requested]

    def _listed(self, index: TenantIndex, one: Asked, sampled: Int8Array) -> list[int] | Exception:
        assert (
            one.disclosed is not None and one.drawn is not None
        )  # as for every tenant with randomized response
        try:
            return select_listed(
                index, one.vector, self.rules, sampled=sampled, disclosed=one.disclosed, flips=one.drawn
            )
        except Exception as exc:
            return exc


SERVING = RandomizedResponseServing
