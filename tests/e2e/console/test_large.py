"""The console and `longhaul show` after lines of five megabytes: nothing else is lost, and no page is slow."""

import time
from pathlib import Path

import pytest
from playwright.async_api import ViewportSize, expect

from longhaul.starter.client.client import Longhaul
from longhaul.starter.console.transcript import MOST_PARTS
from tests.e2e.conftest import Cli
from tests.e2e.console.conftest import SURE_MILLISECONDS, SignedIn
from tests.e2e.console.test_about import PAINTS, first_paint
from tests.e2e.sample_tools import LOG_OF_ALL_YEARS
from tests.e2e.serve.test_sessions import agent
from tests.e2e.serving import Address
from tests.limits import usual

pytestmark = [pytest.mark.server, pytest.mark.alone]

expect.set_options(timeout=SURE_MILLISECONDS)

LETTER = "fog, " * 1_000_000
TIDE = "tide, " * 400_000
"""More than one answer of the API holds."""
ROOMY = 'tools = ["unroll"]\n[model_config]\ncontext_length = 9_000_000'
UNROLLS = {"text": "I look it up.", "tool_calls": [{"id": "u-1", "name": "unroll", "input": {}}]}
ALL_PAGES = ("", "/timeline", "/log", "/context", "/about", "/change")
MOST_PAINT_SECONDS = 2.0
MOST_SHOW_SECONDS = 5.0
PHONE: ViewportSize = {"width": 390, "height": 844}


@pytest.mark.proves("X15")
async def test_lines_of_megabytes_leave_the_pages_usable(
    served: Address, signed_in: SignedIn, console_app: Longhaul, people: dict[str, str], tmp_path: Path
) -> None:
    path = agent(tmp_path, {"text": "Hello, Ana."}, UNROLLS, {"text": "It rained."}, {"text": "At four."}, more=ROOMY)
    name = path.rpartition("/")[2]
    session = console_app.session(name, user=people["ana"], agent="lamp")
    for said in ("Hello", LETTER):
        await session.reply(said)
    page = await signed_in("ana")
    await page.set_viewport_size(PHONE)
    painted, wide = dict[str, float](), dict[str, bool]()
    for below in ALL_PAGES:
        there = f"{served.url}/console/s/lamp/{name}{below}"
        painted[below] = min([await first_paint(page, there) for _ in range(PAINTS)])
        wide[below] = await page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
    await page.goto(f"{served.url}/console/s/lamp/{name}")
    transcript = page.locator("#transcript")
    shown = await transcript.inner_text()
    await transcript.locator("summary").click()
    result = await transcript.locator("details pre").last.inner_text()
    # Nothing stands still: the next reply appears on the page that is open.
    await session.reply("When?")
    await expect(transcript).to_contain_text("At four.")

    assert max(painted.values()) <= usual(MOST_PAINT_SECONDS), painted
    assert not any(wide.values()), wide
    for text in ("Hello, Ana.", "characters are not shown here", "I look it up.", "It rained."):
        assert text in shown
    assert len(shown) < 30_000
    assert "refer to the file in" in " ".join(result.split())


async def test_a_page_of_large_messages_ends_with_the_last_one(
    served: Address, signed_in: SignedIn, console_app: Longhaul, people: dict[str, str], tmp_path: Path
) -> None:
    name = agent(tmp_path, {"text": "Ebb."}, more=ROOMY).rpartition("/")[2]
    session = console_app.session(name, user=people["ana"], agent="lamp")
    for said in (*[TIDE] * (MOST_PARTS + 1), "Flood."):
        await session.observe(said)
    page = await signed_in("ana")
    await page.goto(f"{served.url}/console/s/lamp/{name}")
    transcript = page.locator("#transcript")
    await expect(transcript).to_contain_text("Flood.")
    links = await transcript.get_by_role("link").all_inner_texts()
    counted = await transcript.locator("article").count()
    await session.reply("And then?")

    await expect(transcript).to_contain_text("Ebb.")
    assert (links, counted) == (["Earlier"], MOST_PARTS)


async def test_a_line_of_megabytes_is_shown_whole_at_the_terminal(
    cli: Cli, console_app: Longhaul, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LONGHAUL_TRUST", "1")
    name = agent(tmp_path, UNROLLS, {"text": "It rained."}, more=ROOMY).rpartition("/")[2]
    await console_app.session(name, agent="lamp").reply(LETTER)
    took = dict[str, float]()
    for form in ("", "--calls"):
        began_at = time.monotonic()
        answer = cli("show", name, "--agent", "lamp", *form.split())
        took[form] = time.monotonic() - began_at
        assert answer.code == 0
        if form:
            assert LOG_OF_ALL_YEARS[:5_000] in answer.out
        else:
            assert LETTER.strip() in answer.out
            assert answer.out.rstrip().endswith("It rained.")

    assert max(took.values()) <= usual(MOST_SHOW_SECONDS), took
