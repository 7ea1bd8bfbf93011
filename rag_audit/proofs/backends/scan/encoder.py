"""Proofs of claim A1 for an integer encoder: hq and cq come from the same tokens under the pinned model
(docs/scan/encoder-embed.md)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import ClassVar

from rag_audit._internal.canonical import Json
from rag_audit._internal.errors import PolicyError, SetupError, WitnessError
from rag_audit.models.constants import Constants
from rag_audit.models.manifest import ENCODER_ARTEFACT, EncoderConstants, EncoderProver
from rag_audit.proofs.backends.scan import memory
from rag_audit.proofs.backends.scan.engine import Engine
from rag_audit.proofs.backends.scan.key import EncoderArgument, EncoderKey
from rag_audit.proofs.backends.scan.query_vector import QueryVectorProofs, proved
from rag_audit.proofs.backends.scan.records import NativeChecker
from rag_audit.proofs.chunks import NativeBatch
from rag_audit.proofs.interface import Pins
from rag_audit.proofs.records import OpenedKey
from rag_audit.proofs.statements.embed import EmbedStatement
from rag_audit.proofs.statements.private import RecordPrivate
from rag_audit.proofs.statements.retrieve import RecordPublic


@dataclass(frozen=True)
class EncoderJob:
    """The job that proves A1 for one record. It is picklable. It contains secrets, which `repr` omits.

    :param argument: the protocol with its parameters
    :param digest: the digest of the encoder's pins under C_emb, 32 bytes
    :param statement: the public values
    :param prover: `ProvedEncoder.prover`
    :param needed: the bytes that the proof takes in addition to the process's current memory
    :param tokens: the query's tokens, cut to the embedder's limit
    :param salt_q: salt of hq
    :param salt_c: salt of cq
    """

    argument: EncoderArgument
    digest: bytes
    statement: EmbedStatement
    prover: Callable[[], EncoderProver]
    needed: int
    tokens: Sequence[int] = field(repr=False)
    salt_q: int = field(repr=False)
    salt_c: int = field(repr=False)
    keys: ClassVar[dict[str, str]] = {}

    def run(self) -> dict[str, Json]:
        """The proof as its record carries it (`embed_form`).

        :raises WitnessError: the private inputs do not satisfy the statement, or the machine has another model
        :raises MemoryLimitError: the machine has too little memory
        """
        memory.require(self.needed, "proof of the integer encoder")
        prover = self.prover()
        if prover.digest() != self.digest:
            raise WitnessError("the model is another one than the window's", field="embedder",
                               expected=self.digest.hex(), actual=prover.digest().hex())  # fmt: skip
        parameters = self.argument.places, self.argument.norm_factor
        return proved(
            self.argument,
            self.statement,
            partial(prover.prove, parameters),
            tokens=self.tokens,
            salts=(self.salt_q, self.salt_c),
        )


class EncoderChecker(NativeChecker[EncoderKey, tuple[bytes, bytes]]):
    """Verifies proofs of A1 for an integer encoder: public values, proof."""

    def batch(self, engine: Engine) -> NativeBatch[tuple[bytes, bytes]]:
        """See `NativeChecker.batch`."""
        return engine.encoders(self.key)


class EncoderProofs(QueryVectorProofs[EncoderKey]):
    """Proofs of A1 for an integer encoder, each for one record (`RecordSteps`)."""

    artefact = ENCODER_ARTEFACT
    of_another = "the pins are of another encoder"

    @cached_property
    def argument(self) -> EncoderArgument:
        """The protocol with the tenant's parameters."""
        return encoder_argument(self.tenant.constants)

    def points(self) -> bytes:
        """See `ScanProofs.points`: the encoder's pins."""
        return self.tenant.encoder().prover().pins()

    def key(self, points: bytes) -> EncoderKey:
        """See `ScanProofs.key`."""
        return EncoderKey(self.argument, points)

    def open_key(self, published: Mapping[str, Json], pins: Pins) -> OpenedKey[EncoderKey]:
        """See `RecordSteps.open_key`. The pins are decoded only if a verifier pinned their digest, because a
        provider can write pins that take much memory.

        :raises SetupError: the verifier did not pin this digest
        """
        if pins.artefact(ENCODER_ARTEFACT) != self.commitment:
            raise SetupError("trust.toml does not pin the encoder", field=f"pins.embedder.{ENCODER_ARTEFACT}",
                             expected=self.commitment, actual=pins.artefact(ENCODER_ARTEFACT))  # fmt: skip
        opened = super().open_key(published, pins)
        _ = opened.key.encoder
        return opened

    def job(self, records: Mapping[str, tuple[RecordPublic, RecordPrivate]]) -> EncoderJob:
        """See `RecordSteps.job`."""
        ((record, private),) = records.values()
        encoder = self.tenant.encoder()
        values = self.argument.places * encoder.activations
        return EncoderJob(
            argument=self.argument,
            digest=self.committed,
            statement=self.statement(record),
            prover=encoder.prover,
            needed=memory.encoder_proof_bytes(encoder.weight_bytes, values),
            tokens=private.tokens,
            salt_q=private.salt_q,
            salt_c=private.salt_c,
        )

    def checker(self, key: EncoderKey, engine: str) -> EncoderChecker:
        """See `RecordSteps.checker`."""
        return EncoderChecker(key, engine)


def encoder_argument(c: Constants) -> EncoderArgument:
    """The protocol of A1 for a tenant's constants.

    :raises PolicyError: the embedder is no integer encoder, or the query limit is no length class
    """
    if not isinstance(c.table, EncoderConstants):
        raise PolicyError("the embedder's vectors cannot be proved", field="embedder")
    c.table.check_tokens(c.query_tokens)
    return EncoderArgument(c.query_tokens, c.table.norm_factor)
