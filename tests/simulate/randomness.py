"""Keys, salts and positions that come out the same in each run: what a service draws, drawn from a name."""

from __future__ import annotations

import hashlib
import secrets
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from unittest import mock

from rag_audit.commit import document_table
from rag_audit.log.keys import ALG_ED25519
from rag_audit.log.signing import SigningKey
from rag_audit.retrieval import engine

STREAMS = {
    "Account.request": "rag_audit.parties.account.Account.request",
    "Witness.nonce_commitment": "rag_audit.parties.witness.Witness.nonce_commitment",
    "seal": "rag_audit.encoding.sealed.seal",
}
"""By the qualified name of a function that draws: the name of its stream where the published windows were made under
another module's name. A function that moves keeps its stream, so the windows keep their bytes."""


@contextmanager
def drawn_from(name: str) -> Iterator[None]:
    """Replace the operating system's generator within this process, as far as published bytes depend on it.

    Each place in the code has a stream of its own, so that the order in which threads draw changes nothing. Names of
    temporary files and nonces of the native provers stay the operating system's.
    """
    drawn: Counter[str] = Counter()

    def stream(place: str, size: int) -> bytes:
        drawn[place] += 1
        return hashlib.shake_256(f"rag-audit/simulate/{name}/{place}/{drawn[place]}".encode()).digest(size)

    def caller() -> str:
        frame = sys._getframe(2)
        code = frame.f_code
        name = code.co_qualname if hasattr(code, "co_qualname") else code.co_name
        return STREAMS.get(name, f"{frame.f_globals['__name__']}.{name}")

    def token_bytes(size: int | None = None) -> bytes:
        return stream(caller(), size or 32)

    def randbelow(bound: int) -> int:
        return int.from_bytes(stream(caller(), bound.bit_length() // 8 + 16), "big") % bound

    def generate(of: str, algorithm: int = ALG_ED25519) -> SigningKey:
        return SigningKey(of, algorithm, stream(f"key {of}", 32))

    def shuffler() -> Random:
        return Random(stream("positions", 32))

    def chooser() -> Random:
        return Random(stream("rows", 32))

    with (
        mock.patch.object(secrets, "token_bytes", token_bytes),
        mock.patch.object(secrets, "randbelow", randbelow),
        mock.patch.object(SigningKey, "generate", staticmethod(generate)),
        mock.patch.object(engine, "SystemRandom", shuffler),
        mock.patch.object(document_table, "SystemRandom", chooser),
    ):
        yield
