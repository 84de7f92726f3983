"""A session that goes on in a fresh history at every boundary comes to what it would have come to in one."""

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from longhaul.activities.models.providers import Providers
from longhaul.agent.values.conversation.messages import Msg
from longhaul.starter.client.session import Session
from longhaul.starter.connection.connect import connect, let_go
from longhaul.starter.dev_server.dev_server import DevServer
from longhaul.starter.settings import Settings
from tests.activities.models.sample_requests import KEYS
from tests.replay.record import server_suggesting
from tests.workflows.conftest import TOOLS, Stage
from tests.workflows.operations import calls, until

pytestmark = pytest.mark.server

PAGES = 6
LINES = (
    {"text": "First I ask.", "tool_calls": [{"name": "send", "input": {"to": "Ana"}}]},
    {"text": "Then I have it brought.", "tool_calls": [{"name": "courier", "input": {"parcel": "teapot"}}]},
    *(calls("fetch", page=number, chars=3_000) for number in range(PAGES)),
    {"text": "All is done."},
    calls("fetch", page=9, chars=3_000),
    {"text": "And that too."},
)
TIME = re.compile(r"20\d\d-\d\d-\d\dT[\d:.]+(Z|\+00:00)?")
SECONDS = re.compile(r',"seconds":[\d.e-]+')
ENTRY_ID = re.compile(r'"id":"m\d+\.\d+"')
SMALL = {"context_length": 6_000, "max_output_tokens": 500}


@asynccontextmanager
async def served(address: str, folder: Path) -> AsyncIterator[Stage]:
    """A stage with one worker on that server."""
    name = f"boundaries-{uuid4().hex[:6]}"
    workspace = folder / name / "workspace"
    workspace.mkdir(parents=True)
    settings = Settings(task_queue=name, data_dir=folder / name / "data", tools=TOOLS)
    client = await connect(address, settings=settings)
    stage = Stage(client, settings, folder / name, workspace, name, Providers(KEYS))
    async with stage.rest, stage.another_worker():
        yield stage
    await stage.providers.close()
    await let_go(client)


async def play(stage: Stage) -> tuple[Session, dict[str, Any]]:
    """An approval, a call from outside, a request in the queue, and compressions; what came of it."""
    session = stage.session(*LINES, id="lamp-and-teapot", tools=["send", "courier", "fetch"], model_config=SMALL)
    first = await session.reply("Write to Ana, have the teapot brought, read", request_id="r-first")
    (asked,) = await session.pending()
    second = await session.submit("And page 9", request_id="r-second")
    await session.confirm(asked, allow=True, approver="bo")

    async def outside() -> bool:
        return [call.tool for call in await session.pending()] == ["courier"]

    await until(outside)
    (sent,) = await session.pending()
    await session.external_result(sent.call_id, {"delivered": "at noon"}, by="the courier")
    replies = [await session.wait(reply_id) for reply_id in (first.id, second)]
    status = await session.status()
    return session, {
        "transcript": [plain(stage, message) async for message in session.transcript()],
        "context": [plain(stage, message) async for message in session.context()],
        "replies": [plain(stage, reply) for reply in replies],
        "counts": (status.model_calls, status.compressions, status.messages),
        "usage": status.output_tokens,
    }


def plain(stage: Stage, message: Msg) -> Any:
    """As JSON, without times, seconds of calls, numbers of entries (a checkpoint is one too), the folder of this stage,
    and the tokens, which depend on the length of its name."""
    text = message.model_dump_json(exclude={"usage"}).replace(str(stage.folder), "FOLDER")
    return json.loads(ENTRY_ID.sub('"id":"ENTRY"', SECONDS.sub("", TIME.sub("TIME", text))))


@pytest.fixture(scope="module")
async def expected(temporal_server: DevServer, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What comes of it in one history."""
    async with served(temporal_server.address, tmp_path_factory.mktemp("calm")) as calm:
        _, found = await play(calm)
        return found


@pytest.mark.proves("S13")
@pytest.mark.parametrize("events", [5, 8, 11])
async def test_a_session_that_continues_as_new_at_every_boundary_comes_to_the_same(
    expected: dict[str, Any], tmp_path: Path, events: int
) -> None:
    """From so many events on the server suggests it; an activity leaves six, the first task three."""
    async with (
        await server_suggesting(events) as server,
        served(server.client.service_client.config.target_host, tmp_path) as impatient,
    ):
        session, found = await play(impatient)

        async def listed() -> bool:
            query = f"WorkflowId = '{session.workflow_id}'"
            return len([row async for row in impatient.client.list_workflows(query)]) >= 2 * PAGES

        await until(listed)

    assert found["counts"] == expected["counts"] == (11, 1, 22)
    assert found["usage"] == expected["usage"]
    for what in ("transcript", "context", "replies"):
        # One by one: what pytest says of two long lists that differ takes it minutes.
        assert [one == other for one, other in zip(found[what], expected[what], strict=True)] == [True] * len(
            found[what]
        )
