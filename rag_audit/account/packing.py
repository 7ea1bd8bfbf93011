"""Countersigned receipts in tiles, for a verifier who has many."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rag_audit._internal.errors import EncodingError
from rag_audit.models.window_writer import write_receipts
from rag_audit.verify.inputs import load_receipts


def pack_receipts(paths: Sequence[Path], folder: Path, header: str) -> tuple[Path, int]:
    """Write countersigned receipts of files and folders into tiles, for a verifier who has many.

    :param header: SHA-256 over entry 0 of their window
    :returns: the path of receipts.json, and its number of receipts
    :raises EncodingError: a file is no receipt; the tiles written before the error are unreferenced
    :raises StoreError: the folder cannot be written
    """
    receipts, unread = load_receipts(paths)
    if unread:
        raise EncodingError("the file is not a countersigned receipt", field="receipts", actual=unread[0])
    folder.mkdir(parents=True, exist_ok=True)
    pairs = ((r.name, r.receipt.dump()) for r in receipts)
    return write_receipts(pairs, folder, header), len(receipts)
