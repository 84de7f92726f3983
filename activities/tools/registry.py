"""The tools of one worker: by name, as descriptors for the record, and the check of what a model hands them.

A call is held against the tool that its session knows: another one of that name is not what anybody has decided on.
What is wrong with arguments is quoted in part, without secrets: half of one would not be known again.
"""

import hashlib
import json
import re
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from jsonschema.exceptions import SchemaError, best_match
from referencing.exceptions import Unresolvable

from longhaul.activities.attempt.secrets import SPELT_OTHERWISE, WorkerSecrets
from longhaul.activities.attempt.workspaces import not_here
from longhaul.activities.custom_agents.custom_agent_registry import is_custom_agent
from longhaul.activities.process.program_run import find_ripgrep
from longhaul.activities.process.sandbox import SandboxPolicy
from longhaul.activities.tool import Place, Tool, ToolCall, ToolError, ToolOutput, ToolSetupError
from longhaul.activities.tools.argument_readings import as_wanted
from longhaul.activities.tools.arguments import (
    ArgumentsError,
    BoundedSchema,
    TooManySteps,
    check_schema,
    parse_arguments,
    sentence,
)
from longhaul.activities.tools.bash import Bash, BashOutput, Outputs
from longhaul.activities.tools.file_changes import Edit, Write
from longhaul.activities.tools.file_search import Glob, Grep
from longhaul.activities.tools.postprocessors import Postprocessor, Postprocessors
from longhaul.activities.tools.read import Read
from longhaul.activities.tools.session_tools import GenerateResponse
from longhaul.activities.tools.skills import LoadSkill, SkillLoader, SkillLoaders
from longhaul.agent.permission.call_analysis import CallAnalysis
from longhaul.agent.plain.json_schemas import unusable
from longhaul.agent.reducer.synthetic_results import changed_tool
from longhaul.agent.values.conversation.tools import GENERATE_RESPONSE, Effect, ToolDescriptor
from longhaul.agent.values.spec.known_names import WEB_FETCH, WEB_SEARCH
from longhaul.agent.values.spec.temporal_tools import TOOL_NAME
from longhaul.agent.values.subagents import RUN_PROGRAM
from longhaul.stores.loading import module_at, names_in, setting_of


class AbsentTool(Tool):
    def __init__(self, name: str, why: str) -> None:
        """`why`: a sentence without its full stop."""
        self.name = name
        self.description = ""
        self.input_schema = {"type": "object"}
        self._why = f"{why}. Nothing was done"

    async def examine(self, arguments: dict[str, Any], place: Place) -> CallAnalysis:
        """Nobody is asked about a call that can't run."""
        return CallAnalysis(cwd=str(place.cwd), arguments_error=self._why)

    async def run(self, call: ToolCall) -> ToolOutput:
        raise ToolError(self._why)


FITTING_KEPT, FITTING_CHARS = 200, 4_000
"""Arguments that need not be held against their schema once more. Of long ones the schema is the smaller part."""


class Toolbox:
    """Tools by name, fixed at the start of the worker. Raises ToolSetupError for two of one name, or a wrong one."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._tools: dict[str, Tool] = {}
        for tool in tools:
            self._add(tool)
        self._fitting = OrderedDict[tuple[str, str], None]()
        """Digests of tools, and arguments that were found to fit: a call is looked at when it is said, and again when
        it runs, maybe beside other tools."""
        self._descriptors = {name: describe(tool) for name, tool in self._tools.items()}
        self._schemas = {
            name: _schema_of(tool) for name, tool in self._tools.items() if not isinstance(tool, GenerateResponse)
        }

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._tools)

    @property
    def digest(self) -> str:
        """sha-256 over all descriptors: two workers with the same one have the same tools."""
        return _digest_of([self._descriptors[name].digest for name in sorted(self._descriptors)])

    def beside(self, others: "Iterable[Toolbox]") -> "Toolbox":
        """These and those of others, as servers bring them; a name that is here already stays what it is."""
        made = Toolbox(())
        made._fitting = self._fitting
        for sandbox in (*others, self):
            made._tools.update(sandbox._tools)  # noqa: SLF001  one of its own kind, here and below
            made._descriptors.update(sandbox._descriptors)  # noqa: SLF001
            made._schemas.update(sandbox._schemas)  # noqa: SLF001
        return made

    def with_first(self, tools: "Sequence[Tool]") -> "Toolbox":
        """With these tools, which stand in the place of any here of the same name. Raises ToolSetupError."""
        return Toolbox(tools).beside([self]) if tools else self

    def get(self, name: str) -> Tool | None:
        """The tool, or None when this worker has none of that name."""
        return self._tools.get(name)

    def descriptor(self, name: str) -> ToolDescriptor | None:
        """What the record keeps of the tool, or None when this worker has none of that name."""
        return self._descriptors.get(name)

    def has(self, named: Mapping[str, str]) -> bool:
        """Whether all of these are here, by their digests (empty: any)."""
        found = {name: self._descriptors.get(name) for name in named}
        return all(one is not None and named[name] in ("", one.digest) for name, one in found.items())

    def descriptors(self, names: Sequence[str]) -> tuple[ToolDescriptor, ...]:
        """Those of `names` that this worker has, in that order."""
        return tuple(self._descriptors[name] for name in names if name in self._descriptors)

    def validate(self, name: str, raw_input: str) -> dict[str, Any]:
        """The arguments of a call from the string that the model wrote, read as its schema wants them
        (`argument_readings`); nothing is guessed. Raises ArgumentsError with a sentence for the model, KeyError for a
        tool not here."""
        arguments = parse_arguments(raw_input)
        if isinstance(tool := self._tools[name], GenerateResponse):
            tool.check(arguments)
            return arguments
        fitting = self._descriptors[name].digest, raw_input
        try:
            arguments = as_wanted(arguments, tool.input_schema)
            if fitting in self._fitting:
                return arguments
            error = best_match(iter(self._schemas[name].errors(arguments)))
        except (Unresolvable, RecursionError, re.error, TooManySteps) as cause:
            raise ArgumentsError(f"the schema of {name} can't be applied: {type(cause).__name__}") from None
        if error is not None:
            raise ArgumentsError(sentence(error))
        if len(raw_input) <= FITTING_CHARS:
            self._fitting[fitting] = None
            if len(self._fitting) > FITTING_KEPT:
                self._fitting.popitem(last=False)
        return arguments

    def _add(self, tool: Tool) -> None:
        if not TOOL_NAME.fullmatch(tool.name):
            raise ToolSetupError(
                f"{tool.name!r} can't be the name of a tool: it takes at most 64 letters, digits, _ and -, "
                "and begins with a letter or _"
            )
        if tool.name == GENERATE_RESPONSE and not isinstance(tool, GenerateResponse):
            raise ToolSetupError(f"{tool.name!r} is the name of the function that ends a reply; rename the tool")
        if tool.name in self._tools:
            raise ToolSetupError(f"two tools have the name {tool.name!r}; rename one, for example @tool(name=…)")
        if tool.result_schema is not None and (why := _unusable_results(tool)):
            raise ToolSetupError(f"the result schema of {tool.name!r} can't be used: {why}")
        if tool.quick and Effect(tool.effect) is not Effect.READ:
            raise ToolSetupError(
                f'{tool.name!r} says quick=True, which is for tools that only read; give it effect="read"'
            )
        self._tools[tool.name] = tool


def finishing(toolbox: Toolbox, schema: dict[str, Any] | None) -> Toolbox:
    """The same, with the finish function of a reply that is asked for in this form. Raises BadAskedSchema."""
    return toolbox if schema is None else toolbox.beside([Toolbox((GenerateResponse(schema),))])


def _unusable_results(tool: Tool) -> str:
    if not tool.is_external_tool:
        return "it is for results from outside; set is_external_tool=True"
    return unusable(tool.result_schema)


def default_tools(
    extra_environment: tuple[str, ...] = (),
    sandbox: SandboxPolicy | None = None,
    outputs: Outputs | None = None,
    loaders: SkillLoaders | None = None,
) -> list[Tool]:
    """What every worker has. `extra_environment`: names of the worker's variables that Bash commands may see.

    Grep is left out where there is no ripgrep: another program would answer otherwise under the same digest.
    """
    searching = [Grep(program)] if (program := find_ripgrep()) else []
    outputs = outputs or Outputs()
    return [
        Bash(extra_environment, sandbox, outputs),
        BashOutput(outputs),
        Read(),
        Write(),
        Edit(),
        *searching,
        Glob(),
        LoadSkill(loaders),
    ]


def why_missing(name: str) -> str:
    """Of a built-in tool that this worker lacks: how it gets it; empty for any other."""
    return {
        RUN_PROGRAM: "it comes with an extra: pip install 'longhaul-agents[programs]'",
        WEB_FETCH: "it comes with an extra: pip install 'longhaul-agents[web]'",
        WEB_SEARCH: "set LONGHAUL_WEB_SEARCH to the address of a search engine on the workers",
    }.get(name, "")


def load_modules(names: str) -> list[Tool]:
    """The tools of the modules in `names` ("shop.tools, shop.mail"): every Tool instance at the top of a module, also
    the functions under `@tool`. Raises ToolSetupError for a module that can't be imported or has none."""
    found: list[Tool] = []
    for name in names_in(names):
        try:
            module = module_at(name, setting_of("tool"))
        except Exception as error:  # A module may raise anything while it is imported; the operator reads which one.
            raise ToolSetupError(
                f"the tool module {name!r} can't be imported: {type(error).__name__}: {error}"
            ) from error
        tools = [value for value in vars(module).values() if isinstance(value, Tool)]
        others = (value for value in vars(module).values() if isinstance(value, Postprocessor | SkillLoader))
        if not tools and not any(others) and not any(map(is_custom_agent, vars(module).values())):
            raise ToolSetupError(f"the tool module {name!r} has no tools; put @tool above a function in it")
        for tool in tools:
            tool.sandboxed_from = "" if tool.inside or tool.child or tool.is_external_tool or tool.target else name
        # One that two modules import is still one tool.
        found += [tool for tool in tools if not any(tool is known for known in found)]
    return found


def load_postprocessors(names: str) -> Postprocessors:
    """Those of the modules in `names`, which have been imported for their tools. Raises ToolSetupError for two of one
    name, or a wrong one."""
    found = dict[str, Postprocessor]()
    for module in names_in(names):
        for value in vars(module_at(module, setting_of("tool"))).values():
            if not isinstance(value, Postprocessor):
                continue
            if not TOOL_NAME.fullmatch(value.name):
                raise ToolSetupError(f"{value.name!r} can't be the name of a postprocessor; @postprocessor(name=…)")
            if found.setdefault(value.name, value) is not value:
                raise ToolSetupError(f"two postprocessors have the name {value.name!r}; rename one")
    return Postprocessors(found)


def describe(tool: Tool) -> ToolDescriptor:
    """The descriptor of one tool, with the digest of everything that it says."""
    plain: dict[str, Any] = {
        "name": tool.name,
        "description": tool.description,
        "input_schema": tool.input_schema,
        "effect": Effect(tool.effect).value,
        "concurrency_safe": tool.concurrency_safe,
        "read_only": tool.read_only,
        "external": tool.is_external_tool,
        "timeout_seconds": float(tool.timeout_seconds),
    }
    if tool.inside:
        plain["inside"] = True
    # Absent otherwise: the digests of all other tools stay as they were recorded.
    plain |= {name: True for name in ("probes", "untrusted", "quick", "child") if getattr(tool, name)}
    if tool.target is not None:
        plain["target"] = tool.target.model_dump(mode="json")
    if tool.deadline is not None:
        plain["deadline"] = tool.deadline.model_dump(mode="json")
    if tool.result_schema is not None:
        plain["result_schema"] = tool.result_schema
    return ToolDescriptor.model_validate({**plain, "digest": _digest_of(plain)})


def _schema_of(tool: Tool) -> BoundedSchema:
    try:
        check_schema(tool.input_schema)
    except SchemaError as error:
        raise ToolSetupError(f"the input schema of {tool.name!r} is not a JSON schema: {error.message}") from None
    return BoundedSchema(tool.input_schema, of_tool=True)


def _digest_of(plain: object) -> str:
    canonical = json.dumps(plain, sort_keys=True, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def checked(toolbox: Toolbox, secrets: WorkerSecrets, name: str, arguments: str) -> dict[str, Any]:
    """As `Toolbox.validate`; its sentence quotes marks."""
    if arguments.startswith(SPELT_OTHERWISE):
        raise ArgumentsError(
            "the arguments hold a secret that is not written as it is (encoded, in other letters, or within a number), "
            "so it could not be put back; nothing ran. Write [secret NAME] where the value belongs"
        )
    try:
        return toolbox.validate(name, arguments)
    except ArgumentsError as error:
        shown = secrets.marked(arguments)
        if shown == arguments:
            raise
        why = str(error)
    try:
        toolbox.validate(name, shown)
    except ArgumentsError as told:
        why = str(told)
    else:
        why = f"the arguments do not fit the schema of {name}, where they hold a secret"
    raise ArgumentsError(why)


def tool_as_recorded(toolbox: Toolbox, name: str, digest: str) -> Tool:
    """Raises NotHere, whose sentence the model and people read when no worker has it."""
    tool, descriptor = toolbox.get(name), toolbox.descriptor(name)
    if tool is None or descriptor is None:
        raise not_here(f"this worker has no tool {name!r}")
    if isinstance(tool, AbsentTool):
        return tool  # it says why
    if descriptor.digest != digest:
        raise not_here(changed_tool(name))
    return tool
