"""An endpoint on this machine that misbehaves as it is told, for clients of services that somebody else runs."""

from __future__ import annotations

import json
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeVar


class Endpoint(ThreadingHTTPServer, ABC):
    """Answers posted JSON objects (`answer`), and stores its requests.

    :param faults: the faults of the first requests, in order: `429`, `500`, `400`, `slow`, or a fault of the endpoint's
        subclass; later requests have no fault
    """

    daemon_threads = True

    def __init__(self, faults: Sequence[str] = ()) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.faults = list(faults)
        self.seen: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.paths: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def refuses(self, body: dict[str, Any]) -> bool:
        """Whether the content of a request causes an answer with status 400."""
        return False

    @abstractmethod
    def answer(self, body: dict[str, Any], fault: str) -> tuple[str, bytes]:
        """The content type and the content of an answer."""


S = TypeVar("S", bound=ThreadingHTTPServer)


@contextmanager
def serving(server: S) -> Iterator[S]:
    """The server, answering for the duration of the block."""
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    server: Endpoint

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.seen.append(body)
        self.server.keys.append(self.headers["Authorization"])
        self.server.paths.append(self.path)
        fault = self.server.faults.pop(0) if self.server.faults else "well"
        if self.server.refuses(body):
            fault = "400"
        if fault in ("429", "500", "400", "429 soon", "429 dated"):
            self.send_response(int(fault[:3]))
            if fault.startswith("429"):
                after = {"429": "7", "429 soon": "\xb2", "429 dated": "Fri, 01 Jan 2100 00:00:00 GMT"}[fault]
                self.send_header("Retry-After", after)
            self.end_headers()
            self.wfile.write(f"no: {self.headers['Authorization']}".encode())
            return
        if fault == "slow":
            time.sleep(1.0)
        kind, data = self.server.answer(body, fault)
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.end_headers()
        with suppress(OSError):  # the client left
            self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass
