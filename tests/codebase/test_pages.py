"""The pages for people say what is true: numbers are the code's, links and named tests exist."""

import re
import tomllib
from pathlib import Path

import pytest
import typer

from longhaul.activities.attempt.heartbeat import pause_seconds
from longhaul.agent.decisions.continue_as_new import CONTINUE_AS_NEW_BYTES, CONTINUE_AS_NEW_EVENTS
from longhaul.agent.reducer.session_state import KEPT_REQUESTS
from longhaul.agent.values.conversation.tools import Effect, ToolDescriptor
from longhaul.agent.values.spec.agent_spec import ModelConfig
from longhaul.starter.cli.main import app
from longhaul.starter.connection.query_retries import ASK_SECONDS
from longhaul.starter.settings import OF_A_FOLDER, Settings
from longhaul.stores.leases import DirectoryLeases
from longhaul.stores.redis_leases import LOOKS, RedisLeases
from longhaul.workflows import activity_options
from longhaul.workflows.activity_options import HEARTBEAT
from tests.codebase.headings import anchors

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
OUTSIDE_OF_FILES = {"TRUST", "LOG", "NOTIFY_KEY", "SECRET_NAME", "TEMPORAL_CLI"}
"""Read from the environment alone, and by no class of settings."""
PAGES = sorted(path.relative_to(ROOT).as_posix() for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")))


def test_the_numbers_are_those_of_the_code() -> None:
    tool = ToolDescriptor(name="any")
    heartbeats = {activity_options.run_tool(tool, effect, "").get("heartbeat_timeout") for effect in Effect}
    of_models = activity_options.call_model(ModelConfig(), "").get("heartbeat_timeout")

    assert {*heartbeats, of_models} == {HEARTBEAT}
    assert HEARTBEAT.total_seconds() == 30
    assert (CONTINUE_AS_NEW_EVENTS, CONTINUE_AS_NEW_BYTES, KEPT_REQUESTS) == (2_000, 4_000_000, 1_000)
    for said in ("every 2,000 events or 4 MB", "last 1,000 are remembered", "noticed after 30 s"):
        assert said in README


def test_what_is_told_of_a_death_is_what_the_code_does() -> None:
    told = (ROOT / "docs" / "operating" / "production.md").read_text(encoding="utf-8")
    pause = pause_seconds(HEARTBEAT.total_seconds())

    assert f"a heartbeat to the server every {pause:g} s, {3_600 / pause:g} an hour" in " ".join(told.split())
    assert "the server, after 30 s" in told
    assert DirectoryLeases.pause < 1
    assert LOOKS * RedisLeases.pause < 4
    assert f"a client that waits asks after {ASK_SECONDS:g} s" in " ".join(told.split())


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    path = ROOT / page
    text = path.read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)]+)\)", text) + re.findall(r'\b(?:src|srcset)="([^"]+)"', text)
    links = [link for link in links if "://" not in link]

    assert [link for link in links if not leads_somewhere(path, link)] == []


def leads_somewhere(page: Path, link: str) -> bool:
    name, _, anchor = link.partition("#")
    target = page.parent / name if name else page
    return target.exists() and (not anchor or anchor in anchors(target.read_text(encoding="utf-8")))


@pytest.mark.parametrize("page", PAGES)
def test_every_test_file_that_is_named_exists(page: str) -> None:
    named = re.findall(r"`(tests/[\w/.]+)`", (ROOT / page).read_text(encoding="utf-8"))

    assert [name for name in named if not (ROOT / name).exists()] == []


def test_every_setting_has_a_row_that_says_whether_a_folder_may_set_it() -> None:
    page = (ROOT / "docs" / "operating" / "settings.md").read_text(encoding="utf-8")
    cells = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `LONGHAUL_")]
    told = {name: "*" in cell for cell in cells for name in re.findall(r"`LONGHAUL_(\w+)…?`", cell)}
    limits = {name for name in Settings.model_fields if name.startswith("limit_")}

    assert told.pop("LIMIT_") is False
    assert {name.upper() for name in Settings.model_fields.keys() - limits} == told.keys() - OUTSIDE_OF_FILES
    assert {name.lower() for name, starred in told.items() if starred} == OF_A_FOLDER


@pytest.mark.parametrize("page", PAGES)
def test_every_command_and_flag_that_is_named_exists(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    lines = re.findall(r"`(longhaul [^`]+)`", text) + re.findall(r"(?m)^\s*(?:\.venv/bin/)?(longhaul .+)$", text)

    assert [line for line in lines if not is_command(line)] == []


def is_command(line: str) -> bool:
    """Whether there are such a command and flags; a path of words behind it may be anything."""
    command, (_, *words) = typer.main.get_command(app), line.split()
    while (below := getattr(command, "commands", {})) and words and words[0] in below:
        command = below[words.pop(0)]
    flags = {name for each in command.params for name in (*each.opts, *each.secondary_opts)} | {"--help"}
    named = re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*", " ".join(words))
    return set(named) <= flags and not (below and words and words[0].isalpha())


def test_the_newest_changes_are_those_of_this_version() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.search(r"(?m)^## \[(.+?)\](?: - \d{4}-\d{2}-\d{2})?$", changes)

    assert newest is not None
    assert newest[1] in ("Unreleased", version)


def test_the_readme_stays_a_page() -> None:
    assert len(README.splitlines()) <= 150
