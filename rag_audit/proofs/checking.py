"""The verification of a window's proofs in portions: here, in several processes or on a cluster, and once.

A portion is verified in one sum. What an executor returns is believed: it is a process of this machine, or a worker
that has the key of `proofs.executors`. Proofs that were found valid are remembered (`VerifiedProofs`), so that an
interrupted verification goes on where it stopped; false proofs are not.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any

from rag_audit._internal.canonical import jcs
from rag_audit._internal.errors import RagAuditError
from rag_audit.proofs.batch import Checker, Lazy, Refusals
from rag_audit.proofs.interface import proof_system
from rag_audit.proofs.statements.tenant import PublicValues

if TYPE_CHECKING:  # the page has no cache
    from rag_audit.proofs.remembered import VerifiedProofs

PORTION = 1024
"""The most proofs of a portion."""
PORTION_BYTES = 32 << 20
"""A portion ends with the proof that brings it to so many bytes."""
SLOW_PORTION = 8
"""The most proofs of a portion where each takes seconds."""

Progress = Callable[[int, int], None]
"""A function of (done, total) proofs."""


@dataclass(frozen=True)
class OwnProofs:
    """What verifies pairs of proof and statement, each by itself (`batch.Checker`).

    :param system: the system's name
    :param key: its key
    """

    system: str
    key: Any
    engine: str

    @property
    def slow(self) -> bool:
        """See `Checker.slow`: the native core takes milliseconds."""
        return self.engine != "native" and self.engine in proof_system(self.system).ENGINES

    def refusals(self, items: Sequence[tuple[bytes, PublicValues]], /) -> Refusals:
        """See `Checker.refusals`."""
        proofs = Lazy(len(items), lambda i: items[i][0])
        statements = Lazy(len(items), lambda i: items[i][1])
        return proof_system(self.system).refusals(self.key, proofs, statements, engine=self.engine)


@dataclass(frozen=True)
class PortionJob:
    """The job that verifies a portion. It is picklable, and everything in it is public."""

    checker: Checker[Any]
    items: tuple[Any, ...]

    def run(self) -> Refusals:
        """The reasons why proofs of the portion do not hold, by number."""
        return self.checker.refusals(self.items)


class Checking:
    """How the proofs of one verification are verified.

    :param executor: where portions are verified; in this process, one after another, if None
    :param remembered: the proofs that are known to be valid
    :param progress: called with (done, total) proofs
    """

    def __init__(
        self,
        *,
        executor: Executor | None = None,
        remembered: VerifiedProofs | None = None,
        progress: Progress | None = None,
    ) -> None:
        self._executor, self._remembered, self._progress = executor, remembered, progress
        self._done = self._total = self._members = 0
        self.known = 0
        """how many proofs were not verified again"""

    def expect(self, proofs: int) -> None:
        """Say how many proofs there are, for the progress."""
        self._total += proofs

    @contextmanager
    def of(self, proofs: int) -> Iterator[None]:
        """Say that so many of them are verified in the block."""
        self._members = proofs
        try:
            yield
        finally:
            self._done, self._members = self._done + proofs, 0
            self._tell(1, 1)

    def __call__(self, checker: Checker[Any], items: Sequence[Any]) -> Refusals:
        """The reasons why proofs do not hold, by number, ascending.

        :param items: what the checker verifies, read as it is needed, and again if the sum of its portion is false; an
            error on reading is the outcome of that item
        :raises ExecutorError: the executor lost the same portion twice, or accepts no more
        """
        bad: Refusals = {}
        through = 0
        base = fingerprint(checker) if self._remembered is not None else b""
        for (numbers, names), refused in self._run(self._portions(checker, items, base, bad)):
            bad.update((numbers[i], reason) for i, reason in refused.items())
            if self._remembered is not None:
                self._remembered.add([name for i, name in enumerate(names) if i not in refused])
            through += len(numbers)
            self._tell(through, len(items))
        return dict(sorted(bad.items()))

    def _portions(
        self, checker: Checker[Any], items: Sequence[Any], base: bytes, bad: Refusals
    ) -> Iterator[tuple[tuple[list[int], list[bytes]], PortionJob]]:
        numbers: list[int] = []
        names: list[bytes] = []
        portion: list[Any] = []
        size, most = 0, SLOW_PORTION if checker.slow else PORTION
        for number in range(len(items)):
            try:
                item = items[number]
            except RagAuditError as exc:
                bad[number] = exc
                continue
            if self._remembered is not None:
                name = self._remembered.name(base, fingerprint(item))
                if name in self._remembered:
                    self.known += 1
                    continue
                names.append(name)
            numbers.append(number)
            portion.append(item)
            size += size_of(item)
            if len(portion) == most or size >= PORTION_BYTES:
                yield (numbers, names), PortionJob(checker, tuple(portion))
                numbers, names, portion, size = [], [], [], 0
        if portion:
            yield (numbers, names), PortionJob(checker, tuple(portion))

    def _run(self, jobs: Iterator[tuple[Any, PortionJob]]) -> Iterator[tuple[Any, Refusals]]:
        if self._executor is None:
            for name, job in jobs:
                yield name, job.run()
            return
        # Not where nothing runs elsewhere: the page's Python has no processes.
        from rag_audit.proofs.executors import run_jobs

        yield from run_jobs(jobs, self._executor)

    def _tell(self, through: int, of: int) -> None:
        if self._progress is not None and self._total:
            here = self._members * through // max(1, of)
            self._progress(min(self._done + here, self._total), self._total)


def fingerprint(value: object) -> bytes:
    """SHA-256 over a value of plain types and dataclasses of them, in one way only: each part with its type and length.

    :raises TypeError: another type, which would have to be written in one way first
    """
    digest = hashlib.sha256()
    _write(value, digest.update)
    return digest.digest()


def _write(value: object, put: Callable[[bytes], object]) -> None:
    if is_dataclass(value) and not isinstance(value, type):
        name = f"{type(value).__module__}.{type(value).__qualname__}"
        parts: Sequence[object] = [getattr(value, part.name) for part in fields(value)]
        put(f"d{len(name)}:{name}{len(parts)}:".encode())
    elif isinstance(value, list | tuple):
        parts = value
        put(f"l{len(parts)}:".encode())
    else:
        kind, data = _plain(value)
        put(f"{kind}{len(data)}:".encode() + data)
        return
    for part in parts:
        _write(part, put)


def _plain(value: object) -> tuple[str, bytes]:
    if isinstance(value, bytes):
        return "b", value
    if isinstance(value, str):
        return "s", value.encode()
    if value is None or isinstance(value, bool | int):
        return "i", str(value).encode()
    if isinstance(value, dict):
        return "j", jcs(value)
    raise TypeError(f"a {type(value).__name__} has no fingerprint")


def size_of(value: object) -> int:
    """The bytes of the texts in an item, as far as they are long."""
    if isinstance(value, bytes):
        return len(value)
    return sum(map(size_of, value)) if isinstance(value, list | tuple) else 0
