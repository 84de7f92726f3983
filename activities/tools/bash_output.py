"""The tool `BashOutput`: what a command in the background has printed so far."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from temporalio import activity

from longhaul.activities.attempt.workspaces import Elsewhere
from longhaul.activities.process.masked_bytes import MaskedBytes
from longhaul.activities.tool import Place, Tool, ToolCall, ToolError, ToolOutput
from longhaul.agent.values.conversation.tools import Effect
from longhaul.agent.values.subagents import BASH_OUTPUT, MOST_ON_WORKER

MOST_ATTEMPTS = 25
"""So many workers are asked, about half a minute long, before the model is told that none of them runs it."""

HELD_SECONDS = 90.0
"""How long a command whose session's run is over waits for the next run, and its end to be asked for once more. Longer
than all attempts to find its worker take (`options.await_command`): among many workers it is asked late, by chance."""
STOPPED = "[stopped, with all that it had started; the output so far is above]"

_Key = tuple[object, str, str]


class HeldCommand:
    """One that runs in the background, or has ended a moment ago: in a task of its own, for the run of the session that
    has begun it may end before."""

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
        """Raises ToolError where too many run: nothing has begun then."""
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
            raise ToolError(f"bash_id: no worker that was asked runs {named!r} now; you are told when its end is known")
        raise Elsewhere("another worker runs the command whose output is asked for, or it is about to begin")
