"""The cookbook, done as its page says: the commands of each recipe are typed, on one server and one worker."""

import asyncio
import json
import os
import re
import shlex
import shutil
import sqlite3
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, closing
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from longhaul.agent.values.spec.workspace import Workspace
from longhaul.starter.client.agent_files import load_agent
from longhaul.starter.dev_server.dev_server import DevServer, DevServerSettings
from longhaul.testing import AgentEnvironment
from longhaul.workflows.contract import SEARCH_ATTRIBUTES, TASK_QUEUE
from tests.e2e.conftest import Cli
from tests.e2e.processes import WorkerSettings, environment, worker
from tests.e2e.serving import serving
from tests.e2e.test_first_hour import run, typed
from tests.e2e.warm_cli import WarmCli
from tests.limits import SURE_SECONDS
from tests.servers.local import free_port

pytestmark = pytest.mark.server

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "cookbook.md").read_text(encoding="utf-8")
RECIPES = ROOT / "examples" / "cookbook"
START, *SECTIONS = re.split(r"(?m)^## \d\. ", PAGE)
LOOKS = ("longhaul inbox", "longhaul show", "cat ")
"""Commands that a person types again until there is something to see."""


def commands_of(recipe: str) -> list[str]:
    """As they stand on the page."""
    (section,) = [section for section in SECTIONS if section.startswith(recipe)]
    return [line for block in re.findall(r"(?ms)^```sh\n(.*?)^```$", section) for line in block.splitlines()]


@dataclass(frozen=True)
class Kitchen:
    """The folder of the recipes, and a shell in it: what it exports is there for each later command."""

    cli: Cli

    @property
    def folder(self) -> Path:
        return self.cli.folder

    async def typed(self, line: str) -> tuple[int, str]:
        """Exit code, and all that is shown."""
        words = shlex.split(line, comments=True)
        if words[0] == "longhaul":
            answer = await asyncio.to_thread(self.cli, *words[1:])
            return answer.code, answer.out + answer.err
        if words[0] == "export":
            name = words[1].partition("=")[0]
            code, shown = await run(["bash", "-c", f'{line} && printf %s "${name}"'], self.folder, self.cli.environment)
            self.cli.environment[name] = shown
            return code, shown
        return await run(["bash", "-c", line], self.folder, self.cli.environment)

    async def looked(self, line: str, expected: tuple[int, str]) -> tuple[int, str]:
        """The same, again and again where the reply may still be at work."""
        deadline = time.monotonic() + SURE_SECONDS
        while True:
            code, shown = await self.typed(line)
            if (code == expected[0] and expected[1] in shown) or time.monotonic() > deadline:
                return code, shown
            await asyncio.sleep(0.1)

    async def cook(self, recipe: str, shows: Sequence[tuple[str, int, str]]) -> str:
        """Type a recipe's commands: how each begins, its exit code, and something that is shown; all that was shown."""
        lines = commands_of(recipe)
        assert len(lines) == len(shows), lines
        said = ""
        async with AsyncExitStack() as stack:
            for line, (begins, code, told) in zip(lines, shows, strict=True):
                assert line.startswith(begins), line
                if line == "longhaul serve &":
                    server = await stack.enter_async_context(serving(self.folder, self.cli.environment))
                    self.cli.environment["HOOK_URL"] = server.url
                    continue
                looking = line.startswith(LOOKS)
                answer = await (self.looked(line, (code, told)) if looking else self.typed(line))
                assert (answer[0], told in answer[1]) == (code, True), (line, answer)
                said += answer[1]
        return said


@pytest.fixture(scope="module")
async def kitchen(
    temporal_cli: Path, tmp_path_factory: pytest.TempPathFactory, warm_cli: WarmCli
) -> AsyncIterator[Kitchen]:
    """On a server of its own: the page's sessions and schedules have names that other tests use too."""
    place = tmp_path_factory.mktemp("kitchen")
    folder = place / "cookbook"
    shutil.copytree(RECIPES, folder, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "data").mkdir()
    exported = dict(words[1].split("=", 1) for words in typed(START) if words[0] == "export")
    settings = DevServerSettings(temporal=temporal_cli, directory=place / "server", search_attributes=SEARCH_ATTRIBUTES)
    async with DevServer(settings) as server:
        further = {
            "LONGHAUL_DATA_DIR": exported["LONGHAUL_DATA_DIR"].replace("$PWD", str(folder)),
            "XDG_CONFIG_HOME": str(place / "of-the-user"),
            "XDG_DATA_HOME": str(place / "of-the-user"),
            "FORGE_URL": f"http://127.0.0.1:{free_port()}",
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        }
        crew = WorkerSettings(
            address=server.address,
            task_queue=TASK_QUEUE,
            directory=folder,
            tools=exported["LONGHAUL_TOOLS"],
            further=further,
        )
        async with worker(crew):
            yield Kitchen(Cli(environment(crew), folder, warm_cli))


def rows(database: Path, query: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(database)) as opened:
        return opened.execute(query).fetchall()


def test_each_recipe_has_a_section_and_each_shown_file_is_that_of_the_recipe() -> None:
    shown = dict(re.findall(r'(?ms)^```\w+ title="([^"]+)"\n(.*?)^```$', PAGE))
    used = set(re.findall(r"(?<![\w/])(\w+)/agents/\w+\.toml", PAGE))

    assert used == {each.name for each in RECIPES.iterdir() if each.name != "__pycache__"}
    assert len(SECTIONS) == len(used) + 1  # the last one is another example
    assert shown == {name: (RECIPES / name).read_text(encoding="utf-8") for name in shown}


async def test_the_refund_desk_pays_once_and_only_after_two_approvals(kitchen: Kitchen) -> None:
    ask, first, second, look = commands_of("Refund desk")

    assert (await kitchen.typed(ask))[0] == 3
    code, shown = await kitchen.typed(first)
    assert (code, "1 of 2; another person must approve it too" in shown) == (0, True), shown
    code, shown = await kitchen.typed(first)
    assert (code, "'ana' has approved 'sofa' already" in shown) == (2, True), shown
    assert rows(kitchen.folder / "refunds.db", "select * from refunds") == [("17", 30)]

    code, shown = await kitchen.typed(second)
    assert (code, "approved large_refund sofa" in shown) == (0, True), shown
    code, shown = await kitchen.looked(look, (0, "Both orders are paid back."))
    assert "Both orders are paid back." in shown
    assert rows(kitchen.folder / "refunds.db", "select * from refunds") == [("17", 30), ("18", 240)]


async def test_the_nightly_report_is_written_where_a_schedule_asks_for_it(kitchen: Kitchen) -> None:
    await kitchen.cook(
        "Nightly report",
        [
            ("longhaul schedule apply", 0, "nightly: added"),
            ("longhaul schedule trigger nightly", 0, "asked"),
            ("longhaul schedule show nightly", 0, "'0 2 * * *' in Europe/Berlin"),
            ("cat", 0, "| /lamps | 200 |"),
        ],
    )


async def test_a_webhook_with_a_wrong_signature_is_refused_and_one_with_the_right_one_brings_a_review(
    kitchen: Kitchen,
) -> None:
    await kitchen.cook(
        "Pull-request reviewer",
        [
            ("export FORGE_SECRET", 0, "whsec_"),
            ("echo", 0, ""),
            ("chmod 600", 0, ""),
            ("longhaul serve &", 0, ""),
            ("longhaul run", 3, "pull_request"),
            ("FORGE_SECRET=", 1, "refused with 401"),
            ("python pr_reviewer/forge.py", 0, "review: price.py line 1: multiply"),
            ("longhaul show reviews", 0, "I wait for the next."),
        ],
    )


async def test_an_answer_quotes_the_document(kitchen: Kitchen) -> None:
    await kitchen.cook(
        "Questions about documents",
        [
            ("longhaul knowledge add", 0, "added: 2"),
            ("longhaul run", 0, '"A customer may return a lamp within 30 days." (handbook/returns.md)'),
        ],
    )


async def test_the_caretaker_sleeps_and_wakes_and_deletes_nothing_unasked(kitchen: Kitchen) -> None:
    await kitchen.cook(
        "A week's caretaker",
        [
            ("longhaul run", 3, "asleep"),
            ("longhaul sessions --status waiting", 0, "week"),
            ("longhaul notify week wake", 0, "week has woken up"),
            ("longhaul inbox", 0, "in 2 d 23 h"),
            ("longhaul deny week", 0, "denied Bash"),
            ("longhaul show week", 0, "monday.log is still there"),
            ("longhaul budget week", 0, "5 calls of 200 calls spent"),
        ],
    )

    assert (kitchen.folder / "week_caretaker" / "REPORT.md").read_text() == "Monday: the disk was 80 % full.\n"
    assert (kitchen.folder / "week_caretaker" / "logs" / "monday.log").exists()


async def test_a_day_wakes_the_caretaker_and_three_days_deny_what_nobody_decides_on(
    longhaul_time_env: AgentEnvironment, tmp_path: Path
) -> None:
    shutil.copytree(RECIPES / "week_caretaker", tmp_path / "week_caretaker")
    says = [json.loads(line) for line in (tmp_path / "week_caretaker" / "script.jsonl").read_text().splitlines()]
    week = load_agent(tmp_path / "week_caretaker" / "agents" / "week.toml")
    session = longhaul_time_env.session(week.model_copy(update={"workspace": Workspace(root=str(tmp_path))}), says)
    asked = await session.reply("Look after the logs")

    await longhaul_time_env.move_time(timedelta(days=1))
    await longhaul_time_env.until_waiting(session)
    (call,) = await session.pending()
    await longhaul_time_env.move_time(timedelta(days=3))
    reply = await session.wait(asked.id)

    assert (call.tool, call.waits_for) == ("Bash", "person")
    assert reply.get_text_content() == says[-1]["text"]
    assert (await longhaul_time_env.seen(session)).call("Bash").state == "denied"


async def test_the_budget_stops_the_tree(kitchen: Kitchen) -> None:
    said = await kitchen.cook(
        "Research team",
        [
            ("longhaul run", 4, "the budget of this session does not do for a sub-agent"),
            ("longhaul show research", 0, "Nobody has looked up who pays for the parcel."),
            ("longhaul budget research", 0, "7 calls of 7 calls spent"),
        ],
    )

    assert said.count("sub-agent scout: success") == 2


async def test_the_result_of_the_warehouse_ends_the_call(kitchen: Kitchen) -> None:
    await kitchen.cook(
        "Data pipeline",
        [
            ("longhaul run", 3, "waits for an external system"),
            ("python data_pipeline/warehouse.py", 0, 'march: {"loaded": 3}'),
            ("longhaul show march", 0, "The warehouse has all 3 rows."),
        ],
    )

    assert rows(kitchen.folder / "warehouse.db", "select count(*), sum(euros) from march") == [(3, 245)]


async def test_a_result_without_a_number_of_rows_is_refused(kitchen: Kitchen) -> None:
    run_it = "longhaul run 'Load the sales' --agent data_pipeline/agents/pipeline.toml --session april --user ana"
    assert (await kitchen.typed(run_it))[0] == 3

    code, shown = await kitchen.typed('longhaul result april load-march --output \'{"loaded": "many"}\'')

    assert (code, "has to be a whole number" in shown) == (2, True), shown
    code, shown = await kitchen.typed("longhaul result april load-march --output '{\"loaded\": 3}'")
    assert code == 0, shown
    assert "The warehouse has all 3 rows." in (await kitchen.looked("longhaul show april", (0, "all 3 rows")))[1]


async def test_the_example_inside_an_application_passes_its_tests(kitchen: Kitchen) -> None:
    (command,) = typed(SECTIONS[-1])

    code, shown = await run([*command, "-p", "no:randomly"], ROOT, kitchen.cli.environment)

    assert (code, "3 passed" in shown) == (0, True), shown
