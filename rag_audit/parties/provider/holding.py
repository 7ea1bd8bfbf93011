"""What the accounts of listing tenants hold, as it follows from the positions of their records.

Nothing is stored for it: before record i an account holds the union of the lists of its records 1 .. i - 1.
"""

from __future__ import annotations

import threading

import numpy as np
import numpy.typing as npt

from rag_audit.errors import StoreError
from rag_audit.formats.publics import SlotKey
from rag_audit.index.engine import Int8Array
from rag_audit.parties.provider.context import Context
from rag_audit.proofs.interface import ListingPrivate


class Holder:
    """What one window's accounts hold. Safe to use from several threads.

    For each account the bits before its latest record asked for are kept, packed, so that records in their order cost a
    list each.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._lock = threading.Lock()
        self._latest: dict[str, tuple[int, npt.NDArray[np.uint8]]] = {}

    def before(self, slot: SlotKey) -> Int8Array:
        """What the account holds before its record of a slot, shape (capacity,), 0 or 1.

        :raises StoreError: an earlier record's retained data cannot be opened
        """
        capacity = self._context.commitment.tenants[slot.tenant].index.capacity
        with self._lock:
            at, packed = self._latest.get(slot.account, (1, np.zeros(0, np.uint8)))
        bits = np.zeros(capacity, np.int8)
        if at > slot.i:
            at = 1
        elif packed.size:
            bits = np.unpackbits(packed, count=capacity).view(np.int8)
        for i in range(at, slot.i):
            bits[list(self._listed(slot.account, i))] = 1
        with self._lock:
            self._latest[slot.account] = (slot.i, np.packbits(bits.view(np.uint8)))
        return bits

    def private(self, slot: SlotKey, hq: str) -> ListingPrivate:
        """What the proof of an account's record needs, beside its positions.

        :param hq: the record's own
        """
        context = self._context
        earlier = context.state.by_slot.get((slot.account, slot.i - 1))
        if earlier is None and slot.i > 1:
            raise StoreError(
                "the account's record before this one is missing", field=f"{slot.account}, i = {slot.i}"
            )
        secrets = context.secrets
        return ListingPrivate(
            held=self.before(slot).tobytes(),
            before=None if earlier is None else secrets.held_secret(slot.ahead(-1), earlier.hq),
            after=secrets.held_secret(slot, hq),
        )

    def after(self, slot: SlotKey, hq: str, listed: tuple[int, ...]) -> str:
        """The commitment to what the account holds after a record, which the record names.

        :param listed: the record's positions
        """
        bits = self.before(slot).copy()
        bits[list(listed)] = 1
        context = self._context
        secret = context.secrets.held_secret(slot, hq)
        return context.system(slot.tenant).hold(context.public(slot.tenant).constants, bits.tobytes(), secret)

    def _listed(self, account: str, i: int) -> tuple[int, ...]:
        record = self._context.state.by_slot.get((account, i))
        if record is None:
            raise StoreError("a record of the account is missing", field=f"{account}, i = {i}")
        return self._context.retained(record).positions
