"""Proof systems behind one interface: what is proved, jobs that prove it, checks of what others proved.

`groth16` proves small tenants with constant-size proofs, `scan` (a transparent argument) large ones. Both
prove the same statements about a record (`formats.statements`). What a system does with a window, its class says
(`ProofSystem`); nobody else asks for its name.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from rag_audit.encoding.canonical import Json
from rag_audit.errors import RagAuditError, VersionError
from rag_audit.formats.constants import Constants
from rag_audit.formats.statements import PublicValues, RecordPublic, SlotPublic, TenantPublic

if TYPE_CHECKING:
    from rag_audit.proofs.scan.job import CertificateJob, NoiseCertificate

SYSTEMS = ("groth16", "scan")
"""Proof systems that this release verifies."""


@dataclass(frozen=True)
class RecordPrivate:
    """What only the provider knows of one record. Secret, and `repr` omits it. What is large, or takes time, is asked
    for only where a statement's witness has it.

    :param s0: first half of the seed
    :param s1: second half of the seed
    :param index_salt: salt of the index commitment, or in 32 bytes its blinding key
    :param rows: the committed index, int8, shape (capacity, dimension)
    :param noise: the slot's, int32, shape (capacity,)
    :param scores: the query's, int32, shape (capacity,)
    :param certificate: the slot's, if it was made before
    :param tokens: the query's, cut to the embedder's limit
    :param vector: the query vector, int8
    :param salt_q: salt of hq
    :param salt_c: salt of cq
    :param salt_k: salt of htopk
    :param positions: the listed positions in rank order
    :param low_memory: see `CertificateJob`; for systems that have it
    """

    s0: int = field(repr=False)
    s1: int = field(repr=False)
    index_salt: int = field(repr=False)
    rows: Callable[[], bytes] = field(repr=False)
    noise: Callable[[], bytes] = field(repr=False)
    scores: Callable[[], bytes] = field(repr=False)
    certificate: Callable[[], NoiseCertificate | None] = field(repr=False)
    tokens: Sequence[int] = field(repr=False)
    vector: bytes = field(repr=False)
    salt_q: int = field(repr=False)
    salt_c: int = field(repr=False)
    salt_k: int = field(repr=False)
    positions: Sequence[int] = field(repr=False)
    low_memory: bool = False


class Job(Protocol):
    """A proof to be made: picklable, so that any `concurrent.futures.Executor` can run it. Holds secrets."""

    def run(self) -> Any:
        """The proof as JSON, or a noise certificate.

        :raises WitnessError: the private values do not satisfy the statement
        """


class KeyPin(Protocol):
    """A verification key that a verifier accepts for one circuit."""

    @property
    def vk(self) -> str:
        """SHA-256 over the key's canonical JSON."""

    @property
    def setup(self) -> Literal["unsafe", "ceremony"]:
        """How the key came about."""


class Pins(Protocol):
    """What a verifier pins, as far as proof systems ask for it."""

    def key(self, circuit: str) -> KeyPin | None:
        """The pinned verification key of a circuit."""

    def artefact(self, name: str) -> str | None:
        """The pinned digest of an embedder's artefact."""

    @property
    def scan(self) -> str | None:
        """The pinned digest of a release's scan protocols."""


@dataclass(frozen=True)
class OpenedKey:
    """What a verifier needs beside proofs and statements, checked against what it pins.

    :param key: for `ProofSystem.refusals`
    :param digest: what was compared, for the report
    :param setup: how the key came about; None where there is no setup that anybody could have kept
    """

    key: Any
    digest: str
    setup: Literal["unsafe", "ceremony"] | None


class SharedProofs(Protocol):
    """Proofs of one statement for several records of a tenant each, every one of which carries the same JSON."""

    def job(self, jobs: Mapping[str, Any]) -> Job:
        """The job that proves the records of these jobs (`ProofSystem.record_job`), at most as many as there are
        places.

        :param jobs: by the record's name, for errors
        """

    def published_keys(self) -> dict[str, Json]:
        """As `ProofSystem.published_keys`."""

    def open_key(self, published: Mapping[str, Json], pins: Pins) -> OpenedKey:
        """As `ProofSystem.open_key`."""

    def parse_proof(self, value: Json, *, field: str) -> Any:
        """As `ProofSystem.parse_proof`, for `verify`."""

    def verify(
        self,
        key: Any,
        proofs: Sequence[Any],
        own: Sequence[Any],
        every: Sequence[Any],
        *,
        engine: str,
    ) -> dict[int, RagAuditError]:
        """Why proofs do not hold for the records that carry them, by their index. A record that spoils a proof is
        refused as false, the others that the proof is for as undecided.

        :param own: the statement of each proof's record
        :param every: the statements of all the tenant's records, which proofs name by digest
        """


class ProofSystem(Protocol):
    """What a proof system offers provider and verifier."""

    TABLE_ARTEFACT: str
    """name of the artefact that commits to the embedder's table in the statement of A1"""

    def check_constants(self, constants: Constants) -> None:
        """Refuse what `retrieve` cannot be proved for, whatever the embedder's normalisation.

        :raises PolicyError: the constant, with its bounds
        """

    def circuits(self, constants: Constants) -> dict[str, str]:
        """Digests of the circuits (or protocols) of a tenant, by statement; none for what it cannot prove.

        :raises PolicyError: constants that `retrieve` cannot be built for
        """

    def statement(self, name: str, record: RecordPublic) -> PublicValues:
        """The public values of one of the record's proofs.

        :raises SchemaError: the manifest lacks the table's commitment
        """

    def record_job(self, name: str, record: RecordPublic, private: RecordPrivate) -> Job:
        """The job that proves it.

        :raises WitnessError: the private values do not fit
        """

    def certificate_job(
        self, slot: SlotPublic, s0: int, s1: int, *, low_memory: bool = False
    ) -> CertificateJob | None:
        """The job that proves a slot's noise before its query; None where only the record's own proof does."""

    def keyed(self, job: Any) -> tuple[Any, dict[str, str]]:
        """The job with the verification key that it must prove under, wherever it runs: the one of this machine's
        cache; and this key's digest by circuit. Where no set-up makes keys, the job as it is, and none.
        """

    def published_keys(self, name: str, tenant: TenantPublic) -> dict[str, Json]:
        """What the window file carries for verifiers of these proofs, by digest."""

    def open_key(
        self, name: str, tenant: TenantPublic, published: Mapping[str, Json], pins: Pins
    ) -> OpenedKey:
        """What verifies one statement's proofs: found in the window, accepted only where a pin or the opening says so.

        :raises SetupError: no pin, or absent from the window
        :raises InvalidProof: another than the pinned one
        :raises EncodingError: not canonical, not on the curve
        """

    def parse_proof(self, value: Json, circuit: str, *, field: str) -> bytes:
        """A proof from a file, checked for its form and for the circuit it names.

        :raises EncodingError: not canonical, not on the curve
        :raises SchemaError: other fields, another system or circuit
        """

    def refusals(
        self, key: Any, proofs: Sequence[bytes], statements: Sequence[PublicValues], *, engine: str = "native"
    ) -> dict[int, RagAuditError]:
        """Why proofs do not verify, by their index, ascending: `InvalidProof` where one is false, `EncodingError` where
        the bytes are no proof at all. None hides another: each has its own outcome.

        :param proofs: read as they are needed; where reading one raises `RagAuditError`, that is its outcome
        :param statements: likewise
        :raises SetupError: the engine is not installed
        """

    def places(self, name: str, value: Json) -> int:
        """How many records a proof from a file is for, by its form alone; 1 where it is one record's own."""

    def shared(self, name: str, constants: Constants, places: int) -> SharedProofs | None:
        """The proofs of one statement for so many records each; None where the system has none.

        :raises PolicyError: a number of records that no circuit is built for
        """


def proof_system(name: str) -> ProofSystem:
    """The proof system that a policy names.

    :raises VersionError: this release does not have it
    """
    if name not in SYSTEMS:
        raise VersionError("unknown proof system", expected=", ".join(SYSTEMS), found=name)
    system: ProofSystem = importlib.import_module(f"rag_audit.proofs.{name}.system").SYSTEM
    return system
