"""Temporal tools of an agent: its user's own activities, workflows and Nexus operations, which the session starts on
the user's workers.

`tools` names each by its target, or a table `[temporal_tools.NAME]` does; here both become a name in `tools` and one
entry in `temporal_tools`.
"""

import re
from collections.abc import Mapping
from typing import Any, cast

from pydantic import Field, field_validator, model_validator

from longhaul.agent.plain.values import Many, Value, sparse
from longhaul.agent.values.conversation.tools import Effect, TemporalTarget
from longhaul.agent.values.spec.known_names import MCP, TOOLS

TOOL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
"""No dot: activities of Longhaul itself have one in their names."""
MOST_TOOLS = 100
ATTEMPT_SECONDS, LONGEST_SECONDS = 600.0, 2_592_000.0
_FORMS = "activity:NAME@QUEUE, workflow:NAME@QUEUE or nexus:ENDPOINT/SERVICE/OPERATION"
_TARGET = re.compile(r"(activity|workflow|nexus):(.*)", re.DOTALL)
OWN_ACTIVITIES = "longhaul."
"""How the names of Longhaul's own activities begin."""
OWN_WORKFLOWS = ("AgentSession", "AgentHub", "ScheduledRequest", "WorkerEnvironment", "NexusCall")
_LONGEST = 200
"""Characters of each part of a target."""


class TemporalTool(Value):
    """A tool that runs on your own workers, in whatever language they are written."""

    target: str = Field(max_length=1_000)
    """`activity:NAME@QUEUE`, `workflow:NAME@QUEUE` or `nexus:ENDPOINT/SERVICE/OPERATION`."""
    description: str = sparse("", max_length=10_000)
    """What the tool does. The model reads this."""
    input_schema: dict[str, Any] | None = sparse(None)
    """JSON Schema of the arguments, an object. None: the `activity_tool` of this target on the workers has it."""
    parameters: Many[str] = sparse((), max_length=50)
    """Properties of the arguments, in the order of the code's parameters. Empty: the code takes one object."""
    effect: Effect = sparse(Effect.ONCE)
    """Whether a call may run twice: `read` and `idempotent` calls are tried again, `once` calls never."""
    read_only: bool = sparse(False)
    """No call of the tool changes anything; permission depends on it."""
    untrusted: bool = sparse(False)
    """The results contain untrusted text from others, such as a page or a mail."""
    timeout_seconds: float | None = sparse(None, gt=0, le=LONGEST_SECONDS)
    """Seconds that one attempt of an activity may take (None: 600), or a whole workflow or operation (None: 30
    days)."""
    heartbeat_seconds: float | None = sparse(None, gt=0, le=86_400)
    """For an activity that sends heartbeats: seconds without a heartbeat after which its worker counts as lost."""

    @field_validator("target")
    @classmethod
    def _target_can_be_read(cls, target: str) -> str:
        read_target(target)
        return target

    @model_validator(mode="after")
    def _fits_its_target(self) -> "TemporalTool":
        kind = read_target(self.target).kind
        if self.heartbeat_seconds is not None and kind != "activity":
            raise ValueError(f"heartbeat_seconds: a {kind} reports no heartbeats; leave it out")
        if kind == "nexus" and self.effect is Effect.ONCE:
            raise ValueError(
                "effect: Temporal asks the handler of a Nexus operation again until it answers, so a call can't run "
                'once; write effect = "idempotent" if the handler knows a repeated request by its id (as operations '
                'that start a workflow do), or "read"'
            )
        if self.parameters and kind == "nexus":
            raise ValueError("parameters: a Nexus operation takes one value; leave it out")
        if self.input_schema is not None and self.input_schema.get("type") != "object":
            raise ValueError('input_schema: models name each argument; write a schema with type = "object"')
        known: object = (self.input_schema or {}).get("properties")
        for name in self.parameters:
            if isinstance(known, dict) and name not in known:
                raise ValueError(f"parameters: input_schema has no property {name!r}; name properties of it, in order")
        if self.read_only and self.effect is not Effect.READ:
            raise ValueError(
                f'read_only: a call of effect {self.effect.value!r} may change something; set effect = "read"'
            )
        return self

    @property
    def seconds(self) -> float:
        """`timeout_seconds`, or what holds without it."""
        is_attempt = read_target(self.target).kind == "activity"
        return self.timeout_seconds or (ATTEMPT_SECONDS if is_attempt else LONGEST_SECONDS)

    @property
    def runs(self) -> TemporalTarget:
        """The target with what a session has to know to start it."""
        more = {"parameters": self.parameters, "heartbeat_seconds": self.heartbeat_seconds}
        return read_target(self.target).model_copy(update=more)


def read_target(target: str) -> TemporalTarget:
    """Raises ValueError for one that is in none of the three forms."""
    found = _TARGET.fullmatch(target)
    if found is not None and found[1] == "nexus":
        parts = found[2].split("/")
        if len(parts) == 3 and all(map(_is_part, parts)):
            return TemporalTarget(kind="nexus", endpoint=parts[0], service=parts[1], name=parts[2])
    elif found is not None:
        name, _, queue = found[2].rpartition("@")
        if name.startswith(OWN_ACTIVITIES) or name in OWN_WORKFLOWS:
            raise ValueError(f"{target[:_LONGEST]!r} is part of Longhaul, which no model may start; name your own code")
        if _is_part(name) and _is_part(queue):
            return TemporalTarget(kind="activity" if found[1] == "activity" else "workflow", name=name, queue=queue)
    raise ValueError(f"{target[:_LONGEST]!r} is no target of a Temporal tool; write {_FORMS}")


def _is_part(text: str) -> bool:
    return 0 < len(text) <= _LONGEST and text.isprintable() and text == text.strip()


def with_temporal_tools(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """The fields of an agent with a name in `tools` for each target that stands there, and for each object that was
    made for one. Raises ValueError."""
    tools, tables = given.get("tools"), given.get("temporal_tools") or {}
    if not isinstance(tools, list | tuple) or not isinstance(tables, Mapping):
        return given
    table, names = dict(cast(Mapping[str, Any], tables)), list[object]()
    for each in cast(list[object], tools):
        if (own := declaration_in(each)) is not None:
            name = str(getattr(each, "name", ""))
            if table.setdefault(name, own) != own:
                raise ValueError(f"tools: {name!r} is given as an object and under temporal_tools; keep one of them")
        elif isinstance(each, str) and _TARGET.fullmatch(each):
            name = _placed(each, table)
        else:
            names.append(each)
            continue
        names.append(name)
    return {**given, "tools": names, **({"temporal_tools": table} if table else {})}


def declaration_in(thing: object) -> TemporalTool | None:
    """What an object says of a Temporal tool, so that workers need not know the object; None for any other thing."""
    declared = getattr(thing, "declared", None)
    return declared if isinstance(declared, TemporalTool) else None


def _placed(target: str, table: dict[str, Any]) -> str:
    """The name of the tool, which has its entry in the table then."""
    for name, known in table.items():
        if target == (known.get("target") if isinstance(known, dict) else getattr(known, "target", None)):
            return name
    name = read_target(target).name
    if why := _unusable(name):
        raise ValueError(f"tools: {target[:_LONGEST]!r}: {why}; choose a name, write [temporal_tools.NAME] with "
                         f"target = {target[:_LONGEST]!r}, and NAME in tools")  # fmt: skip
    known = table.get(name, {})
    if not isinstance(known, dict) or "target" in known:
        raise ValueError(
            f"tools: {target[:_LONGEST]!r} would be a second tool with the name {name!r}; choose another name for it, "
            "write [temporal_tools.NAME] with its target, and NAME in tools"
        )
    table[name] = {**cast(dict[str, Any], known), "target": target}
    return name


def _unusable(name: str) -> str:
    if not TOOL_NAME.fullmatch(name):
        return f"{name[:_LONGEST]!r} can't be the name of a tool, which has at most 64 letters, digits, _ and -"
    if name in TOOLS or name.startswith(MCP):
        return f"{name!r} is the name of another tool"
    return ""


def check_temporal_tools(
    tools: Mapping[str, TemporalTool], named: tuple[str, ...], secrets: Mapping[str, object], after: Mapping[str, str]
) -> None:
    """Raise ValueError for a tool that the agent can't call, and for a setting that can't count. `named`: all tools of
    the agent; `secrets` and `after`: its settings by tool."""
    if bad := next((name for name in named if _TARGET.fullmatch(name)), None):
        raise ValueError(
            f"tool_groups: write [temporal_tools.NAME] with target = {bad[:_LONGEST]!r}, and NAME in the group"
        )
    for name in tools:
        if why := _unusable(name):
            raise ValueError(f"temporal_tools.{name[:_LONGEST]}: {why}; choose another name")
        if name not in named:
            raise ValueError(f"temporal_tools.{name}: the agent does not have this tool; add {name!r} to tools")
        if name in secrets:
            raise ValueError(
                f"secrets.tools.{name}: it runs on workers that are not Longhaul's and have secrets of their own; "
                "leave it out"
            )
        if name in after:
            raise ValueError(
                f"postprocess.{name}: a postprocessor does not see what a Temporal tool returns; leave it out"
            )
