"""A middleware is code of the operator's around what a session does, run on workers inside the activities.

Each method gets what is about to happen, the context of the call, and `call_next`, which does it; what the method
returns takes the place of the answer. What comes of it is recorded, so that replays run none of it again.

RuntimeContext: what middlewares and tools know of the call that they work for, and what they hand to each other.

One is made for each attempt of an activity. What came with the request is given to every attempt, also on another
worker; what was put in during an attempt is gone with it, and nothing of it is part of the session's state.

Functions of one's own before and after what agents do on a worker: a middleware that asks hooks by their names.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, TypeVar, overload

from longhaul.activities.attempt import own_session
from longhaul.activities.models.model import ModelReply, ModelRequest
from longhaul.activities.tool import ToolOutput
from longhaul.agent.plain.errors import LonghaulError
from longhaul.agent.plain.hooks import Hook, Hooks
from longhaul.agent.reducer.agent_state import AgentState
from longhaul.agent.values.conversation.messages import Msg
from longhaul.agent.values.conversation.tools import Effect

T = TypeVar("T")


@dataclass
class RuntimeContext:
    """What middlewares and tools know about the current call. `get` and `put` take names or types: `put("trace", 7)`,
    `get("trace")`; `put(basket)`, `get(Basket)`."""

    agent: str
    user_id: str | None
    session_id: str
    attempt: int
    """Number of this attempt of the activity, from 1."""
    reply_id: str = ""
    request_id: str = ""
    call_id: str = ""
    """Id of the tool call. Empty around a model call."""
    model: str = ""
    call_number: int = 0
    """Number of model calls that the session made before this one."""
    given: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The `context` that came with the request. `get` finds its names too, unless something else was put under the
    name."""
    _named: dict[str, Any] = field(default_factory=dict[str, Any], repr=False)
    _typed: dict[type[Any], Any] = field(default_factory=dict[type[Any], Any], repr=False)

    @overload
    def get(self, key: str, default: Any = None) -> Any: ...
    @overload
    def get(self, key: type[T], default: T | None = None) -> T | None: ...
    def get(self, key: Any, default: Any = None) -> Any:
        """The value that was put under the name or type. For a type, the value of the most special subclass counts if
        none has the type itself."""
        if isinstance(key, str):
            return self._named[key] if key in self._named else deepcopy(self.given.get(key, default))
        if key in self._typed:
            return self._typed[key]
        fitting = [kind for kind in self._typed if issubclass(kind, key)]
        return self._typed[max(fitting, key=lambda kind: len(kind.__mro__))] if fitting else default

    def put(self, *what: Any) -> None:
        """Store a value for the rest of this attempt: `put(name, value)`, or `put(value)` under its type."""
        match what:
            case (str(name), value):
                self._named[name] = value
            case (value,):
                self._typed[type(value)] = value
            case _:
                raise TypeError("put takes a name and a value, or a value alone, which is found by its type")

    async def state(self) -> AgentState:
        """The session's current state, without its messages. Each call asks the session, so do not call it for each
        token."""
        found: dict[str, Any] = await own_session.handle().query("state")
        return AgentState.model_validate(found)


_current: ContextVar[RuntimeContext | None] = ContextVar("longhaul_runtime_context", default=None)


def runtime_context() -> RuntimeContext:
    """The RuntimeContext of the current call, for functions under `@tool`, sync or async. Raises RuntimeError outside
    of a call."""
    context = _current.get()
    if context is None:
        raise RuntimeError("runtime_context() is for tools and middlewares while a session calls them")
    return context


@contextmanager
def as_current(context: RuntimeContext) -> Iterator[None]:
    token = _current.set(context)
    try:
        yield
    finally:
        _current.reset(token)


AskModel = Callable[[ModelRequest], Awaitable[ModelReply]]


class Stopped(LonghaulError):
    """Raise it to stop a call. People and the model read its text as the reason."""


@dataclass(frozen=True, slots=True)
class ToolUse:
    """One tool call, as it was decided on."""

    id: str
    name: str
    arguments: str
    """The arguments as JSON. If you change them, Longhaul decides again before anything runs, and may ask a person.
    Then `on_acting` is called once more with the changed arguments, and must make the same of them."""
    effect: Effect


RunTool = Callable[[ToolUse], Awaitable[ToolOutput]]


@dataclass(frozen=True, slots=True)
class Interruption:
    """A reply was interrupted. Nothing of it runs any more."""

    message: str
    """Message that came with the interrupt; it is answered next. Empty: there was none."""
    tools: tuple[str, ...]
    """Tools whose calls were cut short, in order."""


class Middleware:
    """Code of yours around what sessions do. Subclass it, and define the methods that you need. One object serves all
    sessions of a worker, several at once."""

    name: str = ""
    """Name by which agents choose it. Empty = its name in LONGHAUL_MIDDLEWARES."""
    changes_answers: bool = True
    """Whether on_model_call or on_reasoning may change the model's answer. If so, clients get the answer when it is
    complete. False keeps the live stream of deltas."""

    idle: frozenset[str] = frozenset()
    """Methods that have nothing to do at the moment, and then cost nothing."""

    async def on_reply(self, request: str, context: RuntimeContext) -> Sequence[str | Msg]:
        """Runs before a reply. `request` is the request's text. The returned text is recorded, and the model reads it
        after the request."""
        return ()

    async def on_system_prompt(self, system_prompt: str, context: RuntimeContext) -> str:
        """Runs before each model call. Returns the system prompt to send."""
        return system_prompt

    async def on_reasoning(self, request: ModelRequest, context: RuntimeContext, call_next: AskModel) -> ModelReply:
        """Runs around a model call whose answer is for the conversation, outside of every `on_model_call`."""
        return await call_next(request)

    async def on_model_call(self, request: ModelRequest, context: RuntimeContext, call_next: AskModel) -> ModelReply:
        """Runs around every model call, also for a summary or a risk analysis (`request.purpose`). You may change
        request and answer."""
        return await call_next(request)

    async def on_acting(self, use: ToolUse, context: RuntimeContext, call_next: RunTool) -> ToolOutput:
        """Runs around a tool call. `call_next(use)` runs the tool; a `once` call never runs twice. To change the
        arguments, use `dataclasses.replace` on `use`."""
        return await call_next(use)

    async def handle_interrupt(self, interruption: Interruption, context: RuntimeContext) -> str | Msg | None:
        """Returns the agent's last words for an interrupted reply; they are recorded. With None or no text, the next
        middleware is asked, then the agent's settings."""
        return None


def defines(middleware: Middleware, method: str) -> bool:
    """Whether it has that method of its own, and something to do in it."""
    return getattr(type(middleware), method) is not getattr(Middleware, method) and method not in middleware.idle


POINTS = ("reply", "reasoning", "acting", "model_call", "system_prompt")
"""`observe` and `print` are what clients do: `starter.Session.hooks`."""


class HookedMiddleware(Middleware):
    """A middleware made of single functions: `hooks = HookedMiddleware("shop")`, `hooks.register("pre_acting", "audit",
    note)`, and `LONGHAUL_MIDDLEWARES=shop.hooks:hooks` on the workers.

    A hook's first argument is the RuntimeContext. Register hooks before the worker polls. The model reads what
    `pre_reply` returns after the request. `pre_acting` may raise Stopped; if it returns other arguments, Longhaul
    decides again. There is no `post_reply`: a reply may end on another worker, or after days.
    """

    def __init__(self, name: str = "hooks") -> None:
        self.name = name
        self._hooks = Hooks(POINTS)
        self._note()

    def register(self, kind: str, name: str, hook: Hook) -> None:
        """Add a hook. A hook with the same name is replaced. Raises UnknownHook."""
        if kind == "post_reply":
            raise ValueError("post_reply: a reply may end anywhere; register it with a client, at Session.hooks")
        self._hooks.register(kind, name, hook)
        self._note()

    def remove(self, kind: str, name: str) -> None:
        """Remove a hook. Raises UnknownHook."""
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
