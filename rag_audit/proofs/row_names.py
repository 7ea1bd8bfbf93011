"""Proofs that rows of a document table have the names that a provider opened, by the system of the tenant.

A proof system with a module `row_names` proves the statement; the module's `SYSTEM` is a `RowNames`.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import Literal, Protocol, TypeAlias

from rag_audit._internal.canonical import Json
from rag_audit._internal.errors import PolicyError
from rag_audit.proofs import backends
from rag_audit.proofs.interface import Pins
from rag_audit.proofs.statements.private import TablePrivate
from rag_audit.proofs.statements.row_names import RowNamesPublic

NamesSetup: TypeAlias = Literal["none", "ceremony", "unsafe", "unpinned"]
"""The setup behind a proof of names: none; that of the account's pin; or none that the account pinned, so that the
provider itself can have made the key and can forge proofs."""


def convinces(setup: NamesSetup) -> bool:
    """Whether a valid proof under a setup convinces an account that does not trust the provider."""
    return setup in ("none", "ceremony")


class RowNames(Protocol):
    """One system's proofs of the names of rows."""

    def prove(self, statement: RowNamesPublic, private: TablePrivate) -> dict[str, Json]:
        """The proof of a statement with the points of its table.

        :raises WitnessError: a position has no row or another name
        :raises MemoryLimitError: the machine has too little memory for the work
        """

    def verify(self, statement: RowNamesPublic, proof: Json, pins: Pins | None = None) -> NamesSetup:
        """The setup of a proof that proves the statement about the table with the statement's digest.

        :param pins: the account's pins of verification keys
        :raises InvalidProof: the proof is false, of another table or under another key than the pinned one
        :raises RagAuditError: the proof is not well-formed
        """


def row_names_of(system: str) -> RowNames:
    """The proofs of a system, as a policy names it.

    :raises PolicyError: this release has no such proofs for the system
    """
    module = f"{backends.__name__}.{system}.row_names"
    if system not in backends.SYSTEMS or importlib.util.find_spec(module) is None:
        raise PolicyError(
            "this release has no proof of the names of documents for the tenant's proof system",
            field="system",
            expected="a system with such proofs",
            actual=system,
            hint="compare the names with one another and with those of earlier windows only",
        )
    result: RowNames = importlib.import_module(module).SYSTEM
    return result
