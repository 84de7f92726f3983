"""`AgentList`, `AgentSend` and `AgentStop`: what a lead does with the sub-agents that it has started."""

from pydantic import Field

from longhaul.agent.decisions.session_tools.session_tool import InsideTool, failed, reading, told
from longhaul.agent.entries.all_entries import CallAnswered
from longhaul.agent.fold.ledger.agent_state import OpenCall
from longhaul.agent.fold.ledger.ledger import Ledger
from longhaul.agent.plain.nearest import did_you_mean
from longhaul.agent.plain.times import iso
from longhaul.agent.plain.values import OpenValue
from longhaul.agent.values.subagents import (
    AGENT_LIST,
    AGENT_SEND,
    AGENT_STOP,
    LONGEST_WORD_CHARS,
    MOST_WORDS,
    Child,
)


class _Named(OpenValue):
    id: str


class _Word(_Named):
    message: str = Field(min_length=1, max_length=LONGEST_WORD_CHARS)


def _list(call: OpenCall, ledger: Ledger) -> CallAnswered:
    lines = [_line(child) for child in ledger.children.values()]
    return CallAnswered(result=told(call, "\n".join(lines) or "No sub-agent was started yet."))


def _line(child: Child) -> str:
    how = child.outcome or ("told to stop" if child.stopped or child.unwanted else "at work")
    where = " in the background" if child.background else ""
    return f"- {child.call_id}: {child.agent}{where}, {how}, since {iso(child.at)}"


def _send(call: OpenCall, ledger: Ledger, word: _Word) -> CallAnswered:
    if why := _why_not(word.id, ledger):
        return failed(call, why)
    if len(ledger.children[word.id].words) >= MOST_WORDS:
        return failed(call, f"{MOST_WORDS} messages wait for {word.id!r} already; wait until it has heard them")
    return CallAnswered(result=told(call, f"{word.id!r} reads it at its next step."), sent={word.id: word.message})


def _stop(call: OpenCall, ledger: Ledger, named: _Named) -> CallAnswered:
    if why := _why_not(named.id, ledger):
        return failed(call, why)
    session = ledger.children[named.id].session_id
    text = f"{named.id!r} is told to stop. What it did stands in its session {session!r}; no message of it comes."
    return CallAnswered(result=told(call, text), unwanted=(named.id,))


def _why_not(call_id: str, ledger: Ledger) -> str:
    at_work = [one.call_id for one in ledger.children.values() if one.background and not one.outcome]
    child = ledger.children.get(call_id)
    if child is None or not child.background:
        return f"id: there is no sub-agent {call_id[:100]!r} in the background; {did_you_mean(call_id, at_work)}"
    if child.outcome or child.stopped or child.unwanted:
        return f"id: {call_id!r} is not at work any more ({child.outcome or 'told to stop'})"
    return ""


_ID = {"type": "string", "description": "As Agent has answered it, and AgentList lists it."}
LIST_TOOL = InsideTool(
    name=AGENT_LIST,
    description="Lists the sub-agents that this session has started, and how each stands.",
    input_schema={"type": "object", "properties": {}, "additionalProperties": False},
    answer=_list,
)
SEND_TOOL = InsideTool(
    name=AGENT_SEND,
    description="Tells something to a sub-agent that works in the background. It reads it at its next step, and does "
    "not answer by itself.",
    input_schema={
        "type": "object",
        "properties": {
            "id": _ID,
            "message": {"type": "string", "minLength": 1, "maxLength": LONGEST_WORD_CHARS},
        },
        "required": ["id", "message"],
        "additionalProperties": False,
    },
    answer=reading(_Word, _send),
)
STOP_TOOL = InsideTool(
    name=AGENT_STOP,
    description="Stops a sub-agent that works in the background.",
    input_schema={
        "type": "object",
        "properties": {"id": _ID},
        "required": ["id"],
        "additionalProperties": False,
    },
    answer=reading(_Named, _stop),
)
