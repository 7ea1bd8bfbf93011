"""The coalition proof: its claim, its private inputs, and the proof systems that make one.

The claim: every two records that are compared and whose vectors have cosine at least theta carry the same label, a
label is a function of the account, each label has at most c accounts and at most c_tenant of one tenant, and the
vectors are those of the records' cq. In integers, with theta = p/q: <a, b> > 0 and (q <a, b>)^2 >= p^2 |a|^2 |b|^2.

Both sides build the statement from published entries alone (`estimate.statement`); labels stay hidden.
"""

from __future__ import annotations

import concurrent.futures
import importlib
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from rag_audit._internal.canonical import Json
from rag_audit._internal.errors import VersionError
from rag_audit.proofs.interface import Key, OpenedKey, Pins
from rag_audit.proofs.statements.coalition import CoalitionPrivate, CoalitionStatement

COALITION_SYSTEMS = ("groth16", "scan")
"""The proof systems that a policy may name for its coalition proof."""


class CoalitionSystem(Protocol[Key]):
    """The interface of `rag_audit.proofs.<system>.coalition.SYSTEM`."""

    ENGINES: tuple[str, ...]
    """As `ProofSystem.ENGINES`."""

    def digest(self, *, records: int, dimension: int, theta: tuple[int, int]) -> str:
        """The digest of the circuit or protocol for windows of up to `records` records.

        :raises PolicyError: this system has none for these parameters
        """

    def published_keys(self, *, records: int, dimension: int, theta: tuple[int, int]) -> dict[str, Json]:
        """The keys that the window file carries for verifiers of the coalition proof, by digest.

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
    ) -> OpenedKey[Key]:
        """The key that a verifier needs beside proof and statement, from the window file and its own pins.

        :raises SetupError: there is no pin, or no published key
        :raises InvalidProof: the published key is not the pinned one
        """

    def certify(
        self,
        statement: CoalitionStatement,
        private: CoalitionPrivate,
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

    def verify(
        self, statement: CoalitionStatement, certificate: Json, *, key: Key, engine: str = "native"
    ) -> None:
        """Return if the coalition proof proves the statement.

        :param key: the key that `open_key` gives
        :raises InvalidProof: the proof does not prove the statement
        :raises RagAuditError: the proof is not well-formed
        """


def coalition_system(name: str) -> CoalitionSystem[Any]:
    """The system of coalition proofs that a policy names.

    :raises VersionError: this release does not have the system
    """
    if name not in COALITION_SYSTEMS:
        raise VersionError("this system has no coalition proofs", expected=COALITION_SYSTEMS, found=name)
    # Any: a key is opened and used by the same system, which alone knows what it is.
    system: CoalitionSystem[Any] = importlib.import_module(
        f"rag_audit.proofs.backends.{name}.coalition"
    ).SYSTEM
    return system
