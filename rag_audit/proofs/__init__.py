"""Proof systems behind one interface: what is proved, jobs that prove it, checks of what others proved.

`groth16` proves small tenants with constant-size proofs, `scan` (a transparent argument) large ones. Both
prove the same statements about a record; the verifier builds them from published entries and never reads them
from a proof. What a system does with a window, its module says (`ProofSystem`); nobody else asks for its name.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast

from rag_audit.canonical import Json
from rag_audit.errors import RagAuditError, SchemaError, VersionError, WitnessError
from rag_audit.relation.field import to_bytes

if TYPE_CHECKING:
    from rag_audit.proofs.groth16.embed import EmbedTable
    from rag_audit.proofs.scan.job import CertificateJob, NoiseCertificate

SYSTEMS = ("groth16", "scan")
"""Proof systems that this release verifies."""
STATEMENTS = ("retrieve", "embed")
"""What is proved about a record, in the order of work and report: claims A2 to A4, and claim A1. A policy names a
circuit (or protocol) for each statement that its tenant's records are proved for; `retrieve` is always among them."""


class PublicValues:
    """Public values of one proof, field elements or lists of them."""

    def encode(self, names: Sequence[str]) -> bytes:
        """The named values, 32 bytes big-endian each, a list's one after the other.

        :raises EncodingError: a value that is not a field element
        """
        values = (getattr(self, name) for name in names)
        return b"".join(to_bytes(x) for v in values for x in ((v,) if isinstance(v, int) else v))


@dataclass(frozen=True)
class Statement(PublicValues):
    """The public values of one record's proof, field elements. Policy constants (capacity, gains, score
    window) are not among them: they are fixed by the circuit that the policy's digest names.

    :param ctx: digest of the record's context; binds the proof to it
    :param c_seed: commitment to the window's seed
    :param beacon: f(beacon value)
    :param slot: the noise slot, from window, tenant, account and its count
    :param c_idx: the tenant's index commitment
    :param cq: the record's query-vector commitment
    :param htopk: the record's commitment to the listed positions
    """

    ctx: int
    c_seed: int
    beacon: int
    slot: int
    c_idx: int
    cq: int
    htopk: int


@dataclass(frozen=True)
class ManyStatement(PublicValues):
    """The public values of one proof for several records of one tenant and window: those of `Statement`, a list
    where they differ from record to record.
    """

    ctx: tuple[int, ...]
    c_seed: int
    beacon: tuple[int, ...]
    slot: tuple[int, ...]
    c_idx: int
    cq: tuple[int, ...]
    htopk: tuple[int, ...]

    @classmethod
    def of(cls, records: Sequence[Statement], places: int) -> ManyStatement:
        """The records' values in their order; places that are left over repeat the last record.

        :raises SchemaError: no records or too many, or one of another tenant's index or another window's seed
        """
        if not 1 <= len(records) <= places:
            raise SchemaError(
                "records do not fit a proof", field="records", expected=f"1..{places}", found=len(records)
            )
        for name in ("c_seed", "c_idx"):
            for number, record in enumerate(records):
                if getattr(record, name) != getattr(records[0], name):
                    raise SchemaError(
                        "records of several tenants or windows cannot share a proof",
                        field=f"records[{number}].{name}",
                    )
        filled = [*records, *[records[-1]] * (places - len(records))]
        lists = {
            name: tuple(getattr(r, name) for r in filled) for name in ("ctx", "beacon", "slot", "cq", "htopk")
        }
        return cls(c_seed=records[0].c_seed, c_idx=records[0].c_idx, **lists)


@dataclass(frozen=True)
class EmbedStatement(PublicValues):
    """The public values of one record's proof of claim A1; it shares hq and cq with the record.

    :param ctx: digest of the record's context; binds the proof to it
    :param table: root of the tree over the embedder's table, or digest of the commitments to its columns. A verifier
        takes it from a pin, since a prover who may choose the table may choose the vector
    :param hq: the record's commitment to the query's tokens
    :param cq: the record's query-vector commitment
    """

    ctx: int
    table: int
    hq: int
    cq: int


@dataclass(frozen=True)
class CoalitionDigest(PublicValues):
    """The public value of a window's coalition certificate by the circuit `coalition`.

    :param statement: hash of everything that the certificate is about (`groth16.coalition`)
    """

    statement: int


@dataclass(frozen=True)
class Constants:
    """What a window fixes for the proofs of one tenant before there is any record: policy and embedder.

    :param capacity: committed positions
    :param dimension: components of a vector
    :param top_k: K
    :param gains: of the noise
    :param lo: lower end of the score window
    :param hi: upper end of the score window
    :param lattice: R
    :param query_tokens: where queries are cut
    :param norm_factor: of the embedder's integer normalisation; None: its vectors have none, and no A1 can be proved
    """

    capacity: int
    dimension: int
    top_k: int
    gains: tuple[int, ...]
    lo: int
    hi: int
    lattice: int
    query_tokens: int
    norm_factor: int | None


@dataclass(frozen=True)
class StaticTable:
    """A static embedder's table as proofs of claim A1 need it. Functions of a module, which a job carries by name: what
    they give is read or made (seconds, once a machine) in the process that asks for it.

    :param rows: the table, int8, row by row
    :param tree: groth16's commitment to it
    :param columns: the scan argument's, 32 bytes a point
    """

    rows: Callable[[], bytes]
    tree: Callable[[], EmbedTable]
    columns: Callable[[], bytes]


@dataclass(frozen=True)
class TenantPublic:
    """What a window publishes about one tenant, as far as its proofs rest on it.

    :param tenant: its id
    :param opening: digest of the opening record, 64 hexadecimal digits
    :param c_idx: the index commitment as the opening has it, 64 hexadecimal digits
    :param points: what c_idx is the digest of where it is a list of points; empty where it is not, and at a verifier's
        until `ProofSystem.open_key` has found them in the window file
    :param artefacts: digests of the embedder's artefacts by name, from the manifest under C_emb
    :param table: what the artefacts commit to, where the embedder has such a table; a verifier has digests alone
    """

    tenant: str
    opening: str
    c_idx: str
    constants: Constants
    artefacts: Mapping[str, str]
    points: bytes = b""
    table: StaticTable | None = None

    def static_table(self) -> StaticTable:
        """The embedder's table.

        :raises WitnessError: it has none
        """
        if self.table is None:
            raise WitnessError("the embedder has no table that A1 could be proved from", field="embedder")
        return self.table

    def table_digest(self, artefact: str) -> str:
        """The digest under C_emb of a commitment to the embedder's table.

        :param artefact: which commitment
        :raises SchemaError: the manifest has none of this name
        """
        digest = self.artefacts.get(artefact)
        if digest is None:
            raise SchemaError("the embedder's manifest commits to no table", field=f"artefacts.{artefact}")
        return digest


@dataclass(frozen=True)
class SlotPublic:
    """What is public about one noise slot, before there is a record for it.

    :param c_seed: commitment to the window's seed
    :param beacon: f(beacon value)
    :param slot: the noise slot
    """

    tenant: TenantPublic
    c_seed: int
    beacon: int
    slot: int


@dataclass(frozen=True)
class RecordPublic(SlotPublic):
    """What is public about one record: every statement's public values are made of these.

    :param ctx: digest of the record's context
    :param hq: the record's commitment to the query's tokens
    :param cq: the record's query-vector commitment
    :param htopk: the record's commitment to the listed positions
    """

    ctx: int
    hq: int
    cq: int
    htopk: int

    def retrieve(self, c_idx: int) -> Statement:
        """The statement of A2 to A4.

        :param c_idx: the tenant's index commitment as the field element that the system makes of it
        """
        return Statement(self.ctx, self.c_seed, self.beacon, self.slot, c_idx, self.cq, self.htopk)

    def embed(self, table: int) -> EmbedStatement:
        """The statement of A1.

        :param table: the commitment to the embedder's table, likewise
        """
        return EmbedStatement(self.ctx, table, self.hq, self.cq)


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
    """What a proof system's module offers provider and verifier."""

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
        self, key: Any, proofs: Sequence[bytes], statements: Sequence[PublicValues], *, engine: str
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
    return cast(ProofSystem, importlib.import_module(f"rag_audit.proofs.{name}"))
