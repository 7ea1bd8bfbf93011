"""`/healthz` and `/readyz`: whether the process answers at all, and whether it answers queries."""

from __future__ import annotations

import os
from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from rag_audit.attest.window import Window

LEAST_FREE_BYTES = 16 << 20
"""Free space on the ledger's disk below which the service is not ready."""


def unready(window: Window | None, *, stopping: bool) -> str | None:
    """Why queries are not answered now, or None if they are."""
    if stopping:
        return "the service is stopping"
    if window is None:
        return "no window is served"
    status = window.status
    if status != "active":
        return f"the window is {status}"
    opening, now = window.opening, window.state.clock()
    if now < opening.opens_at:
        return "the window is not open yet"
    if now > opening.closes_at:
        return "the window's time is over"
    if window.state.store.failure is not None:
        return "the ledger could not be written"
    try:
        disk = os.statvfs(window.directory)
    except OSError:
        return "the window's folder cannot be read"
    if disk.f_bavail * disk.f_frsize < LEAST_FREE_BYTES:
        return "the ledger's disk is full"
    return None


class Health:
    """The endpoints for whoever starts, watches and stops the process."""

    def __init__(self, window: Callable[[], Window | None], stopping: Callable[[], bool]) -> None:
        self._window = window
        self._stopping = stopping

    async def alive(self, request: Request) -> Response:
        """`GET /healthz`: 200 as long as the process runs."""
        return JSONResponse({"alive": True}, headers={"Cache-Control": "no-store"})

    async def ready(self, request: Request) -> Response:
        """`GET /readyz`: 200 if queries are answered, else 503 with the reason."""
        reason = unready(self._window(), stopping=self._stopping())
        value = {"ready": True} if reason is None else {"ready": False, "reason": reason}
        return JSONResponse(value, 200 if reason is None else 503, {"Cache-Control": "no-store"})
