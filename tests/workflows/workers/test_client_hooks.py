"""Hooks of a client around what it asks of live sessions, and hooks of a worker around what it does for them."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from longhaul.agent.values.conversation.messages import Msg, UserMsg
from longhaul.agent.views.event_types import AgentEvent
from longhaul.starter.client.client import Longhaul
from longhaul.starter.client.session import Session
from tests.limits import SURE_SECONDS
from tests.workflows.conftest import TOOLS, Stage
from tests.workflows.operations import calls

pytestmark = pytest.mark.server

HERE = "tests.workflows.worker_hooks"


async def test_what_a_client_says_observes_and_prints_goes_through_its_hooks(stage: Stage) -> None:
    app = Longhaul(stage.client, stage.settings)
    line = {"text": "It is sk-tide.", "expect": {"last_contains": "Please: How is the tide?"}}
    session = app.session(f"{stage.name}-hooked", agent=stage.session(line).spec)
    other = app.session(f"{stage.name}-plain", agent=stage.session({"text": "Low."}).spec)
    printed: list[str] = []

    def polite(_: Session, given: Any) -> Any:
        return f"Please: {given}"

    def redacted(_: Session, event: AgentEvent) -> AgentEvent:
        return event.model_copy(update={"delta": event.delta.replace("sk-tide", "…"), "seq": 99})

    async def signed(_: Session, given: Any, came: Msg) -> Msg:
        return came.model_copy(update={"metadata": {"signed": True}})

    session.hooks.register("pre_reply", "polite", polite)
    session.hooks.register("post_reply", "signed", signed)
    session.hooks.register("pre_observe", "by", lambda _, given: UserMsg("keeper", str(given)))
    app.hooks.register("pre_print", "redacted", redacted)
    app.hooks.register("post_print", "noted", lambda _, event, came: printed.append(event.delta))

    await session.observe("The moon is full.")
    answer = await session.reply("How is the tide?")
    heard = [event async for event in session.reply_stream(None, request_id="again")]
    events = [event async for event in _until_end(session)]
    await other.reply("How?")

    assert (answer.get_text_content(), answer.metadata) == ("It is sk-tide.", {"signed": True})
    said = [message async for message in session.transcript()]
    assert (said[0].name, said[0].get_text_content()) == ("keeper", "The moon is full.")
    assert heard[-1].type == "REPLY_END"
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert "It is …." in [event.delta for event in events]
    assert [delta for delta in printed if "tide" in delta or "…" in delta] == ["It is …."]
    first, *_ = [each.get_text_content() async for each in other.transcript()]
    assert first == "How?"


async def _until_end(session: Session) -> AsyncIterator[AgentEvent]:
    async for event in session.follow(live=False):
        yield event
        if event.type == "REPLY_END":
            return


async def test_a_worker_asks_functions_before_and_after_what_it_does(unserved: Stage) -> None:
    unserved.settings.tools = f"{TOOLS},tests.workflows.middlewares"
    unserved.settings.middlewares = f"{HERE}:hooks"
    session = unserved.session(
        {**calls("whoami", about="tide"), "expect": {"system_contains": "Be brief.", "last_contains": "It is noon."}},
        {"text": "Low.", "expect": {"last_contains": "(heard)"}},
        tools=["whoami"],
    )
    async with unserved.another_worker():
        answer = await session.reply("How is the tide?")

    assert (answer.error, answer.get_text_content()) == (None, "Low, says lamp.")


def redacted(_: Session, given: Any) -> Any:
    if isinstance(given, Msg):
        return UserMsg(given.name, given.get_text_content().replace("4711", "…"))
    return given.replace("4711", "…")


async def in_a_reply(session: Session) -> None:
    await session.reply("It is 4711")


async def in_a_stream(session: Session) -> None:
    assert [event async for event in session.reply_stream(UserMsg("ana", "It is 4711"))]


async def submitted(session: Session) -> None:
    await session.wait(await session.submit("It is 4711"))


async def with_an_interrupt(session: Session) -> None:
    reply_id = await session.submit("Go")
    async with asyncio.timeout(SURE_SECONDS):
        while (await session.status()).reply_id != reply_id:  # noqa: ASYNC110  it tells nobody
            await asyncio.sleep(0.02)
        await session.interrupt("It is 4711")
        await session.wait(reply_id)
        while (await session.status()).status != "idle":  # noqa: ASYNC110  it tells nobody
            await asyncio.sleep(0.02)


@pytest.mark.proves("C2")
@pytest.mark.parametrize("way", [in_a_reply, in_a_stream, submitted, with_an_interrupt])
async def test_whichever_way_words_come_in_the_hooks_see_them_once(
    stage: Stage, way: Callable[[Session], Awaitable[None]]
) -> None:
    session = stage.session({"text": "Noted.", "delay_ms": 300}, {"text": "Noted."})
    asked: list[Any] = []
    came: list[str] = []
    session.hooks.register("pre_reply", "redacted", redacted)
    session.hooks.register("pre_reply", "asked", lambda _, given: asked.append(given))
    session.hooks.register("post_reply", "came", lambda _, given, message: came.append(message.get_text_content()))

    await way(session)

    said = [m.get_text_content() async for m in session.transcript() if m.role == "user"]
    assert ("It is …" in said, "It is 4711" in said) == (True, False)
    assert len(asked) == (2 if way is with_an_interrupt else 1)
    assert len(came) == 1
