"""What is drawn from the window's seed: a sampled tenant's kept positions, and a slot's noise or coins."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from rag_audit._internal.canonical import Json, jcs, sha256
from rag_audit._internal.errors import SchemaError
from rag_audit.models.policy import Policy
from rag_audit.models.records import Opening
from rag_audit.proofs.statements.tenant import KeptCommitment, PublicValues, SlotPublic, TenantPublic
from rag_audit.relation.field import digest_to_field
from rag_audit.relation.native import sampling_slot


@dataclass(frozen=True)
class KeptStatement(PublicValues):
    """The public values of the proof that a tenant's kept positions are the coins of the window's seed.

    :param ctx: digest of opening and tenant, to which it binds the proof
    :param c_seed: commitment to the window's seed
    :param beacon: f(value of the window's beacon, entry 1 or what stands for it)
    :param slot: the tenant's sampling slot
    :param keep: Pi: a position is kept if its draw is below it
    :param c_kept: the commitment to the kept positions
    """

    ctx: int
    c_seed: int
    beacon: int
    slot: int
    keep: int
    c_kept: int


@dataclass(frozen=True)
class KeptPublic(SlotPublic):
    """The public values of a tenant's kept positions, which exist once the window's beacon is drawn; `slot` is the
    tenant's sampling slot.

    :param keep: Pi: a position is kept if its draw is below it
    """

    keep: int

    @property
    def context(self) -> bytes:
        """32 bytes that bind the proof to opening and tenant."""
        return sha256(
            b"rag-audit/kept/v1" + jcs({"opening": self.tenant.opening, "tenant": self.tenant.tenant})
        )

    def statement(self, c_kept: int) -> KeptStatement:
        """The statement that a commitment holds these positions."""
        return KeptStatement(
            digest_to_field(self.context), self.c_seed, self.beacon, self.slot, self.keep, c_kept
        )


@dataclass(frozen=True)
class KeptColumn:
    """A tenant's kept positions as they are proved once a window.

    :param commitment: the commitment, whose digest the ledger gets
    :param proof: the proof as files carry it
    :param opening: the secret salt or blindings of the commitment, which must outlive the window's proving: the ledger
        names one commitment, and no other has this opening
    """

    commitment: KeptCommitment
    proof: dict[str, Json]
    opening: bytes = field(repr=False)


@dataclass(frozen=True)
class OpenedKept:
    """A tenant's kept positions as a verifier accepted them.

    :param commitment: the commitment that the ledger names, with its points
    :param setup: the kind of setup of the key; None where no setup has secrets
    """

    commitment: KeptCommitment
    setup: Literal["unsafe", "ceremony"] | None


@dataclass(frozen=True)
class NoiseCertificate:
    """A slot's noise certificate. `blindings` stay secret until the slot's query is proved; if they are lost, a new
    certificate of the same noise replaces it.

    :param proof: the proof of the noise
    :param commitments: commitments to the noise of all positions, 32 bytes a point
    :param blindings: blindings of these commitments, 32 bytes each
    """

    proof: bytes
    commitments: bytes
    blindings: bytes = field(repr=False)


def kept_public(tenant: TenantPublic, policy: Policy, *, opening: Opening, beacon: bytes) -> KeptPublic:
    """The public values of a sampled tenant's kept positions, from published entries only.

    :param beacon: the window's beacon value, which tenants with accounts that enrol later use too
    :raises SchemaError: the tenant keeps every position
    """
    keep = policy.mechanism_of(tenant.tenant).keep
    if keep is None:
        raise SchemaError("the tenant is not sampled", field="kept", found=tenant.tenant)
    return KeptPublic(
        tenant=tenant,
        c_seed=int(opening.c_seed, 16),
        beacon=digest_to_field(beacon),
        slot=sampling_slot(opening.window, tenant.tenant),
        keep=keep,
    )
