"""The proof that rows of a document table have opened names, by the circuit `names` (docs/circuits.md)."""

from __future__ import annotations

from collections.abc import Sequence

from rag_audit._internal.canonical import Json
from rag_audit._internal.errors import InvalidProof, SchemaError, WitnessError
from rag_audit.proofs.backends.groth16.circuit import Inputs
from rag_audit.proofs.backends.groth16.documents import Table
from rag_audit.proofs.backends.groth16.encoding import parse_fields
from rag_audit.proofs.backends.groth16.instance import NamesInstance
from rag_audit.proofs.backends.groth16.job import prove
from rag_audit.proofs.backends.groth16.keys import proving_key
from rag_audit.proofs.backends.groth16.shared import pinned_key
from rag_audit.proofs.backends.groth16.statements import NamesStatement
from rag_audit.proofs.backends.groth16.verifiers import failures, parse_key, parse_proof
from rag_audit.proofs.interface import Pins
from rag_audit.proofs.row_names import NamesSetup
from rag_audit.proofs.statements.document_table import name_element
from rag_audit.proofs.statements.private import TablePrivate
from rag_audit.proofs.statements.row_names import RowNamesPublic
from rag_audit.relation.document_table import opened_list, pack_rows
from rag_audit.relation.field import digest_to_field, from_hex
from rag_audit.relation.native import hash_list

_FIELD = "names.proof"


class Groth16RowNames:
    """The proofs of the names of rows by the circuit `names` (`proofs.row_names.RowNames`)."""

    def prove(self, statement: RowNamesPublic, private: TablePrivate) -> dict[str, Json]:
        """See `RowNames.prove`: a, b, c, and the verification key. The first proof of a size makes the keys.

        :raises PolicyError: no circuit can be built for the size of the table
        """
        instance = NamesInstance(statement.capacity, statement.rows)
        documents, opened = numbered(statement)
        table, number = Table.of(private), [0] * statement.rows
        for position, document in enumerate(documents):
            if document < statement.rows:
                number[document] = table.row_of_position[position]
        public = _public(statement, documents, opened)
        inputs: Inputs = {
            "ctx": public.ctx,
            "c_table": public.c_table,
            "c_opened": public.c_opened,
            **table.openings(),
            "document": pack_rows(statement.rows, documents),
            "opened": opened,
            "number": number,
        }
        vk = proving_key(instance)
        try:
            proof = prove(instance, inputs, public, vk=vk.vk_digest)
        except WitnessError as exc:
            # The reason may name a row, and row numbers are secret.
            raise WitnessError("the names of the rows have no valid proof", field=f"names of {statement.tenant}",
                               hint="restore the table of the window from a copy of its folder") from exc  # fmt: skip
        return {**proof, "key": vk.vk}

    def verify(self, statement: RowNamesPublic, proof: Json, pins: Pins | None = None) -> NamesSetup:
        """See `RowNames.verify`. The key is the answer's; a pin of its circuit decides whether it is the account's."""
        value = parse_fields(proof, ("system", "circuit", "a", "b", "c", "key"), field=_FIELD)
        circuit = NamesInstance(statement.capacity, statement.rows).digest()
        rest: Json = {name: part for name, part in value.items() if name != "key"}
        found = parse_proof(rest, circuit, field=_FIELD)
        setup: NamesSetup = "unpinned"
        if pins is not None and pins.key(circuit) is not None:
            pinned = pinned_key(circuit, {circuit: value["key"]}, pins)
            key, setup = pinned.key, "ceremony" if pinned.setup == "ceremony" else "unsafe"
        else:
            key = parse_key(value["key"], field=f"{_FIELD}.key")
            if key.circuit != circuit:
                raise SchemaError("the key is another circuit's", field=f"{_FIELD}.key", expected=circuit,
                                  actual=key.circuit)  # fmt: skip
        public = _public(statement, *numbered(statement))
        reason = failures(key, [found], [public]).get(0)
        if isinstance(reason, InvalidProof):
            raise InvalidProof("the proof is refused", field=_FIELD, actual=reason.message) from reason
        if reason is not None:
            raise reason
        return setup


def numbered(statement: RowNamesPublic) -> tuple[list[int], list[int]]:
    """The number of each position's document, in the order of the documents' first positions, and the element of each
    document's name. Two documents never have one name here, which is the verifier's part of the statement.

    :returns: D for a position that is not opened; 0 after the last document
    :raises InvalidProof: there are more names than rows, or a name has the element 0
    :raises SchemaError: the positions do not increase, or a position is out of range
    """
    positions, rows = statement.positions, statement.rows
    elements = [name_element(name) for name in statement.names]
    if len(elements) != len(positions) or any(
        not before < position < statement.capacity
        for before, position in zip([-1, *positions], positions, strict=False)
    ):
        raise SchemaError("the positions are no list for the table", field="names.positions",
                          expected=f"increasing, each with a name, below {statement.capacity}")  # fmt: skip
    order = {element: number for number, element in enumerate(dict.fromkeys(elements))}
    if len(order) > rows or 0 in order:
        raise InvalidProof("no table has these names", field="names.names", expected=f"at most {rows}, none 0",
                           actual=len(order))  # fmt: skip
    documents = [rows] * statement.capacity
    for position, element in zip(positions, elements, strict=True):
        documents[position] = order[element]
    return documents, [*order, *[0] * (rows - len(order))]


def _public(statement: RowNamesPublic, documents: Sequence[int], opened: Sequence[int]) -> NamesStatement:
    return NamesStatement(
        ctx=digest_to_field(statement.context),
        c_table=from_hex(statement.table.digest, field="table.c_table"),
        c_opened=hash_list(*opened_list(documents, opened)),
    )


SYSTEM = Groth16RowNames()
"""The proofs that `proofs.row_names.row_names_of` returns."""
