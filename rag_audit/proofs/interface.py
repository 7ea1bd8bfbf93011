"""The interface of proof systems for verifiers (`proving` has the provider's interface).

`ProofSystem` does everything that is specific to one system; `proofs.backends` finds the systems, and no other code
depends on a name. All systems prove the same statements (`proofs.statements`). A single record is a batch of one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, TypeAlias, TypeVar

from rag_audit._internal.canonical import Json
from rag_audit.models.constants import Constants
from rag_audit.proofs.batch import Check, Failures, at_once
from rag_audit.proofs.statements.coalition import CoalitionSize, CoalitionStatement
from rag_audit.proofs.statements.column import ColumnPublic, OpenedColumn
from rag_audit.proofs.statements.retrieve import RecordPublic
from rag_audit.proofs.statements.tenant import TenantPublic

if TYPE_CHECKING:
    pass

Setup: TypeAlias = Literal["unsafe", "ceremony"] | None
"""The kind of setup that made a key; None for a system with no secrets in its setup."""
Made = TypeVar("Made", covariant=True)
"""A job's result: a proof in its file form, or a column drawn before its query."""


class Job(Protocol[Made]):
    """A picklable job that makes a proof, for any `concurrent.futures.Executor`. It contains secrets."""

    def run(self) -> Made:
        """Do the job's work.

        :raises WitnessError: the private inputs do not satisfy the statement
        """


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


class FileProof(NamedTuple):
    """A proof as a file carries it, and its place in the file for errors."""

    value: Json
    field: str


class OpenedProofs(Protocol):
    """A key that was checked against a verifier's pins, with its verification functions."""

    @property
    def digest(self) -> str:
        """The digest that was compared with the pin or the window header, for the report."""

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
    ) -> Failures:
        """The reasons why proofs do not hold for the records that carry them, by index, ascending: `InvalidProof` for a
        false proof, another error (exit code 2) for malformed bytes. Each proof has its own outcome. A record that
        spoils a batch proof is refused as false, and the other records of that proof as undecided.

        :param statements: the record that carries each proof; both are read on demand, and an error (`RagAuditError`)
            on reading is the outcome of that proof
        :param every: all the tenant's records; a batch proof names its own among them by digest
        :param check: the method for verifying proofs once their records are known
        :raises SetupError: the engine is not installed
        """


class RecordVerifiers(Protocol):
    """Verifies proofs of one kind of statement about one tenant's records, each for up to the same number."""

    def open(self, published: Mapping[str, Json], pins: Pins, *, engine: str = "native") -> OpenedProofs:
        """The key taken from the window. It is accepted only if a pin or the window header names it.

        :param published: the window file's verification keys
        :param engine: the name of the verifier, one of `Backend.ENGINES`
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


class CoalitionVerifiers(Protocol):
    """Verifies the coalition proofs of one system."""

    def digest(self, size: CoalitionSize) -> str:
        """The digest of the circuit or protocol.

        :raises PolicyError: this system has none for these parameters
        """

    def open(
        self, size: CoalitionSize, published: Mapping[str, Json], pins: Pins, *, engine: str = "native"
    ) -> OpenedCoalition:
        """As `RecordProofs.open`."""


class ColumnVerifiers(Protocol):
    """Verifies one system's proofs of the statement about a column that a window commits to once for a tenant."""

    def circuit(self, constants: Constants) -> str:
        """The digest of the circuit or protocol."""

    def open(
        self,
        statement: ColumnPublic,
        digest: str,
        proof: FileProof,
        published: Mapping[str, Json],
        pins: Pins,
        *,
        engine: str = "native",
    ) -> OpenedColumn:
        """The commitment that the ledger names, if its proof is valid.

        :param digest: the ledger's, 64 hexadecimal digits
        :param published: the window file's verification keys
        :raises InvalidProof: the proof is false, or belongs to another commitment
        :raises EncodingError: the proof is not canonical
        :raises SchemaError: the proof has other fields
        :raises SetupError: there is no pin
        """


class ProofSystem(Protocol):
    """The interface of a proof system for verifiers (`proving.Backend` for providers too)."""

    @property
    def ARTEFACTS(self) -> tuple[str, ...]:
        """The names of the artefacts that statements of A1 may name."""

    @property
    def ENGINES(self) -> tuple[str, ...]:
        """The names of the verifiers that can check this system's proofs, the default one first."""

    @property
    def CIRCUITS(self) -> str:
        """The objects that a policy's digests name in this system, for reports."""

    def artefact(self, constants: Constants) -> str:
        """The name of the artefact, one of `ARTEFACTS`, that commits to the embedder's table or encoder in the
        statement of A1."""

    def check_constants(self, constants: Constants) -> None:
        """Refuse constants that make a proof of `retrieve` impossible, whatever the embedder's normalisation.

        :raises PolicyError: a constant is out of its bounds; the error names them
        """

    def check_pins(self, circuits: Sequence[str], pins: Pins) -> set[Setup]:
        """The kinds of setup of the keys for these circuits, before a window exists.

        :param circuits: digests of circuits or protocols
        :raises SetupError: a pin is missing, or belongs to another release
        """

    def circuits(self, constants: Constants) -> dict[str, str]:
        """The digests of a tenant's circuits (or protocols) by statement, without statements that it cannot prove.

        :raises PolicyError: `retrieve` cannot be built for the constants
        """

    def records(self, name: str, tenant: TenantPublic, places: int = 1) -> RecordVerifiers:
        """The proofs of one kind of statement about a tenant's records.

        :param name: the kind of statement, one of `models.constants.STATEMENTS`
        :param places: the number of records that a proof is for (`batch`, `places`)
        :raises PolicyError: no circuit can be built for the number of records, or it exceeds the argument's maximum
        """

    def column(self, name: str) -> ColumnVerifiers:
        """The proofs of the statement about a column, one of `proofs.statements.COLUMNS`.

        :raises PolicyError: this system does not prove the statement
        """

    @property
    def coalition(self) -> CoalitionVerifiers:
        """The system's coalition proofs."""


def places(name: str, value: Json) -> int:
    """The number of records that a proof from a file is for, which its list of records has; 1 for a value without a
    list, which is no proof.

    >>> places("retrieve", {"records": ["ab", "cd"]}), places("retrieve", {}), places("embed", {"records": ["ab"]})
    (2, 1, 1)
    """
    records = value.get("records") if name == "retrieve" and isinstance(value, dict) else None
    return len(records) if isinstance(records, list) else 1
