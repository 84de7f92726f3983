"""RuntimeContext: what middlewares and tools know of the call that they work for, and what they hand to each other.

One is made for each attempt of an activity. What came with the request is given to every attempt, also on another
worker; what was put in during an attempt is gone with it, and nothing of it is part of the session's state.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, TypeVar, overload

from longhaul.activities.attempt import own_session
from longhaul.agent.fold.agent_state import AgentState

T = TypeVar("T")


@dataclass
class RuntimeContext:
    """`get` and `put` take names or types: `put("trace", 7)`, `get("trace")`; `put(basket)`, `get(Basket)`."""

    agent: str
    user_id: str | None
    session_id: str
    attempt: int
    """Of this activity, from 1."""
    reply_id: str = ""
    request_id: str = ""
    call_id: str = ""
    """Of the tool call; empty around a model call."""
    model: str = ""
    call_number: int = 0
    """Model calls that the session made before this one."""
    given: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """As it came with the request. Found by `get` too, where nothing else was put under the name."""
    _named: dict[str, Any] = field(default_factory=dict[str, Any], repr=False)
    _typed: dict[type[Any], Any] = field(default_factory=dict[type[Any], Any], repr=False)

    @overload
    def get(self, key: str, default: Any = None) -> Any: ...
    @overload
    def get(self, key: type[T], default: T | None = None) -> T | None: ...
    def get(self, key: Any, default: Any = None) -> Any:
        """What was put under the name; or of the type, or else of the most special one that is one."""
        if isinstance(key, str):
            return self._named[key] if key in self._named else deepcopy(self.given.get(key, default))
        if key in self._typed:
            return self._typed[key]
        fitting = [kind for kind in self._typed if issubclass(kind, key)]
        return self._typed[max(fitting, key=lambda kind: len(kind.__mro__))] if fitting else default

    def put(self, *what: Any) -> None:
        """`put(name, value)`, or `put(value)` under its type. For the rest of this attempt."""
        match what:
            case (str(name), value):
                self._named[name] = value
            case (value,):
                self._typed[type(value)] = value
            case _:
                raise TypeError("put takes a name and a value, or a value alone, which is found by its type")

    async def state(self) -> AgentState:
        """The session's state as it is now, without its messages. Asks the session: not for each token."""
        found: dict[str, Any] = await own_session.handle().query("state")
        return AgentState.model_validate(found)


_current: ContextVar[RuntimeContext | None] = ContextVar("longhaul_runtime_context", default=None)


def runtime_context() -> RuntimeContext:
    """Of the call that is being made: for functions under `@tool`, sync or async. RuntimeError outside of one."""
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
