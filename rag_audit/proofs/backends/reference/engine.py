"""The second verifier as an engine of scan proofs: it takes the native core's inputs, and decides in plain Python
(docs/scan/verification.md).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Generic, TypeVar

from rag_audit._internal.errors import EncodingError, RagAuditError
from rag_audit.proofs.backends.reference import (
    coalition,
    document_table,
    drawn,
    embed,
    encoder_embed,
    pooled_listing,
    query,
)
from rag_audit.proofs.backends.reference.drawn import BernoulliBits, Noise, Seed
from rag_audit.proofs.backends.reference.encoder_pins import decode_pins
from rag_audit.proofs.backends.reference.group import Point, decode, encode
from rag_audit.proofs.backends.reference.index import Index
from rag_audit.proofs.backends.reference.session import Session
from rag_audit.proofs.backends.reference.transcript import Reader, Transcript
from rag_audit.proofs.backends.scan.engine import TableNumbers
from rag_audit.proofs.backends.scan.key import EmbedKey, EncoderKey, ScanKey
from rag_audit.proofs.backends.scan.verify import MALFORMED
from rag_audit.proofs.statements.coalition import CoalitionStatement
from rag_audit.relation.field import to_bytes
from rag_audit.relation.scores import ScoreWindow

FALSE = "an equation of the proof does not hold"
Item = TypeVar("Item")


@dataclass
class Batch(Generic[Item]):
    """Records one after another, with the outcomes of a native batch (`proofs.batch.NativeBatch`).

    :param check: reads a record's proofs, and returns whether all their equations hold
    """

    CHUNK: ClassVar[int] = 64
    check: Callable[[Item], bool]
    _found: list[str | None] = field(default_factory=list)
    _searched: int = 0

    def add(self, records: list[Item], /) -> list[tuple[int, str]]:
        """Add records, and return the numbers of records without well-formed proofs, with the reason."""
        bad = []
        for i, record in enumerate(records):
            reason = None
            try:
                if not self.check(record):
                    reason = FALSE
            except RagAuditError as exc:
                bad.append((i, f"{MALFORMED}{exc}"))
            self._found.append(reason)
        return bad

    def holds(self) -> bool:
        """Whether every record that was added and not refused is proved."""
        return not any(self._found)

    def search(self, records: list[Item], /) -> list[tuple[int, str]]:
        """The numbers of the given records with false proofs. The chunks arrive in the order of `add`."""
        result = self._found[self._searched : self._searched + len(records)]
        self._searched += len(records)
        return [(i, reason) for i, reason in enumerate(result) if reason is not None]


def _digest(*parts: bytes) -> bytes:
    return hashlib.sha256(b"".join(parts)).digest()


def _values(statement: bytes) -> list[int]:
    return [int.from_bytes(statement[i : i + 32], "big") for i in range(0, len(statement), 32)]


def _points(data: bytes) -> list[Point]:
    """Points in any number; a statement refuses a number that does not fit."""
    if len(data) % 32:
        raise EncodingError("not a list of points", expected="32 bytes each", actual=len(data))
    return [decode(data[i : i + 32]) for i in range(0, len(data), 32)]


def _rows(data: bytes, capacity: int) -> list[Point]:
    """Row commitments, in the number that a column of this capacity has."""
    index = Index.decode(data, 1, capacity)
    return list(index.points)


def _read(run: str, proof: bytes) -> Reader:
    return Reader(Transcript(run), proof)


def _all_hold(sessions: Sequence[Session]) -> bool:
    return all([session.holds() for session in sessions])


def _noise(
    key: ScanKey, seeds: Sequence[Seed], noise_proof: bytes
) -> tuple[list[Session], list[Sequence[Point]]]:
    """The run of the noise proof, and the rows of each slot; neither without gains."""
    if not key.gains:
        if noise_proof:
            raise EncodingError("a tenant without noise has no noise proof", field="noise_proof")
        return [], []
    noise = Noise(key.window, seeds, key.capacity, key.gains)
    session, columns = drawn.read(noise, _read(noise.RUN, noise_proof))
    return [session], [column.rows for column in columns]


def records(key: ScanKey) -> Batch[tuple[list[bytes], bytes, bytes]]:
    """Proofs of one or several of a tenant's records: for each its public values, the noise proof, and the query
    proof."""
    key.check()
    index, window = Index.decode(key.points, key.dimension, key.capacity), _window(key)
    kept = None if key.sample is None else _rows(key.sample, key.capacity)

    def check(item: tuple[list[bytes], bytes, bytes]) -> bool:
        statements, noise_proof, proof = item
        values = [_values(statement) for statement in statements]
        seeds = [Seed(*each[:3]) for each in values]
        sessions, rows = _noise(key, seeds, noise_proof)
        count = len(statements).to_bytes(8, "big")
        slots = b"".join(statement[: 4 * 32] for statement in statements)
        domain = b"rag-audit/scan/v1/records"
        context = _digest(domain, key.window, count, slots, _digest(noise_proof), key.sample or b"")
        known = [(cq, htopk) for *_, cq, htopk in values]
        claim = query.Asked(context, index, key.gains, window, key.listed, rows, kept, known)
        return _all_hold([*sessions, query.read(claim, _read(query.RUN, proof))])

    return Batch(check)


def _window(key: ScanKey) -> ScoreWindow:
    return ScoreWindow(key.lo, key.hi, key.lattice)


def pooled(key: ScanKey) -> Batch[tuple[bytes, bytes, bytes, bytes]]:
    """Records of a tenant with pooled listing: public values, the commitments to the listed rows before and after,
    proof."""
    key.check()
    own = key.pooled
    assert own is not None  # as for every tenant with pooled listing
    index, window = Index.decode(key.points, key.dimension, key.capacity), _window(key)
    row, kept = _points(own.row), _points(own.kept)

    def check(record: tuple[bytes, bytes, bytes, bytes]) -> bool:
        statement, before, after, proof = record
        c_seed, beacon, slot, _, cq, htopk = _values(statement)
        context = _digest(b"rag-audit/scan/v1/pooled", key.window, statement[: 4 * 32])
        requested = pooled_listing.Requested(Seed(c_seed, beacon, slot), cq, htopk, _points(after))
        claim = pooled_listing.PooledListing(
            context, index, own.rows, own.positions_per_document, own.flip_probability, own.threshold, window,
            key.listed, row, kept, _points(before), [requested],
        )  # fmt: skip
        return pooled_listing.read(claim, _read(pooled_listing.RUN, proof)).holds()

    return Batch(check)


def embeddings(key: EmbedKey) -> Batch[tuple[bytes, bytes]]:
    """Proofs of A1: public values, proof."""
    argument = key.argument
    table = Index.decode(key.points, argument.dimension, argument.vocabulary + 1)

    def check(record: tuple[bytes, bytes]) -> bool:
        statement, proof = record
        context, hq, cq = _values(statement)
        claim = embed.Embedded(context, table, argument.tokens, argument.norm_factor, hq, cq)
        return embed.read(claim, _read(embed.RUN, proof)).holds()

    return Batch(check)


def encoders(key: EncoderKey) -> Batch[tuple[bytes, bytes]]:
    """Proofs of A1 for an integer encoder: public values, proof."""
    table, layers = decode_pins(key.pins)
    places, norm_factor = key.parameters

    def check(record: tuple[bytes, bytes]) -> bool:
        statement, proof = record
        context, hq, cq = _values(statement)
        queries = [encoder_embed.Hashes(context, hq, cq)]
        claim = encoder_embed.EncoderEmbedded(queries, table, layers, places, norm_factor)
        return encoder_embed.read(claim, _read(encoder_embed.RUN, proof)).holds()

    return Batch(check)


def sample_rows(capacity: int, context: bytes, slot: bytes, bound: int, proof: bytes) -> bytes:
    """The row commitments of a column of Bernoulli bits, 32 bytes each, if its proof is valid.

    :raises ValueError: the proof is false or malformed
    """
    claim = BernoulliBits(context, Seed(*_values(slot)), capacity, bound)
    try:
        session, (column,) = drawn.read(claim, _read(claim.RUN, proof))
    except EncodingError as exc:
        raise ValueError(f"{MALFORMED}{exc}") from exc
    if not session.holds():
        raise ValueError(FALSE)
    return b"".join(map(encode, column.rows))


def document_columns(
    context: bytes,
    slot: bytes,
    numbers: TableNumbers,
    table: bytes,
    previous: bytes | None,
    listed: bool,
    proof: bytes,
) -> list[bytes]:
    """The row commitments of the sample, of the bits of a document table's rows, and of their numbers of positions, 32
    bytes each, if the proof is valid; with `listed` then those of the rows that are listed when the window begins.

    :raises ValueError: the proof is false or malformed, or a value is out of range
    """
    try:
        seed = Seed(*_values(slot))
        claim = document_table.DocumentTable.decode(context, seed, numbers, table, previous, listed=listed)
        session, columns = document_table.read(claim, _read(claim.run, proof))
    except EncodingError as exc:
        raise ValueError(f"{MALFORMED}{exc}") from exc
    if not session.holds():
        raise ValueError(FALSE)
    return [b"".join(map(encode, column.rows)) for column in columns]


def verify_coalition(statement: CoalitionStatement, room: int, records: bytes, runs: Sequence[bytes]) -> None:
    """Return if a coalition proof proves the statement.

    :raises ValueError: it does not prove it, or is no proof
    """
    try:
        if len(statement.cq) > statement.capacity:
            raise ValueError(f"records: expected at most {statement.capacity}, found {len(statement.cq)}")
        claim = coalition.Coalition(
            to_bytes(statement.ctx), statement.dimension, statement.cq, statement.account, statement.tenant,
            statement.first, statement.theta, (statement.c, statement.c_tenant), room,
        )  # fmt: skip
        if len(runs) != claim.runs:
            raise ValueError(f"runs over pairs: expected {claim.runs}, found {len(runs)}")
        session, committed = coalition.read(claim, _read(coalition.RUN, records))
        digest = _digest(records)
        others = [
            coalition.read_pairs(claim, committed, digest, number, _read(coalition.PAIRS, proof))
            for number, proof in enumerate(runs)
        ]
    except RagAuditError as exc:
        raise ValueError(str(exc)) from exc
    if not _all_hold([session, *others]):
        raise ValueError(FALSE)


class Reference:
    """The second verifier (`scan.engine.Engine`)."""

    records = staticmethod(records)
    pooled = staticmethod(pooled)
    embeddings = staticmethod(embeddings)
    encoders = staticmethod(encoders)
    sample_rows = staticmethod(sample_rows)
    document_columns = staticmethod(document_columns)
    coalition = staticmethod(verify_coalition)


ENGINE = Reference()
"""The engine that `scan.engine.engine` returns for this folder's name."""
