"""What the HTTP service takes and how long it waits."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from rag_audit.models.requests import MAX_REQUEST_BYTES
from rag_audit.service.process import DRAIN_S


@dataclass(frozen=True)
class Limits:
    """The service's limits. Sizes are in bytes, times in seconds.

    :param request_bytes: the largest signed request
    :param request_values: the most JSON values of one request, which has a dozen: they take more memory than bytes
    :param batch: the most requests of one batch
    :param bodies_bytes: the most of all bodies that are being received or wait for their answer
    :param waiting: the most requests that wait or are answered; one beyond them gets 429
    :param of_account: the most of these of one account, so that it keeps no other out
    :param answering: threads that answer requests together: while one waits for the disk, another computes
    :param together: the most requests that one thread answers together
    :param threads: threads that answer one request each, where it is proved first, or embedded by more than a table
    :param reads: the most requests for public files that wait or are served from memory
    :param connections: the most connections, each of which may need two of the files that the process may open
    :param header_bytes: the largest header section of a request: request line, fields and the empty line
    :param header_s: how long a request's header may take to arrive, and how long a connection may be silent before it
    :param body_s: how long a request's body may take to arrive
    :param send_s: how long a client may read nothing of what is sent to it
    :param idle_s: how long a connection is kept between two requests
    :param drain_s: how long a service that stops waits for answers under way
    """

    request_bytes: int = MAX_REQUEST_BYTES
    request_values: int = 64
    batch: int = 64
    bodies_bytes: int = 64 << 20
    waiting: int = 512
    of_account: int = 64
    answering: int = 2
    together: int = 16
    threads: int = field(default_factory=lambda: min(32, 8 + 2 * (os.cpu_count() or 1)))
    reads: int = 64
    connections: int = 4096
    header_bytes: int = 16_384
    header_s: float = 10.0
    body_s: float = 20.0
    send_s: float = 30.0
    idle_s: int = 60
    drain_s: int = int(DRAIN_S)
