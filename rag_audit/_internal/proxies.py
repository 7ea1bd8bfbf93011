"""Addresses of HTTP services, and the proxy through which each is reached: one rule for every client of this package.

An HTTP library reads the proxy variables of the environment by rules of its own, and raises its own errors for values
that it does not understand. Every client of this package asks `proxy_of` instead, and hands the result to its library.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from urllib.parse import quote, urlsplit

from rag_audit._internal.errors import SetupError
from rag_audit._internal.printable import without_userinfo

DEFAULT_PORTS = {"http": 80, "https": 443}
_PATH = "/%:@!$&'()*+,;=~-._"
"""The characters that a path has unescaped (RFC 3986, section 3.3), and the sign of an escape."""
_LONGEST_NAME = 253
_MAPPED_BITS = 96
"""The length of the prefix of IPv4-mapped addresses."""
_SHORT_IPV4 = re.compile(r"(0x[0-9a-f]+|[0-9]+)(\.(0x[0-9a-f]+|[0-9]+)){0,3}", re.IGNORECASE)


@dataclass(frozen=True)
class Address:
    """The address of an HTTP service.

    :param scheme: `http` or `https`
    :param host: without brackets, in ASCII: a name outside ASCII in its IDNA form
    :param path: in ASCII, percent-encoded, without the slash at its end; empty at the root
    """

    scheme: str
    host: str
    port: int
    path: str

    @property
    def netloc(self) -> str:
        """Host and port as a URL has them, without the port that the scheme implies."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        """The address as a URL, without user and password."""
        return f"{self.scheme}://{self.netloc}{self.path}"

    @property
    def local(self) -> bool:
        """Whether the address reaches only this machine: `localhost` or a loopback address in any form, such as
        ``127.1`` and ``::ffff:127.0.0.1``.
        """
        name = self.host.lower().rstrip(".")
        address = _ip(name)
        if address is not None:
            address = _plain(address)
            return address.is_loopback or address.is_unspecified
        return name == "localhost" or name.endswith(".localhost")


def address_of(url: str) -> Address | None:
    """Read the URL of an HTTP service, or return None where it is no such URL: another scheme, no host, a port out of
    range, a query or a fragment, or characters that no URL has.
    """
    if not url.isprintable() or " " in url:
        return None
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
        if not host.isascii():
            host = host.encode("idna").decode("ascii")
        path = quote(parts.path.rstrip("/"), safe=_PATH)
    except ValueError:  # UnicodeError is one too
        return None
    if parts.scheme not in DEFAULT_PORTS or parts.query or parts.fragment or port == 0 or not _is_host(host):
        return None
    return Address(parts.scheme, host, DEFAULT_PORTS[parts.scheme] if port is None else port, path)


def _is_host(name: str) -> bool:
    """Whether a name can be looked up: an IP address, or labels of 1 to 63 characters (RFC 1035, section 2.3.4)."""
    if _ip(name) is not None:
        return True
    labels = name.removesuffix(".").split(".")
    return len(name) <= _LONGEST_NAME and all(re.fullmatch(r"[A-Za-z0-9_-]{1,63}", label) for label in labels)


@dataclass(frozen=True)
class Proxy:
    """An HTTP proxy that the environment names.

    :param variable: the environment variable that names it
    :param userinfo: user and password as the variable has them; never printed
    """

    variable: str
    host: str
    port: int
    userinfo: str = field(default="", repr=False)

    @property
    def url(self) -> str:
        """The proxy's URL with its password, for a client library."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{self.userinfo}{'@' if self.userinfo else ''}{host}:{self.port}"


def proxy_of(address: Address, environ: Mapping[str, str] | None = None) -> Proxy | None:
    """The proxy for an address, or None for a direct connection.

    This machine's own addresses (`Address.local`) are always reached directly, and so is a host that `NO_PROXY` lists.
    A list has names, each of which includes its subdomains, IP addresses, networks such as ``10.0.0.0/8`` or
    ``fd00::/8``, and ``*`` for every host; any other entry matches no host. For any other host the proxy comes from
    ``HTTP_PROXY`` or ``HTTPS_PROXY``, by the address's scheme, or else from ``ALL_PROXY``. A variable in lower case
    takes precedence over the same one in upper case, and an empty one counts as unset.

    :raises SetupError: the variable that applies names no HTTP proxy
    """
    given = os.environ if environ is None else environ
    if address.local or _excluded(address, given):
        return None
    for name in (f"{address.scheme}_proxy", "all_proxy"):
        result = _variable(name, given)
        if result is not None:
            return _proxy(*result)
    return None


def _variable(name: str, environ: Mapping[str, str]) -> tuple[str, str] | None:
    """A variable's name as the environment has it, and its value; None where it is unset or empty."""
    for written in (name, name.upper()):
        # A web server hands a program the header `Proxy` of a request under this name (CVE-2016-5385).
        if written == "HTTP_PROXY" and "REQUEST_METHOD" in environ:
            continue
        if value := environ.get(written, "").strip():
            return written, value
    return None


def _proxy(variable: str, value: str) -> Proxy:
    url = value if "://" in value else f"http://{value}"
    address = address_of(url)
    if address is None or address.scheme != "http" or address.path or re.search(r"[?#]", value):
        raise SetupError(
            "the environment names a proxy that cannot be used",
            field=variable,
            expected="http://HOST:PORT",
            actual=without_userinfo(value),
            hint=f"unset {variable}, or add the host to NO_PROXY",
        )
    userinfo, _, _ = urlsplit(url).netloc.rpartition("@")
    return Proxy(variable, address.host, address.port, userinfo)


def _excluded(address: Address, environ: Mapping[str, str]) -> bool:
    result = _variable("no_proxy", environ)
    return result is not None and any(_matches(entry.strip(), address) for entry in result[1].split(","))


def _matches(entry: str, address: Address) -> bool:
    """Whether an entry of `NO_PROXY` includes an address."""
    if entry == "*":
        return True
    host = address.host.lower().rstrip(".")
    name, port = _without_port(entry.lower())
    if port and port != str(address.port):
        return False
    ip = _ip(host)
    if ip is not None:
        network = _network(name)
        return name == host if network is None else ip in network or _plain(ip) in network
    name = name.removeprefix("*").strip(".")
    return bool(name) and (host == name or host.endswith("." + name))


def _without_port(entry: str) -> tuple[str, str]:
    """An entry of `NO_PROXY` without the brackets of an IPv6 address, and its port, or an empty text."""
    if bracketed := re.fullmatch(r"\[([^\[\]]*)\](/[0-9]+)?(?::([0-9]+))?", entry):
        inside, length, port = bracketed.groups(default="")
        return inside + length, port
    if entry.count(":") == 1:
        name, _, port = entry.partition(":")
        return name, port
    return entry, ""


def _network(entry: str) -> IPv4Network | IPv6Network | None:
    """The network in an entry, if it names one; for IPv4-mapped addresses, the IPv4 network."""
    try:
        network = ip_network(entry, strict=False)
    except ValueError:  # no network, or one address in a short form
        ip = _ip(entry)
        return IPv4Network(ip) if isinstance(ip, IPv4Address) else None
    first = _plain(network.network_address)
    if first.version == network.version or network.prefixlen < _MAPPED_BITS:
        return network
    return ip_network(f"{first}/{network.prefixlen - _MAPPED_BITS}")


def _ip(host: str) -> IPv4Address | IPv6Address | None:
    """The IP address that a host is, in the forms that system resolvers accept too, such as ``127.1`` (POSIX,
    inet_addr); None where it is a name.
    """
    try:
        return ip_address(host)
    except ValueError:
        pass
    if not _SHORT_IPV4.fullmatch(host):
        return None
    try:
        return IPv4Address(socket.inet_aton(host))
    except OSError:
        return None


def _plain(ip: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """The IPv4 address in an IPv4-mapped address (RFC 4291, section 2.5.5.2); any other address is unchanged."""
    return (ip.ipv4_mapped if isinstance(ip, IPv6Address) else None) or ip
