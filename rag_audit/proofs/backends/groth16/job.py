"""Groth16 proof jobs, and the three verifiers: native, py_ecc, snarkjs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from rag_audit import _native
from rag_audit._internal.canonical import Json, parse_hex
from rag_audit._internal.errors import (
    EncodingError,
    InvalidProof,
    RagAuditError,
    SchemaError,
    SetupError,
    WitnessError,
)
from rag_audit.proofs.backends.groth16.circuit import Inputs, assign, compile_circuit
from rag_audit.proofs.backends.groth16.coins import (
    KEPT_INPUTS,
    LISTING_INPUTS,
    SAMPLED_INPUTS,
    SampledInstance,
)
from rag_audit.proofs.backends.groth16.encoding import g1_json, g2_json, parse_fields, parse_g1, parse_g2
from rag_audit.proofs.backends.groth16.instance import (
    COALITION_INPUTS,
    EMBED_INPUTS,
    PUBLIC_INPUTS,
    Instance,
    RetrieveInstance,
)
from rag_audit.proofs.backends.groth16.keys import VerificationKey, proving_key
from rag_audit.proofs.backends.groth16.statements import (
    CoalitionDigest,
    ListingStatement,
    ManySampledStatement,
    ManyStatement,
)
from rag_audit.proofs.batch import Refusals
from rag_audit.proofs.statements.embed import EmbedStatement
from rag_audit.proofs.statements.retrieve import SampledStatement, Statement
from rag_audit.proofs.statements.sample import KeptStatement
from rag_audit.proofs.statements.tenant import PublicValues
from rag_audit.relation import commitments, noise
from rag_audit.relation.scores import ScoreWindow, dot
from rag_audit.relation.selection import top_k
from rag_audit.relation.vectors import pack_bits, pack_nibbles

ENGINES = ("native", "py_ecc", "snarkjs")
_ORDER: dict[type[PublicValues], tuple[str, ...]] = {
    Statement: PUBLIC_INPUTS,
    ManyStatement: PUBLIC_INPUTS,
    SampledStatement: SAMPLED_INPUTS,
    ManySampledStatement: SAMPLED_INPUTS,
    EmbedStatement: EMBED_INPUTS,
    CoalitionDigest: COALITION_INPUTS,
    KeptStatement: KEPT_INPUTS,
    ListingStatement: LISTING_INPUTS,
}
"""The names of a statement's public values, in the order of its circuit's verification key."""


class Bound:
    """What every job of this system has (`BoundJob`): a circuit, and the key that verifiers will use.

    :param instance: the circuit
    :param vk: see `prove`
    """

    instance: Instance
    vk: str | None

    @property
    def keys(self) -> dict[str, str]:
        """See `BoundJob.keys`."""
        return {} if self.vk is None else {self.instance.digest(): self.vk}


@dataclass(frozen=True)
class ProofJob(Bound):
    """The job that proves `retrieve` for one record. It is picklable, and holds secrets, which `repr` omits.

    :param instance: the circuit
    :param statement: the public values
    :param s0: first half of the seed; None without noise, whose proofs do not need it
    :param s1: second half of the seed, likewise
    :param index_salt: salt of the index commitment
    :param rows: the committed index, capacity x dimension int8, row by row
    :param vector: the query vector, dimension int8
    :param salt_c: salt of cq
    :param salt_k: salt of htopk
    :param positions: the listed positions in rank order
    :param kept: of a sampled tenant, one byte 0 or 1 for each position, and the salt of c_kept
    :param vk: see `prove`
    """

    instance: RetrieveInstance | SampledInstance
    statement: Statement
    s0: int | None = field(repr=False)
    s1: int | None = field(repr=False)
    index_salt: int = field(repr=False)
    rows: bytes = field(repr=False)
    vector: bytes = field(repr=False)
    salt_c: int = field(repr=False)
    salt_k: int = field(repr=False)
    positions: Sequence[int] = field(repr=False)
    kept: tuple[bytes, int] | None = field(repr=False, default=None)
    vk: str | None = None

    def inputs(self) -> Inputs:
        """The circuit's inputs by signal name.

        :raises WitnessError: rows, vector, positions or kept positions have another size than the circuit's, or the
            seed is there and no noise, or the reverse
        """
        instance = self.instance
        sampled = isinstance(instance, SampledInstance) and instance.sampled
        sizes = {
            "rows": (len(self.rows), instance.capacity * instance.dimension),
            "vector": (len(self.vector), instance.dimension),
            "positions": (len(self.positions), instance.top_k),
            "kept": (len(self.kept[0]) if self.kept else 0, instance.capacity if sampled else 0),
            "seed": ((self.s0 is not None) + (self.s1 is not None), 2 if instance.gains else 0),
        }
        for name, (found, expected) in sizes.items():
            if found != expected:
                raise WitnessError("does not fit the circuit", field=name, expected=expected, found=found)
        private: dict[str, int | Sequence[int]] = {}
        if self.s0 is not None and self.s1 is not None:
            private |= {"s0": self.s0, "s1": self.s1}
        if self.kept is not None:
            private |= {"kept": pack_bits(map(bool, self.kept[0])), "kept_salt": self.kept[1]}
        return {
            **{name: getattr(self.statement, name) for name in instance.public_inputs},
            **private,
            "index_salt": self.index_salt,
            "index": pack_nibbles(memoryview(self.rows).cast("b")),
            "salt_c": self.salt_c,
            "query": pack_nibbles(memoryview(self.vector).cast("b")),
            "salt_k": self.salt_k,
            "position": list(self.positions),
        }

    def run(self) -> dict[str, Json]:
        """The proof as JSON: system, circuit, a, b, c.

        :raises WitnessError: the private inputs do not satisfy the statement
        :raises SetupError: Node, circuit or keys are missing and cannot be made
        """
        return prove(self.instance, self.inputs(), self.statement, vk=self.vk)

    def misfit(self) -> str | None:
        """The reason why the private inputs do not satisfy the statement: the first public value that they do not give,
        or "positions" where these are not the first K; None if all fits. The reference takes seconds to find it.
        """
        instance = self.instance
        vector = memoryview(self.vector).cast("b").tolist()
        flat = memoryview(self.rows).cast("b").tolist()
        rows = [flat[i : i + len(vector)] for i in range(0, len(flat), len(vector))]
        given = {
            "c_idx": commitments.index_commitment(self.index_salt, rows),
            "cq": commitments.vector_commitment(self.salt_c, vector),
            "htopk": commitments.topk_commitment(self.salt_k, self.positions),
        }
        kept, z = [True] * instance.capacity, [0] * instance.capacity
        if self.s0 is not None and self.s1 is not None:
            given["c_seed"] = commitments.seed_commitment(self.s0, self.s1)
            kappa = commitments.noise_key(self.s0, self.s1, self.statement.beacon, self.statement.slot)
            z = noise.draw(kappa, instance.capacity, instance.gains)
        if self.kept is not None:
            kept = [bool(bit) for bit in self.kept[0]]
            given["c_kept"] = commitments.kept_commitment(self.kept[1], kept)
        for name, value in given.items():
            if getattr(self.statement, name) != value:
                return name
        window = ScoreWindow(instance.lo, instance.hi, instance.lattice)
        y = [bit * window.quantise(dot(vector, row)) + n for bit, row, n in zip(kept, rows, z, strict=True)]
        return None if top_k(y, instance.top_k) == list(self.positions) else "positions"


def prove(
    instance: Instance, inputs: Inputs, statement: PublicValues, *, vk: str | None = None
) -> dict[str, Json]:
    """Make a proof from the circuit's inputs, as JSON, that verifies under the published key.

    :param statement: the public values, against which verifiers will check the proof
    :param vk: digest of the published verification key; that of the key in this machine's cache if None
    :raises WitnessError: the inputs do not satisfy the circuit
    :raises SetupError: Node, circuit or keys are missing and cannot be made, the key in the cache is another than the
        published one, or the proof does not verify under it
    """
    keys = proving_key(instance)
    if vk is not None and keys.vk_digest != vk:
        raise SetupError(
            "the key in the cache is another than the published one",
            field=str(keys.zkey.parent),
            expected=f"vk {vk}",
            found=f"vk {keys.vk_digest}",
            hint="copy the circuit's cache folder here from the machine that published the key",
        )
    circuit = compile_circuit(instance)
    witness = assign(circuit, inputs)
    try:
        proof = _native.groth16_prove(str(keys.zkey), witness, circuit.r1cs)
    except (ValueError, OSError) as exc:
        raise SetupError("the prover failed", field=str(keys.zkey), found=str(exc)) from exc
    # The proving key has a verification key of its own, which may differ from the one that verifiers are given.
    if not verify(parse_key(keys.vk, field="verification key"), proof, statement):
        raise SetupError(
            "the proof does not verify under the published key",
            field=str(keys.zkey),
            expected=f"the proving key of vk {keys.vk_digest}",
        )
    return proof_json(proof, keys.manifest["circuit"])


def proof_json(proof: bytes, circuit: str) -> dict[str, Json]:
    """A proof of 256 bytes (EIP-197 order) as files carry it."""
    return {
        "system": "groth16",
        "circuit": circuit,
        "a": [*g1_json(proof[:64])],
        "b": [[*pair] for pair in g2_json(proof[64:192])],
        "c": [*g1_json(proof[192:])],
    }


def parse_proof(value: Json, circuit: str, *, field: str) -> bytes:
    """A proof from a file, as 256 bytes in EIP-197 order.

    :param circuit: digest of the circuit that the policy names
    :raises SchemaError: the proof has other fields, or is of another system or circuit
    :raises EncodingError: a coordinate is not canonical, or a point is at infinity or off the curve
    """
    value = parse_fields(value, ("system", "circuit", "a", "b", "c"), field=field)
    if value["system"] != "groth16":
        raise SchemaError(
            "the proof is of another system",
            field=f"{field}.system",
            expected="groth16",
            found=value["system"],
        )
    if parse_hex(value["circuit"], 32, field=f"{field}.circuit").hex() != circuit:
        raise SchemaError(
            "the proof is of another circuit",
            field=f"{field}.circuit",
            expected=circuit,
            found=value["circuit"],
        )
    return (
        parse_g1(value["a"], field=f"{field}.a")
        + parse_g2(value["b"], field=f"{field}.b")
        + parse_g1(value["c"], field=f"{field}.c")
    )


def parse_key(value: Json, *, field: str) -> VerificationKey:
    """Read a verification key from a file's value (`VerificationKey.parse`)."""
    return VerificationKey.parse(value, field=field)


def verify(key: VerificationKey, proof: bytes, statement: PublicValues, *, engine: str = "native") -> bool:
    """Whether a proof verifies.

    :param statement: a `Statement` for a key of `retrieve`, a `ManyStatement` for one of several records, an
        `EmbedStatement` for one of `embed`, a `CoalitionDigest` for one of `coalition`, a `KeptStatement` for one of
        `kept`, a `ListingStatement` for one of `listing`
    :param engine: "native", "py_ecc" (independent, about a second) or "snarkjs" (needs Node)
    :raises EncodingError: a point is outside the subgroup, a number is not below r, or the key has another shape
    :raises SetupError: the engine is not installed
    """
    reason = refusals(key, [proof], [statement], engine=engine).get(0)
    if isinstance(reason, EncodingError):
        raise reason
    return reason is None


def verify_batch(
    key: VerificationKey,
    proofs: Sequence[bytes],
    statements: Sequence[PublicValues],
    *,
    engine: str = "native",
) -> list[int]:
    """The indices of the proofs that do not verify or are malformed, ascending."""
    return list(refusals(key, proofs, statements, engine=engine))


def refusals(
    key: VerificationKey,
    proofs: Sequence[bytes],
    statements: Sequence[PublicValues],
    *,
    engine: str = "native",
) -> Refusals:
    """See `ProofSystem.refusals`. The native engine checks the proofs together.

    :raises EncodingError: the key is malformed
    :raises SetupError: the engine is not installed
    """
    bad: Refusals = {}
    places, read, inputs = [], [], []
    for i in range(len(statements)):
        try:
            statement, proof = statements[i], proofs[i]
            inputs.append(statement.encode(order(statement)))
        except RagAuditError as exc:
            bad[i] = exc
        else:
            read.append(proof)
            places.append(i)
    for number, reason in _refused(key, read, inputs, engine):
        if reason is None:
            bad[places[number]] = InvalidProof("the pairing equation does not hold")
        else:
            bad[places[number]] = EncodingError("the verifier refuses it", field=engine, found=reason)
    return dict(sorted(bad.items()))


@dataclass(eq=False)
class Pairing:
    """Verifies proofs under any of this system's keys (`records.Verifies`)."""

    ENGINES: ClassVar[tuple[str, ...]] = ENGINES

    def refusals(
        self,
        key: VerificationKey,
        proofs: Sequence[bytes],
        statements: Sequence[PublicValues],
        *,
        engine: str = "native",
    ) -> Refusals:
        """See `refusals`."""
        return refusals(key, proofs, statements, engine=engine)


PAIRING = Pairing()


def order(statement: PublicValues) -> tuple[str, ...]:
    """The names of a statement's public values, in the order of its circuit's verification key."""
    return _ORDER[type(statement)]


def public_inputs(statement: PublicValues) -> tuple[list[str], bytes]:
    """A statement's public inputs in the order of the circuit's `main`: their names, and 32 bytes big-endian each.

    :raises EncodingError: a value is not a field element
    """
    names = []
    for name in order(statement):
        value = getattr(statement, name)
        names += [name] if isinstance(value, int) else [f"{name}[{i}]" for i in range(len(value))]
    return names, statement.encode(order(statement))


def _refused(
    key: VerificationKey, proofs: Sequence[bytes], inputs: Sequence[bytes], engine: str
) -> list[tuple[int, str | None]]:
    """The numbers of the proofs that do not verify, with the reason if malformed, or None if the equation fails."""
    if engine == "native":
        try:
            return _native.groth16_verify_batch(key.snarkjs, list(proofs), list(inputs))
        except ValueError as exc:
            raise EncodingError("the verifier refuses the key", field=engine, found=str(exc)) from exc
    check = _engine(engine)
    from rag_audit.proofs.backends.groth16.pyecc import check_key  # which every other engine's parser is

    check_key(key.snarkjs)
    bad: list[tuple[int, str | None]] = []
    for i, (proof, values) in enumerate(zip(proofs, inputs, strict=True)):
        try:
            if not check(key.snarkjs, proof, values):
                bad.append((i, None))
        except EncodingError as exc:
            bad.append((i, str(exc)))
    return bad


def _engine(name: str) -> Callable[[str, bytes, bytes], bool]:
    if name in ("py_ecc", "reference"):
        from rag_audit.proofs.backends.groth16 import pyecc

        return pyecc.verify
    if name == "snarkjs":
        from rag_audit.proofs.backends.groth16 import snarkjs

        return snarkjs.verify
    raise SetupError("the verifier is unknown", field="engine", expected=", ".join(ENGINES), found=name)
