"""Proofs of claim A1 in the scan argument: hq and cq come from the same tokens under the committed table
(docs/scan/embed.md)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import ClassVar

from rag_audit import _native
from rag_audit._internal.cache import build_file, cache_dir
from rag_audit._internal.canonical import Json
from rag_audit._internal.errors import PolicyError, WitnessError
from rag_audit.models.constants import Constants
from rag_audit.models.manifest import StaticTable, TableConstants
from rag_audit.proofs.backends.scan.engine import Engine
from rag_audit.proofs.backends.scan.key import EmbedArgument, EmbedKey
from rag_audit.proofs.backends.scan.query_vector import QueryVectorProofs, proved
from rag_audit.proofs.backends.scan.records import NativeChecker
from rag_audit.proofs.chunks import NativeBatch
from rag_audit.proofs.statements.embed import EmbedStatement
from rag_audit.proofs.statements.private import RecordPrivate
from rag_audit.proofs.statements.retrieve import RecordPublic

TABLE_ARTEFACT = "table-scan"


@cache
def table_columns(table: StaticTable) -> bytes:
    """Commitments to the table's columns, 32 bytes per point. They take seconds to compute and are stored in the user's
    cache.

    :raises SetupError: as `build_file`
    """
    argument = EmbedArgument(1, table.dimension, table.constants.vocabulary, table.constants.norm_factor)
    return build_file(
        cache_dir("tables") / f"{table.digest}-columns",
        "points",
        lambda: EmbedKey.commit(table.rows(), argument).points,
        table.columns,
        what="commitment to the embedder's table",
        prefix=(table.constants.vocabulary + 1).to_bytes(8, "big") + table.dimension.to_bytes(8, "big"),
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
        """The proof as its record carries it (`embed_form`).

        :raises WitnessError: the private inputs do not satisfy the statement
        """
        if self.statement.table != self.key.root:
            raise WitnessError(
                "the statement is about another table",
                field="table",
                expected=self.statement.table,
                actual=self.key.root,
            )
        return proved(
            self.key.argument,
            self.statement,
            lambda statement, tokens, salts: _native.scan_embed_prove(
                self.key.table, self.key.parameters, statement, self.rows(), tokens, salts
            ),
            tokens=self.tokens,
            salts=(self.salt_q, self.salt_c),
        )


class EmbedChecker(NativeChecker[EmbedKey, tuple[bytes, bytes]]):
    """Verifies proofs of A1: public values, proof."""

    def batch(self, engine: Engine) -> NativeBatch[tuple[bytes, bytes]]:
        """See `NativeChecker.batch`."""
        return engine.embeddings(self.key)


class EmbedProofs(QueryVectorProofs[EmbedKey]):
    """Proofs of A1 for a static table, each for one record (`RecordSteps`)."""

    artefact = TABLE_ARTEFACT
    of_another = "the table is of another embedder"

    @cached_property
    def argument(self) -> EmbedArgument:
        """The protocol with the tenant's parameters."""
        return embed_argument(self.tenant.constants)

    def points(self) -> bytes:
        """See `ScanProofs.points`."""
        return table_columns(self.tenant.static_table())

    def key(self, points: bytes) -> EmbedKey:
        """See `ScanProofs.key`."""
        return EmbedKey(self.argument, points)

    def job(self, records: Mapping[str, tuple[RecordPublic, RecordPrivate]]) -> EmbedJob:
        """See `RecordSteps.job`."""
        ((record, private),) = records.values()
        return EmbedJob(
            key=self.key(self.points()),
            statement=self.statement(record),
            rows=self.tenant.static_table().rows,
            tokens=private.tokens,
            salt_q=private.salt_q,
            salt_c=private.salt_c,
        )

    def checker(self, key: EmbedKey, engine: str) -> EmbedChecker:
        """See `RecordSteps.checker`."""
        return EmbedChecker(key, engine)


def embed_argument(c: Constants) -> EmbedArgument:
    """The protocol of A1 for a tenant's constants.

    :raises PolicyError: the argument does not prove the embedder's vectors
    """
    if not isinstance(c.table, TableConstants):
        raise PolicyError("the embedder's vectors cannot be proved", field="embedder")
    return EmbedArgument(c.query_tokens, c.dimension, c.table.vocabulary, c.table.norm_factor)
