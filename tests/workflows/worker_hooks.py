"""Hooks of a worker for the tests: LONGHAUL_MIDDLEWARES=tests.workflows.worker_hooks:hooks."""

from dataclasses import replace

from longhaul.activities.middlewares.middleware import HookedMiddleware, RuntimeContext, ToolUse
from longhaul.activities.models.model import ModelReply, ModelRequest
from longhaul.activities.tool import ToolOutput
from longhaul.agent.values.conversation.messages import TextBlock

hooks = HookedMiddleware("shop")


async def heard(context: RuntimeContext, use: ToolUse, output: ToolOutput) -> ToolOutput:
    return replace(output, output=f"{output.output} (heard)")


def attributed(context: RuntimeContext, request: ModelRequest, reply: ModelReply) -> ModelReply:
    content = tuple(
        TextBlock(text=f"{block.text.rstrip('.')}, says {context.agent}.") if isinstance(block, TextBlock) else block
        for block in reply.content
    )
    return replace(reply, content=content)


hooks.register("pre_reply", "time", lambda context, request: "It is noon.")
hooks.register("pre_system_prompt", "brief", lambda context, text: f"{text}\nBe brief.")
hooks.register("post_acting", "heard", heard)
hooks.register("post_model_call", "attributed", attributed)
