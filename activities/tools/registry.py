"""The tools of one worker: by name, as descriptors for the record, and the check of what a model hands them."""

import hashlib
import importlib
import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, best_match
from referencing import Registry
from referencing.exceptions import Unresolvable

from activities.own_parts import names_in
from activities.tools.arguments import ArgumentsError, parse_arguments, sentence
from activities.tools.bash import Bash
from activities.tools.box import Box
from activities.tools.edit import Edit
from activities.tools.globs import Glob
from activities.tools.grep import Grep
from activities.tools.read import Read
from activities.tools.skill import LoadSkill
from activities.tools.tool import Tool
from activities.tools.write import Write
from agent.result_schema import unusable
from agent.tools import Effect, ToolDescriptor

TOOL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
"""No dot: names with one belong to our own activities."""


class ToolSetupError(Exception):
    """The operator's mistake: a module that can't be loaded, a name that is wrong or taken."""


class Toolbox:
    """Tools by name, fixed at the start of the worker. Raises ToolSetupError for two of one name, or a wrong one."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._tools: dict[str, Tool] = {}
        for tool in tools:
            self._add(tool)
        self._descriptors = {name: describe(tool) for name, tool in self._tools.items()}
        self._validators = {name: _validator(tool) for name, tool in self._tools.items()}

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._tools)

    @property
    def digest(self) -> str:
        """sha-256 over all descriptors: two workers with the same one have the same tools."""
        return _digest_of([self._descriptors[name].digest for name in sorted(self._descriptors)])

    def get(self, name: str) -> Tool | None:
        """The tool, or None when this worker has none of that name."""
        return self._tools.get(name)

    def descriptor(self, name: str) -> ToolDescriptor | None:
        """What the record keeps of the tool, or None when this worker has none of that name."""
        return self._descriptors.get(name)

    def descriptors(self, names: Sequence[str]) -> tuple[ToolDescriptor, ...]:
        """Those of `names` that this worker has, in that order."""
        return tuple(self._descriptors[name] for name in names if name in self._descriptors)

    def validate(self, name: str, raw_input: str) -> dict[str, Any]:
        """The arguments of a call from the string that the model wrote. Nothing is repaired: what a person approves is
        what the model said. Raises ArgumentsError with a sentence for the model, KeyError for a tool not here."""
        arguments = parse_arguments(raw_input)
        try:
            error = best_match(self._validators[name].iter_errors(arguments))
        except (Unresolvable, RecursionError, re.error) as cause:
            raise ArgumentsError(f"the schema of {name} can't be applied: {type(cause).__name__}") from None
        if error is not None:
            raise ArgumentsError(sentence(error))
        return arguments

    def _add(self, tool: Tool) -> None:
        if not TOOL_NAME.fullmatch(tool.name):
            raise ToolSetupError(
                f"{tool.name!r} can't be the name of a tool: it takes at most 64 letters, digits, _ and -, "
                "and begins with a letter or _"
            )
        if tool.name in self._tools:
            raise ToolSetupError(f"two tools have the name {tool.name!r}; rename one, for example @tool(name=…)")
        if tool.result_schema is not None and (why := _unusable_results(tool)):
            raise ToolSetupError(f"the result schema of {tool.name!r} can't be used: {why}")
        self._tools[tool.name] = tool


def _unusable_results(tool: Tool) -> str:
    if not tool.is_external_tool:
        return "it is for results from outside; set is_external_tool=True"
    return unusable(tool.result_schema)


def default_tools(extra_environment: tuple[str, ...] = (), box: Box | None = None) -> list[Tool]:
    """What every worker has. `extra_environment`: names of the worker's variables that Bash commands may see."""
    return [Bash(extra_environment, box), Read(), Write(), Edit(), Grep(), Glob(), LoadSkill()]


def load_modules(names: str) -> list[Tool]:
    """The tools of the modules in `names` ("shop.tools, shop.mail"): every Tool instance at the top of a module, also
    the functions under `@tool`. Raises ToolSetupError for a module that can't be imported or has none."""
    found: list[Tool] = []
    for name in names_in(names):
        try:
            module = importlib.import_module(name)
        except Exception as error:  # A module may raise anything while it is imported; the operator reads which one.
            raise ToolSetupError(
                f"the tool module {name!r} can't be imported: {type(error).__name__}: {error}"
            ) from error
        tools = [value for value in vars(module).values() if isinstance(value, Tool)]
        if not tools:
            raise ToolSetupError(f"the tool module {name!r} has no tools; put @tool() above a function in it")
        # One that two modules import is still one tool.
        found += [tool for tool in tools if not any(tool is known for known in found)]
    return found


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
    plain |= {name: True for name in ("probes", "untrusted") if getattr(tool, name)}
    if tool.deadline is not None:
        plain["deadline"] = tool.deadline.model_dump(mode="json")
    if tool.result_schema is not None:
        plain["result_schema"] = tool.result_schema
    return ToolDescriptor.model_validate({**plain, "digest": _digest_of(plain)})


def _validator(tool: Tool) -> Draft202012Validator:
    try:
        Draft202012Validator.check_schema(tool.input_schema)
    except SchemaError as error:
        raise ToolSetupError(f"the input schema of {tool.name!r} is not a JSON schema: {error.message}") from None
    # An empty registry: a reference to another document is an error, and never fetched.
    return Draft202012Validator(tool.input_schema, registry=Registry())


def _digest_of(plain: object) -> str:
    canonical = json.dumps(plain, sort_keys=True, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()
