"""The names of documents: how a name opens, and the messages with which an account asks for the proof of its names
(docs/protocol.md, "Names of documents")."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import AfterValidator, Field

from rag_audit._internal.canonical import Json, jcs
from rag_audit.models.models import Count, Hex32, Hex64, Identifier, Model, One

if TYPE_CHECKING:
    from rag_audit.log.signing import SigningKey

MAX_KEY = 4096
"""The maximum characters of a document's key: an answer opens one key for each passage, and an account stores it."""
MAX_POSITIONS = 10_000
"""The maximum number of positions in one request, which bounds the work of one proof."""
MAX_NAMES_REQUEST_BYTES = 1 << 18
MAX_NAMES_ANSWER_BYTES = 16 << 20
_NAME = b"rag-audit/document-name/v1"


def document_name(salt: bytes, key: str) -> bytes:
    """The name of a document: SHA-256 over a prefix, the salt of 32 bytes and the key in UTF-8.

    The provider opens salt and key with each passage that it returns, so that accounts recompute the name.

    >>> document_name(bytes(32), "leases/2019.pdf").hex()[:16]
    '903fc5dcd024558d'
    """
    return hashlib.sha256(_NAME + salt + key.encode("utf-8", "surrogatepass")).digest()


def key_of_content(data: bytes) -> str:
    """The key of a document whose source names none: the digest of its text or content."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def is_visible(key: str) -> bool:
    """Whether a key has a character that a person can see: not only spaces, controls and formats such as U+200B."""
    return any(c.isprintable() and not c.isspace() for c in key)


def _visible(key: str) -> str:
    if not is_visible(key):
        raise ValueError("text with a visible character")
    return key


Key = Annotated[str, Field(min_length=1, max_length=MAX_KEY), AfterValidator(_visible)]
"""The key of a document: the path of a file, or the value of a column."""


class NameOpening(Model):
    """The opening of the name of a passage's document.

    :param key: the key of the document: the path of a file, or the value of a column
    :param salt: the salt of the name
    """

    key: Key
    salt: Hex32

    @property
    def name(self) -> bytes:
        """The name that salt and key open, 32 bytes."""
        return document_name(bytes.fromhex(self.salt), self.key)


def _ascending(positions: list[int]) -> list[int]:
    if any(before >= after for before, after in itertools.pairwise(positions)):
        raise ValueError("strictly increasing positions")
    return positions


class NamesRequest(Model):
    """An account's request for the proof that the names of its passages are the names in the document table.

    The request has no random value. A second sender of the same request learns names, which are salted hashes, and no
    key and no salt.

    :param positions: positions of which the account received a text in this window, strictly increasing
    """

    type: Literal["names"]
    v: One
    origin: str
    header: Hex32
    tenant: Identifier
    account: Identifier
    positions: Annotated[
        list[Count], Field(min_length=1, max_length=MAX_POSITIONS), AfterValidator(_ascending)
    ]
    sig: Hex64

    @classmethod
    def sign(
        cls, key: SigningKey, *, origin: str, header: str, tenant: str, account: str, positions: Sequence[int]
    ) -> NamesRequest:
        """The request of an account.

        :param key: the account's key on the roster of the window
        :param header: the digest of the window header
        """
        draft = cls(type="names", v=1, origin=origin, header=header, tenant=tenant, account=account,
                    positions=[*positions], sig="0" * 128)  # fmt: skip
        return draft.model_copy(update={"sig": key.sign(draft.message()).hex()})

    def message(self) -> bytes:
        """The bytes under `sig`."""
        return b"rag-audit/names-request/v1" + jcs({k: v for k, v in self.dump().items() if k != "sig"})


class NamesAnswer(Model):
    """The names of the rows at an account's positions, with their proof. The answer has no signature: the proof relates
    the names to the document table in the window header.

    :param header: the digest of the window header
    :param names: the name of the row of each position, in the order of the request
    :param proof: the proof, with the name of its system, as the system's files have it
    """

    type: Literal["names-proof"]
    v: One
    header: Hex32
    tenant: Identifier
    positions: Annotated[
        list[Count], Field(min_length=1, max_length=MAX_POSITIONS), AfterValidator(_ascending)
    ]
    names: list[Hex32]
    proof: dict[str, Json]
