"""Tells what happens around a reply beside words and calls, a line each: who decided, what failed, what was changed."""

from collections.abc import Callable, Mapping
from typing import Any

from rich.text import Text

from longhaul.agent.values.budget import Lack
from longhaul.agent.values.conversation.messages import WHERE, FinishedReason
from longhaul.agent.views.event_types import AgentEvent
from longhaul.starter import render
from longhaul.starter.visible import one_line, visible
from longhaul.workflows.contract import PendingCall

CONFIRMED = "USER_CONFIRM_RESULT"
_FOUND = {True: "happened", False: "did not happen"}


def line_of(event: AgentEvent) -> Text | None:
    """Of a CUSTOM event; None for one that goes without saying."""
    if event.name == "model_failed" and event.error is not None:
        return Text(f"✗ {one_line(event.model_name)}: {one_line(event.error.message)}", style="red")
    if event.name == "model_refused" and event.error is not None:
        return Text(f"✗ {one_line(event.error.message)}", style="red")
    if event.name == "compression_failed" and event.error is not None:
        return Text(f"! the context could not be made shorter: {one_line(event.error.message)}", style="yellow")
    if event.name == "tasks_changed":
        return render.task_list((task["state"], task["subject"]) for task in event.value["tasks"]) or None
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


def asked(event: AgentEvent) -> list[Text]:
    """The calls that wait from now on, and for whom."""
    whom = "a person" if event.type == "REQUIRE_USER_CONFIRM" else "an outside system"
    if event.value and (server := event.value.get("asked_by")):
        whom = f"an answer to the MCP server {one_line(visible(server))}"
    head = (f"waits for {whom}: ", "yellow")
    return [Text.assemble(head, render.call_line(call.name, call.input)) for call in event.tool_calls]


_TURNS = {"paused": "paused", "resumed": "goes on, resumed", "step_asked": "takes one step, asked for"}


def _probed(value: Mapping[str, Any]) -> str:
    return "" if value["finding"] == "unknown" else "looked: it " + _FOUND[value["finding"] == "happened"]


def _broken_off(value: Mapping[str, Any]) -> str:
    return next((where for stop, where in WHERE.items() if stop == value["stop"]), f"({value['stop']})")


def _by(value: Mapping[str, Any]) -> str:
    return f" by {value['by']}" if value.get("by") else ""


def _budgeted(value: Mapping[str, Any]) -> str:
    more = ", ".join(f"{name} by {number:g}" for name, number in value["more"].items())
    return f"budget raised{_by(value)}: {more}" if more else f"to end for want of budget{_by(value)}: {value['end']}"


def _repaired(value: Mapping[str, Any]) -> str:
    images = [f"{value['takes_no_images']} takes no images"] if value["takes_no_images"] else []
    thoughts = [f"{value['thoughts']} thoughts were left out"] if value["thoughts"] else []
    return "; ".join((*value["left_out"], *thoughts, *images)) or "an image is sent as what it is"


def _second(moment: str) -> str:
    """Of an ISO time in UTC."""
    return f"{moment[:19].replace('T', ' ')} UTC"


def _planned(value: Mapping[str, Any]) -> str:
    over = [f"plan {value['over']['name']} is over: {value['over']['state']}"] if value["over"] else []
    return "; ".join((*over, *([f"plan: {value['plan']['name']}"] if value["plan"] else [])))


_TOLD: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "call_unsettled": lambda value: f"looked at again: {value['reason']}",
    "broken_off": lambda value: f"the answer broke off {_broken_off(value)}",
    "unknown_stop": lambda value: f"the model stopped for a reason that is not known here: {value['stop_reason']}",
    "stuck_warning": lambda value: f"goes in circles: {value['pattern']}",
    "risk_warning": lambda value: f"runs with a risk: {value['reason']}",
    "budget_exhausted": lambda value: f"out of budget: {'; '.join(Lack(**lack).told() for lack in value['lacks'])}",
    "budget_changed": _budgeted,
    "stop_asked": lambda value: f"to stop in the background{_by(value)}: {', '.join(value['call_ids'])}",
    "doubt_probed": _probed,
    "doubt_settled": lambda value: f"settled by {value['by'] or 'somebody'}: it {_FOUND[value['happened']]}",
    "repaired": _repaired,
    "request_adjusted": lambda value: " ".join(value["adjusted"]),
    "context_compressed": lambda _: "the context was made shorter",
    "state_replaced": lambda value: f"the state was replaced{_by(value)}{': ' + value['why'] if value['why'] else ''}",
    "plan_changed": _planned,
    "plan_mode_changed": lambda value: "plan mode: nothing is changed" if value["active"] else "plan mode has ended",
    "worker_left": lambda value: f"worker {value['worker']} was shut down; another one goes on",
    "provider_away": lambda value: (
        f"waits for the model's provider (try {value['attempt']} failed), next try at {_second(value['next_try'])}: "
        f"{value['reason']}"
    ),
    "worker_lacks": lambda value: f"waits for a worker that can go on: {value['reason']}",
    "host_away": lambda value: f"parked: {value['reason']}",
    "host_back": lambda value: f"host {value['host']} is back",
    "reminded": lambda _: "somebody was reminded of a call that waits",
    "escalated": lambda value: f"handed up to {value.get('to') or 'somebody else'}: nobody has answered",
    "expired": lambda _: "nobody answered a call in time",
    "rules_without_tool": lambda value: f"rules bind nothing, for nobody has a tool {', '.join(value['tools'])}",
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
