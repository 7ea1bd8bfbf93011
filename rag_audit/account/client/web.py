"""The HTTP settings that both clients share, and their conversion of HTTP errors."""

from __future__ import annotations

import httpx

from rag_audit._internal.errors import SetupError
from rag_audit._internal.http import IDENTITY, Options, httpx_options
from rag_audit._internal.printable import without_userinfo
from rag_audit._internal.proxies import address_of
from rag_audit.account.client.attempts import AGAIN

QUERY = "/v1/query"
HEADERS = {
    "Content-Type": "application/json",
    "Accept": "*/*",
    **IDENTITY,
}
LIMITS = httpx.Limits(max_connections=32, max_keepalive_connections=8)
"""Maximum number of idle connections: small, since an account asks one question at a time."""


def base_url(url: str) -> str:
    """A URL to which the service's addresses are appended.

    >>> base_url("https://example.org/rag/")
    'https://example.org/rag'

    :raises SetupError: it is not one of HTTP, or has a query or a fragment
    """
    try:
        if address_of(url) is None:
            raise ValueError
        parsed = httpx.URL(url)
    except (httpx.InvalidURL, ValueError) as exc:
        raise SetupError(
            "the value is not the URL of a service",
            field="url",
            expected="http://HOST:PORT or https://HOST",
            actual=without_userinfo(url),
        ) from exc
    return str(parsed).rstrip("/")


def options_of(url: str) -> Options:
    """The arguments for an httpx client of a service.

    :param url: as `base_url` gives it
    :raises SetupError: the environment names an unusable proxy or unusable certificates
    """
    address = address_of(url)
    assert address is not None
    return httpx_options(address)


def may_have_left(exc: httpx.HTTPError) -> bool:
    """Whether any part of a request may have been sent before an error.

    >>> may_have_left(httpx.ConnectError("refused")), may_have_left(httpx.ReadTimeout("late"))
    (False, True)
    """
    return not isinstance(
        exc, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout | httpx.ProxyError
    )


def not_fetched(address: str, actual: str, status: int = 0) -> SetupError:
    """The error of a file that did not arrive.

    >>> not_fetched("https://example.org/window.json", "status 404", 404).field
    'https://example.org/window.json'

    :param status: of the response, if there was one
    """
    hint = None
    if status in AGAIN:
        hint = "the service cannot answer at the moment: repeat the request later"
    elif not status:
        hint = (
            "no service answers at this address: check the address. A provider ends its service after the last window;"
            " ask the provider when the next one opens"
        )
    return SetupError(
        "a published file cannot be fetched", field=without_userinfo(address), actual=actual, hint=hint
    )
