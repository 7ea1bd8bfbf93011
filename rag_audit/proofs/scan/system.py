"""The scan argument as windows use it: protocols by statement, jobs, and the index commitment as key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from rag_audit.canonical import Json, jcs, sha256
from rag_audit.errors import InvalidProof, PolicyError, SetupError
from rag_audit.proofs import (
    Constants,
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
from rag_audit.proofs.scan.job import CertificateJob, ProofJob
from rag_audit.proofs.scan.key import PROTOCOL, ScanKey, parse_points, points_json
from rag_audit.relation.field import digest_to_field, to_bytes
from rag_audit.relation.noise import check_gains
from rag_audit.relation.scores import ScoreWindow

TABLE_ARTEFACT = "table-scan"
MAX_CAPACITY = 1 << 24
MAX_DIMENSION = 4096
MAX_LISTED = 1024


def circuits(constants: Constants) -> dict[str, str]:
    """See `ProofSystem.circuits`."""
    check_gains(constants.gains)
    ScoreWindow(constants.lo, constants.hi, constants.lattice)
    for name, found, most in (
        ("capacity", constants.capacity, MAX_CAPACITY),
        ("dimension", constants.dimension, MAX_DIMENSION),
        ("top_k", constants.top_k, min(MAX_LISTED, constants.capacity)),
    ):
        if not 1 <= found <= most:
            raise PolicyError("does not fit the argument", field=name, expected=f"1..{most}", found=found)
    return {"retrieve": PROTOCOL}


def statement(name: str, record: RecordPublic) -> PublicValues:
    """See `ProofSystem.statement`."""
    return _retrieve_statement(record)


def record_job(name: str, record: RecordPublic, private: RecordPrivate) -> Job:
    """See `ProofSystem.record_job`."""
    made = private.certificate()
    return ProofJob(
        key=retrieve_key(record.tenant),
        statement=_retrieve_statement(record),
        certificate=made or certificate_job(record, private.s0, private.s1),
        noise=private.noise(),
        scores=private.scores(),
        vector=private.vector,
        salt_c=private.salt_c,
        salt_k=private.salt_k,
        positions=private.positions,
        blinding_key=to_bytes(private.index_salt),
    )


def certificate_job(slot: SlotPublic, s0: int, s1: int) -> CertificateJob:
    """See `ProofSystem.certificate_job`."""
    return CertificateJob(retrieve_key(slot.tenant), slot.c_seed, slot.beacon, slot.slot, s0, s1)


def published_keys(name: str, tenant: TenantPublic) -> dict[str, Json]:
    """See `ProofSystem.published_keys`."""
    return {tenant.c_idx: points_json(tenant.points)}


def open_key(name: str, tenant: TenantPublic, published: Mapping[str, Json], pins: Pins) -> OpenedKey:
    """See `ProofSystem.open_key`: the points are published by C_idx, which the opening commits to."""
    place = f"verification_keys.{tenant.c_idx[:16]}"
    if tenant.c_idx not in published:
        raise SetupError("no index commitment in the window", field=place, expected=tenant.c_idx)
    key = retrieve_key(replace(tenant, points=parse_points(published[tenant.c_idx], field=place)))
    found = key.digest.hex()
    if found != tenant.c_idx:
        raise InvalidProof("another index than the committed one", field=place, expected=tenant.c_idx,
                           found=found)  # fmt: skip
    return OpenedKey(key, found, None)


def retrieve_key(tenant: TenantPublic) -> ScanKey:
    """Everything of it but the points is rebuilt from opening and policy."""
    c = tenant.constants
    named = {"opening": tenant.opening, "protocol": PROTOCOL, "tenant": tenant.tenant}
    window = sha256(b"rag-audit/scan/window/v1" + jcs(named))
    return ScanKey(tenant.points, c.dimension, c.capacity, window, c.gains, c.top_k, c.lo, c.hi, c.lattice)


def _retrieve_statement(record: RecordPublic) -> Statement:
    return Statement(
        ctx=record.ctx,
        c_seed=record.c_seed,
        beacon=record.beacon,
        slot=record.slot,
        c_idx=digest_to_field(bytes.fromhex(record.tenant.c_idx)),
        cq=record.cq,
        htopk=record.htopk,
    )
