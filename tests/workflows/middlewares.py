"""Middlewares for the tests: LONGHAUL_MIDDLEWARES=tests.workflows.middlewares:NAME."""

from typing import Annotated

from pydantic import Field

from activities.middlewares.middleware import AskModel, Interruption, Middleware, RunTool, ToolUse
from activities.middlewares.runtime import RuntimeContext, runtime_context
from activities.models.model import ModelReply, ModelRequest
from activities.tools.function import tool
from activities.tools.tool import ToolOutput
from agent.tools import Effect


class Marks(Middleware):
    """Marks the system prompt."""

    name = "marks"

    async def on_system_prompt(self, system_prompt: str, context: RuntimeContext) -> str:
        return f"{system_prompt}\nMarked for {context.agent}."


class Basket(Middleware):
    """Hands something to the tool that runs inside of it."""

    name = "basket"

    async def on_acting(self, use: ToolUse, context: RuntimeContext, call_next: RunTool) -> ToolOutput:
        context.put("basket", ["apple"])
        return await call_next(use)


class Broken(Middleware):
    name = "broken"

    async def on_model_call(self, request: ModelRequest, context: RuntimeContext, call_next: AskModel) -> ModelReply:
        raise RuntimeError("the words of the error are for the log")


@tool(effect=Effect.READ, read_only=True)
def whoami(about: Annotated[str, Field(description="What to tell")]) -> str:
    """Say for whom this call is made."""
    context = runtime_context()
    basket, ticket = context.get("basket"), context.get("ticket")
    return f"{about}: {context.user_id} ticket {ticket} with {basket}, call {context.call_id}"


class Parting(Middleware):
    """Says last words, but leaves them to others where nothing was said with the interrupt."""

    name = "parting"

    async def handle_interrupt(self, interruption: Interruption, context: RuntimeContext) -> str | None:
        if not interruption.message:
            return None
        return f"Parted over {', '.join(interruption.tools)} for {context.agent}, because: {interruption.message}"


class DeafParting(Middleware):
    name = "deaf_parting"

    async def handle_interrupt(self, interruption: Interruption, context: RuntimeContext) -> str | None:
        raise RuntimeError("the words of the error are for the log")
