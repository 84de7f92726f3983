"""The pages for people who come from other frameworks: the agent on our side of each page runs as it is written."""

import asyncio
import re
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from longhaul.starter.dev_server.dev_server import DevServer, DevServerSettings
from longhaul.workflows.contract import SEARCH_ATTRIBUTES, TASK_QUEUE
from tests.e2e.conftest import Cli
from tests.e2e.processes import WorkerSettings, environment, worker
from tests.e2e.test_agent_pages import MODEL, says
from tests.limits import SURE_SECONDS

PAGES = Path(__file__).parents[2] / "docs" / "coming-from"
TABLE_OF_TIDES = {"file_path": "tides.txt", "content": "high water at six\n"}
WANTED = {
    "agentscope": ("order 10", 50),
    "langgraph": ("order 7", 20),
    "openai-agents": ("order 8", 30),
    "pydantic-ai": ("order 9", 40),
    "temporal": ("order 11", 60),
}
"""What the model wants to pay on each page whose agent pays refunds; the other one writes a file."""
MOST_WORDS = 500


@dataclass(frozen=True)
class Desk:
    """A folder with a worker that has the tool of the pages."""

    cli: Cli

    async def run(self, page: str, answer: str) -> str:
        """Write our side of a page down, start its program, type an answer; what it printed."""
        text = (PAGES / f"{page}.md").read_text(encoding="utf-8")
        programs = dict(re.findall(r'(?ms)^```python title="([^"]+)"\n(.*?)^```$', text))
        assert programs.pop("refund_tools.py", REFUND) == REFUND
        ((name, program),) = programs.items()
        if page in WANTED:
            order, euros = WANTED[page]
            wanted = {"name": "refund", "input": {"order": order, "euros": euros}}
        else:
            wanted = {"name": "Write", "input": TABLE_OF_TIDES}
        model = self.cli.script(says("I will.", wanted), says("It is done."))
        (self.cli.folder / name).write_text(program.replace(MODEL, model), encoding="utf-8")
        running = await asyncio.create_subprocess_exec(
            *(sys.executable, name),
            cwd=self.cli.folder,
            env=self.cli.environment,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        said, _ = await asyncio.wait_for(running.communicate(f"{answer}\n".encode()), SURE_SECONDS)
        assert running.returncode == 0, said.decode()
        return said.decode()


REFUND = re.findall(
    r'(?ms)^```python title="refund_tools.py"\n(.*?)^```$', (PAGES / "temporal.md").read_text(encoding="utf-8")
)[0]


@pytest.fixture
async def desk(temporal_cli: Path, tmp_path: Path) -> AsyncIterator[Desk]:
    server = DevServerSettings(
        temporal=temporal_cli, directory=tmp_path / "server", search_attributes=SEARCH_ATTRIBUTES
    )
    folder = tmp_path / "desk"
    folder.mkdir()
    (folder / "refund_tools.py").write_text(REFUND, encoding="utf-8")
    async with DevServer(server) as running:
        crew = WorkerSettings(address=running.address, task_queue=TASK_QUEUE, directory=folder, tools="refund_tools")
        async with worker(crew):
            yield Desk(Cli(environment(crew), folder))


@pytest.mark.server
async def test_our_side_of_each_page_asks_and_then_does_what_was_allowed(desk: Desk) -> None:
    for page, (order, euros) in WANTED.items():
        shown = await desk.run(page, "y")

        assert "refund" in shown, page
        assert order in shown, page
        assert str(euros) in shown, page
        assert shown.rstrip().endswith("It is done."), shown
    shown = await desk.run("openhands", "y")
    assert shown.rstrip().endswith("It is done."), shown
    assert (desk.cli.folder / "tides.txt").read_text() == TABLE_OF_TIDES["content"]


@pytest.mark.server
async def test_our_side_does_nothing_that_was_not_allowed(desk: Desk) -> None:
    await desk.run("openhands", "n")

    assert not (desk.cli.folder / "tides.txt").exists()


@pytest.mark.parametrize("page", sorted(PAGES.glob("*.md")), ids=lambda page: page.stem)
def test_a_page_has_two_columns_of_words_and_the_same_agent_twice(page: Path) -> None:
    text = page.read_text(encoding="utf-8")

    assert re.search(r"(?m)^\| [^|]+ \| Longhaul \|$", text)
    assert re.findall(r"(?m)^```python$", text) == ["```python"]
    assert '```python title="' in text
    assert len(text.split()) <= MOST_WORDS
