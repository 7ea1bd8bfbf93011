"""What the accounts of listing tenants hold, as it follows from the positions of their records.

Nothing is stored for it: before record i an account holds the union of the lists of its records 1 .. i - 1.
"""

from __future__ import annotations

from collections.abc import Sequence

from rag_audit._internal.errors import StoreError
from rag_audit.attest.context import Context
from rag_audit.models.publics import SlotKey
from rag_audit.models.records import ListingRecord
from rag_audit.proofs.interface import ListingPrivate
from rag_audit.retrieval.engine import Int8Array
from rag_audit.retrieval.listing import HeldBits


class Holder:
    """What one window's accounts hold. Safe to use from several threads."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._bits = HeldBits()

    def before(self, slot: SlotKey) -> Int8Array:
        """What the account holds before its record of a slot, shape (capacity,), 0 or 1.

        :raises StoreError: an earlier record's retained data cannot be opened
        """
        capacity = self._context.commitment.tenants[slot.tenant].index.capacity

        def listed(i: int) -> Sequence[int]:
            return self._context.retained(self._record(SlotKey(slot.tenant, slot.account, i))).positions

        return self._bits.before(slot.account, slot.i, capacity, listed)

    def private(self, slot: SlotKey, hq: str) -> ListingPrivate:
        """What the proof of an account's record needs, beside its positions.

        :param hq: the record's own
        """
        return ListingPrivate(
            held=self.before(slot).tobytes(),
            before=None if slot.i == 1 else self._secret(slot.ahead(-1), self._record(slot.ahead(-1)).hq),
            after=self._secret(slot, hq),
        )

    def after(self, slot: SlotKey, hq: str, listed: tuple[int, ...]) -> str:
        """The commitment to what the account holds after a record, which the record names.

        :param listed: the record's positions
        """
        bits = self.before(slot).copy()
        bits[list(listed)] = 1
        context = self._context
        secret = self._secret(slot, hq)
        return context.system(slot.tenant).hold(context.public(slot.tenant).constants, bits.tobytes(), secret)

    def _secret(self, slot: SlotKey, hq: str) -> bytes:
        """The secret of the commitment after a slot's record."""
        before = None if slot.i == 1 else self._record(slot.ahead(-1)).held
        return self._context.secrets.held_secret(slot, hq, before)

    def _record(self, slot: SlotKey) -> ListingRecord:
        record = self._context.state.by_slot.get((slot.account, slot.i))
        if not isinstance(record, ListingRecord):
            raise StoreError("a record of the account is missing", field=f"{slot.account}, i = {slot.i}")
        return record
