"""Objects that release their resources at the end of a `with` block."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class Shutting(ABC):
    """A context manager that calls its own `shut` at the end of the block."""

    @abstractmethod
    def shut(self) -> None:
        """Release the object's resources."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.shut()


class Closing(Shutting):
    """A context manager that calls its own `close` at the end of the block."""

    @abstractmethod
    def close(self) -> None:
        """Release the object's resources."""

    def shut(self) -> None:
        """The same as `close`."""
        self.close()


class AsyncClosing(ABC):
    """`Closing` for `async with`."""

    @abstractmethod
    async def close(self) -> None:
        """See `Closing.close`."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: type[BaseException] | BaseException | TracebackType | None) -> None:
        await self.close()
