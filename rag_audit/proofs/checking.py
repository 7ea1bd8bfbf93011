"""The verification of a window's proofs in portions: in this process, in several processes or on a cluster.

Each proof is verified once, and a portion in one sum. The caller supplies the function that runs portions, and the
proofs that are known to be valid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeAlias

from rag_audit._internal.errors import RagAuditError
from rag_audit.proofs.batch import Checker, Failures, Item
from rag_audit.proofs.interface import Job

if TYPE_CHECKING:
    from rag_audit.proofs.batch import Value

PORTION = 1024
"""Maximum proofs of a portion."""
PORTION_BYTES = 32 << 20
"""A proof ends a portion if it brings the portion to this number of bytes."""
SLOW_PORTION = 8
"""Maximum proofs of a portion if each takes seconds."""

Progress = Callable[[int, int], None]
"""A function of (done, total) proofs."""


@dataclass(frozen=True)
class PortionJob(Generic[Item]):
    """The job that verifies a portion. It is picklable, and everything in it is public."""

    checker: Checker[Item]
    items: tuple[Item, ...]

    def run(self) -> Failures:
        """The reasons for refusing proofs of the portion, by number."""
        return self.checker.failures(self.items)


Portions: TypeAlias = Iterator[tuple[tuple[list[int], list[bytes]], Job[Failures]]]
"""Portions, each with the numbers and the names of its proofs."""
Outcomes: TypeAlias = Iterator[tuple[tuple[list[int], list[bytes]], Failures]]


def one_by_one(portions: Portions) -> Outcomes:
    """Verify portions in this process."""
    for name, job in portions:
        yield name, job.run()


class Remembered(Protocol):
    """The proofs that are known to be valid (`proofs.remembered.VerifiedProofs`). False ones are never among them."""

    def names(self, checker: Checker[Item]) -> Callable[[Item], bytes]:
        """The function that names a checker's items: each name is bound to all inputs of the verification."""

    def __contains__(self, name: bytes) -> bool: ...

    def add(self, names: Iterable[bytes]) -> None:
        """Remember valid proofs."""


class Checking:
    """How the proofs of one verification are verified.

    :param run: verifies portions, and is trusted: this process, or an executor on machines that the verifier owns
    :param remembered: the proofs that are known to be valid
    :param progress: called with (done, total) proofs
    """

    def __init__(
        self,
        *,
        run: Callable[[Portions], Outcomes] = one_by_one,
        remembered: Remembered | None = None,
        progress: Progress | None = None,
    ) -> None:
        self._run, self._remembered, self._progress = run, remembered, progress
        self._done = self._total = self._members = 0
        self.known = 0
        """number of proofs with a remembered result"""

    def expect(self, proofs: int) -> None:
        """Set the total number of proofs, for the progress."""
        self._total += proofs

    @contextmanager
    def of(self, proofs: int) -> Iterator[None]:
        """Announce the number of proofs that the block verifies."""
        self._members = proofs
        try:
            yield
        finally:
            self._done, self._members = self._done + proofs, 0
            self._tell(1, 1)

    def __call__(self, checker: Checker[Item], items: Sequence[Item], /) -> Failures:
        """The reasons for refusing proofs, by number, ascending.

        :param items: the checker's items, read on demand, and a second time if the sum of their portion is false; an
            error on reading is the outcome of that item
        :raises ExecutorError: the executor lost the same portion twice, or accepts no more
        """
        bad: Failures = {}
        through = 0
        for (numbers, names), refused in self._run(self._portions(checker, items, bad)):
            bad.update((numbers[i], reason) for i, reason in refused.items())
            if self._remembered is not None:
                self._remembered.add([name for i, name in enumerate(names) if i not in refused])
            through += len(numbers)
            self._tell(through, len(items))
        return dict(sorted(bad.items()))

    def _portions(self, checker: Checker[Item], items: Sequence[Item], bad: Failures) -> Portions:
        name_of = None if self._remembered is None else self._remembered.names(checker)
        numbers: list[int] = []
        names: list[bytes] = []
        portion: list[Item] = []
        size, maximum = 0, SLOW_PORTION if checker.slow else PORTION
        for number in range(len(items)):
            try:
                item = items[number]
            except RagAuditError as exc:
                bad[number] = exc
                continue
            if name_of is not None and self._remembered is not None:
                name = name_of(item)
                if name in self._remembered:
                    self.known += 1
                    continue
                names.append(name)
            numbers.append(number)
            portion.append(item)
            size += size_of(item)
            if len(portion) == maximum or size >= PORTION_BYTES:
                yield (numbers, names), PortionJob(checker, tuple(portion))
                numbers, names, portion, size = [], [], [], 0
        if portion:
            yield (numbers, names), PortionJob(checker, tuple(portion))

    def _tell(self, through: int, of: int) -> None:
        if self._progress is not None and self._total:
            here = self._members * through // max(1, of)
            self._progress(min(self._done + here, self._total), self._total)


def size_of(value: Value) -> int:
    """Total bytes of the long texts in an item."""
    if isinstance(value, bytes):
        return len(value)
    return sum(map(size_of, value)) if isinstance(value, list | tuple) else 0
