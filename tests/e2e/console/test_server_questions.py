"""What an MCP server asks, answered by a form of the console in a browser, and by HTTP."""

from pathlib import Path

import pytest
from playwright.async_api import expect

from tests.e2e.console.conftest import SURE_MILLISECONDS, SignedIn
from tests.e2e.console.test_answering import asked
from tests.e2e.serve.test_sessions import agent, finished
from tests.e2e.serving import Address

pytestmark = pytest.mark.server

expect.set_options(timeout=SURE_MILLISECONDS)

MOORS = {"tool_calls": [{"id": "moor-1", "name": "mcp__quay__moor", "input": {}}]}
QUAY = 'tools = []\n[[mcps]]\nname = "quay"\n[[permission.rules]]\ntool_name = "mcp__quay"'


@pytest.mark.proves("X19")
async def test_a_servers_question_is_answered_by_its_form(served: Address, signed_in: SignedIn, tmp_path: Path) -> None:
    page = await signed_in("ana")
    said = {"text": "Moored.", "expect": {"last_contains": "moored at <b>north</b>"}}
    there = await asked(served, page, "moor-1", tmp_path, MOORS, said, more=QUAY)
    eve = await signed_in("eve")
    await eve.goto(f"{page.url}&user={(await page.locator('.who').inner_text()).strip()}")
    await expect(eve.locator("article")).to_contain_text("a token needs the scope answer")

    await expect(page.locator("article")).to_contain_text("The MCP server 'quay' asks: Which berth?")
    await page.get_by_label("nights").fill("many")
    await page.get_by_role("button", name="Answer").click()
    await expect(page.locator(".problem").first).to_contain_text("nights: is not JSON")
    await page.get_by_label("nights").fill("40")
    await page.get_by_label("name").fill("<b>north</b>")
    await page.get_by_role("button", name="Answer").click()
    await expect(page.locator(".problem").first).to_contain_text("'nights' is 40: give 30 or less")
    await expect(page.get_by_label("name")).to_have_value("<b>north</b>")
    await page.get_by_label("nights").fill("")
    await page.get_by_role("button", name="Answer").click()
    await page.wait_for_url("**/console?told=answered")

    await page.goto(there)
    await expect(page.locator("#transcript")).to_contain_text("Moored.")


async def test_a_servers_question_is_declined_and_cannot_be_answered_again(
    served: Address, signed_in: SignedIn, tmp_path: Path
) -> None:
    page = await signed_in("ana")
    said = {"text": "As you like.", "expect": {"last_contains": "adrift"}}
    there = await asked(served, page, "moor-1", tmp_path, MOORS, said, more=QUAY)
    late = await page.context.new_page()
    await late.goto(page.url)
    for one in (page, late):
        await one.get_by_label("I", exact=True).select_option("decline")
    await page.get_by_role("button", name="Answer").click()
    await page.wait_for_url("**/console?told=answered")
    await page.goto(there)
    await expect(page.locator("#transcript")).to_contain_text("As you like.")
    await late.get_by_role("button", name="Answer").click()

    await expect(late.locator(".problem").first).to_contain_text("'moor-1' has its result: success")


@pytest.mark.proves("X19")
async def test_a_servers_question_is_answered_by_http(served: Address, tmp_path: Path) -> None:
    path = agent(tmp_path, MOORS, {"text": "Moored."}, more=QUAY)
    north = {"action": "accept", "content": {"name": "north", "nights": 2}}
    async with served.client() as ana:
        asked = (await ana.post(f"{path}/messages?wait=30", json={"messages": "Moor"})).json()
        (call,) = (await ana.get(f"{path}/pending")).json()["calls"]
        (key,) = call["asked"]["questions"]
        form = call["asked"]["questions"][key]["fields"]
        wrong = {**north, "content": {"name": 7, "nights": 31}}
        answers = f"{path}/external-results"
        refused = await ana.post(answers, json={"results": [{"id": "moor-1", "output": wrong}]})
        taken = await ana.post(answers, json={"results": [{"id": "moor-1", "output": north}]})
        done = await finished(ana, f"{path}/result/{asked['reply_id']}")

    assert (asked["status"], call["asked"]["server"], form["properties"]["nights"]) == (
        "waiting",
        "quay",
        {"type": "integer", "maximum": 30},
    )
    assert refused.status_code == 409
    assert "'name' is 7, but has to be text; 'nights' is 31: give 30 or less" in refused.json()["detail"]
    assert taken.status_code == 204
    assert done["message"]["content"][-1]["text"] == "Moored."
