"""The jobs that make Groth16 proofs: of records, one or several in a proof, and of a sample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from rag_audit import _native
from rag_audit._internal.canonical import Json
from rag_audit._internal.errors import SetupError, WitnessError
from rag_audit.proofs.backends.groth16.circuit import Inputs, assign, compile_circuit
from rag_audit.proofs.backends.groth16.instance import (
    SAMPLE_INPUTS,
    Instance,
    RetrieveInstance,
    SampleInstance,
)
from rag_audit.proofs.backends.groth16.keys import proving_key
from rag_audit.proofs.backends.groth16.statements import ManyStatement
from rag_audit.proofs.backends.groth16.verifiers import parse_key, proof_json, records_json, verify
from rag_audit.proofs.statements.private import CommittedColumn
from rag_audit.proofs.statements.retrieve import Statement
from rag_audit.proofs.statements.sample import SampleStatement
from rag_audit.proofs.statements.tenant import ColumnCommitment, PublicValues
from rag_audit.relation.field import to_bytes, to_hex
from rag_audit.relation.native_secrets import noise_key, sample_commitment
from rag_audit.relation.scores import ScoreWindow, dot
from rag_audit.relation.vectors import pack_bits, pack_nibbles

_SHARED = ("s0", "s1", "index_salt", "rows", "sample")
"""The private inputs that the records of a proof have in common."""
_OWN = ("salt_c", "query", "salt_k", "position")
"""The signals that have a value for each record."""


@dataclass(frozen=True)
class Bound:
    """The common part of this system's jobs (`BoundJob`): a circuit, and the verifiers' key.

    :param instance: the circuit
    :param vk: see `prove`
    """

    instance: Instance
    vk: str | None = field(default=None, kw_only=True)

    @property
    def keys(self) -> dict[str, str]:
        """See `BoundJob.keys`."""
        return {} if self.vk is None else {self.instance.digest(): self.vk}


@dataclass(frozen=True, kw_only=True)
class RecordInputs:
    """One record's private inputs, which `repr` omits, and its statement.

    :param instance: the circuit for a batch with only this record
    :param statement: the public values
    :param s0: first half of the seed; None without noise, because such proofs do not need it
    :param s1: second half of the seed, likewise
    :param index_salt: salt of the index commitment
    :param rows: the committed index, capacity x dimension int8, row by row
    :param vector: the query vector, dimension int8
    :param salt_c: salt of cq
    :param salt_k: salt of htopk
    :param sample: for a tenant with a sample, one byte 0 or 1 for each position, and the salt of c_kept
    :param positions: the listed positions in rank order
    """

    instance: RetrieveInstance
    statement: Statement
    s0: int | None = field(repr=False, default=None)
    s1: int | None = field(repr=False, default=None)
    index_salt: int = field(repr=False)
    rows: bytes = field(repr=False)
    vector: bytes = field(repr=False)
    salt_c: int = field(repr=False)
    salt_k: int = field(repr=False)
    sample: tuple[bytes, int] | None = field(repr=False, default=None)
    positions: Sequence[int] = field(repr=False)

    def sizes(self) -> Mapping[str, tuple[int, int]]:
        """The sizes of the private inputs, and the sizes that the circuit expects."""
        instance = self.instance
        return {
            "rows": (len(self.rows), instance.capacity * instance.dimension),
            "vector": (len(self.vector), instance.dimension),
            "sample": (
                len(self.sample[0]) if self.sample else 0,
                instance.capacity if instance.sampled else 0,
            ),
            "seed": ((self.s0 is not None) + (self.s1 is not None), 2 if instance.seeded else 0),
            "positions": (len(self.positions), instance.top_k),
        }

    def private(self) -> Inputs:
        """The circuit's private inputs by signal name.

        :raises WitnessError: an input has another size than the circuit's, or the seed is there and the proof does not
            need it, or the reverse
        """
        for name, (actual, expected) in self.sizes().items():
            if actual != expected:
                raise WitnessError("does not fit the circuit", field=name, expected=expected, actual=actual)
        seed = {} if self.s0 is None or self.s1 is None else {"s0": self.s0, "s1": self.s1}
        sample: Inputs = {}
        if self.sample is not None:
            sample = {"kept": _bits(self.sample[0]), "kept_salt": self.sample[1]}
        return {
            **seed,
            **sample,
            "index_salt": self.index_salt,
            "index": pack_nibbles(memoryview(self.rows).cast("b")),
            "salt_c": self.salt_c,
            "query": pack_nibbles(memoryview(self.vector).cast("b")),
            "salt_k": self.salt_k,
            "position": list(self.positions),
        }

    def misfit(self) -> str | None:
        """The reason why the private inputs do not satisfy the statement, as a suffix of the record's name: the first
        public value that the private inputs do not give, or "positions" where these are not the first K; None if all
        fits. The reference takes seconds to find it.
        """
        # Only a proof that failed needs the reference, and verifiers import this module too.
        from rag_audit.relation import commitments, draws
        from rag_audit.relation.selection import top_k

        instance = self.instance
        vector = memoryview(self.vector).cast("b").tolist()
        flat = memoryview(self.rows).cast("b").tolist()
        rows = [flat[i : i + len(vector)] for i in range(0, len(flat), len(vector))]
        given = {
            "c_idx": commitments.index_commitment(self.index_salt, rows),
            "cq": commitments.vector_commitment(self.salt_c, vector),
            "htopk": commitments.topk_commitment(self.salt_k, self.positions),
        }
        sampled, z = [True] * instance.capacity, [0] * instance.capacity
        if self.s0 is not None and self.s1 is not None:
            given["c_seed"] = commitments.seed_commitment(self.s0, self.s1)
            kappa = commitments.noise_key(self.s0, self.s1, self.statement.beacon, self.statement.slot)
            z = draws.draw(kappa, instance.capacity, instance.gains)
        if self.sample is not None:
            sampled = [bool(bit) for bit in self.sample[0]]
            given["c_kept"] = commitments.sample_commitment(self.sample[1], sampled)
        for name, value in given.items():
            if getattr(self.statement, name) != value:
                return f".{name}"
        window = ScoreWindow(instance.lo, instance.hi, instance.lattice)
        y = [
            bit * window.quantise(dot(vector, row)) + n for bit, row, n in zip(sampled, rows, z, strict=True)
        ]
        return None if top_k(y, instance.top_k) == list(self.positions) else ".positions"


@dataclass(frozen=True)
class RecordsJob(Bound):
    """The job that proves `retrieve` for one record or several. It is picklable. It contains secrets, which `repr`
    omits.

    :param instance: the circuit
    :param records: the records, in the order of their numbers; unused places repeat the last
    :param names: names of several records in errors; their places if empty
    """

    instance: RetrieveInstance
    records: tuple[RecordInputs, ...]
    names: tuple[str, ...] = ()

    @property
    def statement(self) -> ManyStatement:
        """The public values.

        :raises SchemaError: there are no records or too many, or they cannot share a proof
        """
        return ManyStatement.of([record.statement for record in self.records], self.instance.queries)

    def _at(self, number: int) -> str:
        """The name of a record in errors; a single record has none."""
        if self.instance.queries == 1:
            return ""
        return self.names[number] if self.names else f"records[{number}]"

    def inputs(self) -> Inputs:
        """The circuit's inputs by signal name.

        :raises SchemaError: as `statement`
        :raises WitnessError: a record's private inputs do not fit the circuit, or differ although they are shared
        """
        statement = self.statement
        first, one = self.records[0], replace(self.instance, queries=1)
        own = []
        for number, record in enumerate(self.records):
            if record.instance != one:
                raise WitnessError(
                    "a record is of another circuit", field=_dotted(self._at(number), "instance")
                )
            for name in _SHARED:
                if getattr(record, name) != getattr(first, name):
                    raise WitnessError("a record has other private inputs than the rest",
                                       field=_dotted(self._at(number), name))  # fmt: skip
            try:
                own.append(record.private())
            except WitnessError as exc:
                exc.field = _dotted(self._at(number), exc.field)
                raise
        own += [own[-1]] * (self.instance.queries - len(own))
        return {
            **own[0],
            **{name: [x for v in own for x in _listed(v[name])] for name in _OWN if name in own[0]},
            **{name: getattr(statement, name) for name in self.instance.public_inputs},
        }

    def run(self) -> dict[str, Json]:
        """The proof as its records carry it: system, circuit, a, b, c, records.

        :raises WitnessError: the private inputs do not satisfy the statement; of several records, `field` names the
            first that does not satisfy its own
        :raises SchemaError: as `statement`
        :raises SetupError: Node, circuit or keys are missing and cannot be made
        """
        try:
            proof = prove(self.instance, self.inputs(), self.statement, vk=self.vk)
        except WitnessError as exc:
            for number, record in enumerate(self.records if exc.field is None else ()):
                misfit = record.misfit()
                if misfit is not None and self.instance.queries > 1:
                    raise WitnessError(
                        "a record's private inputs do not satisfy its statement",
                        field=self._at(number) + misfit,
                        actual=exc.actual,
                    ) from exc
            raise
        unused = self.instance.queries - len(self.records)
        records = [record.statement for record in self.records]
        return records_json(proof, [*records, *records[-1:] * unused])


def _dotted(record: str, name: str | None) -> str:
    return f"{record}.{name}" if record else str(name)


def _listed(value: int | Sequence[int]) -> Sequence[int]:
    return (value,) if isinstance(value, int) else value


def _bits(flags: bytes) -> list[int]:
    return pack_bits(map(bool, flags))


def sampled_positions(
    capacity: int, *, s0: int, s1: int, beacon: int, slot: int, keep: int, salt: int
) -> tuple[bytes, int]:
    """The sampled positions of a seed, one byte 0 or 1 each, and the commitment to them.

    :param beacon: f(beacon value)
    :param slot: the tenant's sampling slot
    :param keep: Pi, in 1..2^40 - 1
    :param salt: the commitment's salt
    """
    sampled = _native.draw_bernoulli_bits(to_bytes(noise_key(s0, s1, beacon, slot)), capacity, keep)
    return sampled, sample_commitment(salt, [bool(bit) for bit in sampled])


@dataclass(frozen=True)
class ColumnJob(Bound):
    """The job that proves `kept` for one column of a tenant and window. It is picklable. It contains secrets, which
    `repr` omits.

    :param instance: the circuit
    :param statement: the public values
    :param s0: first half of the seed
    :param s1: second half of the seed
    :param salt: salt of c_kept
    """

    instance: SampleInstance
    statement: SampleStatement
    s0: int = field(repr=False)
    s1: int = field(repr=False)
    salt: int = field(repr=False)

    def inputs(self) -> Inputs:
        """The circuit's inputs by signal name."""
        return {
            **{name: getattr(self.statement, name) for name in SAMPLE_INPUTS},
            "s0": self.s0,
            "s1": self.s1,
            "salt": self.salt,
        }

    def run(self) -> CommittedColumn:
        """The commitment, its salt, and the proof as JSON: system, circuit, a, b, c.

        :raises WitnessError: the private inputs do not satisfy the statement
        :raises SetupError: Node, circuit or keys are missing and cannot be made
        """
        proof = prove(self.instance, self.inputs(), self.statement, vk=self.vk)
        commitment = ColumnCommitment(to_hex(self.statement.c_kept))
        return CommittedColumn(commitment, proof, to_bytes(self.salt))


def prove(
    instance: Instance, inputs: Inputs, statement: PublicValues, *, vk: str | None = None
) -> dict[str, Json]:
    """Make a proof from the circuit's inputs, as JSON, that verifies under the published key.

    :param statement: the public values; verifiers will check the proof against them
    :param vk: digest of the published verification key; None selects the key in this machine's cache
    :raises WitnessError: the inputs do not satisfy the circuit
    :raises SetupError: Node, circuit or keys are missing and cannot be made, the key in the cache differs from the
        published one, or the proof does not verify under it
    """
    keys = proving_key(instance)
    if vk is not None and keys.vk_digest != vk:
        raise SetupError(
            "the key in the cache is another than the published one",
            field=str(keys.zkey.parent),
            expected=f"vk {vk}",
            actual=f"vk {keys.vk_digest}",
            hint="copy the circuit's cache folder here from the machine that published the key",
        )
    circuit = compile_circuit(instance)
    witness = assign(circuit, inputs)
    try:
        proof = _native.groth16_prove(str(keys.zkey), witness, circuit.r1cs)
    except (ValueError, OSError) as exc:
        raise SetupError("the prover failed", field=str(keys.zkey), actual=str(exc)) from exc
    # The proving key contains its own verification key, which may differ from the verifiers' key.
    if not verify(parse_key(keys.vk, field="verification key"), proof, statement):
        raise SetupError(
            "the proof does not verify under the published key",
            field=str(keys.zkey),
            expected=f"the proving key of vk {keys.vk_digest}",
        )
    return proof_json(proof, keys.manifest["circuit"])
