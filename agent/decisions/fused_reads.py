"""Decides which reads are fused into the task of the session that has just allowed them: such a call is one event of
the history instead of six.

While they run the session hears nothing. So they are few and quick, and each is bounded: what passes a bound has no
result yet, and goes its own way like any other call.
"""

from collections.abc import Collection, Mapping, Sequence

from longhaul.agent.decisions.rollover import Load
from longhaul.agent.fold.ledger.agent_state import OpenCall, effect_by
from longhaul.agent.permission.confirmation_policy import analyzers_of, stricter
from longhaul.agent.permission.decision_table import decide_call
from longhaul.agent.permission.facts import CallFacts
from longhaul.agent.permission.rulebook import in_force
from longhaul.agent.record import Record
from longhaul.agent.values.conversation.messages import ToolCallBlock
from longhaul.agent.values.conversation.tools import Effect, ToolDescriptor
from longhaul.agent.values.permission import Behavior, PermissionContext

MOST_FUSED = 8
"""Calls of a turn: what they answer leaves the worker together, with the task."""
LONGEST_RULES_CHARS = 2_000
"""Of rules that are sent with each model call of such an agent."""
RULE_CHARS = 60
"""Of a rule beside its pattern."""
LONGEST_INPUT_CHARS = 2_000
"""Longer arguments may have to be asked of the session, which can't answer in the midst of its task."""


def are_fused(ready: Sequence[OpenCall], record: Record, load: Load) -> bool:
    """Whether these allowed calls, which nobody has begun, are to be read so: all of their turn or none."""
    turn = record.current.calls
    return (
        record.spec.react_config.fuse_reads
        and not record.spec.host
        and record.spec.seal is None
        and not load.running
        and len(ready) == len(turn) <= MOST_FUSED
        and all(_may_be(call, record, load) for call in ready)
    )


def rules_sent_along(record: Record, unfused: Collection[str]) -> PermissionContext | None:
    """What the reads of the next answer are judged by beforehand, where its activity may make them at once; None where
    it may not. What they answer counts only when the session itself allows them."""
    spec = record.spec
    if not spec.react_config.fuse_reads or unfused or record.state.planning:
        return None
    if spec.host or spec.seal or spec.secrets or spec.postprocess:
        return None
    context = in_force(record.permission, record.latest_at)
    length = sum(len(rule.rule_content or "") + RULE_CHARS for rule in context.rules)
    return None if analyzers_of(context) or length > LONGEST_RULES_CHARS else context


def are_read_along(
    calls: Sequence[ToolCallBlock],
    facts: Mapping[str, CallFacts],
    tools: Mapping[str, ToolDescriptor],
    context: PermissionContext,
    root: str,
) -> bool:
    """Whether all calls of an answer are quick reads that are allowed by these rules, and can be made together."""
    known = [tools[call.name] for call in calls if call.name in tools]
    return (
        len({call.id for call in calls if call.id}) == len(known) == len(calls)
        and (len(known) == 1 or all(tool.concurrency_safe for tool in known))
        and all(
            call.id in facts and _is_let_read(call, facts[call.id], tool, context, root)
            for call, tool in zip(calls, known, strict=True)
        )
    )


def _is_let_read(
    call: ToolCallBlock, facts: CallFacts, tool: ToolDescriptor, context: PermissionContext, root: str
) -> bool:
    if not _is_quick_read(tool, facts, call.input):
        return False
    decision = stricter(decide_call(tool, call.input, facts, context, root), context, facts)
    return decision.behavior is Behavior.ALLOW and not decision.confined


def _may_be(call: OpenCall, record: Record, load: Load) -> bool:
    tool = record.provided.tools[call.block.name]
    return tool.name not in load.unfused and _is_quick_read(tool, call.facts, call.input)


def _is_quick_read(tool: ToolDescriptor, facts: CallFacts, arguments: str) -> bool:
    reads = tool.quick and not tool.external and effect_by(facts, tool) is Effect.READ
    return reads and len(arguments) <= LONGEST_INPUT_CHARS
