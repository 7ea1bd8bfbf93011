"""The context that every part of a provider's window uses, and the key of a slot's draw."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from rag_audit._internal.canonical import digest_hex
from rag_audit._internal.errors import WindowStateError
from rag_audit.attest.query import Retained, open_retained, retained_context
from rag_audit.attest.state import LedgerState
from rag_audit.commit.commitment import Commitment, CommittedTenant, WindowSecrets
from rag_audit.commit.tables import WindowTable
from rag_audit.log.keys import VerifierKey
from rag_audit.log.signing import SigningKey
from rag_audit.mechanisms.base import Mechanism
from rag_audit.models.constants import STATEMENTS
from rag_audit.models.layout import Layout
from rag_audit.models.policy import Policy
from rag_audit.models.records import QueryRecord, SlotKey, WindowHeader
from rag_audit.proofs.proving import Backend, backend
from rag_audit.proofs.statements.column import ColumnPublic
from rag_audit.proofs.statements.document_table import DocumentTablePublic
from rag_audit.proofs.statements.tenant import TenantPublic, tenant_public
from rag_audit.relation.field import digest_to_field
from rag_audit.relation.native import slot_id
from rag_audit.relation.native_secrets import noise_key
from rag_audit.retrieval.embedders import Embedder
from rag_audit.retrieval.engine import Drawn, Int8Array, draw_bernoulli_bits
from rag_audit.retrieval.serving import Serving, serving


@dataclass(frozen=True)
class Context:
    """One window's commitment, folder, key and ledger.

    :param key: the key that signs checkpoints, receipts and refusals
    :param witnesses: the witnesses that the window waits for
    """

    layout: Layout
    key: SigningKey = field(repr=False)
    commitment: Commitment
    embedder: Embedder
    witnesses: tuple[VerifierKey, ...]
    state: LedgerState

    @property
    def header(self) -> WindowHeader:
        """The window header, entry 0 of the ledger."""
        return self.commitment.header

    @property
    def policy(self) -> Policy:
        """The window's policy."""
        return self.commitment.policy

    @property
    def secrets(self) -> WindowSecrets:
        """The window's secrets: seed, blindings and the retention key."""
        return self.commitment.secrets

    @cached_property
    def header_digest(self) -> str:
        """The digest of entry 0, which names the window."""
        return digest_hex(self.header.dump())

    def tenant(self, name: str) -> CommittedTenant:
        """A tenant's index and documents, with the secrets behind their commitments."""
        return self.commitment.tenants[name]

    def mechanism(self, name: str) -> Mechanism:
        """The mechanism that selects a tenant's documents."""
        return self.policy.mechanism_of(name)

    def system(self, tenant: str) -> Backend:
        """The proof system of a tenant."""
        part = self.policy.tenant(tenant)
        assert part is not None
        return backend(part.system)

    def statements(self, tenant: str) -> list[str]:
        """The statements that are proved about a tenant's records."""
        part = self.policy.tenant(tenant)
        assert part is not None
        return [name for name in STATEMENTS if name in part.circuits]

    @cached_property
    def _publics(self) -> dict[str, TenantPublic]:
        return {
            name: tenant_public(result.entry, policy=self.policy, manifest=self.commitment.manifest,
                                header_digest=self.header_digest, points=result.points, table=self.embedder.table)
            for name, result in self.commitment.tenants.items()
        }  # fmt: skip

    def public(self, tenant: str) -> TenantPublic:
        """The published values of a tenant."""
        return self._publics[tenant]

    def beacon(self, account: str) -> bytes:
        """The beacon value that the account's slots use.

        :raises WindowStateError: the value is not drawn yet
        """
        beacon = self.state.beacon(account)
        if beacon is None:
            raise WindowStateError("the account has no beacon yet", field=account)
        return beacon

    def serving(self, name: str) -> Serving:
        """The provider's part of a tenant's mechanism."""
        return serving(self.mechanism(name))

    def drawn(self, slot: SlotKey) -> Drawn:
        """The draw of a slot by its tenant's mechanism, shape (capacity,), a pure function of the slot.

        :raises WindowStateError: the slot's account has no beacon yet
        """
        kappa = slot_key(self.secrets, self.header.window, slot, self.beacon(slot.account))
        return self.serving(slot.tenant).draw(kappa, self.tenant(slot.tenant).index.capacity)

    def retained(self, record: QueryRecord) -> Retained:
        """The retained data of a record's query.

        :raises StoreError: the record has no retained data, or they cannot be decrypted
        """
        blob = self.state.store.private(record.seq)
        return open_retained(blob, self.secrets.retention_key, self.header_digest, record)

    def sealed_under(self, record: QueryRecord) -> bytes:
        """The associated data for encrypting a record's query."""
        return retained_context(self.header_digest, record.account, record.i)


def column_bits(
    window_secrets: WindowSecrets, column: ColumnPublic, table: WindowTable | None = None
) -> Int8Array:
    """The bits of a tenant's column, shape (capacity,), 0 or 1.

    :param column: the column's public values
    :param table: the tenant's document table, if it has one
    """
    bits = drawn_bits(window_secrets, column)
    return bits if table is None else table.sampled_positions(bits)


def drawn_bits(window_secrets: WindowSecrets, column: ColumnPublic) -> Int8Array:
    """The bits that a window draws for a tenant's column, 0 or 1 (docs/relation.md, "Coins"): shape (capacity,), or
    with a document table shape (drawn rows,).

    :param column: the column's public values
    """
    kappa = noise_key(window_secrets.s0, window_secrets.s1, column.beacon, column.slot)
    count = column.drawn if isinstance(column, DocumentTablePublic) else column.tenant.constants.capacity
    return draw_bernoulli_bits(kappa, count, column.bound)


def slot_key(window_secrets: WindowSecrets, window: str, slot: SlotKey, beacon: bytes) -> int:
    """kappa of a query's slot, the key for drawing its noise or its Bernoulli bits (docs/relation.md, "Noise").

    :param beacon: the beacon value that was drawn after the slot's account was committed
    """
    number = slot_id(window, slot.tenant, slot.account, slot.i)
    return noise_key(window_secrets.s0, window_secrets.s1, digest_to_field(beacon), number)
