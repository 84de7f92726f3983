"""Code that workers have by name, and that agents are made of: LONGHAUL_TOOLS=tests.workflows.shop_parts."""

from collections.abc import Iterable, Sequence
from typing import Any

from longhaul.activities.middlewares.middleware import Middleware, RuntimeContext, RunTool, ToolUse
from longhaul.activities.tool import ToolOutput
from longhaul.activities.tools.function import tool
from longhaul.activities.tools.skills import LoadedSkill, SkillLoader
from longhaul.agent.values.conversation.messages import Msg, ToolResultBlock
from longhaul.agent.values.conversation.tools import Effect


@tool(effect=Effect.READ, read_only=True)
async def weigh(crates: int) -> str:
    """Say what crates weigh."""
    return f"{crates * 7} kg"


@tool(effect=Effect.READ, read_only=True)
async def list_berths() -> str:
    """List all berths."""
    return "berth " * 3_000


class Runbooks(SkillLoader):
    """Skills that stand in no file."""

    name = "runbooks"

    def list_skills(self) -> Iterable[LoadedSkill]:
        yield LoadedSkill("mooring", "How a ship is moored.", "Two lines fore, two lines aft.")
        yield LoadedSkill("storm", "", "Double all lines.", triggers=("storm",))


class Broken(SkillLoader):
    name = "broken"

    def list_skills(self) -> Iterable[LoadedSkill]:
        raise RuntimeError("the words of the error are for the log")


class Stamp(Middleware):
    """Stamps results; it has no name of its own."""

    async def on_acting(self, use: ToolUse, context: RuntimeContext, call_next: RunTool) -> ToolOutput:
        output = await call_next(use)
        return ToolOutput(f"stamped: {output.output}")


class Shelf:
    """An offloader, which needs no class of ours above it."""

    async def offload_context(self, session_id: str, msgs: Sequence[Msg], **kwargs: Any) -> str:
        return f"shelf://{session_id}/context"

    async def offload_tool_result(self, session_id: str, tool_result: ToolResultBlock, **kwargs: Any) -> str:
        return f"shelf://{session_id}/{tool_result.id}"


runbooks, broken, stamp, shelf = Runbooks(), Broken(), Stamp(), Shelf()
