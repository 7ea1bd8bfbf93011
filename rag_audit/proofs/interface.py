"""The interface of proof systems: what proves a statement, and what checks others' proofs of it.

`Backend` does everything that is specific to one system; `proofs.backends` finds the systems, and no other code depends
on a name. All systems prove the same statements (`proofs.statements`). A record alone is a batch of one record.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, TypeAlias, TypeVar

from rag_audit._internal.canonical import Json
from rag_audit.models.constants import Constants
from rag_audit.proofs.batch import Check, Refusals, at_once
from rag_audit.proofs.statements.coalition import CoalitionPrivate, CoalitionSize, CoalitionStatement
from rag_audit.proofs.statements.retrieve import RecordPrivate, RecordPublic
from rag_audit.proofs.statements.sample import KeptColumn, KeptPublic, NoiseCertificate, OpenedKept
from rag_audit.proofs.statements.tenant import SlotPublic, TenantPublic

if TYPE_CHECKING:
    import concurrent.futures

    import numpy as np
    import numpy.typing as npt

MOST_TOGETHER = 64
"""The most records that one proof can be for, in any system and whatever their tenant."""
Setup: TypeAlias = Literal["unsafe", "ceremony"] | None
"""The kind of setup that made a key; None where no setup has secrets that somebody could have kept."""
Made = TypeVar("Made", covariant=True)
"""What a job makes: a proof as files carry it, or a column drawn before its query."""


class Job(Protocol[Made]):
    """A job that makes a proof. It holds secrets, and is picklable, so any `concurrent.futures.Executor` can run it."""

    def run(self) -> Made:
        """Do the job's work.

        :raises WitnessError: the private inputs do not satisfy the statement
        """


class BoundJob(Job[Made], Protocol[Made]):
    """A job that is bound to verification keys of this machine's cache, wherever it runs."""

    @property
    def keys(self) -> Mapping[str, str]:
        """The digests of these keys by circuit; empty for systems without keys."""


RecordJob: TypeAlias = BoundJob[dict[str, Json]]
"""A job that proves one statement about one or several records; the proof is as files carry it."""


class KeyPin(Protocol):
    """A verification key that a verifier accepts for one circuit."""

    @property
    def vk(self) -> str:
        """The key's digest, SHA-256 over its canonical JSON."""

    @property
    def setup(self) -> Literal["unsafe", "ceremony"]:
        """The kind of setup that made the key."""


class Pins(Protocol):
    """The part of a verifier's pins that proof systems use."""

    def key(self, circuit: str) -> KeyPin | None:
        """The pinned verification key of a circuit, or None."""

    def artefact(self, name: str) -> str | None:
        """The pinned digest of an embedder's artefact, or None."""

    @property
    def scan(self) -> str | None:
        """The pinned digest of a release's transparent protocols, or None."""


@dataclass(frozen=True)
class IndexCommitment:
    """A tenant's index as its proof system commits to it.

    :param digest: C_idx
    :param points: the points whose digest C_idx is; empty for systems without points
    """

    digest: bytes
    points: bytes = b""


class FileProof(NamedTuple):
    """A proof as a file carries it, and its place in the file for errors."""

    value: Json
    field: str


class OpenedProofs(Protocol):
    """A key that was checked against a verifier's pins, and what it verifies."""

    @property
    def digest(self) -> str:
        """The digest that was compared with the pin or the opening, for the report."""

    @property
    def setup(self) -> Setup:
        """The kind of setup that made the key."""

    def verify(
        self,
        statements: Sequence[RecordPublic],
        proofs: Sequence[FileProof],
        every: Sequence[RecordPublic],
        *,
        check: Check = at_once,
    ) -> Refusals:
        """The reasons why proofs do not hold for the records that carry them, by index, ascending: `InvalidProof` for a
        false proof, another error (exit code 2) for bytes that are no proof at all. Each proof has its own outcome. A
        record that spoils a proof of several is refused as false, the other records of that proof as undecided.

        :param statements: the record that carries each proof; both are read as they are needed, and an error
            (`RagAuditError`) on reading is the outcome of that proof
        :param every: all the tenant's records, among which a proof for several names its own by digest
        :param check: how proofs are verified once it is known of which records they are
        :raises SetupError: the engine is not installed
        """


class RecordProofs(Protocol):
    """Proofs of one kind of statement about one tenant's records, each for up to the same number of records."""

    @property
    def chained(self) -> bool:
        """Whether the records of a proof are successive ones of one account, and as many as there are places."""

    def prove(self, statement: Mapping[str, RecordPublic], witness: Sequence[RecordPrivate]) -> RecordJob:
        """The job that proves the statement about these records, bound to the verification key of this machine's cache.

        :param statement: the records' public values by the record's name, which errors use
        :param witness: their private inputs, in the same order
        :raises WitnessError: the private inputs do not fit the statement
        """

    def carried(self, proof: dict[str, Json], number: int) -> dict[str, Json]:
        """What the record of a number carries of a proof that `prove` made: the proof, or a reference to the first
        record's."""

    def published_keys(self) -> dict[str, Json]:
        """The keys that the window file carries for verifiers of these proofs, by digest."""

    def open(self, published: Mapping[str, Json], pins: Pins, *, engine: str = "native") -> OpenedProofs:
        """The key taken from the window, which is accepted only if a pin or the opening names it.

        :param published: the window file's verification keys
        :param engine: which verifier decides, one of `Backend.ENGINES`
        :raises SetupError: there is no pin, or the window has no key
        :raises InvalidProof: the key is not the pinned one
        :raises EncodingError: the key is not canonical, or a point is not on the curve
        """


class OpenedCoalition(Protocol):
    """As `OpenedProofs`, for coalition proofs."""

    @property
    def digest(self) -> str:
        """As `OpenedProofs.digest`."""

    @property
    def setup(self) -> Setup:
        """As `OpenedProofs.setup`."""

    def verify(self, statement: CoalitionStatement, proof: Json) -> None:
        """Return if the coalition proof proves the statement.

        :raises InvalidProof: the proof does not prove the statement
        :raises RagAuditError: the proof is not well-formed
        """


class CoalitionProofs(Protocol):
    """The coalition proofs of one system."""

    def digest(self, size: CoalitionSize) -> str:
        """The digest of the circuit or protocol.

        :raises PolicyError: this system has none for these parameters
        """

    def published_keys(self, size: CoalitionSize) -> dict[str, Json]:
        """The keys that the window file carries for verifiers of the coalition proof, by digest.

        :raises SetupError: a key is missing and cannot be made
        """

    def open(
        self, size: CoalitionSize, published: Mapping[str, Json], pins: Pins, *, engine: str = "native"
    ) -> OpenedCoalition:
        """As `RecordProofs.open`."""

    def prove(
        self,
        statement: CoalitionStatement,
        witness: CoalitionPrivate,
        *,
        executor: concurrent.futures.Executor | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> dict[str, Json]:
        """The coalition proof as JSON, with `system` and `circuit` among its fields. It is verified before it is
        returned, since the closing record that names it is final.

        :param executor: where blocks are proved; in this process if None
        :param progress: called with (blocks done, blocks)
        :raises WitnessError: the claim is false, or the window has more records than the system takes
        :raises InvalidProof: the new proof does not verify, for example because the proving key is damaged
        """


class Backend(Protocol):
    """The interface of a proof system for provider and verifier."""

    @property
    def TABLE_ARTEFACT(self) -> str:
        """The name of the artefact that commits to the embedder's table in the statement of A1."""

    @property
    def ENGINES(self) -> tuple[str, ...]:
        """The names of the verifiers that can check this system's proofs, the default one first."""

    @property
    def CIRCUITS(self) -> str:
        """What a policy's digests name in this system, for reports."""

    def check_constants(self, constants: Constants) -> None:
        """Refuse constants for which `retrieve` cannot be proved, whatever the embedder's normalisation.

        :raises PolicyError: a constant is out of its bounds, which are named
        """

    def check_pins(self, circuits: Sequence[str], pins: Pins, *, later: bool) -> set[Setup]:
        """The setups that proofs of these circuits will rest on, before there is a window.

        :param circuits: digests of circuits or protocols
        :param later: whether the proofs are of mechanisms that version 1 of the windows did not have
        :raises SetupError: a pin is missing, or is another release's
        """

    def commit_index(
        self,
        rows: npt.NDArray[np.int8],
        blinding: bytes,
        path: Path,
        *,
        progress: Callable[[int, int], None] | None = None,
    ) -> IndexCommitment:
        """Commit to an index.

        :param rows: the index, shape (capacity, dimension), may be mapped from a file
        :param blinding: salt of the commitment, or its blinding key, 32 bytes
        :param path: where a commitment that takes long is kept, and read again for the same rows and blinding
        :param progress: called with (components done, dimension), where it takes long
        :raises StoreError: what is kept was altered, is another index's, or cannot be written
        :raises MemoryLimitError: the machine cannot hold the work
        """

    def circuits(self, constants: Constants) -> dict[str, str]:
        """The digests of a tenant's circuits (or protocols) by statement, without statements that it cannot prove.

        :raises PolicyError: `retrieve` cannot be built for the constants
        """

    def batch(
        self,
        name: str,
        constants: Constants,
        wanted: int | None,
        *,
        low_memory: bool = False,
        at_a_time: int = 1,
    ) -> int:
        """The number of records that one proof of the statement is made for; 1 where the system proves one at a time.

        :param wanted: the number; None for the largest that this system proves without a further setup and that this
            machine's free memory holds
        :param at_a_time: the number of proofs that are made at a time, and share this memory
        :raises PolicyError: no circuit can be built for the number of records, or it is beyond the argument's
        """

    def records(self, name: str, tenant: TenantPublic, places: int = 1) -> RecordProofs:
        """The proofs of one kind of statement about a tenant's records.

        :param name: the kind of statement, one of `models.constants.STATEMENTS`
        :param places: the number of records that a proof is for (`batch`, `places`)
        :raises PolicyError: no circuit can be built for the number of records, or it is beyond the argument's
        """

    def certificate_job(
        self, slot: SlotPublic, s0: int, s1: int, *, low_memory: bool = False
    ) -> Job[NoiseCertificate] | None:
        """The job that makes a slot's noise certificate, or that of a listing tenant's coins, before its query; None
        where there is none."""

    def hold(self, constants: Constants, held: bytes, secret: bytes) -> str:
        """The commitment to what an account of a listing tenant holds, which its record names, 64 hexadecimal digits.

        :param held: one byte 0 or 1 for each position
        :param secret: 32 secret bytes that belong to this record alone, since salt or blindings follow from them
        """

    def kept_job(
        self, kept: KeptPublic, s0: int, s1: int, salt: bytes, *, low_memory: bool = False
    ) -> BoundJob[KeptColumn]:
        """The job that commits to a sampled tenant's kept positions and proves that they are the coins of the seed.

        :param salt: 32 secret bytes of this tenant and window, for systems whose commitment takes a salt
        """

    def open_kept(
        self,
        kept: KeptPublic,
        digest: str,
        proof: Json,
        published: Mapping[str, Json],
        pins: Pins,
        *,
        engine: str = "native",
        field: str,
    ) -> OpenedKept:
        """The commitment to a tenant's kept positions that the ledger names, if the proof holds for it.

        :param digest: the ledger's, 64 hexadecimal digits
        :param proof: the proof from a file
        :param published: the window file's verification keys
        :raises InvalidProof: the proof does not hold, or is of another commitment
        :raises EncodingError: the proof is not canonical
        :raises SchemaError: the proof has other fields
        :raises SetupError: there is no pin
        """

    def kept_keys(self, tenant: TenantPublic) -> dict[str, Json]:
        """As `RecordProofs.published_keys`, for the proof of a tenant's kept positions."""

    @property
    def coalition(self) -> CoalitionProofs:
        """The system's coalition proofs."""


def places(name: str, value: Json) -> int:
    """The number of records that a proof from a file is for, by its form alone: a proof for several lists them.

    >>> places("retrieve", {"records": ["ab", "cd"]}), places("retrieve", {}), places("embed", {"records": ["ab"]})
    (2, 1, 1)
    """
    records = value.get("records") if name == "retrieve" and isinstance(value, dict) else None
    return len(records) if isinstance(records, list) else 1
