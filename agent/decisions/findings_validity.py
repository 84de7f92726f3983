"""Tells whether a verdict, an approval or findings still hold: what has aged or changed since is looked at again."""

from longhaul.agent.fold.ledger.agent_state import OpenCall
from longhaul.agent.fold.ledger.approval_digest import essence, terms
from longhaul.agent.permission.confirmation_policy import analyzers_of
from longhaul.agent.permission.rulebook import in_force
from longhaul.agent.record import Record
from longhaul.agent.values.conversation.tools import ToolDescriptor
from longhaul.agent.values.findings_age import is_too_old


def must_examine(call: OpenCall, record: Record, at_ms: int = 0) -> bool:
    """Whether the findings may no longer hold. Unknown tools and broken arguments need no findings."""
    tool = record.provided.tools.get(call.block.name)
    if tool is None or (call.facts.arguments_error and not (call.edited and call.facts_stale)):
        return False
    return call.facts_stale or has_aged(call, at_ms) or _must_analyze(call, record, tool)


def has_aged(call: OpenCall, at_ms: int) -> bool:
    """Whether an approved call has waited so long for its turn that its findings are made again before it runs."""
    return call.approved and is_too_old(call.facts_at, at_ms)


def _must_analyze(call: OpenCall, record: Record, tool: ToolDescriptor) -> bool:
    """Once for the same findings: one that gave nothing counts as unknown. Not for what the session answers itself."""
    return not (tool.inside or call.analyzed) and bool(analyzers_of(record.permission))


def must_judge_again(call: OpenCall, record: Record, at_ms: int) -> bool:
    """Whether other rules hold now than when the verdict was made, by an entry or by the passing of time."""
    now, then = in_force(record.permission, at_ms or record.latest_at), in_force(record.permission, call.judged_at)
    return call.judged < record.rules.changed or now.rules != then.rules


def findings_hold(call: OpenCall) -> bool:
    """An approval is for what was seen: it is void when fresh findings differ in what the call would touch."""
    seen = call.approved_facts
    return call.approved and seen is not None and essence(call.facts) == essence(seen)


def terms_hold(call: OpenCall, record: Record, tool: ToolDescriptor) -> bool:
    return call.approved_terms in ("", terms(tool, record.permission))
