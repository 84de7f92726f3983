"""`longhaul repair S` of a session whose provider refuses every request for what stands in its context."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from longhaul.agent.values.conversation.messages import Base64Source, DataBlock, FinishedReason, TextBlock, UserMsg
from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.starter.client.client import Longhaul
from longhaul.starter.client.session import Session
from longhaul.starter.dev_server.dev_server import DevServer
from longhaul.starter.settings import Settings
from tests.activities.models.sample_requests import PIXEL
from tests.activities.models.strict import Refused, Strict
from tests.e2e.conftest import Answer, Cli
from tests.e2e.processes import WorkerSettings, environment, worker

pytestmark = pytest.mark.server

SENTENCE = "messages: we do not look at pictures of the sea"
SEA = DataBlock(source=Base64Source(data=PIXEL, media_type="image/png"), name="sea.png")
ASKED = UserMsg("user", [TextBlock(text="What is it?"), SEA])


class Squeamish(Strict):
    """It refuses whatever holds a picture, in words that nobody knows: no worker can tell what to leave out."""

    def _answer(self, path: str, body: dict[str, Any]) -> bytes:
        if '"type": "image"' in json.dumps(body):
            raise Refused(SENTENCE)
        return super()._answer(path, body)


@asynccontextmanager
async def served(temporal_server: DevServer, folder: Path) -> AsyncIterator[tuple[Longhaul, Cli]]:
    """A worker process that calls the squeamish provider, its client, and the command line beside it."""
    provider = Squeamish()
    server = await asyncio.start_server(provider.serve, "127.0.0.1", 0, limit=1 << 24)
    url = "http://{}:{}".format(*server.sockets[0].getsockname())
    given = WorkerSettings(
        address=temporal_server.address, task_queue=f"repair-{folder.name}", directory=folder / "data", tools="",
        further={"ANTHROPIC_API_KEY": "no key", "ANTHROPIC_BASE_URL": url},
    )  # fmt: skip
    settings = Settings(task_queue=given.task_queue, data_dir=given.directory)
    async with server, worker(given), Longhaul.connect(given.address, settings=settings) as app:
        yield app, Cli(environment(given) | {"TERM": "xterm"}, folder)


async def poisoned(app: Longhaul, name: str) -> Session:
    """Each of its requests is refused, whatever is asked."""
    session = app.session(name, agent=AgentSpec(model="anthropic:claude-opus-4-5", tools=()))
    for asked in (ASKED, "And now?"):
        done = await session.reply(asked)
        assert done.error is not None
        assert SENTENCE in done.error.message
    return session


@pytest.mark.proves("X17")
async def test_a_poisoned_session_is_repaired_and_goes_on(temporal_server: DevServer, tmp_path: Path) -> None:
    async with served(temporal_server, tmp_path) as (app, cli):

        async def longhaul(*words: str) -> Answer:
            return await asyncio.to_thread(cli, *words)  # the provider has to answer meanwhile

        session, other = await poisoned(app, "squeamish"), await poisoned(app, "queasy")
        repaired = await longhaul("repair", "squeamish", "--as", "ana")
        again = await longhaul("repair", "squeamish")
        as_json = await longhaul("repair", "queasy", "--json")
        nobody = await longhaul("repair", "nowhere", "--json")
        done = await longhaul("run", "And then?", "--session", "squeamish", "--json", "--set", "max_output_tokens=700")
        called = (await session.settings()).llm_config
        reply = await other.reply("And then?")
        replaced = [event.value for event in (await session.events()).events if event.name == "state_replaced"]
        kept = [block async for message in session.transcript() for block in message.content]
        context = (await session.state()).context

    assert (repaired.code, repaired.err) == (0, "")
    assert repaired.out == "squeamish: 1 attachments and thinking blocks removed from the context\n"
    assert (again.code, again.out) == (0, "squeamish: nothing to repair\n")
    assert (as_json.code, as_json.document) == (0, {"session": "queasy", "left_out": 1})
    assert (nobody.code, "there is no session 'nowhere'" in nobody.err, nobody.out) == (2, True, "")
    assert done.code == 0, done.err
    assert called.max_output_tokens == 700
    assert (reply.finished_reason, reply.error) == (FinishedReason.COMPLETED, None)
    assert replaced == [{"by": "ana", "why": "a repair removed 1 attachments and thinking blocks from the context"}]
    assert SEA in kept
    assert not [block for message in context for block in message.content if isinstance(block, DataBlock)]
