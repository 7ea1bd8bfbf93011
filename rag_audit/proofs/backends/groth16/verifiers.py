"""Groth16 proofs as files carry them, for one record and for several, and the verifiers: native, py_ecc, snarkjs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import ClassVar

from rag_audit import _native
from rag_audit._internal.canonical import Json, parse_hex
from rag_audit._internal.errors import EncodingError, InvalidProof, RagAuditError, SchemaError, SetupError
from rag_audit.proofs.backends.groth16.encoding import g1_json, g2_json, parse_fields, parse_g1, parse_g2
from rag_audit.proofs.backends.groth16.instance import (
    COALITION_INPUTS,
    EMBED_INPUTS,
    MAX_QUERIES,
    PUBLIC_INPUTS,
    RANDOMIZED_RESPONSE_INPUTS,
    SAMPLE_INPUTS,
    SAMPLED_INPUTS,
)
from rag_audit.proofs.backends.groth16.keys import VerificationKey
from rag_audit.proofs.backends.groth16.statements import (
    CoalitionDigest,
    ManySampledStatement,
    ManyStatement,
    RandomizedResponseStatement,
)
from rag_audit.proofs.batch import Failures
from rag_audit.proofs.records import Group
from rag_audit.proofs.statements.embed import EmbedStatement
from rag_audit.proofs.statements.retrieve import SampledStatement, Statement
from rag_audit.proofs.statements.sample import SampleStatement
from rag_audit.proofs.statements.tenant import PublicValues

ENGINES = ("native", "py_ecc", "snarkjs")
_ORDER: dict[type[PublicValues], tuple[str, ...]] = {
    Statement: PUBLIC_INPUTS,
    ManyStatement: PUBLIC_INPUTS,
    SampledStatement: SAMPLED_INPUTS,
    ManySampledStatement: SAMPLED_INPUTS,
    EmbedStatement: EMBED_INPUTS,
    CoalitionDigest: COALITION_INPUTS,
    SampleStatement: SAMPLE_INPUTS,
    RandomizedResponseStatement: RANDOMIZED_RESPONSE_INPUTS,
}
"""The names of a statement's public values, in the order of its circuit's verification key."""


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
            actual=value["system"],
        )
    if parse_hex(value["circuit"], 32, field=f"{field}.circuit").hex() != circuit:
        raise SchemaError(
            "the proof is of another circuit",
            field=f"{field}.circuit",
            expected=circuit,
            actual=value["circuit"],
        )
    return (
        parse_g1(value["a"], field=f"{field}.a")
        + parse_g2(value["b"], field=f"{field}.b")
        + parse_g1(value["c"], field=f"{field}.c")
    )


def record_digest(record: PublicValues) -> bytes:
    """SHA-256 over a record's public values. A batch proof names each of its records by this digest."""
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


def parse_key(value: Json, *, field: str) -> VerificationKey:
    """Read a verification key from a file's value (`VerificationKey.parse`)."""
    return VerificationKey.parse(value, field=field)


def verify(key: VerificationKey, proof: bytes, statement: PublicValues, *, engine: str = "native") -> bool:
    """Whether a proof verifies.

    :param statement: a `Statement` for a key of `retrieve`, a `ManyStatement` for a key of a batch, an `EmbedStatement`
        for `embed`, a `CoalitionDigest` for `coalition`, a `SampleStatement` for `kept`, a
        `RandomizedResponseStatement` for
        `listing`
    :param engine: "native", "py_ecc" (independent, about a second) or "snarkjs" (needs Node)
    :raises EncodingError: a point is outside the subgroup, a number is not below r, or the key has another shape
    :raises SetupError: the engine is not installed
    """
    reason = failures(key, [proof], [statement], engine=engine).get(0)
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
    return list(failures(key, proofs, statements, engine=engine))


def failures(
    key: VerificationKey,
    proofs: Sequence[bytes],
    statements: Sequence[PublicValues],
    *,
    engine: str = "native",
) -> Failures:
    """See `OneRecord.failures`. The native engine checks all proofs in one sum.

    :raises EncodingError: the key is malformed
    :raises SetupError: the engine is not installed
    """
    bad: Failures = {}
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
            bad[places[number]] = EncodingError("the verifier refuses it", field=engine, actual=reason)
    return dict(sorted(bad.items()))


def verify_many(
    key: VerificationKey, proof: ManyProof, records: Sequence[Statement], *, engine: str = "native"
) -> list[int]:
    """The indices of the records that a proof does not prove, ascending: the records with another digest in the proof,
    or all of them if the names agree and the proof does not verify.

    :param records: the records in the proof's order, at most as many as it has places
    :raises SchemaError: there are no records or too many, or they are of several tenants or windows
    :raises EncodingError, SetupError: as `verify`
    """
    statement = ManyStatement.of(records, len(proof.records))
    last = len(records) - 1
    digests = [record_digest(record) for record in records]
    others = {min(i, last) for i, said in enumerate(proof.records) if said != digests[min(i, last)]}
    if others:
        return sorted(others)
    return [] if verify(key, proof.proof, statement, engine=engine) else list(range(len(records)))


@dataclass(eq=False)
class Pairing:
    """Verifies proofs under any of this system's keys (`records.Verifies`)."""

    ENGINES: ClassVar[tuple[str, ...]] = ENGINES

    def failures(
        self,
        key: VerificationKey,
        proofs: Sequence[bytes],
        statements: Sequence[PublicValues],
        *,
        engine: str = "native",
    ) -> Failures:
        """See `failures`."""
        return failures(key, proofs, statements, engine=engine)


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
            raise EncodingError("the verifier refuses the key", field=engine, actual=str(exc)) from exc
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
    raise SetupError("the verifier is unknown", field="engine", expected=", ".join(ENGINES), actual=name)
