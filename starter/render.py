"""Renders what an agent says, does and asks for, as rich Text: words, calls with their answers, events a line each,
and what works in the background.

Text from outside is neutralised here and is never read as markup.
"""

import json
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rich.text import Text

from longhaul.agent.plain.text import gist, parsed
from longhaul.agent.values.budget import Lack
from longhaul.agent.values.conversation.messages import (
    WHERE,
    DataBlock,
    FinishedReason,
    Msg,
    ToolCallBlock,
    ToolResultBlock,
    ToolResultState,
)
from longhaul.agent.values.conversation.tools import EFFECT_WORDS, ran_in
from longhaul.agent.values.subagents import BackgroundCommand, Child
from longhaul.agent.views.event_types import AgentEvent
from longhaul.starter.visible import harmless, one_line, visible
from longhaul.workflows.contract import PendingCall, Status

_STYLES = {"+": "green", "-": "red", "@": "cyan", "\\": "dim"}


def model_text(text: str) -> Text:
    """What the model writes to a person."""
    return Text(harmless(text))


def thought(text: str) -> Text:
    return Text(harmless(text), style="dim italic")


def user_said(text: str) -> Text:
    return _gutter("> ", harmless(text), "bold")


def when(moment: str, *, seconds: bool = False) -> str:
    """`2026-11-23 19:02 CET`: an ISO time in the zone of the reader's machine."""
    try:
        at = datetime.fromisoformat(moment).astimezone()
    except ValueError:
        return one_line(visible(moment))
    return f"{at:%Y-%m-%d %H:%M:%S} {at.tzname()}" if seconds else f"{at:%Y-%m-%d %H:%M} {at.tzname()}"


def flags_for(user: str | None, agent: str) -> list[str]:
    """What a pasted command needs to mean this session and no other of its name."""
    return [*([] if user is None else ["--user", user]), "--agent", agent]


def call_line(tool: str, arguments: str) -> Text:
    """`Bash ls -la`: a call on one line."""
    return Text.assemble((one_line(tool), "bold"), " ", one_line(gist(arguments)))


def result_line(tool: str, arguments: str, state: ToolResultState | None, output: str, *, width: int) -> Text:
    """`✓ Bash ls -la → total 12 (+3 lines)`, at most `width` cells wide."""
    mark, style = mark_of(state)
    line = Text.assemble((f"{mark} ", style), call_line(tool, arguments))
    line.rstrip()
    if len(line) > width // 2:
        line.truncate(max(width // 2, 8), overflow="ellipsis")
    line.append(" → ", "dim")
    line.append(short(output), "dim" if state is ToolResultState.SUCCESS else style)
    line.truncate(max(width, 16), overflow="ellipsis")
    return line


def mark_of(state: ToolResultState | None) -> tuple[str, str]:
    """How a call stands, as one character and its style; None: it has no result yet."""
    return _MARKS.get(state, ("…", "yellow"))


_MARKS: dict[ToolResultState | None, tuple[str, str]] = {
    ToolResultState.SUCCESS: ("✓", "green"),
    ToolResultState.ERROR: ("✗", "red"),
    ToolResultState.DENIED: ("✗", "red"),
    ToolResultState.INTERRUPTED: ("✗", "yellow"),
    ToolResultState.UNKNOWN: ("?", "yellow"),
}


def short(output: str) -> str:
    """The first line that says something, and how many more there are."""
    lines = [line for line in output.splitlines() if line.strip()]
    if not lines:
        return "(no output)"
    more = f" (+{len(lines) - 1} line{'s' if len(lines) > 2 else ''})" if len(lines) > 1 else ""
    return one_line(lines[0])[:400] + more


def diff(text: str) -> Text:
    """A unified diff, added and removed lines in colour."""
    shown = Text()
    for line in text.split("\n"):
        style = "bold" if line.startswith(("---", "+++")) else _STYLES.get(line[:1], "")
        shown.append("  " + visible(line) + "\n", style)
    shown.rstrip()
    return shown


def answer(arguments: str) -> Text:
    """An answer in the form that was asked for, as JSON that a program reads and a terminal does not obey."""
    text = json.dumps(parsed(arguments), indent=2, ensure_ascii=False)
    return Text("".join(each if each.isprintable() or each == "\n" else json.dumps(each)[1:-1] for each in text))


def task_list(tasks: Iterable[tuple[str, str]]) -> Text:
    """Of each its state and what it is about, a line each."""
    shown = Text()
    for state, subject in tasks:
        style = {"in_progress": "bold", "completed": "dim", "abandoned": "dim strike"}.get(state, "")
        shown.append("\n" if shown else "").append(f"  {_TASK_MARKS.get(state, '[?]')} {one_line(subject)}", style)
    return shown


def tasks_in(arguments: str) -> Text:
    """The list that a call of `todo_write` gives; what a model writes there may be anything."""
    todos = (parsed(arguments) or {}).get("todos")
    given = [todo for todo in todos if isinstance(todo, dict)] if isinstance(todos, list) else []
    return task_list((str(todo.get("status", "")), str(todo.get("content", ""))) for todo in given)


def arguments_in_full(arguments: str) -> Text:
    """Every argument, nothing shortened and nothing hidden. Each line stands behind a bar, so none can pose as ours."""
    given = parsed(arguments)
    if given is None:
        return _gutter("  │ ", visible(arguments))
    shown = Text()
    for name, value in given.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
        shown.append(f"  {visible(name)}".replace("\n", "\\n") + "\n", "cyan")
        shown.append_text(_gutter("  │ ", visible(text)))
        shown.append("\n")
    shown.rstrip()
    return shown


_TASK_MARKS = {"pending": "[ ]", "in_progress": "[>]", "completed": "[x]", "abandoned": "[-]"}


def behind_bar(text: str) -> Text:
    """Text from outside, neutralised already, of which no line can pose as ours."""
    return _gutter("  │ ", text)


def _gutter(bar: str, text: str, style: str = "") -> Text:
    shown = Text()
    for number, line in enumerate(text.split("\n")):
        shown.append("\n" if number else "").append(bar, "dim").append(line, style)
    return shown


LISTS_TASKS = "todo_write"
FAILED_LINES = 15
"""Of what a call said that failed: its end, where the reason stands."""


@dataclass(frozen=True, slots=True)
class MadeCall:
    """One call that a model has made."""

    call_id: str
    tool: str
    input: str
    """JSON, as the model wrote it."""
    state: ToolResultState | None = None
    """None: it has no result yet."""
    output: str = ""
    data: tuple[str, ...] = ()
    """Names of what is no text in its result."""
    change: str = ""
    """The diff of what it changed."""
    ran: str = ""
    """Its effect class and how long it took, where a worker ran it."""


def calls_in(messages: Iterable[Msg]) -> list[MadeCall]:
    """In the order in which they were made."""
    made: dict[str, MadeCall] = {}
    for message in messages:
        for block in message.content:
            if isinstance(block, ToolCallBlock):
                made[block.id] = MadeCall(block.id, block.name, block.input)
            elif isinstance(block, ToolResultBlock):
                before = made.get(block.id)
                parts = () if isinstance(block.output, str) else block.output
                names = tuple(part.name or part.source.media_type for part in parts if isinstance(part, DataBlock))
                change = block.metadata.get("diff")
                diff = change if isinstance(change, str) else ""
                made[block.id] = MadeCall(
                    block.id,
                    block.name,
                    before.input if before else "",
                    block.state,
                    block.get_text(),
                    names,
                    diff,
                    how_it_ran(block),
                )
    return list(made.values())


def how_it_ran(result: ToolResultBlock) -> str:
    """`once, 2.4 s`; empty for one that no worker ran."""
    ran = ran_in(result)
    if ran is None:
        return ""
    effect = EFFECT_WORDS[ran.effect].partition(":")[0]
    return effect if ran.seconds is None else f"{effect}, {took(ran.seconds)}"


def took(seconds: float) -> str:
    """`under 0.1 s`, `0.3 s`, `42 s`, `2 min 5 s`, `1 h 2 min`."""
    if seconds < 0.1:
        return "under 0.1 s"
    if seconds < 10:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"


def in_full(call: MadeCall) -> Iterator[Text]:
    """The call, nothing shortened: how it ended, its arguments, what it answered and what it changed."""
    mark, style = mark_of(call.state)
    head = Text.assemble((f"{mark} ", style), (one_line(call.tool), "bold"), (f"  {one_line(call.call_id)}", "dim"))
    if call.ran:
        head.append(f"  {call.ran}", "dim")
    yield head
    yield arguments_in_full(call.input)
    if call.state is None:
        yield Text("  has no result yet", "yellow")
        return
    yield Text("  result", "cyan")
    yield behind_bar(harmless(call.output.rstrip("\n")) or "(no output)")
    for name in call.data:
        yield Text(f"  │ [{one_line(name)}]", "dim")
    if call.change:
        yield diff(call.change)


def end_of(output: str, most: int, shown: int = 1) -> tuple[list[Text], int]:
    """The last lines of a result of which the first `shown` ones that say something stand on the screen already, and
    how many there are in between."""
    rest = [line for line in output.splitlines() if line.strip()][shown:]
    return [Text(f"  │ {harmless(line)}", "dim") for line in rest[-most:]], max(len(rest) - most, 0)


def sub_agents(status: Status) -> Iterator[Text]:
    """Whose sub-agent it is, and its own sub-agents: how each stands, and the command that shows it."""
    if status.path:
        yield Text(f"sub-agent: {one_line(visible(status.path))}", "dim")
    for child in status.children:
        how = {"": "at work", "lost": "its session was ended from outside"}.get(child.outcome, child.outcome)
        text = f"sub-agent {child.agent}: {how}{_wanted(child)}"
        yield Text(one_line(visible(text)), "dim" if child.outcome else "yellow")
        shown = shlex.join(["longhaul", "show", child.session_id, *flags_for(status.user_id, child.agent)])
        yield Text(f"  {one_line(visible(shown))}", "dim")


def commands(status: Status) -> Iterator[Text]:
    """Those that run in the background, and the last words on those that have."""
    for command in status.commands:
        how = {"": "runs in the background", "unknown": "outcome unknown"}.get(command.fate, command.fate)
        text = f"command {command.call_id}: {how}{_wanted(command)}: {command.shown}"
        yield Text(one_line(visible(text)), "dim" if command.fate else "yellow")


def at_work(status: Status) -> Iterator[Text]:
    """What can be stopped by its id."""
    for command in status.commands:
        if not command.fate:
            text = f"in the background {command.call_id}{_wanted(command)}: {command.shown}"
            yield Text(one_line(visible(text)), "yellow")
    for child in status.children:
        if child.background and not child.outcome:
            text = f"in the background {child.call_id}{_wanted(child)}: sub-agent {child.agent}"
            yield Text(one_line(visible(text)), "yellow")


def stopped_lines(ends: dict[str, str]) -> Iterator[Text]:
    """What came of a stop, by call id: how each has ended; empty where nobody has heard of it."""
    for call_id, end in ends.items():
        how = f"is over: {end}" if end else "is stopping; it has not reported its end yet"
        yield Text(one_line(visible(f"{call_id} {how}")), "" if end else "yellow")
    if not ends:
        yield Text("there is no background work")


def _wanted(one: BackgroundCommand | Child) -> str:
    """Who has asked for its end; that it was asked for, where that has not come."""
    if one.stopped_by:
        over = one.fate if isinstance(one, BackgroundCommand) else one.outcome
        return f"{'' if over else ', stopping'} (stopped by {one.stopped_by})"
    return ""


CONFIRMED = "USER_CONFIRM_RESULT"
_FOUND = {True: "happened", False: "did not happen"}


def line_of(event: AgentEvent) -> Text | None:
    """Of a CUSTOM event; None for one that goes without saying."""
    if event.name == "model_failed" and event.error is not None:
        return Text(f"✗ {one_line(event.model_name)}: {one_line(event.error.message)}", style="red")
    if event.name == "model_refused" and event.error is not None:
        return Text(f"✗ {one_line(event.error.message)}", style="red")
    if event.name == "compression_failed" and event.error is not None:
        return Text(f"! the context could not be compressed: {one_line(event.error.message)}", style="yellow")
    if event.name == "tasks_changed":
        return task_list((task["state"], task["subject"]) for task in event.value["tasks"]) or None
    tell = _TOLD.get(event.name)
    told = tell(event.value) if tell and isinstance(event.value, dict) else ""
    return Text(f"! {one_line(told)}", style="yellow") if told else None


def stillness(event: AgentEvent) -> Text | None:
    """Of an event that stops a session or lets it go on; None for any other."""
    if event.type != "CUSTOM" or event.name not in _TURNS or not isinstance(event.value, dict):
        return None
    by = f" by {event.value['by']}" if event.value.get("by") else ""
    why = f": {event.value['why']}" if event.value.get("why") else ""
    return Text(one_line(f"{_TURNS[event.name]}{by}{why}"), "magenta")


def answers_call(event: AgentEvent, call: PendingCall) -> bool:
    """Whether nobody has to decide any more on this call as it was asked."""
    match event.type:
        case _ if event.type == CONFIRMED:
            return any(decision["call_id"] == call.call_id for decision in event.value["decisions"])
        case "TOOL_RESULT_START" | "TOOL_RESULT_END":
            return event.tool_call_id == call.call_id
        case "REPLY_END" | "USER_INTERRUPT":
            return event.reply_id == call.reply_id
        case _:
            return event.type == "CUSTOM" and event.name == "state_replaced"


def decided(event: AgentEvent, tool_of: Callable[[str], str]) -> list[Text]:
    """Who allowed and who denied what; `tool_of` names the tool of a call."""
    lines = []
    for decision in event.value["decisions"]:
        word = "allowed" if decision["allow"] else "denied"
        who, why = event.value.get("approver") or "somebody", decision.get("reason") or ""
        line = f"{who} {word} {tool_of(decision['call_id'])}{f': {why}' if why else ''}"
        lines.append(Text(one_line(visible(line)), "green" if decision["allow"] else "red"))
    return lines


def waiting_calls_text(event: AgentEvent) -> list[Text]:
    """The calls that wait from now on, and for whom."""
    whom = "a person" if event.type == "REQUIRE_USER_CONFIRM" else "an external system"
    if event.value and (server := event.value.get("asked_by")):
        whom = f"an answer to the MCP server {one_line(visible(server))}"
    head = (f"waits for {whom}: ", "yellow")
    return [Text.assemble(head, call_line(call.name, call.input)) for call in event.tool_calls]


_TURNS = {"paused": "paused", "resumed": "continues, resumed", "step_asked": "takes one step, as requested"}


def _probed(value: Mapping[str, Any]) -> str:
    return "" if value["finding"] == "unknown" else "looked: it " + _FOUND[value["finding"] == "happened"]


def _broken_off(value: Mapping[str, Any]) -> str:
    return next((where for stop, where in WHERE.items() if stop == value["stop"]), f"({value['stop']})")


def _by(value: Mapping[str, Any]) -> str:
    return f" by {value['by']}" if value.get("by") else ""


def _budgeted(value: Mapping[str, Any]) -> str:
    more = ", ".join(f"{name} by {number:g}" for name, number in value["more"].items())
    return (
        f"budget raised{_by(value)}: {more}"
        if more
        else f"to end because the budget is spent{_by(value)}: {value['end']}"
    )


def _repaired(value: Mapping[str, Any]) -> str:
    images = [f"{value['takes_no_images']} takes no images"] if value["takes_no_images"] else []
    thoughts = [f"{value['thoughts']} thinking blocks were left out"] if value["thoughts"] else []
    return "; ".join((*value["left_out"], *thoughts, *images)) or "an image is sent with its actual type"


def _planned(value: Mapping[str, Any]) -> str:
    over = [f"plan {value['over']['name']} is over: {value['over']['state']}"] if value["over"] else []
    return "; ".join((*over, *([f"plan: {value['plan']['name']}"] if value["plan"] else [])))


_TOLD: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "call_unsettled": lambda value: f"analyzed again: {value['reason']}",
    "broken_off": lambda value: f"the answer broke off {_broken_off(value)}",
    "unknown_stop": lambda value: f"the model stopped for an unknown reason: {value['stop_reason']}",
    "stuck_warning": lambda value: f"repeats itself: {value['pattern']}",
    "risk_warning": lambda value: f"runs with a risk: {value['reason']}",
    "budget_exhausted": lambda value: f"out of budget: {'; '.join(Lack(**lack).told() for lack in value['lacks'])}",
    "budget_changed": _budgeted,
    "stop_asked": lambda value: f"to stop in the background{_by(value)}: {', '.join(value['call_ids'])}",
    "outcome_probed": _probed,
    "outcome_resolved": lambda value: f"resolved by {value['by'] or 'somebody'}: it {_FOUND[value['happened']]}",
    "repaired": _repaired,
    "request_adjusted": lambda value: " ".join(value["adjusted"]),
    "context_compressed": lambda _: "the context was compressed",
    "state_replaced": lambda value: f"the state was replaced{_by(value)}{': ' + value['why'] if value['why'] else ''}",
    "plan_changed": _planned,
    "plan_mode_changed": lambda value: (
        "plan mode: the agent changes nothing" if value["active"] else "plan mode has ended"
    ),
    "worker_left": lambda value: f"worker {value['worker']} was shut down; another worker continues",
    "provider_unavailable": lambda value: (
        f"waits for the model's provider (try {value['attempt']} failed), next try at "
        f"{when(value['next_try'], seconds=True)}: {value['reason']}"
    ),
    "worker_lacks": lambda value: f"waits for a worker that can continue: {value['reason']}",
    "host_unavailable": lambda value: f"parked: {value['reason']}",
    "host_back": lambda value: f"host {value['host']} is back",
    "reminded": lambda _: "somebody was reminded of a call that waits",
    "escalated": lambda value: f"escalated to {value.get('to') or 'somebody else'}: nobody has answered",
    "expired": lambda _: "a call expired without an answer",
    "rules_without_tool": lambda value: (
        f"rules have no effect, because no agent has a tool {', '.join(value['tools'])}"
    ),
    "restored": lambda value: f"opened again: {value['note']}" if value.get("note") else "",
}
"""By the name of the event, what it says of its value."""


def stopped(event: AgentEvent) -> str:
    """Why a reply has ended before its model was done; empty where it was, or where its error tells it."""
    match event.finished_reason:
        case FinishedReason.EXCEED_MAX_ITERS:
            return "the limit of iterations was reached"
        case FinishedReason.OUT_OF_BUDGET if event.error is None:
            return "the budget is spent"
        case FinishedReason.REJECTED:
            return "a call was denied"
        case _:
            return ""
