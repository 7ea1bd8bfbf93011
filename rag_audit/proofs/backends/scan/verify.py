"""Verification of scan proofs, one or many at once (docs/scan/verification.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rag_audit import _native
from rag_audit._internal.canonical import Json, parse_base64
from rag_audit._internal.errors import EncodingError, InvalidProof, RagAuditError, SchemaError, kind_of
from rag_audit.proofs.backends.scan.engine import Engine
from rag_audit.proofs.backends.scan.key import PROTOCOL, RECORD, ScanKey
from rag_audit.proofs.batch import Failures
from rag_audit.proofs.chunks import in_chunks
from rag_audit.proofs.statements.retrieve import Statement

_LENGTH = 4
MALFORMED = "the encoding is malformed at byte "
"""The beginning of the native core's reason where bytes are no proof at all."""


def refused(reason: Exception | str) -> RagAuditError:
    """The error for a reason of the native core: the bytes are no proof at all, or prove something else."""
    kind = EncodingError if str(reason).startswith(MALFORMED) else InvalidProof
    return kind("the proof is refused", field="proof", actual=str(reason))


def parse_parts(value: Json, names: Sequence[str], protocol: str, *, what: str, field: str) -> list[bytes]:
    """Read the base64 fields of any proof of this system from a file's value.

    :param names: the fields other than `system` and `protocol`
    :param what: the expected kind of proof, for the error
    :raises SchemaError: the proof has other fields, or is of another system or protocol
    :raises EncodingError: a field is not canonical base64
    """
    every = ("system", "protocol", *names)
    if not isinstance(value, dict) or set(value) != set(every):
        actual = sorted(map(str, value)) if isinstance(value, dict) else kind_of(value)
        raise SchemaError(f"the value is not {what}", field=field, expected=sorted(every), actual=actual)
    check_protocol(value, protocol, field=field)
    return [parse_base64(value[name], field=f"{field}.{name}") for name in names]


def check_protocol(value: Mapping[str, Json], protocol: str, *, field: str) -> None:
    """Check that a file's value is a proof of this system and of the protocol.

    :raises SchemaError: the proof is of another system or protocol
    """
    for name, expected in (("system", "scan"), ("protocol", protocol)):
        if value[name] != expected:
            raise SchemaError(
                "the proof is of another system",
                field=f"{field}.{name}",
                expected=expected,
                actual=value[name],
            )


def parse_proof(value: Json, *, field: str) -> bytes:
    """Read a proof from a file's value, as the length of the noise proof (4 bytes, big-endian), the noise proof and the
    query proof.

    :raises SchemaError: the proof has other fields, or is of another system or protocol
    :raises EncodingError: the proof is not canonical
    """
    parts = parse_parts(value, ("noise_proof", "proof"), PROTOCOL, what="a scan proof", field=field)
    noise_proof, proof = parts
    return len(noise_proof).to_bytes(_LENGTH, "big") + noise_proof + proof


def _split(proof: bytes) -> tuple[bytes, bytes]:
    end = _LENGTH + int.from_bytes(proof[:_LENGTH], "big")
    if len(proof) < end:
        raise EncodingError("the noise proof ends early", field="proof", expected=end, actual=len(proof))
    return proof[_LENGTH:end], proof[end:]


def encoded(key: ScanKey, statements: Sequence[Statement]) -> list[bytes]:
    """The statements of one proof, as an engine takes them.

    :raises InvalidProof: a statement is of another index
    """
    for statement in statements:
        if statement.c_idx != key.c_idx:
            raise InvalidProof(
                "the index is of another record", field="c_idx", expected=statement.c_idx, actual=key.c_idx
            )
    return [statement.encode(RECORD) for statement in statements]


def verify(key: ScanKey, proof: bytes, statement: Statement) -> None:
    """Return if the proof of one record is valid.

    :raises InvalidProof: the proof is false; `actual` has the reason
    :raises EncodingError: the bytes are not a well-formed proof: the length is not the length of the statement's
        proofs, a point is off the curve, or a scalar is not canonical
    """
    records = encoded(key, [statement])
    try:
        _native.scan_verify(key.index, key.parameters, records, *_split(proof))
    except ValueError as exc:
        raise refused(exc) from exc


def failures(
    key: ScanKey,
    proofs: Sequence[bytes],
    statements: Sequence[Statement],
    decides: Engine,
) -> Failures:
    """The reasons for refusing proofs, by number. Both arguments are read in chunks, twice if a proof is false.

    :param decides: the verifier
    """

    def record(i: int) -> tuple[list[bytes], bytes, bytes]:
        return (encoded(key, [statements[i]]), *_split(proofs[i]))

    if len(proofs) != len(statements):
        raise ValueError(f"{len(proofs)} proofs of {len(statements)} statements")
    return in_chunks(decides.records(key), len(proofs), record, refused)
