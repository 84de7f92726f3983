"""Keep addresses out of what is recorded: in what the model says, and in what tools return.

LONGHAUL_MIDDLEWARES=examples.redactor:Redactor longhaul dev
"""

import re
from dataclasses import replace
from typing import TypeVar

from longhaul import (
    AskModel,
    Middleware,
    ModelReply,
    ModelRequest,
    RuntimeContext,
    RunTool,
    TextBlock,
    ToolOutput,
    ToolUse,
)

_ADDRESS = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_INSTEAD = "[address]"


class Redactor(Middleware):
    """Nobody hears a piece of an answer before it is whole, for half an address would not be known."""

    name = "redactor"

    async def on_model_call(self, request: ModelRequest, context: RuntimeContext, call_next: AskModel) -> ModelReply:
        reply = await call_next(request)
        return replace(reply, content=tuple(_clean(block) for block in reply.content))

    async def on_acting(self, use: ToolUse, context: RuntimeContext, call_next: RunTool) -> ToolOutput:
        output = await call_next(use)
        if isinstance(output.output, str):
            return replace(output, output=_ADDRESS.sub(_INSTEAD, output.output))
        return replace(output, output=tuple(_clean(block) for block in output.output))


Block = TypeVar("Block")


def _clean(block: Block) -> Block | TextBlock:
    return TextBlock(text=_ADDRESS.sub(_INSTEAD, block.text)) if isinstance(block, TextBlock) else block
