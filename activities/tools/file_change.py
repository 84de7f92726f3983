"""The part that Write and Edit share: a change that was decided on is made once, or not at all.

`examine` records the digest of the file as seen and of the bytes that would be written; `run` acts only on exactly
that. A retried attempt finds its own bytes and reports success, so the effect is idempotent.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from longhaul.activities.process.threads import in_thread
from longhaul.activities.shell.path_names import further_names
from longhaul.activities.shell.paths import path_fact, resolve_file
from longhaul.activities.tool import NeedsDecision, Place, Tool, ToolCall, ToolError, ToolOutput
from longhaul.activities.tools.diff import change_notice
from longhaul.activities.tools.files import Changed, FileSnapshot, digest_of, replace, snapshot
from longhaul.agent.permission.call_facts import CallFacts
from longhaul.agent.values.conversation.tools import Effect


@dataclass(frozen=True, slots=True)
class Plan:
    """The bytes that a call would write, and what it says when it has."""

    data: bytes
    done: str


class FileChange(Tool):
    """A tool that replaces the content of one file, named by the argument `file_path`."""

    effect = Effect.IDEMPOTENT
    timeout_seconds = 60.0

    def plan(self, arguments: dict[str, Any], before: FileSnapshot) -> Plan:
        """What to write over `before`. Changes nothing; raises ToolError when it can't be done."""
        raise NotImplementedError(f"{type(self).__name__}.plan")

    async def examine(self, arguments: dict[str, Any], place: Place) -> CallFacts:
        return await in_thread(lambda _: self._facts(arguments, place))

    async def run(self, call: ToolCall) -> ToolOutput:
        return await in_thread(lambda _: self._change(call), writes=True)

    def _facts(self, arguments: dict[str, Any], place: Place) -> CallFacts:
        cwd = str(place.cwd)
        try:
            path = resolve_file(arguments["file_path"], place)
            named = further_names(arguments["file_path"], path, place)
        except ToolError as error:
            return CallFacts(cwd=cwd, arguments_error=str(error))
        fact = path_fact(path, "write", place.root, named)
        try:
            before = snapshot(path)
            after = self.plan(arguments, before).data
        except ToolError as error:
            # Without `after` the run can only fail with this sentence, or ask for a new decision: it changes nothing.
            return CallFacts(cwd=cwd, paths=(fact,), read_only=True, notice=f"This would fail: {error}"[:4000])
        notice = change_notice(path, before, after)
        return CallFacts(cwd=cwd, paths=(fact,), before=before.digest, after=digest_of(after), notice=notice)

    def _change(self, call: ToolCall) -> ToolOutput:
        path = resolve_file(call.arguments["file_path"], call.place)
        named = further_names(call.arguments["file_path"], path, call.place)
        if [(fact.path, fact.named) for fact in call.facts.paths] != [(str(path), named)]:
            raise self._needs_decision(call, f"{call.arguments['file_path']!r} now leads to {str(path)!r}")
        before = snapshot(path)
        if call.facts.after and before.digest == call.facts.after:
            return ToolOutput(f"{str(path)!r} has this content already: the change is made")
        if call.facts.before and before.digest != call.facts.before:
            raise self._needs_decision(call, f"{str(path)!r} has changed since the call was decided on")
        plan = self.plan(call.arguments, before)
        if digest_of(plan.data) != call.facts.after:
            raise self._needs_decision(call, f"the change to {str(path)!r} is not the one that was decided on")
        try:
            replace(path, plan.data, expected=before.digest)
        except Changed:
            raise self._needs_decision(call, f"{str(path)!r} was changed while the call was at it") from None
        diff = change_notice(path, before, plan.data)
        return ToolOutput(plan.done + _link_remark(path, before), metadata={"diff": diff})

    def _needs_decision(self, call: ToolCall, reason: str) -> NeedsDecision:
        return NeedsDecision(self._facts(call.arguments, call.place), reason)


def encoded(text: str, name: str) -> bytes:
    """`text` as UTF-8. Raises ToolError, naming the argument, for half of a surrogate pair."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise ToolError(
            f"{name}: the character at position {error.start} is half of a surrogate pair and can't be written as UTF-8"
        ) from None


def _link_remark(path: Path, before: FileSnapshot) -> str:
    if before.names < 2:
        return ""
    return f"\n{path.name!r} had {before.names} names (hard links); the others keep the old content"
