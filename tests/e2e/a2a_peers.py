"""Other agents: clients of the `a2a-sdk`, and what they read from tasks; and servers that publish agents to them."""

import asyncio
import hashlib
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from a2a.client import A2ACardResolver, Client, ClientConfig, ClientFactory
from a2a.helpers import get_artifact_text, get_message_text
from a2a.types import (
    AgentCard,
    GetTaskRequest,
    Message,
    Part,
    Role,
    SendMessageConfiguration,
    SendMessageRequest,
    Task,
    TaskState,
)
from a2a.utils.errors import (
    A2AError,
)
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.struct_pb2 import Value

from tests.e2e.serving import TOKENS, Serving, serving, tokens_file
from tests.limits import SURE_SECONDS

ROBOT = "lh_robot"
"""The token of another agent, which works for Ana: it may look and talk, and decide nothing."""
ROBOT_DIGEST = hashlib.sha256(ROBOT.encode()).hexdigest()
LONG = "It is a long, long way to the lighthouse. "


def desk_of(folder: Path, environment: dict[str, str]) -> dict[str, str]:
    (folder / "greeting.txt").write_text("hello world\n")
    file = tokens_file(folder)
    with file.open("a") as tokens:
        tokens.write(f"{ROBOT_DIGEST} ana read,answer\n")
    return environment | {"LONGHAUL_SERVE_TOKENS": str(file), "LONGHAUL_TRUST": "1"}


@asynccontextmanager
async def published(folder: Path, desk: dict[str, str], *names: str) -> AsyncIterator[Serving]:
    flags = [flag for name in names or ("lamp",) for flag in ("--a2a", name)]
    async with serving(folder, desk, *flags) as one:
        yield one


@dataclass
class Peer:
    """Another agent: one client of the package, and the card that it has read."""

    client: Client
    card: AgentCard

    async def send(self, *parts: Part | str, **about: Any) -> Task:
        """The task that one message comes to, as the last answer says."""
        *_, last = [one async for one in self.client.send_message(request(*parts, **about))]
        assert last.HasField("task"), last
        return last.task

    async def get(self, task: Task) -> Task:
        return await self.client.get_task(GetTaskRequest(id=task.id))

    async def until(self, task: Task, state: str) -> Task:
        async with asyncio.timeout(SURE_SECONDS):
            while (found := word(await self.get(task))) != state:
                assert found in ("submitted", "working"), found
                await asyncio.sleep(0.05)
        return await self.get(task)


@asynccontextmanager
async def peer(url: str, token: str = TOKENS["ana"], name: str = "lamp", **config: Any) -> AsyncIterator[Peer]:
    async with httpx.AsyncClient(
        headers={"Authorization": f"Bearer {token}"}, timeout=SURE_SECONDS, trust_env=False
    ) as http:
        card = await A2ACardResolver(http, f"{url}/a2a/{name}").get_agent_card()
        settings = ClientConfig(httpx_client=http, **{"streaming": False, **config})
        yield Peer(ClientFactory(settings).create(card), card)


def request(*parts: Part | str, **about: Any) -> SendMessageRequest:
    immediately = about.pop("return_immediately", False)
    message = Message(
        message_id=about.pop("message_id", None) or uuid4().hex,
        role=about.pop("role", Role.ROLE_USER),
        parts=[Part(text=one) if isinstance(one, str) else one for one in parts],
        **about,
    )
    return SendMessageRequest(message=message, configuration=SendMessageConfiguration(return_immediately=immediately))


def data(value: Any) -> Part:
    return Part(data=ParseDict(value, Value()))


def word(task: Task) -> str:
    return TaskState.Name(task.status.state).removeprefix("TASK_STATE_").lower()


def text(task: Task) -> str:
    return "".join(get_artifact_text(one) for one in task.artifacts)


def says(task: Task) -> str:
    return get_message_text(task.status.message)


def waiting(task: Task) -> list[dict[str, Any]]:
    """The calls that the task lists."""
    parts = [MessageToDict(one.data) for one in task.status.message.parts if one.HasField("data")]
    return parts[0]["waiting"] if parts else []


def yes(call: dict[str, Any], **more: Any) -> Part:
    return data({"decide": {"call_id": call["call_id"], "decision": "allow", "digest": call["digest"], **more}})


async def refused(kind: type[A2AError], work: Any) -> str:
    with pytest.raises(kind) as error:
        await work
    assert type(error.value) is kind
    return str(error.value)


@dataclass
class Ran:
    code: int
    out: str = ""
    err: str = field(default="")


async def python(code: str, *words: str, folder: Path, environment: dict[str, str]) -> Ran:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-c", code, *words),
        cwd=folder,
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(SURE_SECONDS):
        out, err = await process.communicate()
    return Ran(process.returncode or 0, out.decode(), err.decode())
