"""Named functions before and after what an agent does: in order, replaced by name, removed, cleared.

Where they run is up to whoever asks them; what they do to the world is theirs.
"""

import inspect
from collections.abc import Callable, Iterable
from typing import Any

from longhaul.agent.plain.errors import BadInput

POINTS = ("reply", "observe", "print", "reasoning", "acting", "model_call", "system_prompt")
"""As in `pre_reply` and `post_reply`."""

Hook = Callable[..., Any]
"""A hook before a point gets `(who, given)`, after a point `(who, given, came)`. Plain or async. None changes nothing;
any other value replaces what was given, or what came."""


class UnknownHook(BadInput, ValueError):
    """There is no such point for a hook, or no hook of that name there."""


class Hooks:
    """Hooks for all, or for one object; then the parent's hooks run first."""

    def __init__(self, points: Iterable[str] = POINTS, parent: "Hooks | None" = None) -> None:
        self.parent = parent
        self._kinds: dict[str, dict[str, Hook]] = {
            f"{when}_{point}": {} for point in points for when in ("pre", "post")
        }

    def register(self, kind: str, name: str, hook: Hook) -> None:
        """Add a hook. `kind`: `pre_observe`, `post_print`, …. A hook with the same name is replaced, and the new one
        keeps its place."""
        self._at(kind)[name] = hook

    def remove(self, kind: str, name: str) -> None:
        """Remove a hook. Raises UnknownHook."""
        there = self._at(kind)
        if name not in there:
            raise UnknownHook(f"no {kind} hook is named {name!r}; there are: {', '.join(there) or 'none'}")
        del there[name]

    def clear(self, kind: str | None = None) -> None:
        """Remove all hooks of that kind, or of every kind. A parent's hooks stay."""
        for there in [self._at(kind)] if kind else self._kinds.values():
            there.clear()

    def names(self, kind: str) -> tuple[str, ...]:
        """Names of the hooks, in the order in which they run, a parent's first."""
        return (*(self.parent.names(kind) if self.parent else ()), *self._at(kind))

    def stand_at(self, point: str) -> bool:
        """Whether there is any hook before or after this point."""
        return bool(self._all(f"pre_{point}") or self._all(f"post_{point}"))

    async def before(self, point: str, who: Any, given: Any) -> Any:
        """Run the hooks before a point, and return what the last hook gives. Raises what a hook raises."""
        for hook in self._all(f"pre_{point}"):
            given = _or(await _answer(hook(who, given)), given)
        return given

    async def after(self, point: str, who: Any, given: Any, came: Any) -> Any:
        for hook in self._all(f"post_{point}"):
            came = _or(await _answer(hook(who, given, came)), came)
        return came

    def _all(self, kind: str) -> list[Hook]:
        # Of its own list: a hook may remove itself.
        return [*(self.parent._all(kind) if self.parent else ()), *self._at(kind).values()]  # noqa: SLF001  its own kind

    def _at(self, kind: str) -> dict[str, Hook]:
        if kind not in self._kinds:
            raise UnknownHook(f"there is no {kind!r} to stand at; there are: {', '.join(self._kinds)}")
        return self._kinds[kind]


def _or(answer: Any, otherwise: Any) -> Any:
    return otherwise if answer is None else answer


async def _answer(answer: Any) -> Any:
    return await answer if inspect.isawaitable(answer) else answer
