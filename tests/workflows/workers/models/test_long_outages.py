"""Ten minutes without a provider, for eighty sessions whose worker is replaced and killed meanwhile."""

import asyncio
import time
from dataclasses import dataclass, field

import pytest

from tests.activities.models.wire import Answer, Wire, chat_says, on_a_port
from tests.e2e.processes import WorkerSettings, worker
from tests.workflows.conftest import Stage
from tests.workflows.workers.models.test_models import GPT, speaking
from tests.workflows.workers.models.test_outages import down

pytestmark = [pytest.mark.server, pytest.mark.chaos, pytest.mark.timeout(1_800)]

SECONDS = 600
SESSIONS = 20
MOST_REQUESTS = 30
"""Of one session: pauses grow to a minute."""
SAYS = chat_says("Fair wind.")
KINDS = {
    "503": down({}),
    "429": down({"retry-after": "20"}, 429),
    "429 for a moment": down({"retry-after-ms": "300"}, 429),
    "cut off": Answer(SAYS[: len(SAYS) // 2], whole=False),
}


@dataclass
class ProviderOutage(list[Answer]):
    """What a wire sends: one answer again and again, until the provider is back."""

    answer: Answer
    given: int = 0
    """Whole answers, which somebody pays for."""
    back_at: float = field(default_factory=lambda: time.monotonic() + SECONDS)

    def pop(self, index: object = 0) -> Answer:
        if time.monotonic() < self.back_at:
            return self.answer
        self.given += 1
        return Answer(SAYS)


async def test_eighty_sessions_wait_out_ten_minutes_of_each_kind(unserved: Stage) -> None:
    stage = unserved
    async with on_a_port() as first, on_a_port() as second, on_a_port() as third, on_a_port() as fourth:
        wires: dict[str, Wire] = dict(zip(KINDS, (first, second, third, fourth), strict=True))
        away = {kind: ProviderOutage(answer) for kind, answer in KINDS.items()}
        for kind, wire in wires.items():
            wire.answers = away[kind]
        settings = WorkerSettings(
            address=stage.address,
            task_queue=stage.name,
            directory=stage.settings.data_dir,
            tools="tests.workflows.tools",
            further={"LONGHAUL_MODEL_KEYS": ",".join(f"none={wire.url}/v1" for wire in wires.values())},
        )
        sessions = [
            (kind, speaking(stage, GPT, wire.url, api_key_env="none"))
            for kind, wire in wires.items()
            for _ in range(SESSIONS)
        ]
        async with worker(settings) as killed:
            replies = [(kind, each, await each.submit("How is the wind?")) for kind, each in sessions]
            await asyncio.sleep(SECONDS / 4)
            await killed.kill()
        async with worker(settings):
            await asyncio.sleep(SECONDS / 4)
        async with worker(settings):
            done = [(kind, await each.wait(reply)) for kind, each, reply in replies]

    failed = [(kind, one.error.message) for kind, one in done if one.error is not None]
    assert failed == []
    assert {one.get_text_content() for _, one in done} == {"Fair wind."}
    assert {kind: each.given for kind, each in away.items()} == dict.fromkeys(KINDS, SESSIONS)
    asked = {kind: len(wire.bodies) for kind, wire in wires.items()}
    assert all(SESSIONS < number <= SESSIONS * MOST_REQUESTS for number in asked.values()), asked
    print(f"requests of {SESSIONS} sessions in {SECONDS} s: {asked}")
