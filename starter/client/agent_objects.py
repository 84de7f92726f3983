"""An agent made of objects, with the seed's names for its parts.

Values (texts, numbers, servers, groups, a state) are recorded as they are. Code (tools, loaders, middlewares, an
offloader) can't be: a session outlives this process. So of an object the name is recorded under which workers have it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from longhaul.agent.fold.agent_state import AgentState
from longhaul.agent.plain.errors import what_is_wrong
from longhaul.agent.plain.values import CodeWithName, name_of
from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.agent.values.spec.knowledge import LOADER
from longhaul.agent.values.spec.mcp import MCPClient
from longhaul.agent.values.tool_groups import ToolGroup
from longhaul.starter.client.agent_files.agents import BadAgent
from longhaul.stores.loading import places_of
from longhaul.stores.offload.offloaders import Offloader


@dataclass(frozen=True, kw_only=True)
class Toolkit:
    """All that an agent may use: what is not named here it does not have."""

    tools: Sequence[str | CodeWithName] = ()
    mcps: Sequence[MCPClient] = ()
    skills_or_loaders: Sequence[str | Path | CodeWithName] = ()
    """Folders with skills (on the worker; a relative one is in the workspace), and loaders."""
    groups: Mapping[str, ToolGroup] = field(default_factory=dict[str, ToolGroup])
    """Further tools by group, which the agent itself switches on and off."""
    postprocess: Mapping[str, str | CodeWithName] = field(default_factory=dict[str, str | CodeWithName])
    """By tool: the function that has what a call came to before it is shortened."""

    def fields(self) -> dict[str, Any]:
        """Of an AgentSpec. Raises BadAgent for an object without a name."""
        return {
            "tools": [_named("tools", each) for each in self.tools],
            "mcps": list(self.mcps),
            "skills": [_skills(each) for each in self.skills_or_loaders],
            "tool_groups": dict(self.groups),
            "postprocess": {tool: _named("postprocess", each) for tool, each in self.postprocess.items()},
        }


class Agent:
    """An AgentSpec, and the state in which a new session of it begins. Give it to `Longhaul.session` like a spec.

    `settings`: whatever else AgentSpec has (`model_config`, `context_config`, `react_config`, `permission`, …). Raises
    BadAgent, which names the setting, the value and what is wrong with it.
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
            raise BadAgent(f"agent {name!r}: {twice[0]} stands in the toolkit too; say it in one place")
        try:
            self.spec = AgentSpec.model_validate({"name": name, **parts, **settings})
        except ValidationError as error:
            raise BadAgent(f"agent {name!r}: {what_is_wrong(error)}") from error
        self.state = state


def _named(setting: str, thing: object) -> str:
    name = name_of(thing)
    if not isinstance(name, str):
        raise BadAgent(
            f"{setting}: a {type(thing).__name__} has no name under which workers could have it; put it into a module "
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
    shown = f"it stands in {', '.join(places[:5])}" if places else "it stands at the top of no module"
    raise BadAgent(
        f"offloader: workers have to find this {type(given).__name__} under the same name, and {shown}; put it into a "
        "module, list it in their LONGHAUL_OFFLOADERS as module:name, and give this name"
    )
