"""Kills, continue-as-new and closings: nothing that was said in a hub is lost, told twice, or told in another order."""

import asyncio

import pytest

from longhaul.starter.client.hubs import Hub
from longhaul.starter.worker_host.replay import Replayed, live_sessions, replay
from longhaul.workflows import hubs
from tests.e2e.processes import worker
from tests.workflows.conftest import Stage
from tests.workflows.hubs.rooms import heard, member
from tests.workflows.operations import push_over, until

pytestmark = pytest.mark.server


async def run_of(stage: Stage, hub: Hub) -> str | None:
    return (await stage.client.get_workflow_handle(hub.workflow_id).describe()).run_id


async def replayed_of(stage: Stage) -> list[Replayed]:
    """What `longhaul rollout check` would say of all that is open."""
    live = await live_sessions(stage.client, stage.settings.task_queue, None)
    return [one async for one in replay(stage.client, live.chosen)]


@pytest.mark.proves("C5")
async def test_a_hub_that_continues_as_new_again_and_again_loses_no_word_and_keeps_the_order(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hubs, "CONTINUE_AS_NEW_EVENTS", 40)
    ana, ben, cleo = (member(stage, {"text": "-"}) for _ in range(3))
    hub = stage.app.hub(f"rolls-{stage.name}", {"ana": ana, "ben": ben, "cleo": cleo})
    await hub.start()
    first = await run_of(stage, hub)

    await asyncio.gather(*(hub.broadcast(f"word {number}") for number in range(12)))
    answer = await hub.agents(ana)[0].reply("Speak")

    assert answer.get_text_content() == "-"
    of_ben, of_cleo = await heard(ben), await heard(cleo)
    assert sorted(of_ben) == sorted([*(f"user: word {number}" for number in range(12)), "ana: -"])
    assert of_cleo == of_ben
    assert await run_of(stage, hub) != first
    replayed = await replayed_of(stage)
    assert {one.session_id: one.ok for one in replayed if one.workflow_id == hub.workflow_id} == {hub.name: True}
    await hub.end()


async def test_a_member_that_continued_as_new_or_closed_hears_and_is_heard_all_the_same(stage: Stage) -> None:
    ana = member(stage, {"text": "one"}, {"text": "two"})
    ben = member(stage, {"text": "-"}, idle_close_seconds=1)
    hub = stage.app.hub(f"sleepy-{stage.name}", {"ana": ana, "ben": ben})
    (speaker,) = hub.agents(ana)
    await hub.start()
    await ben.reply("Hello")

    await speaker.reply("Go")
    await push_over(stage, ana)

    async def has_closed() -> bool:
        status = (await stage.handle(ben).describe()).status
        return status is not None and status.name == "COMPLETED"

    await until(has_closed)
    await speaker.reply("Go")

    async def has_found_its_earlier_incarnation() -> bool:
        return (await ben.status()).incarnation == 2

    await until(has_found_its_earlier_incarnation)
    assert await heard(ben) == ["user: Hello", "ana: one", "ana: two"]
    await hub.end()


@pytest.mark.proves("C5")
async def test_killed_workers_lose_no_word_and_tell_none_twice(unserved: Stage) -> None:
    stage = unserved
    settings = stage.worker_settings
    ana, ben = (member(stage, {"text": name, "delay_ms": 200}) for name in ("I am ana.", "I am ben."))
    hub = stage.app.hub(f"killed-{stage.name}", {"ana": ana, "ben": ben})
    async with worker(settings) as first:
        await hub.start()
        replies = [await one.submit("Speak") for one in (ana, ben)]
        said = [asyncio.ensure_future(hub.broadcast(f"word {number}", request_id=str(number))) for number in range(6)]
        await said[0]
        await first.kill()
    async with stage.another_worker():
        await asyncio.gather(*said)
        for one, reply in zip((ana, ben), replies, strict=True):
            await hub.heard(await one.wait(reply))

        words = [f"user: word {number}" for number in range(6)]
        assert sorted(await heard(ana)) == sorted([*words, "ben: I am ben.", "user: Speak"])
        assert sorted(await heard(ben)) == sorted([*words, "ana: I am ana.", "user: Speak"])
        order = [[one for one in await heard(session) if one in words] for session in (ana, ben)]
        assert order[0] == order[1]
        await hub.end()


async def test_a_session_outside_of_hubs_pays_nothing_and_a_hub_that_was_terminated_costs_one_signal(
    stage: Stage,
) -> None:
    alone, ana = member(stage, {"text": "-"}), member(stage, {"text": "-"}, {"text": "-"})
    hub = stage.app.hub(f"gone-{stage.name}", {"ana": ana})
    await hub.start()
    await stage.client.get_workflow_handle(hub.workflow_id).terminate("somebody did")

    for session in (alone, ana, ana):
        await session.reply("Go")

    signals = [
        sum(event.HasField("signal_external_workflow_execution_initiated_event_attributes")
            for event in (await stage.handle(one).fetch_history()).events)
        for one in (alone, ana)
    ]  # fmt: skip
    assert signals == [0, 1]
