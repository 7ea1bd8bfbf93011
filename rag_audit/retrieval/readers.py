"""The texts of files: plain text and Markdown as they are, other formats by parsers in a process of their own."""

from __future__ import annotations

import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from rag_audit._internal.canonical import parse_json
from rag_audit._internal.characters import decode_text
from rag_audit._internal.closing import Closing
from rag_audit._internal.errors import EncodingError, RagAuditError, SetupError
from rag_audit._internal.extras import missing
from rag_audit._internal.regular import open_regular
from rag_audit.retrieval.parsing.child import PARSERS, REQUEST
from rag_audit.retrieval.parsing.results import (
    MAX_NAME,
    DocumentsError,
    NoTextError,
    Omission,
    ReadFile,
    Section,
    has_letters,
)

__all__ = [
    "MAX_DOCUMENT_BYTES",
    "MAX_NAME",
    "SUFFIXES",
    "UNSUPPORTED",
    "DocumentsError",
    "FileReader",
    "Limits",
    "NoTextError",
    "Omission",
    "ReadFile",
    "Section",
    "read_file",
]

MAX_DOCUMENT_BYTES = 1 << 30
_PLAIN = frozenset((".markdown", ".md", ".rst", ".txt"))
_OFFICE = {".docx": "docx", ".pptx": "pptx", ".xlsx": "openpyxl"}
_PAGES = dict.fromkeys((".htm", ".html", ".eml"), ("selectolax", "webencodings"))
_PACKAGES: Mapping[str, tuple[str, ...]] = {
    ".pdf": ("pypdfium2",),
    **_PAGES,
    **{suffix: (package,) for suffix, package in _OFFICE.items()},
}
"""The packages that the parsers import, by the ending of the file's name."""
SUFFIXES = _PLAIN | PARSERS.keys()
"""Endings of names of the files that are read."""
_WORD, _SLIDES, _SHEET = (f"save the file as {suffix} or .pdf" for suffix in _OFFICE)
_TABLE = "copy the table's rows into JSON Lines or Parquet (`rag-audit provider documents`)"
UNSUPPORTED: Mapping[str, str] = {
    **dict.fromkeys([".doc", ".docm", ".dot", ".dotx", ".odt", ".pages", ".rtf"], _WORD),
    **dict.fromkeys([".odp", ".pps", ".ppsx", ".ppt", ".pptm"], _SLIDES),
    **dict.fromkeys([".numbers", ".ods", ".xls", ".xlsb", ".xlsm"], _SHEET),
    **dict.fromkeys([".csv", ".tsv"], _TABLE),
    **dict.fromkeys([".mbox", ".msg", ".pst"], "export each message as .eml"),
    **dict.fromkeys([".djvu", ".epub", ".ps", ".xps"], "save the file as .pdf"),
    **dict.fromkeys([".mht", ".mhtml", ".xhtml"], "save the page as .html"),
}
"""Document formats that no parser here reads: the remedy, by the ending of the file's name."""
_SKIP = "leave the file out: --skip-unreadable"
_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]);"
    " from rag_audit.retrieval.parsing.child import main; main(*map(int, sys.argv[2:]))"
)
_ENVIRONMENT = ("LANG", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH", "PATH")
_RAISED: Mapping[str, type[RagAuditError]] = {
    error.__name__: error for error in (DocumentsError, EncodingError, NoTextError)
}


@dataclass(frozen=True)
class Limits:
    """The limits on parsing one file.

    :param seconds: of processor time, so that a busy machine refuses no file that an idle one reads
    :param memory: bytes of address space of the process
    :param wait: seconds by the clock, for a process that hangs
    """

    seconds: int = 120
    memory: int = 3 << 30
    wait: float = 1800


class FileReader(Closing):
    """Reads files. Parsers of formats other than plain text run in a child process with limits on time and memory, and
    without this process's environment, since a file may come from a stranger. One child reads many files; it starts
    with the first file that needs it, and ends with `close`, or if a file crashes it.
    """

    def __init__(self, limits: Limits | None = None) -> None:
        self._limits = limits or Limits()
        self._child: subprocess.Popen[bytes] | None = None
        self._channel: socket.socket | None = None

    def close(self) -> None:
        """End the child process. The next file that needs one starts another."""
        if self._channel is not None:
            self._channel.close()
        if self._child is not None:
            self._child.kill()
            self._child.wait()
        self._child = self._channel = None

    def read(self, file: Path) -> ReadFile:
        """Read the texts of a file, by the ending of its name (`SUFFIXES`).

        :raises DocumentsError: the file cannot be read within the limits, or its format is not supported
            (`UNSUPPORTED`)
        :raises NoTextError: the file is readable but contains no text: it is empty, or it contains only pictures
        :raises EncodingError: a text is not in the expected encoding, or contains the character NUL
        :raises SetupError: the package that reads such a file is not installed
        """
        suffix = file.suffix.lower()
        if remedy := UNSUPPORTED.get(suffix):
            raise DocumentsError("files of this format are not supported", field=str(file), actual=suffix,
                                 hint=f"{remedy}, or {_SKIP}")  # fmt: skip
        for package in _PACKAGES.get(suffix, ()):
            if not _installed(package):
                raise missing(package)
        try:
            with open_regular(file) as handle:
                if (size := os.fstat(handle.fileno()).st_size) > MAX_DOCUMENT_BYTES:
                    raise DocumentsError("the file is too large", field=str(file), actual=f"{size} bytes",
                                         expected=f"at most {MAX_DOCUMENT_BYTES} bytes")  # fmt: skip
                if suffix in _PLAIN:
                    text = decode_text(handle.read(MAX_DOCUMENT_BYTES), source=str(file))
                    result = ReadFile((Section(text.replace("\r\n", "\n")),))
                else:
                    result = self._parsed(handle, suffix, file)
        except OSError as exc:
            raise DocumentsError.of_os_error(exc, "the file cannot be read", field=file) from exc
        if not any(has_letters(section.text) for section in result.sections):
            raise NoTextError("the file holds no text", field=str(file), expected="at least one letter or digit",
                              actual=f"{size} bytes without text", hint=f"remove the file, or {_SKIP}")  # fmt: skip
        return result

    def _parsed(self, handle: BinaryIO, suffix: str, file: Path) -> ReadFile:
        """Have the child parse an open file."""
        try:
            reply = self._asked(handle, suffix, file)
        except BaseException:
            self.close()
            raise
        if not reply.pop("usable"):
            self.close()  # this child has ended itself, and the next file starts another
        if name := reply.pop("error", None):
            reply["hint"] = reply["hint"] or _SKIP
            raise _RAISED[name](reply.pop("message"), field=str(file), **reply)
        return ReadFile(
            tuple(Section(str(text), fields) for text, fields in reply["sections"]),
            tuple(Omission(reason, page, part) for reason, page, part in reply["omitted"]),
        )

    def _asked(self, handle: BinaryIO, suffix: str, file: Path) -> dict[str, Any]:
        channel = self._channel or self._start()
        deadline = time.monotonic() + self._limits.wait
        try:
            socket.send_fds(channel, [suffix.ljust(REQUEST).encode()], [handle.fileno()])
            size = int.from_bytes(self._received(8, deadline, file), "big")
            if size > MAX_DOCUMENT_BYTES:
                raise DocumentsError("the file's text is too large", field=str(file), actual=f"{size} bytes",
                                     expected=f"at most {MAX_DOCUMENT_BYTES} bytes")  # fmt: skip
            data = self._received(size, deadline, file)
        except (BrokenPipeError, ConnectionResetError):
            self._ended(file)
        reply = parse_json(data, source=str(file))
        assert isinstance(reply, dict)
        return reply

    def _received(self, size: int, deadline: float, file: Path) -> bytes:
        assert self._channel is not None
        data = bytearray()
        with selectors.DefaultSelector() as selector:
            selector.register(self._channel, selectors.EVENT_READ)
            while len(data) < size:
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    self._too_long(file, f"{self._limits.wait} seconds")
                if not (part := self._channel.recv(min(size - len(data), 1 << 20))):
                    self._ended(file)
                data += part
        return bytes(data)

    def _start(self) -> socket.socket:
        """Start the child. It knows none of this process's secrets: no environment, no open files but its socket."""
        here, there = socket.socketpair()
        limits = (self._limits.seconds, self._limits.memory)
        paths = [path or os.getcwd() for path in sys.path]
        command = [
            sys.executable,
            "-I",
            "-c",
            _START,
            json.dumps(paths),
            *map(str, (there.fileno(), *limits)),
        ]
        try:
            self._child = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                pass_fds=[there.fileno()], start_new_session=True,
                env={name: os.environ[name] for name in _ENVIRONMENT if name in os.environ},
            )  # fmt: skip
        except OSError as exc:
            here.close()
            raise SetupError.of_os_error(
                exc, "the process that reads files cannot be started", field=sys.executable
            ) from exc
        finally:
            there.close()
        self._channel = here
        return here

    def _ended(self, file: Path) -> NoReturn:
        """The error for a child that ended without an answer."""
        assert self._child is not None
        code = self._child.wait()
        if code == -signal.SIGXCPU:
            self._too_long(file, f"{self._limits.seconds} seconds of processor time")
        how = f"exit status {code}"
        if code < 0:
            with suppress(ValueError):
                how = signal.Signals(-code).name
        raise DocumentsError("the process that reads the file ended: the file is damaged, or it takes too much memory",
                             field=str(file), expected=f"at most {self._limits.memory >> 20} MiB", actual=how,
                             hint=_SKIP)  # fmt: skip

    def _too_long(self, file: Path, maximum: str) -> NoReturn:
        raise DocumentsError("reading the file takes too long", field=str(file), expected=f"at most {maximum}",
                             hint=_SKIP)  # fmt: skip


def read_file(file: Path) -> ReadFile:
    """Read one file (`FileReader.read`)."""
    with FileReader() as reader:
        return reader.read(file)


def _installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ValueError:  # a module that was put aside
        return False
