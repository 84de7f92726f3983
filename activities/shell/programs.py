"""The positive list as it is written in `programs.toml`, which also says how to read and extend it."""

import tomllib
from pathlib import Path
from typing import Any

from longhaul.activities.shell.flags import MANY, Operands, Program, flags

LIST = Path(__file__).with_name("programs.toml")
_KEYS = frozenset({"why", "short", "long", "operands", "most", "digits", "plain", "here", "no_folders"})


def _programs(table: dict[str, dict[str, Any]], operands: Operands) -> dict[str, Program]:
    return {name: _program(name, entry, operands) for name, entry in table.items()}


def _program(name: str, entry: dict[str, Any], operands: Operands) -> Program:
    if not entry.get("why") or not entry.keys() <= _KEYS:
        raise ValueError(f"{LIST.name}: {name} needs `why`, and has of {sorted(_KEYS)} nothing but these")
    return Program(
        flags(entry.get("short", ""), entry.get("long", "")),
        entry.get("operands", operands),
        entry.get("most", MANY),
        digits=entry.get("digits", False),
        plain=entry.get("plain", False),
        here=entry.get("here", False),
        no_folders=entry.get("no_folders", False),
    )


def _of_git(subcommands: str) -> tuple[str, ...]:
    return tuple(f"git {subcommand}" for subcommand in subcommands.split())


_LISTED: dict[str, dict[str, Any]] = tomllib.loads(LIST.read_text(encoding="utf-8"))
PROGRAMS = _programs(_LISTED["programs"], "paths")
EDITORS = _programs(_LISTED["editors"], "paths")
"""Programs whose only effect is on the paths that they name: what `accept_edits` may do unasked in the workspace."""
GIT = _programs(_LISTED["git"], "git")
"""By one word, or by two with a blank between them."""
CARRIERS = frozenset((*_LISTED["carriers"]["programs"].split(), *_of_git(_LISTED["carriers"]["git"])))
"""Programs, and subcommands as `git mv`, that are not proven and give what lies below a folder another name."""
REPOSITORY_CARRIERS = frozenset((*_LISTED["carriers"]["patching"].split(), *_of_git(_LISTED["carriers"]["repository"])))
"""The same for files of the repository that no word names."""
VERSIONS = {program: frozenset(words.split()) for program, words in _LISTED["versions"].items()}
"""Not here: programs that run what a file of the workspace names, also for their version (cargo and rustc by
rust-toolchain.toml, go by go.mod, yarn by .yarnrc.yml, pnpm by package.json, pytest by conftest.py, pip by a
project that is installed as it stands in the workspace)."""
