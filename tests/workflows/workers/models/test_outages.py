"""A provider that is away is waited for, for hours if need be; it is said meanwhile, and whoever has enough ends it."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from itertools import pairwise
from typing import Any

import pytest
from temporalio.common import RetryPolicy
from temporalio.worker import Replayer, UnsandboxedWorkflowRunner

from longhaul.activities.attempt import model_attempts
from longhaul.activities.attempt.model_attempts import FIRST_TOLD, TOLD_EACH
from longhaul.activities.contract import CALL_MODEL
from longhaul.activities.models.failures import status_table
from longhaul.activities.models.failures.retry_errors import pause_seconds
from longhaul.agent.values.spec.agent_spec import ModelConfig
from longhaul.starter.client.session import Session
from longhaul.starter.render_session import standing_still
from longhaul.workflows.contract import DATA_CONVERTER
from longhaul.workflows.session import AgentSession
from tests.activities.models.wire import Answer, Wire, chat_says, events
from tests.e2e.processes import WorkerSettings, worker
from tests.servers.local import free_port
from tests.workflows.conftest import Stage
from tests.workflows.operations import until
from tests.workflows.workers.models.test_models import CLAUDE, GPT, SAYS, speaking

pytestmark = pytest.mark.server

SOON = {"retry-after-ms": "30"}
LATER = {"retry-after-ms": "20000"}


def down(headers: dict[str, str], status: int = 503) -> Answer:
    body = {"type": "error", "error": {"type": "overloaded_error", "message": "Down for repair"}}
    return Answer(json.dumps(body).encode(), status, {"content-type": "application/json", **headers})


def told_of(session: Session) -> Any:
    async def is_told() -> bool:
        return (await session.status()).outage is not None

    return until(is_told)


async def web_page(stage: Stage, session: Session) -> str:
    return str(await stage.handle(session).query("__temporal_workflow_metadata"))


async def test_an_outage_is_waited_out_and_said_while_it_lasts(stage: Stage, wire: Wire) -> None:
    """Beyond `max_retries`, with hardly an event more than without an outage. What asks for two seconds is told of at
    once, and whoever looks later reads of the newest try."""
    asks = ["2000", "30", "1900"]
    wire.answers = [*(down({"retry-after-ms": pause}) for pause in asks), Answer(SAYS[CLAUDE])]
    session = speaking(stage, CLAUDE, wire.url, max_retries=1)
    reply = await session.submit("How is the wind?")
    await told_of(session)
    first = await session.status()

    async def is_tried_often() -> bool:
        status = await session.status()
        return status.outage is not None and status.outage.attempt == len(asks)

    await until(is_tried_often)
    status, page = await session.status(), await web_page(stage, session)
    done = await session.wait(reply)

    assert first.outage is not None
    assert status.outage is not None
    assert first.outage.attempt == 1
    assert "Down for repair" in status.outage.why
    assert first.outage.next_try < status.outage.next_try < status.outage.until
    said = "\n".join(line.plain for line in standing_still(status))
    assert f"waits for the model's provider (tried {len(asks)} times, next at " in said
    assert "provider (tried 1 time, next at " in page
    assert (done.error, done.get_text_content()) == (None, "Fair wind.")
    assert ((await session.status()).outage, len(wire.bodies)) == (None, len(asks) + 1)
    names = [event.name for event in (await session.events()).events if event.type == "CUSTOM"]
    assert names == ["provider_unavailable"]


async def test_a_provider_that_says_nothing_of_a_pause_is_told_of_after_some_tries(stage: Stage, wire: Wire) -> None:
    wire.answers = [*(down({}) for _ in range(FIRST_TOLD)), Answer(SAYS[CLAUDE])]
    session = speaking(stage, CLAUDE, wire.url)
    reply = await session.submit("How is the wind?")

    await told_of(session)
    status = await session.status()
    await session.interrupt()
    done = await session.wait(reply)

    assert status.outage is not None
    assert status.outage.attempt == FIRST_TOLD
    assert done.finished_reason == "interrupted"


async def test_a_provider_that_asks_for_short_pauses_is_asked_ever_more_seldom(stage: Stage, wire: Wire) -> None:
    """With a fallback model, where tries are counted: they must not be used up in the blink of an eye."""
    wire.answers = [down(SOON, 429) for _ in range(5)]
    fallback = stage.script({"text": "I stand in."})

    done = await speaking(stage, GPT, wire.url, max_retries=4, fallback_model=fallback).reply("How is the wind?")

    assert (done.error, done.get_text_content()) == (None, "I stand in.")
    pauses = [later - sooner for sooner, later in pairwise(wire.moments)]
    assert len(pauses) == 4
    assert all(pause >= shortest for pause, shortest in zip(pauses, (0.1, 0.2, 0.4, 0.8), strict=True)), pauses


CUT = SAYS[GPT][: len(SAYS[GPT]) // 2]
OVERLOADED = events({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})
KINDS = {
    **{f"status {status}": down(SOON, status) for status in (408, 409, 424, 425, 429, 499, 500, 502, 503, 504, 529)},
    "cut off": Answer(CUT, whole=False),
    "malformed_input": Answer(b"data: {{{\n\n"),
}


@pytest.mark.parametrize("kind", KINDS)
async def test_each_kind_of_outage_is_waited_out(stage: Stage, wire: Wire, kind: str) -> None:
    wire.answers = [KINDS[kind]] * 3 + [Answer(chat_says("Fair wind."))]

    done = await speaking(stage, GPT, wire.url, max_retries=0).reply("How is the wind?")

    assert (done.error, done.get_text_content()) == (None, "Fair wind.")
    assert len(wire.bodies) == 4


async def test_an_overload_that_is_told_in_the_stream_is_waited_out(stage: Stage, wire: Wire) -> None:
    wire.answers = [Answer(OVERLOADED)] * 3 + [Answer(SAYS[CLAUDE])]

    done = await speaking(stage, CLAUDE, wire.url, max_retries=0).reply("How is the wind?")

    assert (done.error, done.get_text_content()) == (None, "Fair wind.")


def test_all_that_is_tried_again_is_one_of_the_kinds_above() -> None:
    statuses = {status for status, row in status_table.BY_STATUS.items() if row.kind == "retry"}
    assert {f"status {status}" for status in statuses} <= KINDS.keys()
    rows = [*status_table.BY_CLASS.values(), *status_table.BY_STATUS.values(), *status_table.BY_CODE.values()]
    assert {row.error_type for row in rows if row.kind == "retry"} == {"connection", "upstream", "rate_limit"}


async def test_a_provider_that_is_not_there_is_waited_for_until_it_is(stage: Stage, wire: Wire) -> None:
    port = free_port()
    session = speaking(stage, GPT, f"http://127.0.0.1:{port}", max_retries=1)
    reply = await session.submit("How is the wind?")
    await told_of(session)
    wire.answers = [Answer(SAYS[GPT])]

    async with await asyncio.start_server(wire.serve, "127.0.0.1", port):
        done = await session.wait(reply)

    assert (done.error, done.get_text_content()) == (None, "Fair wind.")


def asking(wire: Wire, stage: Stage) -> WorkerSettings:
    return WorkerSettings(
        address=stage.address,
        task_queue=stage.name,
        directory=stage.settings.data_dir,
        tools="tests.workflows.tools",
        further={"LONGHAUL_MODEL_KEYS": f"none={wire.url}/v1"},
    )


def asked(wire: Wire, times: int) -> Callable[[], Awaitable[bool]]:
    async def is_asked() -> bool:
        return len(wire.bodies) >= times

    return is_asked


async def test_one_worker_that_is_lost_behind_many_tries_of_an_outage_is_one(unserved: Stage, wire: Wire) -> None:
    """Else a deployment in the midst of an outage ends what has been waited for all night."""
    stage, tries = unserved, 4
    silent = Answer(CUT, whole=False, then_wait=True)
    wire.answers = [*(down(SOON) for _ in range(tries)), silent, down(SOON), Answer(SAYS[GPT])]
    session = speaking(stage, GPT, wire.url, max_retries=2, api_key_env="none")
    settings = asking(wire, stage)
    async with worker(settings) as first:
        reply = await session.submit("How is the wind?")
        await until(asked(wire, tries + 1))
        await first.kill()
    async with worker(settings):
        done = await session.wait(reply)

    assert (done.error, done.get_text_content()) == (None, "Fair wind.")
    assert len(wire.bodies) == tries + 3


async def test_a_call_that_takes_its_worker_down_each_time_is_given_up(unserved: Stage, wire: Wire) -> None:
    stage, retries = unserved, 1
    wire.answers = [Answer(CUT, whole=False, then_wait=True) for _ in range(9)]
    session = speaking(stage, GPT, wire.url, max_retries=retries, api_key_env="none")
    settings = asking(wire, stage)
    async with worker(settings) as first:
        reply = await session.submit("How is the wind?")
        await until(asked(wire, 1))
        await first.kill()
    async with worker(settings) as second:
        await until(asked(wire, 1 + retries))
        await second.kill()
    async with worker(settings):
        done = await session.wait(reply)

    assert done.error is not None
    assert "lost each time" in done.error.message
    assert len(wire.bodies) == 1 + retries


async def test_the_waiting_ends_where_the_agent_says_so(stage: Stage, wire: Wire) -> None:
    wire.answers = [down(SOON) for _ in range(200)]

    done = await speaking(stage, GPT, wire.url, max_retries=1, outage_wait_seconds=1).reply("How is the wind?")

    assert done.error is not None
    assert (done.finished_reason, done.error.type) == ("error", "upstream")
    assert "It was tried " in done.error.message
    assert "outage_wait_seconds allows no more" in done.error.message
    assert 2 < len(wire.bodies) < 9


async def test_nothing_is_waited_out_where_the_agent_wants_none(stage: Stage, wire: Wire) -> None:
    wire.answers = [down(SOON) for _ in range(9)]

    done = await speaking(stage, GPT, wire.url, max_retries=2, outage_wait_seconds=0).reply("How is the wind?")

    assert done.finished_reason == "error"
    assert len(wire.bodies) == 3


async def test_a_fallback_model_is_asked_before_anything_is_waited_out(stage: Stage, wire: Wire) -> None:
    wire.answers = [down(SOON) for _ in range(9)]
    fallback = stage.script({"text": "I stand in."})

    done = await speaking(stage, GPT, wire.url, max_retries=1, fallback_model=fallback).reply("How is the wind?")

    assert (done.error, done.get_text_content()) == (None, "I stand in.")
    assert len(wire.bodies) == 2


async def test_what_is_no_outage_is_not_waited_out(stage: Stage, wire: Wire) -> None:
    wire.answers = [
        Answer(b'{"error": {"message": "no"}}', status, {"content-type": "application/json"}) for status in (400,)
    ]

    done = await speaking(stage, GPT, wire.url).reply("How is the wind?")

    assert (done.finished_reason, len(wire.bodies)) == ("error", 1)


async def test_an_interrupt_ends_the_waiting_at_once(stage: Stage, wire: Wire) -> None:
    wire.answers = [down(LATER)]
    session = speaking(stage, GPT, wire.url)
    reply = await session.submit("How is the wind?")
    await told_of(session)

    async with asyncio.timeout(10):
        await session.interrupt()
        done = await session.wait(reply)

    assert done.finished_reason == "interrupted"
    assert (await session.status()).outage is None


async def test_a_pause_ends_the_waiting_and_resuming_asks_again(stage: Stage, wire: Wire) -> None:
    wire.answers = [down(LATER), Answer(SAYS[GPT])]
    session = speaking(stage, GPT, wire.url)
    reply = await session.submit("How is the wind?")
    await told_of(session)

    async with asyncio.timeout(15):
        await session.pause(by="ana")
        assert ((await session.status()).status, (await session.status()).outage) == ("paused", None)
        assert len(wire.bodies) == 1
        await session.resume(by="ana")
        done = await session.wait(reply)

    assert (done.error, done.get_text_content()) == (None, "Fair wind.")


@pytest.mark.parametrize("told", [True, False], ids=["after it was told", "before"])
async def test_another_model_is_asked_in_the_place_of_one_that_is_away(stage: Stage, wire: Wire, told: bool) -> None:
    """Without an interrupt, and by the old one's next try at the latest; a model that answers is left alone."""
    wire.answers = [down(LATER if told else {}), *(down({}) for _ in range(FIRST_TOLD))]
    session = speaking(stage, GPT, wire.url)
    reply = await session.submit("How is the wind?")
    await (told_of(session) if told else until(asked(wire, 1)))
    before = await session.status()
    tries = len(wire.bodies)

    async with asyncio.timeout(15):
        await session.configure(max_iters=9)
        await session.configure(model=stage.script({"text": "I stand in.", "delay_ms": 50, "chunk_chars": 1}))
        during = await session.status()
        await session.configure(model_config={"max_retries": 1})
        done = await session.wait(reply)

    assert (before.outage is not None, during.outage) == (told, None)
    assert (done.error, done.get_text_content()) == (None, "I stand in.")
    assert len(wire.bodies) == (tries if told else FIRST_TOLD)
    after = await session.status()
    assert (after.outage, after.model_calls) == (None, 1)
    await replays(stage, session)


async def test_another_model_is_taken_where_no_worker_knows_the_first(stage: Stage) -> None:
    """The reply has not started yet, and begins with it."""
    session = stage.session(model="nobody", tools=["fetch"])
    reply = await session.submit("How is the wind?")

    async def is_told() -> bool:
        return (await session.status()).lacking != ""

    await until(is_told)
    lacking = (await session.status()).lacking
    await session.configure(model=stage.script({"text": "I stand in."}))
    done = await session.wait(reply)

    assert "'nobody'" in lacking
    assert (done.error, done.get_text_content()) == (None, "I stand in.")
    assert (await session.status()).lacking == ""
    await replays(stage, session)


async def replays(stage: Stage, session: Session) -> None:
    history = await stage.handle(session).fetch_history()
    runner = UnsandboxedWorkflowRunner()
    replayer = Replayer(
        workflows=[AgentSession], build_id="replay", data_converter=DATA_CONVERTER, workflow_runner=runner
    )
    await replayer.replay_workflow(history)


class AnHour(list[Answer]):
    """What a wire sends: failures, for as long as the pauses between the tries would come to an hour."""

    def __init__(self) -> None:
        self.pauses: list[float] = []
        """In seconds, as they are meant to be; each is a thousandth of it here."""

    def pause(self, attempt: int, told_seconds: float, policy: RetryPolicy) -> float:
        self.pauses.append(pause_seconds(attempt, told_seconds, policy))
        return self.pauses[-1] / 1_000

    def pop(self, index: object = 0) -> Answer:
        return down({}) if sum(self.pauses) < 3_600 else Answer(SAYS[CLAUDE])


async def test_an_outage_of_an_hour_is_told_of_seldom_and_nothing_is_paid_twice(
    stage: Stage, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    hour = AnHour()
    monkeypatch.setattr(model_attempts, "pause_seconds", hour.pause)
    wire.answers = hour
    session = speaking(stage, CLAUDE, wire.url)

    done = await session.reply("How is the wind?")

    assert (done.error, done.get_text_content()) == (None, "Fair wind.")
    tries = len(hour.pauses)
    assert len(wire.bodies) == tries + 1
    assert 35 < tries < 80, "it is asked about once in a minute and a half"
    names = [event.name for event in (await session.events()).events if event.type == "CUSTOM"]
    told = [number for number in range(1, tries + 1) if number == FIRST_TOLD or number % TOLD_EACH == 0]
    assert names == ["provider_unavailable"] * len(told)
    status = await session.status()
    assert (status.outage, status.model_calls, status.lost.calls, status.tokens_estimated) == (None, 1, 0, False)
    assert (status.input_tokens, status.output_tokens) == (11, 7)
    assert (await stage.scheduled(session)).count(CALL_MODEL) <= 1, "tries cost the history nothing"


def test_the_default_is_hours() -> None:
    assert ModelConfig().outage_wait_seconds == 12 * 3_600
