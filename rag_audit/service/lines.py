"""Requests answered a JSON line each, from a stream or on a Unix socket."""

from __future__ import annotations

import os
import socket
import socketserver
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from io import BufferedIOBase
from pathlib import Path
from typing import BinaryIO, Protocol

from rag_audit._internal.canonical import Json, parse_json
from rag_audit._internal.errors import RagAuditError, SetupError
from rag_audit.models.question import MAX_REQUEST_BYTES
from rag_audit.models.requests import Answer, Refusal
from rag_audit.service.process import DRAIN_S, Say

_POLL_S = 0.1


class Answering(Protocol):
    """An object that answers or refuses a request: a window, or the windows of a service."""

    def handle(self, value: Json, *, eager: bool = False) -> Answer | Refusal:
        """As `Window.handle`."""

    def refuse(self, reason: str, detail: str) -> Refusal:
        """As `Window.refuse`."""


class Running:
    """The answers under way in a service's threads."""

    def __init__(self) -> None:
        self._count = 0
        self._change = threading.Condition()

    def __enter__(self) -> None:
        with self._change:
            self._count += 1

    def __exit__(self, *_: object) -> None:
        with self._change:
            self._count -= 1
            self._change.notify_all()

    def drained(self, seconds: float) -> bool:
        """Wait until no answer is in progress; False if one remains at the end of the time."""
        with self._change:
            return self._change.wait_for(lambda: self._count == 0, seconds)


@contextmanager
def listening(
    window: Answering,
    address: Path,
    say: Say,
    on_fault: Callable[[BaseException], None],
    *,
    eager: Iterator[int] | None = None,
    field: str = "serve.socket",
) -> Iterator[threading.Thread]:
    """Answer on a Unix socket that only this user can reach, with one thread for each connection. When the block ends,
    the service accepts no more connections, and first sends the answers in progress.

    :param on_fault: called with an exception that is no named error, after which the service continues
    :param eager: an iterator with one value for each answer to prove before it leaves, whatever the policy
    :param field: the name of the address in an error
    :returns: the thread that accepts connections
    :raises SetupError: another process listens there, the file is no socket, or the socket cannot be created
    """
    _free(address, field)
    running = Running()

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            answer_lines(window, self.rfile, self.wfile, eager or iter(()), running)

        def finish(self) -> None:
            with suppress(OSError):  # the client left before it received the reply
                super().finish()

    class Server(socketserver.ThreadingUnixStreamServer):
        daemon_threads = True
        request_queue_size = 128

        def handle_error(self, request: object, client_address: object) -> None:
            # A client that leaves early may repeat its request; after any other fault the others are still served.
            exc = sys.exception() if sys.version_info >= (3, 12) else sys.exc_info()[1]
            if exc is not None and not isinstance(exc, OSError):
                on_fault(exc)

    before = os.umask(0o177)  # only this user can reach the socket, from its creation on
    try:
        server = Server(str(address), Handler)
    except OSError as exc:
        raise SetupError("the socket cannot be made", field=field, expected="a path of at most 107 bytes in a "
                         "folder that can be written", actual=f"{address}: {exc.strerror or exc}") from exc  # fmt: skip
    finally:
        os.umask(before)
    thread = threading.Thread(
        target=server.serve_forever, args=(_POLL_S,), name="rag-audit-socket", daemon=True
    )
    thread.start()
    say(f"listening on {address}")
    try:
        yield thread
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
        address.unlink(missing_ok=True)
        if not running.drained(DRAIN_S):
            say(
                f"an answer took longer than {DRAIN_S:.0f} s and was cut off: its account repeats the request"
            )


def _free(address: Path, field: str) -> None:
    """Remove the socket that an earlier process left, but neither another file nor a socket that is listened on."""
    if not address.exists() and not address.is_symlink():
        return
    if not address.is_socket():
        raise SetupError("the file is not a socket", field=field, expected="a new path", actual=str(address))
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(1)
        try:
            probe.connect(str(address))
        except (ConnectionRefusedError, FileNotFoundError):
            address.unlink(missing_ok=True)
            return
        except OSError as exc:
            raise SetupError("the socket cannot be used", field=field, actual=f"{address}: {exc}") from exc
    raise SetupError("another process listens on the socket", field=field, actual=str(address),
                     hint="stop that process, or choose another socket")  # fmt: skip


def answer_lines(
    window: Answering,
    requests: BinaryIO | BufferedIOBase,
    replies: BinaryIO | BufferedIOBase,
    eager: Iterator[int],
    running: AbstractContextManager[None] | None = None,
) -> None:
    """Answer requests, a line each, until their sender ends; a line above the limit is refused and skipped in parts."""
    while line := requests.readline(MAX_REQUEST_BYTES + 1):
        with running or nullcontext():
            _answer_line(window, line, requests, replies, eager)


def _answer_line(
    window: Answering,
    line: bytes,
    requests: BinaryIO | BufferedIOBase,
    replies: BinaryIO | BufferedIOBase,
    eager: Iterator[int],
) -> None:
    long = len(line.removesuffix(b"\n")) > MAX_REQUEST_BYTES
    while long and not line.endswith(b"\n") and (rest := requests.readline(MAX_REQUEST_BYTES)):
        line = rest
    if long:
        reply: Answer | Refusal = window.refuse(
            "malformed", f"the request's line is longer than {MAX_REQUEST_BYTES} bytes"
        )
    else:
        reply = _reply(window, line.removesuffix(b"\n"), next(eager, None) is not None)
    replies.write(reply.canonical() + b"\n")
    replies.flush()


def _reply(window: Answering, line: bytes, eager: bool) -> Answer | Refusal:
    try:
        value = parse_json(line, source="request", max_bytes=MAX_REQUEST_BYTES)
    except RagAuditError as exc:
        return window.refuse("malformed", str(exc))
    return window.handle(value, eager=eager)
