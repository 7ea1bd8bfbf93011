"""Coalition proofs: the common part of all proof systems (`interface.CoalitionProofs`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from rag_audit._internal.canonical import Json
from rag_audit.proofs.backends import proof_system
from rag_audit.proofs.interface import Job, OpenedCoalition, Pins
from rag_audit.proofs.records import Decides, Key, OpenedKey
from rag_audit.proofs.statements.coalition import CoalitionSize, CoalitionStatement
from rag_audit.proofs.statements.private import CoalitionPrivate

if TYPE_CHECKING:
    import concurrent.futures

Part = TypeVar("Part")
Number = TypeVar("Number")


@dataclass(frozen=True)
class Run:
    """Runs the jobs of one coalition proof.

    :param executor: where jobs run; in this process if None
    :param report: called with (blocks done, blocks)
    """

    executor: concurrent.futures.Executor | None
    report: Callable[[int, int], None]

    def __call__(self, jobs: Iterable[tuple[Number, Job[Part]]]) -> Iterator[tuple[Number, Part]]:
        """Each job's name and result as it finishes, in any order."""
        from rag_audit.proofs.executors import run_jobs  # a verifier runs no jobs

        return run_jobs(jobs, self.executor)


class CoalitionSteps(Protocol[Key]):
    """A system's steps, for its own key."""

    def digest(self, size: CoalitionSize) -> str:
        """See `CoalitionProofs.digest`."""

    def published_keys(self, size: CoalitionSize) -> dict[str, Json]:
        """See `CoalitionProofs.published_keys`."""

    def open_key(self, size: CoalitionSize, published: Mapping[str, Json], pins: Pins) -> OpenedKey[Key]:
        """See `CoalitionProofs.open`."""

    def own_key(self, size: CoalitionSize) -> Key:
        """The key of this machine's cache."""

    def make(self, statement: CoalitionStatement, private: CoalitionPrivate, run: Run) -> dict[str, Json]:
        """See `CoalitionProofs.prove`."""

    def verify(
        self, statement: CoalitionStatement, coalition_proof: Json, *, key: Key, engine: str = "native"
    ) -> None:
        """See `OpenedCoalition.verify`."""


@dataclass(frozen=True)
class Coalition(Generic[Key]):
    """The coalition proofs of a system (`CoalitionProofs`)."""

    steps: CoalitionSteps[Key]

    def digest(self, size: CoalitionSize) -> str:
        """See `CoalitionProofs.digest`."""
        return self.steps.digest(size)

    def published_keys(self, size: CoalitionSize) -> dict[str, Json]:
        """See `CoalitionProofs.published_keys`."""
        return self.steps.published_keys(size)

    def open(
        self, size: CoalitionSize, published: Mapping[str, Json], pins: Pins, *, engine: str = "native"
    ) -> OpenedCoalition:
        """See `CoalitionProofs.open`."""
        return _Opened(self.steps.open_key(size, published, pins), engine, self.steps)

    def prove(
        self,
        statement: CoalitionStatement,
        witness: CoalitionPrivate,
        *,
        executor: concurrent.futures.Executor | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> dict[str, Json]:
        """See `CoalitionProofs.prove`."""
        result = self.steps.make(statement, witness, Run(executor, progress or (lambda done, total: None)))
        # Workers are not trusted, and a damaged proving key makes false proofs, but the window trailer is final.
        self.steps.verify(statement, result, key=self.steps.own_key(statement.size))
        return result


@dataclass(frozen=True)
class _Opened(Decides[Key]):
    steps: CoalitionSteps[Key]

    def verify(self, statement: CoalitionStatement, proof: Json) -> None:
        self.steps.verify(statement, proof, key=self.opened.key, engine=self.engine)


def coalition_proof_policy(
    system: str, records: int, dimension: int, theta: tuple[int, int]
) -> dict[str, object]:
    """The policy's part that asks for a coalition proof of this release.

    :raises PolicyError: the system has no coalition proof for these parameters
    """
    circuit = proof_system(system).coalition.digest(CoalitionSize(records, dimension, theta))
    return {"system": system, "records": records, "circuit": circuit}
