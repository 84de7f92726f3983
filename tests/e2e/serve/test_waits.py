"""`longhaul serve`: what a session waits for, be it answers to one list of questions or a provider that is away."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from longhaul.activities.attempt.model_attempts import FIRST_TOLD
from tests.e2e.serve.test_sessions import agent, finished
from tests.e2e.serving import Reader, serving, tokens_file

pytestmark = pytest.mark.server

NAMES = ("amber", "birch", "cedar")
WRITES = {
    "tool_calls": [
        {"id": f"write-{name}", "name": "Write", "input": {"file_path": f"{name}.txt", "content": name}}
        for name in NAMES
    ]
}


@pytest.fixture
async def ana(tmp_path: Path, worker: int, cli_environment: dict[str, str]) -> AsyncIterator[httpx.AsyncClient]:
    """Who may decide, at a server of this folder."""
    assert worker
    environment = cli_environment | {"LONGHAUL_SERVE_TOKENS": str(tokens_file(tmp_path)), "LONGHAUL_TRUST": "1"}
    async with serving(tmp_path, environment) as one, one.client() as client:
        yield client


async def asked(ana: httpx.AsyncClient, session: str) -> tuple[str, list[dict[str, Any]]]:
    """The reply, and the list that it asks about."""
    parked = (await ana.post(f"{session}/messages", json={"messages": "Write"}, params={"wait": 30})).json()
    return parked["reply_id"], (await ana.get(f"{session}/pending")).json()["calls"]


TASK = {"tool_calls": [{"id": "t1", "name": "Agent", "input": {"agent": "scribe", "task": "Write"}}]}


def lead(folder: Path) -> str:
    """A new session whose sub-agent asks before it writes."""
    agent(folder, WRITES, {"text": "Written."}, name="scribe")
    return agent(folder, TASK, {"text": "It is written."}, more='tools = []\nagents = ["scribe"]')


async def test_a_stream_until_the_end_of_a_reply_ends_where_its_sub_agent_waits(
    tmp_path: Path, ana: httpx.AsyncClient
) -> None:
    session, reader = lead(tmp_path), Reader()
    taken = (await ana.post(f"{session}/messages", json={"messages": "Go"}, params={"wait": 0})).json()

    await reader.read(ana, f"{session}/events", params={"from": 1, "until": taken["reply_id"]})

    calls = (await ana.get(f"{session}/pending")).json()["calls"]
    *_, below, end = reader.frames
    assert (below.data["name"], end.data["why"]) == ("waits_below", "waiting")
    assert below.data["value"]["waiting_for"] == [call["call_id"] for call in calls]
    assert [call["path"] for call in below.data["value"]["calls"]] == ["lamp › scribe › Write"] * 3


def yes(call: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"call_id": call["call_id"], "decision": "allow", "digest": call["digest"], **more}


def written(folder: Path) -> dict[str, str]:
    return {path.stem: path.read_text() for path in sorted(folder.glob("*.txt"))}


async def test_all_of_a_list_is_approved_in_any_order(tmp_path: Path, ana: httpx.AsyncClient) -> None:
    session = agent(tmp_path, WRITES, {"text": "Written."})
    reply, calls = await asked(ana, session)
    reader = Reader()

    decided = [await ana.post(f"{session}/decisions", json=yes(call)) for call in reversed(calls)]
    done = await finished(ana, f"{session}/result/{reply}")
    await reader.read(ana, f"{session}/events", params={"from": 1, "until": reply})

    assert [call["call_id"] for call in calls] == [f"write-{name}" for name in NAMES]
    assert [answer.status_code for answer in decided] == [200, 200, 200], [answer.text for answer in decided]
    assert done["message"]["content"][-1]["text"] == "Written."
    assert written(tmp_path) == {name: name for name in NAMES}
    kinds = [frame.data["type"] for frame in reader.frames if frame.id]
    assert (kinds.count("REQUIRE_USER_CONFIRM"), kinds.count("USER_CONFIRM_RESULT")) == (1, 3)


async def test_of_a_list_each_call_has_an_answer_of_its_own(tmp_path: Path, ana: httpx.AsyncClient) -> None:
    session = agent(tmp_path, WRITES, {"text": "As you like."})
    reply, (first, second, third) = await asked(ana, session)
    other = {"file_path": "cedar.txt", "content": "cypress"}

    answers = [
        await ana.post(f"{session}/decisions", json=body)
        for body in (
            yes(first) | {"digest": second["digest"]},
            yes(third, input=other),
            {"call_id": second["call_id"], "decision": "deny", "reason": "No birches."},
            yes(second),
        )
    ]
    (left,) = (await ana.get(f"{session}/pending")).json()["calls"]
    last = await ana.post(f"{session}/decisions", json=yes(left))
    done = await finished(ana, f"{session}/result/{reply}")

    assert [answer.status_code for answer in answers] == [409, 200, 200, 409], [answer.text for answer in answers]
    assert (left["call_id"], last.status_code) == ("write-amber", 200)
    assert written(tmp_path) == {"amber": "amber", "cedar": "cypress"}
    results = [block for block in done["message"]["content"] if block["type"] == "tool_result"]
    assert {block["id"] for block in results if block.get("state") == "denied"} == {"write-birch"}
    assert len(results) == 3


async def test_a_provider_that_is_away_is_told_by_status_and_events(tmp_path: Path, ana: httpx.AsyncClient) -> None:
    away = {"kind": "overloaded", "retry_after": 0.02}
    faults = [*([away] * (FIRST_TOLD - 1)), {**away, "retry_after": 4}]
    session = agent(tmp_path, {"text": "Fair wind.", "faults": faults})
    asking = await ana.post(f"{session}/messages", json={"messages": "How is the wind?"})
    reader = Reader()

    told = await reader.read(ana, f"{session}/events", until="CUSTOM")
    during = (await ana.get(f"{session}/status")).json()
    done = await finished(ana, f"{session}/result/{asking.json()['reply_id']}")
    after = (await ana.get(f"{session}/status")).json()

    assert told is not None
    assert (told.data["name"], told.data["value"]["attempt"]) == ("provider_unavailable", FIRST_TOLD)
    assert (during["status"], during["outage"]["attempt"]) == ("working", FIRST_TOLD)
    assert "overloaded" in during["outage"]["why"]
    assert during["outage"]["next_try"] < during["outage"]["until"]
    assert done["message"]["content"][-1]["text"] == "Fair wind."
    assert "outage" not in after
