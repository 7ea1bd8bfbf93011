"""The windows that a running service answers for, which change while it answers.

A request names its window, so one that comes late still reaches the window that recorded it, as long as that is open
here: it is answered identically, or refused by the window's own rules. All others reach the newest one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from rag_audit._internal.canonical import Json
from rag_audit.attest.service import DRAIN_S, Running
from rag_audit.attest.window import Window
from rag_audit.models.requests import Answer, Refusal

NO_WINDOW_S = 5.0
"""How long a request waits where no window is open, as while one is opened again after a full disk."""


class NoWindow(ConnectionAbortedError):
    """No window is open that could sign a refusal; the connection ends, and the account repeats its request."""


class Reception:
    """Where requests are handed to windows. Safe to use from several threads; `Window.handle` and `refuse` by the same
    names, so that whatever serves a window serves a reception."""

    def __init__(self) -> None:
        self._change = threading.Condition()
        self._windows: list[tuple[Window, Running]] = []
        self.users: list[Callable[[Window, float], bool]] = []
        """What else uses these windows: each waits until a window is used no more, or says after so many seconds that
        it still is (`serving.desk.Windows.unused`)."""

    def put(self, window: Window) -> None:
        """Answer for a window from here on, and for the others if a request names them."""
        with self._change:
            self._windows.append((window, Running()))
            self._change.notify_all()

    def take(self, window: Window) -> bool:
        """Answer for a window no more, once its answers under way are out.

        :returns: False if one still is after `DRAIN_S`; its account repeats the request
        """
        with self._change:
            kept = [(w, r) for w, r in self._windows if w is not window]
            gone = [r for w, r in self._windows if w is window]
            self._windows = kept
        drained = [running.drained(DRAIN_S) for running in gone] + [
            unused(window, DRAIN_S) for unused in self.users
        ]
        return all(drained)

    @property
    def newest(self) -> Window | None:
        """The window that was put here last."""
        with self._change:
            return self._windows[-1][0] if self._windows else None

    def named(self, opening: str) -> Window | None:
        """The window of that opening's digest, if it is here."""
        with self._change:
            return next((w for w, _ in self._windows if w.opening_digest == opening), None)

    def handle(self, value: Json, *, eager: bool = False) -> Answer | Refusal:
        """As `Window.handle`.

        :raises NoWindow: there is no window, and none came
        """
        window, running = self._reached(value.get("opening") if isinstance(value, dict) else None)
        try:
            return window.handle(value, eager=eager)
        finally:
            running.__exit__()

    def refuse(self, reason: str, detail: str, *, account: str = "", i: int = 0, hq: str = "") -> Refusal:
        """As `Window.refuse`.

        :raises NoWindow: there is no window, and none came
        """
        window, running = self._reached(None)
        try:
            return window.refuse(reason, detail, account=account, i=i, hq=hq)
        finally:
            running.__exit__()

    def _reached(self, opening: object) -> tuple[Window, Running]:
        """The window that a request reaches, whose answer is under way from now on."""
        with self._change:
            if not self._change.wait_for(lambda: bool(self._windows), NO_WINDOW_S):
                raise NoWindow
            named = [pair for pair in self._windows if pair[0].opening_digest == opening]
            window, running = (named or self._windows)[-1]
            running.__enter__()
            return window, running
