"""Agent files: `agents/NAME.toml`, read into an AgentSpec; a misspelt key is named with the nearest known one."""

import difflib
import re
import tomllib
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from agent.bodies import what_is_wrong
from agent.permission.checks import BadRule
from agent.permission.rulebook import check_book
from agent.settings import AgentSpec

FOLDER = Path("agents")
_PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class BadAgent(Exception):
    """An agent file that can't be used, and what to change in it."""


def find_agent(name: str, folder: Path = FOLDER) -> AgentSpec:
    """The agent of that name or path. A plain name without a file is the default agent under that name."""
    path = Path(name)
    if path.suffix == ".toml":
        return load_agent(path)
    if _PLAIN_NAME.fullmatch(name) and (folder / f"{name}.toml").is_file():
        return load_agent(folder / f"{name}.toml")
    return AgentSpec(name=name)


def load_agent(path: Path) -> AgentSpec:
    """Read one agent file. Raises BadAgent naming the file, the key and what is wrong."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise BadAgent(f"there is no agent file {str(path)!r}") from error
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadAgent(f"{path}: {error}") from error
    _check_keys(path, table)
    try:
        spec = AgentSpec.model_validate({"name": path.stem, **_with_prompt_file(path, table)})
        check_book(spec.permission.rules)
    except BadRule as error:
        raise BadAgent(f"{path}: permission.{error}") from error
    except ValidationError as error:
        raise BadAgent(f"{path}: {what_is_wrong(error)}") from error
    return spec


def checked(spec: AgentSpec) -> AgentSpec:
    """The same agent. Raises BadAgent for rules that can't mean what they seem to, as in an agent file."""
    try:
        check_book(spec.permission.rules)
    except BadRule as error:
        raise BadAgent(f"agent {spec.name!r}: permission.{error}") from error
    return spec


def _check_keys(path: Path, table: dict[str, Any]) -> None:
    known = {field.alias or name for name, field in AgentSpec.model_fields.items()} | {"system_prompt_file"}
    for key in table:
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; known keys: {', '.join(sorted(known))}"
            raise BadAgent(f"{path}: there is no key {key!r}{hint}")


def _with_prompt_file(path: Path, table: dict[str, Any]) -> dict[str, Any]:
    prompt_file = table.pop("system_prompt_file", None)
    if prompt_file is None:
        return table
    if "system_prompt" in table:
        raise BadAgent(f"{path}: system_prompt and system_prompt_file exclude each other; keep one")
    try:
        return {**table, "system_prompt": (path.parent / str(prompt_file)).read_text(encoding="utf-8")}
    except (OSError, UnicodeDecodeError) as error:
        raise BadAgent(f"{path}: system_prompt_file {prompt_file!r} can't be read: {error}") from error
