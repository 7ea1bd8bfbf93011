"""Commitments, slots and the noise key (docs/relation.md, "Commitments").

Salts are field elements. The ledger is public and queries can be guessed, so every function here except `slot_id`,
which is public, takes a fresh salt.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

from rag_audit._internal.errors import EncodingError
from rag_audit.relation.field import digest_to_field
from rag_audit.relation.poseidon import hash_elements, hash_list
from rag_audit.relation.tags import (
    TAG_INDEX,
    TAG_NOISE,
    TAG_QUERY,
    TAG_SAMPLE,
    TAG_SEED,
    TAG_SLOT,
    TAG_TOPK,
    TAG_VECTOR,
)
from rag_audit.relation.tokens import pack_tokens
from rag_audit.relation.vectors import pack_bits, pack_nibbles


def seed_commitment(s0: int, s1: int) -> int:
    """C_seed = H(1, s0, s1)."""
    return hash_elements(TAG_SEED, s0, s1)


def slot_id(window: str, tenant: str, account: str, i: int) -> int:
    """The noise slot of an account's i-th query in a window: H(6, f(window), f(tenant), f(account), i).

    :raises EncodingError: i < 1
    """
    if i < 1:
        raise EncodingError("the query number i is out of range", field="i", expected="1, 2, ..", actual=i)
    names = (digest_to_field(name.encode()) for name in (window, tenant, account))
    return hash_elements(TAG_SLOT, *names, i)


def sampling_slot(window: str, tenant: str) -> int:
    """The slot of the Bernoulli bits that select a tenant's sample: H(6, f(window), f(tenant), f("/sampling"), 0).

    It is no account's: a query's number is at least 1, and "/sampling" is no account's id.
    """
    names = (digest_to_field(name.encode()) for name in (window, tenant, "/sampling"))
    return hash_elements(TAG_SLOT, *names, 0)


def noise_key(s0: int, s1: int, beacon: int, slot: int) -> int:
    """kappa = H(2, s0, s1, f(beacon), slot); `beacon` is already the field element."""
    return hash_elements(TAG_NOISE, s0, s1, beacon, slot)


def query_commitment(salt: int, tokens: Sequence[int]) -> int:
    """hq for a token embedder: HL(3, [salt, number of tokens, packed tokens])."""
    return hash_list(TAG_QUERY, [salt, len(tokens), *pack_tokens(tokens)])


def text_query_commitment(salt: int, utf8: bytes) -> int:
    """hq for any other embedder: HL(3, [salt, byte length, f(UTF-8 bytes)])."""
    return hash_list(TAG_QUERY, [salt, len(utf8), digest_to_field(utf8)])


def vector_commitment(salt: int, vector: Iterable[int]) -> int:
    """cq = HL(4, [salt, packed vector])."""
    return hash_list(TAG_VECTOR, [salt, *pack_nibbles(vector)])


def topk_commitment(salt: int, positions: Sequence[int]) -> int:
    """htopk = HL(5, [salt, K, positions in rank order])."""
    return hash_list(TAG_TOPK, [salt, len(positions), *positions])


def sample_commitment(salt: int, sampled: Sequence[bool]) -> int:
    """C_kept as a circuit commits to it: HL(12, [salt, packed bits of the sampled positions])."""
    return hash_list(TAG_SAMPLE, [salt, *pack_bits(sampled)])


def index_commitment(salt: int, rows: Sequence[Sequence[int]]) -> int:
    """C_idx as a circuit commits to it: HL(7, [salt, dense nibble stream of all positions]).

    :param rows: every position of the capacity in order, empty ones as zero vectors, all of one dimension
    :raises EncodingError: the rows have different dimensions
    """
    if len({len(row) for row in rows}) > 1:
        raise EncodingError("the index's rows have different dimensions", field="rows")
    return hash_list(TAG_INDEX, [salt, *pack_nibbles(chain.from_iterable(rows))])
