"""An open window's ledger in the C2SP tlog-tiles layout, from memory and from the ledger's file."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from itertools import islice

from rag_audit.attest.window import Window
from rag_audit.log.merkle import root_of
from rag_audit.log.tiles import TILE_WIDTH, entries_path, tile_path

CHECKPOINT_S = 10.0
"""How often an open window signs a new checkpoint for its readers."""
MAX_LEVEL = 7
_PATH = re.compile(r"tile/([0-9]{1,2}|entries)/((?:x\d{3}/)*\d{3})(?:\.p/([0-9]{1,3}))?\Z")


class LiveLog:
    """The tiles of a window's ledger as far as it is durable. Safe to use from several threads.

    The checkpoint of a closed window is the published one with its cosignatures. Before that it is signed by the
    provider alone, for each reader the same, and anew at most every `CHECKPOINT_S`.
    """

    def __init__(self, window: Window, clock: Callable[[], float] = time.monotonic) -> None:
        self.window = window
        self._clock = clock
        self._lock = threading.Lock()
        self._roots: dict[tuple[int, int], bytes] = {}
        self._signed: tuple[float, bytes] | None = None

    def file(self, name: str) -> bytes | None:
        """The file of a name, or None if the log has none."""
        if name == "checkpoint":
            return self.checkpoint()
        found = _PATH.match(name)
        if found is None:
            return None
        kind, digits, part = found.groups()
        number, width = int(re.sub(r"[x/]", "", digits)), TILE_WIDTH if part is None else int(part)
        level = 0 if kind == "entries" else int(kind)
        named = entries_path(number, width) if kind == "entries" else tile_path(level, number, width)
        first, size = number * TILE_WIDTH, self.window.state.tree.size >> (8 * level)
        if named != name or level > MAX_LEVEL or not 1 <= width <= TILE_WIDTH or first + width > size:
            return None
        if kind == "entries":
            bodies = islice(self.window.state.store.entries(first), width)
            return b"".join(len(body).to_bytes(2, "big") + body for body in bodies)
        return b"".join(self._hashes(level, first, width))

    def checkpoint(self) -> bytes:
        """The signed checkpoint that is published now."""
        window = self.window
        if window.state.ended:
            return window.publisher.publish_checkpoint(len(window.state.entries)).encode()
        with self._lock:
            now = self._clock()
            if self._signed is None or now - self._signed[0] >= CHECKPOINT_S:
                self._signed = now, window.checkpoint().encode()
            return self._signed[1]

    def _hashes(self, level: int, first: int, count: int) -> list[bytes]:
        if level == 0:
            return self.window.state.tree.leaves(first, first + count)
        return [self._root(level, index) for index in range(first, first + count)]

    def _root(self, level: int, index: int) -> bytes:
        """The root of a full tile of the level below."""
        known = self._roots.get((level, index))
        if known is None:
            known = root_of(self._hashes(level - 1, index * TILE_WIDTH, TILE_WIDTH))
            self._roots[(level, index)] = known
        return known
