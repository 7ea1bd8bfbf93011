"""The verifiers of scan proofs: the native core, and verify-only backends that decide in its place."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import ClassVar, Protocol, TypeAlias

from rag_audit import _native
from rag_audit.proofs import backends
from rag_audit.proofs.backends.scan.key import EmbedKey, EncoderKey, ScanKey
from rag_audit.proofs.backends.scan.verify import MALFORMED
from rag_audit.proofs.chunks import NativeBatch
from rag_audit.proofs.statements.coalition import CoalitionStatement
from rag_audit.relation.field import to_bytes

NATIVE = "native"
TableNumbers: TypeAlias = tuple[int, int, int, int, int]
"""The public numbers of a sample by document: capacity, rows, maximum positions of a row, drawn rows, and the bound of
the draws."""


class Engine(Protocol):
    """A verifier of scan proofs. A batch takes public values and proofs as bytes, and decides about each separately."""

    def records(self, key: ScanKey) -> NativeBatch[tuple[list[bytes], bytes, bytes]]:
        """Proofs of one or several of a tenant's records: for each its public values, the noise proof, and the query
        proof."""

    def pooled(self, key: ScanKey) -> NativeBatch[tuple[bytes, bytes, bytes, bytes]]:
        """Records of a tenant with pooled listing: public values, the commitments to the listed rows before and after,
        proof."""

    def embeddings(self, key: EmbedKey) -> NativeBatch[tuple[bytes, bytes]]:
        """Proofs of A1: public values, proof."""

    def encoders(self, key: EncoderKey) -> NativeBatch[tuple[bytes, bytes]]:
        """Proofs of A1 for an integer encoder: public values, proof."""

    def sample_rows(self, capacity: int, context: bytes, slot: bytes, bound: int, proof: bytes) -> bytes:
        """The row commitments of a column of Bernoulli bits, 32 bytes each, if its proof is valid.

        :raises ValueError: the proof is false or malformed
        """

    def document_columns(
        self,
        context: bytes,
        slot: bytes,
        numbers: TableNumbers,
        table: bytes,
        previous: bytes | None,
        listed: bool,
        proof: bytes,
    ) -> list[bytes]:
        """The row commitments of the sample, of the bits of a document table's rows, and of their numbers of positions,
        32 bytes each, if the proof is valid; with `listed` then those of the rows that are listed when the window
        begins.

        :param table: the points of the table's columns
        :param previous: the points of the columns of the table before, if there is one
        :param listed: whether the last of these columns has the rows that were listed when the window before ended
        :raises ValueError, OverflowError: the proof is false or malformed, or a value is out of range
        """

    def coalition(
        self, statement: CoalitionStatement, room: int, records: bytes, runs: Sequence[bytes]
    ) -> None:
        """Return if a coalition proof proves the statement.

        :raises ValueError, OverflowError: it does not prove it, or is no proof
        """


class EncoderBatch:
    """Proofs of A1 for an integer encoder (`NativeBatch`), each verified by itself when it is added.

    :param key: the encoder with the protocol's parameters
    """

    CHUNK: ClassVar[int] = 8

    def __init__(self, key: EncoderKey) -> None:
        self._key = key
        self._holds = True

    def add(self, records: list[tuple[bytes, bytes]], /) -> list[tuple[int, str]]:
        """Verify records, and return the numbers of records without well-formed proofs, with the reason."""
        bad = self._bad(records)
        malformed = [(i, reason) for i, reason in bad if reason.startswith(MALFORMED)]
        self._holds &= len(malformed) == len(bad)
        return malformed

    def holds(self) -> bool:
        """Whether every record that was added and not refused is proved."""
        return self._holds

    def search(self, records: list[tuple[bytes, bytes]], /) -> list[tuple[int, str]]:
        """The numbers of the given records with false proofs, with the reason."""
        return [(i, reason) for i, reason in self._bad(records) if not reason.startswith(MALFORMED)]

    def _bad(self, records: list[tuple[bytes, bytes]]) -> list[tuple[int, str]]:
        bad = []
        for i, (statement, proof) in enumerate(records):
            try:
                self._key.encoder.verify(self._key.parameters, statement, proof)
            except (ValueError, OverflowError) as exc:
                bad.append((i, str(exc)))
        return bad


class Native:
    """The native core."""

    def records(self, key: ScanKey) -> NativeBatch[tuple[list[bytes], bytes, bytes]]:
        """See `Engine.records`."""
        return _native.ScanBatch(key.index, key.parameters)

    def pooled(self, key: ScanKey) -> NativeBatch[tuple[bytes, bytes, bytes, bytes]]:
        """See `Engine.pooled`."""
        return _native.ScanPooledBatch(key.index, key.pooled_listing)

    def embeddings(self, key: EmbedKey) -> NativeBatch[tuple[bytes, bytes]]:
        """See `Engine.embeddings`."""
        return _native.ScanEmbedBatch(key.table, key.parameters)

    def encoders(self, key: EncoderKey) -> NativeBatch[tuple[bytes, bytes]]:
        """See `Engine.encoders`."""
        return EncoderBatch(key)

    def sample_rows(self, capacity: int, context: bytes, slot: bytes, bound: int, proof: bytes) -> bytes:
        """See `Engine.sample_rows`."""
        return _native.scan_bits_verify(capacity, context, slot, bound, proof)

    def document_columns(
        self,
        context: bytes,
        slot: bytes,
        numbers: TableNumbers,
        table: bytes,
        previous: bytes | None,
        listed: bool,
        proof: bytes,
    ) -> list[bytes]:
        """See `Engine.document_columns`."""
        return _native.scan_documents_verify(context, slot, numbers, table, previous, listed, proof)

    def coalition(
        self, statement: CoalitionStatement, room: int, records: bytes, runs: Sequence[bytes]
    ) -> None:
        """See `Engine.coalition`."""
        native_coalition(statement, room).verify(records, list(runs))


def native_coalition(statement: CoalitionStatement, room: int) -> _native.ScanCoalition:
    """The statement in native form.

    :raises ValueError, OverflowError: a value is out of range
    """
    if len(statement.cq) > statement.capacity:
        raise ValueError(f"records: expected at most {statement.capacity}, found {len(statement.cq)}")
    return _native.ScanCoalition(
        to_bytes(statement.ctx),
        statement.dimension,
        b"".join(map(to_bytes, statement.cq)),
        list(statement.account),
        list(statement.tenant),
        list(statement.first),
        statement.theta,
        (statement.c, statement.c_tenant),
        room,
    )


def engines() -> tuple[str, ...]:
    """The names of the verifiers, the default one first."""
    return (NATIVE, *backends.ENGINES)


def engine(name: str) -> Engine:
    """The verifier of a name; the native core for a name that only another system's verifiers have."""
    if name not in backends.ENGINES:
        return Native()
    result: Engine = importlib.import_module(f"{backends.__name__}.{name}.engine").ENGINE
    return result
