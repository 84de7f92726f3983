"""What the stored histories are about: one short session each, played against a real server by `record`."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from agent.bodies import ConfirmResult, UserConfirmResultEvent
from starter.session import Session
from starter.wire import Refused
from tests.workflows.letters import calls, next_call

Line = dict[str, Any]


@dataclass(frozen=True)
class Scenario:
    script: tuple[Line, ...]
    play: Callable[[Session], Awaitable[None]]
    suggest_roll_over: int | None = None
    """The server suggests to continue as new from this many events on; None = its own limit."""


async def answer_only(session: Session) -> None:
    await session.reply("How high is the tide?", request_id="r-tide")


async def three_calls_with_approval(session: Session) -> None:
    waiting = await session.reply("Look around and tell Ana", request_id="r-look")
    (call,) = await session.pending()
    await session.confirm(call, allow=True, approver="bo")
    await session.wait(waiting.id)


async def denial(session: Session) -> None:
    waiting = await session.reply("Tell Ana", request_id="r-ana")
    await session.confirm("call_0_0", allow=False, reason="Ana sleeps", approver="bo")
    await session.wait(waiting.id)


async def edit_and_rules(session: Session) -> None:
    waiting = await session.reply("Make folders", request_id="r-folders")
    (first,) = await session.pending()
    await session.confirm(first, allow=True, rules=True)
    second = await next_call(session, first)
    await session.confirm(second, allow=True, input={"command": "mkdir cellar"}, approver="bo")
    await session.wait(waiting.id)


async def external(session: Session) -> None:
    waiting = await session.reply("Send the teapot", request_id="r-teapot")
    await session.external_result("call_0_0", {"delivered": "at noon"}, by="the courier")
    await session.wait(waiting.id)


async def interrupt(session: Session) -> None:
    waiting = await session.reply("Tell Ana", request_id="r-ana")
    await session.interrupt("No, tell nobody")
    await session.wait(waiting.id)
    await session.reply("Good?", request_id="r-good")


async def refusals(session: Session) -> None:
    waiting = await session.reply("Tell Ana", request_id="r-ana")
    for attempt in (session.confirm("call_9_9", allow=True), session.submit("Tell Bo", request_id="r-ana")):
        try:
            await attempt
        except Refused:
            continue
        raise AssertionError("that was to be refused")
    block = waiting.get_tool_calls()[0]
    answer = ConfirmResult(confirmed=True, tool_call=block)
    await session.reply(UserConfirmResultEvent(reply_id=waiting.id, confirm_results=(answer,)))


async def roll_over(session: Session) -> None:
    """Twice: between two steps, and while a call waits."""
    waiting = await session.reply("Read, then tell Ana", request_id="r-read")
    for number in range(8):
        await session.observe(f"The clock strikes {number}")
    await session.confirm("call_3_0", allow=True)
    await session.wait(waiting.id)


TELL_ANA = calls("send", to="Ana", text="the tide is high")

SCENARIOS: dict[str, Scenario] = {
    "answer_only": Scenario(({"text": "Two metres."},), answer_only),
    "three_calls_with_approval": Scenario(
        (
            {
                "text": "I look.",
                "tool_calls": [
                    {"name": "fetch", "input": {"page": 7}},
                    {"name": "Bash", "input": {"command": "ls"}},
                    {"name": "send", "input": {"to": "Ana"}},
                ],
            },
            {"text": "Told."},
        ),
        three_calls_with_approval,
    ),
    "denial": Scenario((TELL_ANA, {"text": "I wait."}), denial),
    "edit_and_rules": Scenario(
        (
            calls("Bash", command="mkdir -p attic"),
            calls("Bash", command="mkdir -p attic"),
            calls("Bash", command="mkdir loft"),
            {"text": "Made."},
        ),
        edit_and_rules,
    ),
    "external": Scenario((calls("courier", parcel="teapot"), {"text": "It came."}), external),
    "interrupt": Scenario((TELL_ANA, {"text": "I tell nobody."}, {"text": "Good."}), interrupt),
    "refusals": Scenario((TELL_ANA, {"text": "Told."}), refusals),
    "roll_over": Scenario(
        (*(calls("fetch", page=page) for page in range(3)), TELL_ANA, {"text": "Told."}),
        roll_over,
        suggest_roll_over=30,
    ),
}
