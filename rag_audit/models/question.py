"""A question before its request: its limits, and the salts of its commitments."""

from __future__ import annotations

from dataclasses import dataclass

from rag_audit._internal.canonical import sha256
from rag_audit.relation.field import derive_salt

MAX_QUESTION = 32_768
"""Maximum characters of a question."""
MAX_REQUEST_BYTES = 1 << 17
"""The largest signed request in bytes of JSON."""
MAX_QUESTION_BYTES = MAX_REQUEST_BYTES - 4096
"""Maximum length of a question in bytes of JSON; a request has other fields in addition."""


@dataclass(frozen=True)
class RequestSalts:
    """The salts for one query's commitments, one for each, derived from the account's 32-byte salt.

    A receipt reveals the salts of htopk and hans. The salts of hq and cq stay hidden until the account discloses its
    whole salt.
    """

    query: int
    vector: int
    top_k: int
    answer: bytes

    @classmethod
    def derive(cls, salt: bytes) -> RequestSalts:
        """Derive the salts from the account's 32 bytes."""
        return cls(
            query=derive_salt(salt, "q"),
            vector=derive_salt(salt, "c"),
            top_k=derive_salt(salt, "k"),
            answer=sha256(salt + b"a"),
        )
