"""Agent files: `agents/NAME.toml`, read into an AgentSpec; a misspelt key is named with the nearest known one."""

import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from pydantic import ValidationError

from longhaul.agent.decisions.subagent_start import model_of
from longhaul.agent.permission.rulebook import BadRule, check_book
from longhaul.agent.plain.errors import BadSetup, what_is_wrong
from longhaul.agent.plain.text import did_you_mean
from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.starter import trust
from longhaul.starter.client.agent_files.agent_sections import Sections

FOLDER = Path(trust.AGENTS)
_PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class BadAgent(BadSetup):
    """An agent file that can't be used, and what to change in it."""


def find_agent(name: str) -> AgentSpec:
    """The agent of that name or path. Whoever gives a path has chosen the file. Raises as `named_agent` does."""
    path = Path(name)
    return load_agent(path) if path.suffix == ".toml" else named_agent(name)


def find_sections(name: str) -> Sections:
    """What the same file says beside the agent. Raises as `find_agent` does, and BadAgent where there is no file."""
    path = Path(name)
    if path.suffix == ".toml":
        return _sections(path, _table(path, _text_of))
    if name not in agent_names():
        raise BadAgent(f"there is no agent file {str(FOLDER / f'{name}.toml')!r} in this folder")
    path = FOLDER / f"{name}.toml"
    return _sections(path, _table(path, trust.trusted(Path.cwd()).text))


def agent_beside(file: str, name: str) -> AgentSpec:
    """An agent as a file names it: one of its own sub-agents, with the file's model where it names none, or that of the
    file beside it. Raises as `find_agent` does, and BadAgent where there is none."""
    above = find_agent(file)
    if own := above.agents.get(name):
        return own.model_copy(update=model_of(above, own))
    if not _PLAIN_NAME.fullmatch(name):
        raise BadAgent(f"{file}: {name[:100]!r} is no name of an agent file beside this one")
    path = Path(file)
    if path.suffix == ".toml":
        return load_agent(path.parent / f"{name}.toml")
    if name not in agent_names():
        raise BadAgent(f"{file}: there is no agent {name!r}: neither among its own nor as {FOLDER / name!s}.toml")
    return named_agent(name)


def named_agent(name: str) -> AgentSpec:
    """The agent of that name in the current folder. One without a file is the default agent under that name.

    Raises BadAgent, and Untrusted where the folder has a file of that name and nobody has said that it counts.
    """
    if name not in agent_names():
        return AgentSpec(name=name)
    return _read(FOLDER / f"{name}.toml", trust.trusted(Path.cwd()).text)


def agent_names() -> set[str]:
    """Of the files in the current folder; none where folders do not count at all."""
    if trust.is_left_out():
        return set()
    return {file.stem for file in FOLDER.glob("*.toml") if file.is_file() and _PLAIN_NAME.fullmatch(file.stem)}


def load_agent(path: Path) -> AgentSpec:
    """Read one agent file. Raises BadAgent naming the file, the key and what is wrong."""
    return _read(path, _text_of)


def _text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _read(path: Path, text_of: Callable[[Path], str], above: tuple[str, ...] = ()) -> AgentSpec:
    """`above`: names of the agents that name this one."""
    table = _table(path, text_of)
    _sections(path, table)
    table = {key: value for key, value in table.items() if key not in Sections.model_fields}
    try:
        table = _with_agents(path, _with_prompt_file(path, table, text_of), text_of, (*above, path.stem))
        spec = AgentSpec.model_validate({"name": path.stem, **table})
        check_book(spec.permission.rules)
    except BadRule as error:
        raise BadAgent(f"{path}: permission.{error}") from error
    except ValidationError as error:
        raise BadAgent(f"{path}: {what_is_wrong(error)}") from error
    return spec


def _table(path: Path, text_of: Callable[[Path], str]) -> dict[str, Any]:
    """The file as it is written, its keys looked at."""
    try:
        table = tomllib.loads(text_of(path))
    except FileNotFoundError as error:
        raise BadAgent(f"there is no agent file {str(path)!r}") from error
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadAgent(f"{path}: {error}") from error
    _check_keys(path, table)
    return table


def _sections(path: Path, table: dict[str, Any]) -> Sections:
    try:
        return Sections.model_validate({key: table[key] for key in Sections.model_fields if key in table})
    except ValidationError as error:
        raise BadAgent(f"{path}: {what_is_wrong(error)}") from error


def checked(spec: AgentSpec) -> AgentSpec:
    """The same agent. Raises BadAgent for rules that can't mean what they seem to, and for what a copy of a good one
    was given unchecked (`model_copy`), as in an agent file."""
    try:
        spec = AgentSpec.model_validate(spec.model_dump(warnings=False))
        check_book(spec.permission.rules)
    except BadRule as error:
        raise BadAgent(f"agent {spec.name!r}: permission.{error}") from error
    except ValidationError as error:
        raise BadAgent(f"agent {spec.name!r}: {what_is_wrong(error)}") from error
    return spec


def _check_keys(path: Path, table: dict[str, Any]) -> None:
    known = {field.alias or name for name, field in AgentSpec.model_fields.items()} | {
        "system_prompt_file",
        *Sections.model_fields,
    }
    for key in table:
        if key not in known:
            raise BadAgent(f"{path}: there is no key {key!r}; {did_you_mean(key, known, 'known keys')}")


def _with_agents(
    path: Path, table: dict[str, Any], text_of: Callable[[Path], str], above: tuple[str, ...]
) -> dict[str, Any]:
    """Sub-agents that are named by the files beside this one: `agents = ["researcher"]`."""
    named: object = table.get("agents")
    if not isinstance(named, list):
        return table
    found: dict[str, AgentSpec] = {}
    for name in cast(list[object], named):
        if not isinstance(name, str) or not _PLAIN_NAME.fullmatch(name):
            raise BadAgent(f"{path}: agents: {str(name)[:100]!r} is no name of an agent file beside this one")
        if name in above:
            raise BadAgent(f"{path}: agents: {' → '.join((*above, name))}: an agent can't be below itself")
        found[name] = _read(path.parent / f"{name}.toml", text_of, above)
    return {**table, "agents": found}


def _with_prompt_file(path: Path, table: dict[str, Any], text_of: Callable[[Path], str]) -> dict[str, Any]:
    prompt_file = table.pop("system_prompt_file", None)
    if prompt_file is None:
        return table
    if "system_prompt" in table:
        raise BadAgent(f"{path}: system_prompt and system_prompt_file exclude each other; keep one")
    try:
        return {**table, "system_prompt": text_of(path.parent / str(prompt_file))}
    except (OSError, UnicodeDecodeError) as error:
        raise BadAgent(f"{path}: system_prompt_file {prompt_file!r} can't be read: {error}") from error
