"""Middlewares for the tests: LONGHAUL_MIDDLEWARES=tests.workflows.middlewares:NAME."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from pydantic import Field

from longhaul.activities.middlewares.middleware import (
    AskModel,
    Interruption,
    Middleware,
    RuntimeContext,
    RunTool,
    Stopped,
    ToolUse,
    runtime_context,
)
from longhaul.activities.models.model import ModelReply, ModelRequest
from longhaul.activities.tool import ToolOutput
from longhaul.activities.tools.function import tool
from longhaul.agent.values.conversation.tools import Effect
from tests.e2e.sample_tools import sing  # noqa: F401  a worker finds it by its name


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


class BrokenBefore(Middleware):
    name = "broken_before"

    async def on_reply(self, request: str, context: RuntimeContext) -> tuple[str, ...]:
        raise RuntimeError("the words of the error are for the log")


class Prefix(Middleware):
    """Writes a command before each command, whatever stands there: done twice, it would stand there twice."""

    name = "prefix"

    async def on_acting(self, use: ToolUse, context: RuntimeContext, call_next: RunTool) -> ToolOutput:
        command = json.loads(use.arguments)["command"]
        return await call_next(replace(use, arguments=json.dumps({"command": f"touch seen && {command}"})))


class Restless(Middleware):
    """Wants something else each time."""

    name = "restless"
    _times = 0

    async def on_acting(self, use: ToolUse, context: RuntimeContext, call_next: RunTool) -> ToolOutput:
        self._times += 1
        return await call_next(replace(use, arguments=json.dumps({"page": self._times + 1})))


class Garbling(Middleware):
    name = "garbling"

    async def on_acting(self, use: ToolUse, context: RuntimeContext, call_next: RunTool) -> ToolOutput:
        return await call_next(replace(use, arguments='{"page": "the first"}'))


@tool(effect=Effect.READ, read_only=True)
def whoami(about: Annotated[str, Field(description="What to tell")]) -> str:
    """Say for whom this call is made."""
    context = runtime_context()
    basket, ticket = context.get("basket"), context.get("ticket")
    return f"{about}: {context.user_id} ticket {ticket} with {basket}, call {context.call_id}"


def _write_down(line: str) -> None:
    with Path(os.environ["WITNESS"]).open("a") as file:
        file.write(line)


class Witness(Middleware):
    """Writes down what each model call is for, into the file WITNESS; stops those for WITNESS_STOPS."""

    name = "witness"
    changes_answers = False

    async def on_model_call(self, request: ModelRequest, context: RuntimeContext, call_next: AskModel) -> ModelReply:
        _write_down(f"{request.purpose} for {context.agent} of {context.user_id}\n")
        if request.purpose == os.environ.get("WITNESS_STOPS"):
            raise Stopped("not today")
        return await call_next(request)


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
