"""Begins a sub-agent that closes with its task, and writes it down, within the first and the last task of its session:
without an activity of its own, so that a short task costs few events.

What takes long or passes a bound has no answer, and goes the way of all other sessions.
"""

from longhaul.activities import contract as world
from longhaul.agent.entries import every as e
from longhaul.agent.life.carried import carry
from longhaul.agent.record import Record
from longhaul.agent.views.event import EventsSoFar
from longhaul.workflows import retry_policies
from longhaul.workflows.underway import at_once

QUICK_PLACES = ("shared", "local")
"""Kinds of workspace that are found in a moment; a working tree has to be made."""
LONGEST_CHARS = 100_000
"""Of all that is written down; more is pulled by queries, in pages."""


async def restored(record: Record, ask: world.RestoreInput) -> e.Restored | None:
    """None where an activity has to look."""
    if not _closes_with_task(record) or not _is_found_soon(record):
        return None
    return await at_once(world.RESTORE, ask, e.Restored, retry_policies.at_once("begin, and find tools and workspace"))


async def checkpointed(record: Record, ask: world.CheckpointInput, before: EventsSoFar) -> e.Checkpointed | None:
    """None where an activity has to write it, or to tell people something beside."""
    if not ask.closing or not _closes_with_task(record) or record.notices.unsent:
        return None
    whole = carry(record, before, ask.saved, world.NO_MESSAGES).model_dump_json()
    if len(whole) > LONGEST_CHARS:
        return None
    full = ask.model_copy(update={"whole": whole})
    return await at_once(world.CHECKPOINT, full, e.Checkpointed, retry_policies.at_once("write down what is new"))


def _closes_with_task(record: Record) -> bool:
    return record.parent is not None and record.parent.by_result


def _is_found_soon(record: Record) -> bool:
    spec = record.spec
    return not spec.mcps and (spec.workspace is None or spec.workspace.place in QUICK_PLACES)
