"""Asking an HTTP endpoint that somebody else runs: time-outs, rate limits and retries, by the standard library."""

from __future__ import annotations

import http.client
import json
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import urlsplit

from rag_audit.errors import EndpointError
from rag_audit.errors.printable import without_userinfo

LONGEST_WAIT_S = 60.0
MAX_REPLY_BYTES = 4 << 20
_SAID_BYTES = 1 << 16
"""What is read of a refusal: more than any key, so that none is cut in two."""

T = TypeVar("T")


class Again(Exception):
    """A failure after which another attempt may succeed.

    :param wait_s: how long the endpoint asked to be left alone, if it did
    """

    def __init__(self, reason: str, wait_s: float | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.wait_s = wait_s


@dataclass(frozen=True)
class Caller:
    """An endpoint, and how patient its caller is.

    :param url: the base, such as https://host/v1
    :param what: what it is, for errors: `chat endpoint`
    :param expected: what it should answer, for errors: `a chat completion`
    :param hint: what to do once it fails for good
    :param key: sent as a bearer token; never printed
    :param timeout_s: for connecting, and for each read
    :param attempts: how often one question is sent at most
    :param first_wait_s: the wait before the second attempt, doubled for each further one
    :param sleep: waits; tests count instead
    :param option: the option or setting that the address comes from, for errors
    """

    url: str
    what: str
    expected: str
    hint: str
    key: str | None = field(default=None, repr=False)
    timeout_s: float = 60.0
    attempts: int = 5
    first_wait_s: float = 1.0
    sleep: Callable[[float], None] = time.sleep
    option: str = "url"

    def __post_init__(self) -> None:
        try:
            parts = urlsplit(self.url)
            known = parts.scheme in ("http", "https") and parts.hostname and (parts.port or 1)
        except ValueError:
            known = False
        if not known:
            raise EndpointError(f"not an address of a {self.what}", field=self.option, expected="https://host/v1",
                                found=without_userinfo(self.url))  # fmt: skip

    def post(
        self,
        path: str,
        value: Any,
        read: Callable[[http.client.HTTPResponse], T],
        *,
        accept: str = "application/json",
    ) -> T:
        """Send a JSON value, and again as long as a further attempt may help.

        :param read: reads the answer; raises `Again` where it is not one
        :raises EndpointError: all attempts failed, or the endpoint refuses; the last reason is named
        """
        reason, body = "", json.dumps(value).encode()
        for attempt in range(self.attempts):
            wait = min(LONGEST_WAIT_S, self.first_wait_s * 2**attempt)
            try:
                return self._once(path, body, read, accept)
            except Again as exc:
                reason = exc.reason
                wait = min(LONGEST_WAIT_S, exc.wait_s if exc.wait_s is not None else wait)
            except TimeoutError:
                reason = f"no answer within {self.timeout_s:g} s"
            except (OSError, http.client.HTTPException) as exc:
                reason = f"no connection: {exc or type(exc).__name__}"
            if attempt + 1 < self.attempts:
                self.sleep(wait)
        raise EndpointError(
            f"the {self.what} does not answer as it should",
            field=without_userinfo(self.url),
            expected=self.expected,
            found=f"{reason}, {self.attempts} times",
            hint=self.hint,
        )

    def _once(self, path: str, body: bytes, read: Callable[[http.client.HTTPResponse], T], accept: str) -> T:
        parts = urlsplit(self.url)
        assert parts.hostname is not None
        connection: http.client.HTTPConnection
        if parts.scheme == "https":
            connection = http.client.HTTPSConnection(
                parts.hostname, parts.port, timeout=self.timeout_s, context=ssl.create_default_context()
            )
        else:
            connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=self.timeout_s)
        headers = {"Content-Type": "application/json", "Accept": accept}
        if self.key is not None:
            headers["Authorization"] = f"Bearer {self.key}"
        try:
            connection.request("POST", f"{parts.path.rstrip('/')}/{path}", body, headers)
            response = connection.getresponse()
            if response.status != 200:
                self._refused(response)
            return read(response)
        finally:
            connection.close()

    def _unkeyed(self, said: str) -> str:
        """What an endpoint says, without the key, which it may repeat; before any of it is cut off."""
        return said if self.key is None else said.replace(self.key, "(the key)")

    def _refused(self, response: http.client.HTTPResponse) -> None:
        status = response.status
        if status == 429 or status >= 500:
            after = response.getheader("Retry-After") or ""
            wait = float(after) if after.isascii() and after.replace(".", "", 1).isdigit() else None
            raise Again("rate-limited (429)" if status == 429 else f"status {status}", wait)
        said = self._unkeyed(response.read(_SAID_BYTES).decode(errors="replace"))
        raise EndpointError(
            f"the {self.what} refuses the question", field=without_userinfo(self.url), expected="status 200",
            found=f"status {status}: {said[:120]}",
        )  # fmt: skip


def read_object(response: http.client.HTTPResponse, most: int = MAX_REPLY_BYTES) -> dict[str, Any]:
    """The JSON object that an endpoint answers; anything else is asked for again.

    :param most: bytes that are read
    """
    data = response.read(most + 1)
    if len(data) > most:
        raise Again(f"an answer of more than {most:,} bytes")
    return json_object(data)


def json_object(data: bytes) -> dict[str, Any]:
    """The JSON object in these bytes; anything else is asked for again."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        # What it is instead is not shown: an endpoint may repeat the key that it was sent.
        raise Again(f"nonsense: {len(data)} bytes that are not JSON") from None
    if not isinstance(value, dict):
        raise Again("nonsense: no JSON object")
    return value
