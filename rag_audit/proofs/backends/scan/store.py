"""An index commitment on disk. It is written in parts that survive an interruption, and checked when it is read.

The file of a finished commitment is a header (format, capacity, dimension), a tag, and the points, 32 bytes each. The
tag is an HMAC under the blinding key over header, rows and points. It shows that these points commit to these rows;
recomputing them would take minutes at 10^6 positions. During the computation, a file with the additional suffix
``.part`` contains a header and a tag over the rows, and the finished runs of components, each with its own tag.

The rows may be an array that maps a file into memory: one run of components is read at a time.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from rag_audit import _native
from rag_audit._internal.durable import PRIVATE_MODE, replace_file
from rag_audit._internal.errors import EncodingError, StoreError
from rag_audit.proofs.backends.scan import memory

FORMAT = b"rag-audit/index/v1\n"
TAG_BYTES = 32
RUN = 16
"""Components committed at a time, the maximum loss of an interruption."""
MAX_RUN_BYTES = 1 << 26

Progress = Callable[[int, int], None]


def commit_index_file(
    path: Path,
    rows: npt.NDArray[np.int8],
    capacity: int,
    blinding_key: bytes,
    *,
    progress: Progress | None = None,
) -> bytes:
    """The points of an index's commitment (`ScanKey.points`), read from `path`, or computed and stored there.

    The points are determined by rows and key, so an interrupted call resumes when it is repeated with the same values.

    :param path: the finished file; the unfinished one has a name derived from it in the same folder
    :param rows: shape (positions, d), int8 in -7..7, may be memory-mapped; positions beyond them are zero
    :param capacity: positions of the commitment
    :param blinding_key: 32 secret bytes, fresh for every commitment that is published
    :param progress: called with (components done, d)
    :raises StoreError: the finished or unfinished file was altered, belongs to another index or key, or cannot be
        written
    :raises EncodingError: the rows have another shape, or components outside -7..7
    :raises MemoryLimitError: the machine has too little memory for the work
    """
    header, tag = _tagging(rows, capacity, blinding_key)
    try:
        if path.exists():
            return _finished(path, header, tag)
        memory.require(memory.index_bytes(len(rows), RUN), "index commitment")
        part = path.with_name(path.name + ".part")
        with open(part, "a+b", opener=_private) as file:
            done = _resume(file, header, tag)
            for first in range(len(done) * RUN, rows.shape[1], RUN):
                if progress is not None:
                    progress(first, rows.shape[1])
                points = _commit(rows, first, capacity, blinding_key)
                file.write(len(points).to_bytes(8, "big") + points + tag(f"{first}", points))
                file.flush()
                os.fsync(file.fileno())
                done.append(points)
        points = b"".join(done)
        replace_file(path, header + tag("points", points) + points, mode=PRIVATE_MODE)
        part.unlink()
    except OSError as exc:
        raise StoreError("cannot be written", field=str(path), actual=exc.strerror or str(exc)) from exc
    if progress is not None:
        progress(rows.shape[1], rows.shape[1])
    return points


def _tagging(
    rows: npt.NDArray[np.int8], capacity: int, blinding_key: bytes
) -> tuple[bytes, Callable[[str, bytes], bytes]]:
    """A file's header, and the function that computes the tag of a label and points over header and rows."""
    if rows.ndim != 2:
        raise EncodingError("the rows are not an index", field="rows", expected="two axes", actual=rows.shape)
    header = FORMAT + capacity.to_bytes(8, "big") + rows.shape[1].to_bytes(8, "big")
    over_rows = hmac.new(blinding_key, header, hashlib.sha256)
    over_rows.update(np.ascontiguousarray(rows).data)

    def tag(label: str, points: bytes) -> bytes:
        whole = over_rows.copy()
        whole.update(label.encode() + points)
        return whole.digest()

    return header, tag


def _finished(path: Path, header: bytes, tag: Callable[[str, bytes], bytes]) -> bytes:
    stored = path.read_bytes()
    points = stored[len(header) + TAG_BYTES :]
    if not hmac.compare_digest(stored[: len(header) + TAG_BYTES], header + tag("points", points)):
        raise StoreError(
            "the stored index commitment is not this index's: it was altered, or is of other rows or another key",
            field=str(path),
            hint="if the rows are right, delete this file: it is made again from them",
        )
    return points


def _resume(file: BinaryIO, header: bytes, tag: Callable[[str, bytes], bytes]) -> list[bytes]:
    """The runs that an earlier call finished; the rest of the file is cut off.

    :raises StoreError: the runs are of another index, and to continue would hide two indices behind one blinding
    """
    first = header + tag("part", b"")
    file.seek(0)
    result = file.read(len(first) + 1)
    done: list[bytes] = []
    if len(result) <= len(first):  # interrupted before there was a run
        file.truncate(0)
        file.write(first)
        file.flush()
        os.fsync(file.fileno())
        return done
    if not hmac.compare_digest(result[:-1], first):
        raise StoreError(
            "the unfinished index commitment is not this index's: it was altered, or is of other rows or another key",
            field=file.name,
            hint="delete it and draw a new blinding key, or restore the rows",
        )
    end = file.seek(len(first))
    while length := int.from_bytes(file.read(8), "big"):
        points = file.read(min(length, MAX_RUN_BYTES))
        if not hmac.compare_digest(file.read(TAG_BYTES), tag(f"{len(done) * RUN}", points)):
            break
        done.append(points)
        end = file.tell()
    file.truncate(end)
    return done


def _commit(rows: npt.NDArray[np.int8], first: int, capacity: int, blinding_key: bytes) -> bytes:
    columns = np.ascontiguousarray(rows[:, first : first + RUN].T).tobytes()
    try:
        return _native.ScanIndex.commit_components(columns, first, len(rows), capacity, blinding_key)
    except (ValueError, OverflowError) as exc:
        raise EncodingError("the index is refused", field="rows", actual=str(exc)) from exc


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, PRIVATE_MODE)
