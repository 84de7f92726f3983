"""The calls of this session lately that a suggested rule would let pass beside the call that it was suggested with."""

from collections.abc import Iterable
from dataclasses import dataclass

from longhaul.agent import entries as e
from longhaul.agent.permission.call_analysis import CallAnalysis
from longhaul.agent.permission.decision_table import decide_call, stricter
from longhaul.agent.permission.preview import brief
from longhaul.agent.permission.rulebook import in_force
from longhaul.agent.plain.measures import iso
from longhaul.agent.plain.text import gist
from longhaul.agent.plain.values import OpenValue, sparse
from longhaul.agent.reducer.context_state import analysis_of
from longhaul.agent.reducer.session_state import SessionState
from longhaul.agent.values.conversation.tools import ToolDescriptor
from longhaul.agent.values.permission import Behavior, PermissionContext, PermissionRule

LOOKED_AT = 100
"""Of the newest calls of the rule's tool. Each is decided twice in one workflow task, which has two seconds."""
NAMED = 10
GIST_CHARS = 160


class PassedCall(OpenValue):
    """A call that was made lately."""

    call_id: str
    gist: str
    """What it was about, on one line."""
    at: str
    """ISO time at which the model made it."""


class WouldPass(OpenValue):
    """What a rule comes to, held against the calls of its tool that the session still holds."""

    rule: PermissionRule
    looked_at: int = 0
    """So many other calls of that tool, the newest ones."""
    count: int = 0
    """Of these, those that ask as things stand and would not with the rule."""
    newest: tuple[PassedCall, ...] = sparse(())
    """The newest of those, the newest first."""


@dataclass
class _Made:
    """A call as its entries tell it."""

    input: str
    analysis: CallAnalysis
    at: int
    edited: str | None = None
    """By an approver. Nobody has looked yet whether it holds a secret, so it is not shown before somebody has."""


def would_pass(session: SessionState, call_id: str) -> list[WouldPass]:
    """One for each rule that was suggested with a call; nothing for a call that does not wait."""
    call = session.reply.calls.get(call_id) if session.reply else None
    tool = session.provided.tools.get(call.block.name) if call else None
    if call is None or tool is None or call.waits_for != "person":
        return []
    made = _calls_in(session.log, tool.name)
    made.pop(call_id, None)
    newest = list(reversed(made.items()))[:LOOKED_AT]
    return [_held_against(session, rule, tool, newest) for rule in call.suggested_rules]


def _held_against(
    session: SessionState, rule: PermissionRule, tool: ToolDescriptor, made: list[tuple[str, _Made]]
) -> WouldPass:
    now = in_force(session.permission, session.latest_at)
    then = now.model_copy(update={"rules": (*now.rules, rule)})
    root = session.provided.workspace_root
    found = [
        PassedCall(call_id=call_id, gist=brief(gist(one.input), GIST_CHARS), at=iso(one.at))
        for call_id, one in made
        if _passes(one, tool, then, root) and not _passes(one, tool, now, root)
    ]
    return WouldPass(rule=rule, looked_at=len(made), count=len(found), newest=tuple(found[:NAMED]))


def _passes(one: _Made, tool: ToolDescriptor, context: PermissionContext, root: str) -> bool:
    decision = decide_call(tool, one.input, one.analysis, context, root)
    return stricter(decision, context, one.analysis).behavior is Behavior.ALLOW


def _calls_in(log: Iterable[e.AnyEntry], tool: str) -> dict[str, _Made]:
    """By id, in the order in which they were made: arguments and findings as they were last."""
    made: dict[str, _Made] = {}
    for entry in log:
        match entry:
            case e.ModelSaid():
                made |= _calls_of_message(entry, tool)
            case e.HumanDecided():
                for decision in entry.decisions:
                    if one := made.get(decision.call_id):
                        one.edited = decision.input
            case e.CallsExamined():
                _look_at(entry, made)
            case e.CallUnsettled():
                if one := made.get(entry.call_id):
                    one.analysis, one.input = entry.analysis, entry.input or one.input
            case _:
                pass
    return made


def _calls_of_message(entry: e.ModelSaid, tool: str) -> dict[str, _Made]:
    message = entry.message
    calls = [block for block in message.get_tool_calls() if block.name == tool]
    return {
        block.id: _Made(block.input, analysis_of(entry, message, block.id) or CallAnalysis(), entry.at)
        for block in calls
    }


def _look_at(entry: e.CallsExamined, made: dict[str, _Made]) -> None:
    for call_id, analysis in entry.analysis.items():
        if one := made.get(call_id):
            runs = one.input if one.edited is None else one.edited
            one.analysis, one.edited, one.input = analysis, None, entry.marked.get(call_id, runs)
