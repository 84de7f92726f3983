"""Decides which reads are fused into the task of the session that has just allowed them: such a call is one event of
the history instead of six.

While they run the session hears nothing. So they are few and quick, and each is bounded: what passes a bound has no
result yet, and goes its own way like any other call.
"""

from collections.abc import Sequence

from longhaul.agent.decisions.rollover import Load
from longhaul.agent.fold.ledger.agent_state import OpenCall, effect_of
from longhaul.agent.record import Record
from longhaul.agent.values.conversation.tools import Effect

MOST_FUSED = 8
"""Calls of a turn: what they answer leaves the worker together, with the task."""
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


def _may_be(call: OpenCall, record: Record, load: Load) -> bool:
    tool = record.provided.tools[call.block.name]
    reads = tool.quick and not tool.external and effect_of(call, tool) is Effect.READ
    return reads and tool.name not in load.unfused and len(call.input) <= LONGEST_INPUT_CHARS
