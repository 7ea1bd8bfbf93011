"""Verification of many proofs in bounded memory: items are made on demand, and each proof has its own outcome."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeAlias, TypeVar, overload

from rag_audit._internal.canonical import Json
from rag_audit._internal.errors import RagAuditError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    Value: TypeAlias = bytes | str | int | dict[str, Json] | Sequence["Value"] | DataclassInstance | None
    """A proof, a key or public values: plain types and dataclasses of them."""

T = TypeVar("T")
Item = TypeVar("Item", bound="Value")
Given = TypeVar("Given", contravariant=True)
Failures = dict[int, RagAuditError]
"""The reasons for refusing proofs, by the proof's number: `InvalidProof` for a false proof, another error (exit code
2) for bytes that are malformed or unreadable."""


@dataclass(frozen=True)
class Lazy(Sequence[T], Generic[T]):
    """A sequence that makes its items on demand and does not store them.

    :param number: the number of items
    :param make: makes the item with a given number; it may raise `RagAuditError`, the outcome of only that item
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


class Checker(Protocol[Given]):
    """Verifies proofs without other inputs. It is picklable, and contains no secret."""

    @property
    def slow(self) -> bool:
        """Whether one proof takes seconds."""

    def failures(self, items: Sequence[Given], /) -> Failures:
        """The reasons for refusing proofs, by number; an error on reading an item is its outcome."""


def at_once(checker: Checker[Item], items: Sequence[Item], /) -> Failures:
    """Verify proofs as they are, in this process."""
    return checker.failures(items)


class Check(Protocol):
    """How items are verified: `at_once`, or `proofs.checking.Checking`."""

    def __call__(self, checker: Checker[Item], items: Sequence[Item], /) -> Failures:
        """The reasons for refusing proofs, by number; an error on reading an item is its outcome."""
