"""A passage: the text and metadata at one position of an index, as the provider commits to them and returns them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from typing import Self

from rag_audit._internal.canonical import Json, count_values, jcs, parse_json
from rag_audit._internal.errors import EncodingError, SchemaError, SizeError

MAX_METADATA_BYTES = 1 << 16
"""Maximum bytes of one document's metadata in canonical JSON."""
MAX_METADATA_VALUES = 4096
"""Maximum JSON values of one document's metadata, so that the longest answer fits into `MAX_VALUES`."""
_DESCRIBED = b"\xffrag-audit/document/v1"
"""Prefix of a document with metadata. UTF-8 never contains the byte 0xff, so no document without metadata can have
the same bytes."""


@dataclass(frozen=True, slots=True)
class Passage:
    """The content of one position of an index. A document consists of one or more passages.

    Only its text is embedded. The commitment covers its metadata, for example an id and a source, with the text. The
    provider returns the metadata only with the text, so an account sees that both equal the document that was committed
    to before the window opened.

    :param metadata: canonical JSON of an object with at least one field (`of` makes it); None for a document without
        metadata
    :param place: the file or address that the provider read it from, for errors
    :param document: the key of the passage's document: passages of a tenant with equal keys are one document; None for
        a passage that is a document of its own. Passages that differ only in place and document are equal
    """

    text: str
    metadata: bytes | None = None
    place: str | None = dataclass_field(default=None, compare=False, repr=False)
    document: str | None = dataclass_field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, text: str, metadata: Mapping[str, Json] | None = None, *, field: str = "document") -> Self:
        """A document with this text and these metadata fields.

        :param field: the document's name in the error's `field`
        :raises EncodingError: canonical JSON cannot represent a value: it is a fraction, or beyond 2^53, or nested too
            deeply
        :raises SizeError: the metadata is larger than `MAX_METADATA_BYTES`, or has more than `MAX_METADATA_VALUES`
        """
        if not metadata:
            return cls(text)
        try:
            # Three levels of nesting, as in an answer, so that the limit of an answer's reader applies.
            written = jcs([[[dict(metadata)]]])[3:-3]
        except EncodingError as exc:
            exc.field = f"{field}.metadata{(exc.field or '').removeprefix('$[0][0][0]')}"
            raise
        for size, maximum, unit in (
            (len(written), MAX_METADATA_BYTES, "bytes"),
            (count_values(written), MAX_METADATA_VALUES, "values"),
        ):
            if size > maximum:
                raise SizeError("a document's metadata is too large", field=f"{field}.metadata",
                                expected=f"at most {maximum} {unit}", actual=f"{size}",
                                hint="move data into the text, or omit a part of the metadata")  # fmt: skip
        return cls(text, written)

    @classmethod
    def stored(cls, text: str, metadata: str | None, *, field: str) -> Self:
        """A stored document. Its metadata is validated like any input.

        :raises SchemaError: the metadata is not canonical JSON of an object with fields
        """
        if metadata is None:
            return cls(text)
        value = parse_json(metadata, source=field, max_bytes=MAX_METADATA_BYTES)
        if not isinstance(value, dict) or not value or jcs(value) != metadata.encode():
            raise SchemaError("the metadata is not a canonical JSON object with fields", field=field)
        return cls(text, metadata.encode())

    def name_in(self, tenant: str, number: int) -> str:
        """The document's name for errors: its place, or else its number in the tenant and its id.

        :param number: from 0
        """
        if self.place is not None:
            return self.place
        name = self.fields.get("id")
        known = isinstance(name, str | int) and not isinstance(name, bool)
        return f"documents.{tenant}[{number}]" + (f" (id {name})" if known else "")

    @property
    def fields(self) -> dict[str, Json]:
        """The metadata as a JSON value; empty for a document without metadata."""
        if self.metadata is None:
            return {}
        value = parse_json(self.metadata, source="metadata")
        assert isinstance(value, dict)
        return value

    @property
    def data(self) -> bytes:
        """The bytes that its leaf of C_docs is the salted digest of (docs/protocol.md, "Documents")."""
        if self.metadata is None:
            return self.text.encode()
        return _DESCRIBED + b'{"metadata":' + self.metadata + b',"text":' + jcs(self.text) + b"}"


def name_of(fields: Mapping[str, Json]) -> str | None:
    """The id in a document's metadata: a text that is not blank, or an integer as its digits; else None."""
    value = fields.get("id")
    if type(value) is int:
        return str(value)
    return value if isinstance(value, str) and value.strip() else None


def repeated_names(documents: Iterable[Passage]) -> dict[str, list[int]]:
    """The ids that more than one of a tenant's documents have, each with the numbers of its documents, from 0."""
    places: defaultdict[str, list[int]] = defaultdict(list)
    for number, document in enumerate(documents):
        if document.metadata is not None and (name := name_of(document.fields)) is not None:
            places[name].append(number)
    return {name: numbers for name, numbers in places.items() if len(numbers) > 1}


EMPTY = Passage("")
"""The content of an empty position. Its data has no bytes."""


def passage(document: str | Passage) -> Passage:
    """Converts a plain text to a document without metadata, and returns a `Passage` unchanged."""
    return Passage(document) if isinstance(document, str) else document
