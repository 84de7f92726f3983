"""The tool `Bash`: one command in a real bash, supervised, in a scrubbed environment."""

import asyncio
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from activities.tools.box import Box, Boxed, CantConfine, boxed
from activities.tools.clipping import ClippedBytes
from activities.tools.masked_bytes import MaskedBytes
from activities.tools.shell_environment import INHERITED, hardened, scrubbed
from activities.tools.shell_facts import examine_command
from activities.tools.supervised import Ending, run_supervised
from activities.tools.supervisor import NOTE_FD
from activities.tools.telling import ToldBytes
from activities.tools.tool import NeedsDecision, Place, Tool, ToolCall, ToolError, ToolOutput
from agent.permission.facts import CallFacts
from agent.tools import Effect

DEFAULT_TIMEOUT_MS = 120_000
MAX_TIMEOUT_MS = 600_000
COMMAND_CAP_BYTES = 100_000
"""Linux takes no single argument above 128 KB."""

REPORT_CWD = f"trap 'builtin pwd -P >&{NOTE_FD}' EXIT; "

DESCRIPTION = """\
Runs a command in bash and returns its output (stdout and stderr as they come).

- The working directory persists between calls (`cd` counts for the next call); variables, functions and shell options \
do not. Every call is a fresh `bash -c` without start-up files, and stdin is empty.
- Background processes do not outlive the call: what is still running when the command ends is killed.
- `timeout` is in milliseconds: 120000 if not given, at most 600000. When the time is up everything is killed and the \
output so far is returned.
- Output above 30,000 characters is cut in the middle: its start and its end are kept.
- The environment holds PATH, HOME, locale and little else: no keys or tokens of the worker.
- Quote paths that contain spaces. To read, search or change files, prefer the tools made for it."""

INPUT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "command": {"type": "string", "minLength": 1, "description": "The command to run."},
        "description": {"type": "string", "description": "What it does, in five to ten words, for people."},
        "timeout": {
            "type": "integer",
            "minimum": 1,
            "maximum": MAX_TIMEOUT_MS,
            "description": f"Milliseconds until it is killed; {DEFAULT_TIMEOUT_MS} if not given.",
        },
    },
    "required": ["command"],
    "additionalProperties": False,
}


class Bash(Tool):
    """`command` runs once; nothing of it is alive afterwards.

    `extra_environment` names further variables of the worker that commands may see: the operator's choice.
    """

    name = "Bash"
    description = DESCRIPTION
    effect = Effect.ONCE
    timeout_seconds = MAX_TIMEOUT_MS / 1000 + 30
    input_schema = INPUT_SCHEMA

    def __init__(self, extra_environment: tuple[str, ...] = (), box: Box | None = None) -> None:
        self._granted = INHERITED | set(extra_environment)
        self._box = box or Box()
        self.description = DESCRIPTION + self._box.note()

    async def examine(self, arguments: dict[str, Any], place: Place) -> CallFacts:
        command = str(arguments.get("command", ""))
        try:
            _refuse_impossible(command)
        except ToolError as error:
            return CallFacts(cwd=str(_start_folder(place)), arguments_error=str(error))
        return await asyncio.to_thread(examine_command, command, _start_folder(place), place.root, place.ruled)

    async def run(self, call: ToolCall) -> ToolOutput:
        command, timeout_ms = call.arguments["command"], call.arguments.get("timeout", DEFAULT_TIMEOUT_MS)
        _refuse_impossible(command)
        cwd = _start_folder(call.place)
        await self._refuse_other_findings(call, cwd)
        kept = MaskedBytes(ClippedBytes(), call.masker)
        output = ToldBytes(kept)
        shell = ("/bin/bash", "--noprofile", "--norc", "-c", REPORT_CWD + command)
        environment = scrubbed(os.environ, self._granted)
        # A command that runs unasked reads files of the workspace; it has no use for a secret.
        environment = hardened(environment) if call.facts.read_only else environment | dict(call.secrets)
        confined = await self._confined(call, shell, cwd)
        if confined.hides(cwd):
            text = f"{str(cwd)!r} is not seen in the sandbox. Nothing ran; the next command starts in the workspace."
            return ToolOutput(text, failed=True, cwd=call.place.root)
        if confined.root is not None:
            environment["TMPDIR"] = "/tmp"  # noqa: S108  the sandbox's own
        try:
            ending = await run_supervised(confined.command, cwd, environment, timeout_ms / 1000, output)
            output.end()
        except OSError as error:
            raise ToolError(f"bash could not be started in {str(cwd)!r}: {error.strerror}") from None
        moved = _moved_to(ending.note, call.place)
        if confined.root is not None:
            # The sandbox ends what is left in it, and its own first process would be counted.
            ending = replace(ending, killed=0)
        # A folder of the sandbox's own is gone with it.
        return _tool_output(ending, kept.inner, timeout_ms, None if moved and confined.hides(moved) else moved)

    async def _confined(self, call: ToolCall, shell: tuple[str, ...], cwd: Path) -> Boxed:
        """With the worker's box around it, or the agent's, the stricter of both."""
        box = self._box.narrowed(call.sandbox, call.sandbox_network)
        try:
            return await asyncio.to_thread(boxed, box, shell, call.place.root, cwd)
        except CantConfine as why:
            raise ToolError(str(why)) from None

    async def _refuse_other_findings(self, call: ToolCall, cwd: Path) -> None:
        fresh = await self.examine(call.arguments, call.place)
        if call.facts.cwd != str(cwd):
            raise NeedsDecision(
                fresh, f"the command was decided on for {call.facts.cwd!r}, but would run in {str(cwd)!r}"
            )
        if call.facts.paths != fresh.paths:
            raise NeedsDecision(fresh, "the paths that the command names lead elsewhere than when it was decided on")


def _start_folder(place: Place) -> Path:
    """The session's working directory, or the root when a command has removed it: else no command could ever run."""
    return place.cwd if place.cwd.is_dir() else place.root


def _refuse_impossible(command: str) -> None:
    try:
        size = len(command.encode())
    except UnicodeEncodeError:
        raise ToolError("the command is not valid Unicode (it contains half of a surrogate pair)") from None
    if "\0" in command:
        raise ToolError("the command contains a NUL character, which bash can't take")
    if size > COMMAND_CAP_BYTES:
        raise ToolError(
            f"the command has {size} bytes, the most is {COMMAND_CAP_BYTES}; write a script with Write and run that"
        )


def _moved_to(note: bytes, place: Place) -> Path | None:
    """The working directory that the shell's EXIT trap wrote down, if it is one and another than before."""
    try:
        folder = Path(note.decode().removesuffix("\n"))
    except UnicodeDecodeError:
        return None
    if "\0" in str(folder) or not folder.is_absolute() or not folder.is_dir() or folder == place.cwd:
        return None
    return folder


def _tool_output(ending: Ending, output: ClippedBytes, timeout_ms: int, moved_to: Path | None) -> ToolOutput:
    code = ending.status if ending.status >= 0 else 128 - ending.status
    remarks: list[str] = []
    match ending.how:
        case "timeout":
            remarks.append(f"[killed: not done after its timeout of {timeout_ms} ms; the output so far is above]")
        case "exited" if code:
            remarks.append(f"exit code {code}")
        case "exited":
            pass
        case "cut" | "lost":
            remarks.append("[killed from outside before it was done; the output so far is above]")
    if ending.how == "exited" and ending.killed:
        remarks.append(f"[{ending.killed} background process(es) killed at the end of the call]")
    shown = output.text()
    text = "\n".join([shown.removesuffix("\n"), *remarks] if shown else remarks)
    return ToolOutput(
        output=text or "(no output)",
        failed=ending.how != "exited" or code != 0,
        metadata={"exit_code": code, "ended": ending.how, "output_bytes": output.total_bytes},
        cwd=moved_to,
    )
