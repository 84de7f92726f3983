"""Keeps the files of a workspace before a call that may change any, where its agent wants that."""

import asyncio

from temporalio import activity

from longhaul.activities.attempt import own_session
from longhaul.activities.attempt.heartbeat import beating
from longhaul.activities.attempt.workspaces import Workspaces
from longhaul.activities.contract import RunTool
from longhaul.agent.entries import CallOutcome, ToolReturned
from longhaul.agent.values.conversation.tools import Effect


async def keep_files(workspaces: Workspaces, ask: RunTool) -> str:
    """The snapshot; empty where none is wanted, or none could be made. A call that is tried again keeps its first."""
    if not ask.place.snapshots or ask.effect is Effect.READ:
        return ""
    again = activity.info().attempt > 1
    async with beating():
        return await asyncio.to_thread(workspaces.snapshot, ask.place, own_session.key(), ask.call_id, again=again)


def with_snapshot(outcome: CallOutcome, snapshot: str) -> CallOutcome:
    if not snapshot or not isinstance(outcome, ToolReturned):
        return outcome
    return outcome.model_copy(update={"snapshot": snapshot})
