"""Temporal tools on Longhaul's workers, which never run them: they describe them to models, and look at their calls.

`activity_tool` and `workflow_tool` take name, schema and description from the code itself.
"""

import inspect
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from pydantic import TypeAdapter, ValidationError

from longhaul.activities.attempt.workspaces import not_here
from longhaul.activities.models.failures.retry_errors import failed_for_good
from longhaul.activities.tool import Tool, ToolSetupError
from longhaul.activities.tools.function import EffectName, FunctionTool
from longhaul.agent.plain.errors import what_is_wrong
from longhaul.agent.values.conversation.tools import Effect, ToolDescriptor
from longhaul.agent.values.spec.temporal_tools import TemporalTool

if TYPE_CHECKING:  # else programs without the workers' extra could not declare tools
    from longhaul.activities.tools.registry import Toolbox


class TargetTool(Tool):
    """A Temporal tool: the session starts it on your workers. Name it in an agent's `tools`, or put it at the top level
    of a module of LONGHAUL_TOOLS."""

    def __init__(self, name: str, declared: TemporalTool) -> None:
        self.name, self.declared = name, declared
        self.description, self.effect = declared.description, declared.effect
        self.input_schema = declared.input_schema or {"type": "object"}
        self.read_only, self.untrusted = declared.read_only, declared.untrusted
        self.timeout_seconds, self.target = declared.seconds, declared.runs
        self.concurrency_safe = declared.effect is Effect.READ


class TargetTraits(TypedDict, total=False):
    """Options of a Temporal tool. An option that is not given is as in `TemporalTool`."""

    name: str
    """Name of the tool. By default the name of the code."""
    description: str
    effect: Effect | EffectName
    read_only: bool
    untrusted: bool
    timeout: timedelta
    """Time that one attempt of an activity, or a whole workflow, may take."""
    heartbeat: timedelta
    """For an activity that sends heartbeats: time without a heartbeat after which its worker counts as lost."""


def activity_tool(function: Callable[..., Any], *, queue: str, **traits: Unpack[TargetTraits]) -> TargetTool:
    """A tool from your activity, which your workers run on this task queue.

    If the activity takes one dataclass, model or dict, it gets the arguments as that object; otherwise it gets each
    argument in its place. Raises TypeError for a signature that no JSON object can fill, and ToolSetupError for other
    mistakes.
    """
    if next(iter(inspect.signature(function).parameters), "") == "self":
        name = function.__name__
        raise TypeError(f"activity_tool: {function.__qualname__} is a method; give that of an object: object.{name}")
    defined = getattr(function, "__temporal_activity_definition", None)
    return _make_tool("activity", getattr(defined, "name", None) or function.__name__, function, queue, traits)


def workflow_tool(workflow: type[Any], *, queue: str, **traits: Unpack[TargetTraits]) -> TargetTool:
    """A tool from your workflow: each call is a child workflow of the session. The run method gets the arguments as in
    `activity_tool`. Raises as `activity_tool` does."""
    defined = getattr(workflow, "__temporal_workflow_definition", None)
    if defined is None or defined.name is None:
        raise TypeError(f"workflow_tool: {workflow.__qualname__} needs @workflow.defn, and may not be dynamic")
    run = types.MethodType(defined.run_fn, object())
    about = traits.get("description") or inspect.getdoc(defined.run_fn) or inspect.getdoc(workflow) or ""
    return _make_tool("workflow", defined.name, run, queue, {**traits, "description": about})


def _make_tool(kind: str, code: str, function: Callable[..., Any], queue: str, traits: TargetTraits) -> TargetTool:
    if unknown := traits.keys() - TargetTraits.__optional_keys__:
        known = ", ".join(sorted(TargetTraits.__optional_keys__))
        raise TypeError(f"{kind}_tool has no parameter {min(unknown)!r}; it takes queue, {known}")
    about = FunctionTool(function)
    schema, parameters = about.input_schema, tuple(inspect.signature(function).parameters)
    if len(parameters) == 1:
        hint = typing.get_type_hints(function, include_extras=True).get(parameters[0], Any)
        if (only := TypeAdapter(hint).json_schema()).get("type") == "object":
            schema, parameters = only, ()
    times = {f"{name}_seconds": traits[name].total_seconds() for name in ("timeout", "heartbeat") if name in traits}
    said = {name: traits[name] for name in ("effect", "read_only", "untrusted") if name in traits}
    try:
        declared = TemporalTool.model_validate(
            {
                "target": f"{kind}:{code}@{queue}",
                "description": traits.get("description") or about.description,
                "input_schema": schema,
                "parameters": parameters,
                **said,
                **times,
            }
        )
    except ValidationError as error:
        raise ToolSetupError(f"{kind}_tool {code!r}: {what_is_wrong(error)}") from error
    return TargetTool(traits.get("name") or code, declared)


def with_declared(toolbox: "Toolbox", tools: Mapping[str, TemporalTool]) -> "Toolbox":
    """The worker's tools, and the Temporal tools of an agent. Raises NotHere where another worker may know the
    arguments of one, and ModelFailed where no worker can be right about it."""
    found: list[TargetTool] = []
    for name, tool in tools.items():
        known = toolbox.get(name)
        if known is not None and not (isinstance(known, TargetTool) and known.declared.target == tool.target):
            raise failed_for_good(
                "setup",
                f"temporal_tools.{name}: the workers have another tool of this name; choose another one for "
                f"{tool.target!r}",
            )
        if known is not None and tool.input_schema is None:
            said = {field: getattr(tool, field) for field in tool.model_fields_set}
            tool = known.declared.model_copy(update=said)  # noqa: PLW2901  as the worker and the agent say it together
        if tool.input_schema is None:
            raise not_here(
                f"temporal_tools.{name}: nobody says what arguments {tool.target!r} takes. Write an input_schema under "
                f"[temporal_tools.{name}], or put activity_tool(…) for it into a module of LONGHAUL_TOOLS"
            )
        found.append(TargetTool(name, tool))
    try:
        return toolbox.with_first(found)
    except ToolSetupError as error:
        raise failed_for_good("setup", f"temporal_tools: {error}") from None


def with_recorded(toolbox: "Toolbox", tools: Iterable[ToolDescriptor]) -> "Toolbox":
    """The worker's tools, and those Temporal tools of a session that are among these."""
    found = [
        TargetTool(
            tool.name,
            TemporalTool(
                target=tool.target.spelt,
                description=tool.description,
                input_schema=tool.input_schema,
                parameters=tool.target.parameters,
                effect=tool.effect,
                read_only=tool.read_only,
                untrusted=tool.untrusted,
                timeout_seconds=tool.timeout_seconds,
                heartbeat_seconds=tool.target.heartbeat_seconds,
            ),
        )
        for tool in tools
        if tool.target is not None
    ]
    return toolbox.with_first(found)
