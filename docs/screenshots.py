"""Takes the pictures of docs/images: a session that waits for a person, as the console and Temporal's Web UI show it.

`.venv/bin/python docs/screenshots.py` starts a server and a worker of its own, parks a scripted session and looks at it
with a headless Chromium. Chromium's own --screenshot never ends here: the page of an open workflow polls for ever.
"""

import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast
from urllib.parse import quote
from urllib.request import urlopen

IMAGES = Path(__file__).parent / "images"
LONGHAUL = Path(sys.executable).with_name("longhaul")
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
PATIENCE_SECONDS = 30.0
SETTLE_SECONDS = 2.0
"""After the text is there: the timeline is drawn last."""
WIDTH = 1400
LARGEST_BYTES = 200_000

PICTURES = (
    # File, page, a text that stands there when it is complete, height.
    ("timeline.png", "history", "longhaul.prepare_reply", 1085),
    # What the details say stands in a frame of its own, which the page's text does not show.
    ("current-details.png", "user-metadata", "Current Details", 620),
)
WAITING = "/namespaces/default/workflows?query=" + quote('LonghaulStatus = "waiting"')
AGENT = """name = "mender"
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
        "text": "2 + 2 is 4. I mend the test and run it.",
        "tool_calls": [
            {"name": "Edit", "input": {"file_path": "test_sums.py", "old_string": "2, 5", "new_string": "2, 4"}},
            {"name": "Bash", "input": {"command": "python3 -m unittest"}},
        ],
    },
)


class Browser:
    """Chromium's DevTools protocol over a pair of pipes: JSON messages, each ended by a zero byte."""

    def __init__(self, program: str, profile: str) -> None:
        ours_read, theirs_write = os.pipe()
        theirs_read, ours_write = os.pipe()
        # The shell gives Chromium its two ends under the numbers that it wants, 3 and 4.
        wiring = f'exec "$@" 3<&{theirs_read} 4>&{theirs_write}'
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"]
        quiet = ["--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-quic"]
        folder = f"--user-data-dir={profile}"
        self._process = subprocess.Popen(
            ["bash", "-c", wiring, "bash", program, *flags, *quiet, folder, "--remote-debugging-pipe"],
            pass_fds=(theirs_read, theirs_write),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_read)
        os.close(theirs_write)
        self._read, self._write = os.fdopen(ours_read, "rb"), os.fdopen(ours_write, "wb")
        self._sent = 0
        target = self._ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = str(self._ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"])

    def picture(self, url: str, text: str, height: int) -> bytes:
        """The page as PNG, once it shows the text. Raises TimeoutError."""
        size = {"width": WIDTH, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self._ask("Emulation.setDeviceMetricsOverride", self._session, **size)
        self._ask("Page.navigate", self._session, url=url)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while text not in self._text():
            if time.monotonic() > deadline:
                raise TimeoutError(f"{url} does not show {text!r}; it shows: {self._text()[:500]}")
            time.sleep(0.2)
        time.sleep(SETTLE_SECONDS)
        return base64.b64decode(self._ask("Page.captureScreenshot", self._session, format="png")["data"])

    def close(self) -> None:
        self._process.terminate()
        self._process.wait()
        self._read.close()
        self._write.close()

    def _text(self) -> str:
        return self.found("document.body ? document.body.innerText : ''")

    def found(self, expression: str) -> str:
        """What an expression comes to on the page."""
        answer = self._ask("Runtime.evaluate", self._session, expression=expression)
        return str(answer["result"].get("value", ""))

    def _ask(self, method: str, session: str | None = None, **parameters: object) -> dict[str, Any]:
        self._sent += 1
        message: dict[str, object] = {"id": self._sent, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        self._write.write(json.dumps(message).encode() + b"\0")
        self._write.flush()
        while (answer := self._next()).get("id") != self._sent:
            pass  # an event of the page
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return cast(dict[str, Any], answer["result"])

    def _next(self) -> dict[str, Any]:
        message = bytearray()
        while (byte := self._read.read(1)) != b"\0":
            if not byte:
                raise RuntimeError("the browser has ended; run it by hand to see why")
            message += byte
        return cast(dict[str, Any], json.loads(message))


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


def park_a_session(address: str, folder: Path) -> str:
    """A session that waits for a person; returns its workflow's id."""
    project, script = folder / "project", folder / "script.jsonl"
    project.mkdir()
    (folder / "mender.toml").write_text(AGENT, encoding="utf-8")
    (project / "test_sums.py").write_text(TEST, encoding="utf-8")
    script.write_text("".join(json.dumps(reply) + "\n" for reply in REPLIES), encoding="utf-8")
    asked = [str(LONGHAUL), "--address", address, "run", "Mend the red test.", "--session", "red-test", "--user", "ana"]
    asked += ["--model", f"scripted:{script}", "--agent", str(folder / "mender.toml")]
    # Without a terminal it parks.
    subprocess.run(asked, cwd=project, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=False)
    listed = subprocess.check_output([str(LONGHAUL), "--address", address, "sessions", "--json"], text=True)
    return str(json.loads(listed)[0]["workflow_id"])


@contextmanager
def console(address: str) -> Iterator[str]:
    """`longhaul console` on a free port: the address of its inbox."""
    command = [str(LONGHAUL), "--address", address, "console", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as running:
        said = cast(IO[str], running.stdout)
        try:
            yield said.readline().strip()
        finally:
            running.terminate()


def page_of(ui: str, workflow_id: str) -> str:
    """The address of the workflow's pages. They want the run as well, and the Web UI's own service knows it."""
    name = f"/namespaces/default/workflows/{quote(workflow_id, safe='')}"
    with urlopen(f"{ui}/api/v1{name}") as answer:  # noqa: S310  our own server's address
        run_id = json.load(answer)["workflowExecutionInfo"]["execution"]["runId"]
    return f"{ui}{name}/{run_id}"


def take(browser: Browser, file: str, url: str, text: str, height: int) -> None:
    picture = browser.picture(url, text, height)
    (IMAGES / file).write_bytes(picture)
    verdict = "" if len(picture) < LARGEST_BYTES else ", which is too large"
    print(f"{IMAGES / file}: {len(picture) // 1000} kB{verdict}")


def main() -> int:
    program = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if program is None:
        print(f"no browser is on PATH (looked for {', '.join(BROWSERS)}); install Chromium", file=sys.stderr)
        return 1
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="longhaul-screenshots-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        with development_server(folder / "data") as (address, ui):
            page = page_of(ui, park_a_session(address, folder))
            browser = Browser(program, str(folder / "profile"))
            try:
                with console(address) as inbox:
                    take(browser, "console-inbox.png", inbox, "test_sums.py", 330)
                    call = browser.found("document.querySelector('[data-row]').href")
                    take(browser, "console-call.png", call, "Allow", 1000)
                listed = ("waiting-sessions.png", f"{ui}{WAITING}", "red-test", 560)
                for file, url, text, height in (*((f, f"{page}/{at}", t, h) for f, at, t, h in PICTURES), listed):
                    take(browser, file, url, text, height)
            finally:
                browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
