"""The console in a browser: what works in the background of a session is stopped there, each by its button, or all."""

from pathlib import Path

import pytest
from playwright.async_api import expect

from tests.e2e.cli.test_stop import runs, stubborn
from tests.e2e.cli.test_subagents import script
from tests.e2e.console.conftest import SURE_MILLISECONDS, SignedIn
from tests.e2e.console.test_access import axe, findings
from tests.e2e.processes import a_while, running_with
from tests.e2e.serve.test_sessions import agent
from tests.e2e.serving import Address

pytestmark = pytest.mark.server

__all__ = ["axe"]  # a fixture

expect.set_options(timeout=SURE_MILLISECONDS)

BYPASS = '[permission]\nmode = "bypass"'
NAPS = {"tool_calls": [{"id": "n1", "name": "sleep", "input": {"for": "1h"}}]}
TASK = {"id": "t1", "name": "Agent", "input": {"agent": "scribe", "task": "write", "run_in_background": True}}


@pytest.fixture
def mark() -> str:
    return a_while()


@pytest.mark.proves("X15")
@pytest.mark.parametrize("scripts", [True, False])
async def test_a_command_and_a_sub_agent_are_stopped_by_their_buttons(
    served: Address, signed_in: SignedIn, tmp_path: Path, scripts: bool, mark: str
) -> None:
    scribe = f'[agents.scribe]\nmodel = "{script(tmp_path / "scribe.jsonl", NAPS)}"\ntools = ["sleep"]'
    said = {"tool_calls": [stubborn(mark), TASK]}, {"text": "I wait."}
    path = agent(tmp_path, *said, more=f'tools = ["Bash"]\n{BYPASS}\n{scribe}')
    async with served.client() as ana:
        await ana.post(f"{path}/messages?wait=30", json={"messages": "Go"})
    await runs(mark)
    page = await signed_in("ana", scripts=scripts)
    await page.goto(f"{served.url}/console/s/lamp/{path.rpartition('/')[2]}")
    told, works = page.locator("[role=status]").first, page.locator(".at-work li")
    await expect(works).to_have_count(2)
    await expect(works.last).to_contain_text("echo up; trap")
    key, origin = await page.locator('input[name="form_key"]').first.get_attribute("value"), {"Origin": served.url}
    sent: list[dict[str, str | float | bool]] = [{"form_key": key or ""}, {"form_key": "0" * 64, "call_id": "b1"}]
    refused = [await page.request.post(f"{page.url}/stop-background", form=one, headers=origin) for one in sent]
    await page.reload()
    await expect(works.get_by_role("button")).to_have_count(2)
    await page.get_by_role("button", name="Stop b1").click()
    await expect(told).to_have_text("It is over: stopped.")
    left = running_with(mark)
    await expect(works).to_have_count(1)
    await page.get_by_role("button", name="Stop t1").click()
    await expect(told).to_have_text("It is over: interrupted.")
    await expect(works).to_have_count(0)
    async with served.client() as ana:
        status = (await ana.get(f"{path}/status")).json()

    assert [answer.status for answer in refused] == [422, 403], "no name, and the key of no form"
    assert left == []
    assert [one["fate"] for one in status["commands"]] == ["stopped"]
    assert [one["outcome"] for one in status["children"]] == ["interrupted"]
    assert {one["stopped_by"] for one in (*status["commands"], *status["children"])} == {status["user_id"]}


async def test_what_has_ended_meanwhile_is_told_as_refused_and_a_task_that_is_waited_for_has_no_button(
    served: Address, signed_in: SignedIn, tmp_path: Path, people: dict[str, str], axe: str
) -> None:
    waits = "while [ ! -e go ]; do sleep 0.05; done"
    ends = {"id": "b1", "name": "Bash", "input": {"command": waits, "run_in_background": True}}
    waited_for = {**TASK, "input": {"agent": "scribe", "task": "write"}}
    scribe = f'[agents.scribe]\nmodel = "{script(tmp_path / "scribe.jsonl", NAPS)}"\ntools = ["sleep"]'
    path = agent(tmp_path, {"tool_calls": [ends, waited_for]}, more=f'tools = ["Bash"]\n{BYPASS}\n{scribe}')
    async with served.client() as ana:
        await ana.post(f"{path}/messages", json={"messages": "Go"})
    page = await signed_in("ana")
    await page.goto(f"{served.url}/console/s/lamp/{path.rpartition('/')[2]}")
    stops = page.locator(".at-work button")
    await expect(page.locator(".at-work li")).to_have_count(2)
    names = await stops.evaluate_all("all => all.map((one) => one.ariaLabel)")
    eve = await signed_in("eve")
    await eve.goto(f"{page.url}?user={people['ana']}")
    await expect(eve.locator(".at-work li")).to_have_count(2)
    hers = await eve.locator(".at-work button").count()
    kept_out = await findings(page, axe)
    # The page as it was: its script would take the button away.
    stands = await signed_in("ana", scripts=False)
    await stands.goto(page.url)
    (tmp_path / "go").touch()
    await expect(stops).to_have_count(0)
    await stands.get_by_role("button", name="Stop b1").click()

    await expect(stands.locator(".problem").first).to_contain_text("'b1' is over (ended) and works no more")
    assert (names, hers) == (["Stop b1"], 0), "whoever may only look has none"
    assert kept_out == []


async def test_all_of_it_is_stopped_by_one_button_where_there_is_more_than_one(
    served: Address, signed_in: SignedIn, tmp_path: Path, people: dict[str, str], axe: str, mark: str
) -> None:
    scribe = f'[agents.scribe]\nmodel = "{script(tmp_path / "scribe.jsonl", NAPS)}"\ntools = ["sleep"]'
    said = {"tool_calls": [stubborn(mark), TASK]}, {"text": "I wait."}
    path = agent(tmp_path, *said, more=f'tools = ["Bash"]\n{BYPASS}\n{scribe}')
    async with served.client() as ana:
        await ana.post(f"{path}/messages?wait=30", json={"messages": "Go"})
    await runs(mark)
    page = await signed_in("ana", scripts=False)
    await page.goto(f"{served.url}/console/s/lamp/{path.rpartition('/')[2]}")
    whole = page.get_by_role("button", name="Stop all in the background")
    eve = await signed_in("eve")
    await eve.goto(f"{page.url}?user={people['ana']}")
    await expect(eve.locator(".at-work li")).to_have_count(2)
    hers = await eve.get_by_role("button", name="Stop all").count()
    shown = await signed_in("ana")
    await shown.goto(page.url)
    await expect(shown.get_by_role("button", name="Stop all in the background")).to_have_count(1)
    kept_out = await findings(shown, axe)

    await whole.click()
    await expect(page.locator("[role=status]").first).to_have_text("Nothing works in the background any more.")

    left = running_with(mark)
    async with served.client() as ana:
        status = (await ana.get(f"{path}/status")).json()
    assert (hers, kept_out, left) == (0, [], [])
    assert [one["fate"] for one in status["commands"]] == ["stopped"]
    assert [one["outcome"] for one in status["children"]] == ["interrupted"]
    await expect(page.locator(".at-work li")).to_have_count(0)
