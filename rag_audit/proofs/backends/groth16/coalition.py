"""The coalition proof of a small window by the circuit `coalition` (docs/circuits.md)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from math import gcd

from rag_audit._internal.canonical import Json
from rag_audit._internal.errors import InvalidProof, WitnessError
from rag_audit.proofs.backends.groth16.circuit import Inputs
from rag_audit.proofs.backends.groth16.instance import CoalitionInstance
from rag_audit.proofs.backends.groth16.job import prove
from rag_audit.proofs.backends.groth16.keys import VerificationKey, proving_key
from rag_audit.proofs.backends.groth16.shared import pinned_key
from rag_audit.proofs.backends.groth16.statements import CoalitionDigest
from rag_audit.proofs.backends.groth16.verifiers import parse_key, parse_proof
from rag_audit.proofs.backends.groth16.verifiers import verify as verify_proof
from rag_audit.proofs.coalition import Coalition, Run
from rag_audit.proofs.interface import Pins
from rag_audit.proofs.records import OpenedKey
from rag_audit.proofs.statements.coalition import CoalitionSize, CoalitionStatement
from rag_audit.proofs.statements.private import CoalitionPrivate
from rag_audit.relation.native import hash_list
from rag_audit.relation.native_secrets import vector_commitment
from rag_audit.relation.tags import TAG_COALITION
from rag_audit.relation.vectors import pack_nibbles

MASK_BITS = 252
"""Bits of the public mask in one field element."""


class Groth16Coalition:
    """The steps of coalition proofs by the circuit `coalition` (`CoalitionSteps`)."""

    def digest(self, size: CoalitionSize) -> str:
        """The digest of the circuit for windows of up to `size.records` records.

        :raises PolicyError: there is no such circuit
        """
        return instance(size).digest()

    def published_keys(self, size: CoalitionSize) -> dict[str, Json]:
        """See `CoalitionSteps.published_keys`."""
        circuit = instance(size)
        return {circuit.digest(): proving_key(circuit).vk}

    def open_key(
        self, size: CoalitionSize, published: Mapping[str, Json], pins: Pins
    ) -> OpenedKey[VerificationKey]:
        """See `CoalitionSteps.open_key`."""
        return pinned_key(instance(size).digest(), published, pins)

    def own_key(self, size: CoalitionSize) -> VerificationKey:
        """See `CoalitionSteps.own_key`."""
        return parse_key(proving_key(instance(size)).vk, field="verification key")

    def make(self, statement: CoalitionStatement, private: CoalitionPrivate, run: Run) -> dict[str, Json]:
        """Make the coalition proof, which is one Groth16 proof, in one job.

        :raises WitnessError: the claim is false, or there are more records than the circuit has places
        :raises SetupError: Node, circuit or keys are missing and cannot be made
        """
        ((_, coalition_proof),) = run([(0, CoalitionJob.of(statement, private))])
        run.report(1, 1)
        return coalition_proof

    def verify(
        self,
        statement: CoalitionStatement,
        coalition_proof: Json,
        *,
        key: VerificationKey,
        engine: str = "native",
    ) -> None:
        """Return if the coalition proof proves the statement.

        :raises InvalidProof: the proof does not prove it
        :raises EncodingError: the proof is not canonical
        :raises SchemaError: the proof has other fields, or is of another system or circuit
        :raises WitnessError: the statement does not fit the circuit
        """
        circuit, public = coalition_circuit_statement(statement)
        proof = parse_proof(coalition_proof, circuit, field="coalition_proof")
        if not verify_proof(key, proof, public, engine=engine):
            raise InvalidProof("the coalition proof does not verify", field="coalition_proof")


SYSTEM = Coalition(Groth16Coalition())
"""The coalition proofs of this system (`Backend.coalition`)."""


def coalition_circuit_statement(statement: CoalitionStatement) -> tuple[str, CoalitionDigest]:
    """The circuit's digest and the public value of a statement's coalition proof.

    :raises WitnessError: the statement does not fit the circuit
    """
    places = Places.of(statement)
    return places.instance.digest(), CoalitionDigest(places.digest())


@dataclass(frozen=True)
class Places:
    """A statement as the circuit takes it: places for the records account by account, then unused places.

    :param order: the record at each used place, by its place in the ledger
    """

    instance: CoalitionInstance
    statement: CoalitionStatement
    order: tuple[int, ...]

    @classmethod
    def of(cls, statement: CoalitionStatement) -> Places:
        """Assign a statement's records to places.

        :raises WitnessError: there is no record, or more records than places
        """
        circuit = instance(statement.size)
        count = len(statement.cq)
        if not 0 < count <= circuit.records:
            raise WitnessError("the window does not fit the coalition proof's circuit", field="records",
                               expected=f"1..{circuit.records}", actual=count,
                               hint="`rag-audit provider close --no-coalition-proof` closes it without the"
                                    " proof")  # fmt: skip
        order = sorted(range(count), key=lambda record: (statement.account[record], record))
        return cls(circuit, statement, tuple(order))

    def cq(self) -> list[int]:
        """The commitments by place; an unused place has the commitment to the zero vector, without a salt."""
        unused = self.instance.records - len(self.order)
        empty = vector_commitment(0, [0] * self.instance.dimension) if unused else 0
        return [*(self.statement.cq[record] for record in self.order), *[empty] * unused]

    def mask(self) -> list[int]:
        """The public bits, packed into field elements (circuits/lib/coalition.circom)."""
        bits = list(self._bits())
        return [
            sum(bit << place for place, bit in enumerate(bits[start : start + MASK_BITS]))
            for start in range(0, len(bits), MASK_BITS)
        ]

    def _bits(self) -> Iterator[bool]:
        statement, order = self.statement, self.order
        account = [statement.account[record] for record in order]
        same = [False, *(a == b for a, b in pairwise(account))]
        unused = self.instance.records - len(order)
        yield from [*same, *[False] * unused]
        for relation in (self._compared, self._counted, self._of_one_tenant):
            for j in range(self.instance.records):
                for i in range(j):
                    yield j < len(order) and relation(i, j)

    def _compared(self, i: int, j: int) -> bool:
        statement = self.statement
        early, late = sorted((self.order[i], self.order[j]))
        return statement.account[early] != statement.account[late] and statement.first[late] <= early

    def _counted(self, i: int, j: int) -> bool:
        return self._first_of_its_account(i) and self._first_of_its_account(j)

    def _of_one_tenant(self, i: int, j: int) -> bool:
        statement = self.statement
        a, b = (statement.tenant[statement.account[self.order[place]]] for place in (i, j))
        return self._counted(i, j) and a == b

    def _first_of_its_account(self, place: int) -> bool:
        account = self.statement.account
        return place == 0 or account[self.order[place]] != account[self.order[place - 1]]

    def digest(self) -> int:
        """The circuit's public input: HL(11, [ctx, c, c_tenant, cq by place, mask])."""
        statement = self.statement
        return hash_list(
            TAG_COALITION,
            [statement.ctx, statement.c, statement.c_tenant, *self.cq(), *self.mask()],
        )


@dataclass(frozen=True)
class CoalitionJob:
    """The job that proves `coalition` for one window. It is picklable. It contains secrets, which `repr` omits."""

    places: Places
    private: CoalitionPrivate = field(repr=False)

    @classmethod
    def of(cls, statement: CoalitionStatement, private: CoalitionPrivate) -> CoalitionJob:
        """The job for a statement and its private inputs.

        :raises WitnessError: the window does not fit the circuit, or the private inputs do not fit the window
        """
        places = Places.of(statement)
        sizes = {
            "vectors": (len(private.vectors), len(statement.cq) * statement.dimension),
            "salts": (len(private.salts), len(statement.cq)),
            "labels": (len(private.labels), len(statement.tenant)),
        }
        for name, (actual, expected) in sizes.items():
            if actual != expected:
                raise WitnessError("does not fit the window", field=name, expected=expected, actual=actual)
        return cls(places, private)

    def inputs(self) -> Inputs:
        """The circuit's inputs by signal name."""
        places, private = self.places, self.private
        statement, dimension = places.statement, places.instance.dimension
        unused = places.instance.records - len(places.order)
        rows = [private.vectors[dimension * record : dimension * (record + 1)] for record in places.order]
        vectors = [memoryview(row).cast("b") for row in [*rows, *[bytes(dimension)] * unused]]
        labels = [private.labels[statement.account[record]] for record in places.order]
        return {
            "statement": places.digest(),
            "ctx": statement.ctx,
            "c": statement.c,
            "c_tenant": statement.c_tenant,
            "cq": places.cq(),
            "mask": places.mask(),
            "salt": [*(private.salts[record] for record in places.order), *[0] * unused],
            "vector": [element for vector in vectors for element in pack_nibbles(vector)],
            "label": [*labels, *[0] * unused],
        }

    def run(self) -> dict[str, Json]:
        """The coalition proof as JSON: system, circuit, a, b, c.

        :raises WitnessError: the claim is false
        :raises SetupError: Node, circuit or keys are missing and cannot be made
        """
        return prove(self.places.instance, self.inputs(), CoalitionDigest(self.places.digest()))


def instance(size: CoalitionSize) -> CoalitionInstance:
    """The circuit for windows of up to `size.records` records.

    :raises PolicyError: there is no such circuit
    """
    p, q = size.theta
    common = gcd(p, q)
    return CoalitionInstance(size.records, size.dimension, (p // common, q // common))
