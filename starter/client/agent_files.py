"""Agents as their users write them: in files, `agents/NAME.toml`, or made of objects with the seed's names for its
parts; both become an AgentSpec.

A misspelt key is named with the nearest known one. Beside the agent a file may have sections: schedules, and hubs
of its sessions. Of an object only the name is recorded under which workers have it: a session outlives this
process.
"""

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, cast

from pydantic import Field, ValidationError, field_validator

from longhaul.agent.decisions.subagent_start import model_of
from longhaul.agent.permission.rulebook import BadRule, check_book
from longhaul.agent.plain.errors import BadSetup, what_is_wrong
from longhaul.agent.plain.text import did_you_mean
from longhaul.agent.plain.values import CodeWithName, Value, name_of, sparse
from longhaul.agent.reducer.agent_state import AgentState
from longhaul.agent.values.deadlines import Seconds
from longhaul.agent.values.hubs import MOST_MEMBERS, NAME
from longhaul.agent.values.scheduled_request import Overlap
from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.agent.values.spec.knowledge import LOADER
from longhaul.agent.values.spec.mcp import MCPClient
from longhaul.agent.values.spec.temporal_tools import declaration_in
from longhaul.agent.values.tool_groups import ToolGroup
from longhaul.starter import folder_trust
from longhaul.stores.loading import places_of
from longhaul.stores.offload.offloaders import Offloader

MOST = 50
"""Schedules, and hubs, of one file."""


class ScheduleTable(Value):
    """`[schedules.NAME]`: as the flags of `longhaul schedule add`."""

    prompt: str
    cron: str = ""
    zone: str = ""
    every: Seconds | None = None
    session: str = ""
    overlap: Overlap = "skip"
    catch_up: Seconds = 86_400.0
    paused: bool = False
    """How it begins; who pauses or resumes it later is not overruled by the file."""


class HubTable(Value):
    """`[hubs.NAME]`: a room of agents, each in a session of its own, `NAME-MEMBER`."""

    members: dict[str, Annotated[str, Field(min_length=1)]] = Field(min_length=1, max_length=MOST_MEMBERS)
    """By the name in the hub: the agent, by the name of its file."""
    announcement: str = ""
    quiet: bool = False

    @field_validator("members")
    @classmethod
    def _can_be_called_so(cls, members: dict[str, str]) -> dict[str, str]:
        for name in members:
            if not NAME.fullmatch(name):
                raise ValueError(f"{name[:80]!r} must be 1 to 64 letters, digits, `.`, `_` and `-`")
        return members


class Sections(Value):
    """What of a file is no part of the agent."""

    schedules: dict[str, ScheduleTable] = sparse({}, max_length=MOST)
    hubs: dict[str, HubTable] = sparse({}, max_length=MOST)


FOLDER = Path(folder_trust.AGENTS)
_PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class BadAgent(BadSetup):
    """The agent file can't be used. The sentence says what to change."""


def find_agent(name: str) -> AgentSpec:
    """The agent of that name or path. Whoever gives a path has chosen the file. Raises as `named_agent` does."""
    path = Path(name)
    return load_agent(path) if path.suffix == ".toml" else named_agent(name)


def find_sections(name: str) -> Sections:
    """The schedules and hubs in the agent's file. Raises as `find_agent` does, and BadAgent if there is no file."""
    path = Path(name)
    if path.suffix == ".toml":
        return _sections(path, _table(path, _text_of))
    if name not in agent_names():
        raise BadAgent(f"there is no agent file {str(FOLDER / f'{name}.toml')!r} in this folder")
    path = FOLDER / f"{name}.toml"
    return _sections(path, _table(path, folder_trust.trusted(Path.cwd()).text))


def agent_beside(file: str, name: str) -> AgentSpec:
    """An agent as a file names it: one of its own sub-agents, with the file's model where it names none, or that of the
    file beside it. Raises as `find_agent` does, and BadAgent where there is none."""
    above = find_agent(file)
    if own := above.agents.get(name):
        return own.model_copy(update=model_of(above, own))
    if not _PLAIN_NAME.fullmatch(name):
        raise BadAgent(f"{file}: {name[:100]!r} is no name of an agent file next to this one")
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
    return _read(FOLDER / f"{name}.toml", folder_trust.trusted(Path.cwd()).text)


def agent_names() -> set[str]:
    """Of the files in the current folder; none where folders do not count at all."""
    if folder_trust.is_left_out():
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
    known = {field.alias or name for name, field in AgentSpec.model_fields.items()} | {
        "system_prompt_file",
        *Sections.model_fields,
    }
    for key in table:
        if key not in known:
            raise BadAgent(f"{path}: there is no key {key!r}; {did_you_mean(key, known, 'known keys')}")
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
            raise BadAgent(f"{path}: agents: {str(name)[:100]!r} is no name of an agent file next to this one")
        if name in above:
            raise BadAgent(f"{path}: agents: {' → '.join((*above, name))}: an agent cannot be its own sub-agent")
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


@dataclass(frozen=True, kw_only=True)
class Toolkit:
    """All that an agent may use: tools, skills, MCP servers and groups that are not named here are not available to
    it."""

    tools: Sequence[str | CodeWithName] = ()
    mcps: Sequence[MCPClient] = ()
    skills_or_loaders: Sequence[str | Path | CodeWithName] = ()
    """Folders with skills (on the worker; a relative path is in the workspace), and skill loaders."""
    groups: Mapping[str, ToolGroup] = field(default_factory=dict[str, ToolGroup])
    """Further tools in groups, which the agent switches on and off."""
    postprocess: Mapping[str, str | CodeWithName] = field(default_factory=dict[str, str | CodeWithName])
    """For each tool, the function that changes its result before it is shortened."""

    def fields(self) -> dict[str, Any]:
        """Of an AgentSpec. Raises BadAgent for an object without a name."""
        return {
            "tools": [_named("tools", each) if declaration_in(each) is None else each for each in self.tools],
            "mcps": list(self.mcps),
            "skills": [_skills(each) for each in self.skills_or_loaders],
            "tool_groups": dict(self.groups),
            "postprocess": {tool: _named("postprocess", each) for tool, each in self.postprocess.items()},
        }


class Agent:
    """An AgentSpec, and the state in which a new session of it starts. Pass it to `Longhaul.session` like an AgentSpec.

    `settings`: any other field of AgentSpec (`model_config`, `context_config`, `react_config`, `permission`, …). Raises
    BadAgent, which names the setting, the value and what is wrong.
    """

    def __init__(  # noqa: PLR0913  the seed's parameters
        self,
        name: str,
        system_prompt: str | None = None,
        model: str | None = None,
        *,
        toolkit: Toolkit | None = None,
        state: AgentState | None = None,
        offloader: Offloader | str | None = "workspace",
        middlewares: Sequence[str | CodeWithName] = (),
        **settings: Any,
    ) -> None:
        given = {"system_prompt": system_prompt, "model": model}
        parts = {
            **{key: value for key, value in given.items() if value is not None},
            **(toolkit.fields() if toolkit is not None else {}),
            "offloader": _offloader(offloader),
            "middlewares": [_named("middlewares", each) for each in middlewares],
        }
        if twice := [key for key in settings if key in parts]:
            raise BadAgent(f"agent {name!r}: {twice[0]} is in the toolkit too; set it in one place")
        try:
            self.spec = AgentSpec.model_validate({"name": name, **parts, **settings})
        except ValidationError as error:
            raise BadAgent(f"agent {name!r}: {what_is_wrong(error)}") from error
        self.state = state


def _named(setting: str, thing: object) -> str:
    name = name_of(thing)
    if not isinstance(name, str):
        raise BadAgent(
            f"{setting}: a {type(thing).__name__} has no name under which workers could load it; put it into a module "
            "that they load, as @tool does for a function, or give its name"
        )
    return name


def _skills(given: str | Path | CodeWithName) -> str:
    return str(given) if isinstance(given, str | Path) else LOADER + _named("skills_or_loaders", given)


def _offloader(given: object) -> str:
    """Raises BadAgent for an object of which nobody can say where workers find it."""
    if given is None:
        return "none"
    if isinstance(given, str):
        return given
    places = places_of(given)
    if len(places) == 1:
        return places[0]
    shown = f"it is in {', '.join(places[:5])}" if places else "it is at the top of no module"
    raise BadAgent(
        f"offloader: workers have to find this {type(given).__name__} under the same name, and {shown}; put it into a "
        "module, list it in their LONGHAUL_OFFLOADERS as module:name, and give this name"
    )
