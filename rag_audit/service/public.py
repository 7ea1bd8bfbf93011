"""`/public/..` and `/windows/<id>/..`: the published files of a window. Caches may store them for as long as they stay
valid.

Requested names must match the names in a public folder, and the service opens each part of a path separately without
following links. Witnesses write notes there, and a link among them could lead to any file.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from email.utils import formatdate
from io import FileIO
from itertools import islice
from pathlib import Path

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from rag_audit._internal.errors import StoreError
from rag_audit.attest.window import Window
from rag_audit.log.merkle import root_of
from rag_audit.log.tiles import TILE_WIDTH, entries_path, tile_path
from rag_audit.service.asgi import RETRY_S, error
from rag_audit.service.limits import Limits
from rag_audit.service.logs import log
from rag_audit.service.queries import no_window
from rag_audit.service.queue import WorkQueue
from rag_audit.service.windows import Windows

CHECKPOINT_S = 10.0
"""How often an open window signs a new checkpoint for its readers."""
MAX_LEVEL = 7
_PATH = re.compile(r"tile/([0-9]{1,2}|entries)/((?:x\d{3}/)*\d{3})(?:\.p/([0-9]{1,3}))?\Z")


class LiveLog:
    """The tiles of the durable part of a window's ledger. Safe to use from several threads.

    The checkpoint of a closed window is the published one with its cosignatures. Before that, only the provider signs
    it. It is the same for each reader, and is renewed at most every `CHECKPOINT_S`.
    """

    def __init__(self, window: Window, clock: Callable[[], float] = time.monotonic) -> None:
        self.window = window
        self._clock = clock
        self._lock = threading.Lock()
        self._roots: dict[tuple[int, int], bytes] = {}
        self._signed: tuple[float, bytes] | None = None

    def file(self, name: str) -> bytes | None:
        """The file of a name, or None if the log has none."""
        if name == "checkpoint":
            return self.checkpoint()
        result = _PATH.match(name)
        if result is None:
            return None
        kind, digits, part = result.groups()
        number, width = int(re.sub(r"[x/]", "", digits)), TILE_WIDTH if part is None else int(part)
        level = 0 if kind == "entries" else int(kind)
        named = entries_path(number, width) if kind == "entries" else tile_path(level, number, width)
        first, size = number * TILE_WIDTH, self.window.state.tree.size >> (8 * level)
        if named != name or level > MAX_LEVEL or not 1 <= width <= TILE_WIDTH or first + width > size:
            return None
        if kind == "entries":
            bodies = islice(self.window.state.store.entries(first), width)
            return b"".join(len(body).to_bytes(2, "big") + body for body in bodies)
        return b"".join(self._hashes(level, first, width))

    def checkpoint(self) -> bytes:
        """The signed checkpoint that is published now."""
        window = self.window
        if window.state.ended:
            return window.publisher.publish_checkpoint(len(window.state.entries)).encode()
        with self._lock:
            now = self._clock()
            if self._signed is None or now - self._signed[0] >= CHECKPOINT_S:
                self._signed = now, window.checkpoint().encode()
            return self._signed[1]

    def _hashes(self, level: int, first: int, count: int) -> list[bytes]:
        if level == 0:
            return self.window.state.tree.leaves(first, first + count)
        return [self._root(level, index) for index in range(first, first + count)]

    def _root(self, level: int, index: int) -> bytes:
        """The root of a full tile of the level below."""
        known = self._roots.get((level, index))
        if known is None:
            known = root_of(self._hashes(level - 1, index * TILE_WIDTH, TILE_WIDTH))
            self._roots[(level, index)] = known
        return known


FOREVER = "public, max-age=31536000, immutable"
SHORT = "public, max-age=60"
ALWAYS = "no-cache"
"""Kept, and asked for each time whether it is still the same."""
_JSON, _TEXT, _BYTES = "application/json", "text/plain; charset=utf-8", "application/octet-stream"
_NUMBER = r"(?:x\d{3}/){0,6}\d{3}"
FILES: tuple[tuple[str, str, str], ...] = (
    (r"header\.json", _JSON, ALWAYS),
    (r"window\.json", _JSON, ALWAYS),
    (r"[0-9a-f]{64}\.json", _JSON, FOREVER),
    (r"tiles/[0-9a-f]{64}\.json", _JSON, FOREVER),
    (r"checkpoint-[1-9][0-9]{0,15}\.txt", _TEXT, ALWAYS),
    (r"notes/[A-Za-z0-9][A-Za-z0-9._@:+-]{0,200}\.txt", _TEXT, ALWAYS),
    (r"challenges/[0-9a-f]{64}\.txt", _TEXT, FOREVER),
    (r"checkpoint", _TEXT, ALWAYS),
    (rf"tile/(?:[0-9]{{1,2}}|entries)/{_NUMBER}", _BYTES, FOREVER),
    (rf"tile/(?:[0-9]{{1,2}}|entries)/{_NUMBER}\.p/[0-9]{{1,3}}", _BYTES, SHORT),
)
"""The names in a public folder, their media types, and the time that caches may store them under a window's own
address."""
_FILES = tuple((re.compile(pattern + r"\Z"), kind, kept) for pattern, kind, kept in FILES)
_CHUNK = 1 << 18
_ABSENT = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EACCES, errno.ENXIO, errno.ENAMETOOLONG)
"""The errors of a name that a public folder does not have, or that is no file which others may read."""


class Public:
    """The endpoints that publish."""

    def __init__(self, windows: Windows, limits: Limits) -> None:
        self.queue = WorkQueue("public", threads=2, places=limits.reads)
        self._windows = windows
        self._logs: dict[str, LiveLog] = {}

    async def current(self, request: Request) -> Response:
        """A file of the window that is served. The next one has the same address, so a cache asks each time."""
        window = self._windows.newest
        if window is None:
            return no_window()
        return await self._published(request, window, lasting=False)

    async def named(self, request: Request) -> Response:
        """A file at a window's own address, which no other window ever has."""
        window = self._windows.newest
        if window is None:
            return no_window()  # it may be this window, which is reopened once its database answers
        if window.header.window != request.path_params["window"]:
            return _missing()
        return await self._published(request, window, lasting=True)

    async def _published(self, request: Request, window: Window, *, lasting: bool) -> Response:
        name = request.path_params["name"]
        result = next(((kind, kept) for pattern, kind, kept in _FILES if pattern.match(name)), None)
        if result is None:
            return _missing()
        if not self.queue.free():
            return error(429, "Busy", "too many files are being read", RETRY_S)
        kind, kept = result
        headers = {
            "Content-Type": kind,
            "Cache-Control": kept if lasting else ALWAYS,
            "X-Content-Type-Options": "nosniff",
            "Access-Control-Allow-Origin": "*",
        }
        try:
            if name == "checkpoint" or name.startswith("tile/"):
                data = await self.queue.do(1, self._log(window).file, name)
                return _missing() if data is None else _bytes(request, data, headers)
            opened = await self.queue.do(1, open_public, window.context.layout.public.folder, name)
        except (StoreError, OSError) as exc:
            return _unreadable(exc)
        return _missing() if opened is None else self._whole(request, *opened, headers)

    def _log(self, window: Window) -> LiveLog:
        log = self._logs.get(window.header_digest)
        if log is None or log.window is not window:
            self._logs = {window.header_digest: (log := LiveLog(window))}  # only one window is cached
        return log

    def _whole(
        self, request: Request, file: FileIO, actual: os.stat_result, headers: dict[str, str]
    ) -> Response:
        # Files are replaced and never modified, so inode, time and size distinguish two contents.
        headers["ETag"] = f'"{actual.st_ino:x}-{actual.st_mtime_ns:x}-{actual.st_size:x}"'
        headers["Last-Modified"] = formatdate(actual.st_mtime, usegmt=True)
        if _same(request, headers["ETag"]) or request.method == "HEAD":
            file.close()
            if request.method == "HEAD" and not _same(request, headers["ETag"]):
                return Response(headers={**headers, "Content-Length": str(actual.st_size)})
            return Response(status_code=304, headers=headers)
        headers["Content-Length"] = str(actual.st_size)
        return _Streamed(file, self._parts(file), headers)

    async def _parts(self, file: FileIO) -> AsyncIterator[bytes]:
        while part := await self.queue.do(0, file.read, _CHUNK):
            yield part


class _Streamed(StreamingResponse):
    """A file's content. The file is closed with the response, also if its client left before the first part."""

    def __init__(self, file: FileIO, parts: AsyncIterator[bytes], headers: dict[str, str]) -> None:
        super().__init__(parts, headers=headers)
        self._file = file

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._file:
            await super().__call__(scope, receive, send)


def open_public(folder: Path, name: str) -> tuple[FileIO, os.stat_result] | None:
    """Open a file of a public folder, or return None if it has no such file that others may read.

    :raises OSError: the folder cannot be opened, or a disk, a limit or the system prevents opening the file
    :returns: the open file, and its status. The file is an object and not a descriptor number: after a client leaves, a
        thread that still reads must find the file closed, and not another file with a reused number
    """
    place = -1
    try:
        place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        *folders, last = name.split("/")
        for part in folders:
            below = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=place)
            os.close(place)
            place = below
        handle = os.open(last, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=place)
    except OSError as exc:
        if exc.errno in _ABSENT and place >= 0:
            return None
        raise
    finally:
        if place >= 0:
            with suppress(OSError):
                os.close(place)
    result = os.fstat(handle)
    # A hard link to a secret file cannot be recognised as a link, but only its owner may read the file.
    if stat.S_ISREG(result.st_mode) and result.st_mode & stat.S_IROTH:
        return FileIO(handle), result
    os.close(handle)
    return None


def _bytes(request: Request, data: bytes, headers: dict[str, str]) -> Response:
    headers["ETag"] = f'"{hashlib.sha256(data).hexdigest()[:32]}"'
    if _same(request, headers["ETag"]):
        return Response(status_code=304, headers=headers)
    return Response(data, headers=headers)


def _same(request: Request, tag: str) -> bool:
    """Whether a cache has the content already (RFC 9110, 13.1.2)."""
    given = [part.strip().removeprefix("W/") for part in request.headers.get("if-none-match", "").split(",")]
    return tag in given or given == ["*"]


def _missing() -> Response:
    return error(404, "NotFound", "there is no such file")


def _unreadable(exc: Exception) -> Response:
    """The response if the file may exist but the ledger's database or a disk does not answer. It omits the error's
    text, which may describe the provider's database or folders."""
    log.warning("a published file cannot be read", extra={"fields": {"error": str(exc)}})
    value = {
        "error": "StoreError",
        "message": "the provider cannot read its ledger or its files at the moment",
    }
    return JSONResponse(value, 503, {"Retry-After": str(RETRY_S), "Cache-Control": "no-store"})
