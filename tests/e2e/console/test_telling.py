"""The console in a browser that nobody looks at: what has come to wait is told, and counted in title and icon."""

import base64
import json
from pathlib import Path

import pytest
from playwright.async_api import FilePayload, expect

from tests.e2e.console.conftest import SURE_MILLISECONDS, SignedIn
from tests.e2e.console.test_deciding import waiting
from tests.e2e.serve.test_sessions import agent
from tests.e2e.serving import Address

pytestmark = pytest.mark.server

expect.set_options(timeout=SURE_MILLISECONDS)

LOOKS_AWAY = """
window.told = [];
Object.defineProperty(document, "hasFocus", { value: () => false });
window.Notification = class {
    static permission = "default";
    static async requestPermission() { return (this.permission = "granted"); }
    constructor(title, { body }) { window.told.push([title, body]); }
};
"""
"""The desktop's notifications, kept where the test can read them."""
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)


@pytest.mark.proves("X15")
async def test_whoever_looks_away_is_told_once_of_what_has_come_to_wait(
    served: Address, signed_in: SignedIn, tmp_path: Path
) -> None:
    page = await signed_in("ana")
    await page.add_init_script(LOOKS_AWAY)
    await page.reload()
    await expect(page).to_have_title("(0) Inbox · Longhaul")
    await page.get_by_role("button", name="Notify me").click()
    await expect(page.locator("#notify")).to_be_hidden()
    await waiting(served, tmp_path)
    await expect(page).to_have_title("(1) Inbox · Longhaul")
    icon = await page.locator("link[rel=icon]").get_attribute("href")
    drawn = await (await page.request.get(f"{served.url}{icon}")).text()
    async with page.expect_response(lambda answer: answer.url.endswith("/console")) as renewed:
        await (await renewed.value).finished()

    assert await page.evaluate("window.told") == [["(1) Inbox · Longhaul", "Edit greeting.txt"]]
    assert ">1</text>" in drawn


@pytest.mark.proves("X15")
async def test_files_are_sent_with_the_first_message(served: Address, signed_in: SignedIn, tmp_path: Path) -> None:
    wants = {"last_contains": "The tide is high"}
    name = agent(tmp_path, {"text": "This is not the model that was asked for."}).rpartition("/")[2]
    (tmp_path / "reader.jsonl").write_text(json.dumps({"text": "I have read it.", "expect": wants}))
    page = await signed_in("ana")
    await page.goto(f"{served.url}/console/start")
    await page.get_by_label("Agent").select_option("lamp")
    await page.get_by_label("Name").fill(name)
    await page.get_by_label("Task").fill("Look at these")
    await page.get_by_label("Model, if not its file's").fill(f"scripted:{tmp_path}/reader.jsonl")
    sent = page.get_by_label("Files")
    await sent.set_input_files({"name": "sea.bin", "mimeType": "application/octet-stream", "buffer": b"\xff\x00"})
    await page.get_by_role("button", name="Start").click()
    await expect(page.get_by_role("alert").first).to_contain_text("sea.bin")
    files: list[FilePayload] = [
        {"name": "dot.png", "mimeType": "image/png", "buffer": PIXEL},
        {"name": "tide.txt", "mimeType": "text/plain", "buffer": b"The tide is high\r\n"},
    ]
    await sent.set_input_files(files)
    await page.get_by_role("button", name="Start").click()
    await page.wait_for_url(f"**/console/s/lamp/{name}")

    await expect(page.locator("#transcript")).to_contain_text("I have read it.")
    await expect(page.locator("#transcript")).to_contain_text("[image/png dot.png]")
