"""The coalition certificate: what it claims, what proving it needs, and the proof systems that make one.

Claim: every two records that are compared and whose vectors have cosine at least theta carry the same label, a label
is a function of the account, each label has at most c accounts and at most c_tenant of one tenant, and the vectors
are those of the records' cq. In integers, with theta = p/q: <a, b> > 0 and (q <a, b>)^2 >= p^2 |a|^2 |b|^2.

Both sides build the statement from published entries alone (`estimate.certificate`); labels stay hidden.
"""

from __future__ import annotations

import concurrent.futures
import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from rag_audit.encoding.canonical import Json
from rag_audit.errors import VersionError
from rag_audit.proofs.interface import OpenedKey, Pins

COALITION_SYSTEMS = ("groth16", "scan")
"""Systems that a policy may name for its certificate."""


@dataclass(frozen=True)
class CoalitionStatement:
    """The public side of a certificate; at least one record.

    :param ctx: names the window, its entries before the closing record, and every parameter of the estimate: a field
        element that the certificate must be bound to
    :param cq: query-vector commitment of each record, in ledger order
    :param account: number of each record's account, 0..accounts - 1
    :param tenant: number of each account's tenant
    :param first: for each record j the first record that it is compared with: those from first[j] to j - 1 are within
        tau of it; never decreasing, first[j] <= j
    :param theta: the threshold p/q, 0 < p < q <= 1000
    :param c: most accounts of a label
    :param c_tenant: most accounts of a label in one tenant, 1 <= c_tenant <= c
    :param dimension: components of a vector
    :param capacity: the most records that the policy's certificate takes
    """

    ctx: int
    cq: tuple[int, ...]
    account: tuple[int, ...]
    tenant: tuple[int, ...]
    first: tuple[int, ...]
    theta: tuple[int, int]
    c: int
    c_tenant: int
    dimension: int
    capacity: int


@dataclass(frozen=True)
class CoalitionWitness:
    """The private side of a certificate; `repr` omits it.

    :param vectors: the records' vectors, int8 in -7..7, row by row, shape (records, dimension)
    :param salts: salt of each record's cq
    :param labels: label of each account, 0..accounts - 1
    """

    vectors: bytes = field(repr=False)
    salts: Sequence[int] = field(repr=False)
    labels: Sequence[int] = field(repr=False)


class CoalitionSystem(Protocol):
    """What `rag_audit.proofs.<system>.coalition.SYSTEM` offers."""

    def digest(self, *, records: int, dimension: int, theta: tuple[int, int]) -> str:
        """Digest of the circuit or protocol that certifies windows of up to `records` records.

        :raises PolicyError: this system has none for them
        """

    def published_keys(self, *, records: int, dimension: int, theta: tuple[int, int]) -> dict[str, Json]:
        """What the window file carries for verifiers of that certificate, by digest.

        :raises SetupError: a key is missing and cannot be made
        """

    def open_key(
        self,
        *,
        records: int,
        dimension: int,
        theta: tuple[int, int],
        published: Mapping[str, Json],
        pins: Pins,
    ) -> OpenedKey:
        """What a verifier needs beside certificate and statement, from the window file and its own pins.

        :raises SetupError: no pin, or not published
        :raises InvalidProof: not what is pinned
        """

    def certify(
        self,
        statement: CoalitionStatement,
        witness: CoalitionWitness,
        *,
        executor: concurrent.futures.Executor | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> dict[str, Any]:
        """The certificate as JSON, with `system` and `circuit` among its fields, after verifying it: the closing
        record that names it is final.

        :param executor: where blocks are proved; in this process if None
        :param progress: called with (blocks done, blocks)
        :raises WitnessError: the claim is false, or the window has more records than the system takes
        :raises InvalidProof: what was made does not verify: a damaged proving key, say
        """

    def verify(
        self, statement: CoalitionStatement, certificate: Json, *, key: Any, engine: str = "native"
    ) -> None:
        """Return if the certificate proves the statement.

        :param key: of `open_key`
        :raises InvalidProof: it does not
        :raises RagAuditError: it is not well-formed
        """


def coalition_system(name: str) -> CoalitionSystem:
    """The system that a policy names.

    :raises VersionError: this release does not have it
    """
    if name not in COALITION_SYSTEMS:
        raise VersionError("no coalition certificates of this system", expected=COALITION_SYSTEMS, found=name)
    system: CoalitionSystem = importlib.import_module(f"rag_audit.proofs.{name}.coalition").SYSTEM
    return system
