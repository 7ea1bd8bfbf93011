"""What the two kinds of proofs of claim A1 share: those for a static table (`embed`) and for an integer encoder
(`encoder`)."""

from __future__ import annotations

import array
from abc import abstractmethod
from collections.abc import Callable, Container, Sequence
from functools import cached_property
from typing import ClassVar, TypeAlias, TypeVar

from rag_audit._internal.canonical import Json, parse_hex
from rag_audit._internal.errors import InvalidProof, WitnessError
from rag_audit.proofs.backends.scan.key import EmbedArgument, EmbedKey, EncoderArgument, EncoderKey
from rag_audit.proofs.backends.scan.records import Form, ScanProofs
from rag_audit.proofs.chunks import narrowed
from rag_audit.proofs.records import Group, Reader
from rag_audit.proofs.statements.embed import EmbedStatement
from rag_audit.proofs.statements.retrieve import RecordPublic
from rag_audit.proofs.statements.tenant import PublicValues
from rag_audit.relation.field import digest_to_field, to_bytes

PUBLIC = ("ctx", "hq", "cq")
"""The names of the public values except the table or the encoder, which is part of the key."""
A1Argument: TypeAlias = EmbedArgument | EncoderArgument
A1Key = TypeVar("A1Key", EmbedKey, EncoderKey)


def embed_form(argument: A1Argument) -> Form:
    """The form of proofs of A1 in files."""
    return Form(argument.digest(), ("proof",), PUBLIC)


def proved(
    argument: A1Argument,
    statement: EmbedStatement,
    prove: Callable[[bytes, bytes, bytes], bytes],
    *,
    tokens: Sequence[int],
    salts: tuple[int, int],
) -> dict[str, Json]:
    """A proof as its record carries it (`embed_form`).

    :param prove: from the encodings of statement, tokens and salts to the proof
    :param tokens: the query's tokens
    :param salts: the salts of hq and of cq
    :raises WitnessError: the private inputs do not satisfy the statement
    """
    try:
        proof = prove(
            statement.encode(PUBLIC), array.array("I", tokens).tobytes(), b"".join(map(to_bytes, salts))
        )
    except (ValueError, OverflowError) as exc:
        raise WitnessError(
            "there is no proof of A1 for this record", field="record", actual=str(exc)
        ) from exc
    return embed_form(argument).json([statement], [proof])


class QueryVectorProofs(ScanProofs[A1Key]):
    """Proofs of A1, each for one record (`RecordSteps`)."""

    artefact: ClassVar[str]
    """The artefact of the embedder whose digest is the commitment."""
    of_another: ClassVar[str]
    """The error about a key that is not the statement's."""

    @property
    @abstractmethod
    def argument(self) -> A1Argument:
        """The protocol with the tenant's parameters."""

    @cached_property
    def form(self) -> Form:
        """See `ScanProofs.form`."""
        return embed_form(self.argument)

    @property
    def commitment(self) -> str:
        """See `ScanProofs.commitment`."""
        return self.tenant.table_digest(self.artefact)

    @property
    def committed(self) -> bytes:
        """The commitment's digest, 32 bytes."""
        return parse_hex(self.commitment, 32, field=f"artefacts.{self.artefact}")

    def statement(self, record: RecordPublic) -> EmbedStatement:
        """See `RecordSteps.statement`."""
        return record.embed(digest_to_field(self.committed))

    def reader(self, key: A1Key, every: Sequence[PublicValues]) -> Reader[tuple[bytes, bytes]]:
        """See `RecordSteps.reader`."""
        root = key.root

        def read(
            proof: Group, records: Sequence[PublicValues], _: Container[tuple[bytes, bytes]]
        ) -> tuple[bytes, bytes]:
            (statement,), (part,) = narrowed(EmbedStatement, records), proof.parts or (b"",)
            if statement.table != root:
                raise InvalidProof(self.of_another, field="table", expected=statement.table, actual=root)
            return statement.encode(PUBLIC), part

        return read
