"""Workflows that are no sessions run where trace contexts are carried: a hub, and the scheduled run of a schedule."""

from datetime import timedelta
from uuid import uuid4

import pytest

from tests.limits import SURE_SECONDS
from tests.workflows.conftest import Stage
from tests.workflows.hubs.rooms import heard, member

pytestmark = pytest.mark.server


async def test_a_hub_and_a_scheduled_run_do_their_work_where_trace_contexts_are_carried(
    unserved: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LONGHAUL_LOG", "json")
    stage = unserved
    ana, ben = member(stage, {"text": "one"}), member(stage, {"text": "-"})
    schedule = f"traced-{uuid4().hex[:8]}"
    async with stage.another_worker():
        await stage.app.schedules.add(schedule, "Go", agent=stage.agent({"text": "-"}), cron="0 0 1 1 *")
        fired = await stage.app.schedules.trigger(schedule, within=timedelta(seconds=SURE_SECONDS))
        async with stage.app.hub(f"traced-{stage.name}", {"ana": ana, "ben": ben}) as hub:
            await hub.agents(ana)[0].reply("Speak")
        await stage.app.schedules.remove(schedule)
        assert fired.state == "asked"
        assert await heard(ben) == ["ana: one"]
