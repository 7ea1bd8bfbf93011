"""A headless Chromium over its debugging pipe, for tests that look at a page as a reader does.

The pipe takes and gives JSON, one message up to each NUL, on two file descriptors: no port, no websocket, no package.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
LIMIT_S = 120.0
"""How long one answer may take, on a machine with other work."""
_AS_3_AND_4 = "import os, sys; [os.dup2(int(f), n) for f, n in zip(sys.argv[1:3], (3, 4))]; os.execv(sys.argv[3], sys.argv[3:])"
"""The browser reads its descriptor 3 and writes its descriptor 4, whatever ours are called."""


def find_chromium() -> str | None:
    """The path of an installed Chromium, or of what RAG_AUDIT_CHROMIUM names; None where there is none."""
    named = os.environ.get("RAG_AUDIT_CHROMIUM")
    return named or next((path for name in NAMES if (path := shutil.which(name)) is not None), None)


class Chromium:
    """A browser process with one page."""

    def __init__(self, process: subprocess.Popen[bytes], to: int, back: int) -> None:
        self._process, self._to, self._back = process, to, back
        self._buffer, self._last = b"", 0
        self.events: list[dict[str, Any]] = []
        """the reports of the page since it was opened: requests, errors, refusals"""
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Send one command to the page and return its result."""
        return self._call(method, self._session, **params)

    def _call(self, method: str, session: str | None = None, /, **params: Any) -> dict[str, Any]:
        self._last += 1
        message: dict[str, Any] = {"id": self._last, "method": method, "params": params}
        if session is not None:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._to, data) :]
        while True:
            answer = self._read()
            if answer.get("id") == self._last:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def _read(self) -> dict[str, Any]:
        end = time.monotonic() + LIMIT_S
        while b"\0" not in self._buffer:
            if not select.select([self._back], [], [], max(0.0, end - time.monotonic()))[0]:
                raise TimeoutError(f"Chromium said nothing for {LIMIT_S:g} s")
            piece = os.read(self._back, 1 << 16)
            if not piece:
                raise RuntimeError(f"Chromium ended with status {self._process.wait()}")
            self._buffer += piece
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    def open(
        self, page: Path, *, width: int, height: int = 900, dark: bool = False, script: bool = True
    ) -> None:
        """Load a file at a size, in a colour scheme, with scripts or without, and wait until it is laid out."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)  # fmt: skip
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call("Emulation.setScriptExecutionDisabled", value=not script)
        self.events.clear()
        self.call("Page.navigate", url=page.resolve().as_uri())
        while not any(e.get("method") == "Page.loadEventFired" for e in self.events):
            self.events.append(self._read())

    def value(self, expression: str) -> Any:
        """The value of a JavaScript expression, or of the promise that it gives."""
        done = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in done:
            raise RuntimeError(str(done["exceptionDetails"]))
        return done["result"].get("value")

    def screenshot(self, path: Path) -> None:
        """Write the whole page, and not only its visible part, as PNG."""
        taken = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(taken["data"]))

    def pdf(self, path: Path) -> None:
        """Print the page by its style sheet."""
        printed = self.call("Page.printToPDF", preferCSSPageSize=True, printBackground=False)
        path.write_bytes(base64.b64decode(printed["data"]))


@contextmanager
def chromium(folder: Path) -> Iterator[Chromium]:
    """A browser with its profile in `folder`, ended at the end.

    :raises RuntimeError: no Chromium is installed, or it ends by itself
    """
    program = find_chromium()
    if program is None:
        raise RuntimeError("no Chromium is installed")
    reading, to = os.pipe()
    back, writing = os.pipe()
    ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (reading, writing)]
    os.close(reading)
    os.close(writing)
    command = [
        sys.executable, "-c", _AS_3_AND_4, *map(str, ends), program, "--headless=new", "--no-sandbox",
        "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking",
        "--disable-component-update", "--disable-sync", "--hide-scrollbars", "--remote-debugging-pipe",
        f"--user-data-dir={folder}", "about:blank",
    ]  # fmt: skip
    environment = {**os.environ, "HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    process = subprocess.Popen(
        command, pass_fds=ends, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, env=environment, start_new_session=True,
    )  # fmt: skip
    for end in ends:
        os.close(end)
    try:
        browser = Chromium(process, to, back)
        yield browser
        browser._call("Browser.close")
    finally:
        os.close(to)
        os.close(back)
        try:
            process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
