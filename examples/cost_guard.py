"""Stop a reply that has used up its tokens.

    LONGHAUL_MIDDLEWARES=examples.cost_guard:CostGuard REPLY_TOKENS=50000 longhaul dev

The reply ends as `error` with the guard's words; the session goes on with the next request.
"""

import os

from longhaul import AskModel, Middleware, ModelReply, ModelRequest, RuntimeContext, Stopped


class CostGuard(Middleware):
    name = "cost_guard"
    changes_answers = False

    def __init__(self) -> None:
        self._most = int(os.environ.get("REPLY_TOKENS", "200000"))

    async def on_model_call(self, request: ModelRequest, context: RuntimeContext, call_next: AskModel) -> ModelReply:
        reply = (await context.state()).reply_context
        used = reply.usage.input_tokens + reply.usage.output_tokens if reply else 0
        if used >= self._most:
            raise Stopped(f"the reply has used {used:,} tokens, and the most is {self._most:,}")
        return await call_next(request)
