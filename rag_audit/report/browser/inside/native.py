"""`rag_audit._native` in the page: the functions of the native core that a verifier calls, under the same names
(`_native.pyi`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any, ClassVar

from rag_audit.report.browser.inside.module import Field, Results, StoredValue, call, optional

Failures = list[tuple[int, str]]
_RUN_BYTES = 15 * 32
"""Number of list elements that are hashed at a time."""

progress: Callable[[int], None] | None = None
"""Called with the number of proofs that a step has looked at."""


def _looked_at(count: int) -> None:
    if progress is not None:
        progress(count)


def canonical_json(value: Any) -> bytes | None:
    """None: the reference writes the value."""
    return None


def plain_json(data: bytes) -> Any:
    """None: the reference reads the text."""
    return None


def poseidon_hash(inputs: bytes) -> bytes:
    """H of 1 to 16 elements."""
    return call("poseidon_hash", inputs).bytes()


def poseidon_absorb(lists: list[tuple[bytes, bytes]]) -> list[bytes]:
    """HL of several lists, each from the hash that its tag and length give."""
    hashes = []
    for running, elements in lists:
        for first in range(0, len(elements), _RUN_BYTES):
            running = poseidon_hash(running + elements[first : first + _RUN_BYTES])
        hashes.append(running)
    return hashes


def poseidon_hash_list(tag: int, elements: bytes) -> bytes:
    """HL."""
    return call("poseidon_hash_list", tag, elements).bytes()


def path_root(leaf: bytes, index: int, size: int, path: list[bytes]) -> bytes | None:
    """The root to which a path leads from a leaf (RFC 9162, 2.1.3.2), which has the index of one below the size."""
    if any(len(value) != 32 for value in (leaf, *path)):
        raise ValueError("path: expected 32 bytes each")
    fn, sn, r = index, size - 1, leaf
    for p in path:
        if sn == 0:
            return None
        if fn & 1 or fn == sn:
            r = sha256(b"\x01" + p + r).digest()
            while not fn & 1 and fn:
                fn, sn = fn >> 1, sn >> 1
        else:
            r = sha256(b"\x01" + r + p).digest()
        fn, sn = fn >> 1, sn >> 1
    return r if sn == 0 else None


def ed25519_verifies(key: bytes, message: bytes, signature: bytes) -> bool:
    """Whether a signature is the key's over a message."""
    return bool(call("ed25519_verify", key, signature, message).integer())


def bls_signed_in_g1(key: bytes, message: bytes, signature: bytes) -> bool:
    """Whether a drand signature in G1 is the key's."""
    return bool(call("bls_signed_in_g1", key, message, signature).integer())


def bls_signed_in_g2(key: bytes, message: bytes, signature: bytes) -> bool:
    """Whether a drand signature in G2 is the key's."""
    return bool(call("bls_signed_in_g2", key, message, signature).integer())


def groth16_verify_batch(
    vk_json: str, proofs: list[bytes], inputs: list[bytes]
) -> list[tuple[int, str | None]]:
    """The numbers of the false proofs, with the reason for malformed ones."""
    result = call("groth16_verify_batch", vk_json, list(proofs), list(inputs))
    _looked_at(len(proofs))
    return [*result.list(lambda: (result.integer(), next(iter(result.list(result.text)), None)))]


class ScanIndex(StoredValue):
    """Commitments to an index's components."""

    kind = "index"

    def __init__(self, points: bytes, dimension: int, capacity: int) -> None:
        self._keep("index", points, dimension, capacity)

    def encode(self) -> bytes:
        """The points."""
        return call("index_encode", self).bytes()

    def digest(self) -> bytes:
        """SHA-256 over capacity, dimension and points."""
        return call("index_digest", self).bytes()


class ScanTable(ScanIndex):
    """Commitments to a table's columns. The table has the rows of the vocabulary and one row of zeros."""

    def __init__(self, points: bytes, dimension: int, vocabulary: int) -> None:
        super().__init__(points, dimension, vocabulary + 1)


class ScanParameters(StoredValue):
    """The parameters that a policy fixes for a tenant's answers."""

    kind = "parameters"

    def __init__(
        self,
        window: bytes,
        gains: list[int],
        listed: int,
        lo: int,
        hi: int,
        lattice: int,
        sample: bytes | None = None,
    ) -> None:
        self._keep("parameters", window, list(gains), listed, lo, hi, lattice, optional(sample))


class ScanPooledListing(StoredValue):
    """The parameters that a policy and a window fix for a tenant with pooled listing."""

    kind = "pooled_listing"

    def __init__(
        self,
        window: bytes,
        row: bytes,
        kept: bytes,
        numbers: tuple[int, int, int],
        answer: tuple[int, int],
        scores: tuple[int, int, int],
    ) -> None:
        self._keep("pooled_listing", window, row, kept, *numbers, *answer, *scores)


class ScanCoalition(StoredValue):
    """The statement of a coalition proof."""

    kind = "coalition"

    def __init__(self, context: bytes, dimension: int, cq: bytes, *rest: Sequence[int] | int) -> None:
        self._keep("coalition", context, dimension, cq, *rest)

    def runs(self) -> int:
        """How many runs over pairs there are."""
        return call("coalition_runs", self).integer()

    def verify(self, records: bytes, pairs: list[bytes]) -> None:
        """Raises ValueError unless the coalition proof is valid."""
        call("coalition_verify", self, records, list(pairs))


def _proved(name: str, *arguments: Field) -> None:
    """Raises ValueError unless one proof is valid."""
    call(name, *arguments)
    _looked_at(1)


def scan_verify(index: ScanIndex, parameters: ScanParameters, records: list[bytes], *parts: bytes) -> None:
    """Raises ValueError unless noise proof and query proof are valid for the records."""
    _proved("scan_verify", index, parameters, list(records), *parts)


def scan_bits_verify(capacity: int, context: bytes, slot_elements: bytes, bound: int, proof: bytes) -> bytes:
    """The commitments of a valid proof of Bernoulli bits."""
    return call("scan_bits_verify", capacity, context, slot_elements, bound, proof).bytes()


def scan_documents_verify(
    context: bytes,
    slot_elements: bytes,
    numbers: tuple[int, ...],
    table: bytes,
    previous: bytes | None,
    listed: bool,
    proof: bytes,
) -> list[bytes]:
    """The commitments of a valid proof of a sample by document."""
    result = call(
        "scan_documents_verify",
        context,
        slot_elements,
        tuple(numbers),
        table,
        optional(previous),
        int(listed),
        proof,
    )
    return list(result.list(result.bytes))


def scan_embed_verify(table: ScanTable, parameters: tuple[int, int], *rest: bytes) -> None:
    """Raises ValueError unless the proof of A1 is valid."""
    _proved("scan_embed_verify", table, tuple(parameters), *rest)


def scan_listed_empty(capacity: int, rows: int) -> bytes:
    """The commitments to an empty set of listed rows, for a tenant's first record."""
    return call("scan_listed_empty", capacity, rows).bytes()


def scan_protocol() -> bytes:
    """The protocol's digest."""
    return call("scan_protocol").bytes()


def scan_encoder_protocol() -> bytes:
    """The digest that names the protocol of proofs of the integer encoder."""
    return call("scan_encoder_protocol").bytes()


def scan_pooled_protocol() -> bytes:
    """The digest of the protocol of pooled listing."""
    return call("scan_pooled_protocol").bytes()


def scan_limits() -> dict[str, int]:
    """The largest value of every public parameter."""
    result = call("scan_limits")
    return dict(result.list(lambda: (result.text(), result.integer())))


class _Batch(StoredValue):
    """Records of one kind that are verified a chunk at a time.

    :param records: the module's name of the kind
    """

    kind = "batch"
    records = ""
    CHUNK: ClassVar[int] = 64

    def __init__(self, of: ScanIndex, by: Field, /) -> None:
        self._keep(self.records, of, by)

    def add(self, records: list[tuple[bytes, ...]]) -> Failures:
        """Add records, and return the indices of the records without well-formed proofs."""
        result = call("batch_add", self, list(records))
        _looked_at(len(records))
        return _failures(result)

    def holds(self) -> bool:
        """Whether all that was added is proved."""
        return bool(call("batch_holds", self).integer())

    def search(self, records: list[tuple[bytes, ...]]) -> Failures:
        """The records that do not verify."""
        return _failures(call("batch_search", self, list(records)))

    def retained(self) -> int:
        """Points and scalars that stay in memory between chunks."""
        return call("batch_retained", self).integer()


def _failures(actual: Results) -> Failures:
    return [*actual.list(lambda: (actual.integer(), actual.text()))]


class ScanBatch(_Batch):
    """Proofs of one tenant's records, each of one record or several."""

    records = "answers"


class ScanPooledBatch(_Batch):
    """Records of one tenant with pooled listing."""

    records = "pooled"


class ScanEmbedBatch(_Batch):
    """Proofs of A1 about one table."""

    records = "embeddings"


class EncoderPins(StoredValue):
    """The pins of an integer encoder, with the verifier of proofs about it."""

    kind = "encoder"

    def __init__(self, pins: bytes) -> None:
        self._keep("encoder", pins)

    def digest(self) -> bytes:
        """SHA-256 of the pins."""
        return call("encoder_digest", self).bytes()

    def verify(self, parameters: tuple[int, int], statement: bytes, proof: bytes) -> None:
        """Raises ValueError unless the proof of A1 is valid."""
        _proved("encoder_verify", self, tuple(parameters), statement, proof)


def scan_max_batch(capacity: int, gains: int) -> int:
    """Maximum records of one proof, for these numbers of positions and gains."""
    return call("max_batch", capacity, gains).integer()


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)

    def missing(*_: object) -> None:
        raise RuntimeError(f"the page's native core has no {name}: the page only verifies")

    return missing
