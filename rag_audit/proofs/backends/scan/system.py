"""The scan argument as a proof system of windows: protocols by statement, jobs, and the index commitment as key."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from rag_audit._internal.canonical import Json, jcs, parse_hex, sha256
from rag_audit._internal.errors import PolicyError, SchemaError, WitnessError
from rag_audit.models.constants import KEPT, Constants
from rag_audit.proofs.backends.scan import embed, reference
from rag_audit.proofs.backends.scan.embed import EmbedArgument, EmbedJob, EmbedKey, table_columns
from rag_audit.proofs.backends.scan.job import CertificateJob, ProofJob
from rag_audit.proofs.backends.scan.kept import KeptJob, open_kept
from rag_audit.proofs.backends.scan.key import (
    COINS_PROTOCOL,
    LISTING_PROTOCOL,
    MAX_LISTED,
    PROTOCOL,
    SAMPLED_PROTOCOL,
    ScanKey,
    index_digest,
    points_json,
    protocol_of,
)
from rag_audit.proofs.backends.scan.listing import (
    ChanceJob,
    ListJob,
    coins_context,
    held_digest,
    held_rows,
    list_refusals,
    parse_list_proof,
)
from rag_audit.proofs.backends.scan.release import check_pin
from rag_audit.proofs.backends.scan.store import commit_index_file
from rag_audit.proofs.backends.scan.together import Together, most_together, opened_points
from rag_audit.proofs.backends.scan.verify import parse_proof, refusals
from rag_audit.proofs.batch import Refusals
from rag_audit.proofs.interface import IndexCommitment, Job, OpenedKey, Pins, ProofSystem, RecordJob
from rag_audit.proofs.statements.embed import EmbedStatement
from rag_audit.proofs.statements.retrieve import ListedStatement, RecordPrivate, RecordPublic, Statement
from rag_audit.proofs.statements.sample import KeptColumn, KeptPublic, NoiseCertificate, OpenedKept
from rag_audit.proofs.statements.tenant import PublicValues, SlotPublic, TenantPublic
from rag_audit.relation.field import digest_to_field, to_bytes
from rag_audit.relation.noise import check_gains
from rag_audit.relation.scores import ScoreWindow

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

TABLE_ARTEFACT = "table-scan"
MAX_CAPACITY = 1 << 24


class Scan:
    """The proof system of the scan argument (`ProofSystem`)."""

    TABLE_ARTEFACT = TABLE_ARTEFACT
    ENGINES: tuple[str, ...] = ("native", "reference")

    def check_constants(self, constants: Constants) -> None:
        """See `ProofSystem.check_constants`."""
        if constants.gains:
            check_gains(constants.gains)
        ScoreWindow(constants.lo, constants.hi, constants.lattice).check_reach(constants.dimension)
        for name, found, most in (
            ("capacity", constants.capacity, MAX_CAPACITY),
            ("top_k", constants.top_k, min(MAX_LISTED, constants.capacity)),
        ):
            if not 1 <= found <= most:
                raise PolicyError("does not fit the argument", field=name, expected=f"1..{most}", found=found)

    def commit_index(
        self,
        rows: npt.NDArray[np.int8],
        blinding: bytes,
        path: Path,
        *,
        progress: Callable[[int, int], None] | None = None,
    ) -> IndexCommitment:
        """See `ProofSystem.commit_index`: `blinding` is the blinding key, and the points are kept."""
        capacity, dimension = rows.shape
        points = commit_index_file(path, rows, capacity, blinding, progress=progress)
        return IndexCommitment(index_digest(points, dimension, capacity), points)

    def circuits(self, constants: Constants) -> dict[str, str]:
        """See `ProofSystem.circuits`."""
        self.check_constants(constants)
        made = {"retrieve": protocol_for(constants)}
        if constants.sampled:
            made[KEPT] = COINS_PROTOCOL
        # Other embedders and limits do not fit the argument, and their A1 is not proved.
        with suppress(PolicyError):
            made["embed"] = _argument(constants).digest()
        return made

    def statement(self, name: str, record: RecordPublic) -> PublicValues:
        """See `ProofSystem.statement`."""
        return _embed_statement(record) if name == "embed" else _retrieve_statement(record)

    def record_job(self, name: str, record: RecordPublic, private: RecordPrivate) -> RecordJob:
        """See `ProofSystem.record_job`."""
        if name == "embed":
            table = record.tenant.static_table()
            return EmbedJob(
                key=EmbedKey(_argument(record.tenant.constants), table_columns(table)),
                statement=_embed_statement(record),
                rows=table.rows,
                tokens=private.tokens,
                salt_q=private.salt_q,
                salt_c=private.salt_c,
            )
        if record.tenant.constants.listing:
            return self._list_job(record, private)
        key, noisy = retrieve_key(record.tenant), bool(record.tenant.constants.gains)
        certificate: NoiseCertificate | CertificateJob | None = None
        if noisy:
            slot = (record.c_seed, record.beacon, record.slot, private.s0, private.s1)
            certificate = private.certificate() or CertificateJob(key, *slot, private.low_memory)
        return ProofJob(
            key=key,
            statement=_retrieve_statement(record),
            certificate=certificate,
            noise=private.noise() if noisy else b"",
            scores=private.scores(),
            vector=private.vector,
            salt_c=private.salt_c,
            salt_k=private.salt_k,
            positions=private.positions,
            blinding_key=to_bytes(private.index_salt),
            low_memory=private.low_memory,
            kept=private.kept,
        )

    def _list_job(self, record: RecordPublic, private: RecordPrivate) -> ListJob:
        if private.listing is None or private.kept is None:
            raise WitnessError(
                "what the account holds, or which positions are kept, is missing", field="record"
            )
        key = retrieve_key(record.tenant)
        s0, s1, low = private.s0, private.s1, private.low_memory
        kept, kept_opening = private.kept
        return ListJob(
            key=key,
            statement=cast(ListedStatement, _retrieve_statement(record)),
            certificate=private.certificate() or ChanceJob.of(key, record, s0, s1, low_memory=low),
            chance=private.noise(),
            kept=kept,
            kept_opening=kept_opening,
            held=private.listing.held,
            before=private.listing.before,
            after=private.listing.after,
            scores=private.scores(),
            vector=private.vector,
            salt_c=private.salt_c,
            salt_k=private.salt_k,
            blinding_key=to_bytes(private.index_salt),
            low_memory=low,
        )

    def hold(self, constants: Constants, held: bytes, secret: bytes) -> str:
        """See `ProofSystem.hold`."""
        rows, _ = held_rows(constants.capacity, held, secret)
        return held_digest(constants.capacity, rows)

    def certificate_job(
        self, slot: SlotPublic, s0: int, s1: int, *, low_memory: bool = False
    ) -> CertificateJob | ChanceJob | None:
        """See `ProofSystem.certificate_job`: there is none without noise and without coins."""
        key = retrieve_key(slot.tenant)
        if slot.tenant.constants.listing:
            return ChanceJob.of(key, slot, s0, s1, low_memory=low_memory)
        if not slot.tenant.constants.gains:
            return None
        return CertificateJob(key, slot.c_seed, slot.beacon, slot.slot, s0, s1, low_memory)

    def keyed(self, job: RecordJob) -> tuple[RecordJob, dict[str, str]]:
        """See `ProofSystem.keyed`."""
        return job, {}

    def kept_job(
        self, kept: KeptPublic, s0: int, s1: int, salt: bytes, *, low_memory: bool = False
    ) -> Job[KeptColumn]:
        """See `ProofSystem.kept_job`."""
        return KeptJob.of(kept, s0, s1, low_memory=low_memory)

    def keyed_kept(self, job: Job[KeptColumn]) -> tuple[Job[KeptColumn], dict[str, str]]:
        """See `ProofSystem.keyed_kept`."""
        return job, {}

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
        check_pin(pins, sampled=True)
        if engine == reference.ENGINE:
            made = open_kept(kept, digest, proof, field=field, rows_of=reference.kept_rows)
        else:
            made = open_kept(kept, digest, proof, field=field)
        return OpenedKept(made, None)

    def published_keys(self, name: str, tenant: TenantPublic) -> dict[str, Json]:
        """See `ProofSystem.published_keys`."""
        if name == "embed":
            return {tenant.table_digest(TABLE_ARTEFACT): points_json(table_columns(tenant.static_table()))}
        if name == KEPT:
            return {}  # the commitments stand in the proof
        return {tenant.c_idx: points_json(tenant.points)}

    def open_key(
        self, name: str, tenant: TenantPublic, published: Mapping[str, Json], pins: Pins
    ) -> OpenedKey[ScanKey | EmbedKey]:
        """See `ProofSystem.open_key`. Points are published under a digest to which the opening commits: the index's as
        C_idx, the table's among the embedder's artefacts.
        """
        check_pin(pins, sampled=name == "retrieve" and protocol_for(tenant.constants) != PROTOCOL)
        if name == "embed":
            digest = tenant.table_digest(TABLE_ARTEFACT)
            return opened_points(published, digest, lambda p: EmbedKey(_argument(tenant.constants), p))
        return opened_points(published, tenant.c_idx, lambda p: retrieve_key(replace(tenant, points=p)))

    def parse_proof(self, value: Json, circuit: str, *, field: str) -> bytes:
        """See `ProofSystem.parse_proof`."""
        if circuit == LISTING_PROTOCOL:
            return parse_list_proof(value, field=field)
        parse = parse_proof if circuit in (PROTOCOL, SAMPLED_PROTOCOL) else embed.parse_embed
        return parse(value, circuit, field=field)

    def refusals(
        self,
        key: ScanKey | EmbedKey,
        proofs: Sequence[bytes],
        statements: Sequence[PublicValues],
        *,
        engine: str = "native",
    ) -> Refusals:
        """See `ProofSystem.refusals`; "reference" is the second verifier, any other engine the native one."""
        second = engine == reference.ENGINE
        if isinstance(key, EmbedKey):
            batch = reference.embeddings(key) if second else None
            return embed.embed_refusals(key, proofs, cast("Sequence[EmbedStatement]", statements), batch)
        if key.chance is not None:
            lists = reference.lists(key, coins_context(key)) if second else None
            return list_refusals(key, proofs, cast("Sequence[ListedStatement]", statements), lists)
        records = reference.records(key) if second else None
        return refusals(key, proofs, cast("Sequence[Statement]", statements), records)

    def places(self, name: str, value: Json) -> int:
        """See `ProofSystem.places`: a proof for several records lists them."""
        records = value.get("records") if name == "retrieve" and isinstance(value, dict) else None
        return len(records) if isinstance(records, list) else 1

    def shared(self, name: str, tenant: TenantPublic, places: int) -> Together | None:
        """See `ProofSystem.shared`: there are such proofs of `retrieve` of tenants that keep all positions."""
        constants = tenant.constants
        if name != "retrieve" or constants.sampled or constants.listing:
            return None
        most = most_together(constants.capacity, len(constants.gains))
        if not 2 <= places <= most:
            raise PolicyError("no proof is for that many records", field="together",
                              expected=f"2..{most}", found=places)  # fmt: skip
        return Together(
            lambda points: retrieve_key(replace(tenant, points=points)), tenant.c_idx, tenant.points
        )


SYSTEM: ProofSystem[ScanKey | EmbedKey] = Scan()
"""The system that `proofs.interface.proof_system` returns."""


def verify_batch(
    key: ScanKey | EmbedKey,
    proofs: Sequence[bytes],
    statements: Sequence[PublicValues],
    *,
    engine: str = "native",
) -> list[int]:
    """The indices of the proofs that do not verify, ascending."""
    return list(SYSTEM.refusals(key, proofs, statements, engine=engine))


def retrieve_key(tenant: TenantPublic) -> ScanKey:
    """The tenant's verification key, in which everything but the points is rebuilt from opening and policy."""
    c = tenant.constants
    if c.sampled and tenant.kept is None:
        raise SchemaError("the ledger does not say which positions are kept", field="kept",
                          expected=f"an entry for {tenant.tenant}")  # fmt: skip
    protocol = protocol_for(c)
    named: Json = {"opening": tenant.opening, "protocol": protocol, "tenant": tenant.tenant}
    window = sha256(b"rag-audit/scan/window/v1" + jcs(named))
    kept = tenant.kept.points if c.sampled and tenant.kept is not None else None
    return ScanKey(
        tenant.points,
        c.dimension,
        c.capacity,
        window,
        c.gains,
        c.top_k,
        c.lo,
        c.hi,
        c.lattice,
        kept,
        c.chance,
    )


def protocol_for(c: Constants) -> str:
    """The digest that names the argument of records under a tenant's constants."""
    return protocol_of(c.gains, sampled=c.sampled, listing=c.listing)


def _retrieve_statement(record: RecordPublic) -> Statement:
    return record.retrieve(digest_to_field(bytes.fromhex(record.tenant.c_idx)))


def _argument(c: Constants) -> EmbedArgument:
    if c.norm_factor is None:
        raise PolicyError("the embedder's vectors cannot be proved", field="embedder")
    return EmbedArgument(c.query_tokens, c.dimension, norm_factor=c.norm_factor)


def _embed_statement(record: RecordPublic) -> EmbedStatement:
    digest = parse_hex(record.tenant.table_digest(TABLE_ARTEFACT), 32, field=f"artefacts.{TABLE_ARTEFACT}")
    return record.embed(digest_to_field(digest))
