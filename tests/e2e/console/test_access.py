"""The console for everybody: axe-core finds nothing on any page, and the keyboard is enough."""

import asyncio
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Locator, Page, ViewportSize, expect

from longhaul.starter.console.site import LOOKED_AT, S
from tests.conftest import found
from tests.e2e.console.conftest import SURE_MILLISECONDS, SignedIn
from tests.e2e.console.test_about import DOES, HAS_TASKS, answered
from tests.e2e.console.test_answering import (
    ALLOWS,
    ASKS_OUTSIDE,
    ENGRAVES,
    HANDS_A_PLAN,
    OUTCOME_UNKNOWN,
    OUTSIDE,
    PLANS,
    SHOWS,
    asked,
)
from tests.e2e.console.test_deciding import shown, waiting
from tests.e2e.console.test_server_questions import MOORS, QUAY
from tests.e2e.serve.test_sessions import WANTS_TO_EDIT, agent
from tests.e2e.serving import Address
from tests.limits import SURE_SECONDS
from tests.servers.axe_core import find_axe_core

pytestmark = pytest.mark.server

expect.set_options(timeout=SURE_MILLISECONDS)

EXPIRES = '[permission.deadline]\nexpire_after = "40m"'
FINDINGS = """async () => (await axe.run()).violations.map(
    ({id, nodes}) => `${id}: ${nodes.map((one) => one.target.join(" ")).join(", ")}`)"""

CLOSES_AND_TYPES_ON = """() => {
    const keys = document.getElementById("keys");
    keys.showModal();
    keys.close();
    document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key: "j", bubbles: true }));
    return document.activeElement.href;
}"""
"""Faster than the browser moves the focus out of the list of keys: of the row that `j` has come to, its address."""
PHONE: ViewportSize = {"width": 360, "height": 640}
TOO_WIDE = """() => document.documentElement.scrollWidth <= document.documentElement.clientWidth ? [] :
    [...document.querySelectorAll("main *")].filter((one) => one.getBoundingClientRect().right > innerWidth)
        .map((one) => `too wide: ${one.tagName} ${one.className}`)"""


@pytest.fixture(scope="session")
def axe() -> str:
    return found("axe-core", find_axe_core).read_text(encoding="utf-8")


async def findings(page: Page, axe: str) -> list[Any]:
    """Of the page as it stands, in light and in dark; and whether a phone has room for it, and anything moves for who
    wants none of that."""
    await page.evaluate(axe)
    told = list[Any]()
    for scheme in ("light", "dark"):
        await page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        told += await page.evaluate(FINDINGS)
    usual = page.viewport_size
    await page.set_viewport_size(PHONE)
    told += await page.evaluate(TOO_WIDE)
    told += await page.evaluate("document.getAnimations().map(() => 'it moves')")
    if usual is not None:
        await page.set_viewport_size(usual)
    return told


def pages_without(seen: Iterable[str]) -> set[str]:
    """Those of the console that none of these addresses is of."""
    paths = [(address if address.startswith("http") else f"/console{address}").partition("?")[0] for address in seen]
    return {
        pattern
        for pattern in LOOKED_AT
        if not any(re.search(re.sub(r"{\w+}", "[^/]+", pattern) + "$", path) for path in paths)
    }


async def tabbed_to(page: Page, wanted: Locator) -> None:
    async with asyncio.timeout(SURE_SECONDS):
        while not await wanted.evaluate("one => one === document.activeElement"):
            await page.keyboard.press("Tab")


@pytest.mark.proves("X15")
async def test_no_page_keeps_anybody_out(served: Address, signed_in: SignedIn, tmp_path: Path, axe: str) -> None:
    waits = await waiting(served, tmp_path, more=EXPIRES)
    rests = await answered(served, agent(tmp_path, *DOES, more=HAS_TASKS))
    page = await signed_in("ana")
    there = f"{served.url}/console/s/lamp/{waits}"
    pages = (
        *("", "/sessions", "/sessions?status=closed&text=nothing", "/start", "/sessions?from=x"),
        *(
            f"{there}{below}"
            for below in ("", "/call?id=edit-7", "/call?id=edit-7&diff=columns", "/calls", "/edit?id=edit-7")
        ),
        *(f"{rests}{below}" for below in ("", "/run", "/about", "/timeline", "/log", "/context")),
        *(f"{rests}{below}" for below in ("/change?entry=3", "/call?id=gone")),
    )
    told = dict[str, list[Any]]()
    for address in pages:
        await page.goto(address if address.startswith("http") else f"{served.url}/console{address}")
        await page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
        told[address] = await findings(page, axe)
    await page.evaluate("document.getElementById('keys').showModal()")
    told["keys"] = await findings(page, axe)
    eve = await signed_in("eve")
    await eve.goto(f"{served.url}/console/workers")
    told["/workers"] = await findings(eve, axe)
    await asked(served, page, "price-1", tmp_path, ASKS_OUTSIDE, more=OUTSIDE)
    told["a result"] = await findings(page, axe)
    await asked(served, page, "plan-1", tmp_path, HANDS_A_PLAN, more=PLANS)
    told["a plan"] = await findings(page, axe)
    await asked(served, page, "ring-1", tmp_path, ENGRAVES, more=OUTCOME_UNKNOWN)
    told["an unknown outcome"] = await findings(page, axe)
    await asked(served, page, "moor-1", tmp_path, MOORS, more=QUAY)
    await expect(page.get_by_label("nights")).to_be_visible()
    told["a server's question"] = await findings(page, axe)
    await page.context.clear_cookies()
    await page.goto(f"{served.url}/console/sign-in")
    told["sign in"] = await findings(page, axe)

    assert pages_without(told) == {f"{S}/state", f"{S}/events"}, "a file and a stream alone are no pages"
    assert {address: found for address, found in told.items() if found} == {}


async def test_a_form_that_shows_its_changes_keeps_nobody_out(
    served: Address, signed_in: SignedIn, tmp_path: Path, axe: str
) -> None:
    name = await waiting(served, tmp_path)
    page = await signed_in("ana")
    await page.goto(f"{served.url}/console/s/lamp/{name}/edit?id=edit-7")
    await page.get_by_label("new_string").fill("sun")
    await page.get_by_role("button", name=SHOWS).click()
    await expect(page.locator("#changes")).to_be_visible()

    assert await findings(page, axe) == []


async def test_a_change_stands_side_by_side_and_its_time_runs_out_in_sight(
    served: Address, signed_in: SignedIn, tmp_path: Path
) -> None:
    name = await waiting(served, tmp_path, more=EXPIRES)
    page = await signed_in("ana")
    await page.goto(f"{served.url}/console/s/lamp/{name}/call?id=edit-7")
    left = page.locator("time[data-until]")
    first = await left.inner_text()
    await expect(left).not_to_have_text(first)
    second = await left.inner_text()
    await page.get_by_role("link", name="Side by side").click()
    rows = await page.locator(".columns tbody tr").all_inner_texts()
    await page.get_by_role("link", name="In one column").click()
    await expect(page.locator("pre.diff")).to_be_visible()

    assert all(re.fullmatch(r"in (40 min 00|3\d min \d\d) s", text) for text in (first, second)), (first, second)
    assert "-hello world\t+hello moon" in rows


async def test_k_goes_back_to_the_entry_before(served: Address, signed_in: SignedIn, tmp_path: Path) -> None:
    also = {"id": "new-8", "name": "Write", "input": {"file_path": "moon.txt", "content": "full"}}
    both: dict[str, object] = {**WANTS_TO_EDIT, "tool_calls": [*WANTS_TO_EDIT["tool_calls"], also]}
    name = await waiting(served, tmp_path, both, {"text": "Done."})
    page = await signed_in("ana")
    await page.reload()
    rows = page.locator("[data-row]")
    await expect(rows).to_have_count(2)
    reached = [await page.evaluate(CLOSES_AND_TYPES_ON)]
    for key in ("j", "k"):
        await page.keyboard.press(key)
        reached.append(await page.evaluate("document.activeElement.href"))
    first, second = [str(await rows.nth(place).evaluate("row => row.href")) for place in (0, 1)]
    await page.keyboard.press("Enter")
    await page.wait_for_url(first)

    assert reached == [first, second, first]
    assert f"/{name}/call" in first
    assert first != second


@pytest.mark.proves("X15")
async def test_the_keyboard_is_enough_from_the_list_to_other_arguments(
    served: Address, signed_in: SignedIn, tmp_path: Path
) -> None:
    name = await waiting(served, tmp_path)
    page = await signed_in("ana")
    await page.goto(f"{served.url}/console/sessions")
    await expect(page.locator("[data-row]")).to_have_count(1)
    await page.keyboard.press("?")
    await expect(page.locator("#keys")).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(page.locator("#keys")).to_be_hidden()
    for key in ("j", "Enter"):
        await page.keyboard.press(key)
    await page.wait_for_url(f"**/console/s/lamp/{name}")
    await expect(page.locator("#waiting [data-row]")).to_be_visible()
    for key in ("j", "Enter"):
        await page.keyboard.press(key)
    await shown(page)
    for key in ("e", "Enter"):
        await page.keyboard.press(key)
    await expect(page.get_by_label("new_string")).to_be_visible()
    await tabbed_to(page, page.get_by_label("new_string"))
    await page.keyboard.press("Control+a")
    await page.keyboard.type("sun")
    for button in (SHOWS, ALLOWS):
        await tabbed_to(page, page.get_by_role("button", name=button))
        await page.keyboard.press("Enter")
        await page.wait_for_load_state()
    await page.wait_for_url("**/console?told=edited")
