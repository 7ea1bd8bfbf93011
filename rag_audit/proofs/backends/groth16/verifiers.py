"""Groth16 proofs as files carry them, and the verifiers: native, py_ecc, snarkjs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256

from rag_audit import _native
from rag_audit._internal.canonical import Json, parse_hex
from rag_audit._internal.errors import EncodingError, InvalidProof, RagAuditError, SchemaError, SetupError
from rag_audit.proofs.backends.groth16.encoding import g1_json, g2_json, parse_fields, parse_g1, parse_g2
from rag_audit.proofs.backends.groth16.instance import (
    COALITION_INPUTS,
    DOCUMENTS_INPUTS,
    EMBED_INPUTS,
    NAMES_INPUTS,
    PUBLIC_INPUTS,
    SAMPLE_INPUTS,
    SAMPLED_INPUTS,
)
from rag_audit.proofs.backends.groth16.keys import VerificationKey
from rag_audit.proofs.backends.groth16.statements import (
    CoalitionDigest,
    DocumentsStatement,
    ManySampledStatement,
    ManyStatement,
    NamesStatement,
)
from rag_audit.proofs.batch import Failures, Lazy
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
    DocumentsStatement: DOCUMENTS_INPUTS,
    NamesStatement: NAMES_INPUTS,
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
    """SHA-256 over a record's public values. A proof names each of its records by this digest."""
    return sha256(record.encode(order(record))).digest()


def records_json(proof: dict[str, Json], records: Sequence[PublicValues]) -> dict[str, Json]:
    """A proof with the record at each place, as files carry it."""
    return proof | {"records": [record_digest(record).hex() for record in records]}


def parse_records_proof(value: Json, circuit: str, places: int, *, field: str) -> Group:
    """A proof for the records at a circuit's places, from a file. Proofs of the same bytes for other records are other
    proofs.

    :raises SchemaError: the proof has other fields, or is of another system or circuit, or for other places
    :raises EncodingError: the proof is not canonical, or a point is at infinity or off the curve
    """
    value = parse_fields(value, ("system", "circuit", "a", "b", "c", "records"), field=field)
    records = value["records"]
    if not isinstance(records, list) or len(records) != places:
        raise SchemaError("the value is not a list of records", field=f"{field}.records", expected=places)
    proof = parse_proof({name: x for name, x in value.items() if name != "records"}, circuit, field=field)
    named = tuple(parse_hex(text, 32, field=f"{field}.records[{i}]") for i, text in enumerate(records))
    return Group(named, sha256(proof + b"".join(named)).digest(), (proof,))


def parse_key(value: Json, *, field: str) -> VerificationKey:
    """Read a verification key from a file's value (`VerificationKey.parse`)."""
    return VerificationKey.parse(value, field=field)


def verify(key: VerificationKey, proof: bytes, statement: PublicValues, *, engine: str = "native") -> bool:
    """Whether a proof verifies.

    :param statement: a `Statement` for a key of `retrieve`, a `ManyStatement` for a key of a batch, an `EmbedStatement`
        for `embed`, a `CoalitionDigest` for `coalition`, a `SampleStatement` for `kept`, a
        `DocumentsStatement` for `documents`, a `NamesStatement` for `names`
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
    """The reasons for refusing proofs, by number; an error on reading a proof or a statement is its outcome. The native
    engine checks all proofs in one sum.

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


@dataclass(frozen=True)
class PairingChecker:
    """Verifies pairs of proof and statement under a key (`batch.Checker`)."""

    key: VerificationKey
    engine: str

    @property
    def slow(self) -> bool:
        """See `Checker.slow`: the native core takes milliseconds."""
        return self.engine in ENGINES[1:]

    def failures(self, items: Sequence[tuple[bytes, PublicValues]], /) -> Failures:
        """See `Checker.failures`."""
        proofs = Lazy(len(items), lambda i: items[i][0])
        statements = Lazy(len(items), lambda i: items[i][1])
        return failures(self.key, proofs, statements, engine=self.engine)


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
