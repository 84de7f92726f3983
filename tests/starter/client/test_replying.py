"""Whoever waits for a reply in Python reads in the log what keeps it."""

import logging
from collections.abc import Iterator
from typing import Any, cast

import pytest

from longhaul.agent.values.conversation.messages import AssistantMsg
from longhaul.starter.client.reading.event_reader import message_of
from longhaul.starter.client.reading.glance import Moves
from longhaul.starter.client.reading.live_stream import LiveStream
from longhaul.workflows.contract import PendingCall, ReplyResult

DONE = ReplyResult(status="finished", message=AssistantMsg("mason", "Done."))
WORKING = ReplyResult(status="working")
NO_TOOL = ReplyResult(status="working", lacking="no tool is named 'fetsh' on the workers that were asked")
NO_SECRET = ReplyResult(status="working", lacking="no secret is\nnamed 'K' on the workers that were asked")


class Silent:
    """A stream that says nothing."""

    heard = reached = silent = False

    async def reach(self, *, guess: bool = False) -> bool:
        return guess

    async def pass_over(self, _ends: Any) -> bool:
        return True

    async def rest(self, _seconds: float, _ends: Any) -> bool:
        return True

    async def aclose(self) -> None:
        pass


class Still:
    async def note(self) -> None:
        pass


async def nobody_asks() -> list[PendingCall]:
    return []


async def test_what_the_workers_lack_is_logged_once_for_each_thing(caplog: pytest.LogCaptureFixture) -> None:
    answers: Iterator[ReplyResult] = iter([WORKING, NO_TOOL, NO_TOOL, NO_SECRET, WORKING, DONE])

    async def result(_reply_id: str) -> ReplyResult:
        return next(answers)

    with caplog.at_level(logging.WARNING):
        message = await message_of("r-1", result, cast(LiveStream, Silent()), cast(Moves, Still()), nobody_asks)

    assert message.get_text_content() == "Done."
    assert [record.getMessage() for record in caplog.records] == [
        "reply r-1 waits for a worker that can continue: no tool is named 'fetsh' on the workers that were asked",
        "reply r-1 waits for a worker that can continue: no secret is named 'K' on the workers that were asked",
    ]
