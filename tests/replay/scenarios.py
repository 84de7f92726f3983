"""What the stored histories are about: one short session each, played against a real server by `record`."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from longhaul.agent.operations.bodies import ConfirmResult, UserConfirmResultEvent
from longhaul.agent.values.conversation.messages import FinishedReason
from longhaul.agent.values.spec.agent_spec import ContextConfig
from longhaul.starter.client.client import Longhaul
from longhaul.starter.client.session import Session
from longhaul.starter.client.wire import Refused
from tests.activities.mcp.serving import small
from tests.workflows.operations import WORDY, calls, next_call, until

Line = dict[str, Any]
HUB = "jury"
HOST = "pier"
FOLDER = Path("/tmp/longhaul-demo")
"""Stands in the histories, and in digests of them, so it is the same on every machine; it must not exist."""


@dataclass(frozen=True)
class Scenario:
    script: tuple[Line, ...]
    play: Callable[[Session], Awaitable[None]]
    suggest_continue_as_new: int | None = None
    """The server suggests to continue as new from this many events on; None = its own limit."""
    spec: dict[str, Any] = field(default_factory=dict[str, Any])
    """What the agent has beside its model and its tools."""
    of_hub: bool = False
    """The history is that of the hub `HUB`, and not that of the session."""
    of_sub_agent: bool = False
    """It is that of the session's sub-agent `scout`, of the first call."""
    fallback: tuple[Line, ...] = ()
    """What the fallback model says; empty: the agent has none."""
    middlewares: str = ""
    """As LONGHAUL_MIDDLEWARES of the worker."""
    mcp: dict[str, Any] = field(default_factory=dict[str, Any])
    """As LONGHAUL_MCP of it."""


async def answer_only(session: Session) -> None:
    await session.reply("How high is the tide?", request_id="r-tide")


async def three_calls_with_approval(session: Session) -> None:
    waiting = await session.reply("Look around and tell Ana", request_id="r-look")
    (call,) = await session.pending()
    await session.confirm(call, allow=True, approver="bo")
    await session.wait(waiting.id)


async def one_list(session: Session) -> None:
    waiting = await session.reply("Plan the attic", request_id="r-attic")
    asked = await session.pending()
    assert [call.tool for call in asked] == ["plan_exit", "Bash", "Bash"]
    await session.confirm_all(asked, allow=True, approver="bo")
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


async def custom_agent(session: Session) -> None:
    await session.reply("say One two", request_id="r-say")
    waiting = await session.reply("send Ana", request_id="r-ana")
    (call,) = await session.pending()
    await session.confirm(call, allow=True, approver="bo")
    await session.wait(waiting.id)
    stopped = await session.reply("send Ben", request_id="r-ben")
    await session.interrupt("say Gone")
    await session.wait(stopped.id)


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


async def refused_by_model(session: Session) -> None:
    refused = await session.reply("Read page 7, then page 8", request_id="r-read")
    assert refused.finished_reason is FinishedReason.REFUSED
    await session.reply("Then page 9", request_id="r-then")


async def continue_as_new(session: Session) -> None:
    """Between two steps, and while a call waits; then a result from outside that a worker has to shorten."""
    waiting = await session.reply("Read, then tell Ana", request_id="r-read")
    for number in range(8):
        await session.observe(f"The clock strikes {number}")
    await session.confirm("call_3_0", allow=True)
    await session.wait(waiting.id)
    waiting = await session.reply("Send the teapot", request_id="r-teapot")
    await session.external_result(waiting.get_tool_calls()[-1].id, "delivered " * 310)
    await session.wait(waiting.id)


async def compressed(session: Session) -> None:
    await session.reply("Read all of it", request_id="r-read")
    await session.reply("And once more", request_id="r-again")
    config = ContextConfig(trigger_ratio=0.3, reserve_ratio=0.05)
    assert await session.compress_context(config, by="bo")


async def failed_over(session: Session) -> None:
    """Twice in one reply, the first time after a retry; the next reply has the first model's answer."""
    read = await session.reply("Read pages 7 and 8", request_id="r-read")
    then = await session.reply("And now?", request_id="r-now")
    assert [each.get_text_content() for each in (read, then)] == ["Read by another.", "Still read."]


async def another_incarnation(session: Session) -> None:
    await session.reply("How high is the tide?", request_id="r-tide")
    await asyncio.sleep(5)  # it is idle for two seconds, and closes
    await session.reply("How high is the tide?", request_id="r-tide")
    await session.reply("And now?", request_id="r-now")


async def two_replies(session: Session) -> None:
    """The first is prepared where an earlier incarnation is looked for, the second within the session's own task, where
    its files lie on no host."""
    await session.reply("Read page 7", request_id="r-read")
    await session.reply("And now?", request_id="r-now")


async def steered(session: Session) -> None:
    """Told something in between, paused and resumed, and interrupted where a hook says the last words."""
    waiting = await session.reply("Tell Ana", request_id="r-ana")
    await session.submit("And Ben", request_id="r-ben", when="now")
    await session.pause(why="lunch", by="bo")
    (call,) = await session.pending()
    await session.confirm(call, allow=True, approver="bo")
    await session.resume(by="bo")
    await next_call(session, call)
    await session.interrupt("Rather Cleo")
    await session.wait(waiting.id)
    await session.reply("Go on", request_id="r-on")


async def kept_server(session: Session) -> None:
    """A program that keeps state is asked again where it is kept, ends in the midst of a call, and begins again."""
    done = await session.reply("Note the weather", request_id="r-note")
    assert [result.state for result in done.get_tool_results()] == ["success", "success", "unknown", "success"]
    await session.reply("Once more", request_id="r-more")


async def noted(session: Session) -> None:
    """On a host each call goes to a queue: the first to the host's, the second to that of who keeps the server."""
    done = await session.reply("Note the weather", request_id="r-note")
    assert [result.state for result in done.get_tool_results()] == ["success", "success"]


async def unlisted_server(session: Session) -> None:
    """It says twice that it offers other tools, and gives no list of them: the reply goes on with the old one."""
    await session.reply("Let it grow", request_id="r-grow")


async def structured(session: Session) -> None:
    """A value that does not fit, one that does, and then words again."""
    await session.reply("How high?", request_id="r-form", structured_model=FORM)
    await session.reply("Thanks", request_id="r-thanks")


FORM = {"type": "object", "properties": {"height": {"type": "number"}}, "required": ["height"]}


async def subagents(session: Session) -> None:
    """They have the model of the session, and its script: what they call is no tool of theirs."""
    await session.reply("Have it seen to", request_id="r-see")


async def task_seconds(session: Session) -> None:
    """A sub-agent waits for somebody when its time is over."""
    reply = await session.submit("Have it seen to", request_id="r-see")
    await until(lambda: has_ended(session, reply))
    told = (await session.wait(reply)).get_tool_results()[0].get_text()
    assert "its time was over" in told


async def stop_background(session: Session) -> None:
    """A command and a sub-agent, and that again; the next reply reads how they have ended."""
    await session.reply("Count, and have it seen to", request_id="r-count")
    assert await session.stop_background(by="bo") == {FIRST_CALL: "stopped", "call_0_1": "interrupted"}
    assert await session.stop_background(FIRST_CALL, by="cleo") == {FIRST_CALL: "stopped"}
    await session.reply("And?", request_id="r-and")


async def background_agents(session: Session) -> None:
    """Told something while it works, heard of when the lead is idle. It has the model of the lead, and its script."""
    await session.reply("Have it seen to", request_id="r-see")

    async def woken() -> bool:
        return sum(event.type == "REPLY_END" for event in (await session.events()).events) == 2

    await until(woken)


async def budget_came_back(session: Session) -> None:
    """What is put aside for a sub-agent in the background is missing, until it has ended and enough of it is left."""
    await session.reply("Have it seen to", request_id="r-see")
    reply = await session.submit("And the tide?", request_id="r-tide")
    await until(lambda: has_ended(session, reply))


async def budget_asked(session: Session) -> None:
    """The same where nothing of it is left, until somebody raises the budget."""
    await session.reply("Have it seen to", request_id="r-see")
    reply = await session.submit("And the tide?", request_id="r-tide")

    async def asks() -> bool:
        status = await session.status()
        return bool(status.budget and status.budget.asks) and all(child.outcome for child in status.children)

    await until(asks)
    await session.change_budget({"calls": 1}, request_id="r-raise")
    await until(lambda: has_ended(session, reply))


async def has_ended(session: Session, reply: str) -> bool:
    return (await session.result(reply)).status == "finished"


async def hub(session: Session) -> None:
    """Two members hear an announcement and each other, and leave with the end of the hub."""
    client = session._asking.client  # noqa: SLF001  the recorder's own
    app = Longhaul(client, session._settings)  # noqa: SLF001
    other = app.session("other", user="ana", agent=session.spec)
    async with app.hub(HUB, {"ana": session, "ben": other}, announcement="Speak in turn.") as jury:
        for member, request in ((other, "r-other"), (session, "r-own")):
            await jury.agents(member)[0].reply(request_id=request)
    await client.get_workflow_handle(jury.workflow_id).result()


TELL_ANA = calls("send", to="Ana", text="the tide is high")

GIVES_A_TASK: tuple[Line, ...] = (
    {"tool_calls": [{"name": "Agent", "input": {"agent": "scout", "task": "look"}}]},
    {"text": "It is seen to."},
)
WITH_SCOUT: dict[str, Any] = {"tools": ("fetch",), "agents": {"scout": {"tools": ("fetch",)}}}
SEES_TO_THE_TIDE: tuple[Line, ...] = (
    {
        "tool_calls": [{"name": "Agent", "input": {"agent": "scout", "task": "look", "run_in_background": True}}],
        "delay_ms": 1_500,
    },
    {"text": "I wait."},
    {"text": "Two metres."},
)


def short_of_calls(most: int, of_scout: int) -> dict[str, Any]:
    return {
        "tools": ("fetch",),
        "agents": {"scout": {"tools": ("fetch",), "budget": {"max_calls": of_scout}}},
        "budget": {"max_calls": most},
    }


ON_HOST = {"root": f"{FOLDER}/workspace", "place": "local", "host": HOST}
HARBOUR = "mcp__harbour"
KEPT: dict[str, Any] = {"harbour": {"mcp_config": small(), "is_stateful": True}}
UNASKED = {"rules": ({"tool_name": HARBOUR},)}
WITH_HARBOUR: dict[str, Any] = {"tools": (), "mcps": ({"name": "harbour"},), "permission": UNASKED}
FIRST_CALL = "call_0_0"
"""The id of the first call of a scripted model."""

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
            {"text": "Delivered."},
        ),
        three_calls_with_approval,
    ),
    "one_list": Scenario(
        (
            {
                "tool_calls": [
                    {"name": "plan_exit", "input": {"plan": "# The attic"}},
                    {"name": "Bash", "input": {"command": "mkdir attic"}},
                    {"name": "todo_write", "input": {"todos": []}},
                    {"name": "Bash", "input": {"command": "mkdir attic/chest"}},
                ]
            },
            {"text": "Made."},
        ),
        one_list,
        spec={"permission": {"mode": "plan"}, "tools": ("plan_exit", "todo_write", "Bash")},
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
    "custom_agent": Scenario((), custom_agent, spec={"custom_agent": "teller", "tools": ("send",)}),
    "refusals": Scenario((TELL_ANA, {"text": "Delivered."}), refusals),
    "refused_by_model": Scenario(
        (calls("fetch", page=7), {"text": "Not that.", "stop_reason": "refusal"}, {"text": "Read."}), refused_by_model
    ),
    "continue_as_new": Scenario(
        (
            *(calls("fetch", page=page) for page in range(3)),
            TELL_ANA,
            {"text": "Delivered."},
            calls("courier", parcel="teapot"),
            {"text": "It came."},
        ),
        continue_as_new,
        suggest_continue_as_new=40,
    ),
    "compressed": Scenario(
        (*(calls("fetch", page=page, chars=700) for page in range(4)), {"text": "Read."}, {"text": "Read again."}),
        compressed,
        spec={"model_config": {"context_length": 2_200, "max_output_tokens": 200}, "system_prompt": "Read."},
    ),
    "failed_over": Scenario(
        (
            calls("fetch", page=7),
            {"faults": [{"kind": "overloaded", "retry_after": 0.01}, {"kind": "auth"}]},
            {"faults": [{"kind": "auth"}]},
            {"text": "Still read."},
        ),
        failed_over,
        fallback=({}, calls("fetch", page=8), {"text": "Read by another."}, {}),
    ),
    "within_the_task": Scenario((calls("fetch", page=7), {"text": "Read."}, {"text": "Still read."}), two_replies),
    "on_a_host": Scenario(
        ({"text": "Two metres."}, {"text": "Still two."}),
        two_replies,
        spec={"workspace": ON_HOST},
    ),
    "fused_reads": Scenario(
        (calls("Glob", pattern="*.md"), {"text": "None."}, {"text": "Still none."}),
        two_replies,
        spec={
            "tools": ("Glob",),
            "permission": {"rules": WORDY},
        },
    ),
    "reads_along": Scenario(
        (calls("Glob", pattern="*.md"), calls("Glob", pattern="*.rst"), {"text": "None."}, {"text": "Still none."}),
        two_replies,
        spec={"tools": ("Glob",)},
    ),
    "steered": Scenario(
        (TELL_ANA, calls("send", to="Ben"), {"text": "Cleo it is."}, {"text": "Gone on."}),
        steered,
        spec={"tools": ("send",)},
        middlewares="tests.workflows.middlewares:Parting",
    ),
    "kept_server": Scenario(
        (
            *(calls(f"{HARBOUR}__note", text=text) for text in ("fog", "rain")),
            calls(f"{HARBOUR}__end"),
            calls(f"{HARBOUR}__note", text="sun"),
            {"text": "Noted."},
            calls(f"{HARBOUR}__note", text="hail"),
            {"text": "Noted, too."},
        ),
        kept_server,
        spec=WITH_HARBOUR,
        mcp=KEPT,
    ),
    "kept_server_on_a_host": Scenario(
        (*(calls(f"{HARBOUR}__note", text=text) for text in ("fog", "rain")), {"text": "Noted."}),
        noted,
        spec={**WITH_HARBOUR, "workspace": ON_HOST},
        mcp=KEPT,
    ),
    "unlisted_server": Scenario(
        (*(calls(f"{HARBOUR}__grow") for _ in range(2)), calls(f"{HARBOUR}__add", a=1, b=2), {"text": "The same."}),
        unlisted_server,
        spec=WITH_HARBOUR,
        mcp={"harbour": {"mcp_config": small(GROWN=f"{FOLDER}/grown", UNLISTED=f"{FOLDER}/grown")}},
    ),
    "structured": Scenario(
        (
            {"text": "Two metres."},
            calls("generate_response", height="two"),
            calls("generate_response", height=2),
            {"text": "Any time."},
        ),
        structured,
    ),
    "subagents": Scenario(
        (
            {
                "tool_calls": [
                    {"name": "Agent", "input": {"agent": "scout", "task": task}} for task in ("look", "count")
                ]
            },
            {"text": "It is seen to."},
        ),
        subagents,
        spec=WITH_SCOUT,
    ),
    "told_by_result": Scenario(GIVES_A_TASK, subagents, spec=WITH_SCOUT),
    "closing_with_the_task": Scenario(GIVES_A_TASK, subagents, spec=WITH_SCOUT, of_sub_agent=True),
    "background_agents": Scenario(
        (
            {"tool_calls": [{"name": "Agent", "input": {"agent": "scout", "task": "look", "run_in_background": True}}]},
            calls("AgentSend", id="call_0_0", message="Look well."),
            {"text": "I wait."},
            {"text": "It is seen to."},
        ),
        background_agents,
        spec=WITH_SCOUT,
    ),
    "task_seconds": Scenario(
        (GIVES_A_TASK[0], TELL_ANA, {"text": "It is late."}),
        task_seconds,
        spec={"tools": ("fetch",), "agents": {"scout": {"tools": ("send",), "task_seconds": 2}}},
        of_sub_agent=True,
    ),
    "stop_background": Scenario(
        (
            {
                "tool_calls": [
                    {"name": "Bash", "input": {"command": "sleep 600", "run_in_background": True}},
                    {"name": "Agent", "input": {"agent": "scout", "task": "look", "run_in_background": True}},
                ]
            },
            {"tool_calls": [{"name": "sleep", "input": {"for": "1h"}}]},
            {"text": "I wait."},
            {"text": "So be it."},
        ),
        stop_background,
        spec={"tools": ("Bash",), "agents": {"scout": {"tools": ("sleep",)}}, "permission": {"mode": "bypass"}},
    ),
    "budget_asked": Scenario(SEES_TO_THE_TIDE, budget_asked, spec=short_of_calls(4, of_scout=2)),
    "budget_came_back": Scenario(SEES_TO_THE_TIDE, budget_came_back, spec=short_of_calls(5, of_scout=3)),
    "hub": Scenario(({"text": "Two metres."},), hub, of_hub=True),
    "hub_member": Scenario(({"text": "Two metres."},), hub),
    "another_incarnation": Scenario(
        ({"text": "Two metres."}, {"text": "Three."}), another_incarnation, spec={"idle_close_seconds": 2}
    ),
}
