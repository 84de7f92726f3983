"""The page of the workers: who works, and which build of them sessions go to."""

import uuid
from pathlib import Path

import pytest
from playwright.async_api import Locator, expect

from longhaul.starter.client.client import Longhaul
from longhaul.starter.worker_host.deployment import set_current
from tests.e2e.console.conftest import SURE_MILLISECONDS, SignedIn
from tests.e2e.crash.crash_stage import Stage, call, says
from tests.e2e.processes import worker as worker_process
from tests.e2e.serving import Address
from tests.e2e.test_rollout import Builds

pytestmark = pytest.mark.server

expect.set_options(timeout=SURE_MILLISECONDS)


async def test_who_sees_all_sessions_sees_the_workers_too(served: Address, signed_in: SignedIn, worker: int) -> None:
    eve, ana = await signed_in("eve"), await signed_in("ana")
    await eve.get_by_role("link", name="Workers").click()
    names = eve.locator("#workers tbody th")
    await expect(names.first).to_be_visible()
    refused = await ana.goto(f"{served.url}/console/workers")

    assert await eve.locator("nav [aria-current=page]").all_inner_texts() == ["Workers"]
    assert f"{worker}@" in "".join(await names.all_inner_texts())
    assert "Workers here have no versions" in await eve.locator("#workers").inner_text()
    assert await ana.get_by_role("link", name="Workers").count() == 0
    assert refused is not None
    assert refused.status == 403


@pytest.mark.proves("X15")
async def test_a_build_is_told_with_its_sessions_while_another_takes_over(
    served: Address, signed_in: SignedIn, console_app: Longhaul, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = console_app.client.service_client.config.target_host
    builds = Builds(await Stage.on(address, tmp_path), f"crew-{uuid.uuid4().hex[:6]}")
    versioned = {"task_queue": builds.stage.app.settings.task_queue, "deployment": builds.deployment}
    monkeypatch.setattr(console_app, "settings", console_app.settings.model_copy(update=versioned))
    parked, rests = (builds.stage.job(name, [says("", call("sign")), says("Signed.")]) for name in ("parked", "rests"))
    page = await signed_in("eve")

    async with worker_process(builds.of("one")) as first:
        await builds.is_known("one")
        # The page is not loaded again: it renews itself.
        await page.goto(f"{served.url}/console/workers")
        await expect(page.locator("#workers .problem")).to_contain_text("No build is the current one")
        await set_current(console_app.client, builds.deployment, "one")
        for job in (parked, rests):
            await job.start()
            await job.is_waiting()
        one, two = (page.locator("#builds tbody tr", has_text=build) for build in ("one", "two"))
        await expect(cells(one)).to_have_text(["one", "current", "2"])
        working = page.locator("#workers tbody tr", has_text=f"{first.pid}@")
        await expect(cells(working).nth(2)).to_have_text("one")
        async with worker_process(builds.of("two")):
            await builds.is_known("two")
            await expect(cells(two)).to_have_text(["two", "inactive", "0"])
            await set_current(console_app.client, builds.deployment, "two")
            await parked.finish()
            await expect(cells(two)).to_have_text(["two", "current", "1"])
            await expect(cells(one)).to_have_text(["one", "draining", "1"])
            await expect(page.locator("#builds [aria-current] th")).to_have_text("two")


def cells(row: Locator) -> Locator:
    return row.locator("th, td")
