"""The interface of proof systems: their statements, the jobs that prove them, and the checks of others' proofs.

`groth16` proves small tenants with constant-size proofs, `scan` (a transparent argument) large ones. Both
prove the same statements about a record (`proofs.statements`). A system's class (`ProofSystem`) does everything
that is specific to it; no other code depends on its name.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeAlias, TypeVar

from rag_audit._internal.canonical import Json
from rag_audit._internal.errors import RagAuditError, VersionError
from rag_audit.models.constants import Constants
from rag_audit.proofs.batch import Check, at_once
from rag_audit.proofs.statements.retrieve import RecordPrivate, RecordPublic
from rag_audit.proofs.statements.sample import KeptColumn, KeptPublic, NoiseCertificate, OpenedKept
from rag_audit.proofs.statements.tenant import PublicValues, SlotPublic, TenantPublic

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from rag_audit.proofs.statements.sample import NoiseCertificate

SYSTEMS = ("groth16", "scan")
"""The proof systems that this release verifies."""
MOST_TOGETHER = 64
"""The most records that one proof can be for, in any system and whatever their tenant."""


Made = TypeVar("Made", covariant=True)
"""What a job makes: a proof as files carry it, or a noise certificate."""


class Job(Protocol[Made]):
    """A job that makes a proof. It holds secrets, and is picklable, so any `concurrent.futures.Executor` can run it."""

    def run(self) -> Made:
        """Do the job's work.

        :raises WitnessError: the private inputs do not satisfy the statement
        """


RecordJob: TypeAlias = Job[dict[str, Json]]
"""A job that proves a statement about a record, or about several; the proof is as files carry it."""

Key = TypeVar("Key")
"""The key that a system's verifiers need beside proofs and statements."""
SharedProof = TypeVar("SharedProof")
"""A parsed proof for several records."""


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
        """The pinned digest of a release's scan protocols, or None."""


@dataclass(frozen=True)
class OpenedKey(Generic[Key]):
    """A key that a verifier needs beside proofs and statements, checked against its pins.

    :param key: the key for `ProofSystem.refusals`
    :param digest: the digest that was compared, for the report
    :param setup: the kind of setup that made the key; None where no setup has secrets that somebody could have kept
    """

    key: Key
    digest: str
    setup: Literal["unsafe", "ceremony"] | None


@dataclass(frozen=True)
class IndexCommitment:
    """A tenant's index as its proof system commits to it.

    :param digest: C_idx
    :param points: the points whose digest C_idx is; empty for systems without points
    """

    digest: bytes
    points: bytes = b""


class SharedProofs(Protocol[Key, SharedProof]):
    """Proofs of one statement that are each for several records of a tenant; each of these carries the proof, or names
    it."""

    @property
    def chained(self) -> bool:
        """Whether the records of a proof are successive ones of one account, and as many as there are places."""

    def job(self, jobs: Mapping[str, RecordJob]) -> RecordJob:
        """The job that proves the records of these jobs (`ProofSystem.record_job`), at most as many as there are
        places.

        :param jobs: the records' own jobs by the record's name, which errors use
        """

    def carried(self, proof: dict[str, Json], number: int) -> dict[str, Json]:
        """What the record of a number carries of a proof that `job` made: the proof, or a reference to the first
        record's."""

    def published_keys(self) -> dict[str, Json]:
        """As `ProofSystem.published_keys`."""

    def open_key(self, published: Mapping[str, Json], pins: Pins) -> OpenedKey[Key]:
        """As `ProofSystem.open_key`."""

    def parse_proof(self, value: Json, *, field: str) -> SharedProof:
        """As `ProofSystem.parse_proof`, for `verify`."""

    def verify(
        self,
        key: Key,
        proofs: Sequence[SharedProof],
        own: Sequence[PublicValues],
        every: Sequence[PublicValues],
        *,
        engine: str,
        check: Check = at_once,
    ) -> dict[int, RagAuditError]:
        """The reasons why proofs do not hold for the records that carry them, by index. A record that spoils a proof is
        refused as false, the other records of that proof as undecided.

        :param proofs: proofs that are read as they are needed; an error (`RagAuditError`) on reading is the outcome
        :param own: the statement of each proof's record
        :param every: the statements of all the tenant's records, which the proofs name by digest
        :param check: how proofs are verified once it is known of which records they are
        """


class ProofSystem(Protocol[Key]):
    """The interface of a proof system for provider and verifier."""

    TABLE_ARTEFACT: str
    """The name of the artefact that commits to the embedder's table in the statement of A1."""
    ENGINES: tuple[str, ...]
    """The names of the verifiers that can check this system's proofs, the default one first."""

    def check_constants(self, constants: Constants) -> None:
        """Refuse constants for which `retrieve` cannot be proved, whatever the embedder's normalisation.

        :raises PolicyError: a constant is out of its bounds, which are named
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

    def statement(self, name: str, record: RecordPublic) -> PublicValues:
        """The public values of a record's proof of the named statement.

        :raises SchemaError: the manifest lacks the table's commitment
        """

    def record_job(self, name: str, record: RecordPublic, private: RecordPrivate) -> RecordJob:
        """The job that proves the named statement about a record.

        :raises WitnessError: the private inputs do not fit the statement
        """

    def keyed(self, job: RecordJob) -> tuple[RecordJob, dict[str, str]]:
        """The job, bound to the verification key of this machine's cache wherever it runs, and that key's digest by
        circuit. For systems without keys this is the unchanged job and no digest.

        :param job: a job that this system made
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
    ) -> Job[KeptColumn]:
        """The job that commits to a sampled tenant's kept positions and proves that they are the coins of the seed.

        :param salt: 32 secret bytes of this tenant and window, for systems whose commitment takes a salt
        """

    def keyed_kept(self, job: Job[KeptColumn]) -> tuple[Job[KeptColumn], dict[str, str]]:
        """As `keyed`, for such a job."""

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

    def published_keys(self, name: str, tenant: TenantPublic) -> dict[str, Json]:
        """The keys that the window file carries for verifiers of these proofs, by digest."""

    def open_key(
        self, name: str, tenant: TenantPublic, published: Mapping[str, Json], pins: Pins
    ) -> OpenedKey[Key]:
        """The key for one statement's proofs, taken from the window and accepted only if a pin or the opening names it.

        :raises SetupError: there is no pin, or the window has no key
        :raises InvalidProof: the key is not the pinned one
        :raises EncodingError: the key is not canonical, or a point is not on the curve
        """

    def parse_proof(self, value: Json, circuit: str, *, field: str) -> bytes:
        """Read a proof from a file's value, and check its form and the circuit that it names.

        :raises EncodingError: the proof is not canonical, or a point is not on the curve
        :raises SchemaError: the proof has other fields, or is of another system or circuit
        """

    def refusals(
        self, key: Key, proofs: Sequence[bytes], statements: Sequence[PublicValues], *, engine: str = "native"
    ) -> dict[int, RagAuditError]:
        """The reasons why proofs do not verify, by index, ascending: `InvalidProof` for a false proof, `EncodingError`
        for bytes that are no proof at all. Each proof has its own outcome, and none hides another.

        :param proofs: proofs that are read as they are needed; an error (`RagAuditError`) on reading is the outcome
        :param statements: their statements, read in the same way
        :raises SetupError: the engine is not installed
        """

    def places(self, name: str, value: Json) -> int:
        """The number of records that a proof from a file is for, by its form alone; 1 for one record's own proof."""

    # Any: a proof for several records is parsed and verified by the same `SharedProofs`.
    def shared(self, name: str, tenant: TenantPublic, places: int) -> SharedProofs[Key, Any] | None:
        """Proofs of one statement for the given number of a tenant's records each; None for systems that have none.

        :raises PolicyError: no circuit can be built for the number of records, or it is beyond the argument's
        """


def proof_system(name: str) -> ProofSystem[Any]:
    """The proof system that a policy names.

    :raises VersionError: this release does not have the system
    """
    if name not in SYSTEMS:
        raise VersionError("the proof system is unknown", expected=", ".join(SYSTEMS), found=name)
    # Any: a key is opened and used by the same system, which alone knows what it is.
    system: ProofSystem[Any] = importlib.import_module(f"rag_audit.proofs.backends.{name}.system").SYSTEM
    return system
