"""Whole outputs among a session's blobs: a copy of the session has its own, and who takes a state in is told."""

import json
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from pydantic import SecretStr

from longhaul.agent.values.conversation.messages import ToolResultState
from longhaul.starter.client.session import Session
from longhaul.starter.connection.connect import connect, let_go
from longhaul.stores.offload.session_blobs import digits_in
from tests.workflows.conftest import Stage
from tests.workflows.context.test_offloading import CHARS
from tests.workflows.incarnation.test_encrypted import master_key
from tests.workflows.operations import calls, results, until
from tests.workflows.tools import page_text

pytestmark = pytest.mark.server


@pytest.fixture(params=["in clear text", "encrypted"])
async def home(unserved: Stage, request: pytest.FixtureRequest) -> AsyncIterator[Stage]:
    if request.param == "in clear text":
        async with unserved.another_worker():
            yield unserved
        return
    settings = unserved.settings.model_copy(update={"master_key": SecretStr(master_key())})
    client = await connect(unserved.address, settings=settings)
    locked = replace(unserved, client=client, settings=settings)
    async with locked.another_worker():
        yield locked
    await let_go(client)


FETCHED = (calls("fetch", page=7, chars=CHARS), {"text": "Cut."})


async def fetched(home: Stage) -> tuple[Session, str]:
    """A session that keeps a whole output, and its result as the model reads it."""
    session = home.session(*FETCHED, offloader="blobs", tools=["fetch", "recall"])
    ((_, cut),) = results(await session.reply("Fetch page 7"))
    return session, cut


async def result_of(session: Session) -> str:
    found = [result async for message in session.context() for result in message.get_tool_results()]
    return found[0].get_text()


async def test_a_copy_reads_whole_outputs_also_when_its_original_is_deleted(home: Stage) -> None:
    session, cut = await fetched(home)

    copy = await session.stored.fork(f"{session.id}-copy")
    second = await copy.stored.fork(f"{session.id}-second")
    await session.stored.delete(terminate=True)
    own = await result_of(copy)
    asks = calls("recall", output=digits_in(own), offset=CHARS - 100)
    await copy.configure(model=home.script(*FETCHED, asks, {"text": "Read to the end."}))
    read = results(await copy.reply("What did it say at its end?"))

    assert read == [(ToolResultState.SUCCESS, page_text(7, CHARS)[-100:])]
    assert await copy.stored.whole_output(own) == page_text(7, CHARS)
    assert await second.stored.whole_output(await result_of(second)) == page_text(7, CHARS)
    assert own.partition("recall output=")[0] == cut.partition("recall output=")[0]
    assert "whole output" not in (await copy.status()).note


async def test_a_copy_of_a_deleted_sessions_name_reads_them_too(home: Stage) -> None:
    """Where sessions are encrypted, the key of that name was deleted."""
    session, _ = await fetched(home)
    copy = await session.stored.fork(f"{session.id}-copy")
    await copy.stored.delete(terminate=True)

    async def is_gone() -> bool:
        return not await copy.stored.is_known()

    await until(is_gone)
    again = await session.stored.fork(copy.id)

    assert await again.stored.whole_output(await result_of(again)) == page_text(7, CHARS)


async def test_who_takes_a_state_in_is_told_of_outputs_that_stay_behind(home: Stage) -> None:
    session, _ = await fetched(home)
    exported = await session.stored.export()
    other = home.session({"text": "Hm."}, offloader="blobs", tools=["fetch", "recall"])

    await other.stored.import_state(exported, note="moved")
    await session.stored.import_state(exported, note="put back")

    assert json.loads(exported)["session_id"] == session.id
    assert (await other.status()).note == (
        "moved; 1 whole output cannot be read here: left in the blobs of the session that made them"
    )
    assert (await session.status()).note == "put back"
