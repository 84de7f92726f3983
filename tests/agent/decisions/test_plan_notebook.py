"""The plan notebook: a plan is made, followed and ended by calls that the session answers, and told when needed."""

import json
from typing import Any

import pytest
from pydantic import ValidationError

from longhaul.agent.decisions.session_tools.all_session_tools import INSIDE
from longhaul.agent.incarnation.continued_state import carry
from longhaul.agent.incarnation.history import boundary_of
from longhaul.agent.incarnation.imported_state import read_state
from longhaul.agent.journal import Journal
from longhaul.agent.steps import Act, Answer
from longhaul.agent.values.conversation.messages import ContentBlock, ToolCallBlock
from longhaul.agent.values.conversation.tools import Effect, ToolDescriptor
from longhaul.agent.values.permission import PermissionMode
from longhaul.agent.values.plans import NO_PLAN, PLAN_TOOLS, PlanNotebook, kept, standing_text
from longhaul.agent.values.spec.agent_spec import AgentSpec, ContextConfig
from longhaul.agent.values.tasks import NotebookPlan, Task, TasksContext
from longhaul.agent.values.tool_groups import hidden
from longhaul.agent.views.event_types import AgentEvent, EventsSoFar
from longhaul.agent.views.events import EventReducer
from longhaul.agent.views.session_views import plan_standing, plans_over
from tests.agent.decisions.test_tasks import hints, todos
from tests.agent.play import SPEC, TOOLS, Play, text

NAMES = (*PLAN_TOOLS, "todo_write", "reset_equipped_tools")
NOTEBOOK = tuple(ToolDescriptor(name=name, inside=True, read_only=True, effect=Effect.READ) for name in NAMES)
_ids = iter(range(10_000))


def call(tool: str, **arguments: Any) -> list[ContentBlock]:
    return [ToolCallBlock(id=f"c{next(_ids)}", name=tool, input=json.dumps(arguments))]


def subtask(name: str, about: str = "") -> dict[str, str]:
    return {"name": name, "description": about, "expected_outcome": f"{name} is there"}


def made(*names: str, called: str = "Boat") -> list[ContentBlock]:
    subtasks = [subtask(name) for name in names]
    return call("create_plan", name=called, description="Of oak", expected_outcome="It swims", subtasks=subtasks)


def begin(at: int) -> list[ContentBlock]:
    return call("update_subtask_state", subtask_idx=at, state="in_progress")


def finish(at: int, outcome: str = "there") -> list[ContentBlock]:
    return call("finish_subtask", subtask_idx=at, subtask_outcome=outcome)


def playing(*lines: list[ContentBlock], **more: Any) -> Play:
    play = Play([*lines, text("Done.")], **{"tools": (*TOOLS, *NOTEBOOK), **more})
    play.say("Build a boat")
    play.run()
    return play


def told(play: Play) -> str:
    """What the newest call came to."""
    return play.results()[-1][2]


def known(play: Play) -> TasksContext:
    return play.journal.state.tasks_context


def states(play: Play) -> list[tuple[str, str]]:
    return [(task.subject, task.state) for task in known(play).tasks]


def test_a_plan_is_made_followed_and_ended_by_the_session_itself() -> None:
    end = call("finish_plan", state="done", outcome="It swims.")
    play = playing(made("Keel", "Hull"), begin(0), finish(0, "a keel of 4 m"), finish(1), end)

    assert [type(step) for step in play.steps if isinstance(step, Act | Answer)] == [Answer] * 5
    (over,) = known(play).historical_plans
    assert (over.id, over.name, over.state, over.outcome) == ("1", "Boat", "done", "It swims.")
    assert [(task.subject, task.state, task.outcome) for task in over.subtasks] == [
        ("Keel", "completed", "a keel of 4 m"),
        ("Hull", "completed", "there"),
    ]
    assert (over.created_at[:10], over.finished_at[:10]) == ("2025-11-25", "2025-11-25")
    assert {task.finished_at[:10] for task in over.subtasks} == {"2025-11-25"}
    assert (known(play).tasks, known(play).current_plan) == ((), None)
    assert told(play) == f"Plan 'Boat' is over: done.\n\n{standing_text(TasksContext())}"


AT_WORK = """\
Subtask 0 is done.

The plan as it stands (1 of 2 subtasks done):
# Boat
What it is about: Of oak
Expected outcome: It swims
0. [x] Keel
1. [>] Hull
Subtask 1 is in progress.
1. [>] Hull
  Expected outcome: Hull is there
Go on with it, and call finish_subtask with what came of it when it is done: the next one then begins.
revise_current_plan changes the plan."""


@pytest.mark.proves("C9")
def test_each_call_tells_where_the_plan_is_and_a_finished_subtask_begins_the_next() -> None:
    play = playing(made("Keel", "Hull"), begin(0), finish(0))

    assert told(play).startswith(AT_WORK)
    made_it, started = (output for _, _, output in play.results()[:2])
    assert made_it.startswith("Plan 'Boat' is made.\n\nThe plan as it stands (0 of 2 subtasks done):")
    assert "Nothing is started. Call update_subtask_state with subtask_idx 0" in made_it
    assert "Subtask 0 is in progress." in started
    last = playing(made("Keel"), finish(0))
    assert "All subtasks are over: call finish_plan with the state 'done'" in told(last)
    put_back = playing(made("Keel", "Hull"), finish(0), call("update_subtask_state", subtask_idx=1, state="todo"))
    assert "No subtask is in progress. Call update_subtask_state with subtask_idx 1" in told(put_back)


@pytest.mark.proves("C9")
def test_before_the_model_is_asked_it_is_told_of_the_plan_once() -> None:
    play = playing(text("Hello."))
    assert hints(play) == [standing_text(TasksContext())]
    assert hints(play)[0].startswith(NO_PLAN)
    (asked,) = [at for at, message in enumerate(play.journal.state.context) if message.get_text_content() == "Hello."]
    assert "HintBlock" in [type(block).__name__ for block in play.journal.state.context[asked - 1].content]

    play = playing(made("Keel", "Hull"), begin(0))
    play.say("On", "r2")
    play.run()
    assert len(hints(play)) == 1

    (task, hull) = known(play).tasks
    edited = known(play).model_copy(update={"tasks": (task.model_copy(update={"subject": "Mast"}), hull)})
    play.journal.state.tasks_context = edited
    play.say("On", "r3")
    play.run()
    assert hints(play)[1:] == [standing_text(edited)]


def test_a_compression_that_drops_the_plan_is_followed_by_it_and_by_no_second_list() -> None:
    spec = SPEC.model_copy(update={"context_config": ContextConfig(trigger_ratio=0.1, reserve_ratio=0.01)})
    play = playing(made("Keel", "Hull"), begin(0), text("x" * 4_000), spec=spec, window=10_000)
    play.say("On", "r2")
    play.run()

    assert play.journal.compaction.tries == 1
    assert hints(play) == [standing_text(known(play))]
    assert "0. [>] Keel" in hints(play)[0]


@pytest.mark.parametrize(
    ("tool", "arguments", "why"),
    [
        ("create_plan", {"name": "x", "description": "", "expected_outcome": "", "subtasks": []}, "subtasks: "),
        ("create_plan", {"name": "x"}, "description: Field required"),
        ("create_plan", {"name": "x", "description": "", "expected_outcome": "", "subtasks": [subtask(" ")]}, "blank"),
        ("create_plan", {"name": "x", "description": "", "expected_outcome": "",
                         "subtasks": [subtask(str(number)) for number in range(51)]}, "the most is 50"),
        ("create_plan", {"name": "x", "description": "", "expected_outcome": "",
                         "subtasks": [subtask(str(number), "y" * 4_000) for number in range(6)]}, "more than 20000"),
        ("revise_current_plan", {"subtask_idx": 0, "action": "burn"}, "action: "),
        ("revise_current_plan", {"subtask_idx": 0, "action": "add"}, "subtask: with the action 'add'"),
        ("revise_current_plan", {"subtask_idx": 4, "action": "add", "subtask": subtask("x")}, "from 0 to 3, the end"),
        ("revise_current_plan", {"subtask_idx": 3, "action": "delete"}, "no subtask 3; there are 3"),
        ("update_subtask_state", {"subtask_idx": -1, "state": "todo"}, "no subtask -1"),
        ("update_subtask_state", {"subtask_idx": 0, "state": "done"}, "state: "),
        ("update_subtask_state", {"subtask_idx": 2, "state": "in_progress"}, "subtask 0 ('Keel') comes before 2"),
        ("finish_subtask", {"subtask_idx": 1, "subtask_outcome": "x"}, "subtask 0 ('Keel') comes before 1"),
        ("finish_subtask", {"subtask_idx": 0, "subtask_outcome": ""}, "subtask_outcome: "),
        ("view_subtasks", {"subtask_idx": [0, 7]}, "no subtask 7"),
        ("finish_plan", {"state": "done", "outcome": "x"}, "subtask 0 ('Keel') is not over"),
        ("recover_historical_plan", {"plan_id": "9"}, "no plan '9' that is over; there are: none"),
    ],
)  # fmt: skip
def test_what_can_not_be_changes_nothing_and_the_model_reads_why(
    tool: str, arguments: dict[str, Any], why: str
) -> None:
    play = playing(made("Keel", "Hull", "Mast"), begin(0), call(tool, **arguments))

    _, state, output = play.results()[-1]
    assert state == "error"
    assert why in output
    assert states(play) == [("Keel", "in_progress"), ("Hull", "pending"), ("Mast", "pending")]
    assert known(play).historical_plans == ()


@pytest.mark.parametrize("tool", ["revise_current_plan", "update_subtask_state", "finish_subtask", "finish_plan"])
def test_without_a_plan_there_is_nothing_to_change(tool: str) -> None:
    arguments: dict[str, Any] = {"subtask_idx": 0, "action": "delete", "state": "abandoned", "outcome": "x"}

    play = playing(call(tool, subtask_outcome="x", **arguments))

    assert play.results()[-1][1:] == ("error", "there is no plan; make one by create_plan")


def test_a_plan_is_revised_one_subtask_at_a_time() -> None:
    play = playing(
        made("Keel", "Hull"),
        finish(0),
        call("revise_current_plan", subtask_idx=2, action="add", subtask=subtask("Mast")),
        call("revise_current_plan", subtask_idx=1, action="revise", subtask=subtask("Hull of oak")),
        call("revise_current_plan", subtask_idx=0, action="revise", subtask=subtask("Longer keel")),
        call("revise_current_plan", subtask_idx=2, action="delete"),
        call("view_subtasks", subtask_idx=[1]),
    )

    assert states(play) == [("Longer keel", "pending"), ("Hull of oak", "in_progress")]
    assert [task.id for task in known(play).tasks] == ["1", "2"]
    assert told(play) == "1. [>] Hull of oak\n  Expected outcome: Hull of oak is there"


def test_the_only_subtask_stays_and_one_that_is_given_up_is_passed_over() -> None:
    only = playing(made("Keel"), call("revise_current_plan", subtask_idx=0, action="delete"))
    assert "is the plan's only subtask" in told(only)

    play = playing(
        made("Keel", "Hull", "Mast"),
        call("update_subtask_state", subtask_idx=1, state="abandoned"),
        begin(0),
        finish(0),
    )

    assert states(play) == [("Keel", "completed"), ("Hull", "abandoned"), ("Mast", "in_progress")]
    assert "(1 of 2 subtasks done)" in told(play)


@pytest.mark.proves("C9")
def test_a_plan_that_another_replaces_is_kept_and_taken_up_again() -> None:
    play = playing(
        made("Keel", "Hull"), finish(0), made("Oar", called="Raft"), call("view_historical_plans"),
        call("recover_historical_plan", plan_id="1"),
    )  # fmt: skip

    listed = play.results()[-2][2]
    assert listed.startswith("plan_id 1: Boat (abandoned, 1 of 2 subtasks done, started at 2025-11-25")
    assert listed.endswith("What came of it: plan 2 (Raft) took its place")
    assert states(play) == [("Keel", "completed"), ("Hull", "in_progress")]
    current = known(play).current_plan
    assert current is not None
    assert (current.id, current.state, current.outcome, current.subtasks) == ("1", "in_progress", "", ())
    assert [(plan.id, plan.state) for plan in known(play).historical_plans] == [("2", "abandoned")]
    again = playing(made("Keel"), call("finish_plan", state="abandoned", outcome="no oak"), made("Oar"))
    assert again.journal.state.tasks_context.current_plan is not None
    assert again.journal.state.tasks_context.current_plan.id == "2"


def test_only_so_many_plans_are_carried_along() -> None:
    plans = tuple(NotebookPlan(id=str(number), name="Boat", state="done") for number in range(30))
    assert [plan.id for plan in kept(plans)] == [str(number) for number in range(10, 30)]

    long = tuple(
        plan.model_copy(update={"subtasks": tuple(Task(subject="x" * 1_000) for _ in range(40))}) for plan in plans
    )
    assert sum(len(plan.model_dump_json()) for plan in kept(long)) <= 100_000
    assert kept((long[0].model_copy(update={"outcome": "y" * 100_000}),)) != ()


@pytest.mark.proves("C9")
def test_the_notebook_is_a_group_that_the_agent_switches_on() -> None:
    spec = AgentSpec.model_validate({**SPEC.model_dump(mode="json"), "tool_groups": {"plan_related": {}}})
    assert AgentSpec(tool_groups={"plan_related": PlanNotebook()}).tool_groups == spec.tool_groups
    play = playing(made("Keel"), call("reset_equipped_tools", to_activate=["plan_related"]), made("Keel"), spec=spec)

    refused, opened, created = play.results()
    assert refused[1] == "error"
    assert "'create_plan' is in the group 'plan_related', which is not active" in refused[2]
    assert "- plan_related: create_plan, revise_current_plan" in opened[2]
    assert (created[1], hints(play)) == ("success", [standing_text(TasksContext())])
    switched_off = hidden(spec.tool_groups, ())
    assert set(PLAN_TOOLS) == set(switched_off) == set(INSIDE) & set(PLAN_TOOLS)

    active = AgentSpec.model_validate({"tool_groups": {"plan_related": {"active": True, "tools": ["create_plan"]}}})
    assert (active.tool_groups["plan_related"].active, active.all_tools[-2:]) == (
        True,
        ("create_plan", "reset_equipped_tools"),
    )
    with pytest.raises(ValidationError, match=r"tool_groups\.plan_related"):
        AgentSpec.model_validate({"tool_groups": {"plan_related": 1}})
    assert "plan_related" not in json.dumps(AgentSpec().model_dump(mode="json"))


def test_who_has_no_notebook_hears_nothing_of_plans() -> None:
    spec = AgentSpec.model_validate({**SPEC.model_dump(mode="json"), "tool_groups": {"plan_related": {}}})

    assert hints(playing(text("Hello."), spec=spec)) == []
    assert hints(playing(text("Hello."), tools=TOOLS)) == []


def test_the_subtasks_are_the_sessions_tasks_which_todo_write_may_change() -> None:
    play = playing(made("Keel", "Hull"), todos("t", "completed Keel", "in_progress Hull"))

    keel, hull = known(play).tasks
    assert (keel.expected_outcome, keel.finished_at[:10], hull.finished_at) == ("Keel is there", "2025-11-25", "")
    assert known(play).current_plan is not None


def test_in_plan_mode_a_plan_may_be_written_into_the_notebook() -> None:
    spec = SPEC.model_copy(update={"permission": SPEC.permission.model_copy(update={"mode": PermissionMode.PLAN})})

    assert states(playing(made("Keel"), spec=spec)) == [("Keel", "pending")]


def events(play: Play) -> list[AgentEvent]:
    return [event for event in EventReducer().catch_up(play.journal.log) if event.type == "CUSTOM"]


def test_people_are_told_of_it_by_durable_events_and_in_the_status() -> None:
    play = playing(made("Keel", "Hull"), finish(0, "4 m"))

    plan = {"id": "1", "name": "Boat", "description": "Of oak", "expected_outcome": "It swims", "state": "in_progress"}
    assert [event.name for event in events(play)] == ["tasks_changed", "plan_changed", "tasks_changed"]
    assert events(play)[1].value == {"plan": plan, "over": None}
    shown = plan_standing(play.journal)
    assert shown is not None
    assert [(one.name, one.state, one.outcome) for one in shown.subtasks] == [
        ("Keel", "completed", "4 m"),
        ("Hull", "in_progress", ""),
    ]
    over = playing(made("Keel"), call("finish_plan", state="abandoned", outcome="z" * 4_000))
    assert plan_standing(over.journal) is None
    (told_of,) = plans_over(over.journal)
    assert (told_of.name, told_of.state, len(told_of.outcome)) == ("Boat", "abandoned", 300)
    assert events(over)[-1].value["over"]["state"] == "abandoned"
    (kept,) = known(over).historical_plans
    six = known(over).model_copy(update={"historical_plans": (kept,) * 6})
    over.journal.state.tasks_context = six
    assert len(plans_over(over.journal)) == 5


def test_the_plan_goes_along_and_follows_from_the_entries_alone() -> None:
    play = playing(made("Keel", "Hull"), finish(0), made("Oar", called="Raft"), keeps=True)
    before = known(play)

    assert Journal.of(play.journal.log).state.tasks_context == before
    assert read_state(json.dumps(play.journal.state.model_dump(mode="json"))).tasks_context == before
    assert "tasks_context" not in boundary_of(play.journal).get("state", {})
    assert "Raft" in carry(play.journal, EventsSoFar(), 0, 0).model_dump_json()
    play.continue_as_new()
    assert known(play) == before
