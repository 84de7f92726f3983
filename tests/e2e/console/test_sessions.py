"""The console in a browser: sessions are started, followed while they speak, and steered."""

import asyncio
import re
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from tests.e2e.console.conftest import SURE_MILLISECONDS, SignedIn
from tests.e2e.console.test_answering import ENGRAVES, OUTCOME_UNKNOWN, asked
from tests.e2e.serve.test_sessions import agent
from tests.e2e.serving import Address

pytestmark = pytest.mark.server

expect.set_options(timeout=SURE_MILLISECONDS)

SLOWLY = {"chunk_chars": 4, "delay_ms": 40}
FAR = "It is a long way to the lighthouse. "
HIDDEN_SHELL = r"\\u202e"
HIDDEN = "\u202e\u2066\x1b[2J"


async def began(page: Page, served: Address, name: str, text: str) -> None:
    await page.goto(f"{served.url}/console/start")
    await page.get_by_label("Agent").select_option("lamp")
    await page.get_by_label("Name").fill(name)
    await page.get_by_label("Task").fill(text)
    await page.get_by_role("button", name="Start").click()
    await page.wait_for_url(f"**/console/s/lamp/{name}")


@pytest.mark.proves("X15")
async def test_text_is_shown_while_it_is_said_until_the_reply_is_interrupted(
    served: Address, signed_in: SignedIn, tmp_path: Path
) -> None:
    name = agent(tmp_path, {"text": HIDDEN + FAR * 400, **SLOWLY}).rpartition("/")[2]
    page = await signed_in("ana")
    await began(page, served, name, "How far?")
    said = page.locator("#said")
    await expect(said).to_contain_text("\\u202e\\u2066\\x1b[2JIt is a long way")
    while_said = await page.locator("#transcript").inner_text()
    await page.get_by_role("button", name="Interrupt").click()

    await expect(page.locator("#head .state")).to_have_text("idle")
    await expect(said).to_be_hidden()
    assert "long way" not in while_said


@pytest.mark.proves("X15")
async def test_thoughts_and_what_a_call_prints_are_shown_while_they_come(
    served: Address, signed_in: SignedIn, tmp_path: Path
) -> None:
    prints = f"for n in 1 2 3 4 5 6; do printf '%b\\n' \"line $n{HIDDEN_SHELL}\"; sleep 1; done"
    bash = {"id": "b-1", "name": "Bash", "input": {"command": prints}}
    replies = {"thinking": FAR * 40, "tool_calls": [bash], **SLOWLY}, {"text": "All lit."}
    name = agent(tmp_path, *replies, more='[permission]\nmode = "bypass"').rpartition("/")[2]
    page = await signed_in("ana")
    await began(page, served, name, "Light it")
    thought, runs = page.locator("#thought"), page.locator("#runs")
    await expect(thought).to_be_visible()
    folded = await thought.locator("pre").is_visible()
    await thought.locator("summary").click()
    await expect(thought.locator("pre")).to_contain_text("a long way")
    await expect(runs).to_contain_text("line 4\\u202e")
    title = await runs.locator("p").inner_text()

    await expect(page.locator("#transcript")).to_contain_text("All lit.")
    await expect(thought).to_be_hidden()
    await expect(runs).to_be_empty()
    assert not folded
    assert re.search(r"Bash for n in 1 2 3 .* · \d+ s$", title), title
    ran = await page.locator("#transcript details.call summary").inner_text()
    assert re.search(r"once, (?:[6-9]\.\d|\d\d) s$", ran), ran


@pytest.mark.proves("X15")
async def test_a_page_that_is_opened_while_a_call_runs_counts_from_its_beginning(
    served: Address, signed_in: SignedIn, tmp_path: Path
) -> None:
    bash = {"id": "b-1", "name": "Bash", "input": {"command": "echo started; sleep 12"}}
    path = agent(tmp_path, {"tool_calls": [bash]}, {"text": "Lit."}, more='[permission]\nmode = "bypass"')
    page = await signed_in("ana")
    async with served.client() as ana:
        await ana.post(f"{path}/messages", json={"messages": "Light it"})
    await page.goto(f"{served.url}/console/s/lamp/{path.rpartition('/')[2]}")
    await expect(page.locator("#transcript details.call")).to_be_visible()
    await asyncio.sleep(4)
    await page.reload()

    await expect(page.locator("#runs p")).to_have_text(re.compile(r"Bash echo started; sleep 12 · ([3-9]|1\d) s$"))
    first = await page.locator("#runs p").inner_text()
    await expect(page.locator("#runs p")).not_to_have_text(first)


@pytest.mark.proves("X15")
async def test_a_run_is_drawn_next_to_its_transcript_and_each_mark_opens_its_step(
    served: Address, signed_in: SignedIn, tmp_path: Path
) -> None:
    reads = {"tool_calls": [{"id": "r-1", "name": "Read", "input": {"file_path": "greeting.txt"}}]}
    name = agent(tmp_path, reads, {"text": "Read."}).rpartition("/")[2]
    page = await signed_in("ana")
    await began(page, served, name, "Read it")
    await expect(page.locator("#transcript")).to_contain_text("Read.")
    await expect(page.locator("#picture svg.run .tool.read")).to_have_count(1)
    await page.get_by_role("link", name="Its run").click()
    marks = page.locator("svg.run [data-point]")
    await expect(marks.first).to_be_visible()
    await marks.first.focus()
    for _ in range(await marks.count()):
        await page.keyboard.press("ArrowRight")
    reached = await page.evaluate("document.activeElement.getAttribute('aria-label')")
    labels = [await one.get_attribute("aria-label") for one in await marks.all()]
    row = page.locator("table.spans tr", has_text="Read greeting.txt")
    await expect(row).to_contain_text("tool call, only reads, success")
    await page.locator("a[href*='zoom=4']").click()
    await page.wait_for_url("**zoom=4**")
    await page.locator("svg.run [data-point] .tool.read").click()
    await page.wait_for_url("**/timeline?entry=*")

    await expect(page.locator(".timeline li").first).to_contain_text("Read")
    assert reached == labels[-1]


async def test_times_are_the_readers_own_and_exact_on_hover(
    served: Address, signed_in: SignedIn, tmp_path: Path
) -> None:
    path = agent(tmp_path, {"text": "Hello."})
    async with served.client() as ana:
        await ana.post(f"{path}/messages?wait=30", json={"messages": "Hi"})
    page = await signed_in("ana")
    context = await page.context.browser.new_context(timezone_id="Asia/Tokyo", locale="en-GB")  # type: ignore[union-attr]
    await context.add_cookies(await page.context.cookies())  # type: ignore[arg-type]
    there = await context.new_page()
    await there.goto(f"{served.url}/console/s/lamp/{path.rpartition('/')[2]}")
    age = there.locator("#transcript time").first
    first = await age.inner_text()
    await expect(age).to_have_attribute("title", re.compile("GMT\\+9$"))
    await expect(age).not_to_have_text(first)
    await there.goto(f"{served.url}/console/s/lamp/{path.rpartition('/')[2]}/timeline")
    await expect(there.locator(".timeline time").first).to_have_text(re.compile("GMT\\+9$"))
    await context.close()


async def test_what_was_said_is_shown_as_markdown(served: Address, signed_in: SignedIn, tmp_path: Path) -> None:
    name = agent(tmp_path, {"text": "**Far** away, [there](https://sea.example/there)"}).rpartition("/")[2]
    page = await signed_in("ana")
    await began(page, served, name, "How far?")

    await expect(page.locator("#transcript strong")).to_have_text("Far")
    link = page.locator("#transcript a")
    await expect(link).to_have_attribute("href", "https://sea.example/there")
    await expect(link).to_have_attribute("rel", "noopener noreferrer nofollow")


@pytest.mark.proves("X15")
async def test_a_page_that_renews_itself_leaves_its_reader_in_place(
    served: Address, signed_in: SignedIn, tmp_path: Path
) -> None:
    thinks = {"thinking": "\n".join(FAR for _ in range(200)), "text": "First."}
    path = agent(tmp_path, thinks, {"text": "Second."})
    page = await signed_in("ana")
    await began(page, served, path.rpartition("/")[2], "One")
    await expect(page.locator("#transcript")).to_contain_text("First.")
    await expect(page.locator("#head .state")).to_have_text("idle")
    thought = page.locator("#transcript details.thinking")
    await thought.locator("summary").focus()
    await page.keyboard.press("Enter")
    await thought.locator("pre").evaluate("text => { text.scrollTop = 300 }")
    async with served.client() as ana:
        await ana.post(f"{path}/messages", json={"messages": "Two"})
    await expect(page.locator("#transcript")).to_contain_text("Second.")

    assert await thought.get_attribute("open") is not None
    assert await thought.locator("pre").evaluate("text => text.scrollTop") == 300
    assert await thought.locator("summary").evaluate("one => one === document.activeElement")


async def test_a_session_is_talked_to_paused_and_resumed(served: Address, signed_in: SignedIn, tmp_path: Path) -> None:
    name = agent(tmp_path, {"text": "First."}, {"text": "Second."}).rpartition("/")[2]
    page = await signed_in("ana")
    await began(page, served, name, "One")
    await expect(page.locator("#transcript")).to_contain_text("First.")

    await page.get_by_label("Why").fill("The sea is rough")
    await page.get_by_role("button", name="Pause").click()
    await expect(page.locator("#head")).to_contain_text("The sea is rough")
    await page.get_by_label("Say", exact=True).fill("Two")
    await page.get_by_role("button", name="Send").click()
    await expect(page.locator(".state").first).to_have_text("paused")
    await page.get_by_role("button", name="Resume").click()
    await expect(page.locator("#transcript")).to_contain_text("Second.")


@pytest.mark.proves("X15")
async def test_what_waits_for_its_turn_is_listed_and_dropped(
    served: Address, signed_in: SignedIn, tmp_path: Path
) -> None:
    wants = {"tool_calls": [{"id": "b-1", "name": "Bash", "input": {"command": "touch lit"}}]}
    path = agent(tmp_path, wants, {"text": "Lit."}, {"text": "Never."})
    page = await signed_in("ana")
    await began(page, served, path.rpartition("/")[2], "Light it")
    await expect(page.locator("#waiting")).to_contain_text("touch lit")
    async with served.client() as ana:
        body = {"messages": "And put\u202e it out", "request_id": "put\u202eout"}
        assert (await ana.post(f"{path}/messages", json=body)).status_code == 202
    queue = page.locator(".queue li")
    await expect(queue).to_contain_text("And put⟨U+202E⟩ it out")  # nothing of it is recorded, and nobody reloads
    await expect(queue).to_contain_text("its turn comes after this reply · put⟨U+202E⟩out")
    await queue.get_by_role("button").click()

    await expect(queue).to_have_count(0)
    async with served.client() as ana:
        assert (await ana.get(f"{path}/status")).json()["queued"] == 0


@pytest.mark.proves("X15")
async def test_a_long_transcript_is_read_in_pages_and_calls_are_folded(
    served: Address, signed_in: SignedIn, tmp_path: Path
) -> None:
    looks = [{"tool_calls": [{"name": "Glob", "input": {"pattern": f"{number}*.txt"}}]} for number in range(30)]
    reads = {"tool_calls": [{"name": "Read", "input": {"file_path": "greeting.txt"}}]}
    name = agent(tmp_path, *looks, reads, {"text": "Read it often."}).rpartition("/")[2]
    page = await signed_in("ana")
    await began(page, served, name, "Read it thirty times")
    await expect(page.locator("#transcript")).to_contain_text("Read it often.")
    last = await page.locator("article.message").count()
    folded = page.locator("details.call").last
    before = await folded.locator("pre").last.is_visible()
    await folded.locator("summary").click()
    await expect(folded.locator("pre").last).to_contain_text("hello world")
    await page.get_by_role("link", name="Earlier").click()

    await expect(page.locator("#transcript")).to_contain_text("Read it thirty times")
    await expect(page.get_by_role("link", name="Later")).to_be_visible()
    assert not before
    assert last <= 50


async def test_the_list_says_how_sessions_stand_and_what_they_wait_for(
    served: Address, signed_in: SignedIn, tmp_path: Path
) -> None:
    wants = {"tool_calls": [{"id": "b-1", "name": "Bash", "input": {"command": "touch lit"}}]}
    name = agent(tmp_path, wants).rpartition("/")[2]
    page = await signed_in("ana")
    await began(page, served, name, "Light it")
    await expect(page.locator("#waiting")).to_contain_text("touch lit")
    await page.goto(f"{served.url}/console/sessions")

    row = page.locator("[data-row]", has_text=name)
    await expect(row).to_contain_text(re.compile("waiting.*waits for an answer on Bash", re.DOTALL))


@pytest.mark.proves("X15")
@pytest.mark.parametrize("width", [390, 800, 1440])
async def test_what_a_session_waits_for_stands_above_its_transcript_and_stays_in_view(
    served: Address, signed_in: SignedIn, tmp_path: Path, width: int
) -> None:
    runs = [{"id": f"b-{n}", "name": "Bash", "input": {"command": f"touch lamp-{n}"}} for n in range(12)]
    long = {"text": "\n\n".join(f"The lamp of quay {number} is out." for number in range(80)), "tool_calls": runs}
    path = agent(tmp_path, long)
    async with served.client() as ana:
        answer = await ana.post(f"{path}/messages?wait=30", json={"messages": "Light them"})
        assert answer.json()["status"] == "waiting"
    page = await signed_in("ana")
    await page.set_viewport_size({"width": width, "height": 844})
    await page.goto(f"{served.url}/console/s/lamp/{path.rpartition('/')[2]}")
    waits, transcript = page.locator("#waiting"), page.locator("#transcript")
    places = list[float]()
    for place in (waits, transcript):
        box = await place.bounding_box()
        assert box is not None
        places += [box["y"], box["y"] + box["height"]]
    await page.get_by_role("button", name="Send").scroll_into_view_if_needed()
    box = await waits.bounding_box()

    await expect(waits.locator("h2")).to_have_text("It waits for 12 calls")
    await expect(waits.locator("[data-row]").first).to_be_in_viewport()
    assert places == sorted(places)
    assert places[1] < 844, "all of it is in view when the page opens"
    assert box is not None
    assert (box["y"], box["height"] < 844 / 3) == (0, True), "it stays in view, and leaves room for what is read"
    await waits.get_by_role("link", name="Review 12 calls together").click()
    await page.wait_for_url("**/calls")


@pytest.mark.proves("X15")
async def test_the_box_of_a_session_leads_to_its_call_of_unknown_outcome_and_resumes_it(
    served: Address, signed_in: SignedIn, tmp_path: Path
) -> None:
    page = await signed_in("ana")
    there = await asked(served, page, "ring-1", tmp_path, ENGRAVES, {"text": "A ring."}, more=OUTCOME_UNKNOWN)
    await page.goto(there)
    await page.get_by_label("Why pause").fill("I look at the ring")
    await page.get_by_role("button", name="Pause").click()
    box = page.locator('[data-trouble="paused"]')
    await expect(box).to_contain_text("I look at the ring")
    await box.get_by_role("button", name="Resume").click()
    await expect(box).to_have_count(0)
    await page.locator('[data-trouble="unknown outcome"]').get_by_role("link", name="Say what happened").click()
    await page.wait_for_url("**/call?id=ring-1")

    await expect(page.get_by_role("button", name="It happened")).to_be_visible()


async def test_what_could_not_be_started_says_why_and_keeps_what_was_written(
    served: Address, signed_in: SignedIn, tmp_path: Path
) -> None:
    agent(tmp_path, {"text": "Never."})
    page = await signed_in("ana")
    await page.goto(f"{served.url}/console/start")
    await page.get_by_label("Agent").select_option("longhaul")
    await page.get_by_label("Name").fill("no-model")
    await page.get_by_label("Task").fill("Say something")
    await page.get_by_role("button", name="Start").click()

    await expect(page.locator(".problem").first).to_contain_text("names no model")
    await expect(page.get_by_label("Task")).to_have_value("Say something")
