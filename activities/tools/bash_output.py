"""The tool `BashOutput`: what a command in the background has printed so far."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from temporalio import activity

from longhaul.activities.attempt.workspaces import Elsewhere
from longhaul.activities.process.clipping import ClippedBytes
from longhaul.activities.tool import Place, Tool, ToolCall, ToolError, ToolOutput
from longhaul.agent.values.background import BASH_OUTPUT, MOST_ON_WORKER
from longhaul.agent.values.conversation.tools import Effect

MOST_ATTEMPTS = 25
"""So many workers are asked, about half a minute long, before the model is told that none of them runs it."""

_Key = tuple[object, str, str]


class Outputs:
    """What commands in the background of this worker have printed, while they run."""

    def __init__(self) -> None:
        self._kept: dict[_Key, ClippedBytes] = {}

    @contextmanager
    def shown(self, call: ToolCall, output: ClippedBytes) -> Iterator[None]:
        """Within the block it can be asked for. Raises ToolError where too many run: nothing has begun then."""
        if len(self._kept) >= MOST_ON_WORKER:
            raise ToolError(
                f"run_in_background: nothing ran, for this worker runs {MOST_ON_WORKER} commands in the background "
                "already, of all its sessions, and no more; run it without, or try again when others have ended"
            )
        key = _key(call.place, call.id)
        self._kept[key] = output
        try:
            yield
        finally:
            del self._kept[key]

    def so_far(self, place: Place, call_id: str) -> str | None:
        """At most 30,000 characters, masked; None: no such command of this session runs on this worker."""
        kept = self._kept.get(_key(place, call_id))
        return None if kept is None else kept.text()


def _key(place: Place, call_id: str) -> _Key:
    return place.owner, place.session_id, call_id


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
