"""The list of tasks: written without any worker, kept in the state, told again when the context has lost it."""

import json
from typing import Any

import pytest

from longhaul.agent.decisions.session_tools.all_session_tools import INSIDE
from longhaul.agent.incarnation.continued_state import carry
from longhaul.agent.incarnation.history import messages
from longhaul.agent.incarnation.imported_state import read_state
from longhaul.agent.steps import Act, Answer
from longhaul.agent.values.conversation.messages import ContentBlock, HintBlock, ToolCallBlock
from longhaul.agent.values.conversation.tools import Effect, ToolDescriptor
from longhaul.agent.values.permission import Behavior, PermissionRule
from longhaul.agent.values.spec.agent_spec import ContextConfig
from longhaul.agent.values.tasks import BadTodos, Task, TasksContext, Todo, progress, replaced, tasks_text
from longhaul.agent.views.event_types import EventsSoFar
from longhaul.agent.views.events import EventReducer
from tests.agent.play import SPEC, TOOLS, Play, text

TODO_WRITE = ToolDescriptor(name="todo_write", inside=True, read_only=True, effect=Effect.READ)


def todos(call_id: str, *lines: str, **more: Any) -> list[ContentBlock]:
    """`todos("a", "completed Read", "pending Fix")`: one call of todo_write."""
    split = (line.partition(" ") for line in lines)
    written = [{"status": status, "content": content} for status, _, content in split]
    return [ToolCallBlock(id=call_id, name="todo_write", input=json.dumps({"todos": written, **more}))]


def playing(*lines: list[ContentBlock], **more: Any) -> Play:
    play = Play([*lines, text("Done.")], **{"tools": (*TOOLS, TODO_WRITE), **more})
    play.say("Go")
    play.run()
    return play


def hints(play: Play) -> list[str]:
    blocks = (block for message in play.journal.state.context for block in message.content)
    return [block.hint for block in blocks if isinstance(block, HintBlock) and isinstance(block.hint, str)]


LIST = "1 of 3 tasks done:\n1. [x] Read\n2. [>] Fix\n3. [ ] Test"


def test_a_list_is_written_by_the_session_itself() -> None:
    play = playing(todos("a", "completed Read", "in_progress Fix", "pending Test"))

    assert play.results() == [("a", "success", LIST)]
    assert [type(step) for step in play.steps if isinstance(step, Act | Answer)] == [Answer]
    (read, fix, test) = play.journal.state.tasks_context.tasks
    assert (read.id, read.subject, read.state) == ("1", "Read", "completed")
    assert (fix.state, test.id, fix.created_at[:10]) == ("in_progress", "3", "2025-11-25")
    assert progress((read, fix, test)) == (1, 3, "Fix")


def test_people_are_told_of_it_by_a_durable_event() -> None:
    play = playing(todos("a", "pending Read"))

    events = EventReducer().catch_up(play.journal.log)
    of_call = [(event.type, event.name) for event in events if event.tool_call_id == "a" or event.type == "CUSTOM"]
    assert of_call[-4:] == [
        ("TOOL_RESULT_START", ""),
        ("TOOL_RESULT_TEXT_DELTA", ""),
        ("TOOL_RESULT_END", ""),
        ("CUSTOM", "tasks_changed"),
    ]
    assert events[-1].seq == len(events)
    told = next(event.value for event in events if event.name == "tasks_changed")
    assert told == {"tasks": [{"id": "1", "subject": "Read", "state": "pending"}]}


def test_the_new_list_takes_the_place_of_the_old_one() -> None:
    play = playing(todos("a", "pending Read", "pending Fix"), todos("b", "in_progress Fix", "pending Test"))

    tasks = play.journal.state.tasks_context.tasks
    assert [(task.id, task.subject, task.state) for task in tasks] == [
        ("2", "Fix", "in_progress"),
        ("3", "Test", "pending"),
    ]


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        (["in_progress Read", "in_progress Fix"], "2 tasks are in_progress; one at a time"),
        (["pending   "], "todos[0].content is blank"),
        (["soon Read"], "status"),
        ([f"pending {number}" for number in range(51)], "the most is 50"),
        (["pending " + "x" * 20_001], "more than 20000 characters"),
    ],
)
def test_a_list_that_can_not_be_changes_nothing_and_the_model_reads_why(lines: list[str], why: str) -> None:
    play = playing(todos("a", "pending Read"), todos("b", *lines))

    assert [task.subject for task in play.journal.state.tasks_context.tasks] == ["Read"]
    call, state, told = play.results()[-1]
    assert (call, state) == ("b", "error")
    assert why in told


def test_a_task_keeps_what_java_knew_of_it() -> None:
    known = Task(
        id="7", subject="Read", owner="ana", blocks=("8",), metadata={"priority": "low", "k": 1}, created_at="t"
    )

    (same, renamed) = replaced(
        (known, Task(id="8", subject="Fix")),
        (Todo(content="Read", status="completed", priority=None), Todo(content="Fix", status="pending", id="8")),
    )

    assert same == known.model_copy(update={"state": "completed"})
    assert (renamed.id, renamed.subject) == ("8", "Fix")
    with pytest.raises(BadTodos, match="same id"):
        replaced((), (Todo(content="a", status="pending", id="1"), Todo(content="b", status="pending", id="1")))


def test_two_tasks_of_the_same_text_stay_two() -> None:
    twice = (Todo(content="Wait", status="pending"), Todo(content="Wait", status="pending"))

    first = replaced((), twice)

    assert [task.id for task in first] == ["1", "2"]
    assert replaced(first, twice) == first


def test_a_rule_forbids_it_like_any_other_tool() -> None:
    rules = (PermissionRule(tool_name="todo_write", behavior=Behavior.DENY),)
    spec = SPEC.model_copy(update={"permission": SPEC.permission.model_copy(update={"rules": rules})})

    play = playing(todos("a", "pending Read"), spec=spec)

    assert play.results()[0][1] == "denied"
    assert play.journal.state.tasks_context == TasksContext()


def test_a_compression_that_drops_the_list_is_followed_by_it() -> None:
    spec = SPEC.model_copy(update={"context_config": ContextConfig(trigger_ratio=0.1, reserve_ratio=0.01)})
    play = Play(
        [todos("a", "completed Read", "in_progress Fix"), text("x" * 4_000), text("Done.")],
        spec=spec, tools=(*TOOLS, TODO_WRITE), window=10_000,
    )  # fmt: skip
    play.say("Go")
    play.run()
    play.say("On", "r2")
    play.run()

    assert play.journal.compaction.tries == 1
    assert play.journal.state.summary == "Summary 1."
    assert hints(play) == [f"Your list of tasks, as it stands:\n{tasks_text(play.journal.state.tasks_context.tasks)}"]
    assert len(play.journal.context.marks) == len(play.journal.state.context)
    assert [message for _, message in messages(play.journal.log)] == play.journal.context.transcript


def test_what_is_in_the_context_or_done_is_not_told_again() -> None:
    play = playing(todos("a", "in_progress Fix"))
    play.say("On", "r2")
    play.run()
    assert hints(play) == []

    done = playing(todos("a", "completed Fix"))
    done.journal.state.context = []
    done.journal.context.marks = []
    done.say("On", "r2")
    done.run()
    assert hints(done) == []


def test_the_list_goes_along_into_the_next_run_and_the_next_request_hears_of_an_edited_one() -> None:
    play = playing(todos("a", "in_progress Fix"), keeps=True)
    play.continue_as_new()
    assert [task.subject for task in play.journal.state.tasks_context.tasks] == ["Fix"]

    (task,) = play.journal.state.tasks_context.tasks
    play.journal.state.tasks_context = TasksContext(tasks=(task.model_copy(update={"subject": "Mend"}),))
    play.say("On", "r2")
    play.run()

    assert hints(play) == ["Your list of tasks, as it stands:\n0 of 1 tasks done:\n1. [>] Mend"]
    assert "Mend" in carry(play.journal, EventsSoFar(), 0, 0).model_dump_json()


def test_a_state_without_tasks_says_so_and_java_s_are_taken_over() -> None:
    assert playing().journal.state.model_dump(mode="json")["tasks_context"] == {"tasks": []}
    java = {
        "session_id": "s", "reply_id": "r", "context": [],
        "tasks_context": {"tasks": [{
            "subject": "Read", "description": "all", "metadata": {"priority": "high"},
            "created_at": "2026-08-22T10:00:00Z", "state": "in_progress",
            "id": "4", "owner": None, "blocks": [], "blocked_by": ["3"],
        }]},
    }  # fmt: skip

    state = read_state(json.dumps(java))

    assert state.tasks_context.tasks == (
        Task(id="4", subject="Read", description="all", metadata={"priority": "high"}, state="in_progress",
             created_at="2026-08-22T10:00:00Z", blocked_by=("3",)),
    )  # fmt: skip
    assert read_state(json.dumps(state.model_dump(mode="json"))).tasks_context == state.tasks_context


def test_each_of_these_tools_has_a_schema_of_an_object() -> None:
    assert all(tool.input_schema["type"] == "object" and tool.description for tool in INSIDE.values())
