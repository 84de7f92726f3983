"""The list of sessions: filters and pages that stand in the address, also of a thousand."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import pytest
from playwright.async_api import expect
from temporalio.api.batch.v1 import BatchOperationTermination
from temporalio.api.workflowservice.v1 import StartBatchOperationRequest
from temporalio.client import WorkflowHandle

from longhaul.starter.client.client import Longhaul
from longhaul.workflows.contract import WORKFLOW
from tests.e2e.console.conftest import SURE_MILLISECONDS, SignedIn
from tests.e2e.serve.test_sessions import WANTS_TO_EDIT, agent, listed
from tests.e2e.serving import Address
from tests.limits import SURE_SECONDS

pytestmark = pytest.mark.server

expect.set_options(timeout=SURE_MILLISECONDS)

MANY = 1_000
AT_ONCE = 50


async def test_sessions_are_found_by_state_agent_and_text(served: Address, signed_in: SignedIn, tmp_path: Path) -> None:
    waits = agent(tmp_path, WANTS_TO_EDIT)
    rests = agent(tmp_path, {"text": "Hello."}, name="buoy")
    async with served.client() as ana:
        for path in (waits, rests):
            await ana.post(f"{path}/messages?wait=30", json={"messages": "Greet the moon"})
        await listed(ana, waits.rpartition("/")[2])
    page = await signed_in("ana")
    await page.goto(f"{served.url}/console/sessions")
    rows = page.locator("#sessions [data-row] b")
    await expect(rows).to_have_count(2)
    found = {}
    for label, value in (("State", "waiting"), ("Agent", "buoy"), ("Text", "EDIT")):
        await page.goto(f"{served.url}/console/sessions")
        field = page.get_by_label(label, exact=True)
        await (field.select_option(value) if label == "State" else field.fill(value))
        await page.get_by_role("button", name="Show").click()
        await page.wait_for_url(f"**{value}**")
        await expect(rows).to_have_count(1)
        found[label] = await rows.inner_text()
        await page.reload()
        assert await field.input_value() == value
    await page.goto(f"{served.url}/console/sessions?status=closed&text=<b>\u202e")
    nothing = await page.locator("#sessions").inner_text()

    first, second = waits.rpartition("/")[2], rests.rpartition("/")[2]
    assert found == {"State": first, "Agent": second, "Text": first}
    assert "None is found." in nothing


async def test_who_sees_all_sessions_sees_the_workers_too(served: Address, signed_in: SignedIn, worker: int) -> None:
    eve, ana = await signed_in("eve"), await signed_in("ana")
    await eve.get_by_role("link", name="Workers").click()
    names = eve.locator("#workers tbody th")
    await expect(names.first).to_be_visible()
    refused = await ana.goto(f"{served.url}/console/workers")

    assert f"{worker}@" in "".join(await names.all_inner_texts())
    assert "not versioned" in await eve.locator("#workers").inner_text()
    assert await ana.get_by_role("link", name="Workers").count() == 0
    assert refused is not None
    assert refused.status == 403


@pytest.fixture
async def many(app: Longhaul, people: dict[str, str]) -> AsyncIterator[None]:
    """Ana's thousand sessions that nobody works on: they are in the server's index alone."""
    room = asyncio.Semaphore(AT_ONCE)
    mark = uuid4().hex

    async def begun(number: int) -> WorkflowHandle[object, object]:
        async with room:
            return await app.client.start_workflow(
                WORKFLOW,
                {},
                id=f"many-{mark}-{number}",
                task_queue=f"nobody-{mark}",
                memo={"session": f"many-{number:04}", "user": people["ana"], "agent": "lamp"},
            )

    await asyncio.gather(*(begun(number) for number in range(MANY)))
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


@pytest.mark.usefixtures("many")
async def test_a_thousand_sessions_are_shown_in_pages(
    served: Address, signed_in: SignedIn, people: dict[str, str]
) -> None:
    page = await signed_in("eve")
    await page.goto(f"{served.url}/console/sessions?text={people['ana']}")
    said = page.locator("#sessions p").first
    async with asyncio.timeout(SURE_SECONDS):
        while "of 1000" not in await said.inner_text():
            await asyncio.sleep(0.2)  # the server's index is a moment late
            await page.reload()
    first = await page.locator("#sessions b").all_inner_texts()
    await page.get_by_role("link", name="Older").click()
    await expect(said).to_contain_text("51 to 100 of 1000")
    second = await page.locator("#sessions b").all_inner_texts()
    await page.goto(f"{served.url}/console/sessions?text={people['ana']}&from=975")
    await expect(said).to_contain_text("976 to 1000 of 1000")
    beyond = await page.goto(f"{served.url}/console/sessions?from=x")

    assert len(first) == len(second) == 50
    assert not {*first} & {*second}
    assert beyond is not None
    assert beyond.status == 422
