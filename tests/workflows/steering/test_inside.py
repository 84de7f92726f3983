"""Tools that a session answers itself, on a real server: no activity, and people see what came of it."""

import json

import pytest

from longhaul.starter.client.session import Session
from longhaul.workflows.contract import PendingCall
from tests.workflows.conftest import Stage
from tests.workflows.listener import asks_for, listening, says
from tests.workflows.operations import calls, until

pytestmark = pytest.mark.server


@pytest.mark.proves("E10")
async def test_a_list_of_tasks_costs_no_activity_and_is_seen_everywhere(stage: Stage) -> None:
    listed = [{"content": "Read", "status": "completed"}, {"content": "Fix", "status": "in_progress"}]
    session = stage.session(
        calls("todo_write", todos=listed),
        calls("todo_write", todos=[{"content": "Read"}]),
        calls("fetch", page=1),
        {"text": "Done.", "expect": {"last_contains": "page 1"}},
        tools=["todo_write", "fetch"],
    )

    done = await session.reply("Go")

    assert (done.error, done.get_text_content()) == (None, "Done.")
    started = await stage.scheduled(session)
    assert "todo_write" not in started
    assert started.count("fetch") == 1
    results = [block for message in [m async for m in session.transcript()] for block in message.get_tool_results()]
    assert results[0].get_text() == "1 of 2 tasks done:\n1. [x] Read\n2. [>] Fix"
    assert "'todos[0].status' is missing" in results[1].get_text()
    status = await session.status()
    assert (status.tasks_done, status.tasks_total, status.current_task) == (1, 2, "Fix")
    assert [task.subject for task in (await session.state()).tasks_context.tasks] == ["Read", "Fix"]
    await session.stored.edit("tasks_context.tasks[1].state", "completed")
    assert (await session.status()).tasks_done == 2
    names = [event.name for event in (await session.events()).events if event.type == "CUSTOM"]
    assert names.count("tasks_changed") == 1


@pytest.mark.proves("E9")
async def test_a_plan_goes_through_the_inbox_and_only_then_is_something_changed(stage: Stage) -> None:
    plan = "# Plan\n\n1. Write the letter.\n"
    session = stage.session(
        calls("plan_enter"),
        calls("Write", file_path="letter.txt", content="too early"),
        calls("Write", file_path="plans/PLAN.md", content=plan),
        calls("Bash", command="touch early; ls"),
        calls("plan_exit", plan=plan),
        calls("plan_exit", plan=plan + "2. Read it.\n"),
        calls("Write", file_path="letter.txt", content="in time"),
        {"text": "Done.", "expect": {"last_contains": "Created"}},
        tools=["plan_enter", "plan_exit", "Write", "Bash"],
        permission={"mode": "bypass"},
    )

    waiting = await session.reply("Write a letter")

    (asked,) = await session.pending()
    assert waiting.metadata["waiting_for"]
    assert (asked.tool, json.loads(asked.input)) == ("plan_exit", {"plan": plan})
    assert (await session.status()).mode == "plan"
    assert [path.name for path in stage.workspace.iterdir() if path.name != ".longhaul"] == ["plans"]
    assert (stage.workspace / "plans" / "PLAN.md").read_text() == plan
    await session.confirm(asked, allow=False, reason="and who reads it?", approver="ana")
    second = await until_waiting(session)
    await session.confirm(second, allow=True, input={"plan": "Write it, and read it aloud."}, approver="ana")
    done = await session.wait(waiting.id)

    assert (done.error, done.get_text_content()) == (None, "Done.")
    assert (stage.workspace / "letter.txt").read_text() == "in time"
    results = [block for message in [m async for m in session.transcript()] for block in message.get_tool_results()]
    states = [result.state.value for result in results]
    assert states == ["success", "denied", "success", "denied", "denied", "success", "success"]
    assert "plan mode is on" in results[1].get_text()
    assert "and who reads it?" in results[4].get_text()
    assert results[5].get_text().endswith("approved by ana; carry out this one:\n\nWrite it, and read it aloud.")
    assert (await session.status()).mode == "bypass"


async def until_waiting(session: Session) -> PendingCall:
    """The call that waits next."""

    async def waits() -> bool:
        return bool(await session.pending())

    await until(waits)
    (call,) = await session.pending()
    return call


@pytest.mark.proves("A7", "E11")
async def test_the_model_is_sent_the_tools_of_active_groups_alone(stage: Stage) -> None:
    async with listening(lambda call: _TURNS[call]) as model:
        session = stage.session(
            tools=["fetch"],
            tool_groups={"post": {"tools": ["send", "courier"], "description": "To write to people."}},
            **model.config,
        )

        await session.reply("Hello")
        before = model.heard["tools"]
        done = await session.reply("Write to Ana")

    assert done.get_text_content() == "I can write now."
    names = [[tool["function"]["name"] for tool in tools] for tools in (before, model.heard["tools"])]
    always = ["reset_equipped_tools", "call_tool"]
    assert names == [["fetch", *always], ["fetch", "send", "courier", *always]]
    assert "- post: To write to people. (send, courier)" in before[1]["function"]["description"]
    assert before[1] == model.heard["tools"][3]
    assert (await session.state()).tool_context.activated_groups == ("post",)


_TURNS = [
    says("Hello."),
    asks_for("send", "c1", to="Ana"),
    asks_for("reset_equipped_tools", "c2", to_activate=["post"]),
    says("I can write now."),
]
