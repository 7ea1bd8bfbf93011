"""The scan argument as a proof system of windows: protocols by statement, jobs, and the index commitment as key."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from rag_audit._internal.canonical import Json, jcs, parse_hex, sha256
from rag_audit._internal.errors import PolicyError, SchemaError
from rag_audit.models.constants import Constants
from rag_audit.proofs.backends import column_module
from rag_audit.proofs.backends.scan import coalition, embed, memory
from rag_audit.proofs.backends.scan.batch import BatchProof, max_batch, opened_points
from rag_audit.proofs.backends.scan.column import SlotProofJob
from rag_audit.proofs.backends.scan.embed import EmbedJob, table_columns
from rag_audit.proofs.backends.scan.engine import engine as engine_of
from rag_audit.proofs.backends.scan.engine import engines
from rag_audit.proofs.backends.scan.job import proof_job, retrieve_statement
from rag_audit.proofs.backends.scan.key import (
    MAX_LISTED,
    PROTOCOL,
    RANDOMIZED_RESPONSE_PROTOCOL,
    EmbedArgument,
    EmbedKey,
    ScanKey,
    index_digest,
    points_json,
)
from rag_audit.proofs.backends.scan.randomized_response import (
    disclosed_digest,
    disclosed_rows,
    list_failures,
    list_job,
    parse_list_proof,
)
from rag_audit.proofs.backends.scan.release import check_pin
from rag_audit.proofs.backends.scan.store import commit_index_file
from rag_audit.proofs.backends.scan.verify import failures, parse_proof
from rag_audit.proofs.batch import Failures
from rag_audit.proofs.chunks import narrowed
from rag_audit.proofs.interface import Pins, Setup
from rag_audit.proofs.proving import CoalitionProofs, ColumnProofs, IndexCommitment, RecordJob, RecordProofs
from rag_audit.proofs.records import OpenedKey, Several, Single
from rag_audit.proofs.statements.embed import EmbedStatement
from rag_audit.proofs.statements.private import RecordPrivate
from rag_audit.proofs.statements.retrieve import ListedStatement, RecordPublic, Statement
from rag_audit.proofs.statements.tenant import PublicValues, SlotPublic, TenantPublic
from rag_audit.relation.field import digest_to_field
from rag_audit.relation.noise import check_gains
from rag_audit.relation.scores import ScoreWindow

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

TABLE_ARTEFACT = "table-scan"
MAX_CAPACITY = 1 << 24


@dataclass(eq=False)
class Scan:
    """The proof system of the scan argument (`Backend`)."""

    TABLE_ARTEFACT = TABLE_ARTEFACT
    ENGINES: ClassVar[tuple[str, ...]] = engines()
    CIRCUITS = "Protocols"
    coalition: ClassVar[CoalitionProofs] = coalition.SYSTEM

    def check_pins(self, circuits: Sequence[str], pins: Pins) -> set[Setup]:
        """See `Backend.check_pins`: one digest pins all protocols of a release."""
        check_pin(pins)
        return {None}

    def check_constants(self, constants: Constants) -> None:
        """See `Backend.check_constants`."""
        if constants.gains:
            check_gains(constants.gains)
        ScoreWindow(constants.lo, constants.hi, constants.lattice).check_reach(constants.dimension)
        for name, actual, maximum in (
            ("capacity", constants.capacity, MAX_CAPACITY),
            ("top_k", constants.top_k, min(MAX_LISTED, constants.capacity)),
        ):
            if not 1 <= actual <= maximum:
                raise PolicyError(
                    "does not fit the argument", field=name, expected=f"1..{maximum}", actual=actual
                )

    def commit_index(
        self,
        rows: npt.NDArray[np.int8],
        blinding: bytes,
        path: Path,
        *,
        progress: Callable[[int, int], None] | None = None,
    ) -> IndexCommitment:
        """See `Backend.commit_index`: `blinding` is the blinding key, and the points are stored."""
        capacity, dimension = rows.shape
        points = commit_index_file(path, rows, capacity, blinding, progress=progress)
        return IndexCommitment(index_digest(points, dimension, capacity), points)

    def circuits(self, constants: Constants) -> dict[str, str]:
        """See `Backend.circuits`."""
        self.check_constants(constants)
        result = {"retrieve": protocol_for(constants)}
        result |= {name: self.column(name).circuit(constants) for name in constants.columns}
        # Other embedders and limits do not fit the argument, and their A1 is not proved.
        with suppress(PolicyError):
            result["embed"] = _argument(constants).digest()
        return result

    def batch(
        self,
        name: str,
        constants: Constants,
        wanted: int | None,
        *,
        low_memory: bool = False,
        at_a_time: int = 1,
    ) -> int:
        """See `Backend.batch`: for `retrieve` of tenants that sample all positions."""
        if name != "retrieve" or constants.sampled or constants.uses_randomized_response or wanted == 1:
            return 1
        maximum = max_batch(constants.capacity, len(constants.gains))
        if wanted is None:
            return memory.fitting_batch(
                constants.capacity, constants.gains, maximum, low_memory=low_memory, at_a_time=at_a_time
            )
        if not 2 <= wanted <= maximum:
            raise PolicyError("no proof is for that many records", field="batch",
                              expected=f"2..{maximum}", actual=wanted)  # fmt: skip
        return wanted

    def records(self, name: str, tenant: TenantPublic, places: int = 1) -> RecordProofs:
        """See `Backend.records`."""
        if places == 1 or self.batch(name, tenant.constants, places) == 1:
            return Single(self, name, tenant)
        return Several(
            BatchProof(
                lambda points: retrieve_key(replace(tenant, points=points)), tenant.c_idx, tenant.points
            )
        )

    def circuit(self, name: str, tenant: TenantPublic) -> str:
        """See `OneRecord.circuit`."""
        return self.circuits(tenant.constants)[name]

    def statement(self, name: str, record: RecordPublic) -> PublicValues:
        """See `OneRecord.statement`."""
        return _embed_statement(record) if name == "embed" else retrieve_statement(record)

    def record_job(self, name: str, record: RecordPublic, private: RecordPrivate) -> RecordJob:
        """See `OneRecord.record_job`."""
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
        key, statement = retrieve_key(record.tenant), retrieve_statement(record)
        if isinstance(statement, ListedStatement):
            return list_job(key, statement, record, private)
        return proof_job(key, record, private)

    def commit_disclosed(self, constants: Constants, held: bytes, secret: bytes) -> str:
        """See `Backend.hold`."""
        rows, _ = disclosed_rows(constants.capacity, held, secret)
        return disclosed_digest(constants.capacity, rows)

    def slot_proof_job(
        self, slot: SlotPublic, s0: int, s1: int, *, low_memory: bool = False
    ) -> SlotProofJob | None:
        """See `Backend.slot_proof_job`: None without noise and without Bernoulli bits."""
        if not slot.tenant.constants.gains and not slot.tenant.constants.uses_randomized_response:
            return None
        return SlotProofJob.of(retrieve_key(slot.tenant), slot, s0, s1, low_memory=low_memory)

    def column(self, name: str) -> ColumnProofs:
        """See `Backend.column`."""
        proofs: ColumnProofs = column_module("scan", name).COLUMN
        return proofs

    def published_keys(self, name: str, tenant: TenantPublic) -> dict[str, Json]:
        """See `OneRecord.published_keys`."""
        if name == "embed":
            return {tenant.table_digest(TABLE_ARTEFACT): points_json(table_columns(tenant.static_table()))}
        return {tenant.c_idx: points_json(tenant.points)}

    def open_key(
        self, name: str, tenant: TenantPublic, published: Mapping[str, Json], pins: Pins
    ) -> OpenedKey[ScanKey | EmbedKey]:
        """See `OneRecord.open_key`. Points are published under a digest in the window header: the index's as C_idx, the
        table's among the embedder's artefacts.
        """
        check_pin(pins)
        if name == "embed":
            digest = tenant.table_digest(TABLE_ARTEFACT)
            return opened_points(published, digest, lambda p: EmbedKey(_argument(tenant.constants), p))
        return opened_points(published, tenant.c_idx, lambda p: retrieve_key(replace(tenant, points=p)))

    def parse_proof(self, value: Json, circuit: str, *, field: str) -> bytes:
        """See `OneRecord.parse_proof`."""
        if circuit == RANDOMIZED_RESPONSE_PROTOCOL:
            return parse_list_proof(value, field=field)
        if circuit == PROTOCOL:
            return parse_proof(value, field=field)
        return embed.parse_embed(value, circuit, field=field)

    def failures(
        self,
        key: ScanKey | EmbedKey,
        proofs: Sequence[bytes],
        statements: Sequence[PublicValues],
        *,
        engine: str = "native",
    ) -> Failures:
        """See `OneRecord.failures`; "reference" is the second verifier, any other engine the native one."""
        decides = engine_of(engine)
        if isinstance(key, EmbedKey):
            return embed.embed_failures(key, proofs, narrowed(EmbedStatement, statements), decides)
        if key.flip_probability is not None:
            return list_failures(key, proofs, narrowed(ListedStatement, statements), decides)
        return failures(key, proofs, narrowed(Statement, statements), decides)


SYSTEM = Scan()
"""The system that `proofs.backends.backend` returns."""


def verify_batch(
    key: ScanKey | EmbedKey,
    proofs: Sequence[bytes],
    statements: Sequence[PublicValues],
    *,
    engine: str = "native",
) -> list[int]:
    """The indices of the proofs that do not verify, ascending."""
    return list(SYSTEM.failures(key, proofs, statements, engine=engine))


def retrieve_key(tenant: TenantPublic) -> ScanKey:
    """The tenant's verification key. The function rebuilds all of its parts except the points from window header and
    policy."""
    c = tenant.constants
    if c.sampled and tenant.kept is None:
        raise SchemaError("the ledger does not say which positions are kept", field="sample",
                          expected=f"an entry for {tenant.tenant}")  # fmt: skip
    protocol = protocol_for(c)
    named: Json = {"header": tenant.header, "protocol": protocol, "tenant": tenant.tenant}
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
        c.flip_probability,
    )


def protocol_for(c: Constants) -> str:
    """The digest that names the argument of records under a tenant's constants."""
    return RANDOMIZED_RESPONSE_PROTOCOL if c.uses_randomized_response else PROTOCOL


def _argument(c: Constants) -> EmbedArgument:
    if c.norm_factor is None:
        raise PolicyError("the embedder's vectors cannot be proved", field="embedder")
    return EmbedArgument(c.query_tokens, c.dimension, norm_factor=c.norm_factor)


def _embed_statement(record: RecordPublic) -> EmbedStatement:
    digest = parse_hex(record.tenant.table_digest(TABLE_ARTEFACT), 32, field=f"artefacts.{TABLE_ARTEFACT}")
    return record.embed(digest_to_field(digest))
