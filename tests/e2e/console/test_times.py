"""How long lists of a thousand take, as pages and over HTTP, and how long a text takes from its event to the page."""

import asyncio
import json
import statistics
import time
from collections import defaultdict
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from playwright.async_api import expect
from temporalio.api.batch.v1 import BatchOperationTermination
from temporalio.api.workflowservice.v1 import StartBatchOperationRequest
from temporalio.common import SearchAttributePair, TypedSearchAttributes

from longhaul.starter.client.client import Longhaul
from longhaul.workflows.contract import STATUS, USER, WAITS, WORKFLOW, PendingCall, Waits
from tests.e2e.console.conftest import SURE_MILLISECONDS, SignedIn
from tests.e2e.console.test_sessions import began
from tests.e2e.serve.test_sessions import agent
from tests.e2e.serving import TOKENS, Address
from tests.limits import SURE_SECONDS, usual

pytestmark = [pytest.mark.server, pytest.mark.alone]

expect.set_options(timeout=SURE_MILLISECONDS)

ROWS = 1_000
AT_ONCE = 50
TIMES = 5
MOST_LIST_SECONDS = 0.3
LISTS = {"/console": 100, "/console/sessions": 50, "/v1/inbox": ROWS, "/v1/sessions": ROWS}
"""Each list, and how many of the thousand an answer shows."""
MOST_LIVE_SECONDS = 0.2
WATCH = """() => {
    window.seen = [];
    const said = document.getElementById("said");
    new MutationObserver(() => window.seen.push([said.textContent.length, Date.now() / 1000]))
        .observe(said, { childList: true, characterData: true, subtree: true });
}"""
"""Writes down when the page has how many characters of what is being said."""


@pytest.fixture
async def waits(app: Longhaul, people: dict[str, str]) -> AsyncIterator[None]:
    """Ana's thousand calls that wait, as the server's index has them; nobody works on their sessions."""
    room, mark = asyncio.Semaphore(AT_ONCE), uuid4().hex
    attributes: list[Any] = [SearchAttributePair(STATUS, "waiting"), SearchAttributePair(USER, people["ana"])]

    async def started(number: int) -> None:
        written = '{"to": "Ana", "text": "' + "tea " * 50 + '"}'
        call = PendingCall(
            reply_id="r",
            call_id=f"c-{number}",
            tool="send",
            input=written,
            waits_for="person",
            asked_at="2026-01-02T12:00:00+00:00",
            digest="5" * 64,
        )
        told = {"session": f"row-{number:04}", "user": people["ana"], "agent": "lamp"}
        async with room:
            await app.client.start_workflow(
                WORKFLOW,
                {},
                id=f"rows-{mark}-{number}",
                task_queue=f"nobody-{mark}",
                memo={**told, WAITS: Waits(calls=(call,)).model_dump_json()},
                search_attributes=TypedSearchAttributes(attributes),
            )

    await asyncio.gather(*(started(number) for number in range(ROWS)))
    yield
    await app.client.workflow_service.start_batch_operation(
        StartBatchOperationRequest(
            namespace=app.client.namespace,
            visibility_query=f"TaskQueue = 'nobody-{mark}'",
            job_id=mark,
            reason="the test is over",
            termination_operation=BatchOperationTermination(identity="test"),
        )
    )


@pytest.mark.proves("X15")
@pytest.mark.usefixtures("waits")
async def test_lists_of_a_thousand_are_there_in_a_moment(
    served: Address, app: Longhaul, people: dict[str, str]
) -> None:
    """Work is counted in seconds of this process, which serves and asks: however busy the machine is, it may not take
    more. Waiting for the server's own list, which takes longer on a busy machine, may only be done once."""
    took, worked, bare = defaultdict[str, list[float]](list), defaultdict[str, list[float]](list), list[float]()
    async with served.client() as ana:
        ana.cookies.set("longhaul_token", TOKENS["ana"])
        async with asyncio.timeout(SURE_SECONDS):
            # The server's index is a moment late.
            while f"({ROWS}) Inbox" not in (await ana.get("/console")).text:  # noqa: ASYNC110
                await asyncio.sleep(0.2)
        for path in [*LISTS] * TIMES:
            began_at, had_worked = time.monotonic(), time.process_time()
            answer = await ana.get(path)
            took[path].append(time.monotonic() - began_at)
            worked[path].append(time.process_time() - had_worked)
            assert answer.text.count("data-row") + answer.text.count('"session_id"') == LISTS[path]
        for _ in range(TIMES):
            began_at = time.monotonic()
            assert [row async for row in app.client.list_workflows(f"LonghaulUser = '{people['ana']}'")]
            bare.append(time.monotonic() - began_at)

    assert max(map(statistics.median, worked.values())) <= usual(MOST_LIST_SECONDS), dict(worked)
    assert max(map(min, took.values())) <= max(usual(MOST_LIST_SECONDS), 3 * min(bare)), (dict(took), bare)


@pytest.mark.proves("X15")
async def test_text_is_on_the_page_a_moment_after_its_event(
    served: Address, signed_in: SignedIn, tmp_path: Path
) -> None:
    text = "It is a long way to the lighthouse. " * 20
    path = agent(tmp_path, {"text": "Hm."}, {"text": text, "chunk_chars": 8, "delay_ms": 25})
    page = await signed_in("ana")
    await began(page, served, path.rpartition("/")[2], "How far?")
    await expect(page.locator("#transcript")).to_contain_text("Hm.")
    async with served.client() as ana:
        hearing = asyncio.create_task(_heard(ana, path))
        await page.get_by_label("Say", exact=True).fill("And back?")
        await page.get_by_role("button", name="Send").click()
        await page.wait_for_load_state()
        await page.evaluate(WATCH)
        heard = await hearing
    seen: list[tuple[int, float]] = await page.evaluate("window.seen")
    late = [at - heard[length] for length, at in seen if length in heard]

    assert len(late) > 10, (seen, heard)
    assert statistics.median(late) <= usual(MOST_LIVE_SECONDS), late


async def _heard(client: httpx.AsyncClient, path: str) -> dict[int, float]:
    """When a reader of the same events has how many characters of the second reply."""
    found, length, ends = dict[int, float](), 0, 0
    async with client.stream("GET", f"{path}/events", params={"deltas": "true"}) as response:
        async for line in response.aiter_lines():
            ends += '"REPLY_END"' in line
            if ends == 2:
                break
            event = json.loads(line[5:]) if line.startswith("data:") else {}
            if event.get("type") == "TEXT_BLOCK_DELTA" and not event.get("seq") and ends == 1:
                length += len(event["delta"])
                found[length] = time.time()
    return found
