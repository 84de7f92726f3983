"""The console in a browser: a session is led step by step, changed, made shorter, copied from a step and exported."""

import json
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page, expect

from tests.e2e.console.conftest import SURE_MILLISECONDS, SignedIn
from tests.e2e.console.test_about import DOES, HAS_TASKS, answered
from tests.e2e.console.test_sessions import began
from tests.e2e.serve.test_sessions import agent
from tests.e2e.serving import Address

pytestmark = pytest.mark.server

expect.set_options(timeout=SURE_MILLISECONDS)


async def pressed(page: Page, button: str, told: str) -> None:
    await page.get_by_role("button", name=button).click()
    await expect(page.get_by_role("status")).to_have_text(told)


@pytest.mark.proves("X15")
async def test_settings_rules_and_budget_are_changed(served: Address, signed_in: SignedIn, tmp_path: Path) -> None:
    there = await answered(served, agent(tmp_path, *DOES, more=HAS_TASKS))
    page = await signed_in("ana")
    await page.goto(f"{there}/change")
    await page.get_by_label("Mode, now").select_option("explore")
    await pressed(page, "Change the settings", "Changed.")
    await expect(page.get_by_text("Mode, now explore")).to_be_visible()
    await page.get_by_label("Tool", exact=True).fill("Bash")
    await page.get_by_role("button", name="Add the rule").click()
    await expect(page.get_by_role("alert").first).to_contain_text("tick that the rule is for every call")
    await page.get_by_label("Command or files").fill("git add:*")
    await pressed(page, "Add the rule", "Changed.")
    rules = await page.locator(".rules code").all_inner_texts()
    await page.get_by_label("More calls").fill("10")
    await pressed(page, "Raise it", "Changed.")
    await expect(page.get_by_text("calls of 100 calls spent")).to_be_visible()
    await page.get_by_label("More calls").fill("many")
    await page.get_by_role("button", name="Raise it").click()
    await expect(page.get_by_role("alert").first).to_contain_text("calls")
    await expect(page.get_by_label("More calls")).to_have_value("many")
    await pressed(page, "Revoke allow Bash(git add:*)", "Changed.")

    assert rules == ["allow Bash(git add:*)"]
    assert await page.locator(".rules").count() == 0


@pytest.mark.proves("X15")
async def test_a_copy_begins_from_a_step_and_the_state_is_a_file(
    served: Address, signed_in: SignedIn, tmp_path: Path
) -> None:
    there = await answered(served, agent(tmp_path, *DOES, more=HAS_TASKS))
    page = await signed_in("ana")
    await page.goto(f"{there}/timeline")
    await page.locator("li", has_text="action: Read").get_by_role("link", name="Copy from entry").click()
    copy = f"{there.rpartition('/')[2]}-again"
    await page.get_by_label("Its name").fill(copy)
    await page.get_by_role("button", name="Start the copy").click()
    await page.wait_for_url(f"**/console/s/lamp/{copy}")
    transcript = page.locator("#transcript")
    await expect(transcript).to_contain_text("greeting.txt")
    said = await transcript.inner_text()
    await page.goto(f"{there}/change")
    async with page.expect_download() as taken:
        await page.get_by_role("link", name="Export its state").click()
    file = await taken.value
    await file.save_as(tmp_path / "state.json")
    state = json.loads((tmp_path / "state.json").read_text(encoding="utf-8"))

    assert "All is lit." not in said
    assert "All is lit." in json.dumps(state)
    assert file.suggested_filename == f"{there.rpartition('/')[2]}.json"


@pytest.mark.proves("X15")
async def test_a_paused_session_takes_one_step(served: Address, signed_in: SignedIn, tmp_path: Path) -> None:
    name = agent(tmp_path, {"text": "Started."}, *DOES, more=HAS_TASKS).rpartition("/")[2]
    page = await signed_in("ana")
    await began(page, served, name, "One")
    await expect(page.locator("#transcript")).to_contain_text("Started.")
    await page.get_by_role("button", name="Pause").click()
    await expect(page.locator("#head .state")).to_have_text("paused")
    await page.get_by_label("Say", exact=True).fill("Two")
    await page.get_by_role("button", name="Send").click()
    for stands in ("running", "success"):
        await page.get_by_role("button", name="Take one step").click()
        await expect(page.locator(f"details.call.{stands}")).to_have_count(1)
    await expect(page.locator("#head .state")).to_have_text("paused")

    await page.goto(f"{page.url}/change")
    await pressed(page, "Compress it", "The context is below its threshold, and stays as it is.")


@pytest.mark.proves("X15")
async def test_what_left_the_context_is_one_click_away(served: Address, signed_in: SignedIn, tmp_path: Path) -> None:
    reads = list[dict[str, Any]]()
    for day in range(4):
        (tmp_path / f"{day}.txt").write_text("\n".join(f"{hour} {hour * 7919 + day}" for hour in range(300)))
        reads.append({"tool_calls": [{"name": "Read", "input": {"file_path": f"{day}.txt"}}]})
    more = 'tools = ["Read"]\n[permission]\nmode = "bypass"\n[model_config]\ncontext_length = 12_000'
    path = agent(tmp_path, *reads, {"text": "Read."}, {"text": "The tide was read of."}, more=more)
    there = await answered(served, path)
    async with served.client() as ana:
        config = {"trigger_ratio": 0.2, "reserve_ratio": 0.01}
        answer = await ana.post(f"{path}/compact", json={"context_config": config})
        assert answer.json() == {"compacted": True}, answer.text
    page = await signed_in("ana")
    await page.goto(f"{there}/about")
    await page.get_by_role("link", name="When, and what was removed").click()
    step = page.locator(".timeline li")
    await expect(step).to_have_count(1)
    said = await step.inner_text()
    await page.get_by_role("link", name="what was removed").click()

    await expect(page.locator("#transcript")).to_contain_text("0.txt")
    assert "made the context shorter by" in said


async def test_a_context_is_made_shorter_by_the_button(served: Address, signed_in: SignedIn, tmp_path: Path) -> None:
    more = "[model_config]\ncontext_length = 12_000\n[context_config]\nreserve_ratio = 0.01"
    long = {"text": "The tide comes in. " * 3_000}
    path = agent(tmp_path, {"text": "I listen."}, long, {"text": "The tide was told of."}, more=more)
    await answered(served, path, "Listen")
    there = await answered(served, path)
    page = await signed_in("ana")
    await page.goto(f"{there}/change")
    await page.get_by_label("What the summary should keep").fill("the tides")
    await pressed(page, "Compress it", "The context is shorter.")
