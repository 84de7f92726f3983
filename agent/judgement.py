"""From a call's facts to the verdict on it: permission, what a person said before, and whether to look again."""

from agent.canonical import digest_of
from agent.entries import Ruling, Verdict
from agent.permission.engine import decide_call
from agent.permission.facts import CallFacts
from agent.permission.rules import Behavior
from agent.record import Record
from agent.state import OpenCall
from agent.tools import Effect, ToolDescriptor

MAX_UNSETTLED = 5
"""A world that keeps changing under a call would otherwise have it decided on for ever."""


def must_examine(call: OpenCall, record: Record) -> bool:
    """Whether the findings may no longer hold. Unknown tools and broken arguments need no findings."""
    tool = record.tools.get(call.block.name)
    if tool is None or (call.facts.arguments_error and not (call.edited and call.facts_stale)):
        return False
    return call.facts_stale


def judge(call: OpenCall, record: Record) -> Verdict:
    """The verdict on a call whose facts are fresh."""
    tool = record.tools.get(call.block.name)
    if tool is None:
        known = ", ".join(sorted(record.tools)) or "none"
        return _verdict(call, "invalid", f"there is no tool {call.block.name!r}; the tools are: {known}")
    if call.facts.arguments_error:
        return _verdict(call, "invalid", call.facts.arguments_error)
    if call.times_unsettled > MAX_UNSETTLED:
        return _verdict(call, "invalid", f"each time it was about to run, something had changed: {call.changed}")
    decision = decide_call(tool, call.input, call.facts, record.state.permission_context, record.workspace_root)
    match decision.behavior:
        case Behavior.DENY:
            return _verdict(call, "deny", decision.reason)
        case Behavior.ASK if not _approval_holds(call):
            why = f"{_why_again(call)}{decision.reason}"
            return Verdict(call_id=call.block.id, behavior="ask", reason=why, suggested_rules=decision.suggested_rules)
        case _:
            return _verdict(call, "external" if tool.external else "allow", decision.reason)


def seen_digest(call: OpenCall) -> str:
    """Names what a person is shown when asked: the arguments and the findings. An answer may say which it was for."""
    return digest_of([call.block.name, call.input, call.facts.model_dump(mode="json")])


def effect_of(call: OpenCall, tool: ToolDescriptor) -> Effect:
    """What running the call twice would do: a call proven to be read-only is safe whatever its tool may do."""
    return Effect.READ if call.facts.read_only else tool.effect


def _approval_holds(call: OpenCall) -> bool:
    """An approval is for what was seen: it is void when fresh findings differ in what the call would touch."""
    seen = call.approved_facts
    return call.approved and seen is not None and _essence(call.facts) == _essence(seen)


def _essence(facts: CallFacts) -> tuple[object, ...]:
    return (facts.cwd, facts.paths, facts.commands, facts.before, facts.after, facts.safety, facts.not_understood)


def _why_again(call: OpenCall) -> str:
    if call.changed:
        return f"It was about to run when something had changed: {call.changed}. "
    return "What it would touch has changed since it was approved. " if call.approved else ""


def _verdict(call: OpenCall, behavior: Ruling, reason: str) -> Verdict:
    return Verdict(call_id=call.block.id, behavior=behavior, reason=reason)
