"""Functions behind tools: an operator's code takes what a call came to, before it is shortened, and may give something
else. Agents name them by tool.

The call has run: whatever such a function does, what the tool has said is told.
"""

import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

from longhaul.activities.attempt.call_attempts import timeout_in_hurry
from longhaul.activities.attempt.workspaces import not_here
from longhaul.activities.process.program_output import words_of
from longhaul.activities.process.threads import in_own_thread
from longhaul.activities.tool import ToolOutput
from longhaul.agent.plain.text import did_you_mean
from longhaul.agent.values.conversation.messages import TextBlock

log = logging.getLogger(__name__)

Made = ToolOutput | str | None
Function = Callable[[str, ToolOutput], Made | Awaitable[Made]]


class Postprocessor:
    """A function of the tool's name and of what it came to. It returns another output, or a text in the place of the
    output; None leaves it as it is."""

    def __init__(self, function: Function, name: str = "", timeout_seconds: float = 30.0) -> None:
        self.name = name or getattr(function, "__name__", "")
        self._function, self._timeout_seconds = function, timeout_seconds

    def __call__(self, tool: str, output: ToolOutput) -> Any:
        return self._function(tool, output)

    async def applied(self, tool: str, output: ToolOutput) -> ToolOutput:
        """Raises nothing: where the function fails, the tool's own output with a line that says so."""
        try:
            async with timeout_in_hurry(self._timeout_seconds):
                made = await self._call_function(tool, output)
            return _taken(made, output)
        except BaseException as error:  # somebody else's code, and the call has run: its result is told
            log.warning("the postprocessor %s failed after %s", self.name, tool, exc_info=True)
            note = f"[The function {self.name!r} behind this tool failed: {words_of(error, 300)}]"
            shown = (
                f"{output.output}\n{note}" if isinstance(output.output, str) else (*output.output, TextBlock(text=note))
            )
            return replace(output, output=shown)

    async def _call_function(self, tool: str, output: ToolOutput) -> object:
        function = self._function
        if inspect.iscoroutinefunction(function):
            return await function(tool, output)
        made: object = await in_own_thread(lambda _: function(tool, output))
        return await made if inspect.isawaitable(made) else made


class Postprocessors:
    """Those of one worker, by name."""

    def __init__(self, all_: Mapping[str, Postprocessor] | None = None) -> None:
        self._all = dict(all_ or {})

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._all)

    def check(self, name: str) -> None:
        """Raises NotHere for one that this worker does not have; empty names none."""
        if name and name not in self._all:
            hint = did_you_mean(name, self._all, "they have")
            raise not_here(
                f"no postprocessor is named {name!r} on the workers that were asked (LONGHAUL_TOOLS); {hint}"
            )

    async def applied(self, name: str, tool: str, output: ToolOutput) -> ToolOutput:
        """Of what has failed, and of what is no output at all, nothing is made."""
        known = self._all.get(name)
        return output if known is None or not _has_worked(output) else await known.applied(tool, output)


def postprocessor(function: Function | None = None, *, name: str = "", timeout_seconds: float = 30.0) -> Any:
    """Decorates a function in a module of LONGHAUL_TOOLS as a postprocessor: `@postprocessor`, or
    `@postprocessor(name=…)`. It may change a tool's result."""
    if function is not None:
        return Postprocessor(function, name, timeout_seconds)
    return lambda other: Postprocessor(other, name, timeout_seconds)


def _has_worked(output: object) -> bool:
    return isinstance(output, ToolOutput) and not output.failed


def _taken(made: object, output: ToolOutput) -> ToolOutput:
    match made:
        case None:
            return output
        case ToolOutput():
            return made
        case str():
            return replace(output, output=made)
        case _:
            raise TypeError(f"it returned a {type(made).__name__}; return a ToolOutput, a text or None")
