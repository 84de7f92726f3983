"""Begins a sub-agent that closes with its task, finds what a later reply needs, and writes a session down, within the
session's own task: without an activity, so that a short reply costs few events.

What takes long or passes a bound has no answer, and an activity is asked.
"""

from longhaul.activities import contract as world
from longhaul.agent import entries as e
from longhaul.agent.life.rollover_state import carry
from longhaul.agent.record import Record
from longhaul.agent.views.event_types import EventsSoFar
from longhaul.workflows import activity_options
from longhaul.workflows.running_activities import at_once

QUICK_PLACES = ("shared", "local")
"""Kinds of workspace that are found in a moment; a working tree has to be made."""
LONGEST_CHARS = 100_000
"""Of all that is written down; more is pulled by queries, in pages."""
FEWEST_CHARS = 2
"""Of a token of a context, as they are estimated."""


async def restored(record: Record, ask: world.RestoreInput) -> e.Restored | None:
    """None where an activity has to look."""
    closes_with_task = record.parent is not None and record.parent.by_result
    if not closes_with_task or not is_found_soon(record) or ask.reset_run:
        return None
    return await at_once(
        world.RESTORE, ask, e.Restored, activity_options.at_once("begin, and find tools and workspace")
    )


def to_write(
    record: Record, ask: world.CheckpointInput, before: EventsSoFar, *, slow: bool
) -> world.CheckpointInput | None:
    """None where an activity has to write it, or to tell people something beside. `slow`: this run has tried before,
    and it took too long."""
    if slow or record.keeping.failed is not None or record.notices.unsent:
        return None  # while a store is away, each reply would wait for it once more
    if record.context.tokens * FEWEST_CHARS > LONGEST_CHARS:
        return None  # and so nothing is spelt that is thrown away
    # Of a session that ends the entries stay with its state, and so must the messages that they brought.
    messages = record.keeping.saved_messages if ask.closing else world.NO_MESSAGES
    whole = carry(record, before, ask.saved, messages).model_dump_json()
    return None if len(whole) > LONGEST_CHARS else ask.model_copy(update={"whole": whole})


async def checkpointed(ask: world.CheckpointInput) -> e.Checkpointed | None:
    """`ask`: of `to_write`. None where it takes long, or the store does not answer."""
    return await at_once(world.CHECKPOINT, ask, e.Checkpointed, activity_options.at_once("write down what is new"))


def is_found_soon(record: Record) -> bool:
    """Of what a reply needs."""
    spec = record.spec
    return not spec.mcps and (spec.workspace is None or spec.workspace.place in QUICK_PLACES)
