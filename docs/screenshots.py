"""Takes the pictures of docs/images: a session that waits for a person, as the console and Temporal's Web UI show it.

`make pictures` starts a server and a worker of its own, parks a scripted session and looks at it with Chromium.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal, cast
from urllib.parse import quote
from urllib.request import urlopen

from playwright.sync_api import Browser, Page, sync_playwright

IMAGES = Path(__file__).parent / "images"
LONGHAUL = Path(sys.executable).with_name("longhaul")
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
PATIENCE_MILLISECONDS = 60_000.0
SETTLE_MILLISECONDS = 2_000.0
"""After the text is there: the timeline is drawn last."""
LARGEST_BYTES = 200_000

WAITING = "/namespaces/default/workflows?query=" + quote('LonghaulStatus = "waiting"')
AGENT = """name = "fixer"
tools = ["Read", "Glob", "Edit", "Bash"]
[permission.deadline]
escalate_after = "4h"
escalate_to = "the team"
expire_after = "2d"
"""
TEST = """import unittest


class Sums(unittest.TestCase):
    def test_sum(self) -> None:
        self.assertEqual(2 + 2, 5)
"""
REPLIES: tuple[dict[str, Any], ...] = (
    {
        "text": "I look around first.",
        "tool_calls": [
            {"name": "Glob", "input": {"pattern": "*.py"}},
            {"name": "Read", "input": {"file_path": "test_sums.py"}},
        ],
    },
    {
        "text": "2 + 2 is 4. I fix the test and run it.",
        "tool_calls": [
            {"name": "Edit", "input": {"file_path": "test_sums.py", "old_string": "2, 5", "new_string": "2, 4"}},
            {"name": "Bash", "input": {"command": "python3 -m unittest"}},
        ],
    },
)

LEAD = """name = "harbour"
tools = ["Read"]
[agents.surveyor]
description = "measures; changes nothing"
model = "scripted:{folder}/surveyor.jsonl"
tools = ["Bash"]
[agents.watchman]
description = "waits for the tide"
model = "scripted:{folder}/watchman.jsonl"
tools = ["sleep"]
"""
CHILDREN: dict[str, dict[str, Any]] = {
    "surveyor": {"tool_calls": [{"name": "Bash", "input": {"command": "make soundings"}}]},
    "watchman": {"tool_calls": [{"name": "sleep", "input": {"for": "8h"}}]},
}
LEADS: tuple[dict[str, Any], ...] = (
    {
        "text": "The surveyor measures, and the watchman looks when the tide is low.",
        "tool_calls": [
            {"name": "Agent", "input": {"agent": "surveyor", "task": "Take the soundings of the north quay."}},
            {"name": "Agent", "input": {"agent": "watchman", "task": "Look at the quay when the tide is low."}},
        ],
    },
)


@dataclass(frozen=True, slots=True)
class Picture:
    """One page: a text that stands there when it is complete, and how much of it is taken."""

    name: str
    url: str
    text: str
    width: int
    height: int
    in_the_dark: bool = True
    """Also as whoever prefers dark pages sees it, as NAME-dark.png."""


@contextmanager
def development_server(folder: Path) -> Iterator[tuple[str, str]]:
    """`longhaul dev` on free ports: the addresses of the server and of the Web UI."""
    command = [str(LONGHAUL), "dev", "--data-dir", str(folder), "--port", "0", "--ui-port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        said = cast(IO[str], running.stdout)
        try:
            yield said.readline().split()[-1], said.readline().split()[-1]
        finally:
            running.terminate()


def park_a_session(
    address: str,
    folder: Path,
    session: str = "red-test",
    agent: str = AGENT,
    replies: tuple[dict[str, Any], ...] = REPLIES,
    *flags: str,
) -> str:
    """A session that waits for a person; returns its workflow's id. `flags`: more of `longhaul run`."""
    project, script, written = folder / "project", folder / f"{session}.jsonl", folder / "agents" / f"{session}.toml"
    for place in (project, written.parent):
        place.mkdir(exist_ok=True)
    written.write_text(agent, encoding="utf-8")
    (project / "test_sums.py").write_text(TEST, encoding="utf-8")
    script.write_text("".join(json.dumps(reply) + "\n" for reply in replies), encoding="utf-8")
    asked = [str(LONGHAUL), "--address", address, "run", "Fix the failing test.", "--session", session, "--user", "ana"]
    asked += ["--model", f"scripted:{script}", "--agent", str(written), *flags]
    # Without a terminal it parks.
    subprocess.run(asked, cwd=project, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=False)
    listed = subprocess.check_output([str(LONGHAUL), "--address", address, "sessions", "--json"], text=True)
    return str(json.loads(listed)[0]["workflow_id"])


def _trusting(folder: Path) -> dict[str, str]:
    return {**os.environ, "LONGHAUL_TRUST": "1", "LONGHAUL_DATA_DIR": str(folder / "data"), "LONGHAUL_LOG": "error"}


@contextmanager
def console(address: str, folder: Path, ui: str, by: Literal["console", "serve"] = "console") -> Iterator[str]:
    """`longhaul console` or `longhaul serve` on a free port, which links to the Web UI: the address that it prints."""
    command = [str(LONGHAUL), "--address", address, by, "--port", "0"]
    # In its own folder: agents of the current one would have to be trusted first.
    there = _trusting(folder) | {"LONGHAUL_WEB_UI": ui, "LONGHAUL_SERVE_TOKENS": f"{'0' * 64} ana"}
    with subprocess.Popen(command, cwd=folder, env=there, stdout=subprocess.PIPE, text=True) as running:
        said = cast(IO[str], running.stdout)
        try:
            yield said.readline().strip() or sys.exit(f"longhaul {by} did not start; its own words are above")
        finally:
            running.terminate()


def page_of(ui: str, workflow_id: str) -> str:
    """The address of the workflow's pages. They want the run as well, and the Web UI's own service knows it."""
    name = f"/namespaces/default/workflows/{quote(workflow_id, safe='')}"
    with urlopen(f"{ui}/api/v1{name}") as answer:  # noqa: S310  our own server's address
        run_id = json.load(answer)["workflowExecutionInfo"]["execution"]["runId"]
    return f"{ui}{name}/{run_id}"


def of_the_console(inbox: str, browser: Browser) -> Iterator[Picture]:
    """Each page; the address of the call is known to the inbox alone."""
    with browser.new_page() as page:
        page.goto(inbox)
        row = page.locator("[data-row]").first
        row.wait_for(timeout=PATIENCE_MILLISECONDS)
        call = str(row.evaluate("row => row.href"))
    session, _, whose = call.partition("/call")
    whose = "&".join(part for part in whose.strip("?").split("&") if not part.startswith("id="))
    edit = call.replace("/call?", "/edit?", 1)
    yield Picture("console-inbox", inbox, "test_sums.py", 1200, 720)
    yield Picture("console-call", call, "Allow", 1200, 860)
    yield Picture("console-calls", f"{session}/calls?{whose}", "I have looked", 1200, 860)
    yield Picture("console-edit", edit, "new_string", 1200, 640)
    yield Picture("console-session", f"{session}?{whose}", "I look around first", 1200, 860)
    yield Picture("console-timeline", f"{session}/timeline?{whose}", "Glob", 1200, 400)
    yield Picture("console-about", f"{session}/about?{whose}", "Amounts", 1200, 480)
    yield Picture("console-context", f"{session}/context?{whose}", "tokens", 1200, 340)
    yield Picture("console-events", f"{session}/log?{whose}", "waits for a person", 1200, 680)
    yield Picture("console-change", f"{session}/change?{whose}", "Rules in force", 1200, 1300)
    yield Picture("console-start", f"{inbox}/start", "Start", 1200, 860)
    yield Picture("console-workers", f"{inbox}/workers", "Seen", 1200, 400)


def of_a_lead(inbox: str) -> Iterator[Picture]:
    """Its page, and the list with its sub-agents, one of which sleeps."""
    yield Picture("console-lead", f"{inbox}/s/harbour/the-quay?user=ana", "Sub-agents", 1200, 860)
    yield Picture("console-run", f"{inbox}/s/harbour/the-quay/run?user=ana", "As a table", 1200, 860)
    yield Picture("console-sessions", f"{inbox}/sessions", "asleep", 1200, 640)


def of_temporal(ui: str, page: str) -> Iterator[Picture]:
    yield Picture("timeline", f"{page}/history", "Glob", 1400, 1085, in_the_dark=False)
    # What the details say stands in a frame of its own, which the page's text does not show.
    yield Picture("current-details", f"{page}/user-metadata", "Current Details", 1400, 620, in_the_dark=False)
    yield Picture("waiting-sessions", f"{ui}{WAITING}", "red-test", 1400, 560, in_the_dark=False)


def take(browser: Browser, picture: Picture) -> None:
    for scheme in ("light", "dark") if picture.in_the_dark else ("light",):
        _take(browser, picture, scheme)


def _take(browser: Browser, picture: Picture, scheme: Literal["light", "dark"]) -> None:
    """Raises TimeoutError with what the page shows instead."""
    size = {"width": picture.width, "height": picture.height}
    with browser.new_page(color_scheme=scheme, viewport=cast(Any, size)) as page:
        # Temporal's pages poll for ever, so no network is ever idle: the text says when they are complete.
        page.goto(picture.url, wait_until="domcontentloaded")
        _wait_for(page, picture.text)
        page.wait_for_timeout(SETTLE_MILLISECONDS)
        path = IMAGES / f"{picture.name}{'-dark' if scheme == 'dark' else ''}.png"
        page.screenshot(path=path)
    if path.stat().st_size > LARGEST_BYTES:
        raise ValueError(f"{path} has {path.stat().st_size} bytes, more than {LARGEST_BYTES}: take less of the page")
    print(path)


def _wait_for(page: Page, text: str) -> None:
    try:
        page.get_by_text(text).first.wait_for(timeout=PATIENCE_MILLISECONDS)
    except Exception as error:
        shown = page.inner_text("body")[:500]
        raise TimeoutError(f"{page.url} does not show {text!r}; it shows: {shown}") from error


def main() -> int:
    program = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if program is None:
        print(f"no browser is on PATH (looked for {', '.join(BROWSERS)}); install Chromium", file=sys.stderr)
        return 1
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="longhaul-screenshots-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        with development_server(folder / "data") as (address, ui), sync_playwright() as playwright:
            page = page_of(ui, park_a_session(address, folder))
            browser = playwright.chromium.launch(executable_path=program, chromium_sandbox=False)
            with console(address, folder, ui) as inbox:
                for picture in (*of_the_console(inbox, browser), *of_temporal(ui, page)):
                    take(browser, picture)
                for child, reply in CHILDREN.items():
                    (folder / f"{child}.jsonl").write_text(json.dumps(reply), encoding="utf-8")
                park_a_session(address, folder, "the-quay", LEAD.format(folder=folder), LEADS, "--detach")
                for picture in of_a_lead(inbox):
                    take(browser, picture)
            with console(address, folder, ui, "serve") as served:
                take(browser, Picture("console-sign-in", f"{served}/console", "Token", 1200, 440))
            browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
