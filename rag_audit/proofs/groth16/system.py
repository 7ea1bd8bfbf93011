"""Groth16 as windows use it: which circuits a tenant's constants ask for, their statements, jobs and keys."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from rag_audit.canonical import Json, digest_hex
from rag_audit.errors import InvalidProof, PolicyError, SchemaError, SetupError
from rag_audit.proofs import (
    Constants,
    EmbedStatement,
    Job,
    OpenedKey,
    Pins,
    PublicValues,
    RecordPrivate,
    RecordPublic,
    SlotPublic,
    Statement,
    TenantPublic,
)
from rag_audit.proofs.groth16.embed import EmbedJob
from rag_audit.proofs.groth16.instance import EmbedInstance, Instance, RetrieveInstance
from rag_audit.proofs.groth16.job import ProofJob, parse_key
from rag_audit.proofs.groth16.keys import proving_key
from rag_audit.relation.field import from_hex

TABLE_ARTEFACT = "table-root"


def instances(constants: Constants) -> dict[str, Instance]:
    """The circuits by statement.

    :raises PolicyError: constants that `retrieve` cannot be built for
    """
    made: dict[str, Instance] = {"retrieve": _retrieve(constants)}
    # Other embedders and limits have no such circuit: their A1 is not proved.
    with suppress(PolicyError):
        made["embed"] = _embed(constants)
    return made


def circuits(constants: Constants) -> dict[str, str]:
    """See `ProofSystem.circuits`."""
    return {name: instance.digest() for name, instance in instances(constants).items()}


def statement(name: str, record: RecordPublic) -> PublicValues:
    """See `ProofSystem.statement`."""
    return _embed_statement(record) if name == "embed" else _retrieve_statement(record)


def record_job(name: str, record: RecordPublic, private: RecordPrivate) -> Job:
    """See `ProofSystem.record_job`."""
    constants = record.tenant.constants
    if name == "embed":
        return EmbedJob.of(
            _embed(constants),
            _embed_statement(record),
            record.tenant.static_table().tree(),
            private.tokens,
            salt_q=private.salt_q,
            salt_c=private.salt_c,
        )
    return ProofJob(
        instance=_retrieve(constants),
        statement=_retrieve_statement(record),
        s0=private.s0,
        s1=private.s1,
        index_salt=private.index_salt,
        rows=private.rows(),
        vector=private.vector,
        salt_c=private.salt_c,
        salt_k=private.salt_k,
        positions=private.positions,
    )


def certificate_job(slot: SlotPublic, s0: int, s1: int) -> None:
    """See `ProofSystem.certificate_job`: there is none."""


def published_keys(name: str, tenant: TenantPublic) -> dict[str, Json]:
    """See `ProofSystem.published_keys`."""
    instance = instances(tenant.constants)[name]
    return {instance.digest(): proving_key(instance).vk}


def open_key(name: str, tenant: TenantPublic, published: Mapping[str, Json], pins: Pins) -> OpenedKey:
    """See `ProofSystem.open_key`."""
    return pinned_key(circuits(tenant.constants)[name], published, pins)


def pinned_key(circuit: str, published: Mapping[str, Json], pins: Pins) -> OpenedKey:
    """A circuit's verification key: published by circuit, and accepted by pin.

    :raises SetupError: no pin, or not published
    :raises InvalidProof: another key than the pinned one
    """
    place = f"verification_keys.{circuit[:16]}"
    pin = pins.key(circuit)
    if pin is None:
        raise SetupError("circuit without a pin in trust.toml", expected=f"a pin for circuit {circuit}")
    if circuit not in published:
        raise SetupError("no verification key in the window", field=place, expected=pin.vk)
    found = digest_hex(published[circuit])
    if found != pin.vk:
        raise InvalidProof("another verification key than the pinned one", field=place, expected=pin.vk,
                           found=found)  # fmt: skip
    return OpenedKey(parse_key(published[circuit], field=place), found, pin.setup)


def _retrieve(c: Constants) -> RetrieveInstance:
    return RetrieveInstance(c.capacity, c.dimension, c.top_k, c.gains, c.lo, c.hi, c.lattice)


def _embed(c: Constants) -> EmbedInstance:
    if c.norm_factor is None:
        raise PolicyError("the embedder's vectors cannot be proved", field="embedder")
    return EmbedInstance(tokens=c.query_tokens, dimension=c.dimension, norm_factor=c.norm_factor)


def _retrieve_statement(record: RecordPublic) -> Statement:
    return Statement(
        ctx=record.ctx,
        c_seed=record.c_seed,
        beacon=record.beacon,
        slot=record.slot,
        c_idx=from_hex(record.tenant.c_idx, field="c_idx"),
        cq=record.cq,
        htopk=record.htopk,
    )


def _embed_statement(record: RecordPublic) -> EmbedStatement:
    root = record.tenant.artefacts.get(TABLE_ARTEFACT)
    if root is None:
        raise SchemaError("the embedder's manifest commits to no table", field=f"artefacts.{TABLE_ARTEFACT}")
    table = from_hex(root, field=f"artefacts.{TABLE_ARTEFACT}")
    return EmbedStatement(ctx=record.ctx, table=table, hq=record.hq, cq=record.cq)
