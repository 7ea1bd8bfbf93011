"""Samples by document as a tenant's column: three windows of a chain, by both verifiers (docs/scan/document-table.md)."""

from __future__ import annotations

import base64
import copy
import dataclasses
import pickle
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest

from rag_audit import _native
from rag_audit.commit.document_table import DocumentTable, TableShape, place_documents
from rag_audit.commit.tables import ListedRows
from rag_audit.errors import (
    EncodingError,
    InvalidProof,
    PolicyError,
    RagAuditError,
    SchemaError,
    WitnessError,
)
from rag_audit.models.constants import Constants
from rag_audit.proofs.backends.reference.document_table import DocumentTable as ReferenceTable
from rag_audit.proofs.backends.reference.drawn import Seed
from rag_audit.proofs.backends.scan import document_table, memory
from rag_audit.proofs.backends.scan.key import (
    BERNOULLI_PROTOCOL,
    DOCUMENT_TABLE_PROTOCOL,
    POOLED_TABLE_PROTOCOL,
    commit_index,
)
from rag_audit.proofs.backends.scan.listed import listed_digest, listed_rows, no_rows, open_listed
from rag_audit.proofs.backends.scan.release import protocols_digest
from rag_audit.proofs.backends.scan.system import SYSTEM
from rag_audit.proofs.interface import FileProof
from rag_audit.proofs.statements.column import ColumnPublic
from rag_audit.proofs.statements.document_table import DocumentTablePublic, OpenedTable, name_element
from rag_audit.proofs.statements.private import (
    ColumnPrivate,
    CommittedTable,
    DocumentTablePrivate,
    PreviousTablePrivate,
    TablePrivate,
)
from rag_audit.proofs.statements.tenant import ColumnCommitment, TableCommitment, TenantPublic
from rag_audit.relation.commitments import noise_key, seed_commitment, topk_commitment, vector_commitment
from rag_audit.relation.draws import bernoulli_bits
from rag_audit.relation.field import to_bytes

S0, S1, BEACON = 11, 12, 13
BOUND = 700 << 30
COLUMN = SYSTEM.column("sample")
ENGINES = ("native", "reference")


class Release:
    """A verifier's pins of this release's protocols."""

    scan = protocols_digest()

    def key(self, circuit: str) -> None:
        return None

    def artefact(self, name: str) -> None:
        return None


PINS = Release()


class Size(NamedTuple):
    capacity: int
    rows: int
    positions: int
    fresh: int


SMALL, LARGE = Size(64, 16, 6, 4), Size(4096, 512, 20, 64)


@dataclass(frozen=True)
class Window:
    """A window of a chain as its provider has it."""

    table: DocumentTable
    public: DocumentTablePublic
    private: DocumentTablePrivate
    result: CommittedTable
    ended: ListedRows | None = None
    """with pooled listing, the listed rows at the end of the window"""

    @property
    def bits(self) -> list[int]:
        return self.table.sampled_positions(rows_of(self.private.table)).tolist()

    def carried(self, following: DocumentTable) -> PreviousTablePrivate:
        """What the next window's proof takes of this one."""
        rows = self.table.rows
        return PreviousTablePrivate(
            self.private.table.key,
            self.private.table.names,
            bytes(bool(row.sampled) for row in rows),
            np.array([row.positions for row in rows], np.int32).tobytes(),
            self.result.carried_opening,
            following.carried,
            None if self.ended is None else (self.ended.bits, self.ended.opening),
        )

    def listed_at_first(self, following: DocumentTable) -> bytes:
        """The rows that are listed when the next window begins."""
        assert self.ended is not None
        pairs = zip(self.ended.bits, following.carried, strict=True)
        return bytes(following.drawn) + bytes(bit for bit, carried in pairs if carried)


def rows_of(table: TablePrivate) -> Any:
    return np.frombuffer(table.row_of_position, np.int32).astype(np.int64)


def tenant(capacity: int, name: str = "law", header: str = "00" * 32) -> TenantPublic:
    constants = Constants(capacity, 16, 5, (), 20, 160, 64, 32, None, ("sample",), by_document=True)
    return TenantPublic(name, header, "22" * 32, constants, {})


def window(
    size: Size, number: int, previous: Window | None, *, low_memory: bool = False, pooled: bool = False
) -> Window:
    """A window with documents of 1 to s positions. From window to window some leave and some are new.

    :param pooled: with pooled listing; records list rows in each window but the second
    """
    rng = random.Random(100 * size.capacity + number)
    shape = TableShape(size.rows, size.positions, size.fresh)
    first, count = number * size.fresh // 2, size.rows - 2 * size.fresh
    documents = {f"document {k}": rng.randint(1, size.positions) for k in range(first, first + count)}
    while sum(documents.values()) > size.capacity:
        documents[max(documents, key=lambda key: documents[key])] -= 1
    table = place_documents(shape, documents, previous.table if previous else None, rng).table
    passages = [key for key, positions in documents.items() for _ in range(positions)]
    places = rng.sample(range(size.capacity), len(passages))
    rows = table.row_of_position(passages, places, size.capacity).astype(np.int32)
    names = [row.name if row.key is not None else None for row in table.rows]
    private = TablePrivate(bytes([number + 1]) * 32, rows.tobytes(), names)
    public = DocumentTablePublic(
        tenant=tenant(size.capacity, header=f"{number:064x}"),
        c_seed=seed_commitment(S0, S1),
        beacon=BEACON + number,
        slot=77 + number,
        name="sample",
        bound=BOUND,
        rows=size.rows,
        positions_per_document=size.positions,
        drawn=table.drawn,
        table=SYSTEM.commit_document_table(size.capacity, private),
        previous=previous.result.carried if previous else None,
        pooled=pooled,
        listed=previous.ended.commitment if previous and previous.ended else None,
    )
    witness = DocumentTablePrivate(S0, S1, private, previous.carried(table) if previous else None, low_memory)
    result = pickle.loads(pickle.dumps(COLUMN.prove(public, witness))).run()
    drawn = bernoulli_bits(noise_key(S0, S1, public.beacon, public.slot), table.drawn, BOUND)
    ended = None
    if pooled:
        bits = previous.listed_at_first(table) if previous else bytes(size.rows)
        ended = ListedRows(bits, result.carried_opening[len(result.carried_opening) // 3 * 2 :], None)
        if number != 1:
            bits = bytes(bit or rng.random() < 0.5 for bit in bits)
            commitment, opening = open_listed(size.capacity, bits, bytes([40 + number]) * 32)
            ended = ListedRows(bits, opening, commitment)
    return Window(table.with_bits(np.array(drawn, np.int8)), public, witness, result, ended)


@cache
def chain(size: Size, *, pooled: bool = False) -> list[Window]:
    windows: list[Window] = []
    for number in range(3):
        windows.append(window(size, number, windows[-1] if windows else None, pooled=pooled))
    return windows


def opened(
    public: ColumnPublic, result: CommittedTable, proof: Any = None, engine: str = "native", digest: str = ""
) -> OpenedTable:
    """A verifier's result. It has the digests of the tables, and the file's proof."""
    if isinstance(public, DocumentTablePublic):
        previous, listed = (
            None if named is None else ColumnCommitment(named.digest)
            for named in (public.previous, public.listed)
        )
        table = ColumnCommitment(public.table.digest)
        public = replace(public, table=table, previous=previous, listed=listed)
    value = FileProof(result.proof if proof is None else proof, "proofs.3.sample")
    accepted = COLUMN.open(public, digest or result.commitment.digest, value, {}, PINS, engine=engine)
    assert isinstance(accepted, OpenedTable)
    return accepted


@pytest.mark.parametrize("pooled", [False, True], ids=["sampling", "pooled listing"])
@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["64", "4096"])
def test_three_windows_of_a_chain_are_proved_and_opened(size: Size, pooled: bool) -> None:
    windows = chain(size, pooled=pooled)
    for number, at in enumerate(windows):
        assert at.public.drawn == (size.rows if number == 0 else size.fresh)
        for engine in ENGINES:
            accepted = opened(at.public, at.result, engine=engine)
            assert accepted.commitment == at.result.commitment
            assert accepted.carried == at.result.carried
    assert len({at.result.carried.digest for at in windows}) == 3
    again = {row.key: row for row in windows[0].table.rows if row.key is not None}
    both = [row for row in windows[2].table.rows if row.key in again]
    assert both and all(row.sampled == again[row.key].sampled for row in both)


def test_listed_rows_follow_their_documents() -> None:
    """A document that the first window listed is listed when the second one and the third one begin. A new document is
    not. The second window has no record, and the third one continues the rows that it began with."""
    first, second, third = chain(SMALL, pooled=True)
    assert first.ended and second.ended and third.ended
    assert [at.ended and at.ended.digest is None for at in (first, second, third)] == [False, True, False]
    assert third.public.listed is None and second.public.listed is not None
    keys = {row.key for row, bit in zip(first.table.rows, first.ended.bits, strict=True) if bit and row.key}
    began = {
        number: at.listed_at_first(after.table)
        for number, at, after in ((2, first, second), (3, second, third))
    }
    for number, at in ((2, second), (3, third)):
        bits = began[number]
        assert not any(bits[: at.table.drawn]) and any(bits)
        present = {row.key for row in at.table.rows}
        assert {
            row.key for row, bit in zip(at.table.rows, bits, strict=True) if bit and row.key
        } == keys & present
    # The commitments that the proofs yield open with the stored blindings.
    for at, bits in ((first, bytes(SMALL.rows)), (second, began[2]), (third, began[3])):
        commitment = at.result.commitment
        assert isinstance(commitment, TableCommitment)
        opening = at.result.carried_opening[64:]
        points = listed_rows(SMALL.capacity, bits, opening)
        assert listed_digest(SMALL.capacity, SMALL.rows, points) == commitment.listed


# Malicious providers of tenants with pooled listing: other listed rows than those at the end of the window before.


def _listed(at: Window) -> ColumnCommitment:
    assert at.ended is not None and at.ended.commitment is not None
    return at.ended.commitment


POOLED_STATEMENTS: dict[str, tuple[Callable[[], ColumnCommitment | None], type[RagAuditError]]] = {
    "no record of the window before": (lambda: None, SchemaError),
    "an earlier window": (lambda: _listed(chain(SMALL, pooled=True)[2]), InvalidProof),
    "no listed row": (
        lambda: ColumnCommitment(listed_digest(64, 16, no_rows(64, 16)), no_rows(64, 16)),
        InvalidProof,
    ),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", POOLED_STATEMENTS)
def test_a_proof_is_of_the_listed_rows_that_the_header_names(name: str, engine: str) -> None:
    listed, error = POOLED_STATEMENTS[name]
    at = chain(SMALL, pooled=True)[1]
    public = replace(at.public, listed=listed())
    with pytest.raises(error):
        opened(public, at.result, engine=engine)
    if public.listed is None:
        return
    # The file has the points of the named commitment too.
    moved = with_part(at.result.proof, "listed", public.listed.points)
    with pytest.raises(InvalidProof) as caught:
        opened(public, at.result, moved, engine)
    assert caught.value.field == "proof"
    with pytest.raises(InvalidProof) as caught:
        opened(at.public, at.result, moved, engine)
    assert caught.value.field == "proofs.3.sample.listed"


@pytest.mark.parametrize("engine", ENGINES)
def test_listed_rows_of_another_number_of_points_are_refused(engine: str) -> None:
    """Two columns with one digest would move the borders of the columns of the table before."""
    at = chain(SMALL, pooled=True)[1]
    points = _listed(chain(SMALL, pooled=True)[0]).points
    for other in (points * 2, b""):
        public = replace(at.public, listed=ColumnCommitment(listed_digest(64, 16, other)))
        with pytest.raises(InvalidProof) as caught:
            opened(public, at.result, with_part(at.result.proof, "listed", other), engine)
        assert caught.value.field == "proofs.3.sample.listed"
        assert "length" in str(caught.value)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_window_without_records_hands_on_the_rows_that_it_began_with(engine: str) -> None:
    """The third window names no record. Its proof takes the rows at the beginning of the second, which the second
    window's sample entry names."""
    _, second, third = chain(SMALL, pooled=True)
    assert second.ended and third.private.previous and third.public.previous
    proof = third.result.proof
    points = part(proof, "previous")
    other = open_listed(64, bytes(16), bytes(32))[0].points
    with pytest.raises(InvalidProof) as caught:
        opened(third.public, third.result, with_part(proof, "previous", points[:-32] + other), engine)
    assert caught.value.field == "proofs.3.sample.previous"
    digest = document_table.points_digest(document_table.CARRIED_POOLED, points[:-32] + other, 64, 16)
    public = replace(third.public, previous=ColumnCommitment(digest))
    with pytest.raises(InvalidProof) as caught:
        opened(public, third.result, with_part(proof, "previous", points[:-32] + other), engine)
    assert caught.value.field == "proof"


def test_false_listed_rows_have_no_proof() -> None:
    at = chain(SMALL, pooled=True)[1]
    assert at.private.previous is not None and at.private.previous.listed is not None
    bits, opening = at.private.previous.listed
    for listed, words in (
        ((bytes(16), opening), "listed rows are not those"),
        ((bytes([1 - bits[0]]) + bits[1:], opening), "listed rows are not those"),
        ((bits[:-1], opening), "listed rows are not those"),
        ((bits, bytes(32)), "listed rows are not those"),
        ((b"\x02" + bits[1:], opening), "listed: "),
    ):
        private = previous_with(listed=listed)(at.private)
        with pytest.raises(WitnessError) as caught:
            COLUMN.prove(at.public, private).run()
        assert words in str(caught.value.actual)
    with pytest.raises(WitnessError, match="disagree"):
        COLUMN.prove(at.public, previous_with(listed=None)(at.private))
    plain = chain(SMALL)[1]
    with pytest.raises(WitnessError, match="disagree"):
        COLUMN.prove(plain.public, previous_with(listed=(bits, opening))(plain.private))
    with pytest.raises(WitnessError) as named:
        COLUMN.prove(replace(at.public, listed=ColumnCommitment("11" * 32, b"")), at.private)
    assert named.value.field == "listed"


@pytest.mark.parametrize("engine", ENGINES)
def test_a_table_with_listed_rows_is_of_another_protocol(engine: str) -> None:
    plain, pooled = chain(SMALL)[1], chain(SMALL, pooled=True)[1]
    for public, proof in ((plain.public, pooled.result.proof), (pooled.public, plain.result.proof)):
        with pytest.raises(SchemaError):
            opened(public, plain.result, proof, engine)
    first = chain(SMALL, pooled=True)[0]
    with pytest.raises(SchemaError):
        opened(replace(first.public, pooled=False), first.result, engine=engine)


def test_the_sample_is_the_one_that_record_proofs_take() -> None:
    """The points and the opening of the sample serve a query proof, as those of a sampling proof do."""
    at = chain(SMALL)[2]
    capacity, dimension, listed, key, scores_of = SMALL.capacity, 8, 4, bytes(32), (10, 90, 64)
    rows = np.random.default_rng(5).integers(-7, 8, (capacity, dimension), dtype=np.int8)
    index = _native.ScanIndex(commit_index(rows.tobytes(), dimension, capacity, key), dimension, capacity)
    sample = opened(at.public, at.result).commitment.points
    parameters = _native.ScanParameters(bytes(32), [], listed, *scores_of, sample)
    vector = np.arange(-3, 5, dtype=np.int8)
    scores = rows.astype(np.int32) @ vector.astype(np.int32)
    sampled = (scores * np.array(at.bits, np.int32)).astype(np.int32)
    positions = _native.noised_top_k(sampled.tobytes(), *scores_of, bytes(4 * capacity), listed)
    cq, htopk = vector_commitment(5, vector.tolist()), topk_commitment(6, positions)
    record = b"".join(map(to_bytes, (at.public.c_seed, at.public.beacon, 5, 77, cq, htopk)))
    private = (
        record, b"", scores.tobytes(), (vector.tobytes(), to_bytes(5)),
        (np.array(positions, np.int32).tobytes(), to_bytes(6)),
    )  # fmt: skip
    opening = (bytes(at.bits), at.result.opening)
    proof = _native.scan_prove(index, parameters, [private], None, key, False, opening)
    _native.scan_verify(index, parameters, [record], b"", proof)
    other = _native.ScanParameters(
        bytes(32), [], listed, *scores_of, chain(SMALL)[1].result.commitment.points
    )
    with pytest.raises(ValueError, match="equations do not hold"):
        _native.scan_verify(index, other, [record], b"", proof)


def test_a_commitment_follows_from_key_and_values() -> None:
    private = chain(SMALL)[0].private.table
    commitment = SYSTEM.commit_document_table(64, private)
    assert commitment == chain(SMALL)[0].public.table
    assert len(commitment.points) == 7 * 32
    other = SYSTEM.commit_document_table(64, replace(private, key=bytes(32)))
    points = [[c.points[i : i + 32] for i in range(0, 224, 32)] for c in (commitment, other)]
    assert not set(points[0]) & set(points[1]), "every column is blinded"
    renamed = [b"n" * 32, *private.names[1:]]
    changed = SYSTEM.commit_document_table(64, replace(private, names=renamed)).points
    assert changed[:64] == commitment.points[:64] and changed[64:96] != commitment.points[64:96]
    unnamed = SYSTEM.commit_document_table(64, replace(private, names=[None, *private.names[1:]])).points
    assert unnamed[32:64] != commitment.points[32:64]


def test_a_name_is_one_element() -> None:
    name = bytes(range(32))
    assert name_element(name) < 1 << 248
    assert len({name_element(name), name_element(bytes(32)), name_element(name[1:] + name[:1])}) == 3


def test_a_proof_in_low_memory_is_accepted() -> None:
    windows = chain(SMALL)
    low = window(SMALL, 2, windows[1], low_memory=True)
    for engine in ENGINES:
        assert opened(low.public, low.result, engine=engine).commitment == low.result.commitment


@pytest.mark.parametrize("engine", ENGINES)
def test_a_window_with_bits_of_its_own_has_no_table_before(engine: str) -> None:
    size = Size(64, 16, 6, 16)
    shape, documents = TableShape(16, 6, None), {"one": 3, "two": 6}
    table = place_documents(shape, documents).table
    rows = table.row_of_position(["one"] * 3 + ["two"] * 6, range(9), 64).astype(np.int32)
    names = [row.name if row.key is not None else None for row in table.rows]
    private = TablePrivate(bytes(32), rows.tobytes(), names)
    commitment = SYSTEM.commit_document_table(64, private)
    public = replace(chain(SMALL)[0].public, rows=16, drawn=size.fresh, table=commitment, previous=None)
    result = COLUMN.prove(public, DocumentTablePrivate(S0, S1, private, None)).run()
    assert isinstance(result, CommittedTable)
    assert opened(public, result, engine=engine).carried == result.carried


# Malicious providers: other public values than those of the proof.


def change_statement(name: str, value: Callable[[Window], object]) -> Callable[[Window], Any]:
    return lambda at: replace(at.public, **{name: value(at)})


STATEMENTS = {
    "rows": change_statement("rows", lambda at: at.public.rows - 1),
    "positions": change_statement("positions_per_document", lambda at: at.public.positions_per_document + 1),
    "drawn": change_statement("drawn", lambda at: at.public.drawn - 1),
    "one more drawn": change_statement("drawn", lambda at: at.public.drawn + 1),
    "bound": change_statement("bound", lambda at: at.public.bound + 1),
    "slot": change_statement("slot", lambda at: at.public.slot + 1),
    "beacon": change_statement("beacon", lambda at: at.public.beacon + 1),
    "seed": change_statement("c_seed", lambda at: at.public.c_seed + 1),
    "tenant": change_statement("tenant", lambda at: replace(at.public.tenant, tenant="medicine")),
    "header": change_statement("tenant", lambda at: replace(at.public.tenant, header="11" * 32)),
    "table before of the window before": change_statement(
        "previous", lambda _: chain(SMALL)[0].result.carried
    ),
    "table before of no window": change_statement("previous", lambda at: at.public.table),
    "table of the window before": change_statement("table", lambda _: chain(SMALL)[1].public.table),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", STATEMENTS)
def test_a_proof_is_of_one_statement(name: str, engine: str) -> None:
    at = chain(SMALL)[2]
    assert at.public.previous is not None
    with pytest.raises(InvalidProof):
        opened(STATEMENTS[name](at), at.result, engine=engine)


@pytest.mark.parametrize("engine", ENGINES)
def test_every_public_number_is_in_the_context(engine: str) -> None:
    """The native core absorbs the numbers too. The context alone excludes another value."""
    at = chain(SMALL)[2]
    contexts = {at.public.context}
    for name in ("rows", "positions", "drawn", "bound", "tenant", "header"):
        contexts.add(STATEMENTS[name](at).context)
    contexts.add(STATEMENTS["table before of the window before"](at).context)
    contexts.add(STATEMENTS["table of the window before"](at).context)
    contexts.add(replace(at.public, previous=None).context)
    larger = replace(at.public.tenant, constants=replace(at.public.tenant.constants, capacity=65))
    contexts.add(replace(at.public, tenant=larger).context)
    pooled = replace(at.public, pooled=True)
    contexts |= {pooled.context, replace(pooled, listed=ColumnCommitment("11" * 32)).context}
    assert len(contexts) == 13
    covered = {"tenant", "name", "bound", "rows", "positions_per_document", "drawn", "table", "previous"}
    covered |= {"pooled", "listed"}
    absorbed = {"c_seed", "beacon", "slot"}
    assert {f.name for f in dataclasses.fields(at.public)} == covered | absorbed


def part(proof: Any, name: str) -> bytes:
    return base64.b64decode(proof[name])


def with_part(proof: Any, name: str, data: bytes) -> Any:
    return {**copy.deepcopy(proof), name: base64.b64encode(data).decode()}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ["table", "previous"])
def test_points_are_those_of_the_named_table(name: str, engine: str) -> None:
    """Another table's points, columns that change places, one point more or less: the digest in the window header."""
    at, before = chain(SMALL)[2], chain(SMALL)[1]
    points = part(at.result.proof, name)
    others = {
        "of the window before": part(before.result.proof, name),
        "two columns exchanged": points[32:64] + points[:32] + points[64:],
        "one less": points[:-32],
        "one more": points + points[:32],
        "none": b"",
    }
    for other in others.values():
        with pytest.raises(InvalidProof) as caught:
            opened(at.public, at.result, with_part(at.result.proof, name, other), engine)
        assert caught.value.field == f"proofs.3.sample.{name}"


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ["table", "previous"])
def test_points_with_their_digest_are_those_of_the_proof(name: str, engine: str) -> None:
    """Where the header names other points of the right number too, the proof itself excludes them."""
    at = chain(SMALL)[2]
    kind = document_table.TABLE if name == "table" else document_table.CARRIED
    points = part(at.result.proof, name)
    for other in (points[32:64] + points[:32] + points[64:], points[:-64] + points[-32:] + points[-64:-32]):
        digest = document_table.points_digest(kind, other, 64, 16)
        public = replace(at.public, **{name: ColumnCommitment(digest)})  # type: ignore[arg-type]
        with pytest.raises(InvalidProof):
            opened(public, at.result, with_part(at.result.proof, name, other), engine)


@pytest.mark.parametrize("engine", ENGINES)
def test_points_of_another_number_are_named(engine: str) -> None:
    at = chain(SMALL)[2]
    points = part(at.result.proof, "table")[:-32]
    digest = document_table.points_digest(document_table.TABLE, points, 64, 16)
    public = replace(at.public, table=ColumnCommitment(digest))
    with pytest.raises(RagAuditError) as caught:
        opened(public, at.result, with_part(at.result.proof, "table", points), engine)
    assert "table" in str(caught.value.actual)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_ledger_names_the_sample_of_the_proof(engine: str) -> None:
    at, before = chain(SMALL)[2], chain(SMALL)[1]
    for digest in (before.result.commitment.digest, at.result.carried.digest, at.public.table.digest):
        with pytest.raises(InvalidProof, match="another commitment"):
            opened(at.public, at.result, engine=engine, digest=digest)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_changed_proof_is_refused(engine: str) -> None:
    at = chain(SMALL)[2]
    proof = part(at.result.proof, "proof")
    other = part(chain(SMALL)[1].result.proof, "proof")
    flipped = proof[:-1] + bytes([proof[-1] ^ 1])
    for bad in (other, flipped, proof[:32] + proof[:32] + proof[64:]):
        with pytest.raises(RagAuditError):
            opened(at.public, at.result, with_part(at.result.proof, "proof", bad), engine)
    for bad in (proof[:-1], proof + bytes(32), b"", b"\xff" * len(proof)):
        with pytest.raises(EncodingError):
            opened(at.public, at.result, with_part(at.result.proof, "proof", bad), engine)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_proof_of_another_kind_is_refused(engine: str) -> None:
    """A sampling proof is no proof of a sample by document, and a proof with a table before none of a first window."""
    first, at = chain(SMALL)[0], chain(SMALL)[2]
    by_position = ColumnPublic(
        at.public.tenant, at.public.c_seed, at.public.beacon, at.public.slot, "sample", BOUND
    )
    sampling = COLUMN.prove(by_position, ColumnPrivate(S0, S1, bytes(32))).run()
    named = {**sampling.proof, "protocol": DOCUMENT_TABLE_PROTOCOL}
    without = {key: value for key, value in at.result.proof.items() if key != "previous"}
    dressed = {**without, "proof": sampling.proof["proof"]}
    for public, proof in (
        (at.public, sampling.proof),
        (at.public, named),
        (at.public, without),
        (first.public, at.result.proof),
        (by_position, at.result.proof),
        (replace(at.public, previous=None, drawn=16), at.result.proof),
        (at.public, {**at.result.proof, "protocol": BERNOULLI_PROTOCOL}),
    ):
        with pytest.raises(SchemaError):
            opened(public, at.result, proof, engine)
    with pytest.raises(RagAuditError):
        opened(replace(at.public, previous=None, drawn=16), at.result, dressed, engine)


# Limits.

LIMITS: dict[str, tuple[dict[str, int], str]] = {
    "no rows": ({"rows": 0}, "rows"),
    "fewer than no rows": ({"rows": -1}, "rows"),
    "too many rows": ({"rows": (1 << 20) + 1}, "rows"),
    "more rows than positions": ({"rows": 65}, "rows"),
    "no positions": ({"positions_per_document": 0}, "positions_per_document"),
    "more than all positions": ({"positions_per_document": 65}, "positions_per_document"),
    "more drawn than rows": ({"drawn": 17}, "drawn"),
    "none drawn": ({"drawn": 0}, "drawn"),
}


@pytest.mark.parametrize("name", LIMITS)
def test_numbers_out_of_range_are_named(name: str) -> None:
    changes, field = LIMITS[name]
    at = chain(SMALL)[2]
    public = replace(at.public, **changes)  # type: ignore[arg-type]
    for engine in ENGINES:
        with pytest.raises(PolicyError) as caught:
            opened(public, at.result, engine=engine)
        assert caught.value.field == field
    with pytest.raises(PolicyError) as caught:
        COLUMN.prove(public, at.private)
    assert caught.value.field == field


def test_a_first_window_draws_all_rows() -> None:
    at = chain(SMALL)[0]
    with pytest.raises(PolicyError) as caught:
        opened(replace(at.public, drawn=15), at.result)
    assert caught.value.field == "drawn"


@pytest.mark.parametrize(
    ("numbers", "field"),
    [
        ((64, 0, 6, 4, BOUND), "rows"),
        ((1 << 21, (1 << 20) + 1, 6, 4, BOUND), "rows"),
        ((64, (1 << 64) - 1, 6, 4, BOUND), "rows"),
        ((64, 16, 0, 4, BOUND), "positions per row"),
        ((64, 16, 65, 4, BOUND), "positions per row"),
        ((64, 16, 6, 17, BOUND), "fresh rows"),
        ((64, 16, 6, 0, BOUND), "fresh rows"),
        ((0, 16, 6, 4, BOUND), "capacity"),
        (((1 << 64) - 1, 16, 6, 4, BOUND), "capacity"),
        ((64, 16, 6, 4, 0), "bound"),
        ((64, 16, 6, 4, 1 << 40), "bound"),
    ],
)
def test_the_verifiers_themselves_refuse_numbers_by_name(
    numbers: tuple[int, int, int, int, int], field: str
) -> None:
    at = chain(SMALL)[2]
    slot = b"".join(map(to_bytes, (at.public.c_seed, at.public.beacon, at.public.slot)))
    tables = part(at.result.proof, "table"), part(at.result.proof, "previous")
    proof = part(at.result.proof, "proof")
    with pytest.raises(ValueError, match=f"^{field}: "):
        _native.scan_documents_verify(bytes(32), slot, numbers, *tables, False, proof)
    with pytest.raises(EncodingError, match="out of range"):
        ReferenceTable.decode(bytes(32), Seed(1, 2, 3), numbers, *tables)
    with pytest.raises(ValueError, match=f"^{field}: "):
        _native.scan_documents_prove(
            bytes(32), slot, numbers, *tables, False, (bytes(64), b"", b"", b"", bytes(32)), None, False
        )


def test_negative_numbers_are_no_panic() -> None:
    at = chain(SMALL)[2]
    arguments = bytes(32), bytes(96), (64, -1, 6, 4, BOUND), part(at.result.proof, "table"), None, False, b""
    with pytest.raises(OverflowError):
        _native.scan_documents_verify(*arguments)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"names": []}, "rows: "),
        ({"names": [None] * 65}, "rows: "),
        ({"row_of_position": bytes(4 * 63)}, "row: "),
        ({"row_of_position": np.full(64, 17, np.int32).tobytes()}, "row: "),
        ({"row_of_position": np.full(64, -1, np.int32).tobytes()}, "row: "),
        ({"row_of_position": bytes(4 * 64 - 1)}, "row: "),
        ({"key": bytes(31)}, "key: "),
    ],
)
def test_a_table_that_has_no_commitment_is_named(changes: dict[str, Any], reason: str) -> None:
    private = replace(chain(SMALL)[0].private.table, **changes)
    with pytest.raises(EncodingError) as caught:
        SYSTEM.commit_document_table(64, private)
    assert str(caught.value.actual).startswith(reason)


# Private inputs that do not satisfy the statement: the prover names the reason.


def previous_with(**changes: Any) -> Callable[[DocumentTablePrivate], DocumentTablePrivate]:
    def change(private: DocumentTablePrivate) -> DocumentTablePrivate:
        assert private.previous is not None
        return replace(private, previous=replace(private.previous, **changes))

    return change


def table_with(**changes: Any) -> Callable[[DocumentTablePrivate], DocumentTablePrivate]:
    return lambda private: replace(private, table=replace(private.table, **changes))


PRIVATE: dict[str, tuple[Callable[[DocumentTablePrivate], DocumentTablePrivate], str]] = {
    "seed": (lambda private: replace(private, s0=S0 + 1), "hash outputs"),
    "key": (table_with(key=bytes(32)), "committed table"),
    "rows": (table_with(row_of_position=np.full(64, 16, np.int32).tobytes()), "committed table"),
    "key before": (previous_with(key=bytes(32)), "names are not those"),
    "bits before": (previous_with(bits=bytes(16)), "coins are not those"),
    "bits that are no bits": (previous_with(bits=b"\x02" * 16), "coins: "),
    "positions before": (previous_with(positions=bytes(64)), "numbers of positions are not those"),
    "negative positions before": (
        previous_with(positions=np.full(16, -1, np.int32).tobytes()),
        "numbers of positions are not those",
    ),
    "fewer positions before": (previous_with(positions=b""), "numbers of positions are not those"),
    "opening before": (previous_with(opening=bytes(64)), "coins are not those"),
    "no opening before": (previous_with(opening=b""), "coins are not those"),
    "all are carried": (previous_with(carried=[True] * 16), "carried rows"),
    "rows with positions are given up": (
        previous_with(carried=[False] * 4 + [True] * 12),
        "is not carried|has not the name",
    ),
}


@pytest.mark.parametrize("name", PRIVATE)
def test_false_private_inputs_have_no_proof(name: str) -> None:
    change, reason = PRIVATE[name]
    at = chain(SMALL)[2]
    with pytest.raises(WitnessError) as caught:
        COLUMN.prove(at.public, change(at.private)).run()
    assert any(word in str(caught.value.actual) for word in reason.split("|")), caught.value.actual


def test_points_without_their_digest_are_not_proved() -> None:
    at = chain(SMALL)[2]
    assert at.public.previous is not None
    for name, named in (("table", at.public.table), ("previous", at.public.previous)):
        with pytest.raises(WitnessError) as caught:
            COLUMN.prove(replace(at.public, **{name: replace(named, points=b"")}), at.private)  # type: ignore[arg-type]
        assert caught.value.field == name
    with pytest.raises(WitnessError, match="disagree"):
        COLUMN.prove(at.public, replace(at.private, previous=None))
    with pytest.raises(WitnessError, match="only one of"):
        COLUMN.prove(at.public, ColumnPrivate(S0, S1, bytes(32)))


def test_no_representation_shows_a_secret() -> None:
    at = chain(SMALL)[2]
    shown = repr([at.private, at.result, COLUMN.prove(at.public, at.private)])
    assert at.private.previous is not None
    for secret in (at.private.table.key, at.private.table.row_of_position, at.private.previous.opening,
                   at.result.opening, at.result.carried_opening, at.private.previous.bits):  # fmt: skip
        assert repr(secret) not in shown


def test_sizes_depend_on_public_numbers_only() -> None:
    """A window without documents has a proof of the same length."""
    at = chain(SMALL)[0]
    private = TablePrivate(bytes(32), np.full(64, 16, np.int32).tobytes(), [None] * 16)
    public = replace(at.public, table=SYSTEM.commit_document_table(64, private))
    result = COLUMN.prove(public, DocumentTablePrivate(S0, S1, private, None)).run()
    lengths = [{k: len(str(v)) for k, v in proof.items()} for proof in (result.proof, at.result.proof)]
    assert lengths[0] == lengths[1]


def test_a_circuit_is_named_by_the_constants() -> None:
    constants = tenant(64).constants
    assert SYSTEM.circuits(constants)["sample"] == DOCUMENT_TABLE_PROTOCOL
    assert SYSTEM.circuits(replace(constants, by_document=False))["sample"] == BERNOULLI_PROTOCOL
    pooled = replace(
        constants, pools=True, flip_probability=1, threshold=1, rows=16, positions_per_document=6
    )
    assert SYSTEM.circuits(pooled)["sample"] == POOLED_TABLE_PROTOCOL
    assert len({DOCUMENT_TABLE_PROTOCOL, BERNOULLI_PROTOCOL, POOLED_TABLE_PROTOCOL}) == 3


def test_a_machine_with_too_little_memory_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    at = chain(SMALL)[0]
    monkeypatch.setattr(memory, "available_bytes", lambda: 1 << 20)
    with pytest.raises(RagAuditError, match="needs"):
        COLUMN.prove(at.public, at.private).run()
