"""The witness's record of the logs that it has read, so that a later enrolment costs it only the new entries.

The witness's directory has one such file for each open log. The file decides no cosignature: the witness compares each
checkpoint with its state, and reads a log from its start if the recorded part does not lead to the checkpoint's root
(`formats.ending`).
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from rag_audit._internal.canonical import jcs, parse_json, sha256
from rag_audit._internal.durable import PRIVATE_MODE, read_private, replace_file
from rag_audit._internal.errors import RagAuditError
from rag_audit.models.ending import NOTHING, Ending, ReadTiles, read_ending

READ_FOLDER = "read"
MAX_READ_BYTES = 16_384


class LogReader:
    """The reader of one window's log.

    :param directory: the witness's directory
    :param log: the log's origin line
    """

    def __init__(self, directory: Path, log: str) -> None:
        self._path = directory / READ_FOLDER / f"{sha256(log.encode()).hex()}.json"

    def read(self, window: Path, since: int | None = None) -> Ending:
        """`read_ending` of a window.json, from where the last reading ended.

        :raises StoreError: the record of the entries read cannot be written
        """
        before = self._load()
        ending = read_ending(window, before, since)
        if ending.read != before and ending.read.entries:
            self._path.parent.mkdir(mode=0o700, exist_ok=True)
            replace_file(self._path, jcs(ending.read.dump()), mode=PRIVATE_MODE)
        return ending

    def forget(self) -> None:
        """Delete the file, once the log is closed."""
        self._path.unlink(missing_ok=True)

    def _load(self) -> ReadTiles:
        if self._path.exists():
            with suppress(RagAuditError):  # without it, everything is read
                value = parse_json(read_private(self._path, max_bytes=MAX_READ_BYTES), source=self._path.name)
                result = ReadTiles.parse(value, field=self._path.name)
                result.before()
                return result
        return NOTHING
