"""Tools that a session answers itself, on a real server: no activity, and people see what came of it."""

import pytest

from tests.workflows.conftest import Stage
from tests.workflows.letters import calls

pytestmark = pytest.mark.server


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
    events = [event async for event in stage.handle(session).fetch_history_events()]
    started = [
        event.activity_task_scheduled_event_attributes.activity_type.name
        for event in events
        if event.HasField("activity_task_scheduled_event_attributes")
    ]
    assert "todo_write" not in started
    assert started.count("fetch") == 1
    results = [block for message in [m async for m in session.transcript()] for block in message.get_tool_results()]
    assert results[0].get_text() == "1 of 2 tasks done:\n1. [x] Read\n2. [>] Fix"
    assert "todos.0: 'status' is missing" in results[1].get_text()
    status = await session.status()
    assert (status.tasks_done, status.tasks_total, status.current_task) == (1, 2, "Fix")
    assert [task.subject for task in (await session.state()).tasks_context.tasks] == ["Read", "Fix"]
    await session.stored.edit("tasks_context.tasks[1].state", "completed")
    assert (await session.status()).tasks_done == 2
    names = [event.name for event in (await session.events()).events if event.type == "CUSTOM"]
    assert names.count("tasks_changed") == 1
