"""Asking an HTTP endpoint that somebody else runs: time-outs, rate limits and retries, by the standard library.

`sent` and `httpx_options` are how every client of this package connects, so that all of them use the same proxies and
the same certificates (`proxies.proxy_of`).
"""

from __future__ import annotations

import http.client
import json
import os
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from rag_audit._internal.errors import EndpointError, SetupError
from rag_audit._internal.printable import without_userinfo
from rag_audit._internal.proxies import Address, address_of, proxy_of
from rag_audit._internal.retry_after import retry_after

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


def sent(
    address: Address, path: str, body: bytes, headers: Mapping[str, str], *, timeout_s: float
) -> http.client.HTTPConnection:
    """Send a POST request, through the proxy that the environment names for the address.

    :param path: appended to the address's own path
    :param timeout_s: for connecting, and for each read
    :returns: the connection, whose response the caller reads, and which the caller closes
    :raises SetupError: the environment names an unusable proxy or unusable certificates
    :raises OSError: no connection
    """
    proxy = proxy_of(address)
    host, port = (address.host, address.port) if proxy is None else (proxy.host, proxy.port)
    target, added = address.path + path, {**headers}
    connection: http.client.HTTPConnection
    if address.scheme == "https":
        context = with_certificates(ssl.create_default_context)
        connection = http.client.HTTPSConnection(host, port, timeout=timeout_s, context=context)
        if proxy is not None:
            connection.set_tunnel(address.host, address.port, headers=proxy.headers)
    else:
        connection = http.client.HTTPConnection(host, port, timeout=timeout_s)
        if proxy is not None:
            target, added = f"http://{address.netloc}{target}", {**headers, **proxy.headers}
    try:
        connection.request("POST", target, body, added)
    except BaseException:
        connection.close()
        raise
    return connection


def httpx_options(address: Address) -> dict[str, Any]:
    """The arguments with which `httpx.Client` reaches an address as `sent` does. httpx is told not to read the
    environment, since a value that it does not understand ends in an error of its own.

    :raises SetupError: the environment names an unusable proxy or unusable certificates
    """
    import httpx  # an extra's

    proxy = proxy_of(address)
    return {
        "trust_env": False,
        "proxy": None if proxy is None else proxy.url,
        "verify": with_certificates(httpx.create_ssl_context),
    }


CERTIFICATE_VARIABLES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "SSLKEYLOGFILE")
"""What the environment says of TLS."""


def with_certificates(made: Callable[[], ssl.SSLContext]) -> ssl.SSLContext:
    """A TLS context, which reads the environment.

    :raises SetupError: a file that the environment names cannot be used
    """
    try:
        return made()
    except OSError as exc:  # ssl.SSLError is one
        named = [name for name in CERTIFICATE_VARIABLES if os.environ.get(name)]
        raise SetupError(
            "the environment names files for TLS that cannot be used",
            field=", ".join(named) or "TLS certificates",
            found=exc.strerror or str(exc),
            hint="correct the variable, or unset it",
        ) from exc


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
        if address_of(self.url) is None:
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
        address = address_of(self.url)
        assert address is not None
        headers = {"Content-Type": "application/json", "Accept": accept}
        if self.key is not None:
            headers["Authorization"] = f"Bearer {self.key}"
        connection = sent(address, f"/{path}", body, headers, timeout_s=self.timeout_s)
        try:
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
            wait = retry_after(response.getheader("Retry-After"))
            raise Again("rate-limited (429)" if status == 429 else f"status {status}", wait)
        said = self._unkeyed(response.read(_SAID_BYTES).decode(errors="replace"))
        refusal = EndpointError(
            f"the {self.what} refuses the question", field=without_userinfo(self.url), expected="status 200",
            found=f"status {status}: {said[:120]}",
        )  # fmt: skip
        refusal.status = status
        raise refusal


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
