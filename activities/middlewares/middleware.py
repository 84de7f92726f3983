"""A middleware is code of the operator's around what a session does, run on workers inside the activities.

Each method gets what is about to happen, the context of the call, and `call_next`, which does it; what the method
returns takes the place of the answer. What comes of it is recorded, so that replays run none of it again.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from longhaul.activities.middlewares.runtime import RuntimeContext
from longhaul.activities.models.model import ModelReply, ModelRequest
from longhaul.activities.tool import ToolOutput
from longhaul.agent.plain.errors import LonghaulError
from longhaul.agent.values.conversation.messages import Msg
from longhaul.agent.values.conversation.tools import Effect

AskModel = Callable[[ModelRequest], Awaitable[ModelReply]]


class Stopped(LonghaulError):
    """Raise it to stop a call; the words are for whoever reads why."""


@dataclass(frozen=True, slots=True)
class ToolUse:
    """One call of a tool, as it was decided on."""

    id: str
    name: str
    arguments: str
    """JSON. Other arguments than these are judged anew before anything runs, and may be asked about; then `on_acting`
    is called once more with these, and has to make the same of them."""
    effect: Effect


RunTool = Callable[[ToolUse], Awaitable[ToolOutput]]


@dataclass(frozen=True, slots=True)
class Interruption:
    """A reply was interrupted: nothing of it runs any more."""

    message: str
    """What was said with the interrupt, and is answered next; empty: nothing."""
    tools: tuple[str, ...]
    """Of the calls that were cut short, in their order."""


class Middleware:
    """Subclass it and define what you need. One object serves all sessions of a worker, several at once."""

    name: str = ""
    """How agents name it; empty = as it is called in LONGHAUL_MIDDLEWARES."""
    changes_answers: bool = True
    """Whether on_model_call or on_reasoning may change what the model said. Clients then hear it when it is whole;
    False keeps the live stream of pieces."""

    idle: frozenset[str] = frozenset()
    """Methods that have nothing to do just now, and cost nothing then."""

    async def on_reply(self, request: str, context: RuntimeContext) -> Sequence[str | Msg]:
        """Before a reply: what the model is told behind the request, whose text is given. It is recorded."""
        return ()

    async def on_system_prompt(self, system_prompt: str, context: RuntimeContext) -> str:
        """Before each model call: what is sent."""
        return system_prompt

    async def on_reasoning(self, request: ModelRequest, context: RuntimeContext, call_next: AskModel) -> ModelReply:
        """Around a model call whose answer is for the conversation, outside of every `on_model_call`."""
        return await call_next(request)

    async def on_model_call(self, request: ModelRequest, context: RuntimeContext, call_next: AskModel) -> ModelReply:
        """Around every model call, also one for a summary or a judgement (`request.purpose`): both what is asked and
        what is answered may be changed."""
        return await call_next(request)

    async def on_acting(self, use: ToolUse, context: RuntimeContext, call_next: RunTool) -> ToolOutput:
        """Around a tool's run. `call_next(use)` runs it; a `once` call no second time. Of `use` the arguments may be
        changed, by `dataclasses.replace`."""
        return await call_next(use)

    async def handle_interrupt(self, interruption: Interruption, context: RuntimeContext) -> str | Msg | None:
        """What the agent says at the end of a reply that was interrupted; it is recorded as its words. None, or
        nothing: the next middleware is asked, and then the agent's settings."""
        return None


def defines(middleware: Middleware, method: str) -> bool:
    """Whether it has that method of its own, and something to do in it."""
    return getattr(type(middleware), method) is not getattr(Middleware, method) and method not in middleware.idle
