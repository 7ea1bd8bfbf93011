"""Proofs of lists of a listing tenant (docs/circuits.md, "`listing`")."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from rag_audit._internal.canonical import Json
from rag_audit._internal.errors import WitnessError
from rag_audit.proofs.backends.groth16.circuit import Inputs, compile_circuit, compute_witness
from rag_audit.proofs.backends.groth16.coins import LISTING_INPUTS, ListingInstance
from rag_audit.proofs.backends.groth16.job import Bound, prove
from rag_audit.proofs.backends.groth16.many import record_digest
from rag_audit.proofs.backends.groth16.statements import ListingStatement
from rag_audit.relation.vectors import pack_bits, pack_nibbles


@dataclass(frozen=True)
class ListingQuery:
    """The private inputs of one list, which `repr` omits.

    :param vector: the query vector, dimension int8
    :param salt_c: salt of cq
    :param salt_k: salt of htopk
    """

    vector: bytes = field(repr=False)
    salt_c: int = field(repr=False)
    salt_k: int = field(repr=False)


@dataclass(frozen=True)
class ListingJob(Bound):
    """The job that proves `listing` for successive records of one account. It is picklable, and holds secrets, which
    `repr` omits.

    :param instance: the circuit
    :param statement: the public values
    :param s0: first half of the seed
    :param s1: second half of the seed
    :param index_salt: salt of the index commitment
    :param rows: the committed index, capacity x dimension int8, row by row
    :param kept: one byte 0 or 1 for each position, and the salt of c_kept
    :param before: what the account holds before the first record, likewise, and the salt of its commitment
    :param after_salt: salt of the commitment to what it holds after the last record
    :param queries: the records, in the order of their numbers
    :param vk: see `prove`
    """

    instance: ListingInstance
    statement: ListingStatement
    s0: int = field(repr=False)
    s1: int = field(repr=False)
    index_salt: int = field(repr=False)
    rows: bytes = field(repr=False)
    kept: tuple[bytes, int] = field(repr=False)
    before: tuple[bytes, int] = field(repr=False)
    after_salt: int = field(repr=False)
    queries: Sequence[ListingQuery] = field(repr=False)
    vk: str | None = None

    def inputs(self) -> Inputs:
        """The circuit's inputs by signal name.

        :raises WitnessError: an input has another size than the circuit's
        """
        instance = self.instance
        sizes = {
            "rows": (len(self.rows), instance.capacity * instance.dimension),
            "kept": (len(self.kept[0]), instance.capacity),
            "before": (len(self.before[0]), instance.capacity),
            "queries": (len(self.queries), instance.queries),
            **{
                f"queries[{k}].vector": (len(q.vector), instance.dimension)
                for k, q in enumerate(self.queries)
            },
        }
        for name, (found, expected) in sizes.items():
            if found != expected:
                raise WitnessError("does not fit the circuit", field=name, expected=expected, found=found)
        return {
            **{name: getattr(self.statement, name) for name in LISTING_INPUTS},
            "s0": self.s0,
            "s1": self.s1,
            "index_salt": self.index_salt,
            "index": pack_nibbles(memoryview(self.rows).cast("b")),
            "kept_salt": self.kept[1],
            "kept": pack_bits(map(bool, self.kept[0])),
            "before_salt": self.before[1],
            "before": pack_bits(map(bool, self.before[0])),
            "after_salt": self.after_salt,
            "salt_c": [query.salt_c for query in self.queries],
            "query": [x for query in self.queries for x in pack_nibbles(memoryview(query.vector).cast("b"))],
            "salt_k": [query.salt_k for query in self.queries],
        }

    def run(self) -> dict[str, Json]:
        """The proof as JSON: system, circuit, a, b, c.

        :raises WitnessError: the private inputs do not satisfy the statement
        :raises SetupError: Node, circuit or keys are missing and cannot be made
        """
        return prove(self.instance, self.inputs(), self.statement, vk=self.vk)


@dataclass(frozen=True)
class ListingManyJob(Bound):
    """The job that proves `listing` for successive records of one account, of which each has a job of its own. It is
    picklable, and holds secrets, which `repr` omits.

    :param instance: the circuit, with as many records as there are jobs
    :param records: a job of the circuit for one record for each, in the order of their numbers
    :param names: names of the records in errors
    :param vk: see `prove`
    """

    instance: ListingInstance
    records: tuple[ListingJob, ...]
    names: tuple[str, ...]
    vk: str | None = None

    def joined(self) -> ListingJob:
        """The job for all records in one.

        :raises SchemaError: the statements do not follow one another
        :raises WitnessError: a record differs in what is shared, or does not hold before it what the one before it left
        """
        first, last = self.records[0], self.records[-1]
        one = replace(self.instance, queries=1)
        for job, name in zip(self.records, self.names, strict=True):
            if job.instance != one:
                raise WitnessError("a record is of another circuit", field=f"{name}.instance")
            for shared in ("s0", "s1", "index_salt", "rows", "kept"):
                if getattr(job, shared) != getattr(first, shared):
                    raise WitnessError(
                        "a record has other private inputs than the rest", field=f"{name}.{shared}"
                    )
        for job, after, name in zip(self.records, self.records[1:], self.names[1:], strict=False):
            if job.after_salt != after.before[1]:
                raise WitnessError("a record does not follow the one before it", field=f"{name}.before")
        return replace(
            first,
            instance=self.instance,
            statement=ListingStatement.of([job.statement for job in self.records], self.instance.queries),
            after_salt=last.after_salt,
            queries=tuple(query for job in self.records for query in job.queries),
            vk=self.vk,
        )

    def run(self) -> dict[str, Json]:
        """The proof as JSON: system, circuit, a, b, c, records.

        :raises WitnessError: the private inputs do not satisfy the statement; `field` names the first record that has
            no proof of its own
        :raises SchemaError: as `joined`
        :raises SetupError: Node, circuit or keys are missing and cannot be made
        """
        try:
            proof = self.joined().run()
        except WitnessError as exc:
            for job, name in zip(self.records if exc.field is None else (), self.names, strict=False):
                try:
                    compute_witness(compile_circuit(job.instance), job.inputs())
                except WitnessError:
                    exc.field = name
                    break
            raise
        return proof | {"records": [record_digest(job.statement).hex() for job in self.records]}
