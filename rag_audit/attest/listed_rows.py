"""The sets of listed rows of one window's tenants with pooled listing.

A tenant has one set for all of its accounts. Each record commits to the set after it, and starts from the set of the
record before it in the ledger. The first record starts from the set at the end of the window before, in the rows that
this window's table carries. The sets are not stored: each record's retained data name the rows that the record listed
for the first time, and a set is the union of these rows over the records before it. The set at the end of the window
is stored with the document table before the window trailer, for the next window.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from contextlib import AbstractContextManager

import numpy as np

from rag_audit._internal.errors import StoreError
from rag_audit.attest.columns import SampleStore
from rag_audit.attest.context import Context
from rag_audit.commit.tables import ListedRows
from rag_audit.models.records import QueryRecord, SlotKey
from rag_audit.proofs.statements.private import PooledListingPrivate
from rag_audit.retrieval.engine import Int8Array


class ListedRowSets:
    """The sets of one window. Safe to use from several threads.

    For each tenant the object stores the set before the latest requested record, so that consecutive records cost
    little.
    """

    def __init__(self, context: Context, samples: SampleStore) -> None:
        self._context = context
        self._samples = samples
        self._lock = threading.Lock()
        self._turns: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        self._latest: dict[str, tuple[int, Int8Array]] = {}

    def turn(self, tenant: str) -> AbstractContextManager[object]:
        """The tenant's turn, which one thread has at a time: from the choice of the set that a batch starts from until
        its records are durable."""
        with self._lock:
            return self._turns[tenant]

    def start(self, tenant: str) -> tuple[str | None, Int8Array]:
        """The set that the tenant's next record starts from: the commitment in the ledger's latest record of the
        tenant (None before its first in the window), and the listed rows, shape (rows,), 0 or 1.

        The caller has the tenant's turn.
        """
        records = self._context.state.of_tenant[tenant]
        return records[-1].listed_rows if records else None, self.before(tenant, len(records))

    def before(self, tenant: str, place: int) -> Int8Array:
        """The listed rows before a record of the tenant, shape (rows,), 0 or 1.

        :param place: the number of the tenant's records before it in the ledger
        :raises StoreError: an earlier record's retained data cannot be decrypted
        """
        context = self._context
        with self._lock:
            at, bits = self._latest.get(tenant, (0, np.zeros(0, np.int8)))
        known = 0 < at <= place
        result = bits.copy() if known else self._samples.proved_table(tenant).listed_at_first()
        for record in context.state.of_tenant[tenant][at if known else 0 : place]:
            rows = context.retained(record).listed
            if rows is None:
                raise StoreError("the rows that a record listed are missing", field=f"record {record.seq}")
            result[list(rows)] = 1
        with self._lock:
            self._latest[tenant] = place, result.copy()
        return result

    def commit(self, slot: SlotKey, hq: str, before: str | None, listed: Int8Array) -> str:
        """The commitment to the listed rows after a record.

        :param before: the commitment in the tenant's preceding record; None before its first
        :param listed: the rows, shape (rows,), 0 or 1
        """
        context = self._context
        secret = context.secrets.listed_rows_secret(slot, hq, before)
        constants = context.public(slot.tenant).constants
        return context.system(slot.tenant).commit_listed(constants, listed.tobytes(), secret)

    def private(self, record: QueryRecord) -> PooledListingPrivate | None:
        """The private inputs for the proof of a record, which may be a draft. None if its tenant does not pool."""
        context, state = self._context, self._context.state
        if not context.mechanism(record.tenant).pools:
            return None
        place = state.place(record)
        preceding = state.of_tenant[record.tenant][place - 1] if place else None
        table = self._samples.proved_table(record.tenant)
        assert table.proved is not None
        return PooledListingPrivate(
            table_key=table.key,
            row_of_position=table.row_of_position.astype("<i4").tobytes(),
            kept=bytes(bool(row.sampled) for row in table.table.rows),
            carried_opening=table.proved[1],
            listed=self.before(record.tenant, place).tobytes(),
            before=None if preceding is None else self._secret(preceding),
            after=self._secret(record),
        )

    def end(self) -> None:
        """Store each tenant's set at the end of the window, once no record can follow.

        A window without a beacon has no bits and no set. A call after the window trailer is not necessary: the sets
        are durable before the trailer is.
        """
        context = self._context
        for part in context.policy.tenants:
            if context.mechanism(part.tenant).pools and self._samples.complete(part.tenant):
                self._samples.end(part.tenant, self._at_the_end(part.tenant))

    def _at_the_end(self, tenant: str) -> ListedRows:
        records, table = self._context.state.of_tenant[tenant], self._samples.proved_table(tenant)
        bits = self.before(tenant, len(records)).tobytes()
        if not records:
            assert table.proved is not None
            opening = table.proved[1]
            return ListedRows(bits, opening[len(opening) // 3 * 2 :], None)
        constants = self._context.public(tenant).constants
        system = self._context.system(tenant)
        commitment, opening = system.open_listed(constants, bits, self._secret(records[-1]))
        # The next window compares the commitment with the ledger (`commit.carrying`).
        return ListedRows(bits, opening, commitment)

    def _secret(self, record: QueryRecord) -> bytes:
        """The secret of the commitment after a record."""
        preceding = self._context.state.preceding(record)
        before = None if preceding is None else preceding.listed_rows
        slot = SlotKey(record.tenant, record.account, record.i)
        return self._context.secrets.listed_rows_secret(slot, record.hq, before)
