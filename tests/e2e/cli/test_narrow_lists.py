"""Every list at a terminal of 38 columns: no word is broken, and what is copied is one line."""

import re
import shlex

import pytest

from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.starter.client.client import Longhaul
from tests.e2e.conftest import Cli
from tests.e2e.terminal import Terminal

pytestmark = pytest.mark.server

COLUMNS = 38
USER = "keeper of the southern mole"
SESSION = "mend-the-lamp-of-the-southern-mole-by-night"
WRITES = {"id": "write-1", "name": "Write", "input": {"file_path": "moon.txt", "content": "hello moon"}}
COMMANDS = (
    f"sessions --user '{USER}'",
    f"sessions --long --user '{USER}'",
    f"inbox --user '{USER}'",
    f"inbox --long --user '{USER}'",
    f"show {SESSION} --user '{USER}' --as steps",
    f"rules list {SESSION} --user '{USER}'",
    f"rules list --user '{USER}'",
    f"rules list --user '{USER}' --changes",
    "schedule list",
    "schedule show tell-the-harbour-master",
    f"hub list --user '{USER}'",
    f"hub show the-southern-mole --user '{USER}'",
    "knowledge list",
    "mcp list",
    "doctor",
)
_STEERS = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")
_COMMAND = re.compile(r" *([a-z ]+: )?longhaul ")


def broken_by_the_terminal(written: str) -> list[str]:
    """Lines that have no room though they could have been folded."""
    lines = _STEERS.sub("", written).replace("\r", "").split("\n")
    long = (line for line in lines if len(line) > COLUMNS and not _COMMAND.match(line))
    return [line for line in long if " " in line.strip()]


async def test_no_list_breaks_a_word_in_38_columns(cli: Cli, app: Longhaul) -> None:
    spec = AgentSpec(name="keeper", model=cli.script({"tool_calls": [WRITES]}, {"text": "Done."}))
    first = app.session(SESSION, user=USER, agent=spec)
    await first.reply("Write down how the lamp of the southern mole has been fixed last night")
    other = app.session("night-watch", user=USER, agent=spec)
    await other.observe("It rains on the southern mole, and nobody minds")
    await app.hub("the-southern-mole", first, other, user=USER).start()
    why = "it is what the harbour master has asked for"
    for whose in ([SESSION, "--user", USER], ["--user", USER]):
        made = cli("rules", "add", *whose, "--allow", "Bash(make lamp:*)", "--until", "8h", "--why", why)
        assert made.code == 0, made.err
    every = ("--every", "4h", "--user", USER, "--model", str(spec.model))
    prompt = "Tell the harbour master how the lamps of the southern mole are doing"
    made = cli("schedule", "add", "tell-the-harbour-master", prompt, *every)
    assert made.code == 0, made.err
    (cli.folder / "the-lamps-of-the-southern-mole.md").write_text("The lamps burn oil.")
    made = cli("knowledge", "add", "harbour", "the-lamps-of-the-southern-mole.md")
    assert made.code == 0, made.err

    broken = {}
    for command in COMMANDS:
        with Terminal(cli, *shlex.split(command), columns=COLUMNS) as terminal:
            broken[command] = broken_by_the_terminal(terminal.end().text)

    assert {command: lines for command, lines in broken.items() if lines} == {}
