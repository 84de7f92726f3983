"""Requests to the web that a model asked for: to public addresses alone, within bounds of size and time.

The model writes the address, and a page may have told it which one. So each name is resolved here, each of its
addresses is checked, and the connection goes to the address that was checked: a name whose next answer is another
address leads nowhere else. Redirections are not followed here, for another host needs another decision.
"""

import asyncio
import codecs
import functools
import ipaddress
import re
import socket
import ssl
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import httpx

from longhaul.activities.tool import ToolError, ToolSetupError

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

CONNECT_SECONDS = 10.0
REQUEST_SECONDS = 60.0
"""For one answer, with all of its body."""
BODY_BYTES = 5_000_000
"""Of an answer, unpacked; what is longer is cut there."""
PIECE_BYTES = 1 << 16
LONGEST_URL = 8_000
USER_AGENT = "Longhaul/0.1 (an agent, on behalf of a person)"
_OPEN_PORTS = (80, 443)
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_CHARSET_IN_PAGE = re.compile(rb"<meta[^>]{0,200}charset=[\"']?([A-Za-z0-9_-]{1,40})", re.IGNORECASE)


def read_networks(setting: str) -> tuple[Network, ...]:
    """The networks in `LONGHAUL_WEB_PRIVATE`, comma-separated. Raises ToolSetupError for what is none."""
    found = list[Network]()
    for text in filter(None, (part.strip() for part in setting.split(","))):
        try:
            found.append(ipaddress.ip_network(text))
        except ValueError:
            raise ToolSetupError(
                f"web_private: {text[:80]!r} is no network; write addresses as in '10.20.0.0/16' or '10.20.0.7'"
            ) from None
    return tuple(found)


def checked_url(text: str) -> httpx.URL:
    """The address without its fragment. Raises ToolError for one that nobody has to be asked about."""
    if len(text) > LONGEST_URL:
        raise ToolError(f"url: it has {len(text)} characters, and may have {LONGEST_URL}")
    try:
        url = httpx.URL(text.strip())
        host = url.raw_host.decode("ascii")
    except (httpx.InvalidURL, UnicodeError, ValueError) as error:
        raise ToolError(
            f"url: {text[:200]!r} is no address ({error}); write one as in 'https://example.com/page'"
        ) from None
    if url.scheme not in ("http", "https") or not host:
        raise ToolError(f"url: {text[:200]!r} has to begin with https:// or http:// and a host")
    if url.userinfo:
        raise ToolError("url: an address with a user name or a password in it is not asked; leave these out")
    if url.port is not None and url.port not in _OPEN_PORTS and url.port < 1024:
        raise ToolError(f"url: port {url.port} is of no web server; leave it out, or use one from 1024 on")
    return url.copy_with(fragment=None)


def host_of(url: httpx.URL) -> str:
    """As rules and findings name it: ASCII, lower case, without the dot that a full name may end with."""
    return url.raw_host.decode("ascii").strip("[]").lower().rstrip(".")


def why_private(address: Address) -> str:
    """What kind of address it is that nobody outside could be asked at; empty for a public one."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None)
        if inner is None and address in _NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return why_private(inner)
    if address.is_loopback:
        return "of this machine"
    if address.is_link_local:
        return "link-local, where clouds keep credentials"
    return "" if address.is_global and not address.is_multicast and not address.is_reserved else "not public"


async def _looked_up(host: str, port: int) -> list[str]:
    """The addresses of a name, as this machine knows them. Raises OSError, UnicodeError."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


@dataclass(frozen=True, slots=True)
class Reach:
    """Which addresses may be asked."""

    private: tuple[Network, ...] = ()
    """Networks that may be asked although they are not public."""
    look_up: Callable[[str, int], Awaitable[list[str]]] = _looked_up

    def why_not(self, address: Address) -> str:
        """Empty where it may be asked."""
        if any(address.version == network.version and address in network for network in self.private):
            return ""
        return why_private(address)

    def refuse_literal(self, url: httpx.URL) -> None:
        """Raises ToolError for an address that is written out and may not be asked."""
        host = host_of(url)
        if host == "localhost" or host.endswith(".localhost"):
            host = "127.0.0.1"
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            return
        if why := self.why_not(address):
            raise ToolError(_refusal(host_of(url), str(address), why))


def _refusal(host: str, address: str, why: str) -> str:
    return (
        f"{host!r} is at {address}, which is {why}; only public addresses are asked. The operator of the workers can "
        "open networks with LONGHAUL_WEB_PRIVATE"
    )


class _CheckedTransport(httpx.AsyncHTTPTransport):
    """Connects to the address that was checked, under the name that was asked for: certificates are of the name."""

    def __init__(self, reach: Reach) -> None:
        super().__init__(verify=_certificates(), trust_env=False)
        self._reach = reach

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Raises ToolError where the host is not known, or none of its addresses may be asked."""
        url = request.url
        addresses = await self._addresses(host_of(url), url.port or {"http": 80, "https": 443}[url.scheme])
        request.extensions = {**request.extensions, "sni_hostname": host_of(url)}
        for at, address in enumerate(addresses):
            request.url = url.copy_with(host=address)
            try:
                return await super().handle_async_request(request)
            except (httpx.ConnectError, httpx.ConnectTimeout):
                if at == len(addresses) - 1:
                    raise
        raise AssertionError("a name has an address or is not known")

    async def _addresses(self, host: str, port: int) -> list[str]:
        try:
            addresses = await self._reach.look_up(host, port)
        except (OSError, UnicodeError) as error:
            raise ToolError(f"the host {host!r} is not known here: {error}") from None
        for address in addresses:
            if why := self._reach.why_not(ipaddress.ip_address(address.partition("%")[0])):
                raise ToolError(_refusal(host, address, why))
        return addresses


@functools.lru_cache(maxsize=1)
def _certificates() -> ssl.SSLContext:
    """To read the machine's takes longer than most requests."""
    return httpx.create_ssl_context()


@dataclass(frozen=True, slots=True)
class WebAnswer:
    """What a server said, its body unpacked and cut at `BODY_BYTES`."""

    url: httpx.URL
    status: int
    reason: str
    media_type: str
    """Without parameters, in lower case; empty where the server says none."""
    charset: str
    location: str
    """Where a redirection leads; empty in any other answer."""
    body: bytes
    is_cut: bool

    def text(self) -> str:
        """Decoded as the server or the page says, else as UTF-8; NUL and what does not fit are shown as �."""
        found = _CHARSET_IN_PAGE.search(self.body[:2_000]) if not self.charset else None
        named = self.charset or (found[1].decode() if found else "utf-8")
        try:
            decoder = codecs.lookup(named)
            # Others of Python's, such as rot13 and zlib, decode no text, or unpack.
            name = decoder.name if decoder._is_text_encoding else "utf-8"  # noqa: SLF001  it has no public word
        except LookupError:
            name = "utf-8"
        return self.body.decode(name, errors="replace").replace("\0", "�")


@asynccontextmanager
async def web_client(reach: Reach | None) -> AsyncIterator[httpx.AsyncClient]:
    """For the requests of one call; without cookies, proxies and netrc. `reach`: None for what the operator named."""
    transport = httpx.AsyncHTTPTransport(verify=_certificates()) if reach is None else _CheckedTransport(reach)
    async with httpx.AsyncClient(
        transport=transport,
        trust_env=False,
        follow_redirects=False,
        timeout=httpx.Timeout(REQUEST_SECONDS, connect=CONNECT_SECONDS),
        headers={"User-Agent": USER_AGENT, "Accept-Encoding": "gzip"},
    ) as client:
        yield client


async def ask(client: httpx.AsyncClient, url: httpx.URL, *, accept: str, most: int = BODY_BYTES) -> WebAnswer:
    """GET. Raises ToolError where there is no answer in time, in words for the model."""
    host = host_of(url)
    try:
        async with asyncio.timeout(REQUEST_SECONDS), client.stream("GET", url, headers={"Accept": accept}) as response:
            body, is_cut = b"", False
            if not response.has_redirect_location:
                body, is_cut = await _body(response, most)
    except TimeoutError:
        raise ToolError(f"{host!r} did not answer within {REQUEST_SECONDS:.0f} s") from None
    except httpx.ConnectTimeout:
        raise ToolError(f"{host!r} can't be reached: no connection within {CONNECT_SECONDS:.0f} s") from None
    except httpx.HTTPError as error:
        raise ToolError(f"{host!r} can't be read: {_why(error)}") from None
    media_type, _, parameters = response.headers.get("content-type", "").partition(";")
    charset = re.search(r"charset=\"?([A-Za-z0-9_.:-]{1,40})", parameters, re.IGNORECASE)
    return WebAnswer(
        url=url,
        status=response.status_code,
        reason=response.reason_phrase,
        media_type=media_type.strip().lower(),
        charset=charset[1] if charset else "",
        location=response.headers.get("location", "") if response.has_redirect_location else "",
        body=body,
        is_cut=is_cut,
    )


async def _body(response: httpx.Response, most: int) -> tuple[bytes, bool]:
    """Unpacked piece by piece: httpx would unpack each whole, and a thousandfold. Raises ToolError for packing that
    nobody asked for."""
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("identity", "gzip", "x-gzip"):
        raise ToolError(f"the answer is packed as {encoding[:40]!r}, which was not asked for")
    unpacking = None if encoding == "identity" else zlib.decompressobj(zlib.MAX_WBITS | 32)
    body = bytearray()
    async for piece in response.aiter_raw(PIECE_BYTES):
        try:
            body += piece if unpacking is None else unpacking.decompress(piece, most + 1 - len(body))
        except zlib.error as error:
            raise ToolError(f"the answer is not packed as it says ({encoding}): {error}") from None
        if len(body) > most:
            return bytes(body[:most]), True
    return bytes(body), False


def _why(error: httpx.HTTPError) -> str:
    """Without the address that was connected to, which says nothing to a model."""
    causes: Sequence[BaseException | None] = (error, error.__cause__, error.__context__)
    for cause in causes:
        if isinstance(cause, ssl.SSLCertVerificationError) or "CERTIFICATE" in str(cause):
            return f"its certificate does not hold ({str(cause)[:200]})"
    return f"{type(error).__name__}{f': {str(error)[:200]}' if str(error) else ''}"
