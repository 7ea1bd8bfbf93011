"""How every client of this package connects over HTTP: proxies, certificates, limits of size and time, and retries.

The HTTP library is httpx, of the extra `client`. httpx is told not to read the environment, since it ends in an error
of its own for a value that it does not understand; `proxies.proxy_of` has the rule for proxies instead.
"""

from __future__ import annotations

import json
import os
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypedDict, TypeVar

import httpx

from rag_audit._internal.errors import EndpointError, SetupError, SizeError
from rag_audit._internal.printable import without_userinfo
from rag_audit._internal.proxies import Address, address_of, proxy_of
from rag_audit._internal.retry_after import retry_after

LONGEST_WAIT_S = 60.0
MAX_REPLY_BYTES = 4 << 20
_SAID_BYTES = 1 << 16
"""Number of bytes of a refusal that are read: more than the length of any key, so that no key is cut in two."""

T = TypeVar("T")


class Again(Exception):
    """A failure after which another attempt may succeed.

    :param wait_s: the waiting time that the endpoint asked for, if any
    """

    def __init__(self, reason: str, wait_s: float | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.wait_s = wait_s


class Options(TypedDict, total=False):
    """The arguments of `httpx.Client`, `httpx.AsyncClient` and `QdrantClient` for one address."""

    trust_env: bool
    proxy: str | None
    verify: ssl.SSLContext


CERTIFICATE_VARIABLES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "SSLKEYLOGFILE")
"""The environment variables for TLS."""


def httpx_options(address: Address) -> Options:
    """The connection settings for an address, from the environment's proxy and certificates.

    Certificates come from certifi and this machine, or only from `SSL_CERT_FILE` and `SSL_CERT_DIR` if these are set. A
    process reads them once.

    :raises SetupError: the environment names an unusable proxy or unusable certificates
    """
    proxy = proxy_of(address)
    try:
        context = _tls_context(tuple(os.environ.get(name) for name in CERTIFICATE_VARIABLES))
    except OSError as exc:  # ssl.SSLError is one
        named = [name for name in CERTIFICATE_VARIABLES if os.environ.get(name)]
        raise SetupError(
            "the environment names files for TLS that cannot be used",
            field=", ".join(named) or "TLS certificates",
            actual=exc.strerror or str(exc),
            hint="correct the variable, or unset it",
        ) from exc
    return {"trust_env": False, "proxy": None if proxy is None else proxy.url, "verify": context}


@cache
def _tls_context(variables: tuple[str | None, ...]) -> ssl.SSLContext:
    """The TLS context under these values of `CERTIFICATE_VARIABLES`. Loading certificates takes a tenth of a second,
    and some callers make a client for each request."""
    context = httpx.create_ssl_context()  # reads the variables itself
    if not any(variables[:2]):
        context.load_default_certs()
    return context


IDENTITY = {"Accept-Encoding": "identity"}
"""The request header that prevents compression, because the size limit applies to the received bytes."""


def single_requests(address: Address, timeout_s: float) -> httpx.Client:
    """A client that opens a connection for each request.

    :param timeout_s: for connecting, and for each read
    :raises SetupError: as `httpx_options`
    """
    limits = httpx.Limits(max_keepalive_connections=0)
    return httpx.Client(headers=IDENTITY, timeout=timeout_s, limits=limits, **httpx_options(address))


class Body:
    """The body of a response while it arrives.

    :param maximum: bytes that it may have
    :param seconds: how long it may take from now; the limit of a client of httpx is one of each read
    """

    def __init__(self, response: httpx.Response, maximum: int, seconds: float | None = None) -> None:
        self._response, self._most = response, maximum
        self._until = None if seconds is None else time.monotonic() + seconds
        self._data = bytearray()

    def add(self, part: bytes) -> None:
        """Take the next bytes.

        :raises SizeError: the body is longer than it may be
        :raises httpx.ReadTimeout: it takes longer than it may
        """
        self._data += part
        if len(self._data) > self._most:
            raise too_large(self._response, self._most)
        if self._until is not None and time.monotonic() >= self._until:
            raise httpx.ReadTimeout("the response does not end", request=self._response.request)

    def __bytes__(self) -> bytes:
        return bytes(self._data)


def body_of(response: httpx.Response, maximum: int, seconds: float | None = None) -> bytes:
    """Read the body of a streamed response; see `Body`."""
    body = Body(response, maximum, seconds)
    for part in response.iter_raw():
        body.add(part)
    return bytes(body)


async def body_of_async(response: httpx.Response, maximum: int, seconds: float | None = None) -> bytes:
    """`body_of` for `httpx.AsyncClient`."""
    body = Body(response, maximum, seconds)
    async for part in response.aiter_raw():
        body.add(part)
    return bytes(body)


def too_large(response: httpx.Response, maximum: int) -> SizeError:
    """The error of a response that has more bytes than it may."""
    address = without_userinfo(str(response.url))
    return SizeError("the response is too large", field=address, expected=f"at most {maximum} bytes")


def error_in_words(exc: httpx.HTTPError | httpx.InvalidURL) -> str:
    """An error of httpx in words; some have none but their name."""
    return str(exc) or type(exc).__name__


@dataclass(frozen=True)
class Caller:
    """An endpoint, and its caller's limits of time and attempts.

    :param url: the base, such as https://host/v1
    :param what: its name in errors: `chat endpoint`
    :param expected: the expected kind of answer, for errors: `a chat completion`
    :param hint: the remedy after a final failure
    :param key: sent as a bearer token; never printed
    :param timeout_s: for connecting, and for each read
    :param attempts: maximum number of attempts for one request
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
                                actual=without_userinfo(self.url))  # fmt: skip

    def post(
        self,
        path: str,
        value: Any,
        read: Callable[[httpx.Response], T],
        *,
        accept: str = "application/json",
    ) -> T:
        """Send a JSON value, and repeat the request as long as another attempt may succeed.

        :param read: reads the answer; raises `Again` if the response is not an answer
        :raises EndpointError: all attempts failed, or the endpoint refuses; the error names the last reason
        :raises SetupError: as `httpx_options`
        """
        address = address_of(self.url)
        assert address is not None
        headers = {"Content-Type": "application/json", "Accept": accept}
        if self.key is not None:
            headers["Authorization"] = f"Bearer {self.key}"
        reason, body = "", json.dumps(value).encode()
        with single_requests(address, self.timeout_s) as client:
            for attempt in range(self.attempts):
                wait = min(LONGEST_WAIT_S, self.first_wait_s * 2**attempt)
                try:
                    with client.stream(
                        "POST", f"{address.url}/{path}", content=body, headers=headers
                    ) as response:
                        if response.status_code != 200:
                            self._refused(response)
                        return read(response)
                except Again as exc:
                    reason = exc.reason
                    wait = min(LONGEST_WAIT_S, exc.wait_s if exc.wait_s is not None else wait)
                except httpx.TimeoutException:
                    reason = f"no answer within {self.timeout_s:g} s"
                except (httpx.HTTPError, httpx.InvalidURL) as exc:
                    reason = f"no connection: {error_in_words(exc)}"
                if attempt + 1 < self.attempts:
                    self.sleep(wait)
        raise EndpointError(
            f"the {self.what} does not answer as it should",
            field=without_userinfo(self.url),
            expected=self.expected,
            actual=f"{reason}, {self.attempts} times",
            hint=self.hint,
        )

    def _unkeyed(self, said: str) -> str:
        """An endpoint's text without the key, which the endpoint may repeat. The function runs before the text is
        shortened."""
        return said if self.key is None else said.replace(self.key, "(the key)")

    def _refused(self, response: httpx.Response) -> None:
        status = response.status_code
        if status == 429 or status >= 500:
            wait = retry_after(response.headers.get("Retry-After"))
            raise Again("rate-limited (429)" if status == 429 else f"status {status}", wait)
        said = self._unkeyed(next(response.iter_raw(_SAID_BYTES), b"").decode(errors="replace"))
        refusal = EndpointError(
            f"the {self.what} refuses the question", field=without_userinfo(self.url), expected="status 200",
            actual=f"status {status}: {said[:120]}",
        )  # fmt: skip
        refusal.status = status
        raise refusal


def read_object(response: httpx.Response, maximum: int = MAX_REPLY_BYTES) -> dict[str, Any]:
    """The JSON object in an endpoint's response. Any other response raises `Again`.

    :param maximum: maximum number of bytes to read
    """
    try:
        return json_object(body_of(response, maximum))
    except SizeError:
        raise Again(f"an answer of more than {maximum:,} bytes") from None


def json_object(data: bytes) -> dict[str, Any]:
    """The JSON object in these bytes. Any other content raises `Again`."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        # The error omits the actual bytes, because an endpoint may repeat the key in them.
        raise Again(f"nonsense: {len(data)} bytes that are not JSON") from None
    if not isinstance(value, dict):
        raise Again("nonsense: no JSON object")
    return value
