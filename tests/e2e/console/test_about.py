"""The console in a browser: what a session has used, its tasks and its steps, also of ten thousand messages."""

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page, expect

from longhaul.starter.client.client import Longhaul
from tests.e2e.console.conftest import SURE_MILLISECONDS, SignedIn
from tests.e2e.serve.test_sessions import WANTS_TO_EDIT, agent
from tests.e2e.serving import Address
from tests.limits import usual

pytestmark = pytest.mark.server

expect.set_options(timeout=SURE_MILLISECONDS)

MESSAGES, BUNCH = 10_000, 500
PAINTS = 3
MOST_PAINT_SECONDS = 1.0
"""Of the quickest of them: the machine may be busy."""
FIRST_PAINT = """() => new Promise((told) => new PerformanceObserver((list) => {
    for (const one of list.getEntriesByName("first-contentful-paint")) told(one.startTime);
}).observe({ type: "paint", buffered: true }))"""
MOST_NODES = 2_000
"""Of a page, however much was said."""
TASKS = [
    {"content": "Look <i>up</i>", "status": "completed"},
    {"content": "Light it\u202e", "status": "in_progress"},
]
HAS_TASKS = 'tools = ["todo_write", "Read"]\n[budget]\nmax_calls = 90'
USED: dict[str, Any] = {"usage": {"input_tokens": 1234, "output_tokens": 56}}
DOES = [
    {"tool_calls": [{"name": "todo_write", "input": {"todos": TASKS}}], **USED},
    {"tool_calls": [{"name": "Read", "input": {"file_path": "greeting.txt"}}], **USED},
    {"text": "All is lit.", **USED},
]


async def answered(served: Address, path: str, text: str = "Go on") -> str:
    """The address of the session's page."""
    async with served.client() as ana:
        answer = await ana.post(f"{path}/messages?wait=30", json={"messages": text})
        assert answer.json()["status"] == "finished", answer.text
    return f"{served.url}/console/s/lamp/{path.rpartition('/')[2]}"


async def nodes(page: Page) -> int:
    return int(await page.evaluate("document.querySelectorAll('*').length"))


async def first_paint(page: Page, address: str) -> float:
    """Seconds from the beginning of the request until something of the page is seen."""
    await page.goto(address)
    return float(await page.evaluate(FIRST_PAINT)) / 1_000


@pytest.mark.proves("X15")
async def test_a_session_tells_what_it_used_and_what_it_is_about(
    served: Address, signed_in: SignedIn, tmp_path: Path
) -> None:
    there = await answered(served, agent(tmp_path, *DOES, more=HAS_TASKS))
    page = await signed_in("ana")
    await page.goto(there)
    await page.get_by_role("link", name="About").click()
    cells = await page.locator("#about tbody tr").first.locator("th, td").all_inner_texts()
    said = await page.locator("#about").inner_text()
    await page.get_by_role("link", name="Timeline").click()
    await expect(page.locator(".timeline li").filter(has_text="result: Read")).to_contain_text("hello world")
    await expect(page.locator(".timeline li").last).to_contain_text("All is lit.")
    await page.get_by_role("link", name="action: Read").click()

    await expect(page.locator("#transcript")).to_contain_text("greeting.txt")
    await page.goto(there)
    await expect(page.locator("#transcript summary").first).to_have_text("✓ todo_write 1 of 2 tasks done")
    assert cells[0].startswith("scripted")
    assert cells[1:] == ["3", "3,702", "-", "168", "-", "-"]
    assert "done: Look <i>up</i>" in said
    assert "in progress: Light it⟨U+202E⟩" in said
    assert "budget: 3 calls of 90 calls spent" in said


@pytest.mark.proves("X15")
async def test_a_plan_is_told_with_its_subtasks(served: Address, signed_in: SignedIn, tmp_path: Path) -> None:
    sail = {"name": "Sail\u202e", "description": "", "expected_outcome": "a sail"}
    makes = {"name": "create_plan", "input": {**sail, "name": "Boat", "subtasks": [sail, sail]}}
    ends = {"name": "finish_subtask", "input": {"subtask_idx": 0, "subtask_outcome": "of linen"}}
    replies = {"tool_calls": [makes]}, {"tool_calls": [ends]}, {"text": "Half of it."}
    page = await signed_in("ana")
    there = await answered(served, agent(tmp_path, *replies, more="[tool_groups.plan_related]\nactive = true"))
    await page.goto(f"{there}/about")
    lines = await page.locator("h2:text-is('Plan') + ul li").all_inner_texts()

    assert lines == ["plan Boat", "[x] Sail\\u202e: of linen", "[>] Sail\\u202e"]


@pytest.mark.proves("X15")
@pytest.mark.alone
async def test_a_session_links_to_the_web_ui_and_to_its_traces(
    served: Address, signed_in: SignedIn, console_app: Longhaul, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = {"web_ui": "https://ui.example", "trace_url": "https://traces.example/?id={conversation}"}
    monkeypatch.setattr(console_app, "settings", console_app.settings.model_copy(update=elsewhere))
    address = await answered(served, agent(tmp_path, {"text": "Lit."}))
    page = await signed_in("ana")
    await page.goto(address)
    name = address.rpartition("/")[2]

    shown = page.locator(".elsewhere")
    await expect(shown.get_by_role("link", name="traces")).to_have_attribute(
        "href", f"https://traces.example/?id={name}"
    )
    await expect(shown.get_by_role("link", name="Temporal's Web UI")).to_have_attribute(
        "href", re.compile(rf"https://ui\.example/namespaces/default/workflows/longhaul[^/]+{name}")
    )


@pytest.mark.proves("X15")
async def test_ten_thousand_messages_are_shown_in_pages(served: Address, signed_in: SignedIn, tmp_path: Path) -> None:
    path = agent(tmp_path, {"text": "I listen."})
    there = await answered(served, path)
    async with served.client() as ana:
        for start in range(0, MESSAGES, BUNCH):
            said = [
                {"name": "gull", "role": "user", "content": [{"type": "text", "text": f"Cry {number}"}]}
                for number in range(start, start + BUNCH)
            ]
            answer = await ana.post(f"{path}/observe", json={"messages": said})
            assert answer.status_code == 204, answer.text
    page = await signed_in("ana")
    counted = dict[str, int]()
    for query, shown in (("", "Cry 9999"), ("?from=5000", "Cry 5000"), ("?from=0", "I listen.")):
        await page.goto(f"{there}{query}")
        await expect(page.locator("#transcript")).to_contain_text(shown)
        counted[shown] = await page.locator("article.message").count()
        assert await nodes(page) < MOST_NODES
    painted = [await first_paint(page, there) for _ in range(PAINTS)]
    await page.goto(f"{there}/timeline?from=9000")
    await expect(page.locator(".timeline li")).to_have_count(100)

    assert min(painted) <= usual(MOST_PAINT_SECONDS), painted
    assert set(counted.values()) == {50}
    assert await nodes(page) < MOST_NODES


@pytest.mark.proves("X15")
async def test_events_are_listed_in_pages_with_who_decided(
    served: Address, signed_in: SignedIn, tmp_path: Path
) -> None:
    looks = [
        {"tool_calls": [{"name": "Read", "input": {"file_path": "greeting.txt", "limit": lines}}]}
        for lines in range(1, 19)
    ]
    path = agent(tmp_path, *looks, WANTS_TO_EDIT, {"text": "Done <b>at last</b>."})
    async with served.client() as ana:
        answer = await ana.post(f"{path}/messages?wait=30", json={"messages": "Greet the moon"})
        assert answer.json()["status"] == "waiting", answer.text
    page = await signed_in("ana")
    there = f"{served.url}/console/s/lamp/{path.rpartition('/')[2]}"
    await page.goto(f"{there}/call?id=edit-7")
    await page.get_by_role("button", name="Allow").first.click()
    await page.wait_for_url("**/console?told=allowed")
    await page.goto(there)
    await expect(page.locator("#transcript")).to_contain_text("at last")
    await page.get_by_role("link", name="Events").click()
    rows = page.locator(".timeline li")
    newest = await rows.all_inner_texts()
    numbers = [await rows.nth(place).get_attribute("value") for place in (0, -1)]
    await page.get_by_role("link", name="Earlier").click()
    before = await rows.all_inner_texts()
    await page.goto(f"{there}/log?from=1")
    first = await rows.all_inner_texts()

    assert len(newest) == len(first) == 100
    assert int(numbers[1] or 0) - int(numbers[0] or 0) == 99
    assert any("require user confirm" in row and "waits for a person: Edit greeting.txt" in row for row in newest)
    assert any("allowed Edit" in row for row in newest)
    assert any("Done <b>at last</b>." in row for row in newest)
    assert before != newest
    assert "reply start" in first[0]
    await page.get_by_role("link", name="Newest").click()
    assert await rows.all_inner_texts() == newest
