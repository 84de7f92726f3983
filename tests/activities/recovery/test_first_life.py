"""The begin of an incarnation before which the store has nothing, within a sub-agent's first task."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from longhaul.activities.attempt.fused_reads import UNFUSED
from longhaul.activities.attempt.workspaces import Workspaces
from longhaul.activities.contract import RestoreInput
from longhaul.activities.prepare_reply import Preparation
from longhaul.activities.recovery import Claim, IncarnationKey, empty_record
from longhaul.activities.restore import Restoring
from longhaul.agent.entries import Restored
from longhaul.stores.state.file_store import MemoryStore
from longhaul.stores.state.store import CantReplace, SessionRecord

ASK = RestoreInput(session_id="job.t7", agent="hand")


class Counting(MemoryStore):
    """Says what was asked of it."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    async def get_session(self, user_id: str | None, agent_id: str, session_id: str) -> SessionRecord | None:
        self.asked.append("get")
        return await super().get_session(user_id, agent_id, session_id)

    async def save_checkpoint(self, record: SessionRecord) -> bool:
        self.asked.append("save")
        return await super().save_checkpoint(record)

    async def replace_session(self, record: SessionRecord, expected: tuple[int, int] | None) -> bool:
        self.asked.append("replace")
        return await super().replace_session(record, expected)


class Older(Counting):
    """One of somebody's own that can't compare and write in one step."""

    async def replace_session(self, record: SessionRecord, expected: tuple[int, int] | None) -> bool:
        raise CantReplace("it has no `replace_session`")


async def restored(store: MemoryStore, run_id: str = "run-1") -> Restored:
    environment = ActivityEnvironment()
    environment.info = replace(environment.info, is_local=True, workflow_run_id=run_id, heartbeat_timeout=None)
    begin = cast(Callable[..., Awaitable[Any]], Restoring(store, Workspaces(Path()), cast(Preparation, None)).restore)
    return cast(Restored, await environment.run(begin, ASK))


async def test_a_first_life_is_looked_for_and_written_down_in_one_step() -> None:
    store = Counting()

    found = await restored(store)

    assert (found.incarnation, found.source, found.carried) == (1, "nothing", None)
    assert store.asked == ["replace"]
    written = await store.get_session(None, "hand", "job.t7")
    assert written is not None
    assert (written.run_id, written.incarnation, written.closed) == ("run-1", 1, False)


async def test_the_same_task_made_again_begins_the_same_life() -> None:
    store = Counting()
    first = await restored(store)

    assert await restored(store) == first


@pytest.mark.parametrize("store", [Counting, Older])
async def test_a_life_that_the_store_knows_is_left_to_an_activity(store: type[Counting]) -> None:
    kept = store()
    await kept.upsert_session(empty_record(IncarnationKey(None, "hand", "job.t7", 1, "run-0"), Claim(source="nothing")))

    with pytest.raises(ApplicationError) as refused:
        await restored(kept)

    assert refused.value.type == UNFUSED
    written = await kept.get_session(None, "hand", "job.t7")
    assert written is not None
    assert written.run_id == "run-0"


async def test_a_store_that_cannot_replace_is_looked_at_first() -> None:
    store = Older()

    assert (await restored(store)).source == "nothing"
    assert store.asked == ["get", "save"]
