"""`longhaul serve`: where it listens, who is let in, and how it ends."""

import asyncio
import contextlib
import ipaddress
import logging
import signal
import socket
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from starter.cli.leaving import Exit, Misuse
from starter.cli.opening import whoami
from starter.client import Longhaul
from starter.serve.application import application
from starter.serve.calls import Served
from starter.serve.door import host_name
from starter.serve.tokens import SCOPES, BadTokens, Caller, Tokens, issue
from starter.settings import Settings

DRAIN_SECONDS = 20
"""What requests get that are under way when the server is to end; event streams end at once."""
MOST_CONNECTIONS = 1_000
UNREAD_MILLISECONDS = 60_000
TOKENS = "serve-tokens"
"""The file in the data directory, where LONGHAUL_SERVE_TOKENS names no other."""
LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")


@dataclass(frozen=True, slots=True)
class Place:
    """What the flags say."""

    host: str
    port: int
    root_path: str = ""


async def serve(place: Place) -> int:
    """Until SIGTERM or Ctrl-C. Raises Misuse and Unreachable."""
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s")
    settings = Settings()
    tokens = _tokens(settings)
    listening = listen(place, is_guarded=tokens is not None)
    with contextlib.closing(listening):
        async with Longhaul.connect(settings=settings) as app:
            served = Served(
                app=app,
                tokens=tokens,
                local=Caller(None, whoami(), frozenset(SCOPES)),
                hosts=hosts_of(place, settings.serve_hosts),
                origins=tuple(settings.serve_origins.replace(",", " ").split()),
                root_path=place.root_path,
            )
            await _run(served, listening)
    return Exit.DONE


async def _run(served: Served, listening: socket.socket) -> None:
    config = uvicorn.Config(
        application(served),
        http="h11",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        root_path=served.root_path,
        limit_concurrency=MOST_CONNECTIONS,
        timeout_graceful_shutdown=DRAIN_SECONDS,
    )
    server = _Server(config)

    def stop() -> None:
        server.force_exit = served.draining.is_set()
        server.should_exit = True
        served.draining.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop)
    host, port = listening.getsockname()[:2]
    print(f"http://{f'[{host}]' if ':' in host else host}:{port}{served.root_path}", flush=True)
    await server.serve(sockets=[listening])


class _Server(uvicorn.Server):
    """Signals are ours: streams have to hear of them, and the exit status says that all went well."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _tokens(settings: Settings) -> Tokens | None:
    """Whoever has made tokens means them: then nobody is let in without one."""
    usual = settings.data_dir / TOKENS
    try:
        return Tokens.of(settings.serve_tokens or (str(usual) if usual.exists() else ""))
    except BadTokens as error:
        raise Misuse(str(error)) from error


def listen(place: Place, *, is_guarded: bool) -> socket.socket:
    """Raises Misuse: without tokens only this machine may be served."""
    try:
        family, _, _, _, address = socket.getaddrinfo(place.host, place.port, type=socket.SOCK_STREAM)[0]
    except OSError as error:
        raise Misuse(f"--host: {place.host!r} is no address of this machine ({error})") from error
    if not is_guarded and not ipaddress.ip_address(str(address[0]).partition("%")[0]).is_loopback:
        raise Misuse(
            f"--host: without tokens only this machine is served, and {place.host!r} is not only this machine; make a "
            "token by `longhaul serve token --user NAME` and set LONGHAUL_SERVE_TOKENS, or listen on 127.0.0.1"
        )
    try:
        found = socket.create_server((str(address[0]), place.port), family=family, backlog=256)
    except OSError as error:
        raise Misuse(f"--port: {place.host}:{place.port} can't be listened on ({error}); take another one") from error
    if hasattr(socket, "TCP_USER_TIMEOUT"):  # of Linux: frees what is kept for a reader that reads nothing any more
        found.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNREAD_MILLISECONDS)
    return found


def hosts_of(place: Place, named: str) -> frozenset[str]:
    """Names under which requests may come."""
    bound = f"[{place.host}]" if ":" in place.host else place.host
    return frozenset(host_name(name) for name in (*LOOPBACK_NAMES, bound, *named.replace(",", " ").split()))


async def make_token(user: str, scopes: str) -> int:
    """Print a new token, and add its hash to the file of LONGHAUL_SERVE_TOKENS. Raises Misuse."""
    settings = Settings()
    path = Path(settings.serve_tokens or settings.data_dir / TOKENS)
    try:
        token = issue(path, user, scopes)
    except BadTokens as error:
        raise Misuse(str(error)) from error
    print(token, flush=True)
    print(f"longhaul: its hash is in {str(path)!r}; the token is not kept, and not shown again", file=sys.stderr)
    return Exit.DONE
