"""The columns that the proofs of a tenant's records refer to in addition to its index.

A sampled tenant commits to its sampled positions, and proves them, after the beacon is drawn. The bits follow from seed
and beacon. The blindings of their commitment do not, and every record's proof needs them. The commitment is therefore
stored with its proof before the ledger names it, and an interrupted call continues with the stored commitment.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import cast

import numpy as np

from rag_audit._internal.canonical import Json, digest_hex, jcs, read_bytes, read_json, sha256
from rag_audit._internal.durable import PRIVATE_MODE, replace_file
from rag_audit._internal.errors import StoreError, WindowStateError, WitnessError
from rag_audit._internal.sealed import seal, unseal
from rag_audit.attest.context import Context, column_bits, drawn_bits
from rag_audit.attest.publishing import MAX_PROOF_BYTES, Publisher
from rag_audit.commit.tables import ListedRows, WindowTable, load_table, store_table
from rag_audit.mechanisms.base import SAMPLE
from rag_audit.models.records import ColumnEntry
from rag_audit.proofs.statements import COLUMNS
from rag_audit.proofs.statements.column import ColumnPublic
from rag_audit.proofs.statements.document_table import DocumentTablePublic
from rag_audit.proofs.statements.private import (
    ColumnPrivate,
    CommittedColumn,
    CommittedTable,
    DocumentTablePrivate,
)
from rag_audit.proofs.statements.tenant import ColumnCommitment, TableCommitment, TenantPublic
from rag_audit.retrieval.engine import Int8Array
from rag_audit.retrieval.serving.pooled_listing import TableRows, positions_in_rows

MAX_COLUMN_BYTES = 1 << 26
_LENGTH = 8
_DIGEST = 32


class SampleStore:
    """The columns that one window commits to for its tenants. Safe to use from several threads."""

    def __init__(self, context: Context, publisher: Publisher) -> None:
        self._context = context
        self._publisher = publisher
        self._lock = threading.Lock()
        self._locks: dict[tuple[str, str], threading.Lock] = {}
        self._bits: dict[str, dict[str, Int8Array]] = {}
        self._opened: dict[tuple[str, str], CommittedColumn] = {}
        self._proved: dict[str, WindowTable] = {}
        self._rows: dict[str, TableRows] = {}
        self._tables: dict[str, TableCommitment] = {}

    def _names(self, tenant: str) -> tuple[str, ...]:
        return self._context.mechanism(tenant).columns

    def complete(self, tenant: str) -> bool:
        """Whether the ledger names every column of the tenant."""
        return all((tenant, name) in self._context.state.columns for name in self._names(tenant))

    def bits(self, tenant: str) -> Mapping[str, Int8Array]:
        """The columns of a tenant by name, each of shape (capacity,), 0 or 1.

        :raises WindowStateError: the window's beacon is not drawn yet
        """
        with self._lock:
            if tenant not in self._bits:
                self._bits[tenant] = {
                    name: column_bits(self._context.secrets, self._stated(tenant, name), self._table(tenant))
                    for name in self._names(tenant)
                }
            return self._bits[tenant]

    def _stated(self, tenant: str, name: str) -> ColumnPublic:
        """The public values of a column.

        :raises WindowStateError: the window's beacon is not drawn yet
        """
        context = self._context
        return COLUMNS[name](
            context.public(tenant), context.policy, header=context.header, beacon=self._beacon()
        )

    def _table(self, tenant: str) -> WindowTable | None:
        """The tenant's document table, if it has one."""
        return self._context.tenant(tenant).table

    def public(self, tenant: str) -> TenantPublic:
        """The tenant's published values, with the commitments to its columns.

        :raises StoreError: the commitment that the ledger names is lost
        """
        columns = {name: self._column(tenant, name).commitment for name in self._names(tenant)}
        if self._context.mechanism(tenant).pools:
            columns[SAMPLE] = self._with_table(tenant, columns[SAMPLE])
        return replace(self._context.public(tenant), columns=columns)

    def _with_table(self, tenant: str, sample: ColumnCommitment) -> TableCommitment:
        """The commitment to a sample by document with the columns that records of pooled listing use."""
        with self._lock:
            known = self._tables.get(tenant)
        if known is None:
            system, table = self._context.system(tenant), self.proved_table(tenant)
            assert table.proved is not None
            constants = self._context.public(tenant).constants
            known = system.table_commitment(constants, sample, table.commit(system), table.proved[0])
            with self._lock:
                self._tables[tenant] = known
        return known

    def proved_table(self, tenant: str) -> WindowTable:
        """The tenant's document table with its bits and the columns that its proof yields, once the ledger names the
        sample.

        :raises StoreError: the table is missing, was altered, or has no bits
        """
        with self._lock:
            known = self._proved.get(tenant)
        if known is None:
            known = load_table(self._context.layout.folder, tenant)
            if known.proved is None:
                raise StoreError("the document table has no bits although its sample is proved",
                                 field=str(self._context.layout.table(tenant)))  # fmt: skip
            with self._lock:
                self._proved[tenant] = known
        return known

    def end(self, tenant: str, listed: ListedRows) -> None:
        """Store the listed rows at the end of the window, for a tenant with pooled listing."""
        table = replace(self.proved_table(tenant), ended=listed)
        store_table(self._context.layout.folder, tenant, table)
        with self._lock:
            self._proved[tenant] = table

    def rows(self, tenant: str) -> TableRows:
        """The document table of a tenant with pooled listing, as answers use it."""
        with self._lock:
            known = self._rows.get(tenant)
        if known is None:
            table = self.proved_table(tenant)
            kept = np.array([bool(row.sampled) for row in table.table.rows], np.int8)
            known = TableRows(positions_in_rows(table.row_of_position, len(kept)), kept)
            with self._lock:
                self._rows[tenant] = known
        return known

    def opening(self, tenant: str) -> tuple[bytes, bytes] | None:
        """The sample's part in a record's proof: one byte for each position, and the opening of the sample's
        commitment.

        :raises StoreError: the opening of the commitment in the ledger is lost
        """
        bits = self.bits(tenant).get(SAMPLE)
        return None if bits is None else (bits.tobytes(), self._column(tenant, SAMPLE).opening)

    def commit(self, *, low_memory: bool = False) -> int:
        """Commit to every column that the ledger does not name yet, and append the entries.

        :returns: how many were appended now
        :raises WindowStateError: the window's beacon is not drawn yet
        """
        return sum(self.ensure(part.tenant, low_memory=low_memory) for part in self._context.policy.tenants)

    def ensure(self, tenant: str, *, low_memory: bool = False) -> int:
        """Append the entries of a tenant's columns that the ledger lacks, and return how many were appended."""
        return sum(self._ensure(tenant, name, low_memory=low_memory) for name in self._names(tenant))

    def _ensure(self, tenant: str, name: str, *, low_memory: bool) -> bool:
        state = self._context.state
        if (tenant, name) in state.columns:
            return False
        with self._lock:
            lock = self._locks.setdefault((tenant, name), threading.Lock())
        # The thread announces the entry before the proof, so that a window trailer waits for it.
        with lock, state.column_of(tenant, name) as due:
            if due:
                column = self._stored(tenant, name) or self._prove(tenant, name, low_memory=low_memory)
                window, digest = self._context.header.window, column.commitment.digest
                carried = self._carried(tenant)
                state.append(
                    ColumnEntry(
                        type=name,
                        v=1,
                        seq=1,
                        window=window,
                        tenant=tenant,
                        commitment=digest,
                        carried=carried,
                    )
                )
            return due

    def _carried(self, tenant: str) -> str | None:
        """The digest of the columns that the next window's table continues, from the stored table. None without a
        document table."""
        if self._table(tenant) is None:
            return None
        proved = self.proved_table(tenant).proved
        assert proved is not None
        return proved[0].digest

    def _prove(self, tenant: str, name: str, *, low_memory: bool) -> CommittedColumn:
        context, secrets = self._context, self._context.secrets
        stated, table, system = self._stated(tenant, name), self._table(tenant), context.system(tenant)
        private: ColumnPrivate | DocumentTablePrivate
        if table is None:
            private = ColumnPrivate(secrets.s0, secrets.s1, secrets.column_salt(name, tenant), low_memory)
        else:
            assert isinstance(stated, DocumentTablePublic)  # the window header has a table
            before = table.previous
            stated = replace(
                stated,
                table=table.commit(system),
                previous=None if before is None else before.commitment,
                listed=None if before is None or before.listed is None else before.listed.commitment,
            )
            private = table.proof_inputs(secrets.s0, secrets.s1, low_memory=low_memory)
        job = system.column(name).prove(stated, private)
        self._publisher.fix_keys(job.keys)
        try:
            result = job.run()
        except WitnessError:
            if table is None:
                raise
            # The prover names a row, and row numbers are secret: no log may have them.
            raise WitnessError(
                "the document table has no valid proof",
                field=f"{name} of {tenant}",
                hint="restore the table of the window before from a copy of its folder",
            ) from None
        if table is not None:
            # Before the proof: the next window needs the columns of the one proof that the ledger relies on.
            assert isinstance(result, CommittedTable)
            store_table(context.layout.folder, tenant, table.after_proof(drawn_bits(secrets, stated), result))
        replace_file(context.layout.column_proof(name, tenant), jcs(result.proof))
        digest, points = result.commitment.digest, result.commitment.points
        proved = bytes.fromhex(digest_hex(result.proof))
        plain = proved + len(points).to_bytes(_LENGTH, "big") + points + result.opening
        blob = seal(plain, secrets.retention_key, self._associated(tenant, name, digest))
        replace_file(context.layout.column(name, tenant), digest.encode() + blob, mode=PRIVATE_MODE)
        return result

    def _column(self, tenant: str, name: str) -> CommittedColumn:
        with self._lock:
            result = self._opened.get((tenant, name))
        if result is not None:
            return result
        entry = self._context.state.columns.get((tenant, name))
        if entry is None:
            raise WindowStateError(f"the tenant's {name} positions are not committed to yet", field=tenant)
        stored = self._stored(tenant, name)
        if stored is None or stored.commitment.digest != entry.commitment:
            path = self._context.layout.column(name, tenant)
            raise StoreError(f"the opening of the {name} positions that the ledger names is lost",
                             field=str(path), expected=entry.commitment)  # fmt: skip
        with self._lock:
            self._opened[tenant, name] = stored
        return stored

    def _stored(self, tenant: str, name: str) -> CommittedColumn | None:
        """The complete column that an earlier call stored, or None."""
        context = self._context
        path, proof_path = context.layout.column(name, tenant), context.layout.column_proof(name, tenant)
        if not path.exists() or not proof_path.exists():
            return None
        blob = read_bytes(path, max_bytes=MAX_COLUMN_BYTES)
        digest = blob[:64].decode("ascii", errors="replace")
        associated = self._associated(tenant, name, digest)
        plain = unseal(blob[64:], context.secrets.retention_key, associated, what=f"{name} positions")
        proof = cast("dict[str, Json]", read_json(proof_path, max_bytes=MAX_PROOF_BYTES))
        if digest_hex(proof) != plain[:_DIGEST].hex():
            raise StoreError(f"the stored proof of the {name} positions is another one", field=str(proof_path),
                             expected=plain[:_DIGEST].hex(), actual=digest_hex(proof))  # fmt: skip
        start = _DIGEST + _LENGTH
        end = start + int.from_bytes(plain[_DIGEST:start], "big")
        return CommittedColumn(ColumnCommitment(digest, plain[start:end]), proof, plain[end:])

    def _beacon(self) -> bytes:
        beacon = self._context.state.beacons.get(0)
        if beacon is None:
            raise WindowStateError("the window has no beacon yet", field="window",
                                   hint="`rag-audit provider status` names the missing witness")  # fmt: skip
        return beacon

    def _associated(self, tenant: str, name: str, digest: str) -> bytes:
        named: Json = {"header": self._context.header_digest, "tenant": tenant, "commitment": digest}
        return sha256(f"rag-audit/{name}-opening/v1".encode() + jcs(named))
