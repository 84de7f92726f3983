"""The middlewares of one worker: those around every agent, and those that agents may name; the first is the outermost.
Each is bounded, and named when it fails.
"""

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

from longhaul.activities.attempt.workspaces import not_here
from longhaul.activities.context.prompt_hooks import HookSetupError
from longhaul.activities.middlewares.middleware import Middleware, RuntimeContext, Stopped, defines
from longhaul.activities.models.model import ModelReply
from longhaul.activities.process.threads import is_cancelled_here
from longhaul.agent.plain.text import did_you_mean
from longhaul.agent.values.conversation.messages import TextBlock, ThinkingBlock, ToolCallBlock, Usage
from longhaul.stores.loading import found_at, names_in

log = logging.getLogger(__name__)

OWN_SECONDS = 30.0
"""What a middleware may take for itself before what it stands around, and again after it."""

Given = TypeVar("Given")
Answer = TypeVar("Answer")


class MiddlewareFailed(Exception):
    """One of them stopped what it stands around, or failed; the text says which one and is for everybody."""


async def around(
    middlewares: Sequence[Middleware],
    method: str,
    given: Given,
    context: RuntimeContext,
    innermost: Callable[[Given], Awaitable[Answer]],
    kind: type[Answer],
) -> Answer:
    """Raises MiddlewareFailed, and whatever `innermost` does when no middleware made something else of it."""
    call = innermost
    for middleware in reversed([each for each in middlewares if defines(each, method)]):
        call = _Layer(middleware, method, context, call, kind)
    return await call(given)


class _Layer:
    def __init__(
        self,
        middleware: Middleware,
        method: str,
        context: RuntimeContext,
        call_next: Callable[[Any], Awaitable[Any]],
        kind: type[Any],
    ) -> None:
        self._middleware, self._method, self._context = middleware, method, context
        self._call_next, self._kind = call_next, kind

    async def __call__(self, given: Any) -> Any:
        from_inside: list[BaseException] = []
        try:
            async with asyncio.timeout(OWN_SECONDS) as limit:
                answer = await getattr(self._middleware, self._method)(
                    given, self._context, lambda other: self._inside(_alike(other, given), limit, from_inside)
                )
            _check(answer, self._kind)
        except BaseException as error:  # a middleware is anybody's; what is not done as it wants is not done
            if any(error is each for each in from_inside) or is_cancelled_here(error):
                raise
            raise failed(self._middleware, error) from None
        return answer

    async def _inside(self, given: Any, limit: asyncio.Timeout, from_inside: list[BaseException]) -> Any:
        limit.reschedule(None)
        try:
            return await self._call_next(given)
        except BaseException as error:
            from_inside.append(error)
            raise
        finally:
            if not limit.expired():
                limit.reschedule(asyncio.get_running_loop().time() + OWN_SECONDS)


def failed(middleware: Middleware, error: BaseException) -> MiddlewareFailed:
    """Its own words go to the worker's log alone, unless it stopped something on purpose."""
    named = f"The middleware {middleware.name!r}"
    match error:
        case Stopped():
            return MiddlewareFailed(f"{named} stopped this: {str(error)[:2_000].rstrip('.')}.")
        case TimeoutError():
            why = f"it took longer than {OWN_SECONDS:.0f} s"
        case _:
            why = type(error).__name__
    log.warning("the middleware %r failed", middleware.name, exc_info=error)
    return MiddlewareFailed(f"{named} on the worker failed: {why}.")


async def bounded(middleware: Middleware, work: Awaitable[Answer], kind: type[Answer]) -> Answer:
    """What a method comes to that stands around nothing. Raises MiddlewareFailed."""
    try:
        async with asyncio.timeout(OWN_SECONDS):
            answer = await work
            _check(answer, kind)
    except BaseException as error:  # as above: it is anybody's
        if is_cancelled_here(error):
            raise
        raise failed(middleware, error) from None
    return answer


def _alike(other: Any, given: Any) -> Any:
    """What goes on to the next. Raises TypeError: further in nobody would know whose it is."""
    if not isinstance(other, type(given)):
        raise TypeError(f"it hands on {type(other).__name__}, not {type(given).__name__}")
    return other


def _check(answer: object, kind: type) -> None:
    """Raises TypeError for what could not be recorded."""
    if not isinstance(answer, kind):
        raise TypeError(f"it gave back {type(answer).__name__}, not {kind.__name__}")
    if not isinstance(answer, ModelReply):
        return
    words = all(isinstance(each, str) for each in (answer.model, answer.stop_reason, answer.refusal))
    blocks = all(isinstance(each, TextBlock | ThinkingBlock | ToolCallBlock) for each in answer.content)
    if not (words and blocks and isinstance(answer.usage, Usage)):
        raise TypeError("it gave back a ModelReply with a field of another type")


_METHODS = ("on_reply", "on_system_prompt", "on_reasoning", "on_model_call", "on_acting", "handle_interrupt")


class MiddlewareSetupError(HookSetupError):
    """The operator's mistake: a middleware that can't be loaded."""


class Middlewares:
    """By name, in order. The same name given again replaces what was there, and keeps its place."""

    def __init__(
        self, everywhere: Mapping[str, Middleware] | None = None, offered: Mapping[str, Middleware] | None = None
    ) -> None:
        self._everywhere = dict(everywhere or {})
        self._offered = dict(offered or {})

    def chosen(self, names: tuple[str, ...] = ()) -> tuple[Middleware, ...]:
        """Those around an agent that names these: the worker's own first, which no agent can leave out. Raises NotHere,
        with the nearest name, for one that this worker does not have."""
        known = {**self._everywhere, **self._offered}
        for name in names:
            if name not in known:
                hint = did_you_mean(name, known, "they have")
                raise not_here(f"no middleware is named {name!r} on the workers that were asked; {hint}")
        return tuple({**self._everywhere, **{name: known[name] for name in names}}.values())

    @property
    def for_everybody(self) -> bool:
        return bool(self._everywhere)


def load_middlewares(names: str) -> Middlewares:
    """Those of `"shop.guards:CostGuard, ?shop.hints:Catalogue"`: classes, called without arguments, or objects.
    With a question mark: for agents that name it. Raises MiddlewareSetupError."""
    everywhere, offered = dict[str, Middleware](), dict[str, Middleware]()
    for part in names_in(names):
        place = part.removeprefix("?")
        made = found_at(place, "middleware", MiddlewareSetupError)
        if not isinstance(made, Middleware):
            raise MiddlewareSetupError(
                f"{place!r} is no middleware: it has to be a subclass of Middleware, or one's object"
            )
        for method in _METHODS:
            if not inspect.iscoroutinefunction(getattr(made, method)):
                raise MiddlewareSetupError(f"{place!r}: {method} has to be an async function")
        made.name = made.name or place.partition(":")[2]
        kept = offered if part.startswith("?") else everywhere
        (everywhere if kept is offered else offered).pop(made.name, None)
        kept[made.name] = made
    return Middlewares(everywhere, offered)
