"""The table of commands: complete, and all that `longhaul --help` needs."""

import os
import re
import subprocess
import sys
from importlib import import_module
from typing import Any

import pytest
import typer

from longhaul.starter.cli.command_table import COMMANDS, GROUPS, CommandRow
from longhaul.starter.cli.main import app
from tests.limits import SURE_SECONDS

SCRIPT = """
import sys
from longhaul.starter.cli.main import app
try:
    app({words!r}, prog_name="longhaul")
except SystemExit as ending:
    print(ending.code, sorted({{"temporalio", "longhaul.agent.journal"}} & set(sys.modules)))
"""


@pytest.mark.parametrize(("words", "code"), [(["--help"], 0), (["--version"], 0), ([], 2), (["nightly"], 2)], ids=str)
def test_what_says_which_commands_there_are_loads_none_of_them(words: list[str], code: int) -> None:
    script = SCRIPT.format(words=words)
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=SURE_SECONDS
    )

    assert ran.stdout.splitlines()[-1] == f"{code} []"


def test_the_help_lists_the_commands_in_groups_and_each_once() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "longhaul.starter.cli.main", "--help"],
        capture_output=True, text=True, check=True, timeout=SURE_SECONDS, env=os.environ | {"COLUMNS": "100"},
    )  # fmt: skip
    titles = re.findall(r"(?m)^╭─ (.+?) ─", ran.stdout)
    listed = re.findall(r"(?m)^│ ([a-z]+) ", ran.stdout)

    assert titles == ["Options", *GROUPS]
    assert listed == [row.name for row in COMMANDS]
    assert len(listed) == len({*listed})


def test_a_misspelt_command_is_answered_with_the_nearest() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "longhaul.starter.cli.main", "pauze"],
        capture_output=True,
        text=True,
        check=False,
        timeout=SURE_SECONDS,
    )

    assert ran.returncode == 2
    assert "Did you mean 'pause'" in ran.stderr


@pytest.mark.parametrize("row", COMMANDS, ids=lambda row: row.name)
def test_a_row_is_the_command_of_its_name(row: CommandRow) -> None:
    group: Any = typer.main.get_command(app)

    command = group.commands[row.name]

    assert command.name == row.name
    assert command.help.split("\n\n")[0] == row.help
    assert bool(getattr(command, "commands", {})) == row.group


def test_each_command_of_a_module_has_a_row() -> None:
    modules = {import_module(f"longhaul.starter.cli.{row.module}") for row in COMMANDS}
    names = {
        name
        for module in modules
        if (found := getattr(module, "commands", None))
        for name in typer.main.get_group(found).commands
    }

    assert names == {row.name for row in COMMANDS if not row.group}
