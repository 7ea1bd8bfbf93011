"""Groth16 as a proof system of windows: the circuits for a tenant's constants, their statements, jobs and keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from rag_audit import _native
from rag_audit._internal.canonical import Json
from rag_audit._internal.errors import PolicyError, RagAuditError, WitnessError
from rag_audit.models.constants import KEPT, Constants
from rag_audit.proofs.backends.groth16.coins import KeptInstance
from rag_audit.proofs.backends.groth16.embed import EmbedJob, table_tree
from rag_audit.proofs.backends.groth16.instance import EmbedInstance, Instance
from rag_audit.proofs.backends.groth16.job import ENGINES, ProofJob, parse_proof, refusals
from rag_audit.proofs.backends.groth16.kept import KeptJob, kept_positions
from rag_audit.proofs.backends.groth16.keys import VerificationKey, proving_key
from rag_audit.proofs.backends.groth16.listing import ListingJob, ListingManyJob, ListingQuery
from rag_audit.proofs.backends.groth16.many import RetrieveManyJob
from rag_audit.proofs.backends.groth16.shared import (
    Shared,
    listing_instance,
    many_instance,
    pinned_key,
    retrieve_instance,
)
from rag_audit.proofs.backends.groth16.statements import ListingStatement
from rag_audit.proofs.interface import IndexCommitment, Job, OpenedKey, Pins, ProofSystem, RecordJob
from rag_audit.proofs.statements.embed import EmbedStatement
from rag_audit.proofs.statements.retrieve import ListedStatement, RecordPrivate, RecordPublic, Statement
from rag_audit.proofs.statements.sample import KeptColumn, KeptPublic, OpenedKept
from rag_audit.proofs.statements.tenant import KeptCommitment, PublicValues, SlotPublic, TenantPublic
from rag_audit.relation.field import digest_to_field, from_hex, to_hex
from rag_audit.relation.native import held_commitment

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

TABLE_ARTEFACT = "table-root"


def instances(constants: Constants) -> dict[str, Instance]:
    """The circuits for a tenant's constants, by statement.

    :raises PolicyError: `retrieve` cannot be built for the constants
    """
    made: dict[str, Instance] = {
        "retrieve": listing_instance(constants) if constants.listing else retrieve_instance(constants)
    }
    if constants.sampled:
        made[KEPT] = KeptInstance(constants.capacity)
    # There is no such circuit for other embedders and limits, whose A1 is not proved.
    with suppress(PolicyError):
        made["embed"] = _embed(constants)
    return made


class Groth16:
    """The proof system of Groth16 over the circuits `retrieve`, `embed` and `kept` (`ProofSystem`)."""

    TABLE_ARTEFACT = TABLE_ARTEFACT
    ENGINES: tuple[str, ...] = ENGINES

    def check_constants(self, constants: Constants) -> None:
        """See `ProofSystem.check_constants`."""
        if constants.listing:
            listing_instance(constants)
        else:
            retrieve_instance(constants)

    def commit_index(
        self,
        rows: npt.NDArray[np.int8],
        blinding: bytes,
        path: Path,
        *,
        progress: Callable[[int, int], None] | None = None,
    ) -> IndexCommitment:
        """See `ProofSystem.commit_index`: one hash, which is not kept."""
        return IndexCommitment(_native.index_commitment(blinding, rows.tobytes(), rows.shape[1]))

    def circuits(self, constants: Constants) -> dict[str, str]:
        """See `ProofSystem.circuits`."""
        return {name: instance.digest() for name, instance in instances(constants).items()}

    def statement(self, name: str, record: RecordPublic) -> PublicValues:
        """See `ProofSystem.statement`."""
        if name == "embed":
            return _embed_statement(record)
        return _listing_statement(record) if record.tenant.constants.listing else _retrieve_statement(record)

    def record_job(self, name: str, record: RecordPublic, private: RecordPrivate) -> RecordJob:
        """See `ProofSystem.record_job`."""
        constants = record.tenant.constants
        if name == "embed":
            return EmbedJob.of(
                _embed(constants),
                _embed_statement(record),
                table_tree(record.tenant.static_table()),
                private.tokens,
                salt_q=private.salt_q,
                salt_c=private.salt_c,
            )
        if constants.listing:
            return _listing_job(record, private)
        # Without noise nothing depends on the seed, which a prover on another machine then never sees.
        s0, s1 = (private.s0, private.s1) if constants.gains else (None, None)
        kept = None
        if constants.sampled:
            if private.kept is None:
                raise WitnessError("the tenant is sampled, and its kept positions are missing", field="kept")
            bits, opening = private.kept
            kept = (bits, int.from_bytes(opening, "big"))
        return ProofJob(
            instance=retrieve_instance(constants),
            statement=_retrieve_statement(record),
            s0=s0,
            s1=s1,
            index_salt=private.index_salt,
            rows=private.rows(),
            vector=private.vector,
            salt_c=private.salt_c,
            salt_k=private.salt_k,
            positions=private.positions,
            kept=kept,
        )

    def certificate_job(self, slot: SlotPublic, s0: int, s1: int, *, low_memory: bool = False) -> None:
        """See `ProofSystem.certificate_job`: there is none."""

    def keyed(self, job: RecordJob) -> tuple[RecordJob, dict[str, str]]:
        """See `ProofSystem.keyed`."""
        # This system makes no other.
        own = cast("ProofJob | EmbedJob | RetrieveManyJob | ListingJob | ListingManyJob", job)
        keys = proving_key(own.instance)
        return replace(own, vk=keys.vk_digest), {own.instance.digest(): keys.vk_digest}

    def hold(self, constants: Constants, held: bytes, secret: bytes) -> str:
        """See `ProofSystem.hold`."""
        positions = [p for p, bit in enumerate(held) if bit]
        return to_hex(held_commitment(digest_to_field(secret), positions, constants.capacity))

    def kept_job(
        self, kept: KeptPublic, s0: int, s1: int, salt: bytes, *, low_memory: bool = False
    ) -> Job[KeptColumn]:
        """See `ProofSystem.kept_job`."""
        instance = KeptInstance(kept.tenant.constants.capacity)
        number = digest_to_field(salt)
        _, c_kept = kept_positions(
            instance.capacity, s0=s0, s1=s1, beacon=kept.beacon, slot=kept.slot, keep=kept.keep, salt=number
        )
        return KeptJob(instance, kept.statement(c_kept), s0, s1, number)

    def keyed_kept(self, job: Job[KeptColumn]) -> tuple[Job[KeptColumn], dict[str, str]]:
        """See `ProofSystem.keyed_kept`."""
        own = cast(KeptJob, job)  # this system makes no other
        keys = proving_key(own.instance)
        return replace(own, vk=keys.vk_digest), {own.instance.digest(): keys.vk_digest}

    def open_kept(
        self,
        kept: KeptPublic,
        digest: str,
        proof: Json,
        published: Mapping[str, Json],
        pins: Pins,
        *,
        engine: str = "native",
        field: str,
    ) -> OpenedKept:
        """See `ProofSystem.open_kept`."""
        circuit = KeptInstance(kept.tenant.constants.capacity).digest()
        opened = pinned_key(circuit, published, pins)
        statement = kept.statement(from_hex(digest, field="kept"))
        bad = refusals(opened.key, [parse_proof(proof, circuit, field=field)], [statement], engine=engine)
        if bad:
            raise bad[0]
        return OpenedKept(KeptCommitment(digest), opened.setup)

    def published_keys(self, name: str, tenant: TenantPublic) -> dict[str, Json]:
        """See `ProofSystem.published_keys`."""
        instance = instances(tenant.constants)[name]
        return {instance.digest(): proving_key(instance).vk}

    def open_key(
        self, name: str, tenant: TenantPublic, published: Mapping[str, Json], pins: Pins
    ) -> OpenedKey[VerificationKey]:
        """See `ProofSystem.open_key`."""
        return pinned_key(self.circuits(tenant.constants)[name], published, pins)

    def parse_proof(self, value: Json, circuit: str, *, field: str) -> bytes:
        """See `ProofSystem.parse_proof`."""
        return parse_proof(value, circuit, field=field)

    def refusals(
        self,
        key: VerificationKey,
        proofs: Sequence[bytes],
        statements: Sequence[PublicValues],
        *,
        engine: str = "native",
    ) -> dict[int, RagAuditError]:
        """See `ProofSystem.refusals`."""
        return refusals(key, proofs, statements, engine=engine)

    def places(self, name: str, value: Json) -> int:
        """See `ProofSystem.places`: a proof for several records lists them."""
        records = value.get("records") if name == "retrieve" and isinstance(value, dict) else None
        return len(records) if isinstance(records, list) else 1

    def shared(self, name: str, tenant: TenantPublic, places: int) -> Shared | None:
        """See `ProofSystem.shared`: there are such proofs of `retrieve`."""
        return Shared(many_instance(tenant.constants, places)) if name == "retrieve" else None


SYSTEM: ProofSystem[VerificationKey] = Groth16()
"""The system that `proofs.interface.proof_system` returns."""


def _listing_statement(record: RecordPublic) -> ListingStatement:
    c, one = record.tenant.constants, cast(ListedStatement, _retrieve_statement(record))
    assert c.chance is not None and c.threshold is not None  # as of every listing tenant
    before = held_commitment(0, (), c.capacity) if one.before is None else from_hex(one.before, field="held")
    return ListingStatement(
        ctx=(one.ctx,),
        c_seed=one.c_seed,
        beacon=(one.beacon,),
        slot=(one.slot,),
        c_idx=one.c_idx,
        cq=(one.cq,),
        htopk=(one.htopk,),
        c_kept=one.c_kept,
        held_before=before,
        held_after=from_hex(one.after, field="held"),
        chance=c.chance,
        threshold=c.threshold,
        most=c.top_k,
    )


def _listing_job(record: RecordPublic, private: RecordPrivate) -> ListingJob:
    if private.listing is None or private.kept is None:
        raise WitnessError("what the account holds, or which positions are kept, is missing", field="record")
    before, (bits, opening) = private.listing.before, private.kept
    return ListingJob(
        instance=listing_instance(record.tenant.constants),
        statement=_listing_statement(record),
        s0=private.s0,
        s1=private.s1,
        index_salt=private.index_salt,
        rows=private.rows(),
        kept=(bits, int.from_bytes(opening, "big")),
        before=(private.listing.held, 0 if before is None else digest_to_field(before)),
        after_salt=digest_to_field(private.listing.after),
        queries=(ListingQuery(private.vector, private.salt_c, private.salt_k),),
    )


def _embed(c: Constants) -> EmbedInstance:
    if c.norm_factor is None:
        raise PolicyError("the embedder's vectors cannot be proved", field="embedder")
    return EmbedInstance(tokens=c.query_tokens, dimension=c.dimension, norm_factor=c.norm_factor)


def _retrieve_statement(record: RecordPublic) -> Statement:
    return record.retrieve(from_hex(record.tenant.c_idx, field="c_idx"))


def _embed_statement(record: RecordPublic) -> EmbedStatement:
    root = record.tenant.table_digest(TABLE_ARTEFACT)
    return record.embed(from_hex(root, field=f"artefacts.{TABLE_ARTEFACT}"))
