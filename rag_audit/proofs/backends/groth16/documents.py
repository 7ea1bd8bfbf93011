"""The proof that a tenant's sample follows documents, by the circuit `documents` (docs/circuits.md), and the commitment
to its table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from rag_audit import _native
from rag_audit._internal.canonical import Json
from rag_audit._internal.errors import PolicyError, WitnessError
from rag_audit.proofs.backends.groth16.circuit import Inputs
from rag_audit.proofs.backends.groth16.encoding import parse_fields
from rag_audit.proofs.backends.groth16.instance import DOCUMENTS_INPUTS, DocumentsInstance
from rag_audit.proofs.backends.groth16.job import Bound, prove
from rag_audit.proofs.backends.groth16.statements import DocumentsStatement
from rag_audit.proofs.backends.groth16.verifiers import parse_proof
from rag_audit.proofs.statements.document_table import DocumentTablePublic, name_element
from rag_audit.proofs.statements.private import (
    CommittedTable,
    DocumentTablePrivate,
    PreviousTablePrivate,
    TablePrivate,
)
from rag_audit.proofs.statements.tenant import ColumnCommitment
from rag_audit.relation.document_table import (
    carried_list,
    names_list,
    pack_marks,
    pack_rows,
    row_bits,
    rows_list,
)
from rag_audit.relation.field import derive_salt, from_bytes, from_hex, to_bytes, to_hex
from rag_audit.relation.native import hash_list
from rag_audit.relation.native_secrets import noise_key, sample_commitment
from rag_audit.relation.vectors import pack_bits

_NAMES, _ROWS, _CARRIED, _SAMPLE = "names", "rows", "carried", "sample"
"""The salts that follow from a table's key."""


@dataclass(frozen=True)
class Table:
    """The values of a table as the circuit takes them. All of them are secret.

    :param names: the name of each row, a field element; 0 for a row without a name
    :param row_of_position: the number of rows for a position without a row
    """

    key: bytes = field(repr=False)
    names: list[int] = field(repr=False)
    row_of_position: list[int] = field(repr=False)

    @classmethod
    def of(cls, table: TablePrivate) -> Table:
        return cls(table.key, [*map(name_element, table.names)], _integers(table.row_of_position))

    @property
    def positions(self) -> list[int]:
        """The number of positions of each row."""
        result = [0] * (len(self.names) + 1)
        for row in self.row_of_position:
            result[row] += 1
        return result[:-1]

    def names_commitment(self) -> int:
        return hash_list(*names_list(derive_salt(self.key, _NAMES), self.names))

    def openings(self) -> dict[str, int | list[int]]:
        """The circuits' private inputs behind C_table, by signal name."""
        return {
            "names_salt": derive_salt(self.key, _NAMES),
            "name": self.names,
            "table_salt": derive_salt(self.key, _ROWS),
            "row": pack_rows(len(self.names), self.row_of_position),
        }

    def commitment(self) -> int:
        """C_table."""
        salt, names = derive_salt(self.key, _ROWS), self.names_commitment()
        return hash_list(*rows_list(salt, names, len(self.names), self.row_of_position))


def _integers(data: bytes) -> list[int]:
    """The values of an int32 array, little-endian."""
    return list(memoryview(data).cast("i"))


def commit_table(capacity: int, table: TablePrivate) -> ColumnCommitment:
    """See `Backend.commit_document_table`: one hash, so there are no points.

    :raises PolicyError: no circuit can be built for the number of rows
    :raises EncodingError: a position has a row that the table does not have
    """
    DocumentsInstance(capacity, len(table.names))
    return ColumnCommitment(to_hex(Table.of(table).commitment()))


@dataclass(frozen=True)
class DocumentTableJob(Bound):
    """The job that proves a tenant's sample by document. It is picklable. It contains the seed, both tables and their
    salts, which `repr` omits.

    :param instance: the circuit
    :param statement: the public values
    :param private: the circuit's private inputs by signal name
    """

    instance: DocumentsInstance
    statement: DocumentsStatement
    private: Inputs = field(repr=False)

    @classmethod
    def of(cls, public: DocumentTablePublic, private: DocumentTablePrivate) -> DocumentTableJob:
        """The job for a statement.

        :raises PolicyError: a public number is out of range, or no circuit proves the statement
        :raises WitnessError: statement and private inputs disagree on whether there is a table before, or on its size
        """
        public.check()
        if public.pooled:
            raise no_listed_rows()
        private.check(public)
        capacity, rows = public.tenant.constants.capacity, public.rows
        table = Table.of(private.table)
        kappa = noise_key(private.s0, private.s1, public.beacon, public.slot)
        drawn = _native.draw_bernoulli_bits(to_bytes(kappa), public.drawn, public.bound)
        before = _Before.of(private.previous, capacity, rows, public.drawn)
        kept = [*map(bool, drawn), *before.carried_bits]
        sample = [row < rows and kept[row] for row in table.row_of_position]
        salts = {name: derive_salt(table.key, name) for name in (_CARRIED, _SAMPLE)}
        names = table.names_commitment()
        carried = hash_list(*carried_list(salts[_CARRIED], names, capacity, kept, table.positions))
        return cls(
            DocumentsInstance(capacity, rows),
            DocumentsStatement.of(
                public, c_carried=carried, c_kept=sample_commitment(salts[_SAMPLE], sample)
            ),
            {
                "s0": private.s0,
                "s1": private.s1,
                "kept_salt": salts[_SAMPLE],
                "kept": pack_bits(sample),
                **table.openings(),
                "carried_salt": salts[_CARRIED],
                "mark": pack_marks(capacity, kept, table.positions),
                **before.inputs,
            },
        )

    def inputs(self) -> Inputs:
        """The circuit's inputs by signal name."""
        return {**{name: getattr(self.statement, name) for name in DOCUMENTS_INPUTS}, **self.private}

    def run(self) -> CommittedTable:
        """The commitments, their salts, and the proof as JSON: system, circuit, a, b, c, carried.

        :raises WitnessError: the private inputs do not satisfy the statement
        :raises SetupError: Node, circuit or keys are missing and cannot be made
        """
        proof = prove(self.instance, self.inputs(), self.statement, vk=self.vk)
        carried = ColumnCommitment(to_hex(self.statement.c_carried))
        return CommittedTable(
            ColumnCommitment(to_hex(self.statement.c_kept)),
            proof | {"carried": carried.digest},
            self._salt("kept_salt"),
            carried,
            self._salt("carried_salt"),
        )

    def _salt(self, name: str) -> bytes:
        salt = self.private[name]
        assert isinstance(salt, int)
        return to_bytes(salt)


@dataclass(frozen=True)
class _Before:
    """The table before, as the circuit takes it.

    :param inputs: private inputs by signal name; of no table before, a table without names, bits and positions
    :param carried_bits: the bits of the carried rows
    """

    inputs: Inputs = field(repr=False)
    carried_bits: list[bool] = field(repr=False)

    @classmethod
    def of(cls, before: PreviousTablePrivate | None, capacity: int, rows: int, drawn: int) -> _Before:
        """
        :param drawn: the number of fresh rows of the table that continues it
        :raises WitnessError: the table before has another number of rows, or another number of them is carried
        """
        if before is None:
            marks = pack_marks(capacity, [False] * rows, [0] * rows)
            empty: Inputs = {"before_names_salt": 0, "before_name": [0] * rows, "before_salt": 0,
                             "before_mark": marks, "move": moves(rows, rows, [])}  # fmt: skip
            return cls(empty, [])
        carried = [row for row, stays in enumerate(before.carried) if stays]
        for name, actual, expected in (
            ("previous.rows", {len(before.names), len(before.bits), len(before.carried)}, {rows}),
            ("previous.carried", {len(carried)}, {rows - drawn}),
        ):
            if actual != expected:
                raise WitnessError("the table before has another size", field=name,
                                   expected=str(*expected), actual=", ".join(map(str, sorted(actual))))  # fmt: skip
        kept = [bool(bit) for bit in before.bits]
        return cls(
            {
                "before_names_salt": derive_salt(before.key, _NAMES),
                "before_name": [*map(name_element, before.names)],
                "before_salt": from_bytes(before.opening, field="previous.opening"),
                "before_mark": pack_marks(capacity, kept, _integers(before.positions)),
                "move": moves(rows, drawn, carried),
            },
            [kept[row] for row in carried],
        )


def moves(rows: int, drawn: int, carried: Sequence[int]) -> list[int]:
    """The input `move` of the circuit, layer by layer: the carried rows of the table before follow the drawn rows.
    Layer l moves a row by 2^l places if bit l of its distance is 1. Two rows never meet in a layer, because rows keep
    their order and later rows have smaller or equal distances.

    :param carried: the numbers of the carried rows in the table before, ascending
    """
    layers = row_bits(rows)
    result = [0] * (layers * rows)
    for place, row in enumerate(carried, drawn):
        distance = place - row
        for layer in range(layers):
            row += distance & 1 << layer
            result[layer * rows + row] = distance >> layer & 1
    return result


def read_proof(
    public: DocumentTablePublic, digest: str, value: Json, circuit: str, *, field: str
) -> tuple[DocumentsStatement, bytes]:
    """The circuit's public values for a proof in a file, and the proof, 256 bytes in EIP-197 order. The proof names the
    table with its bits; the caller compares this name with the ledger.

    :param digest: the commitment to the sampled positions
    :raises PolicyError: a public number is out of range, or no circuit proves the statement
    :raises SchemaError: the proof has other fields, or is of another system or circuit
    :raises EncodingError: a commitment or a coordinate is not canonical
    """
    public.check()
    if public.pooled:
        raise no_listed_rows()
    value = parse_fields(value, ("system", "circuit", "a", "b", "c", "carried"), field=field)
    carried = from_hex(value["carried"], field=f"{field}.carried")
    rest: Json = {name: part for name, part in value.items() if name != "carried"}
    c_kept = from_hex(digest, field=public.name)
    statement = DocumentsStatement.of(public, c_carried=carried, c_kept=c_kept)
    return statement, parse_proof(rest, circuit, field=field)


def no_listed_rows() -> PolicyError:
    """The error for pooled listing."""
    return PolicyError("no circuit proves pooled listing", field="mechanism",
                       expected="sampling, or the tenant's system scan", actual="pooled-listing",
                       hint="use `--system scan`")  # fmt: skip
