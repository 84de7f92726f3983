"""What one message more in a request costs: counted in calls of Python functions, which no busy machine changes."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import pytest

from longhaul.agent.values.conversation.messages import AssistantMsg, Msg, TextBlock, ToolCallBlock, UserMsg
from tests.activities.models.replies.stopping import APIS, CLAUDE, RESPONSES, stopping
from tests.activities.models.sample_requests import Caller, returned
from tests.activities.models.wire import Answer, Wire

MOST_CALLS_ONCE = 80
"""Each message, the first time that it is sent: some 65 of ours."""
MOST_CALLS_AGAIN = 14
"""Each message, with every request behind that one. The SDKs' own methods make 33 (Anthropic), 840 (Chat Completions)
and 2,840 (Responses)."""


@pytest.mark.parametrize("model", APIS)
async def test_a_message_is_written_once_however_often_it_is_sent(model: str, wire: Wire, by_wire: Caller) -> None:
    reason = {CLAUDE: "end_turn", RESPONSES: "completed"}.get(model, "stop")
    wire.answers = [Answer(stopping(model, reason)) for _ in range(6)]
    short, long = conversation(101), conversation(201)
    counts = []
    for messages in (conversation(1), short[:-2], long[:-2], short, long):  # the first one imports
        with counted_calls() as counted:
            await by_wire.call(model, messages)
        counts.append(counted[0])

    assert (counts[2] - counts[1]) / 200 < MOST_CALLS_ONCE
    assert (counts[4] - counts[3]) / 200 < MOST_CALLS_AGAIN, counts
    assert [len(body.get("messages") or body["input"]) > 100 for body in wire.bodies[1:]] == [True] * 4


@pytest.mark.parametrize("model", APIS)
async def test_what_was_kept_of_a_conversation_changes_no_request(model: str, wire: Wire, by_wire: Caller) -> None:
    """Shorter, longer, answered late, with other words in its midst: each is sent as if it were the first."""
    wire.answers = [Answer(stopping(model, {CLAUDE: "end_turn", RESPONSES: "completed"}.get(model, "stop")))] * 12
    messages = conversation(3)
    open_call = [*messages[:-1], UserMsg("user", "Go on")]
    changed = [*messages[:2], UserMsg("user", "Wait"), *messages[2:]]
    for variant in (messages[:3], messages, messages[:4], open_call, [*open_call, messages[-1]], changed):
        await by_wire.call(model, variant)
        await by_wire.call(model, [message.model_copy() for message in variant])

    for kept, again in zip(wire.bodies[::2], wire.bodies[1::2], strict=True):
        assert kept == again


def conversation(steps: int) -> list[Msg]:
    messages: list[Msg] = [UserMsg("user", "Begin")]
    for step in range(steps):
        call = ToolCallBlock(id=f"call-{step}", name="look", input=f'{{"place": "hill {step}"}}')
        messages += [AssistantMsg("crane", [TextBlock(text="I look."), call]), returned(call.id, "look", "A hill.")]
    return messages


@contextmanager
def counted_calls() -> Iterator[list[int]]:
    """Of functions, in this thread and inside: the wire's own, which does not grow with messages, among them."""
    counted = [0]

    def count(_frame: FrameType, event: str, _argument: object) -> None:
        counted[0] += event == "call"

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        yield counted
    finally:
        sys.setprofile(before)
