"""Draws for slots, precomputed before the queries that need them."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from rag_audit._internal.closing import Closing
from rag_audit._internal.errors import WindowStateError
from rag_audit.models.records import SlotKey
from rag_audit.retrieval.engine import Drawn

log = logging.getLogger(__name__)

READY_BYTES = 1 << 30
"""Default maximum of bytes for all drawn slots: 256 slots at 10^6 positions. A provider may set another number."""
READY_SLOTS = 256
"""Maximum drawn slots, whatever their size."""


@dataclass
class NoiseCounts:
    """Counts of how the requested slots were served."""

    ready: int = 0
    """slots drawn before they were requested"""
    behind: int = 0
    """slots planned but not finished by the background thread"""
    cold: int = 0
    """slots requested before they were planned, for an account's first query or after an eviction"""


class NoisePool(Closing):
    """A background thread that precomputes the noise, or the Bernoulli bits, of each active account's next slots.

    When it falls behind, `get` draws in the caller's thread, `counts.behind` grows and a warning is logged (at each
    power of two, so that a slow machine does not fill its log).

    :param draw: the function that gives a slot's noise, a pure function of the slot
    :param depth: number of precomputed slots for each account
    :param limit: n of the policy, the number of an account's slots
    :param max_ready: maximum number of drawn slots in memory; the oldest are dropped first
    :param max_bytes: maximum total bytes of these slots (`max_bytes`)
    """

    def __init__(
        self,
        draw: Callable[[SlotKey], Drawn],
        *,
        depth: int = 2,
        limit: int,
        max_ready: int = READY_SLOTS,
        max_bytes: int = READY_BYTES,
    ) -> None:
        if depth < 1 or max_ready < depth:
            raise ValueError("the depth must be at least 1 and at most max_ready")
        self._draw = draw
        self._depth = depth
        self._limit = limit
        self._max_ready = max_ready
        self._max_bytes = max_bytes
        self._bytes = self._largest = 0
        self._changed = threading.Condition()
        self._planned: OrderedDict[SlotKey, None] = OrderedDict()
        self._ready: OrderedDict[SlotKey, Drawn] = OrderedDict()
        self._drawing: SlotKey | None = None
        self._closed = False
        self.counts = NoiseCounts()
        self._thread = threading.Thread(target=self._work, name="rag-audit-noise", daemon=True)
        self._thread.start()

    def prepare(self, slot: SlotKey) -> None:
        """Plan the draws of a slot and the ones after it, before its account's first query."""
        with self._changed:
            self._plan(slot, range(self._depth))

    def get(self, slot: SlotKey, *, follow: bool = True) -> Drawn:
        """Return the slot's noise, and plan the draws of the account's next slots.

        :param follow: whether these are planned now, or by the caller (`follow`) once the query is answered: a draw
            runs on all threads, the query's too
        :raises WindowStateError: the pool is closed
        """
        with self._changed:
            if self._closed:
                raise WindowStateError("the noise pool is closed", field="window")
            late = slot in self._planned or slot == self._drawing
            self._planned.pop(slot, None)
            self._changed.wait_for(lambda: self._drawing != slot)
            noise = self._taken(slot)
            if late:
                self.counts.behind += 1
            elif noise is None:
                self.counts.cold += 1
            else:
                self.counts.ready += 1
            behind = self.counts.behind
            if follow:
                self._plan(slot, range(1, self._depth + 1))
        if late and behind & (behind - 1) == 0:
            log.warning("noise falls behind: %d slots were requested before they were drawn", behind)
        return self._draw(slot) if noise is None else noise

    @property
    def max_bytes(self) -> int:
        """Maximum total bytes of the drawn slots; the oldest are dropped first. Noise takes 4 bytes per position,
        Bernoulli bits one. A single slot is stored whatever its size. The value may be set at any time."""
        return self._max_bytes

    @max_bytes.setter
    def max_bytes(self, value: int) -> None:
        with self._changed:
            self._max_bytes = value
            self._shrink()

    @property
    def stored_bytes(self) -> int:
        """The bytes that drawn slots take at the moment."""
        return self._bytes

    def follow(self, slot: SlotKey) -> None:
        """Plan the draws of the account's slots after this one."""
        with self._changed:
            self._plan(slot, range(1, self._depth + 1))

    def close(self) -> None:
        """Stop the thread after the draw in progress and forget all drawn noise."""
        with self._changed:
            self._closed = True
            self._planned.clear()
            self._ready.clear()
            self._bytes = 0
            self._changed.notify_all()
        self._thread.join()

    def _plan(self, slot: SlotKey, steps: range) -> None:
        for step in steps:
            later = slot.shifted(step)
            known = later in self._planned or later in self._ready or later == self._drawing
            if later.i <= self._limit and not known and not self._closed:
                self._planned[later] = None
        while len(self._planned) > self._most():
            self._planned.popitem(last=False)
        self._changed.notify_all()

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._planned or self._closed)
                if self._closed:
                    return
                slot, _ = self._planned.popitem(last=False)
                self._drawing = slot
            noise: Drawn | None = None
            try:
                noise = self._draw(slot)
            except Exception:  # `get` draws the slot a second time and raises the error to its caller
                log.exception("the noise of a later slot could not be drawn")
            with self._changed:
                self._drawing = None
                if noise is not None and not self._closed:
                    self._ready[slot] = noise
                    self._bytes += noise.nbytes
                    self._largest = max(self._largest, noise.nbytes)
                    self._shrink()
                self._changed.notify_all()

    def _taken(self, slot: SlotKey) -> Drawn | None:
        noise = self._ready.pop(slot, None)
        if noise is not None:
            self._bytes -= noise.nbytes
        return noise

    def _most(self) -> int:
        """Maximum number of stored slots. Drawing more would displace other slots and waste time."""
        fitting = self._max_bytes // self._largest if self._largest else self._max_ready
        return max(1, min(self._max_ready, fitting))

    def _shrink(self) -> None:
        while len(self._ready) > self._max_ready or (len(self._ready) > 1 and self._bytes > self._max_bytes):
            self._taken(next(iter(self._ready)))
