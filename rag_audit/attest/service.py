"""A window as a service that answers requests, a JSON line each, and the threads that run beside it."""

from __future__ import annotations

import os
import signal
import socketserver
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from io import BufferedIOBase
from pathlib import Path
from types import FrameType
from typing import BinaryIO, Protocol

from rag_audit._internal.canonical import Json, parse_json, read_text
from rag_audit._internal.errors import RagAuditError, SetupError
from rag_audit.attest.window import Window
from rag_audit.log.note import MAX_NOTE_BYTES
from rag_audit.models.requests import MAX_REQUEST_BYTES, Answer, Refusal

DRAIN_S = 10.0
"""Seconds that a stopped service waits for answers under way; one that is cut off later is repeated by its account."""
IDLE_S = 1.0
"""Seconds between two searches for noise certificates to make, after one that found none."""

Say = Callable[[str], None]
"""A function that shows a person a line of progress."""


class Answering(Protocol):
    """What answers a request or refuses it: a window, or a reception of several."""

    def handle(self, value: Json, *, eager: bool = False) -> Answer | Refusal:
        """As `Window.handle`."""

    def refuse(self, reason: str, detail: str) -> Refusal:
        """As `Window.refuse`."""


def admit_notes(window: Window, say: Say) -> None:
    """Take the witnesses' notes from public/notes: cosignatures one by one, then each beacon's reveals together."""
    reveals = defaultdict(list)
    for path in sorted(window.context.layout.public.notes.glob("*.txt")):
        try:
            text = read_text(path, max_bytes=MAX_NOTE_BYTES)
        except RagAuditError as exc:
            say(f"{path.name} is not taken: {exc}")
            continue
        if path.name.startswith("beacon-"):
            reveals[path.name.split("-")[1]].append(text)
            continue
        try:
            window.admit([text])
        except RagAuditError as exc:
            say(f"{path.name} is not taken: {exc}")
    for size, notes in reveals.items():
        try:
            window.admit(notes)
        except RagAuditError as exc:
            say(f"the beacon over checkpoint {size} is not taken: {exc}")


def serve_socket(
    window: Window, address: Path, eager: Iterator[int], say: Say, on_fault: Callable[[BaseException], None]
) -> None:
    """Answer on a Unix socket that only this user can reach, a thread for each connection, until interrupted; answers
    under way then leave first.

    :param eager: an iterator with one value for each answer to prove before it leaves, whatever the policy
    :param on_fault: called with an exception that is no named error, after which the service continues
    :raises SetupError: the address is a file that is not a socket
    """
    _free(address)
    running = Running()

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            answer_lines(window, self.rfile, self.wfile, eager, running)

        def finish(self) -> None:
            with suppress(OSError):  # a reply that nobody is there for
                super().finish()

    class Server(socketserver.ThreadingUnixStreamServer):
        daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None:
            # A client that leaves early may repeat its request; after any other fault the others are still served.
            exc = sys.exception() if sys.version_info >= (3, 12) else sys.exc_info()[1]
            if exc is not None and not isinstance(exc, OSError):
                on_fault(exc)

    with Server(str(address), Handler) as server:
        os.chmod(address, 0o600)
        say(f"listening on {address}")
        try:
            server.serve_forever()
        finally:
            address.unlink(missing_ok=True)
            if not running.drained(DRAIN_S):
                say(
                    f"an answer took longer than {DRAIN_S:.0f} s and was cut off: its account repeats the request"
                )


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
        """Wait until no answer is under way; False if some still is after so long."""
        with self._change:
            return self._change.wait_for(lambda: self._count == 0, seconds)


@contextmanager
def stopped_by_signal() -> Iterator[None]:
    """Let SIGTERM end the block as Ctrl-C does, also for the first process of a container, whose default is to ignore
    it. A second one ends the process at once. Only a process's main thread can be told so.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def certifying(window: Window, ahead: int, say: Say) -> Iterator[None]:
    """Run a thread beside the service that makes noise certificates for the next slots, for the duration of the block.

    :param ahead: the number of next slots of each account; 0 for none
    """
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            try:
                made = window.status == "active" and window.certify_ahead(ahead, until=stop.is_set)
            except RagAuditError as exc:
                say(f"no more noise certificates are made ahead: {exc}")
                return
            if not made:
                stop.wait(IDLE_S)

    thread = threading.Thread(target=work, name="rag-audit-certificates", daemon=True)
    if ahead:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        if ahead:
            thread.join()


def _free(address: Path) -> None:
    """Remove the socket that an earlier service left, but no other file.

    :raises SetupError: the file is not a socket
    """
    if address.exists() and not address.is_socket():
        raise SetupError(
            "the file is not a socket", field="--socket", expected="a new path", found=str(address)
        )
    address.unlink(missing_ok=True)


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
