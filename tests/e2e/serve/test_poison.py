"""`longhaul serve`: bodies that would take seconds to read end neither a session nor the server."""

import time
from pathlib import Path

import httpx
import pytest

from tests.e2e.serve.test_sessions import WANTS_TO_EDIT, agent, desk, served
from tests.e2e.serving import Serving
from tests.limits import usual
from tests.workflows.incarnation.test_poison import LISTS, POISON

pytestmark = [pytest.mark.server, pytest.mark.alone]

__all__ = ["desk", "served"]  # fixtures

ROUTES = {
    "submit": "messages", "observe": "observe", "notify": "notify", "interrupt": "interrupt", "confirm": "decisions",
    "external_result": "external-results", "configure": "configure", "rules": "rules", "replace_state": "state",
    "compact": "compact", "pause": "pause", "resume": "resume", "step": "step", "resolve": "resolve",
    "budget": "budget", "stop_background": "stop-background",
}  # fmt: skip
ALWAYS = {"thousands of items", "levels of lists", "a number of many digits", "600 different rules"}
"""The others by `make chaos`."""
OWN_OF_WORKERS = {"ask", "worker_left", "worker_lacks", "child_reported", "report_again", "hub_says"}
"""Operations that no request makes: of workers, of sessions to each other, and of workflows that ask."""


def test_each_operation_that_a_request_makes_is_poisoned() -> None:
    assert ROUTES.keys() | OWN_OF_WORKERS == LISTS.keys()
    assert len(POISON) >= 20


@pytest.mark.parametrize(
    "kind", [kind if kind in ALWAYS else pytest.param(kind, marks=pytest.mark.chaos) for kind in POISON]
)
async def test_a_session_answers_at_once_after_poison_by_http(served: Serving, tmp_path: Path, kind: str) -> None:
    session = agent(tmp_path, WANTS_TO_EDIT, {"text": "Done."})
    answered: dict[str, float] = {}
    async with served.client() as client:
        await client.post(f"{session}/messages?wait=20", json={"messages": "Greet the moon"})
        for operation, route in ROUTES.items():
            body = POISON[kind](operation).encode("utf-8", "surrogatepass")
            said = await client.post(f"{session}/{route}", content=body, headers={"Content-Type": "application/json"})
            assert said.status_code in (*range(200, 300), *range(400, 500)), (operation, said.text[:300])
            answered[operation] = await _seconds_of_a_status(client, session)
        healthy = await client.get("/health")

    most = usual(3 if kind.startswith("as many") else 1)  # those are taken, and read; the others are refused unread
    assert {operation: seconds for operation, seconds in answered.items() if seconds >= most} == {}
    assert healthy.status_code == 200


async def _seconds_of_a_status(client: httpx.AsyncClient, session: str) -> float:
    began = time.monotonic()
    assert (await client.get(f"{session}/status")).status_code == 200
    return time.monotonic() - began
