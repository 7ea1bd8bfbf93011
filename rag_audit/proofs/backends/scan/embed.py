"""Proofs of claim A1 in the scan argument: hq and cq come from the same tokens under the committed table
(docs/scan/embed.md)."""

from __future__ import annotations

import array
import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import ClassVar

from rag_audit import _native
from rag_audit._internal.cache import build_file, cache_dir
from rag_audit._internal.canonical import Json
from rag_audit._internal.errors import InvalidProof, WitnessError
from rag_audit.models.manifest import StaticTable
from rag_audit.proofs.backends.scan.engine import Engine
from rag_audit.proofs.backends.scan.key import EmbedArgument, EmbedKey
from rag_audit.proofs.backends.scan.verify import parse_parts, refused
from rag_audit.proofs.batch import Failures
from rag_audit.proofs.chunks import in_chunks
from rag_audit.proofs.statements.embed import EmbedStatement
from rag_audit.relation.field import to_bytes

PUBLIC = ("ctx", "hq", "cq")
"""The names of the public values except the table, which is part of the key."""


@cache
def table_columns(table: StaticTable) -> bytes:
    """Commitments to the table's columns, 32 bytes per point. They take seconds to compute and are stored in the user's
    cache.

    :raises SetupError: as `build_file`
    """
    argument = EmbedArgument(1, table.dimension, table.tokens, table.norm_factor)
    return build_file(
        cache_dir("tables") / f"{table.digest}-columns",
        "points",
        lambda: EmbedKey.commit(table.rows(), argument).points,
        table.columns,
        what="commitment to the embedder's table",
        prefix=(table.tokens + 1).to_bytes(8, "big") + table.dimension.to_bytes(8, "big"),
    )


@dataclass(frozen=True)
class EmbedJob:
    """The job that proves A1 for one record. It is picklable. It contains secrets, which `repr` omits.

    :param key: protocol and committed table
    :param statement: the public values
    :param rows: a function that returns the table, int8, row by row. It belongs to a module, so a job carries its
        name, and each process loads the table itself
    :param tokens: the query's tokens, cut to the embedder's limit
    :param salt_q: salt of hq
    :param salt_c: salt of cq
    """

    key: EmbedKey
    statement: EmbedStatement
    rows: Callable[[], bytes]
    tokens: Sequence[int] = field(repr=False)
    salt_q: int = field(repr=False)
    salt_c: int = field(repr=False)
    keys: ClassVar[dict[str, str]] = {}

    def run(self) -> dict[str, Json]:
        """The proof as JSON: system, protocol, proof.

        :raises WitnessError: the private inputs do not satisfy the statement
        """
        if self.statement.table != self.key.root:
            raise WitnessError(
                "the statement is about another table",
                field="table",
                expected=self.statement.table,
                actual=self.key.root,
            )
        try:
            proof = _native.scan_embed_prove(
                self.key.table,
                self.key.parameters,
                self.statement.encode(PUBLIC),
                self.rows(),
                array.array("I", self.tokens).tobytes(),
                to_bytes(self.salt_q) + to_bytes(self.salt_c),
            )
        except (ValueError, OverflowError) as exc:
            raise WitnessError(
                "there is no proof of A1 for this record", field="record", actual=str(exc)
            ) from exc
        return embed_json(proof, self.key.argument)


def embed_json(proof: bytes, argument: EmbedArgument) -> dict[str, Json]:
    """A proof of A1 as files carry it."""
    return {"system": "scan", "protocol": argument.digest(), "proof": base64.b64encode(proof).decode()}


def parse_embed(value: Json, protocol: str, *, field: str) -> bytes:
    """Read a proof of A1 from a file's value; its bytes are checked when it is verified.

    :param protocol: digest of the protocol that the policy names
    :raises SchemaError: the proof has other fields, or is of another system or protocol
    :raises EncodingError: the proof is not canonical
    """
    [proof] = parse_parts(value, ("proof",), protocol, what="a scan proof of A1", field=field)
    return proof


def verify_embed(key: EmbedKey, proof: bytes, statement: EmbedStatement) -> None:
    """Return if the proof of A1 for one record is valid.

    :raises InvalidProof: the proof is false; `actual` has the reason
    :raises EncodingError: the bytes are no proof at all
    """
    if statement.table != key.root:
        raise InvalidProof(
            "the table is of another embedder", field="table", expected=statement.table, actual=key.root
        )
    try:
        _native.scan_embed_verify(key.table, key.parameters, statement.encode(PUBLIC), proof)
    except (ValueError, OverflowError) as exc:
        raise refused(exc) from exc


def embed_failures(
    key: EmbedKey,
    proofs: Sequence[bytes],
    statements: Sequence[EmbedStatement],
    decides: Engine,
) -> Failures:
    """As `verify.failures`, for proofs of A1."""
    root = key.root

    def record(i: int) -> tuple[bytes, bytes]:
        statement = statements[i]
        if statement.table != root:
            raise InvalidProof(
                "the table is of another embedder", field="table", expected=statement.table, actual=root
            )
        return statement.encode(PUBLIC), proofs[i]

    if len(proofs) != len(statements):
        raise ValueError(f"{len(proofs)} proofs of {len(statements)} statements")
    return in_chunks(decides.embeddings(key), len(proofs), record, refused)
