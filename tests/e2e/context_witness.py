"""A middleware that writes down what each attempt is told: LONGHAUL_MIDDLEWARES names it as `module:ContextWitness`.

Points `model.told` and `acting.told` are held as those of `crash_tools`, in the folder that the context names.
"""

import os
from pathlib import Path

from longhaul.activities.middlewares.middleware import AskModel, Middleware, RuntimeContext, RunTool, ToolUse
from longhaul.activities.models.model import ModelReply, ModelRequest
from longhaul.activities.tool import ToolOutput
from tests.e2e.crash.crash_tools import pass_by, write_down


class ContextWitness(Middleware):
    name = "context_witness"

    async def on_model_call(self, request: ModelRequest, context: RuntimeContext, call_next: AskModel) -> ModelReply:
        await _told("model", context)
        return await call_next(request)

    async def on_acting(self, use: ToolUse, context: RuntimeContext, call_next: RunTool) -> ToolOutput:
        await _told("acting", context)
        return await call_next(use)


async def _told(where: str, context: RuntimeContext) -> None:
    root = Path(context.given["root"])
    write_down(
        root,
        what=f"{where} was told",
        attempt=context.attempt,
        worker=os.getpid(),
        scratch=context.get("scratch"),
        about={
            "agent": context.agent,
            "user": context.user_id,
            "session": context.session_id,
            "reply": context.reply_id,
            "request": context.request_id,
            "call": context.call_id,
            "model call": context.call_number,
            "ticket": context.get("ticket"),
            "state": (await context.state()).session_id,
        },
    )
    context.put("scratch", f"of attempt {context.attempt}")
    await pass_by(root, f"{where}.told")
