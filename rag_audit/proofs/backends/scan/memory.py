"""The memory that a step of the scan argument takes, computed before it starts.

The coefficients are upper bounds of measurements on Linux from 10^3 to 10^6 positions (docs/performance.md); a test
compares them with a proof's real size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rag_audit._internal.errors import MemoryLimitError
from rag_audit._internal.free_memory import GB, available_bytes

_FIXED = 24 << 20
_PER_DRAW = (900, 450)
"""Bytes a position, as proofs are made by default and in low memory."""
_PER_POSITION = (900, 450)
_TABLED = 250
"""Bytes of each position and each row of a document table."""
_JOINED = (900, 450)
"""Bytes a draw of each record of a proof for several, by default and in low memory."""
_ANSWERED = 100
"""Additional bytes per position for each of these records."""


_OF_WEIGHTS = 4
_PER_VALUE = 350
"""Bytes of each value of an integer encoder's places."""
_TABLE = 8 << 10
"""Bytes of one generator's multiples, for at most `_TABLES` generators. The process retains them from its first
proof on."""
_TABLES = 1 << 13


def _tables(capacity: int) -> int:
    variables = (capacity - 1).bit_length()
    row = max(10, (variables + 1) // 2 + 4 + (variables >= 18))
    return _TABLE * min(1 << row, _TABLES)


def _padded(n: int) -> int:
    return 1 << (n - 1).bit_length()


def drawn_proof_bytes(capacity: int, gains: Sequence[int], *, low_memory: bool = False) -> int:
    """The bytes that a noise proof takes in addition to the process's current memory."""
    return _FIXED + _tables(capacity) + _PER_DRAW[low_memory] * _padded(capacity * len(gains))


def table_bytes(capacity: int, rows: int) -> int:
    """The bytes that the commitment to a document table takes in addition to the process's current memory."""
    return _FIXED + _tables(capacity) + _TABLED * (capacity + rows)


def table_proof_bytes(capacity: int, rows: int, drawn: int, *, low_memory: bool = False) -> int:
    """The bytes that the proof of a sample by document takes in addition to the process's current memory.

    :param drawn: the number of rows with bits that the window draws
    """
    lookups = _PER_DRAW[low_memory] * _padded(max(drawn, capacity))
    return table_bytes(capacity, rows) + _FIXED + lookups


def pooled_proof_bytes(capacity: int, rows: int, *, low_memory: bool = False) -> int:
    """The bytes that the proof of a record with pooled listing takes in addition to its job: those of a query proof,
    and of the draws of the rows."""
    draws = _PER_DRAW[low_memory] * _padded(rows)
    return query_proof_bytes(capacity, low_memory=low_memory) + _TABLED * (capacity + rows) + draws


def encoder_proof_bytes(weights: int, values: int) -> int:
    """The bytes that a proof of A1 for an integer encoder takes in addition to the process's current memory, with those
    of the model.

    :param weights: bytes of the model's parameters
    :param values: values of all places in all layers
    """
    return _FIXED + _OF_WEIGHTS * weights + _PER_VALUE * values


def query_proof_bytes(capacity: int, *, low_memory: bool = False) -> int:
    """The bytes that a query proof takes in addition to its job."""
    return _FIXED + _tables(capacity) + _PER_POSITION[low_memory] * _padded(capacity)


def batch_bytes(capacity: int, gains: Sequence[int], count: int, *, low_memory: bool = False) -> int:
    """The bytes that the proof of this number of records takes in addition to their jobs. The number of records is
    rounded up to a power of two, the number of positions is not.
    """
    places = 1 << (count - 1).bit_length()
    rows = _tables(capacity) << ((count - 1).bit_length() + 1) // 2
    return _FIXED + rows + places * capacity * (_JOINED[low_memory] * max(len(gains), 1) + _ANSWERED)


def require_batch(capacity: int, gains: Sequence[int], count: int, *, low_memory: bool = False) -> None:
    """Refuse to start a proof of this number of records if the machine has too little memory. For a single record, the
    noise proof has its own check.

    :raises MemoryLimitError: less memory is free than the proof takes; the hint has the maximum number of records that
        fit
    """
    if count == 1:
        return require_proof(
            lambda low: query_proof_bytes(capacity, low_memory=low), "query proof", low_memory=low_memory
        )
    free = available_bytes()

    def needed(records: int, low: bool) -> int:
        return batch_bytes(capacity, gains, records, low_memory=low)

    if free is None or needed(count, low_memory) <= free:
        return
    fits = fitting_batch(capacity, gains, count - 1, low_memory=low_memory)
    low = not low_memory and needed(count, True) <= free
    raise MemoryLimitError(
        f"needs {needed(count, low_memory) / GB:.1f} GB, {free / GB:.1f} free"
        + ("; use --low-memory" if low else ""),
        field=f"proof of {count} records",
        hint=f"at most {fits} fit: --batch {fits}" if fits > 1 else "prove the records one by one",
    )


def fitting_batch(
    capacity: int, gains: Sequence[int], maximum: int, *, low_memory: bool = False, at_a_time: int = 1
) -> int:
    """The largest number of records, up to `maximum`, with a proof that fits into the free memory; 1 if none fits. If
    the operating system does not report its free memory, the result is `maximum`.
    """
    free = available_bytes()
    free = None if free is None else free // at_a_time
    counts = range(maximum, 1, -1)
    return next(
        (n for n in counts if free is None or batch_bytes(capacity, gains, n, low_memory=low_memory) <= free),
        1,
    )


def index_bytes(positions: int, components: int) -> int:
    """The bytes that a commitment to this many components of an index takes in addition to the index itself."""
    return _FIXED + 3 * positions * components


def require(needed: int, what: str, *, in_low_memory: int | None = None) -> None:
    """Refuse to start a step if the machine has too little memory.

    :param in_low_memory: bytes that the step would take in low-memory mode, if it has one
    :raises MemoryLimitError: less than `needed` bytes are free
    """
    free = available_bytes()
    if free is not None and needed > free:
        fits = in_low_memory is not None and in_low_memory <= free
        raise MemoryLimitError(
            f"needs {needed / GB:.1f} GB, {free / GB:.1f} free" + ("; use --low-memory" if fits else ""),
            field=what,
            hint=None if fits else "fewer workers at a time, or a worker on a larger machine (--executor)",
        )


def require_proof(step: Callable[[bool], int], what: str, *, low_memory: bool) -> None:
    """Apply `require` to a step that can run in low memory.

    :param step: the bytes that the step takes, with low memory chosen or not
    """
    require(step(low_memory), what, in_low_memory=None if low_memory else step(True))
