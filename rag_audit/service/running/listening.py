"""A Unix socket that a service listens on in a thread, for as long as a block runs."""

from __future__ import annotations

import os
import socket
import socketserver
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from rag_audit._internal.errors import SetupError
from rag_audit.attest.service import DRAIN_S, Running, Say, answer_lines
from rag_audit.service.running.reception import Reception

_POLL_S = 0.1


@contextmanager
def listening(
    reception: Reception, address: Path, say: Say, on_fault: Callable[[BaseException], None]
) -> Iterator[None]:
    """Answer on a Unix socket that only this user can reach. After the block no connection is taken any more, and
    answers under way leave first.

    :param on_fault: called with an exception that is no named error, after which the service continues
    :raises SetupError: another process listens there, the file is no socket, or it cannot be made
    """
    _free(address)
    running = Running()

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            answer_lines(reception, self.rfile, self.wfile, iter(()), running)

        def finish(self) -> None:
            with suppress(OSError):  # a reply that nobody is there for
                super().finish()

    class Server(socketserver.ThreadingUnixStreamServer):
        daemon_threads = True
        request_queue_size = 128

        def handle_error(self, request: object, client_address: object) -> None:
            exc = sys.exception() if sys.version_info >= (3, 12) else sys.exc_info()[1]
            if exc is not None and not isinstance(exc, OSError):
                on_fault(exc)

    before = os.umask(0o177)  # the socket is nobody else's from the start
    try:
        server = Server(str(address), Handler)
    except OSError as exc:
        raise SetupError("the socket cannot be made", field="serve.socket", expected="a path of at most 107 bytes in a "
                         "folder that can be written", found=f"{address}: {exc.strerror or exc}") from exc  # fmt: skip
    finally:
        os.umask(before)
    thread = threading.Thread(
        target=server.serve_forever, args=(_POLL_S,), name="rag-audit-socket", daemon=True
    )
    thread.start()
    say(f"listening on {address}")
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
        address.unlink(missing_ok=True)
        if not running.drained(DRAIN_S):
            say(
                f"an answer took longer than {DRAIN_S:.0f} s and was cut off: its account repeats the request"
            )


def _free(address: Path) -> None:
    """Remove the socket that an earlier process left, but neither another file nor a socket that is listened on."""
    if not address.exists() and not address.is_symlink():
        return
    if not address.is_socket():
        raise SetupError(
            "the file is not a socket", field="serve.socket", expected="a new path", found=str(address)
        )
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(1)
        try:
            probe.connect(str(address))
        except (ConnectionRefusedError, FileNotFoundError):
            address.unlink(missing_ok=True)
            return
        except OSError as exc:
            raise SetupError(
                "the socket cannot be used", field="serve.socket", found=f"{address}: {exc}"
            ) from exc
    raise SetupError("another process listens on the socket", field="serve.socket", found=str(address),
                     hint="stop it, or name another socket")  # fmt: skip
