"""Hooks of a client around what it asks of live sessions, and hooks of a worker around what it does for them."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from agent.event import AgentEvent
from agent.messages import Msg, UserMsg
from starter.client import Longhaul
from starter.session import Session
from tests.workflows.conftest import TOOLS, Stage
from tests.workflows.letters import calls

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
