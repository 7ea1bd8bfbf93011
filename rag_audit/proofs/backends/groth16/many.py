"""One proof for several records of one tenant and window (docs/circuits.md, "Several records in one proof")."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

from rag_audit._internal.canonical import Json, parse_hex
from rag_audit._internal.errors import SchemaError, WitnessError
from rag_audit.proofs.backends.groth16.circuit import Inputs
from rag_audit.proofs.backends.groth16.encoding import parse_fields
from rag_audit.proofs.backends.groth16.instance import MAX_QUERIES, RetrieveManyInstance
from rag_audit.proofs.backends.groth16.job import Bound, ProofJob, order, parse_proof, prove, verify
from rag_audit.proofs.backends.groth16.keys import VerificationKey
from rag_audit.proofs.backends.groth16.statements import ManyStatement
from rag_audit.proofs.records import Group
from rag_audit.proofs.statements.retrieve import Statement
from rag_audit.proofs.statements.tenant import PublicValues

_SHARED = ("s0", "s1", "index_salt", "rows", "kept")
_OWN = ("salt_c", "query", "salt_k", "position")


@dataclass(frozen=True)
class RetrieveManyJob(Bound):
    """The job that proves `retrieve` for several records. It is picklable, and holds secrets, which `repr` omits.

    :param instance: the circuit
    :param records: a job of `instance.each` for each record; unused places repeat the last
    :param names: names of the records in errors; their places if empty
    :param vk: see `prove`
    """

    instance: RetrieveManyInstance
    records: tuple[ProofJob, ...]
    names: tuple[str, ...] = ()
    vk: str | None = None

    def _name(self, number: int) -> str:
        return self.names[number] if self.names else f"records[{number}]"

    @property
    def statement(self) -> ManyStatement:
        """The public values.

        :raises SchemaError: there are no records or too many, or they are of several tenants or windows
        """
        return ManyStatement.of([job.statement for job in self.records], self.instance.queries)

    def inputs(self) -> Inputs:
        """The circuit's inputs by signal name.

        :raises SchemaError: as `statement`
        :raises WitnessError: a record's private inputs do not fit the circuit, or differ where they are shared
        """
        statement = self.statement
        first = self.records[0]
        own = []
        for number, job in enumerate(self.records):
            if job.instance != self.instance.each:
                raise WitnessError("a record is of another circuit", field=f"{self._name(number)}.instance")
            for name in _SHARED:
                if getattr(job, name) != getattr(first, name):
                    raise WitnessError(
                        "a record has other private inputs than the rest",
                        field=f"{self._name(number)}.{name}",
                    )
            try:
                own.append(job.inputs())
            except WitnessError as exc:
                exc.field = f"{self._name(number)}.{exc.field}"
                raise
        own += [own[-1]] * (self.instance.queries - len(own))
        public = self.instance.public_inputs
        return {
            **{name: getattr(statement, name) for name in public},
            **{name: value for name, value in own[0].items() if name not in (*public, *_OWN)},
            **{name: [x for values in own for x in _listed(values[name])] for name in _OWN},
        }

    def run(self) -> dict[str, Json]:
        """The proof as JSON: system, circuit, a, b, c, records.

        :raises WitnessError: a record's private inputs do not satisfy its statement; `field` names the record
        :raises SchemaError: as `statement`
        :raises SetupError: Node, circuit or keys are missing and cannot be made
        """
        try:
            proof = prove(self.instance, self.inputs(), self.statement, vk=self.vk)
        except WitnessError as exc:
            for number, job in enumerate(self.records if exc.field is None else ()):
                misfit = job.misfit()
                if misfit is not None:
                    raise WitnessError(
                        "a record's private inputs do not satisfy its statement",
                        field=f"{self._name(number)}.{misfit}",
                        found=exc.found,
                    ) from exc
            raise
        places = [job.statement for job in self.records]
        places += [places[-1]] * (self.instance.queries - len(places))
        return proof | {"records": [record_digest(record).hex() for record in places]}


def _listed(value: int | Sequence[int]) -> Sequence[int]:
    return (value,) if isinstance(value, int) else value


def record_digest(record: PublicValues) -> bytes:
    """SHA-256 over a record's public values, by which a proof of several records names each of them."""
    return sha256(record.encode(order(record))).digest()


@dataclass(frozen=True)
class ManyProof:
    """A proof for several records, and the records that it claims to be for. Only the proof is verified; the claim
    serves to name a record that does not fit.

    :param proof: 256 bytes, EIP-197 order
    :param records: `record_digest` of the record at each place
    """

    proof: bytes
    records: tuple[bytes, ...]

    @property
    def group(self) -> Group:
        """The same as `verify_groups` takes it. Proofs of the same bytes for other records are other proofs."""
        return Group(self.records, sha256(self.proof + b"".join(self.records)).digest(), (self.proof,))


def parse_many_proof(value: Json, circuit: str, *, field: str) -> ManyProof:
    """A proof for several records from a file.

    :raises SchemaError: the proof has other fields, or is of another system or circuit
    :raises EncodingError: the proof is not canonical, or a point is at infinity or off the curve
    """
    value = parse_fields(value, ("system", "circuit", "a", "b", "c", "records"), field=field)
    records = value["records"]
    if not isinstance(records, list) or not 2 <= len(records) <= MAX_QUERIES:
        raise SchemaError(
            "the value is not a list of records", field=f"{field}.records", expected=f"2..{MAX_QUERIES}"
        )
    return ManyProof(
        parse_proof({name: x for name, x in value.items() if name != "records"}, circuit, field=field),
        tuple(parse_hex(text, 32, field=f"{field}.records[{i}]") for i, text in enumerate(records)),
    )


def verify_many(
    key: VerificationKey, proof: ManyProof, records: Sequence[Statement], *, engine: str = "native"
) -> list[int]:
    """The indices of the records that a proof does not hold for, ascending: those for which the proof names another
    record, or all of them where the names agree and the proof does not verify.

    :param records: the records in the proof's order, at most as many as it has places
    :raises SchemaError: there are no records or too many, or they are of several tenants or windows
    :raises EncodingError, SetupError: as `job.verify`
    """
    statement = ManyStatement.of(records, len(proof.records))
    last = len(records) - 1
    digests = [record_digest(record) for record in records]
    others = {min(i, last) for i, said in enumerate(proof.records) if said != digests[min(i, last)]}
    if others:
        return sorted(others)
    return [] if verify(key, proof.proof, statement, engine=engine) else list(range(len(records)))
