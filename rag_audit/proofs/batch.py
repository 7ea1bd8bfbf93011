"""Many proofs in bounded memory: items that are made when they are asked for, and outcomes one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Protocol, TypeVar, overload

from rag_audit.errors import RagAuditError

T = TypeVar("T")
Refusals = dict[int, RagAuditError]
"""Why proofs do not hold, by their number: `InvalidProof` where one is false, another error (exit code 2) where it is
no proof at all or cannot be read."""


@dataclass(frozen=True)
class Lazy(Sequence[T], Generic[T]):
    """A sequence whose items are made when they are asked for, and not kept.

    :param number: how many there are
    :param make: makes the item of a number; may raise `RagAuditError`, which is then that item's outcome alone
    """

    number: int
    make: Callable[[int], T]

    def __len__(self) -> int:
        return self.number

    @overload
    def __getitem__(self, index: int) -> T: ...

    @overload
    def __getitem__(self, index: slice) -> Lazy[T]: ...

    def __getitem__(self, index: int | slice) -> T | Lazy[T]:
        places = range(self.number)[index]
        if isinstance(places, range):
            return Lazy(len(places), lambda i: self.make(places[i]))
        return self.make(places)


class NativeBatch(Protocol):
    """A sum of equations in the native core that grows chunk by chunk and keeps no proof."""

    CHUNK: ClassVar[int]

    def add(self, records: list[Any], /) -> list[tuple[int, str]]:
        """Adds records; the numbers of those that are no proofs at all, with the reason."""

    def holds(self) -> bool:
        """Whether everything that was added and not refused is proved."""

    def search(self, records: list[Any], /) -> list[tuple[int, str]]:
        """The numbers of the records whose proofs do not hold, with the reason, whatever was added before."""


def in_chunks(
    batch: NativeBatch, count: int, record: Callable[[int], Any], refused: Callable[[str], RagAuditError]
) -> Refusals:
    """Why proofs do not hold, by number: all in one sum, of which a chunk's records are held at a time. If the sum does
    not vanish, each chunk is made again and its bad ones are named.

    :param record: makes the native core's record of a number; an error that it raises is that record's outcome
    :param refused: the error for the native core's reason
    """
    bad: Refusals = {}

    def of_chunk(start: int, step: Callable[[list[Any]], list[tuple[int, str]]]) -> None:
        """A step of one chunk, whose records go with the call."""
        places, records = [], []
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
