"""`longhaul serve` and `longhaul console`: where they listen, who is let in, and how they end."""

import asyncio
import contextlib
import ipaddress
import logging
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
import uvicorn
from starlette.applications import Starlette

from longhaul.agent.plain.text import did_you_mean
from longhaul.starter.cli import options
from longhaul.starter.cli.exit_codes import Exit, Misuse
from longhaul.starter.cli.session_start import whoami
from longhaul.starter.client.agent_files import agent_names
from longhaul.starter.client.client import Longhaul
from longhaul.starter.console.console_request import PATH
from longhaul.starter.console.site import routes
from longhaul.starter.dev_server.web_ui import host_name
from longhaul.starter.folder_trust import trusted
from longhaul.starter.serve.application import application
from longhaul.starter.serve.connections import Connection
from longhaul.starter.serve.requests import Served, known_agents
from longhaul.starter.serve.tokens import SCOPES, BadTokens, Caller, Tokens, issue
from longhaul.starter.settings import Settings
from longhaul.starter.worker_host.own_process import keep_to_itself

DRAIN_SECONDS = 20
"""What requests get that are under way when the server is to end; event streams end at once."""
MOST_CONNECTIONS = 1_000
UNREAD_MILLISECONDS = 60_000
TOKENS = "serve-tokens"
"""The file in the data directory, where LONGHAUL_SERVE_TOKENS names no other."""
LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")


@dataclass(frozen=True, slots=True)
class ListenPlace:
    host: str
    port: int
    root_path: str = ""
    published: tuple[str, ...] = ()
    """Names of agents; see `Served.published`."""


group = options.SubjectCommands()
commands = options.SubjectCommands()


@group.callback(invoke_without_command=True)
def serve(
    context: typer.Context,
    *,
    host: Annotated[str, typer.Option(help="Address to listen on; without tokens only an address of this machine.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: a free one.")] = 8000,
    root_path: Annotated[str, typer.Option(help="Path under which a proxy serves it, such as /agents.")] = "",
    a2a: Annotated[
        list[str] | None,
        typer.Option(help="Publish this agent to other agents, by the Agent2Agent protocol; repeat it."),
    ] = None,
) -> None:
    if context.invoked_subcommand is None:
        place = ListenPlace(host, port, root_path.rstrip("/"), tuple(dict.fromkeys(a2a or ())))
        options.leave_by(lambda: serve_until_stopped(place))


@commands.command()
async def console(
    *,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: a free one.")] = 8001,
) -> int:
    """It listens on 127.0.0.1 only. Everybody who can log in to this machine reaches it, and may do what you may.
    If others can log in, use `longhaul serve` with tokens: it has the same pages under /console.
    """
    return await serve_until_stopped(ListenPlace("127.0.0.1", port), login=False)


MakeApp = Callable[[Served], Starlette]


def _with_pages(served: Served) -> Starlette:
    return application(served, routes(served))


async def serve_until_stopped(place: ListenPlace, make: MakeApp = _with_pages, *, login: bool = True) -> int:
    """Until SIGTERM or Ctrl-C. Without `login` whoever reaches this machine's own address is let in, as nobody else
    can. Raises Misuse, MissingExtra, Unreachable and Untrusted."""
    keep_to_itself()
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s")
    settings = Settings()
    if agent_names():
        trusted(Path.cwd())  # now, while somebody may be asked: later a request would be refused for it
    if unknown := [name for name in place.published if name not in known_agents()]:
        raise Misuse(f"--a2a: there is no agent {unknown[0]!r}; {did_you_mean(unknown[0], known_agents())}")
    tokens = _tokens(settings) if login else None
    listening = listen(place, is_guarded=tokens is not None and not tokens.are_awaited())
    with contextlib.closing(listening):
        async with Longhaul.connect(settings=settings) as app:
            served = Served(
                app=app,
                tokens=tokens,
                local=Caller(None, whoami(), frozenset(SCOPES)),
                hosts=hosts_of(place, settings.serve_hosts if login else ""),
                origins=tuple(settings.serve_origins.replace(",", " ").split()) if login else (),
                root_path=place.root_path,
                published=place.published,
            )
            await _run(served, listening, make(served), "" if login else PATH)
    return Exit.DONE


async def _run(served: Served, listening: socket.socket, app: Starlette, page: str) -> None:
    server = HttpServer(server_config(served, app))

    def stop() -> None:
        server.force_exit = served.draining.is_set()
        server.should_exit = True
        served.draining.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop)
    host, port = listening.getsockname()[:2]
    if served.is_open:
        print(f"longhaul: {_open_to(served.tokens)}", file=sys.stderr, flush=True)
    print(f"http://{f'[{host}]' if ':' in host else host}:{port}{served.root_path}{page}", flush=True)
    await server.serve(sockets=[listening])


def server_config(served: Served, app: Starlette | None = None) -> uvicorn.Config:
    """How sessions and pages are served, or another app."""
    return uvicorn.Config(
        app or _with_pages(served),
        http=Connection,
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


class HttpServer(uvicorn.Server):
    """Signals are ours: streams have to hear of them, and the exit status says that all went well."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _open_to(tokens: Tokens | None) -> str:
    who = "open to everybody who can log in to this machine, and to everything that a proxy on it forwards"
    if tokens is None:
        return f"{who}: they may do what you may. `longhaul serve` has the same pages, for people with a token"
    return f"{who}, until there is a token: `longhaul serve token --user NAME` closes it at once ({tokens.path})"


def _tokens(settings: Settings) -> Tokens | None:
    """Whoever has made tokens means them: then nobody is let in without one."""
    try:
        named = Tokens.of(settings.serve_tokens)
        return named if named is not None else Tokens.made_later(settings.data_dir / TOKENS)
    except BadTokens as error:
        raise Misuse(str(error)) from error


def listen(place: ListenPlace, *, is_guarded: bool) -> socket.socket:
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
    # asyncio does it for sockets of its own making. Else each answer's body waits 40 ms behind its headers.
    found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):  # of Linux: frees what is kept for a reader that reads nothing any more
        found.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNREAD_MILLISECONDS)
    return found


def hosts_of(place: ListenPlace, named: str) -> frozenset[str]:
    """Names under which requests may come. Raises Misuse."""
    names = named.replace(",", " ").split()
    if odd := next((name for name in names if host_name(name) is None), None):
        raise Misuse(f"LONGHAUL_SERVE_HOSTS: {odd!r} is no name of a server; write it as `agents.example`")
    bound = f"[{place.host}]" if ":" in place.host else place.host
    known = (host_name(name) for name in (*LOOPBACK_NAMES, bound, *names))
    return frozenset(name for name in known if name is not None)


@group.command("token")
async def make_token(
    *,
    user: Annotated[str, typer.Option(help="The user whose sessions it opens, and in whose name it decides.")],
    scopes: Annotated[str, typer.Option(help="Of read, answer, approve, edit, steer and admin, comma-separated.")] = (
        "read,answer,approve"
    ),
    also: Annotated[
        list[str] | None, typer.Option(help="A further user whose sessions it opens, as a lead's token; repeat it.")
    ] = None,
) -> int:
    """Print a new token once, and add its hash to the file of LONGHAUL_SERVE_TOKENS.

    Example: longhaul serve token --user ana --scopes read,answer
    """
    settings = Settings()
    path = Path(settings.serve_tokens or settings.data_dir / TOKENS)
    try:
        token = issue(path, user, scopes, also or ())
    except BadTokens as error:
        raise Misuse(str(error)) from error
    print(token, flush=True)
    print(f"longhaul: its hash is in {str(path)!r}; the token is not kept, and not shown again", file=sys.stderr)
    return Exit.DONE
