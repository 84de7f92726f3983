"""Schedules on the server: what each scheduled run asks, once; what becomes of one that comes while another is at
work."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from textwrap import indent
from typing import Any
from uuid import uuid4

import pytest
from temporalio.client import Schedule, ScheduleActionStartWorkflow, ScheduleSpec, ScheduleState

from longhaul.agent.values.scheduled_request import ScheduledRequest, ScheduledRun
from longhaul.starter.client.schedule_cards import BadSchedule, PastScheduledRun
from longhaul.starter.worker_host.deliveries import ScheduledRequests
from tests.limits import SURE_SECONDS
from tests.workflows.conftest import Stage
from tests.workflows.operations import calls, until

pytestmark = pytest.mark.server

PAUSED = ScheduleState(paused=True)
SURE = timedelta(seconds=SURE_SECONDS)
NEVER = "0 0 1 1 *"
"""Fires when it is triggered, unless the test runs in the first second of a year."""


@pytest.fixture
async def name(unserved: Stage) -> AsyncIterator[str]:
    """Of a schedule of the test's own, which is gone afterwards."""
    mine = f"tide-{uuid4().hex[:8]}"
    yield mine
    with suppress(BadSchedule):
        await unserved.app.schedules.remove(mine)


async def fire(stage: Stage, name: str) -> PastScheduledRun:
    """Trigger it, and wait for what comes of it. Two within one second would be one."""
    await asyncio.sleep(1.1)
    return await stage.app.schedules.trigger(name, within=SURE)


async def test_the_program_of_the_page_adds_a_schedule(
    stage: Stage, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (Path(__file__).parents[3] / "docs" / "agents" / "schedules.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    coder = stage.folder / "coder.toml"
    coder.write_text(f'model = "{stage.script({"text": "2 m."})}"\ntools = []\n')
    program = program.replace('"coder"', repr(str(coder))).replace('"ebb"', repr(name))
    names: dict[str, Any] = {}

    exec(f"async def run(app):\n{indent(program, '    ')}", names)  # noqa: S102  our own page
    await names["run"](stage.app)
    fired = await fire(stage, name)

    assert capsys.readouterr().out.startswith("every 30m; each run uses a new session;")
    assert fired.state == "asked"


@pytest.mark.proves("F4")
async def test_each_scheduled_run_begins_a_session_and_one_that_comes_too_early_is_left_out(
    stage: Stage, name: str
) -> None:
    agent = stage.agent(calls("send", to="Ana"), {"text": "Sent."})
    card = await stage.app.schedules.add(
        name, "Write to Ana", agent=agent, user="ana", cron=NEVER, zone="Europe/Berlin"
    )

    first = await fire(stage, name)
    session = stage.app.session(first.session, user="ana", agent=agent)
    waiting = await session.wait(first.reply_id)
    second = await fire(stage, name)
    third = await fire(stage, name)
    (call,) = await session.pending()
    await session.confirm(call, allow=True)
    done = await session.wait(waiting.id)
    fourth = await fire(stage, name)

    assert card.terms.in_words() == (
        "at '0 0 1 1 *' in Europe/Berlin; each run uses a new session; a run is skipped while the previous "
        "run is working; runs missed while the server was down start late, if they are not older than 1d"
    )
    assert first.session.startswith(f"{name}-20")
    assert [one.state for one in (first, second, third, fourth)] == ["asked", "left out", "left out", "asked"]
    assert second.why == f"session {first.session!r} of the previous run is still working"
    assert done.get_text_content() == "Sent."
    assert fourth.session != first.session


async def test_scheduled_runs_of_one_session_wait_for_their_turn_or_are_left_out(stage: Stage, name: str) -> None:
    agent = stage.agent(calls("send", to="Ana"), {"text": "Sent."}, {"text": "Nothing new."}, {"text": "Asked."})
    session = stage.app.session(f"{name}-log", agent=agent)
    await stage.app.schedules.add(
        name, "Anything new?", agent=agent, session=session.id, every=timedelta(days=300), overlap="queue"
    )

    first = await fire(stage, name)
    await session.wait(first.reply_id)
    second = await fire(stage, name)
    queued = (await session.status()).queued
    await stage.app.schedules.remove(name)
    await stage.app.schedules.add(name, "Anything new?", agent=agent, session=session.id, cron=NEVER)
    left_out = await fire(stage, name)
    (call,) = await session.pending()
    await session.confirm(call, allow=True)
    done = await session.wait(second.reply_id)

    assert (first.session, second.session, queued) == (session.id, session.id, 1)
    assert (left_out.state, left_out.why) == ("left out", f"session {session.id!r} is at work")
    assert done.get_text_content() == "Nothing new."
    assert (await session.status()).refused == 0


async def test_a_scheduled_run_that_is_tried_again_asks_once(stage: Stage, name: str) -> None:
    agent = stage.agent({"text": "Once."}, {"text": "Twice."})
    request = ScheduledRequest(schedule=name, prompt="Go", spec=agent, overlap="skip")
    scheduled_run = ScheduledRun(request=request, request_id=f"{name}-firing", at=1_764_072_000_000)
    worker = ScheduledRequests(stage.client, stage.settings)

    asked = [await worker.request(scheduled_run) for _ in range(3)]
    await stage.app.session(asked[0].session, agent=agent).wait(asked[0].reply_id)
    asked.append(await worker.request(scheduled_run))

    assert asked[0].session == f"{name}-20251125-120000"
    assert len({one.reply_id for one in asked}) == 1
    assert (await stage.app.session(asked[0].session, agent=agent).status()).model_calls == 1


@pytest.mark.proves("F4")
async def test_a_trigger_is_not_lost_where_the_schedule_changes_in_the_same_moment(stage: Stage, name: str) -> None:
    schedules, agent = stage.app.schedules, stage.agent({"text": "Hm."})
    for number in range(6):
        await schedules.add(name, "Look", agent=agent, user=f"user-{number}", cron=NEVER)
        came, _ = await asyncio.gather(schedules.trigger(name, within=SURE), schedules.pause(name))
        counted = len(await schedules.scheduled_runs(name))
        await schedules.remove(name)
        assert (came.state, counted, came.session.startswith(f"{name}-20")) == ("asked", 1, True)


async def test_a_trigger_without_a_worker_is_under_way_and_asks_when_there_is_one(unserved: Stage, name: str) -> None:
    agent = unserved.agent({"text": "Hm."})
    await unserved.app.schedules.add(name, "Look", agent=agent, cron=NEVER)

    waiting = await unserved.app.schedules.trigger(name, within=timedelta(seconds=1.5))
    async with unserved.another_worker():

        async def over() -> bool:
            return [one.state for one in await unserved.app.schedules.scheduled_runs(name)] == ["asked"]

        await until(over)

    assert (waiting.state, waiting.session) == ("under way", "")


async def test_a_schedule_is_listed_paused_resumed_and_removed(stage: Stage, name: str) -> None:
    schedules, agent = stage.app.schedules, stage.agent({"text": "Hm."})
    added = await schedules.add(name, "Look", agent=agent, every=timedelta(days=200), paused=True)

    async def listed() -> bool:
        return name in [card.name for card in await schedules.list()]

    await until(listed)
    await schedules.resume(name)
    going = await schedules.show(name)
    await schedules.pause(name, why="the harbour is closed")
    paused = await schedules.show(name)
    await schedules.remove(name)

    assert (added.paused, added.next_at) == (True, "")
    assert (going.paused, going.note, going.next_at > "2026") == (False, "", True)
    assert (paused.paused, paused.note) == (True, "the harbour is closed")
    assert going.terms.in_words().startswith("every 200d; each run uses a new session; ")
    assert (going.terms.agent, going.terms.prompt) == ("lamp", "Look")
    for act in (schedules.show, schedules.pause, schedules.resume, schedules.trigger, schedules.remove):
        with pytest.raises(BadSchedule, match=f"there is no schedule '{name}'"):
            await act(name)


NO_DAYS = ("31 2 *", "30/1 FEB 1", "31 4-6/2 0-7", "030-31 02 *", "31 sept,nov *", "31 2/12 *", "31 apr-jun/2 *,1")
"""For which the server says no next time either."""
DAYS = ("29 2 *", "31 2/2 *", "31,1 2 *", "*/40 2 *", "31 apr-jun *", "31 */2 *", "30 2,June *")
BAD: list[tuple[dict[str, Any], str]] = [
    ({"name": "a b"}, "name: 'a b' must be 1 to 100 letters"),
    ({"name": ""}, "name: '' must be"),
    ({"prompt": " "}, "prompt: it is empty"),
    ({}, "give a cron line or `every`, one of the two"),
    ({"cron": "@daily", "every": timedelta(hours=1)}, "give a cron line or `every`, one of the two"),
    ({"every": timedelta(hours=1), "zone": "UTC"}, "zone: it is for a cron line"),
    ({"every": timedelta(milliseconds=5)}, "is too often"),
    ({"every": timedelta(seconds=-5)}, "is too often"),
    ({"cron": "@daily", "catch_up": timedelta(seconds=3)}, "catch_up: 3 seconds is too short"),
    ({"cron": "@daily", "overlap": "queue"}, "'queue' is not for runs that use new sessions"),
    ({"cron": "@daily", "session": "s", "overlap": "beside"}, "'beside' is not for runs that all use one session"),
    ({"cron": "every morning"}, "cron: 'every morning' must be five fields"),
    ({"cron": "* * * * * *"}, "cron: '* * * * * *' must be five fields"),
    ({"cron": "0 2 * * * 2030"}, "must be five fields"),
    ({"cron": "CRON_TZ=Asia/Tokyo 0 7 * * *"}, "give a time zone separately"),
    ({"cron": "TZ=UTC * * * *"}, "give a time zone separately"),
    ({"cron": "0 7 * * 1-5 # mornings"}, "must be five fields"),
    *(({"cron": f"0 0 {odd}"}, f"cron: '0 0 {odd}' never comes: no month") for odd in NO_DAYS),
    *(({"cron": "0 7 * * *", "zone": zone}, "name a place") for zone in ("Local", "localtime", "Factory")),
    ({"cron": "0 7 * * 8"}, "the server says: "),
    ({"cron": "@hourlyish"}, "the server says: "),
    ({"every": timedelta(days=100_000)}, "3650 days are the most"),
    ({"cron": "@daily", "catch_up": timedelta(days=100_000)}, "3650 days are the most"),
    ({"cron": "@daily", "zone": "Atlantis/Harbour"}, "the server says: "),
    ({"cron": "@daily", "prompt": "x" * 250_000}, "put the content into a file"),
    ({"cron": "@daily", "session": "s\0"}, "leave out NUL"),
]


@pytest.mark.parametrize(("given", "words"), BAD)
async def test_a_schedule_that_can_not_be_meant_is_refused_with_the_field(
    unserved: Stage, name: str, given: dict[str, Any], words: str
) -> None:
    wanted = {"name": name, "prompt": "Look", **given}

    with pytest.raises(ValueError if "\0" in given.get("session", "") else BadSchedule, match=re.escape(words)):
        await unserved.app.schedules.add(agent=unserved.agent(), **wanted)


@pytest.mark.parametrize("days", [*NO_DAYS, *DAYS])
async def test_the_server_agrees_which_days_never_come(unserved: Stage, name: str, days: str) -> None:
    spec = ScheduleSpec(cron_expressions=[f"0 0 {days}"])
    action = ScheduleActionStartWorkflow("none", id=name, task_queue="none")

    handle = await unserved.client.create_schedule(name, Schedule(action=action, spec=spec, state=PAUSED))
    coming = (await handle.describe()).info.next_action_times
    await handle.delete()
    if days in DAYS:
        card = await unserved.app.schedules.add(name, "Look", agent=unserved.agent(), cron=f"0 0 {days}")
        assert card.next_at

    assert bool(coming) is (days in DAYS)


async def test_a_name_is_taken_once(unserved: Stage, name: str) -> None:
    agent = unserved.agent()
    await unserved.app.schedules.add(name, "Look", agent=agent, cron=NEVER)

    with pytest.raises(BadSchedule, match="already"):
        await unserved.app.schedules.add(name, "Look again", agent=agent, cron=NEVER)

    assert (await unserved.app.schedules.show(name)).terms.prompt == "Look"
