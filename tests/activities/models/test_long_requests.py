"""What one message more in a request costs: counted in calls of Python functions, which no busy machine changes."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import pytest

from longhaul.agent.values.messages import AssistantMsg, Msg, TextBlock, ToolCallBlock, UserMsg
from tests.activities.models.requests import Caller, returned
from tests.activities.models.stopping import APIS, CLAUDE, RESPONSES, stopping
from tests.activities.models.wire import Answer, Wire

MOST_CALLS = 60
"""Each message: some 38 of ours. The SDKs add 33 at Anthropic, 840 at Chat Completions and 2,840 at Responses."""


@pytest.mark.parametrize("model", APIS)
async def test_an_sdk_looks_at_no_message(model: str, wire: Wire, by_wire: Caller) -> None:
    reason = {CLAUDE: "end_turn", RESPONSES: "completed"}.get(model, "stop")
    wire.answers = [Answer(stopping(model, reason)) for _ in range(4)]
    counts = []
    for steps in (1, 1, 100, 200):  # the first one imports
        with counted_calls() as counted:
            await by_wire.call(model, conversation(steps))
        counts.append(counted[0])

    assert (counts[3] - counts[2]) / 200 < MOST_CALLS
    assert [len(body.get("messages") or body["input"]) > 100 for body in wire.bodies[2:]] == [True, True]


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
