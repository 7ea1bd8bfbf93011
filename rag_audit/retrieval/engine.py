"""The reference engine: a tenant's int4 index, exact scores, a slot's noise on all of them, then top K.

The engine needs no circuits. `select` and `reference_select` are the same function: the first runs in the native core,
the second is written with `rag_audit.relation`, and the circuits prove the second. A slot's noise depends on the slot
and not on the query, so `noise_pool` draws it before the query arrives.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from random import Random, SystemRandom
from typing import Generic, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from rag_audit import _native
from rag_audit._internal.errors import EncodingError, PolicyError, RagAuditError
from rag_audit.relation.bernoulli import check_probability
from rag_audit.relation.field import to_bytes
from rag_audit.relation.noise import check_gains
from rag_audit.relation.scores import MAX_COMPONENT, ScoreWindow, dot
from rag_audit.relation.selection import top_k

A = TypeVar("A")
R = TypeVar("R")

MOST = 32
"""Maximum items of one pass, which limits the waiting time of other queries."""


@dataclass(eq=False)
class _Waiting(Generic[A, R]):
    item: A
    woken: threading.Event = field(default_factory=threading.Event)
    leads: bool = False
    results: list[R] = field(default_factory=list)
    """its result, once there is one"""


class SharedPasses(Generic[A, R]):
    """Passes over a large object, one at a time. Requests that arrive during a pass share the next pass.

    A caller never waits for other callers to join: if no pass is running, it starts one at once.

    :param work: one pass: a result for each item, in their order
    """

    def __init__(self, work: Callable[[Sequence[A]], Sequence[R]]) -> None:
        self._work = work
        self._lock = threading.Lock()
        self._queue: list[_Waiting[A, R]] = []
        self._busy = False

    def do(self, item: A) -> R:
        """The result of an item. Another caller's thread may compute it. An exception of `work` for the item is
        raised here."""
        (result,) = self.do_all([item])
        if isinstance(result, Exception):
            raise result
        return result

    def do_all(self, items: Sequence[A]) -> list[R | Exception]:
        """The results of several items (`do`): for each the result, or the exception of `work`."""
        mine: list[_Waiting[A, R]] = [_Waiting(item) for item in items]
        with self._lock:
            self._queue += mine
            if mine and not self._busy:
                self._busy = mine[0].leads = True
        return [self._done(waiting) for waiting in mine]

    def _done(self, mine: _Waiting[A, R]) -> R | Exception:
        if not mine.leads:
            mine.woken.wait()
        if mine.leads and not mine.results:
            try:
                self._lead()
            except Exception as exc:
                return exc
        return mine.results[0]

    def _lead(self) -> None:
        """Run a pass for the waiting items, starting with the caller's own, and let the next caller lead."""
        with self._lock:
            batch, self._queue = self._queue[:MOST], self._queue[MOST:]
        done: Sequence[R] = ()
        try:
            done = self._pass([waiting.item for waiting in batch])
        finally:
            others = batch[1:]
            with self._lock:
                for waiting, result in zip(batch, done, strict=False):
                    waiting.results.append(result)
                self._queue = [waiting for waiting in others if not waiting.results] + self._queue
                self._busy = bool(self._queue)
                following = self._queue[:1]
                for waiting in following:
                    waiting.leads = True
            for waiting in (*following, *(waiting for waiting in others if waiting.results)):
                waiting.woken.set()

    def _pass(self, items: Sequence[A]) -> Sequence[R]:
        """The results for all items, or only for the first item if the common pass fails."""
        try:
            return self._work(items)
        except Exception:
            if len(items) == 1:
                raise
            return self._work(items[:1])


Int8Array = npt.NDArray[np.int8]
Int32Array = npt.NDArray[np.int32]
Drawn: TypeAlias = Int32Array | Int8Array
"""The draw of a slot: its noise, or the Bernoulli bits of a tenant with pooled listing."""

Passes: TypeAlias = SharedPasses[tuple[bytes, bytes | None], list[int]]
"""Selections by query and noise, each to its positions."""

MIN_CAPACITY = 64
"""The smallest capacity that a command suggests or chooses for a service."""
_RUN = 1 << 16


class CapacityError(RagAuditError):
    """A tenant has more documents than its committed capacity."""


@dataclass(frozen=True, eq=False)
class TenantIndex:
    """A tenant's vectors at all positions of its capacity, fixed for a window.

    :param rows: shape (capacity, d), int8 in -7..7; empty positions are zero. The array may map a file into memory
    :param positions: the position of each document, in the documents' order
    """

    rows: Int8Array
    positions: tuple[int, ...]

    def __post_init__(self) -> None:
        check_vectors(self.rows, dimensions=2, field="index rows")
        if len(set(self.positions)) != len(self.positions) or any(
            not 0 <= p < len(self.rows) for p in self.positions
        ):
            raise EncodingError(
                "document positions are not an injection into the capacity", field="positions"
            )
        self.rows.flags.writeable = False

    @property
    def capacity(self) -> int:
        """The number of committed positions, empty ones included."""
        return len(self.rows)

    @property
    def dimension(self) -> int:
        """Components of a vector."""
        return int(self.rows.shape[1])

    @cached_property
    def packed(self) -> list[_native.PackedIndex]:
        """The native core's layout of the rows, half their size, made once in runs of rows, which need not all be in
        memory.
        """
        runs = (self.rows[first : first + _RUN] for first in range(0, self.capacity, _RUN))
        return [_native.PackedIndex(run.tobytes(), self.dimension) for run in runs]

    @cached_property
    def _passes(self) -> dict[tuple[ScoreWindow, int], tuple[Int8Array | None, Passes]]:
        return {}

    def passes(self, window: ScoreWindow, k: int, sampled: Int8Array | None) -> Passes:
        """Selections in common passes over the rows: reading the rows takes longer than scoring them for one query.

        Queries share a pass if window, k and sampled positions are the same. All queries of one tenant in a window
        satisfy this.
        """
        key = (window, k)
        known = self._passes.get(key)
        if known is None or known[0] is not sampled or (sampled is not None and sampled.flags.writeable):
            bits = None if sampled is None else sampled.tobytes()

            def work(requested: Sequence[tuple[bytes, bytes | None]]) -> list[list[int]]:
                return _native.top_k(
                    self.packed, list(requested), window.lo, window.hi, window.lattice, k, bits
                )

            known = self._passes[key] = (sampled, SharedPasses(work))
        return known[1]

    def scores(self, query: Int8Array) -> Int32Array:
        """The raw scores of every position, shape (capacity,).

        :raises EncodingError: the query has another dimension, type or range
        """
        _check_query(self, query)
        scores = b"".join(run.scores(query.tobytes()) for run in self.packed)
        return np.frombuffer(scores, np.dtype("<i4"))


def _check_query(index: TenantIndex, query: Int8Array) -> None:
    check_vectors(query, dimensions=1, field="query vector")
    if len(query) != index.dimension:
        raise EncodingError(
            "the query vector has another dimension",
            field="query vector",
            expected=index.dimension,
            actual=len(query),
        )


def check_vectors(array: Int8Array, *, dimensions: int, field: str) -> None:
    """Refuse an array that does not contain int4 components as int8.

    :raises EncodingError: the type or the number of axes is wrong, or a component is outside -7..7
    """
    if array.dtype != np.int8 or array.ndim != dimensions:
        raise EncodingError(
            "the array does not hold int4 components",
            field=field,
            expected=f"int8 with {dimensions} axes",
            actual=f"{array.dtype} with {array.ndim}",
        )
    if array.size and max(int(array.max()), -int(array.min())) > MAX_COMPONENT:
        raise EncodingError("a vector component is out of range", field=field, expected="-7..7")


def build_index(vectors: Int8Array, capacity: int, rng: Random | None = None) -> TenantIndex:
    """Build an index with the documents at random positions (`draw_positions`).

    :param vectors: shape (n, d), int8 in -7..7
    :raises CapacityError: there are more documents than positions
    """
    check_vectors(vectors, dimensions=2, field="document vectors")
    positions = draw_positions(len(vectors), capacity, rng)
    rows = np.zeros((capacity, vectors.shape[1]), np.int8)
    rows[positions] = vectors
    return TenantIndex(rows, tuple(positions))


def draw_positions(documents: int, capacity: int, rng: Random | None = None) -> list[int]:
    """Draw a uniformly random injection of documents into the capacity.

    Positions are published when they are selected, so they must reveal no information about the order of the documents.
    `rng` is the operating system's generator except in tests.

    :raises CapacityError: there are more documents than positions
    """
    check_capacity(documents, capacity)
    return (rng or SystemRandom()).sample(range(capacity), documents)


def smallest_capacity(passages: int, minimum: int = MIN_CAPACITY) -> int:
    """The smallest power of two that has a position for each passage, and at least `minimum`."""
    return max(minimum, 1 << (passages - 1).bit_length())


def check_capacity(documents: int, capacity: int, *, field: str = "documents") -> None:
    """Refuse more documents than positions.

    :param field: the owner of the documents, for errors
    :raises CapacityError: there are more documents than positions; the error names both numbers
    """
    if capacity < 1:
        raise PolicyError(
            "the capacity is out of range", field="capacity", expected="at least 1", actual=capacity
        )
    if documents > capacity:
        raise CapacityError(
            "there are more documents than the tenant's capacity",
            field=field,
            expected=f"at most {capacity}",
            actual=documents,
            hint="write the next window's policy with a larger capacity: rag-audit provider policy new --tenant NAME=N",
        )


def draw_noise(kappa: int, positions: int, gains: Sequence[int]) -> Int32Array:
    """The DGS-1 noise of one slot, shape (positions,): `relation.draws.draw` by the native core.

    :raises PolicyError: the gains are not well-formed
    """
    check_gains(gains)
    return np.frombuffer(_native.draw_noise(to_bytes(kappa), positions, list(gains)), np.dtype("<i4"))


@cache
def no_noise(positions: int) -> Int32Array:
    """The noise of a tenant without noise: a zero for each position. The array is read-only and occupies the memory
    of one zero."""
    return np.broadcast_to(np.zeros(1, np.int32), positions)


def draw_bernoulli_bits(kappa: int, positions: int, bound: int) -> Int8Array:
    """The Bernoulli bits of a slot, shape (positions,), 0 or 1: `relation.draws.coins` by the native core.

    :param kappa: the key of the slot
    :param bound: the probability of 1, over 2^40
    :raises PolicyError: the bound is not in 1..2^40 - 1
    """
    bits = _native.draw_bernoulli_bits(to_bytes(kappa), positions, check_probability(bound, "coin"))
    return np.frombuffer(bits, np.int8)


def select(
    index: TenantIndex,
    query: Int8Array,
    noise: Int32Array,
    window: ScoreWindow,
    k: int,
    sampled: Int8Array | None = None,
) -> list[int]:
    """The first k positions of u + z among the sampled positions, ordered by larger value, then by smaller position.

    :param query: shape (d,), int8 in -7..7
    :param noise: the slot's noise, shape (capacity,), int32
    :param sampled: 1 for each sampled position, else 0, shape (capacity,); None samples all
    :raises EncodingError: query, noise or `sampled` has another shape or type
    :raises PolicyError: k is not in 1..capacity
    """
    (result,) = select_all(index, [(query, noise)], window, k, sampled)
    if isinstance(result, Exception):
        raise result
    return result


def select_all(
    index: TenantIndex,
    requested: Sequence[tuple[Int8Array, Drawn]],
    window: ScoreWindow,
    k: int,
    sampled: Int8Array | None = None,
) -> list[list[int] | Exception]:
    """`select` for several queries with their noise, which share passes over the index.

    :returns: for each query its positions, or the exception that `select` would raise
    :raises EncodingError: query, noise or `sampled` has another shape or type
    :raises PolicyError: k is not in 1..capacity
    """
    items: list[tuple[bytes, bytes | None]] = []
    for query, noise in requested:
        _check_selection(index, noise, k, sampled)
        _check_query(index, query)
        silent = noise.strides == (0,) and not noise[0]  # as `no_noise` makes it
        items.append((query.tobytes(), None if silent else noise.tobytes()))
    return index.passes(window, k, sampled).do_all(items)


def reference_select(
    index: TenantIndex,
    query: Int8Array,
    noise: Int32Array,
    window: ScoreWindow,
    k: int,
    sampled: Int8Array | None = None,
) -> list[int]:
    """The same selection as `select`, in exact Python integers."""
    _check_selection(index, noise, k, sampled)
    q = query.tolist()
    lattice = [window.quantise(dot(q, row)) for row in index.rows.tolist()]
    if sampled is not None:
        lattice = [u * bit for u, bit in zip(lattice, sampled.tolist(), strict=True)]
    return top_k([u + z for u, z in zip(lattice, noise.tolist(), strict=True)], k)


def _check_selection(index: TenantIndex, noise: Drawn, k: int, sampled: Int8Array | None) -> None:
    if sampled is not None and (
        sampled.shape != (index.capacity,)
        or sampled.dtype != np.int8
        or int(sampled.view(np.uint8).max()) > 1
    ):
        raise EncodingError(
            "the sampled positions are not a bit for each position",
            field="sample",
            expected=f"int8 ({index.capacity},), 0 or 1",
            actual=f"{sampled.dtype} {sampled.shape}",
        )
    if noise.dtype != np.int32 or noise.shape != (index.capacity,):
        raise EncodingError(
            "the noise has another shape than the index",
            field="noise",
            expected=f"int32 ({index.capacity},)",
            actual=f"{noise.dtype} {noise.shape}",
        )
    if not 1 <= k <= index.capacity:
        raise PolicyError("K out of range", field="K", expected=f"1..{index.capacity}", actual=k)
