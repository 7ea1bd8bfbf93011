"""What verifiers of several proof systems share: statements of one kind, readable items, chunks for the native core."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Protocol, TypeVar

from rag_audit._internal.errors import RagAuditError
from rag_audit.proofs.batch import Lazy, Refusals

T = TypeVar("T")
Item = TypeVar("Item")


def narrowed(kind: type[T], statements: Sequence[Item]) -> Sequence[T]:
    """The same statements, each of which has to be of one kind.

    :raises TypeError: on reading a statement of another kind, which no circuit or protocol takes
    """

    def one(number: int) -> T:
        statement = statements[number]
        if not isinstance(statement, kind):
            raise TypeError(f"{type(statement).__name__} is not a {kind.__name__}")
        return statement

    return Lazy(len(statements), one)


def readable(items: Sequence[T], kept: Callable[[T], Item]) -> tuple[dict[int, Item], Refusals]:
    """What is kept of each item that can be read, by its number, and the errors of the others.

    :param kept: takes from an item what is needed of it later
    """
    read: dict[int, Item] = {}
    bad: Refusals = {}
    for i in range(len(items)):
        try:
            read[i] = kept(items[i])
        except RagAuditError as exc:
            bad[i] = exc
    return read, bad


class NativeBatch(Protocol[Item]):
    """A batch in the native core: a sum of equations that grows chunk by chunk and keeps no proof."""

    CHUNK: ClassVar[int]

    def add(self, records: list[Item], /) -> list[tuple[int, str]]:
        """Add records, and return the numbers of those that are no proofs at all, with the reason."""

    def holds(self) -> bool:
        """Whether every record that was added and not refused is proved."""

    def search(self, records: list[Item], /) -> list[tuple[int, str]]:
        """The numbers of the given records whose proofs do not hold, with the reason, whatever was added before."""


def in_chunks(
    batch: NativeBatch[Item],
    count: int,
    record: Callable[[int], Item],
    refused: Callable[[str], RagAuditError],
) -> Refusals:
    """Verify proofs in one sum, of which one chunk's records are held at a time, and return the refusals by number. If
    the sum does not vanish, each chunk is made again to find its false proofs.

    :param record: makes the native core's record of a number; an error that it raises is that record's outcome
    :param refused: makes the error for a reason that the native core gives
    """
    bad: Refusals = {}

    def of_chunk(start: int, step: Callable[[list[Item]], list[tuple[int, str]]]) -> None:
        """Apply a step to one chunk, whose records are freed with the call."""
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
