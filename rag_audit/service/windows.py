"""The windows that a service answers for. They can change while the service runs.

A request names its window, so a late request still reaches the window that recorded it, as long as that window is open
here. The window then answers it identically, or refuses it by its own rules. All other requests reach the newest
window.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from rag_audit._internal.canonical import Json
from rag_audit.attest.window import Window
from rag_audit.models.requests import Answer, Refusal
from rag_audit.service.process import DRAIN_S

NO_WINDOW_S = 5.0
"""How long a line of a socket waits while no window is open, for example while a window is reopened after a full
disk."""


class NoWindow(ConnectionAbortedError):
    """No window is open that could sign a refusal; the connection ends, and the account repeats its request."""


class Windows:
    """The open windows of a service, and the number of requests that use each. Safe to use from several threads.

    `handle` and `refuse` have the signatures of a window's methods, so the socket service accepts either.

    :param windows: the windows that are open from the start, the newest last
    """

    def __init__(self, *windows: Window) -> None:
        self._changed = threading.Condition()
        self._windows = list(windows)
        self._uses: Counter[int] = Counter()

    def put(self, window: Window) -> None:
        """Answer for a window from here on, and for the others if a request names them."""
        with self._changed:
            self._windows.append(window)
            self._changed.notify_all()

    def take(self, window: Window, seconds: float = DRAIN_S) -> bool:
        """Answer for a window no more, once its answers under way are out.

        :returns: False if a request still uses the window at the end of the time; its account repeats the request
        """
        with self._changed:
            self._windows = [w for w in self._windows if w is not window]
        return self.unused(window, seconds)

    def unused(self, window: Window, seconds: float) -> bool:
        """Wait until no request uses a window; False if one still does at the end of the time."""
        with self._changed:
            return self._changed.wait_for(lambda: id(window) not in self._uses, seconds)

    @property
    def newest(self) -> Window | None:
        """The window that was put here last."""
        with self._changed:
            return self._windows[-1] if self._windows else None

    def named(self, header: str) -> Window | None:
        """The window of that header's digest, if it is here."""
        with self._changed:
            return next((w for w in self._windows if w.header_digest == header), None)

    def use(self, header: Json = None, wait_s: float = 0) -> Window | None:
        """The window for a request, which is in use until it is released; None without a window.

        :param header: the digest of the window header that the request names
        :param wait_s: how long a window may be waited for
        """
        with self._changed:  # `unused` must count every caller that has received a window
            if not self._changed.wait_for(lambda: bool(self._windows), wait_s):
                return None
            named = [window for window in self._windows if window.header_digest == header]
            window = (named or self._windows)[-1]
            self._uses[id(window)] += 1
            return window

    def release(self, window: Window) -> None:
        """End one use of a window."""
        with self._changed:
            self._uses[id(window)] -= 1
            if not self._uses[id(window)]:
                del self._uses[id(window)]
            self._changed.notify_all()

    @contextmanager
    def using(self, header: Json = None, wait_s: float = 0) -> Iterator[Window]:
        """`use` for the duration of a block.

        :raises NoWindow: there is no window, and none came
        """
        window = self.use(header, wait_s)
        if window is None:
            raise NoWindow
        try:
            yield window
        finally:
            self.release(window)

    def handle(self, value: Json, *, eager: bool = False) -> Answer | Refusal:
        """As `Window.handle`.

        :raises NoWindow: there is no window, and none came
        """
        with self.using(value.get("header") if isinstance(value, dict) else None, NO_WINDOW_S) as window:
            return window.handle(value, eager=eager)

    def refuse(self, reason: str, detail: str) -> Refusal:
        """As `Window.refuse`.

        :raises NoWindow: there is no window, and none came
        """
        with self.using(wait_s=NO_WINDOW_S) as window:
            return window.refuse(reason, detail)
