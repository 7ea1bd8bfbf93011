"""The common parts of verifiers of several proof systems: statements of one kind, readable items, chunks for the
native core."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Protocol, TypeVar

from rag_audit._internal.errors import RagAuditError
from rag_audit.proofs.batch import Failures, Lazy

T = TypeVar("T")
Item = TypeVar("Item")


def narrowed(kind: type[T], statements: Sequence[Item]) -> Sequence[T]:
    """The same statements; each must be of one kind.

    :raises TypeError: on reading a statement of another kind, because no circuit or protocol takes it
    """

    def one(number: int) -> T:
        statement = statements[number]
        if not isinstance(statement, kind):
            raise TypeError(f"{type(statement).__name__} is not a {kind.__name__}")
        return statement

    return Lazy(len(statements), one)


def readable(items: Sequence[T], kept: Callable[[T], Item]) -> tuple[dict[int, Item], Failures]:
    """The retained part of each readable item, by its number, and the errors of the others.

    :param kept: extracts the part of an item that a later step needs
    """
    read: dict[int, Item] = {}
    bad: Failures = {}
    for i in range(len(items)):
        try:
            read[i] = kept(items[i])
        except RagAuditError as exc:
            bad[i] = exc
    return read, bad


class NativeBatch(Protocol[Item]):
    """A batch in the native core: a sum of equations that grows chunk by chunk and stores no proof."""

    CHUNK: ClassVar[int]

    def add(self, records: list[Item], /) -> list[tuple[int, str]]:
        """Add records, and return the numbers of records without well-formed proofs, with the reason."""

    def holds(self) -> bool:
        """Whether every record that was added and not refused is proved."""

    def search(self, records: list[Item], /) -> list[tuple[int, str]]:
        """The numbers of the given records with false proofs, with the reason, independent of earlier additions."""


def in_chunks(
    batch: NativeBatch[Item],
    count: int,
    record: Callable[[int], Item],
    refused: Callable[[str], RagAuditError],
) -> Failures:
    """Verify proofs in one sum, with only one chunk of records in memory at a time, and return the failures by number.
    If the sum does not vanish, the function rebuilds each chunk to find its false proofs.

    :param record: makes the native core's record with a given number; an error that it raises is that record's outcome
    :param refused: makes the error for a reason from the native core
    """
    bad: Failures = {}

    def of_chunk(start: int, step: Callable[[list[Item]], list[tuple[int, str]]]) -> None:
        """Apply a step to one chunk. Its records are freed when the call returns."""
        places: list[int] = []
        records: list[Item] = []
        for i in range(start, min(start + batch.CHUNK, count)):
            try:
                records.append(record(i))
            except RagAuditError as exc:
                bad[i] = exc
            else:
                places.append(i)
        bad.update((places[i], refused(reason)) for i, reason in step(records))

    for start in range(0, count, batch.CHUNK):
        of_chunk(start, batch.add)
    if not batch.holds():
        for start in range(0, count, batch.CHUNK):
            of_chunk(start, batch.search)
    return dict(sorted(bad.items()))
