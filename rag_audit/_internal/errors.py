"""Errors that tell a person how to react, and their exit codes.

Every error names the place (`field`), the expected and the actual value. The command prints `diagnostics()` and exits
with `exit_code`; a user of this package never sees a traceback. Place and actual value come from files that other
parties wrote: they are shortened, and escaped wherever they are printed.
"""

from __future__ import annotations

import reprlib
from enum import IntEnum
from os import PathLike, fspath
from typing import ClassVar, Self

from rag_audit._internal.printable import printable

MAX_SHOWN = 200
"""Maximum shown characters of one part of an error."""


class ExitCode(IntEnum):
    """The meaning of the command's exit status (docs/protocol.md, "Verdict")."""

    PASS = 0
    FAIL = 1
    """a check is proven false"""
    MALFORMED = 2
    """no decision was possible: malformed or missing input, an unknown version, or wrong usage"""
    UNMET = 3
    """sound, but a requirement of the relying party is not met"""
    INTERNAL = 70
    """a fault of this program (EX_SOFTWARE), which allows no conclusion about its input"""


class RagAuditError(Exception):
    """Base of every error of this package.

    :param message: one line, lower case, no full stop
    :param field: the place: a file, a JSON path (``records[3].hq``) or an option
    :param expected: a description of acceptable values
    :param actual: the actual value (never a secret)
    :param hint: the remedy
    """

    exit_code: ClassVar[ExitCode] = ExitCode.MALFORMED
    missing: bool = False
    """whether there is no file where the error is"""

    def __init__(
        self,
        message: str,
        *,
        field: str | None = None,
        expected: object = None,
        actual: object = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.field = field
        self.expected = expected
        self.actual = actual
        self.hint = hint

    @classmethod
    def of_os_error(
        cls, exc: OSError, message: str, *, field: str | PathLike[str], hint: str | None = None
    ) -> Self:
        """The error for an operation that the operating system refused.

        :param field: the place, such as the file
        """
        return cls(message, field=fspath(field), actual=exc.strerror, hint=hint)

    @property
    def name(self) -> str:
        """The error's stable name: its class name."""
        return type(self).__name__

    def diagnostics(self) -> str:
        """The error for people: one line each for message, place, expected, actual and hint.

        A place at the end of the message has no line of its own. A hint that is all that is left follows the message.
        """
        named = self.field is None or self.message.endswith(f": {self.field}")
        place = None if named else _short(self.field)
        expected, result = self.texts()
        pairs = [("at", place), ("expected", expected), ("actual", result)]
        lines = [f"  {name}: {text}" for name, text in pairs if text is not None]
        if self.hint is None:
            return "\n".join([printable(self.message), *lines])
        if not lines:
            return f"{printable(self.message)} ({printable(self.hint)})"
        return "\n".join([printable(self.message), *lines, f"  hint: {printable(self.hint)}"])

    def texts(self) -> tuple[str | None, str | None]:
        """The expected and the actual value, if the error has them. Both are shortened, and the two texts differ."""
        expected = None if self.expected is None else _text(self.expected)
        result = None if self.actual is None else _text(self.actual)
        if expected is None or result is None:
            return expected and _short(expected), result and _short(result)
        if expected == result:
            expected, result = f"{expected} ({kind_of(self.expected)})", f"{result} ({kind_of(self.actual)})"
        return distinct(_short(expected), _short(result), expected, result)

    def as_json(self) -> dict[str, object]:
        """The error for programs."""
        expected, result = self.texts()
        pairs = {
            "error": self.name,
            "message": self.message,
            "field": None if self.field is None else _short(self.field),
            "expected": expected,
            "actual": result,
            "hint": self.hint,
        }
        return {k: v for k, v in pairs.items() if v is not None}

    def __str__(self) -> str:
        parts = [printable(self.message)]
        if self.field is not None:
            parts.append(f"at {_short(self.field)}")
        expected, result = self.texts()
        if expected is not None:
            parts.append(f"expected {expected}")
        if result is not None:
            parts.append(f"actual {result}")
        return "; ".join(parts)


class _Brief(reprlib.Repr):
    """A repr that neither a large nor a deep value can make large."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 4
        self.maxstring = self.maxother = self.maxlong = MAX_SHOWN
        self.maxlist = self.maxtuple = self.maxdict = self.maxset = self.maxfrozenset = 16

    def repr_bool(self, x: bool, level: int) -> str:
        return "true" if x else "false"

    def repr_NoneType(self, x: None, level: int) -> str:
        return "null"

    def repr_instance(self, x: object, level: int) -> str:
        # A part of a document is shown as the document has it, and not by its class.
        dump = getattr(x, "dump", None)
        return self.repr1(dump(), level) if callable(dump) else super().repr_instance(x, level)

    def repr_int(self, x: int, level: int) -> str:
        # Python refuses to write integers of thousands of digits.
        return repr(x) if x.bit_length() <= 4 * MAX_SHOWN else f"an integer of {x.bit_length()} bits"


_BRIEF = _Brief()


def brief(value: object) -> str:
    """A value's repr for an error's `actual`, shortened while it is made."""
    return _BRIEF.repr(value)


_KINDS: dict[type, str] = {
    bool: "true or false",
    int: "an integer",
    float: "a fraction",
    str: "a text",
    list: "a list",
    tuple: "a list",
    dict: "an object",
    type(None): "nothing",
}


def kind_of(value: object) -> str:
    """The kind of a JSON value, in words."""
    return _KINDS.get(type(value), "another value")


def distinct(expected: str, actual: str, whole: str, other: str) -> tuple[str, str]:
    """Two texts that were shortened, or from where their whole texts differ if the shortened ones do not.

    :param whole: the full text of `expected`
    :param other: the full text of `actual`
    """
    if expected != actual:
        return expected, actual
    place = next(
        (i for i, (a, b) in enumerate(zip(whole, other, strict=False)) if a != b), min(len(whole), len(other))
    )
    start = max(0, place - 20)
    parts = [_short(f"(from character {start + 1}) {text[start:]}" if len(text) > start else "(ends earlier)")
             for text in (whole, other)]  # fmt: skip
    return (parts[0], parts[1]) if parts[0] != parts[1] else (expected, "another value with the same text")


def _text(value: object) -> str:
    return value if isinstance(value, str) else brief(value)


def _short(value: object) -> str:
    text = _text(value)
    # Cut first: the escapes of a long text would be made in vain.
    shown = printable(text[: MAX_SHOWN + 1])
    return shown if len(shown) <= MAX_SHOWN else shown[: MAX_SHOWN - 3] + "..."


class EncodingError(RagAuditError):
    """An input is not in its canonical encoding: JSON, hexadecimal, field element, curve point or base64."""


class SchemaError(RagAuditError):
    """A document is well-formed JSON or TOML but does not have the fields that its format asks for."""


class VersionError(RagAuditError):
    """This release does not know the version of a format, protocol or table."""


class SizeError(RagAuditError):
    """An input is larger than the stated limit of its format."""


class MissingTile(RagAuditError):
    """A tile that a window file names is not there."""


class AlteredTile(RagAuditError):
    """A tile's content does not have the digest in its name."""


class ReorderedTile(RagAuditError):
    """A tile has the place of another tile of its window."""


class ForeignTile(RagAuditError):
    """A tile is of another window."""


class BundleError(RagAuditError):
    """An archive is no bundle of this program, or contradicts its manifest or its report."""


class PolicyError(RagAuditError):
    """A policy is not well-formed (docs/protocol.md, "Policy")."""


class MeasurementError(RagAuditError):
    """A measurement is well-formed, but belongs to another window than the supplied one."""

    exit_code = ExitCode.UNMET


class SetupError(RagAuditError):
    """A tool, key or artefact for this step is missing or altered; the hint names the command to run."""


class NotSent(SetupError):
    """A message could not be sent, so no other party has seen any part of it."""


class EndpointError(RagAuditError):
    """A third party's endpoint is down, slow, rate-limited, or sends an unusable answer.

    :ivar status: the HTTP status of a refusal; None if the endpoint did not refuse
    """

    status: int | None = None


class CeremonyError(RagAuditError):
    """Powers of tau, or a key, are proven not to follow from their contributions and the circuit."""

    exit_code = ExitCode.FAIL


class ExecutorError(RagAuditError):
    """The executor of proving jobs cannot be reached, accepts no more jobs, or lost the same job twice."""


class MemoryLimitError(RagAuditError):
    """A step needs more memory than is free, and was not started."""


class StoreError(RagAuditError):
    """The provider's durable state is missing, altered, or could not be written (a full disk, say)."""


class WindowStateError(RagAuditError):
    """The window is not in the state that this step needs (not opened, not cosigned, closed)."""


class OtherWindow(WindowStateError):
    """The provider serves another window than the request names, and cannot report the request's outcome there."""


class RequestRefused(RagAuditError):
    """A query request is refused; `reason` is one of the closed list in docs/protocol.md."""

    def __init__(self, reason: str, message: str, **kwargs: object) -> None:
        super().__init__(message, **kwargs)  # type: ignore[arg-type]
        self.reason = reason


class WitnessError(RagAuditError):
    """A statement cannot be proved: its private inputs do not satisfy the circuit or the argument."""


class InvalidProof(RagAuditError):
    """A proof does not verify."""

    exit_code = ExitCode.FAIL


class SignatureError(RagAuditError):
    """A signature does not verify, or a required one is missing."""
