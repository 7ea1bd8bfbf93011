"""What the verification of all scan proofs shares: fields of files, the index, and the native core's reasons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from rag_audit._internal.canonical import Json, parse_base64
from rag_audit._internal.errors import EncodingError, InvalidProof, RagAuditError, SchemaError, kind_of
from rag_audit.proofs.backends.scan.key import ScanKey
from rag_audit.proofs.statements.retrieve import Statement

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


AnyStatement = TypeVar("AnyStatement", bound=Statement)


def check_index(key: ScanKey, statement: AnyStatement) -> AnyStatement:
    """The statement, if it is of the key's index.

    :raises InvalidProof: the statement is of another index
    """
    if statement.c_idx != key.c_idx:
        raise InvalidProof(
            "the index is of another record", field="c_idx", expected=statement.c_idx, actual=key.c_idx
        )
    return statement
