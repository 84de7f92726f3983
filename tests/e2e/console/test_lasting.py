"""The console in a browser that stays open: servers and workers come and go under it."""

import asyncio
from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from benchmarks.cost import free_port
from longhaul.starter.dev_server.dev_server import DevServer
from tests.e2e import processes
from tests.e2e.console.conftest import SURE_MILLISECONDS, page_of
from tests.e2e.serve.test_sessions import SLOWLY, agent
from tests.e2e.serving import serving, tokens_file

pytestmark = pytest.mark.server

expect.set_options(timeout=SURE_MILLISECONDS)

TEXT = "It is a long way to the lighthouse. " * 8


@pytest.mark.proves("X15")
async def test_a_page_outlives_its_server_and_a_worker_but_not_its_token(
    browser: Browser, temporal_server: DevServer, tmp_path: Path
) -> None:
    tokens = tokens_file(tmp_path)
    settings = processes.WorkerSettings(
        address=temporal_server.address, task_queue=f"lasting-{tmp_path.name}", directory=tmp_path / "data"
    )
    environment = processes.environment(settings) | {"LONGHAUL_SERVE_TOKENS": str(tokens), "LONGHAUL_TRUST": "1"}
    port = ("--port", str(free_port()))
    path = agent(tmp_path, {"text": TEXT, **SLOWLY}, {"text": "And back."})
    context = await browser.new_context()
    context.set_default_timeout(SURE_MILLISECONDS)
    said, transcript = "#said", "#transcript"
    async with processes.worker(settings) as worker, serving(tmp_path, environment, *port) as first:
        page = await page_of(context, first.url, "ana")
        async with first.client() as ana:
            await ana.post(f"{path}/messages", json={"messages": "How far?"})
        await page.goto(f"{first.url}/console{path.replace('/v1/sessions', '/s')}")
        await expect(page.locator(said)).to_contain_text("It is")
        await asyncio.gather(worker.kill(), first.kill())
    async with processes.worker(settings), serving(tmp_path, environment, *port) as second:
        await expect(page.locator(transcript)).to_contain_text(TEXT.strip())
        await expect(page.locator(said)).to_be_hidden()
        async with second.client() as ana:
            await ana.post(f"{path}/messages", json={"messages": "And back?"})
        await expect(page.locator(transcript)).to_contain_text("And back.")
        tokens.write_text("\n".join(line for line in tokens.read_text().splitlines() if " ana " not in line))
        await expect(page.locator("#meanwhile")).to_have_text("You are not signed in any more.")
        answer = await page.goto(f"{second.url}/console")
    await context.close()

    assert answer is not None
    assert page.url.endswith("/console/sign-in")
