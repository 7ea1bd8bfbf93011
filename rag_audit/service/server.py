"""The HTTP server: its socket, its start and its end, also inside another program's process."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Protocol

import uvicorn
from starlette.types import Receive, Scope, Send

from rag_audit._internal.closing import Shutting
from rag_audit._internal.errors import SetupError
from rag_audit.attest.window import Window
from rag_audit.service.app import WindowApplication
from rag_audit.service.connections import protocol
from rag_audit.service.enrolment_book import Intake
from rag_audit.service.limits import Limits
from rag_audit.service.windows import Windows

BACKLOG = 1024


class Served(Protocol):
    """An ASGI application that ends its own threads."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None: ...

    def close(self) -> None: ...


class Server(Shutting):
    """An application on a listening socket. Shutting the server releases the socket.

    `run` answers until it is interrupted, in a program's main thread. `start` and `stop` do the same in the background.
    `url` is the service's address.

    :param listening: a listening socket (`listen`)
    """

    def __init__(self, app: Served, listening: socket.socket, limits: Limits) -> None:
        self._socket, self._served = listening, app
        host, port = listening.getsockname()[:2]
        self.url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
        self._server = uvicorn.Server(
            uvicorn.Config(
                app, http=protocol(limits), ws="none", lifespan="off", loop="asyncio", log_config=None,
                access_log=False, server_header=False, proxy_headers=False, backlog=BACKLOG,
                timeout_keep_alive=limits.idle_s, timeout_graceful_shutdown=limits.drain_s,
                h11_max_incomplete_event_size=limits.header_bytes,
            )
        )  # fmt: skip
        self._thread: threading.Thread | None = None

    def run(self) -> None:
        """Answer until SIGTERM or Ctrl-C, which takes effect on the caller once the answers under way have left."""
        self._server.run(sockets=[self._socket])

    def start(self) -> None:
        """Answer in a thread until `stop`."""
        self._thread = threading.Thread(target=self.run, name="rag-audit-http", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Take no more connections, let the answers under way leave, and end."""
        self._server.should_exit = True
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def shut(self) -> None:
        """Stop, and release socket and threads. A second call has no effect."""
        self.stop()
        self._served.close()
        self._socket.close()


class HttpService(Server):
    """A window over HTTP. `windows` selects the window that answers.

    :param windows: the windows that answer
    :param address: host and port, where port 0 selects a free port; or a listening socket (`listen`)
    :raises SetupError: the address is in use, or does not belong to this machine
    """

    def __init__(
        self,
        windows: Windows,
        address: tuple[str, int] | socket.socket,
        *,
        limits: Limits,
        eager: Iterator[int],
        on_fault: Callable[[BaseException], None],
        intake: Intake | None = None,
    ) -> None:
        self.windows = windows
        listening = listen(*address) if isinstance(address, tuple) else address
        self.app = WindowApplication(
            windows, limits, eager, on_fault, lambda: self._server.should_exit, intake
        )
        super().__init__(self.app, listening, limits)


def http_service(
    served: Window | Windows,
    address: tuple[str, int] | socket.socket,
    *,
    limits: Limits | None = None,
    eager: Iterator[int] | None = None,
    on_fault: Callable[[BaseException], None] = lambda _: None,
    intake: Intake | None = None,
) -> HttpService:
    """A service for a window, or for windows that may be exchanged while the service runs.

    :param served: the window, or windows; the newest of these answers requests that name no other window
    :param address: host and port, where port 0 selects a free port; or a listening socket (`listen`)
    :param intake: takes enrolment requests at `/v1/enrolments`; without it the service takes none
    :raises SetupError: the address is in use, or does not belong to this machine
    """
    windows = served if isinstance(served, Windows) else Windows(served)
    return HttpService(windows, address, limits=limits or Limits(), eager=eager or iter(()), on_fault=on_fault,
                       intake=intake)  # fmt: skip


def listen(host: str, port: int) -> socket.socket:
    """A listening socket.

    :raises SetupError: the address is taken, or is not this machine's
    """
    field = f"{host}:{port}"
    try:
        result = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as exc:
        raise SetupError("the host is not known", field=field, actual=str(exc)) from exc
    family, kind, protocol_number, _, address = result[0]
    created = socket.socket(family, kind, protocol_number)
    try:
        created.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            with suppress(OSError):
                created.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        created.bind(address)
        created.listen(BACKLOG)
    except OSError as exc:
        created.close()
        raise SetupError(
            "the address cannot be listened on", field=field, actual=exc.strerror or os.strerror(exc.errno or 0),
            hint="another service has the port, or the address is not this machine's: choose another",
        ) from exc  # fmt: skip
    return created


def parse_address(text: str, *, field: str) -> tuple[str, int]:
    """Host and port of ``HOST:PORT`` or ``[IPV6]:PORT``.

    :raises SetupError: the text has another form
    """
    host, _, port = text.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    host = host[1:-1] if bracketed else host
    wrong = not host or (":" in host) != bracketed or not (port.isascii() and port.isdigit())
    if wrong or len(port) > 5 or int(port) > 65_535:
        raise SetupError("not an address", field=field, expected="HOST:PORT, or [IPV6]:PORT", actual=text)
    return host, int(port)
