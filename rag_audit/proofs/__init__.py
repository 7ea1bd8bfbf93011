"""Proof systems behind one interface: what is proved, jobs that prove it, checks of what others proved.

`groth16` proves small tenants with constant-size proofs, `scan` (a transparent argument) large ones. Both
prove the same statement about a record; the verifier builds it from published entries and never reads it
from a proof.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

from rag_audit.canonical import Json
from rag_audit.errors import SchemaError, VersionError
from rag_audit.relation.field import to_bytes

SYSTEMS = ("groth16",)
"""Proof systems that this release verifies."""


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
    :param table: root of the tree over the embedder's table. A verifier takes it from a pin, since a prover who
        may choose the table may choose the vector
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


class Job(Protocol):
    """A proof to be made: picklable, so that any `concurrent.futures.Executor` can run it. Holds secrets."""

    def run(self) -> dict[str, Any]:
        """The proof as JSON.

        :raises WitnessError: the private values do not satisfy the statement
        """


class ProofSystem(Protocol):
    """What a proof system's module offers a verifier."""

    def parse_proof(self, value: Json, circuit: str, *, field: str) -> bytes:
        """A proof from a file, checked for its form and for the circuit it names.

        :raises EncodingError: not canonical, not on the curve
        :raises SchemaError: other fields, another system or circuit
        """

    def parse_key(self, value: Json, *, field: str) -> Any:
        """What a verifier needs beside proof and statement, from a file (a verification key)."""

    def verify_batch(
        self, key: Any, proofs: Sequence[bytes], statements: Sequence[PublicValues], *, engine: str
    ) -> list[int]:
        """Indices of the proofs that do not verify, ascending."""


def proof_system(name: str) -> ProofSystem:
    """The proof system that a policy names.

    :raises VersionError: this release does not have it
    """
    if name not in SYSTEMS:
        raise VersionError("unknown proof system", expected=", ".join(SYSTEMS), found=name)
    return cast(ProofSystem, importlib.import_module(f"rag_audit.proofs.{name}"))
