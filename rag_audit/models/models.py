"""The common base of every published document: strict models, canonical bytes, named errors.

The models in `policy`, `records`, `trust` and `windowfile` *are* the formats: they refuse unknown fields,
coerced types and non-canonical encodings, and `json_schema()` derives the JSON Schemas in docs/schemas from them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Annotated, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
)

from rag_audit._internal.canonical import MAX_SAFE_INTEGER, Json, digest_hex, jcs
from rag_audit._internal.errors import SchemaError
from rag_audit._internal.printable import is_line
from rag_audit.models.schema_errors import complaint, words_of
from rag_audit.relation.field import MODULUS


def _below_modulus(text: str) -> str:
    if int(text, 16) >= MODULUS:
        raise ValueError("a field element, which is below the BN254 scalar modulus r")
    return text


def _decimal(text: str) -> str:
    try:
        value = Decimal(text)
    except InvalidOperation as exc:
        raise ValueError("a decimal number") from exc
    if not value.is_finite():
        raise ValueError("a finite number")
    return text


def _exactly_int(value: object) -> object:
    # A literal is compared by ==, where true and 1.0 equal 1; strict mode refuses them in every other integer field.
    if type(value) is not int:
        raise ValueError("an integer")
    return value


def _line(text: str) -> str:
    if not is_line(text):
        raise ValueError("one line of visible characters")
    return text


MAX_LINE = 255


def check_line(text: str, *, field: str) -> str:
    """Check a name from outside before any work is done under it.

    :raises SchemaError: it is not a `Line`
    """
    if not is_line(text) or len(text) > MAX_LINE:
        raise SchemaError("not a name", field=field,
                          expected=f"one line of 1 to {MAX_LINE} visible characters", actual=text)  # fmt: skip
    return text


Line = Annotated[str, Field(min_length=1, max_length=MAX_LINE), AfterValidator(_line)]
"""A name: one line of visible characters, since it is printed as a line in signed notes and in reports."""
One = Annotated[Literal[1], BeforeValidator(_exactly_int)]
"""The integer 1, the version of a format; neither true nor 1.0 is accepted."""
Hex32 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
"""32 bytes as 64 lowercase hex digits."""
Hex64 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{128}$")]
"""64 bytes as 128 lowercase hex digits: an Ed25519 signature."""
FieldHex = Annotated[Hex32, AfterValidator(_below_modulus)]
"""An element of the BN254 scalar field, big-endian, below r."""
DecimalText = Annotated[
    str, StringConstraints(pattern=r"^[0-9]{1,12}(\.[0-9]{1,30})?(e-?[0-9]{1,3})?$"), AfterValidator(_decimal)
]
"""A non-negative real as a decimal string, since JSON numbers in our files are integers only."""
Identifier = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._@:-]{0,127}$")]
"""The id of an account, tenant or window, without spaces and path separators."""
Count = Annotated[int, Field(ge=0, le=MAX_SAFE_INTEGER)]
Positive = Annotated[int, Field(ge=1, le=MAX_SAFE_INTEGER)]
Millis = Annotated[int, Field(ge=0, le=MAX_SAFE_INTEGER)]
"""Milliseconds since the Unix epoch, UTC."""


def repeated(values: Iterable[str]) -> list[str]:
    """The values that occur more than once, sorted. One pass, since lists of accounts have 10^5 lines."""
    return sorted(value for value, count in Counter(values).items() if count > 1)


class Model(BaseModel):
    """A frozen, strict document. Outside input enters by `parse` only; `dump` gives the JSON value."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    @classmethod
    def parse(cls, value: object, *, field: str) -> Self:
        """Check a JSON value against the model.

        :param field: the document's name, the start of the error's place
        :raises SchemaError: a field is wrong; the error names the first one, with the expected and the actual value
        """
        try:
            return cls.model_validate(value)
        except ValidationError as exc:
            actual = complaint(cls, value, exc)
            raise SchemaError(
                f"the {words_of(cls)} is not well-formed",
                field=f"{field}{actual.place}",
                expected=actual.expected,
                actual=actual.actual,
                hint=actual.hint,
            ) from exc

    def model_copy(self, *, update: Mapping[str, object] | None = None, deep: bool = False) -> Self:
        """A copy with fields replaced; values computed from the old fields (`cached_property`) are not copied."""
        copied = super().model_copy(update=update, deep=deep)
        for name in copied.__dict__.keys() - type(self).model_fields.keys():
            del copied.__dict__[name]
        return copied

    def dump(self) -> dict[str, Json]:
        """The document as a JSON value."""
        return self.model_dump(mode="json")

    def canonical(self) -> bytes:
        """The document's RFC 8785 bytes."""
        return jcs(self.dump())

    def digest(self) -> str:
        """SHA-256 over the canonical bytes, 64 hex digits."""
        return digest_hex(self.dump())
