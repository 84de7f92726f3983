"""A real Chromium, and people who look at the console of a real server with it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path
from typing import Protocol
from uuid import uuid4

import pytest
from playwright.async_api import Browser, BrowserContext, Page, async_playwright

from longhaul.starter.cli.commands.serve import HttpServer, ListenPlace, hosts_of, listen, server_config
from longhaul.starter.client.client import Longhaul
from longhaul.starter.serve.requests import Served
from longhaul.starter.serve.tokens import Caller, Tokens, digest_of
from longhaul.starter.settings import Settings
from tests.conftest import found
from tests.e2e.serving import TOKENS, Address
from tests.limits import SURE_SECONDS
from tests.servers.chromium import find_chromium

SURE_MILLISECONDS = SURE_SECONDS * 1_000
# As root Chromium has no sandbox; a machine's proxy would stand between it and the server.
FLAGS = ["--no-sandbox", "--no-proxy-server", "--disable-dev-shm-usage"]


class SignedIn(Protocol):
    """Gives a page of a browser of its own to one of these people, who has signed in."""

    def __call__(self, user: str, *, scripts: bool = True) -> Awaitable[Page]: ...


@pytest.fixture(scope="session")
async def browser() -> AsyncIterator[Browser]:
    executable = found("chromium", find_chromium)
    async with async_playwright() as playwright:
        launched = await playwright.chromium.launch(
            executable_path=executable, args=FLAGS, timeout=SURE_MILLISECONDS, chromium_sandbox=False
        )
        yield launched
        await launched.close()


@pytest.fixture(scope="session")
async def console_app(worker: int, cli_environment: dict[str, str]) -> AsyncIterator[Longhaul]:
    """The client behind the pages; it keeps its things where the worker does."""
    assert worker
    settings = Settings(
        task_queue=cli_environment["LONGHAUL_TASK_QUEUE"], data_dir=Path(cli_environment["LONGHAUL_DATA_DIR"])
    )
    async with Longhaul.connect(cli_environment["TEMPORAL_ADDRESS"], settings=settings) as connected:
        yield connected


@pytest.fixture
def people() -> dict[str, str]:
    """Names of this test's own for those who have tokens: other tests' sessions are not in their inboxes."""
    return {user: f"{user}.{uuid4().hex[:8]}" for user in TOKENS}


@pytest.fixture
async def served(
    tmp_path: Path, console_app: Longhaul, people: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Address]:
    """What `longhaul serve` serves, in a folder that holds a greeting, within this process: one of its own would take
    longer to start than a test takes. Bob has not the scope `steer`, and eve may only look."""
    (tmp_path / "greeting.txt").write_text("hello world\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LONGHAUL_TRUST", "1")
    scopes = {"ana": "read,answer,approve,edit,steer", "bob": "read,answer,approve", "eve": "read,admin"}
    lines = [f"{digest_of(TOKENS[user])} {people[user]} {scopes[user]}" for user in scopes]
    here = ListenPlace("127.0.0.1", 0)
    nobody = Caller(None, "", frozenset())
    served = Served(app=console_app, tokens=Tokens.of("; ".join(lines)), local=nobody, hosts=hosts_of(here, ""))
    listening = listen(here, is_guarded=True)
    server = HttpServer(server_config(served))
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    yield Address(f"http://127.0.0.1:{listening.getsockname()[1]}")
    served.draining.set()
    server.should_exit = True
    await serving
    listening.close()


async def page_of(context: BrowserContext, url: str, user: str) -> Page:
    """A page of this browser, on which that person has signed in."""
    page = await context.new_page()
    await page.goto(f"{url}/console")
    await page.get_by_label("Token").fill(TOKENS[user])
    await page.get_by_role("button", name="Sign in").click()
    await page.wait_for_url(f"{url}/console")
    return page


@pytest.fixture
async def signed_in(browser: Browser, served: Address) -> AsyncIterator[SignedIn]:
    contexts = list[BrowserContext]()

    async def sign_in(user: str, *, scripts: bool = True) -> Page:
        context = await browser.new_context(java_script_enabled=scripts)
        contexts.append(context)
        context.set_default_timeout(SURE_MILLISECONDS)
        return await page_of(context, served.url, user)

    yield sign_in
    for context in contexts:
        await context.close()
