"""Everything that shows a session to somebody, listed: a query or a command that is new has to be put in here."""

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from typing import Any

import httpx
import typer
from temporalio.workflow import _Definition  # pyright: ignore[reportPrivateUsage]  the SDK lists queries nowhere else

from longhaul.starter.cli.main import app as commands
from longhaul.starter.client.session import Session
from longhaul.starter.serve.application import application
from longhaul.starter.serve.requests import Served
from longhaul.starter.serve.routes import OPERATIONS
from longhaul.starter.serve.tokens import SCOPES, Caller
from longhaul.workflows.session import AgentSession
from tests.e2e.processes import WorkerSettings, environment
from tests.e2e.warm_cli import warm
from tests.workflows.conftest import Stage

QUERIES = (
    "events",
    "messages",
    "pending",
    "pending_here",
    "result",
    "rules",
    "spec",
    "state",
    "status",
    "stream",
    "transcript",
    "would_pass",
)
PULLED = ("entries", "snapshot", "received", "verification")
"""By workers, to run what they hold and to write it down; `longhaul` shows none of it as it is."""
COMMANDS = {
    "show": ("", "--full", "--as steps", "--json"),
    "watch": ("", "--json"),
    "approve": ("--show",),
    "rules list": ("",),
    "state export": ("",),
    "inbox": ("", "--json"),
    "sessions": ("--long",),
}
"""Those that read, each in its forms; of the last two the answer is about all sessions."""
OF_ALL = ("inbox", "sessions")
OTHER_COMMANDS = frozenset({
    "budget", "chat", "codec serve", "compact", "console", "deny", "dev", "doctor", "hub add", "hub apply", "hub end",
    "hub list", "hub remove", "hub say", "hub show", "hub start", "interrupt", "keys new", "keys rewrap",
    "knowledge add", "knowledge delete", "knowledge list", "knowledge search", "mcp list", "mcp serve",
    "memory delete", "memory list", "notify", "observe", "pause", "permission check", "repair", "rescue",
    "result", "resume", "rollout check", "rollout promote", "rollout status", "rules add", "rules revoke",
    "run", "say", "schedule add", "schedule apply", "schedule list", "schedule pause", "schedule remove",
    "schedule resume", "schedule show", "schedule trigger", "serve token", "resolve", "state delete",
    "state edit", "state fork", "state import", "step", "stop", "trust", "worker", "worktree discard", "worktree list",
    "worktree merge",
})  # fmt: skip
"""They begin or change something, and what they show of a session they read as those above do."""
OTHER_ROUTES = (
    "/health", "/ready", "/v1/hubs", "/v1/hubs/{hub}", "/v1/knowledge", "/v1/knowledge/passages", "/v1/schedules",
    "/v1/schedules/{schedule}",
)  # fmt: skip
"""They show nothing of a session: whether the server is there, documents that an operator has put in, schedules as
somebody has set them, with names and ends of their scheduled runs, and hubs with the names of their members. Memories
are a session's own words, and are looked at."""
QUIET_SECONDS = 1.0


def unlisted() -> dict[str, set[str]]:
    """What there is and stands in no list here, and what stands here and is no more."""
    queries = {str(name) for name in _Definition.must_from_class(AgentSession).queries}
    return {
        "queries": queries ^ {*QUERIES, *PULLED},
        "commands": set(_named(typer.main.get_command(commands))) ^ {*COMMANDS, *OTHER_COMMANDS},
        "routes": {*OTHER_ROUTES} - {operation.path for operation in OPERATIONS if operation.method == "GET"},
    }


def _named(group: Any, before: str = "") -> Iterator[str]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _named(command, f"{before}{name} ")
        else:
            yield f"{before}{name}"


async def views(stage: Stage, session: Session, reply_id: str) -> dict[str, str]:
    """What each of them but the commands shows of the session now, by name. One that can't be had is an error."""
    shown = {f"query {name}": text async for name, text in _queries(stage, session, reply_id)}
    shown |= {f"GET {path}": text async for path, text in _routes(stage, session, reply_id)}
    shown |= {f"client {name}": text async for name, text in _client(session, reply_id)}
    shown |= {f"server {name}": text async for name, text in _server(stage, session)}
    return shown


async def command_views(stage: Stage, session: Session) -> dict[str, str]:
    """The same of the commands. A call has to wait."""
    return {f"longhaul {line}": text async for line, text in _commands(stage, session)}


async def _queries(stage: Stage, session: Session, reply_id: str) -> AsyncIterator[tuple[str, str]]:
    handle = stage.handle(session)
    arguments: dict[str, list[Any]] = {"result": [reply_id], "transcript": [0, 0]}
    for name in QUERIES:
        yield name, json.dumps(await handle.query(name, args=arguments.get(name, [])), ensure_ascii=False)
    yield "metadata", str(await handle.query("__temporal_workflow_metadata"))


async def _routes(stage: Stage, session: Session, reply_id: str) -> AsyncIterator[tuple[str, str]]:
    caller = Caller(None, "", frozenset(SCOPES))
    served = Served(stage.app, None, caller, frozenset({"127.0.0.1"}))
    transport = httpx.ASGITransport(application(served))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
        for operation in OPERATIONS:
            if operation.method != "GET" or operation.path in OTHER_ROUTES:
                continue
            path = operation.path.format(agent="lamp", session=session.id, reply_id=reply_id)
            if operation.name == "events":
                yield operation.path, "as `client follow`, which it reads"
                continue
            answer = await http.get(path)
            assert answer.status_code == httpx.codes.OK, (path, answer.text)
            yield operation.path, answer.text


async def _client(session: Session, reply_id: str) -> AsyncIterator[tuple[str, str]]:
    yield "status", (await session.status()).model_dump_json()
    yield "pending", "".join([call.model_dump_json() for call in await session.pending()])
    yield "result", (await session.result(reply_id)).model_dump_json()
    yield "state", (await session.state()).model_dump_json()
    yield "settings", (await session.settings()).model_dump_json()
    yield "context", "".join([each.model_dump_json() async for each in session.context()])
    yield "transcript", "".join([each.model_dump_json() async for each in session.transcript()])
    yield "trajectory", "".join([each.model_dump_json() async for each in session.trajectory()])
    page = await session.events()
    yield "events", page.model_dump_json()
    told = list[str]()
    async with aclosing(session.following()) as following:
        while len(told) < len(page.events):
            told += [event.model_dump_json() for event in await following.next()]
    yield "follow", "".join(told)


async def _server(stage: Stage, session: Session) -> AsyncIterator[tuple[str, str]]:
    """Search attributes, memo, and the lines of the Web UI."""
    described = await stage.handle(session).describe()
    yield "describe", str(described.raw_description)
    events = (await stage.handle(session).fetch_history()).events
    yield "summaries", "".join(str(event.user_metadata) for event in events)


async def _commands(stage: Stage, session: Session) -> AsyncIterator[tuple[str, str]]:
    settings = WorkerSettings(
        address=stage.address, task_queue=stage.settings.task_queue, directory=stage.settings.data_dir
    )
    for command, forms in COMMANDS.items():
        for form in forms:
            words = [*command.split(), *([] if command in OF_ALL else [session.id]), *form.split()]
            told = _watched(stage, settings, words) if command == "watch" else _typed(stage, settings, words)
            yield " ".join(words), await told


async def _typed(stage: Stage, settings: WorkerSettings, words: list[str]) -> str:
    """What the command says."""
    code, out, err = await asyncio.to_thread(warm().run, words, environment(settings), stage.folder, "")
    assert code == 0, (words, out, err)
    assert out + err, words
    return out + err


async def _watched(stage: Stage, settings: WorkerSettings, words: list[str]) -> str:
    """What a command that goes on for ever has said when it is quiet."""
    said = stage.folder / "said"
    with said.open("wb") as sink:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-P", "-m", "longhaul.starter.cli.main", *words,
            env=environment(settings), cwd=stage.folder, stdout=sink, stderr=sink,
        )  # fmt: skip
    while not said.stat().st_size:  # noqa: ASYNC110  another process writes it
        await asyncio.sleep(0.05)
    await asyncio.sleep(QUIET_SECONDS)
    process.kill()
    assert await process.wait() == -signal.SIGKILL, (words, said.read_text())
    return said.read_text()
