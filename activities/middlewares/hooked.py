"""Functions of one's own before and after what agents do on a worker: a middleware that asks hooks by their names."""

from collections.abc import Sequence

from longhaul.activities.middlewares.middleware import AskModel, Middleware, RunTool, ToolUse
from longhaul.activities.middlewares.runtime import RuntimeContext
from longhaul.activities.models.model import ModelReply, ModelRequest
from longhaul.activities.tool import ToolOutput
from longhaul.agent.plain.hooks import Hook, Hooks
from longhaul.agent.values.conversation.messages import Msg

POINTS = ("reply", "reasoning", "acting", "model_call", "system_prompt")
"""`observe` and `print` are what clients do: `starter.Session.hooks`."""


class HookedMiddleware(Middleware):
    """`hooks = HookedMiddleware("shop")`, `hooks.register("pre_acting", "audit", note)`, and
    `LONGHAUL_MIDDLEWARES=shop.hooks:hooks` on the workers. The first argument of a hook is the RuntimeContext.

    Register before the worker takes work. What `pre_reply` gives back is told to the model behind the request;
    `pre_acting` may raise Stopped; other arguments that it gives back are judged anew. There is no `post_reply` here: a
    reply may end on another worker, or after days.
    """

    def __init__(self, name: str = "hooks") -> None:
        self.name = name
        self._hooks = Hooks(POINTS)
        self._note()

    def register(self, kind: str, name: str, hook: Hook) -> None:
        """The same name again replaces what was there. Raises UnknownHook."""
        if kind == "post_reply":
            raise ValueError("post_reply: a reply may end anywhere; register it with a client, at Session.hooks")
        self._hooks.register(kind, name, hook)
        self._note()

    def remove(self, kind: str, name: str) -> None:
        """Raises UnknownHook."""
        self._hooks.remove(kind, name)
        self._note()

    def clear(self, kind: str | None = None) -> None:
        self._hooks.clear(kind)
        self._note()

    def names(self, kind: str) -> tuple[str, ...]:
        return self._hooks.names(kind)

    def _note(self) -> None:
        """Answers that somebody may change are heard when they are whole."""
        self.changes_answers = any(self._hooks.names(kind) for kind in ("post_reasoning", "post_model_call"))
        self.idle = frozenset(f"on_{point}" for point in POINTS if not self._hooks.stand_at(point))

    async def on_reply(self, request: str, context: RuntimeContext) -> Sequence[str | Msg]:
        told = await self._hooks.before("reply", context, request)
        if told is request:
            return ()
        return [told] if isinstance(told, str | Msg) else list(told)

    async def on_system_prompt(self, system_prompt: str, context: RuntimeContext) -> str:
        given = await self._hooks.before("system_prompt", context, system_prompt)
        text: str = await self._hooks.after("system_prompt", context, given, given)
        return text

    async def on_reasoning(self, request: ModelRequest, context: RuntimeContext, call_next: AskModel) -> ModelReply:
        given = await self._hooks.before("reasoning", context, request)
        reply: ModelReply = await self._hooks.after("reasoning", context, given, await call_next(given))
        return reply

    async def on_model_call(self, request: ModelRequest, context: RuntimeContext, call_next: AskModel) -> ModelReply:
        given = await self._hooks.before("model_call", context, request)
        reply: ModelReply = await self._hooks.after("model_call", context, given, await call_next(given))
        return reply

    async def on_acting(self, use: ToolUse, context: RuntimeContext, call_next: RunTool) -> ToolOutput:
        given = await self._hooks.before("acting", context, use)
        output: ToolOutput = await self._hooks.after("acting", context, given, await call_next(given))
        return output
