"""The process that parses files for `readers.FileReader`: it runs with resource limits and without secrets.

A request is the ending of a file's name, in `REQUEST` bytes, and with it the open file. A reply is its length in 8
bytes, and JSON: the sections and omissions, or an error.
"""

from __future__ import annotations

import json
import os
import re
import resource
import socket
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any, BinaryIO

from rag_audit._internal.errors import RagAuditError
from rag_audit.retrieval.parsing.results import DocumentsError, ReadFile

REQUEST = 8
PARSERS = {
    ".docx": "office.word",
    ".eml": "mail.read",
    ".htm": "html.read",
    ".html": "html.read",
    ".pdf": "pdf.read",
    ".pptx": "office.slides",
    ".xlsx": "office.sheets",
}
"""The module and function that parses each kind of file."""
_SURROGATES = re.compile("[\ud800-\udfff\x00]")


def main(handle: int, seconds: int, memory: int) -> None:
    """Serve requests until the other end closes.

    :param handle: the socket's file descriptor
    :param seconds: the processor time that one file may take
    :param memory: the bytes of address space that the process may have
    """
    for kind, maximum in ((resource.RLIMIT_AS, memory), (resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, 0),
                       (resource.RLIMIT_NOFILE, 64)):  # fmt: skip
        _limit(kind, maximum)
    with socket.socket(fileno=handle) as requested:
        while True:
            request, handles, _, _ = socket.recv_fds(requested, REQUEST, 1)
            if len(request) < REQUEST or len(handles) != 1:
                return
            used = resource.getrusage(resource.RUSAGE_SELF)
            _limit(resource.RLIMIT_CPU, int(used.ru_utime + used.ru_stime) + seconds + 1, hard=False)
            with os.fdopen(handles[0], "rb") as file:
                reply, usable = _answer(request.decode().strip(), file, memory)
            data = json.dumps({**reply, "usable": usable}, ensure_ascii=False)
            raw = _SURROGATES.sub("\ufffd", data).encode()
            requested.sendall(len(raw).to_bytes(8, "big") + raw)
            if not usable:
                return


def _limit(kind: int, maximum: int, *, hard: bool = True) -> None:
    """Lower a limit. If a system does not support this kind of limit, as macOS for address space, the function
    changes nothing."""
    upper = resource.getrlimit(kind)[1]
    if upper != resource.RLIM_INFINITY:
        maximum = min(maximum, upper)
    try:
        resource.setrlimit(kind, (maximum, maximum if hard else upper))
    except (OSError, ValueError):
        print(f"limit {kind} is not known here", file=sys.stderr)


def _answer(suffix: str, file: BinaryIO, memory: int) -> tuple[dict[str, Any], bool]:
    """The reply to a request, and whether the process can be used for another file."""
    try:
        module, _, name = PARSERS[suffix].partition(".")
        parse: Callable[[BinaryIO], ReadFile] = getattr(
            import_module(f"rag_audit.retrieval.parsing.{module}"), name
        )
        result = parse(file)
        return {
            "sections": [[s.text, dict(s.fields)] for s in result.sections],
            "omitted": [[o.reason, o.page, o.part] for o in result.omitted],
        }, True
    except RagAuditError as exc:
        return _refusal(exc), True
    except MemoryError:
        return _refusal(DocumentsError("reading the file takes too much memory",
                                       expected=f"at most {memory >> 20} MiB")), False  # fmt: skip
    except RecursionError:
        return _refusal(DocumentsError("the file is nested too deeply")), True
    except Exception as exc:  # a damaged file breaks a parser in more ways than it has names for
        internal = isinstance(
            exc, AssertionError | AttributeError | LookupError | TypeError | NotImplementedError
        )
        said = "" if internal else " ".join(str(exc).split())[:200]
        cause = said or "a damaged file, or one with a feature that its parser does not know"
        return _refusal(DocumentsError("the file cannot be read", actual=cause)), True


def _refusal(exc: RagAuditError) -> dict[str, Any]:
    parts = {"message": exc.message, "expected": exc.expected, "actual": exc.actual, "hint": exc.hint}
    return {"error": exc.name, **{name: None if part is None else str(part) for name, part in parts.items()}}
