"""The commitments of docs/relation.md by the native core's Poseidon, as provider, accounts and verifier call them.

Names, arguments and results equal those of `relation.commitments`, the reference that tests compare with this module.
The reference's permutation takes 5 ms, and a window of 10^5 records needs hundreds of thousands of permutations.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TypeAlias

from rag_audit import _native
from rag_audit._internal.errors import EncodingError
from rag_audit.relation.field import digest_to_field, to_bytes
from rag_audit.relation.tags import (
    LIST_RUN,
    TAG_LIST,
    TAG_QUERY,
    TAG_SLOT,
    TAG_TOPK,
)
from rag_audit.relation.tokens import pack_tokens

_FEW = 2 * LIST_RUN
"""Elements up to which a list is hashed run by run from here; the core takes a longer one whole."""


def hash_elements(*xs: int) -> int:
    """H of the specification, of 1 to 16 field elements.

    :raises EncodingError: an input is not a field element
    """
    return int.from_bytes(_native.poseidon_hash(b"".join(map(to_bytes, xs))), "big")


def hash_list(tag: int, xs: Iterable[int]) -> int:
    """HL of the specification.

    :raises EncodingError: an input is not a field element
    """
    return hash_elements_list(tag, [to_bytes(x) for x in xs])


@lru_cache(maxsize=1 << 10)
def _start(tag: int, count: int) -> bytes:
    """The common first hash of every list with this tag and length: half of the work for a query's short lists."""
    return _native.poseidon_hash(to_bytes(TAG_LIST) + to_bytes(tag) + to_bytes(count))


def hash_elements_list(tag: int, elements: Sequence[bytes]) -> int:
    """HL of elements of 32 bytes each."""
    (hashed,) = hash_lists([(tag, elements)])
    return hashed


Elements: TypeAlias = tuple[int, Sequence[bytes]]
"""A list that is to be hashed: its tag, and its elements of 32 bytes each."""


def hash_lists(lists: Sequence[Elements]) -> list[int]:
    """HL of several lists. Short lists are hashed in parallel: eight take little longer than one.

    :raises EncodingError: an element is not a field element
    """
    joined = [(tag, len(elements), b"".join(elements)) for tag, elements in lists]
    short = iter(_native.poseidon_absorb([(_start(tag, n), data) for tag, n, data in joined if n <= _FEW]))
    hashed = (next(short) if n <= _FEW else _native.poseidon_hash_list(tag, data) for tag, n, data in joined)
    return [int.from_bytes(one, "big") for one in hashed]


def slot_id(window: str, tenant: str, account: str, i: int) -> int:
    """The noise slot of an account's i-th query in a window.

    :raises EncodingError: i < 1
    """
    if i < 1:
        raise EncodingError("the query number i is out of range", field="i", expected="1, 2, ..", actual=i)
    names = (digest_to_field(name.encode()) for name in (window, tenant, account))
    return hash_elements(TAG_SLOT, *names, i)


def sampling_slot(window: str, tenant: str) -> int:
    """The slot of the Bernoulli bits that select a tenant's sample (`relation.commitments.sampling_slot`)."""
    names = (digest_to_field(name.encode()) for name in (window, tenant, "/sampling"))
    return hash_elements(TAG_SLOT, *names, 0)


def query_elements(salt: int, tokens: Sequence[int]) -> Elements:
    """The tag and elements that hq hashes, for a token embedder."""
    return TAG_QUERY, [to_bytes(x) for x in (salt, len(tokens), *pack_tokens(tokens))]


def text_query_elements(salt: int, utf8: bytes) -> Elements:
    """The tag and elements that hq hashes, for any other embedder."""
    return TAG_QUERY, [to_bytes(x) for x in (salt, len(utf8), digest_to_field(utf8))]


def query_commitment(salt: int, tokens: Sequence[int]) -> int:
    """hq for a token embedder."""
    return hash_elements_list(*query_elements(salt, tokens))


def text_query_commitment(salt: int, utf8: bytes) -> int:
    """hq for any other embedder."""
    return hash_elements_list(*text_query_elements(salt, utf8))


def topk_elements(salt: int, positions: Sequence[int]) -> Elements:
    """The tag and elements that htopk hashes."""
    return TAG_TOPK, [to_bytes(x) for x in (salt, len(positions), *positions)]
