"""The console in a browser: other arguments, results of external tools, and calls whose outcome nobody knows."""

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page, expect

from tests.e2e.console.conftest import SURE_MILLISECONDS, SignedIn
from tests.e2e.console.test_deciding import opened, waiting
from tests.e2e.serve.test_sessions import agent
from tests.e2e.serving import Address

pytestmark = pytest.mark.server

expect.set_options(timeout=SURE_MILLISECONDS)

ASKS_OUTSIDE = {"tool_calls": [{"id": "price-1", "name": "price_of", "input": {"article": "a <b>lamp</b>"}}]}
OUTSIDE = 'tools = ["price_of"]\n[[permission.rules]]\ntool_name = "price_of"'
PLANS = 'tools = ["plan_exit", "Bash"]\n[permission]\nmode = "plan"'
PLAN = (
    "# The attic\n\nClear **all** of it\u202e, <img src=x onerror=alert(1)> too.\n\n"
    + "\n".join(f"- step {number}" for number in range(2_000))
    + "\n\n[//]: # (and the cellar)\n"
)
HANDS_A_PLAN = {"tool_calls": [{"id": "plan-1", "name": "plan_exit", "input": {"plan": PLAN}}]}
RUNS = {
    "tool_calls": [
        {"id": "run-1", "name": "Bash", "input": {"command": "cat greeting.txt && curl http://127.0.0.1:9/x"}}
    ]
}
ENGRAVES = {"tool_calls": [{"id": "ring-1", "name": "engrave", "input": {"text": "Ana"}}]}
OUTCOME_UNKNOWN = 'tools = ["engrave"]\non_unknown_outcome = "ask"\n[permission]\nmode = "bypass"'

SHOWS, ALLOWS = "Show what changes", "Allow with these arguments"
"""The buttons of the form for other arguments: the first one decides nothing."""


async def asked(served: Address, page: Page, call: str, folder: Path, *replies: dict[str, Any], more: str) -> str:
    """The path of a session's page; the page shows the call of it that waits."""
    path = agent(folder, *replies, more=more)
    async with served.client() as ana:
        answer = await ana.post(f"{path}/messages?wait=30", json={"messages": "Go on"})
        assert answer.json()["status"] == "waiting"
    there = f"{served.url}/console/s/lamp/{path.rpartition('/')[2]}"
    await page.goto(f"{there}/call?id={call}")
    return there


@pytest.mark.proves("X15")
async def test_a_call_is_allowed_with_other_arguments(served: Address, signed_in: SignedIn, tmp_path: Path) -> None:
    name = await waiting(served, tmp_path)
    page = await signed_in("ana")
    await opened(page, name)
    await page.keyboard.press("e")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="Edit with other arguments")).to_be_visible()
    shown = await page.get_by_label("new_string").input_value()
    replaces_all = page.get_by_label("replace_all")
    before = await replaces_all.input_value()
    await page.get_by_label("new_string").fill("<b>sun</b>")
    await replaces_all.select_option("true")
    await page.get_by_role("button", name=SHOWS).click()
    await page.get_by_role("button", name=ALLOWS).click()
    await page.wait_for_url("**/console?told=edited")

    await page.goto(f"{served.url}/console/s/lamp/{name}")
    await expect(page.locator("#transcript")).to_contain_text("Done.")
    assert (shown, before) == ("moon", "")
    assert (tmp_path / "greeting.txt").read_text() == "hello <b>sun</b>\n"


@pytest.mark.proves("X15")
@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without"])
async def test_other_arguments_stand_next_to_the_calls_own_and_are_shown_as_a_change_before_they_count(
    served: Address, signed_in: SignedIn, tmp_path: Path, scripts: bool
) -> None:
    name = await waiting(served, tmp_path)
    page = await signed_in("ana", scripts=scripts)
    await page.goto(f"{served.url}/console/s/lamp/{name}/edit?id=edit-7")
    field = page.locator(".field", has=page.get_by_label("new_string"))
    other = page.locator(".field", has=page.get_by_label("replace_all"))
    was = [await one.locator(".was").inner_text() for one in (field, other)]
    await page.get_by_label("new_string").fill("sun\u202e")
    marked_at_once = await field.locator(".state.changed").is_visible()
    await other.get_by_role("combobox").select_option("true")
    await page.get_by_label("new_string").press("Enter")
    changes = page.locator("#changes")
    await expect(changes.locator("h2")).to_have_text("You change 2 of 4 arguments")
    shown = await changes.locator("h3, .diff span").all_text_contents()
    marks = [await one.locator(".state.changed").is_visible() for one in await page.locator(".field").all()]
    waits = (tmp_path / "greeting.txt").read_text()
    # What was not looked over does not count: it is shown first.
    await page.get_by_label("new_string").fill("sun")
    await page.get_by_role("button", name=ALLOWS).click()
    await expect(changes.locator(".added").first).to_have_text(re.compile(r"^\+sun\s*$"))
    await page.get_by_role("button", name=ALLOWS).click()
    await page.wait_for_url("**/console?told=edited")

    await page.goto(f"{served.url}/console/s/lamp/{name}")
    await expect(page.locator("#transcript")).to_contain_text("Done.")
    assert [" ".join(text.split()) for text in was] == ["The call has moon", "The call has none"]
    assert marked_at_once is scripts
    assert [text.strip() for text in shown] == [
        *("new_string", "-moon", "+sun⟨U+202E⟩"),
        *("replace_all, left out until now", "+true"),
    ]
    assert marks == [False, False, True, True]
    assert waits == "hello world\n"
    assert (tmp_path / "greeting.txt").read_text() == "hello sun\n"


async def test_arguments_that_do_not_fit_are_told_with_what_was_written(
    served: Address, signed_in: SignedIn, tmp_path: Path
) -> None:
    name = await waiting(served, tmp_path)
    page = await signed_in("ana")
    await page.goto(f"{served.url}/console/s/lamp/{name}/edit?id=edit-7")
    await page.get_by_label("new_string").fill("sun")
    digest = page.locator('input[name="digest"]')
    await digest.evaluate("one => { one.value = 'f'.repeat(64) }")
    await page.get_by_role("button", name=SHOWS).click()
    await page.get_by_role("button", name=ALLOWS).click()

    await expect(page.locator(".problem").first).to_contain_text("has changed since that digest was taken")
    await expect(page.get_by_label("new_string")).to_have_value("sun")
    assert (tmp_path / "greeting.txt").read_text() == "hello world\n"


async def test_who_may_not_edit_changes_nothing(served: Address, signed_in: SignedIn, tmp_path: Path) -> None:
    name = await waiting(served, tmp_path)
    page = await signed_in("ana")
    await opened(page, name)
    offered = await page.get_by_role("link", name="Change arguments").count()
    eve = await signed_in("eve")
    user = (await page.locator(".who").inner_text()).strip()
    await eve.goto(f"{served.url}/console/s/lamp/{name}/edit?id=edit-7&user={user}")
    await eve.get_by_role("button", name=SHOWS).click()

    await expect(eve.locator(".problem").first).to_contain_text("scope")
    await expect(eve.get_by_role("button", name=ALLOWS)).to_have_count(0)
    assert offered == 1
    assert (tmp_path / "greeting.txt").read_text() == "hello world\n"


@pytest.mark.proves("X15")
async def test_the_result_of_an_external_tool_is_handed_in(
    served: Address, signed_in: SignedIn, tmp_path: Path
) -> None:
    page = await signed_in("ana")
    said = {"text": "Dear.", "expect": {"last_contains": "7 francs"}}
    there = await asked(served, page, "price-1", tmp_path, ASKS_OUTSIDE, said, more=OUTSIDE)
    await page.get_by_label("It is").select_option("json")
    await page.get_by_label("Its result").fill("{7 francs")
    await page.get_by_role("button", name="Hand it in", exact=True).click()
    await expect(page.locator(".problem").first).to_contain_text("is not JSON")
    await expect(page.get_by_label("Its result")).to_have_value("{7 francs")
    await page.get_by_label("Its result").fill("7 francs")
    await page.get_by_role("button", name="Hand it in", exact=True).click()
    await page.wait_for_url("**/console?told=handed")

    await page.goto(there)
    await expect(page.locator("#transcript")).to_contain_text("Dear.")


@pytest.mark.proves("X15")
async def test_a_call_whose_outcome_nobody_knows_is_settled(
    served: Address, signed_in: SignedIn, tmp_path: Path
) -> None:
    page = await signed_in("ana")
    said = {"text": "A fine ring.", "expect": {"last_contains": "Ana in gold"}}
    there = await asked(served, page, "ring-1", tmp_path, ENGRAVES, said, more=OUTCOME_UNKNOWN)
    await expect(page.locator("article")).to_contain_text("nobody knows whether it ran")
    await expect(page.locator("article")).not_to_contain_text("its tool is not known")
    await page.get_by_label("How you know").fill("I hold the ring")
    await page.get_by_label("What it answered").fill("Ana in gold")
    await page.get_by_role("button", name="It happened").click()
    await page.wait_for_url("**/console?told=resolved")

    await page.goto(there)
    await expect(page.locator("#transcript")).to_contain_text("A fine ring.")


@pytest.mark.proves("X15")
async def test_a_plan_is_shown_whole_and_what_approving_it_does(
    served: Address, signed_in: SignedIn, tmp_path: Path
) -> None:
    page = await signed_in("ana")
    there = await asked(served, page, "plan-1", tmp_path, HANDS_A_PLAN, {"text": "I begin."}, more=PLANS)
    plan = page.locator(".plan")
    steps = await plan.locator("li").all_inner_texts()
    said = await page.locator("article").inner_text()
    await page.get_by_text("As it was written").click()
    written = await page.locator("article details pre").inner_text()

    await expect(page.get_by_role("heading", name="A plan, to be approved")).to_be_visible()
    await expect(plan.get_by_role("heading", name="The attic")).to_be_visible()
    assert "once approved: ends plan mode" in said
    assert await plan.locator("strong").inner_text() == "all"
    assert "⟨U+202E⟩" in said
    assert await plan.locator("img").count() == 0
    assert steps == [f"step {number}" for number in range(2_000)]
    assert "# The attic" in written
    assert "[//]: # (and the cellar)" in written
    await page.get_by_role("button", name="Allow").first.click()
    await page.wait_for_url("**/console?told=allowed")
    await page.goto(there)
    await expect(page.locator("#transcript")).to_contain_text("I begin.")


@pytest.mark.proves("X15")
async def test_a_command_says_what_each_part_of_it_is_proven_to_do(
    served: Address, signed_in: SignedIn, tmp_path: Path
) -> None:
    page = await signed_in("ana")
    more = 'tools = ["Bash"]\n[permission]\nanalyzers = ["rules"]'
    await asked(served, page, "run-1", tmp_path, RUNS, more=more)
    shown = {
        str(await section.locator("h2").text_content()): await section.locator("pre").inner_text()
        for section in await page.locator("section.finding").all()
        if await section.locator("pre").count()
    }

    assert "cat greeting.txt: proven to only read" in shown["commands"]
    assert "9/x: not proven; it may reach the network" in shown["commands"]
    assert "greeting.txt" in shown["touches"]
    assert shown["risk"]
    await expect(page.locator("article .facts")).to_contain_text("risk ")
    await page.locator(".crumbs a").nth(1).click()
    await expect(page.locator("a.row .where").first).to_contain_text("risk ")
