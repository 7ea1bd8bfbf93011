"""The common part of this system's proofs about records: their form in files, their keys, and their checkers.

The first record of a proof carries it. The other records name it by its digest, since a proof is long.
"""

from __future__ import annotations

import base64
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from rag_audit._internal.canonical import Json, parse_base64, parse_hex, sha256
from rag_audit._internal.errors import InvalidProof, SchemaError, SetupError, kind_of
from rag_audit.proofs.backends.scan.engine import Engine, engines
from rag_audit.proofs.backends.scan.engine import engine as engine_of
from rag_audit.proofs.backends.scan.key import EmbedKey, EncoderKey, ScanKey, parse_points, points_json
from rag_audit.proofs.backends.scan.release import check_pin
from rag_audit.proofs.backends.scan.verify import check_protocol, refused
from rag_audit.proofs.batch import Failures, Item
from rag_audit.proofs.chunks import NativeBatch, in_chunks
from rag_audit.proofs.interface import Pins
from rag_audit.proofs.records import Group, OpenedKey
from rag_audit.proofs.statements.tenant import PublicValues, TenantPublic

AnyKey = TypeVar("AnyKey", ScanKey, EmbedKey, EncoderKey)


@dataclass(frozen=True)
class Form:
    """The form of one kind of proof in files.

    :param protocol: the digest that a policy names
    :param parts: the names of the proof's parts, base64
    :param values: the names of a record's public values, in the native core's order
    """

    protocol: str
    parts: tuple[str, ...]
    values: tuple[str, ...]

    def digest(self, statement: PublicValues) -> bytes:
        """SHA-256 over a record's public values. A proof names each of its records by this digest."""
        return sha256(statement.encode(self.values))

    def json(self, statements: Sequence[PublicValues], parts: Sequence[bytes]) -> dict[str, Json]:
        """The proof as the first record carries it: system, protocol, records, and the parts."""
        texts = (base64.b64encode(part).decode() for part in parts)
        return {
            "system": "scan",
            "protocol": self.protocol,
            "records": [self.digest(statement).hex() for statement in statements],
            **dict(zip(self.parts, texts, strict=True)),
        }

    def parse(self, value: Json, places: int, *, field: str) -> Group:
        """The part of a proof that a record carries, from a file's value.

        :param places: the maximum number of records
        :raises SchemaError: other fields, or another system, protocol or number of records
        :raises EncodingError: a field is not canonical
        """
        common = {"system", "protocol", "records"}
        carries, names = common | set(self.parts), common | {"proof_digest"}
        if not isinstance(value, dict) or set(value) not in (carries, names):
            raise SchemaError(
                "the value is not a scan proof",
                field=field,
                expected=[sorted(carries), sorted(names)],
                actual=sorted(map(str, value)) if isinstance(value, dict) else kind_of(value),
            )
        check_protocol(value, self.protocol, field=field)
        records = value["records"]
        if not isinstance(records, list) or not 1 <= len(records) <= places:
            raise SchemaError(
                "the value is not a list of records", field=f"{field}.records", expected=f"1..{places}"
            )
        named = tuple(parse_hex(text, 32, field=f"{field}.records[{i}]") for i, text in enumerate(records))
        if "proof_digest" in value:
            return Group(named, parse_hex(value["proof_digest"], 32, field=f"{field}.proof_digest"), None)
        parts = tuple(parse_base64(value[name], field=f"{field}.{name}") for name in self.parts)
        return Group(named, proof_digest(parts), parts)


def proof_digest(parts: Sequence[bytes]) -> bytes:
    """SHA-256 over the parts, with the length of each except the last before it, 8 bytes, big-endian."""
    *first, last = parts
    return sha256(b"".join(len(part).to_bytes(8, "big") + part for part in first) + last)


@dataclass(frozen=True)
class NativeChecker(ABC, Generic[AnyKey, Item]):
    """Verifies items under a key with a named engine (`batch.Checker`); "reference" is the second verifier, any other
    engine the native one."""

    key: AnyKey
    engine: str

    @property
    def slow(self) -> bool:
        """See `Checker.slow`."""
        return self.engine in engines()[1:]

    @abstractmethod
    def batch(self, engine: Engine) -> NativeBatch[Item]:
        """The engine's batch of these items."""

    def failures(self, items: Sequence[Item], /) -> Failures:
        """See `Checker.failures`."""
        return in_chunks(self.batch(engine_of(self.engine)), len(items), items.__getitem__, refused)


@dataclass(frozen=True)
class ScanProofs(ABC, Generic[AnyKey]):
    """The common part of this system's `RecordSteps`.

    :param tenant: the tenant
    :param places: the maximum number of records of a proof
    """

    tenant: TenantPublic
    places: int = 1

    @property
    @abstractmethod
    def form(self) -> Form:
        """The proofs' form in files."""

    @property
    @abstractmethod
    def commitment(self) -> str:
        """The digest under which a window publishes the key's points, 64 hexadecimal digits."""

    @abstractmethod
    def points(self) -> bytes:
        """The key's points, on the provider's machine."""

    @abstractmethod
    def key(self, points: bytes) -> AnyKey:
        """The key with these points."""

    def carried(self, proof: dict[str, Json], number: int) -> dict[str, Json]:
        """See `RecordSteps.carried`."""
        if number == 0:
            return proof
        digest = self.parse_proof(proof, field="proof").digest.hex()
        return {name: proof[name] for name in ("system", "protocol", "records")} | {"proof_digest": digest}

    def digest(self, statement: PublicValues) -> bytes:
        """See `RecordSteps.digest`."""
        return self.form.digest(statement)

    def published_keys(self) -> dict[str, Json]:
        """See `RecordSteps.published_keys`."""
        return {self.commitment: points_json(self.points())}

    def open_key(self, published: Mapping[str, Json], pins: Pins) -> OpenedKey[AnyKey]:
        """See `RecordSteps.open_key`. Points are published under a digest in the window header: the index's as C_idx,
        the table's among the embedder's artefacts.
        """
        check_pin(pins)
        digest = self.commitment
        place = f"verification_keys.{digest[:16]}"
        if digest not in published:
            raise SetupError("the window has no commitment of this digest", field=place, expected=digest)
        key = self.key(parse_points(published[digest], field=place))
        actual = key.digest.hex()
        if actual != digest:
            raise InvalidProof(
                "the commitment is not the window header's", field=place, expected=digest, actual=actual
            )
        return OpenedKey(key, actual, None)

    def parse_proof(self, value: Json, *, field: str) -> Group:
        """See `RecordSteps.parse_proof`."""
        return self.form.parse(value, self.places, field=field)
