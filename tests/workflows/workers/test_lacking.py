"""What no worker has is said within five seconds, by name, while the session goes on asking.

The seconds begin when a worker has taken the message: it may first go to one that has just left, and come back when its
time is up."""

import time
from typing import Any

import pytest

from longhaul.agent.values.conversation.messages import ToolResultState
from longhaul.starter.client.session import Session
from longhaul.starter.render_session import head
from tests.limits import usual
from tests.workflows.conftest import Stage
from tests.workflows.operations import calls, results, until

pytestmark = [pytest.mark.server, pytest.mark.alone]

SECONDS = 5.0


async def said(session: Session) -> str:
    """What it waits for, as soon as it says so."""

    async def lacks() -> bool:
        return (await session.status()).lacking != ""

    await until(lacks)
    return (await session.status()).lacking


async def page(stage: Stage, session: Session) -> str:
    """What Temporal's Web UI shows of it."""
    return str(await stage.handle(session).query("__temporal_workflow_metadata"))


@pytest.mark.proves("E12")
async def test_a_reply_that_waits_for_a_tool_says_which_one(unserved: Stage) -> None:
    unable = unserved.with_settings(tools="")
    session = unserved.session({"text": "Here I am."}, tools=("fetch",))
    async with unable.another_worker():
        reply = await session.submit("Are you there?")
        began = time.monotonic()
        lacking = await said(session)
        took = time.monotonic() - began
        standing = await session.result(reply)
        shown, seen = await page(unserved, session), head(await session.status()).plain
        async with unserved.another_worker():
            done = await session.wait(reply)
            after = (await session.status()).lacking

    assert took < usual(SECONDS)
    assert "'fetch'" in lacking
    assert "(worker " in lacking
    assert f"waits for a worker that can continue: {lacking}" in seen
    assert "waits for a worker that can continue: `" in shown
    assert "fetch" in shown
    assert (standing.status, standing.lacking) == ("working", lacking)
    assert (done.get_text_content(), after) == ("Here I am.", "")


async def test_a_once_call_that_waits_for_its_tool_says_so_and_then_runs_one_time(unserved: Stage) -> None:
    free: dict[str, Any] = {"tools": ("send",)}
    session = unserved.session(calls("send", to="Ana", text="Hi"), {"text": "Sent."}, **free)
    async with unserved.another_worker():
        waiting = await session.reply("Send it")
        (call,) = await session.pending()
    async with unserved.with_settings(tools="").another_worker():
        await session.confirm(call, allow=True)
        began = time.monotonic()
        lacking = await said(session)
        took = time.monotonic() - began
        async with unserved.another_worker():
            done = await session.wait(waiting.id)
            after = (await session.status()).lacking

    assert took < usual(SECONDS)
    assert lacking.startswith("this worker has no tool 'send'")
    assert results(done) == [(ToolResultState.SUCCESS, "sent 'Hi' to Ana")]
    assert (done.get_text_content(), after) == ("Sent.", "")


async def test_nothing_is_written_where_the_workspace_was_a_moment_ago(stage: Stage) -> None:
    """A mount that drops: the marker was read when the call was looked at."""
    session = stage.session(calls("Write", file_path="new.txt", content="tide"), {"text": "Written."}, tools=("Write",))
    waiting = await session.reply("Write it")
    (call,) = await session.pending()
    away = stage.workspace.with_name("away")
    stage.workspace.rename(away)

    await session.confirm(call, allow=True)
    lacking = await said(session)
    appeared = stage.workspace.exists()
    away.rename(stage.workspace)
    done = await session.wait(waiting.id)

    assert "does not see the session's workspace: no marker" in lacking
    assert not appeared
    assert (done.get_text_content(), (stage.workspace / "new.txt").read_text()) == ("Written.", "tide")
