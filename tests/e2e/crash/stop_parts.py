"""Parts of a worker that stand still at a gate, for workers that are asked to stop meanwhile: tools, a middleware, a
store of states and one of memories. Gates and ledger lie in the session's workspace, as those of `crash_tools`, and for
those who are told of no session in one of their own."""

import asyncio
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from longhaul.activities.middlewares.middleware import Interruption, Middleware, RuntimeContext
from longhaul.activities.tool import Found, Tool, ToolCall, ToolOutput
from longhaul.activities.tools.function import tool
from longhaul.agent.values.conversation.messages import Msg, ToolResultBlock
from longhaul.agent.values.conversation.tools import Effect
from longhaul.stores.memories.memories import MemoryOwner, NewMemory
from longhaul.stores.memories.sqlite_memories import SqliteMemories
from longhaul.stores.names import workdir_of
from longhaul.stores.offload.local_workspace import LocalWorkspace
from longhaul.stores.state.file_store import FileStore
from longhaul.stores.state.store import SessionRecord
from tests.e2e.crash.crash_tools import HOLD, NOTED_SCHEMA, POLL_SECONDS, Noted, pass_by, write_down

GROUND = "TEST_GROUND"
"""Variable that names the folder in which the workspaces lie, each by its session's id."""


def ground(session_id: str) -> Path:
    return Path(os.environ[GROUND]) / session_id


@tool(effect=Effect.ONCE, concurrency_safe=True)
def plain(root: str) -> str:
    """Stands at its gate in a thread, which nobody can end."""
    write_down(Path(root), what="held", point="plain")
    while (Path(root) / HOLD / "plain").exists():
        time.sleep(POLL_SECONDS)
    return "plain is done"


class Deaf(Tool):
    """Does not let itself be cancelled."""

    name = "deaf"
    description = "Hears nothing."
    input_schema = NOTED_SCHEMA
    effect = Effect.ONCE

    async def run(self, call: ToolCall) -> ToolOutput:
        write_down(call.place.root, what="held", point="deaf")
        while (call.place.root / HOLD / "deaf").exists():
            try:
                await asyncio.sleep(POLL_SECONDS)
            except asyncio.CancelledError:
                continue
        return ToolOutput("deaf is done")


class Doubted(Noted):
    """Is given up behind its effect, and found out about at a gate."""

    timeout_seconds = 0.2

    async def run(self, call: ToolCall) -> ToolOutput:
        await super().run(call)
        await asyncio.sleep(3_600)
        raise AssertionError("it is given up before")

    async def probe(self, call: ToolCall) -> Found:
        await pass_by(call.place.root, "probe")
        return Found("happened")


@tool(is_external_tool=True, read_only=True)
def courier(parcel: str) -> str:
    """Have a parcel brought by somebody outside."""
    raise AssertionError(f"an external tool ran here: {parcel!r}")


class Gates(Middleware):
    async def on_reply(self, request: str, context: RuntimeContext) -> Sequence[str | Msg]:
        await pass_by(ground(context.session_id), "prepare")
        return ()

    async def handle_interrupt(self, interruption: Interruption, context: RuntimeContext) -> str | Msg | None:
        await pass_by(ground(context.session_id), "interrupt")
        return "I was stopped."


class GatedStore(FileStore):
    def __init__(self) -> None:
        super().__init__(Path(os.environ[GROUND]) / "states")

    async def get_session(self, user_id: str | None, agent_id: str, session_id: str) -> SessionRecord | None:
        await pass_by(ground(session_id), "restore")
        return await super().get_session(user_id, agent_id, session_id)

    async def save_checkpoint(self, record: SessionRecord) -> bool:
        await pass_by(ground(record.session_id), "checkpoint")
        return await super().save_checkpoint(record)


class GatedOffloads(LocalWorkspace):
    def __init__(self, owner: str) -> None:
        super().__init__(workdir_of(Path(os.environ[GROUND]), owner))

    async def offload_tool_result(self, session_id: str, tool_result: ToolResultBlock, **kwargs: Any) -> str:
        await pass_by(ground(session_id), "taken")
        return await super().offload_tool_result(session_id, tool_result, **kwargs)

    async def offload_context(self, session_id: str, msgs: Sequence[Msg], **kwargs: Any) -> str:
        await pass_by(ground(session_id), "context")
        return await super().offload_context(session_id, msgs, **kwargs)


class GatedMemories(SqliteMemories):
    def __init__(self) -> None:
        super().__init__(Path(os.environ[GROUND]) / "memory.db")

    async def record(self, owner: MemoryOwner, new: Sequence[NewMemory]) -> None:
        await pass_by(ground("memory"), "memory")
        await super().record(owner, new)


deaf = Deaf()
doubted = Doubted("doubted", Effect.ONCE, concurrency_safe=True)
