"""The tools `Bash` and `BashOutput`: one command in a real bash, supervised, in a scrubbed environment; and what a
command in the background has printed so far.
"""

import asyncio
import os
from collections.abc import Callable, Coroutine
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from temporalio import activity

from longhaul.activities.attempt.workspaces import Elsewhere
from longhaul.activities.process.container import NotStarted
from longhaul.activities.process.program_output import ClippedBytes, MaskedBytes, ToldBytes
from longhaul.activities.process.program_run import Ending
from longhaul.activities.process.sandbox import (
    CantConfine,
    Sandboxed,
    SandboxPolicy,
    boundary_of,
    run_sandboxed,
    sandboxed,
    sealed,
)
from longhaul.activities.process.supervisor import NOTE_FD
from longhaul.activities.process.threads import in_own_thread
from longhaul.activities.shell.environment_variables import INHERITED, hardened, scrubbed
from longhaul.activities.shell.walk import examine_command
from longhaul.activities.tool import NeedsDecision, Place, Tool, ToolCall, ToolError, ToolOutput
from longhaul.agent.permission.call_analysis import CallAnalysis
from longhaul.agent.values.conversation.tools import Effect
from longhaul.agent.values.subagents import BASH_OUTPUT, LONGEST_SECONDS, LONGEST_UNASKED_SECONDS, MOST_ON_WORKER

MOST_ATTEMPTS = 25
"""So many workers are asked, about half a minute long, before the model is told that none of them runs it."""

HELD_SECONDS = 90.0
"""How long a command whose session's run is over waits for the next run, and its end to be asked for once more. Longer
than all attempts to find its worker take (`options.await_command`): among many workers it is asked late, by chance."""
STOPPED = "[stopped, with all that it had started; the output so far is above]"

_Key = tuple[object, str, str]


class HeldCommand:
    """One that runs in the background, or has ended a moment ago: in a task of its own, for the run of the session that
    has started it may end before."""

    def __init__(self, output: MaskedBytes, runs: Coroutine[Any, Any, ToolOutput], snapshot: str) -> None:
        self.output, self.snapshot = output, snapshot
        self._task = asyncio.create_task(runs)
        self._awaited_by = 0
        self._forgotten: asyncio.TimerHandle | None = None

    @property
    def runs(self) -> bool:
        return not self._task.done()

    @property
    def forsaken(self) -> bool:
        return not self._awaited_by

    def hold(self, forget: Callable[[], None]) -> None:
        """Keep it from now on for so long: the timer of an earlier run would end it before."""
        if self._forgotten is not None:
            self._forgotten.cancel()
        self._forgotten = asyncio.get_running_loop().call_later(HELD_SECONDS, forget)

    def kill(self) -> None:
        self._task.cancel()

    async def ended(self, *, unwanted: bool) -> ToolOutput:
        """What it came to; one that is `unwanted` is ended first. Cancelled because the run of the session is over, it
        leaves the command to the next run; for any other reason it ends it."""
        self._awaited_by += 1
        try:
            return await self._stopped() if unwanted else await asyncio.shield(self._task)
        except asyncio.CancelledError:
            if self._task.done() or _is_run_over():
                raise
            stopped = await self._stopped()
            if not is_unwanted():
                raise
            return stopped
        finally:
            self._awaited_by -= 1

    async def _stopped(self) -> ToolOutput:
        self.kill()
        await asyncio.wait([self._task])
        if not self._task.cancelled() and self._task.exception() is None:
            return self._task.result()
        self.output.end()
        return ToolOutput("\n".join(filter(None, (self.output.inner.text(), STOPPED))), failed=True)


class Outputs:
    """The commands in the background of this worker, and what they have printed."""

    def __init__(self) -> None:
        self._kept: dict[_Key, HeldCommand] = {}

    async def run(self, call: ToolCall, output: MaskedBytes, runs: Coroutine[Any, Any, ToolOutput]) -> ToolOutput:
        """Raises ToolError where too many run: nothing has started then."""
        if sum(one.runs for one in self._kept.values()) >= MOST_ON_WORKER:
            runs.close()
            raise ToolError(
                f"run_in_background: nothing ran, for this worker runs {MOST_ON_WORKER} commands in the background "
                "already, of all its sessions, and no more; run it without, or try again when others have ended"
            )
        key = _key(call.place, call.id)
        if (before := self._kept.get(key)) is not None:
            before.kill()  # of a session of that name that is gone: from here on nobody would find it any more
        self._kept[key] = HeldCommand(output, runs, call.snapshot)
        return await self.end_of(call.place, call.id)

    async def end_of(self, place: Place, call_id: str, *, unwanted: bool = False) -> ToolOutput:
        """What it came to, for this run of the session or, within HELD_SECONDS, the next one. Raises Elsewhere."""
        key = _key(place, call_id)
        command = self._kept.get(key)
        if command is None:
            raise Elsewhere(f"the command {call_id!r} does not run here")
        try:
            return await command.ended(unwanted=unwanted)
        finally:
            command.hold(partial(self._forget, key, command))

    def _forget(self, key: _Key, command: HeldCommand) -> None:
        if command.forsaken and self._kept.get(key) is command:
            command.kill()
            del self._kept[key]

    def snapshot_of(self, place: Place, call_id: str) -> str:
        """The files from before it began, as of `ToolReturned`; they are kept as long as its end is."""
        kept = self._kept.get(_key(place, call_id))
        return "" if kept is None else kept.snapshot

    def so_far(self, place: Place, call_id: str) -> str | None:
        """At most 30,000 characters, masked; None: no such command of this session runs on this worker."""
        kept = self._kept.get(_key(place, call_id))
        return None if kept is None or not kept.runs else kept.output.inner.text()


def _key(place: Place, call_id: str) -> _Key:
    return place.owner, place.session_id, call_id


def _is_run_over() -> bool:
    """Whether the server does not know the call any more: its session has gone on in a new run, or is gone."""
    told = activity.cancellation_details() if activity.in_activity() else None
    return told is not None and told.not_found and not told.worker_shutdown


def is_unwanted() -> bool:
    """Whether the session wants the call to end, and its worker does not leave."""
    told = activity.cancellation_details() if activity.in_activity() else None
    return told is not None and told.cancel_requested


class BashOutput(Tool):
    """The session itself refuses ids of commands that do not run."""

    name = BASH_OUTPUT
    description = """\
Shows what a command in the background has printed so far: its start and its end, where that is more than 30,000 \
characters. Its end comes by itself, so there is no need to ask again and again."""
    effect = Effect.READ
    read_only = True
    concurrency_safe = True
    timeout_seconds = 30.0
    input_schema: dict[str, Any] = {  # noqa: RUF012  as every tool says its schema
        "type": "object",
        "properties": {"bash_id": {"type": "string", "description": "As Bash has answered it."}},
        "required": ["bash_id"],
        "additionalProperties": False,
    }

    def __init__(self, outputs: Outputs) -> None:
        self._outputs = outputs

    async def run(self, call: ToolCall) -> ToolOutput:
        named = call.arguments["bash_id"]
        text = self._outputs.so_far(call.place, named)
        if text is not None:
            return ToolOutput(text or "(no output so far)")
        if call.attempt >= MOST_ATTEMPTS:
            raise ToolError(
                f"bash_id: no worker that was asked runs {named!r} now; you get a message when its end is known"
            )
        raise Elsewhere("another worker runs the command whose output is asked for, or it is about to begin")


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
- With `run_in_background` it answers at once with an id, and the command runs on for up to 24 hours (10 minutes where \
nobody had to be asked), whatever `timeout` says. Its end comes by itself as a message. It can't change the directory.
- Long output is cut in the middle: its start, its end and lines that look like errors are kept, and the last line \
names the file with the rest. Above 30,000 characters only the start and the end are kept at all. Of progress bars you \
see the last state.
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
        "run_in_background": {
            "type": "boolean",
            "description": "Do not wait for it: a message says when it ends, and what it has printed.",
        },
    },
    "required": ["command"],
    "additionalProperties": False,
}


_HELD_OFF = ("Read-only file system", "Device or resource busy")
REFUSED = {
    "read": "[it ran without approval, in a sandbox in which nothing can be written]",
    "edit": "[it ran without approval, in a sandbox in which only the workspace can be written, and no file there that "
    "other programs run or obey: change such a file with Edit or Write, and a person is asked]",
}


class Bash(Tool):
    """`command` runs once; nothing of it is alive afterwards.

    `extra_environment` names further variables of the worker that commands may see: the operator's choice.
    """

    name = "Bash"
    description = DESCRIPTION
    effect = Effect.ONCE
    timeout_seconds = MAX_TIMEOUT_MS / 1000 + 30
    unasked_seconds: float = LONGEST_UNASKED_SECONDS
    """As long may one run in the background that nobody was asked about."""
    input_schema = INPUT_SCHEMA

    def __init__(
        self,
        extra_environment: tuple[str, ...] = (),
        sandbox: SandboxPolicy | None = None,
        outputs: Outputs | None = None,
    ) -> None:
        self._outputs = outputs or Outputs()
        self._granted = INHERITED | set(extra_environment)
        self._sandbox = sandbox or SandboxPolicy()
        self.description = DESCRIPTION + self._sandbox.note()

    async def examine(self, arguments: dict[str, Any], place: Place) -> CallAnalysis:
        command = str(arguments.get("command", ""))
        try:
            _refuse_impossible(command)
        except ToolError as error:
            return CallAnalysis(cwd=str(_start_folder(place)), arguments_error=str(error))
        return await in_own_thread(lambda _: self._looked_at(command, place))

    def _looked_at(self, command: str, place: Place) -> CallAnalysis:
        analysis = examine_command(command, _start_folder(place), place.root, place.ruled, place.closed)
        boundary, problem = boundary_of(self._sandbox_at(place), place.root)
        return analysis.model_copy(update={"boundary": boundary, "no_boundary": problem})

    def _sandbox_at(self, place: Place) -> SandboxPolicy:
        """The worker's, or the agent's: the stricter of both."""
        sandbox = self._sandbox.narrowed("all" if place.seal else place.sandbox, place.sandbox_network)
        return (
            replace(sandbox, limits=sandbox.limits.within(place.seal), image=place.seal.image)
            if place.seal
            else sandbox
        )

    def seconds_for(self, arguments: dict[str, Any]) -> float:
        return LONGEST_SECONDS + 30 if arguments.get("run_in_background") else self.timeout_seconds

    async def run(self, call: ToolCall) -> ToolOutput:
        kept = MaskedBytes(ClippedBytes(), call.masker)
        if not call.arguments.get("run_in_background"):
            return await self._run(call, call.arguments.get("timeout", DEFAULT_TIMEOUT_MS), kept)
        seconds = self.unasked_seconds if _is_proven(call) else LONGEST_SECONDS
        output = await self._outputs.run(call, kept, self._run(call, round(seconds * 1000), kept))
        # The session has gone on meanwhile, perhaps in another folder.
        return replace(output, cwd=None)

    async def _run(self, call: ToolCall, timeout_ms: int, kept: MaskedBytes) -> ToolOutput:
        command = call.arguments["command"]
        _refuse_impossible(command)
        cwd = _start_folder(call.place)
        await self._refuse_other_findings(call, cwd)
        output = ToldBytes(kept)
        shell = ("/bin/bash", "--noprofile", "--norc", "-c", REPORT_CWD + command)
        environment = scrubbed(os.environ, self._granted)
        # Such a command touches files of the workspace; it has no use for a secret.
        environment = hardened(environment) if _is_proven(call) else environment | dict(call.secrets)
        confined = await self._confined(call, shell, cwd)
        if confined.hides(cwd):
            text = f"{str(cwd)!r} is not seen in the sandbox. Nothing ran; the next command starts in the workspace."
            return ToolOutput(text, failed=True, cwd=call.place.root)
        if confined.sandbox != "off":
            environment["TMPDIR"] = "/tmp"  # noqa: S108  the sandbox's own
        try:
            ending = await run_sandboxed(confined, cwd, environment, timeout_ms / 1000, output)
            output.end()
        except NotStarted as why:
            raise ToolError(f"nothing ran, for its sandbox could not be made: {why}") from None
        except OSError as error:
            raise ToolError(f"bash could not be started in {str(cwd)!r}: {error.strerror}") from None
        if confined.sandbox != "off" and not ending.note and kept.inner.text().startswith("bwrap: "):
            raise ToolError(f"nothing ran, for its sandbox could not be made: {kept.inner.text().strip()}")
        moved = _moved_to(ending.note, call.place)
        if confined.sandbox != "off":
            # The sandbox ends what is left in it, and its own first process would be counted.
            ending = replace(ending, killed=0)
        # A folder of the sandbox's own is gone with it.
        moved = None if moved and confined.hides(moved) else moved
        return _tool_output(ending, kept.inner, timeout_ms, moved, confined.sandbox)

    async def _confined(self, call: ToolCall, shell: tuple[str, ...], cwd: Path) -> Sandboxed:
        place = call.place
        try:
            if place.seal is not None and not call.confined:
                return await asyncio.to_thread(
                    sealed, self._sandbox, place.seal, shell, place.root, cwd, place.opened, {}
                )
            return await asyncio.to_thread(
                sandboxed, self._sandbox_at(place), shell, place.root, cwd, call.confined, place.opened
            )
        except CantConfine as why:
            raise ToolError(str(why)) from None

    async def _refuse_other_findings(self, call: ToolCall, cwd: Path) -> None:
        fresh = await self.examine(call.arguments, call.place)
        if call.analysis.cwd != str(cwd):
            raise NeedsDecision(
                fresh, f"the command was decided on for {call.analysis.cwd!r}, but would run in {str(cwd)!r}"
            )
        if call.analysis.paths != fresh.paths:
            raise NeedsDecision(fresh, "the paths that the command names lead elsewhere than when it was decided on")
        proven = [command for command in call.analysis.commands if command.read_only or command.edits_only]
        if not all(command in fresh.commands for command in proven):
            raise NeedsDecision(fresh, "a part of the command is not known to be as harmless as when it was decided on")
        weaker = ("none", "off") if call.analysis.boundary not in ("none", "off") else ("none",)
        if call.confined and fresh.boundary in weaker and fresh.boundary != call.analysis.boundary:
            why = fresh.no_boundary or "its operator does without"
            raise NeedsDecision(fresh, f"it was to run in a sandbox, and this worker has none: {why}")


def _is_proven(call: ToolCall) -> bool:
    """Whether it is one that may run unasked."""
    return bool(call.analysis.read_only or call.analysis.proven or call.confined)


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


def _tool_output(
    ending: Ending, output: ClippedBytes, timeout_ms: int, moved_to: Path | None, sandbox: str
) -> ToolOutput:
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
    if sandbox in REFUSED and any(words in shown for words in _HELD_OFF):
        remarks.append(REFUSED[sandbox])
    text = "\n".join([shown.removesuffix("\n"), *remarks] if shown else remarks)
    return ToolOutput(
        output=text or "(no output)",
        failed=ending.how != "exited" or code != 0,
        metadata={"exit_code": code, "ended": ending.how, "output_bytes": output.total_bytes, "sandbox": sandbox},
        cwd=moved_to,
    )
