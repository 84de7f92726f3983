"""Every type of event, and every name of a CUSTOM one, is told in a story below, and stands on the page about them."""

import json
import re
from collections.abc import Callable, Iterable
from itertools import chain
from pathlib import Path
from typing import get_args

import pytest

from longhaul.agent import entries as e
from longhaul.agent.decisions.deadline_steps import reached
from longhaul.agent.entries import LeftOut, Repair
from longhaul.agent.incarnation.continued_state import Carried, carry
from longhaul.agent.permission.call_analysis import CallAnalysis
from longhaul.agent.reducer.synthetic_results import outcome_unknown
from longhaul.agent.values.budget import Budget
from longhaul.agent.values.conversation.messages import (
    AssistantMsg,
    Base64Source,
    ContentBlock,
    DataBlock,
    ErrorInfo,
    HintBlock,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from longhaul.agent.values.conversation.tools import Effect, ToolDescriptor
from longhaul.agent.values.deadlines import Deadlines
from longhaul.agent.values.permission import PermissionContext
from longhaul.agent.values.spec.agent_spec import ContextConfig, ReActConfig
from longhaul.agent.values.stuck_detection import StuckConfig
from longhaul.agent.values.subagents import BackgroundCommand
from longhaul.agent.values.tool_groups import ToolGroup
from longhaul.agent.views.event_types import AgentEvent, EventType
from longhaul.agent.views.events import EventReducer
from longhaul.starter.client.feed import CLOSED
from longhaul.starter.client.reading.event_reader import UNAVAILABLE, WAITS_BELOW
from longhaul.starter.client.reading.live_stream import WITHDRAWN, LiveEvents
from longhaul.stores.streams.streams import Item
from longhaul.workflows.contract import EventPage
from tests.agent.family import Family, tasks
from tests.agent.play import RULES, SPEC, TOOLS, Play, Stopped, calls, text

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "people" / "events.md").read_text(encoding="utf-8")

INSIDE = tuple(
    ToolDescriptor(name=name, inside=True, read_only=True, effect=Effect.READ)
    for name in ("todo_write", "reset_equipped_tools", "wait_for", "create_plan")
)
BY_OTHERS = {UNAVAILABLE, CLOSED, WITHDRAWN, WAITS_BELOW}
"""Told by a client that can't read a stream, by a feed of which a session is gone, and by a stream of one reply:
tests/e2e/crash/test_stream.py, tests/starter/client/test_feed.py and test_told_once.py show them."""


def told(play: Play) -> list[AgentEvent]:
    return EventReducer().catch_up(play.journal.log)


def answered() -> list[AgentEvent]:
    play = Play([[ThinkingBlock(thinking="hm"), TextBlock(text="Forty.")]])
    play.say("How many?")
    play.run()
    return told(play)


def drawn_and_hinted() -> list[AgentEvent]:
    picture = DataBlock(source=Base64Source(data="AAAA", media_type="image/png"))
    seen = e.ToolReturned(result=ToolResultBlock(id="a", name="Look", output=(picture,)))
    drawing: list[ContentBlock] = [HintBlock(hint="be brief"), picture]
    play = Play([calls("a Look"), drawing], outcomes={"a": [seen]})
    play.say("Draw what you see")
    play.run()
    return told(play)


def approved_and_handed_out() -> list[AgentEvent]:
    play = Play([calls("a Paint"), calls("b Order"), text("Done.")])
    play.say("Paint, then order")
    play.run()
    play.allow("a", input={"colour": "blue"})
    play.run()
    play.tell("external_result", {"results": [{"id": "b", "output": "40"}]})
    play.run()
    return told(play)


def paused_and_steered() -> list[AgentEvent]:
    play = Play([text("Ready."), calls("a Paint"), text("Blue, then.")])
    play.say("Hello", "r0")
    play.run()
    play.tell("pause", {"by": "ana"})
    play.say("Paint", "r1")
    play.tell("step", {"by": "ana"})
    play.run()
    play.tell("resume", {"by": "ana"})
    play.run()
    play.tell("submit", {"messages": "Blue, please", "request_id": "n1", "when": "now"})
    play.tell("rules", {"add": [{"tool_name": "Paint"}], "by": "ana"})
    play.tell("configure", {"mode": "plan", "by": "ana"})
    play.allow("a")
    play.run()
    return told(play)


def asleep_and_woken_with_a_command_in_the_background() -> list[AgentEvent]:
    play = Play([calls("a wait_for", arguments='{"event": "ebb", "timeout": "1h"}')], tools=(*TOOLS, *INSIDE))
    play.say("Wait for the ebb")
    play.run()
    play.tell("notify", {"event": "ebb", "by": "ben"})
    play.write(e.CommandStarted(command=BackgroundCommand(call_id="b", shown="make paint")))
    play.tell("stop_background", {"by": "ana"})
    play.write(e.CommandEnded(call_id="b", fate="unknown"))
    play.run()
    return told(play)


def ruled_about_tools_that_nobody_has() -> list[AgentEvent]:
    play = Play()
    play.tell("configure", {"rules": [{"tool_name": "Varnish", "behavior": "deny"}]})
    return told(play)


def interrupted() -> list[AgentEvent]:
    broken = e.InterruptHandled(reply_id="reply-of-r1", error="the hook is broken")
    play = Play([calls("a Paint")], handler=lambda _: broken)
    play.say("Paint")
    play.run()
    play.tell("interrupt")
    play.run()
    return told(play)


def written_down_in_a_memory() -> list[AgentEvent]:
    play = Play([text("Red.")], spec=SPEC.model_copy(update={"long_term_memory_mode": "both"}))
    play.say("What colour?")
    play.run()
    return told(play)


def at_the_limit() -> list[AgentEvent]:
    play = Play([calls("a Look")], spec=SPEC.model_copy(update={"react_config": ReActConfig(max_iters=1)}))
    play.say("Go")
    play.run()
    return told(play)


def cut_short_by_an_interrupt() -> list[AgentEvent]:
    play = Play([text("Never.")])
    play.say("Go")
    play.begin()
    play.complete()
    play.begin()
    play.tell("interrupt")
    half = AssistantMsg("mason", text("I wri"))
    play.asked = None
    play.write(e.ModelSaid(message=half, cut_short=True, started_calls=("Paint",)))
    play.run()
    return told(play)


def answered_without_a_picture() -> list[AgentEvent]:
    play = Play([text("Never.")])
    play.say("Go")
    play.begin()
    play.complete()
    play.begin()
    play.asked = None
    left_out = (LeftOut(message=0, block=1, words="[image left out: it is empty]"),)
    repair = Repair(left_out=left_out, refused="Could not process image", takes_no_images="m:1")
    adjusted = ("The effort was left out.",)
    play.write(e.ModelSaid(message=AssistantMsg("mason", text("I see nothing.")), repair=repair, adjusted=adjusted))
    play.run()
    return told(play)


def stopping_for_every_reason() -> list[AgentEvent]:
    lines = [Stopped(text("So"), stop) for stop in StopReason]
    play = Play(lines)
    for number in range(len(lines)):
        play.say("Go", f"r{number}")
        play.run()
    return told(play)


def going_round_in_circles() -> list[AgentEvent]:
    lines = [calls(f"c{number} Look") for number in range(6)]
    play = Play(lines, spec=SPEC.model_copy(update={"stuck": StuckConfig()}))
    play.say("Look")
    play.run()
    return told(play)


def out_of_budget() -> list[AgentEvent]:
    play = Play([calls("a Look")], spec=SPEC.model_copy(update={"budget": Budget(max_calls=1)}))
    play.say("Go")
    play.run()
    play.tell("budget", {"end": "stop", "by": "ana"})
    play.run()
    return told(play)


def left_by_its_worker_and_failing() -> list[AgentEvent]:
    play = Play([ErrorInfo(type="upstream", message="gone")])
    play.say("Go")
    play.begin()
    play.complete()
    play.begin()
    play.tell("worker_lacks", {"worker": "71@atlas", "doing": "longhaul.call_model", "why": "no key here"})
    away = {"attempt": 6, "next_at": 1_764_072_012_000, "until": 1_764_072_099_000}
    play.tell("worker_lacks", {"worker": "71@atlas", "doing": "longhaul.call_model", "why": "down", "away": away})
    play.tell("worker_left", {"worker": "71@atlas", "doing": "longhaul.call_model"})
    play.write(e.WorkerLacks(worker="", doing="longhaul.call_model", why="den is away", host="den"))
    play.write(e.HostBack(host="den"))
    play.complete()
    play.run()
    return told(play)


def doubtful() -> list[AgentEvent]:
    elsewhere = e.CallUnsettled(call_id="a", analysis=CallAnalysis(cwd="/b"), reason="it had moved")
    play = Play(
        [calls("a Send")], tools=(*TOOLS, ToolDescriptor(name="Send", probes=True)), outcomes={"a": [elsewhere]}
    )
    play.say("Go")
    play.run()
    play.allow("a")
    play.run()
    lost = outcome_unknown(ToolCallBlock(id="a", name="Send", input="{}"), "its worker was lost")
    play.outcomes["a"] = [e.ToolReturned(result=lost)]
    play.allow("a")
    play.run()
    play.tell("resolve", {"call_id": "a", "happened": True, "by": "bo"})
    return told(play)


def keeping_lists_and_switching_groups() -> list[AgentEvent]:
    todos = {"todos": [{"status": "in_progress", "content": "Dig"}]}
    ditch = {"name": "Dig", "description": "by hand", "expected_outcome": "a ditch"}
    lines = [
        calls("a todo_write", arguments=json.dumps(todos)),
        calls("b reset_equipped_tools", arguments=json.dumps({"to_activate": ["eyes"]})),
        calls("c create_plan", arguments=json.dumps({**ditch, "subtasks": [ditch]})),
    ]
    spec = SPEC.model_copy(update={"tool_groups": {"eyes": ToolGroup(tools=("Look",), description="To look.")}})
    play = Play([*lines, text("Done.")], spec=spec, tools=(*TOOLS, *INSIDE))
    play.say("Plan")
    play.run()
    return told(play)


def growing_too_long() -> list[AgentEvent]:
    lines = [*(calls(f"look{number} Look") for number in range(12)), text("All seen.")]
    outcomes: dict[str, list[e.CallOutcome]] = {
        call_id: [e.ToolReturned(result=ToolResultBlock(id=call_id, name="Look", output="x" * 900), tokens=300)]
        for call_id in (f"look{number}" for number in range(12))
    }
    spec = SPEC.model_copy(update={"context_config": ContextConfig(trigger_ratio=0.5)})
    failing: list[str | ErrorInfo] = [ErrorInfo(type="upstream", message="no summary"), "They look."]
    play = Play(lines, outcomes=outcomes, window=2_000, spec=spec, summaries=failing)
    play.say("Look at the walls")
    play.run()
    return told(play)


def waiting_until_it_is_too_late() -> list[AgentEvent]:
    patient = Deadlines(remind_after=3_600, escalate_after=7_200, escalate_to="the foreman", expire_after=86_400)
    context = PermissionContext(rules=RULES, deadline=patient)
    play = Play([calls("p Paint")], spec=SPEC.model_copy(update={"permission": context}))
    play.say("Paint")
    play.run()
    for hours in (1.1, 2.1, 24.1):
        play.write(e.DeadlineReached(due=reached(play.journal, play.now + round(hours * 3_600_000))))
    return told(play)


def found_risky() -> list[AgentEvent]:
    context = PermissionContext.model_validate({"rules": [*RULES, {"tool_name": "Paint"}], "analyzers": ["rules"]})
    finding = CallAnalysis.model_validate({"risk": "medium", "risk_reason": "wet paint"})
    spec = SPEC.model_copy(update={"permission": context})
    play = Play([calls("a Paint"), text("Done.")], spec=spec, analysis={"a": [CallAnalysis(), finding]})
    play.say("Paint")
    play.run()
    return told(play)


def living_again_with_another_state() -> list[AgentEvent]:
    first = Play([text("Forty.")], keeps=True)
    first.say("How many?")
    first.run()
    left = carry(first.journal, first.events_before, first.journal.keeping.saved, first.journal.keeping.saved_messages)
    second = Play(keeps=True, earlier=Carried.model_validate_json(left.model_dump_json()), now=first.now + 1_000)
    second.run()
    state = second.journal.state.model_dump(mode="json")
    second.tell(
        "replace_state", {"state": state, "expected_seq": second.journal.keeping.changed, "by": "ana", "why": "x"}
    )
    return told(second)


def giving_out_a_task() -> list[AgentEvent]:
    play = Family([tasks("a glazier"), text("Done.")])
    play.say("Build")
    play.run()
    play.hear_of("a", "Glazed.")
    play.run()
    return told(play)


def heard_while_it_is_made() -> list[AgentEvent]:
    live = LiveEvents()
    live.recorded(EventPage(events=(), last=9, reply_id="r1", model_calls=0, open_calls=("t1",)))
    items = [
        Item("begin", "model:0", 5, 1, name="scripted:x"),
        Item("thinking", "model:0", 5, 1, 1, 0, "hm"),
        Item("text", "model:0", 5, 1, 2, 1, "For"),
        Item("begin", "model:0", 5, 2, name="scripted:x"),
        Item("text", "model:0", 5, 2, 3, 1, "Forty"),
        Item("output", "tool:t1", 5, 1, 1, text="line"),
    ]
    return list(chain.from_iterable(live.of(item) for item in items))


STORIES: tuple[Callable[[], Iterable[AgentEvent]], ...] = (
    answered,
    drawn_and_hinted,
    approved_and_handed_out,
    paused_and_steered,
    asleep_and_woken_with_a_command_in_the_background,
    ruled_about_tools_that_nobody_has,
    interrupted,
    written_down_in_a_memory,
    at_the_limit,
    out_of_budget,
    cut_short_by_an_interrupt,
    answered_without_a_picture,
    stopping_for_every_reason,
    going_round_in_circles,
    left_by_its_worker_and_failing,
    doubtful,
    keeping_lists_and_switching_groups,
    growing_too_long,
    waiting_until_it_is_too_late,
    found_risky,
    living_again_with_another_state,
    heard_while_it_is_made,
    giving_out_a_task,
)


@pytest.fixture(scope="module")
def events() -> list[AgentEvent]:
    return [event for story in STORIES for event in story()]


def documented(heading: str) -> list[str]:
    """What stands in the first column of the table with this heading."""
    rows = PAGE.partition(f"| {heading} |")[2].partition("\n\n")[0].splitlines()[2:]
    return [name for row in rows for name in re.findall(r"`([^`]+)`", row.split("|")[1])]


@pytest.mark.proves("A2")
def test_every_type_of_event_is_told_in_some_story(events: list[AgentEvent]) -> None:
    assert {event.type for event in events} == set(get_args(EventType))


def test_every_event_has_an_id_of_its_own() -> None:
    for story in STORIES:
        ids = [event.id for event in story()]
        assert len(set(ids)) == len(ids), story.__name__
        assert all(ids)


def test_every_type_of_event_is_documented_once() -> None:
    assert sorted(documented("type")) == sorted(get_args(EventType))


def test_every_name_of_a_custom_event_is_told_and_documented(events: list[AgentEvent]) -> None:
    names = {event.name for event in events if event.type == "CUSTOM"} | BY_OTHERS

    assert sorted(documented("name")) == sorted(names)


def test_no_name_of_a_custom_event_stands_in_the_code_alone(events: list[AgentEvent]) -> None:
    code = [*(ROOT / "longhaul" / "agent").rglob("*.py"), *(ROOT / "starter").rglob("*.py")]
    written = {
        name
        for path in code
        for name in re.findall(r'type="CUSTOM",\s+name="([a-z_]+)"', path.read_text(encoding="utf-8"))
    }

    assert len(written) > 15
    assert written <= {event.name for event in events if event.type == "CUSTOM"}
