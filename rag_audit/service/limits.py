"""The limits of the HTTP service: sizes, numbers and waiting times."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from rag_audit.models.question import MAX_REQUEST_BYTES
from rag_audit.service.process import DRAIN_S


@dataclass(frozen=True)
class Limits:
    """The service's limits. Sizes are in bytes, times in seconds.

    :param request_bytes: maximum size of a signed request
    :param request_values: maximum JSON values of one request, which usually has a dozen: they take more memory than
        bytes
    :param batch: maximum requests of one batch
    :param bodies_bytes: maximum total of all bodies that are being received or wait for their answer
    :param waiting: maximum requests that wait or are answered; a request beyond them gets 429
    :param of_account: maximum of these requests for one account, so that it cannot exclude other accounts
    :param answering: number of threads that answer batches of requests: while one waits for the disk, another computes
    :param pass_requests: maximum requests in a batch of one thread
    :param threads: number of threads that answer one request each, if it is proved before the answer or needs an
        embedder other than a table
    :param reads: maximum requests for public files that wait or are served from memory
    :param connections: maximum connections; each may need two of the process's open files
    :param header_bytes: maximum header section of a request: request line, fields and the empty line
    :param header_s: maximum time for a request's header to arrive, and maximum silence of a connection before it
    :param body_s: maximum time for a request's body to arrive
    :param send_s: maximum time during which a client may leave sent data unread
    :param idle_s: maximum time that a connection stays open between two requests
    :param drain_s: maximum time that a stopping service waits for answers in progress
    """

    request_bytes: int = MAX_REQUEST_BYTES
    request_values: int = 64
    batch: int = 64
    bodies_bytes: int = 64 << 20
    waiting: int = 512
    of_account: int = 64
    answering: int = 2
    pass_requests: int = 16
    threads: int = field(default_factory=lambda: min(32, 8 + 2 * (os.cpu_count() or 1)))
    reads: int = 64
    connections: int = 4096
    header_bytes: int = 16_384
    header_s: float = 10.0
    body_s: float = 20.0
    send_s: float = 30.0
    idle_s: int = 60
    drain_s: int = int(DRAIN_S)
