"""The middlewares of one worker: those around every agent, and those that agents may name."""

import inspect
from collections.abc import Mapping

from longhaul.activities.attempt.workspaces import not_here
from longhaul.activities.context.prompt_hooks import HookSetupError
from longhaul.activities.middlewares.middleware import Middleware
from longhaul.agent.plain.text import did_you_mean
from longhaul.stores.loading import found_at, names_in

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
        made = _load(part.removeprefix("?"))
        kept = offered if part.startswith("?") else everywhere
        (everywhere if kept is offered else offered).pop(made.name, None)
        kept[made.name] = made
    return Middlewares(everywhere, offered)


def _load(place: str) -> Middleware:
    made = found_at(place, "middleware", MiddlewareSetupError)
    if not isinstance(made, Middleware):
        raise MiddlewareSetupError(
            f"{place!r} is no middleware: it has to be a subclass of Middleware, or one's object"
        )
    for method in _METHODS:
        if not inspect.iscoroutinefunction(getattr(made, method)):
            raise MiddlewareSetupError(f"{place!r}: {method} has to be an async function")
    made.name = made.name or place.partition(":")[2]
    return made
