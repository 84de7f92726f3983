"""`longhaul serve`: what a stream tells whose token is taken out while it is read."""

import asyncio
from pathlib import Path

import httpx
import pytest

from tests.e2e.serve.test_sessions import SLOWLY, agent
from tests.e2e.serving import TOKENS, Reader, serving, tokens_file
from tests.limits import SURE_SECONDS

pytestmark = pytest.mark.server


@pytest.mark.parametrize("busy", [True, False])
@pytest.mark.parametrize("left", ["", " read"], ids=["no line", "fewer scopes"])
async def test_a_stream_ends_when_its_token_is_taken_out(
    tmp_path: Path, worker: int, cli_environment: dict[str, str], busy: bool, left: str
) -> None:
    assert worker
    file = tokens_file(tmp_path)
    text = "It is a long, long way to the lighthouse. " * 10
    session = agent(tmp_path, {"text": text, **SLOWLY} if busy else {"text": "There."})
    environment = cli_environment | {"LONGHAUL_SERVE_TOKENS": str(file), "LONGHAUL_TRUST": "1"}
    ana, quiet, page = Reader(), Reader(), Reader()

    async with (
        serving(tmp_path, environment) as server,
        server.client() as client,
        server.client("eve") as other,
        httpx.AsyncClient(base_url=server.url, timeout=SURE_SECONDS, trust_env=False) as browser,
    ):
        browser.cookies.set("longhaul_token", TOKENS["ana"])
        await client.post(f"{session}/messages", json={"messages": "How far?"})
        reading = asyncio.create_task(ana.read(client, f"{session}/events", params={"deltas": "true"}))
        watching = asyncio.create_task(quiet.read(other, f"{session}/events?user=ana"))
        looking = asyncio.create_task(page.read(browser, session.replace("/v1/sessions", "/console/s") + "/events"))
        async with asyncio.timeout(SURE_SECONDS), ana.news, page.news:
            await ana.news.wait_for(lambda: len(ana.live) > 2 if busy else len(ana.recorded) > 5)
            await page.news.wait_for(lambda: page.recorded)
        lines = file.read_text().splitlines()
        (own,) = [line for line in lines if " ana " in line]
        file.write_text(
            "\n".join([*(line for line in lines if line != own), f"{own.rpartition(' ')[0]}{left}" if left else ""])
        )
        async with asyncio.timeout(SURE_SECONDS):
            last, last_of_page = await asyncio.gather(reading, looking)
        refused = await client.post(f"{session}/messages", json={"messages": "And now?"})
        still_read = not watching.done()
        watching.cancel()

    assert last is not None
    assert last_of_page is not None
    assert (last_of_page.kind, last_of_page.data["why"]) == ("end", "unauthorized")
    assert (last.kind, last.data["why"], last.data["next"]) == ("end", "unauthorized", max(ana.recorded, default=0) + 1)
    assert refused.status_code == (403 if left else 401)
    assert still_read
    assert busy is all(frame.data.get("type") != "REPLY_END" for frame in ana.frames)
