"""Hooks of the operator's own on the system prompt: each gets it before a model call, and gives back what is sent.

What a hook changes from call to call is paid for: the provider's cache holds only what stays the same.
"""

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from longhaul.activities.models.failures.status_table import SetupError
from longhaul.activities.process.threads import in_own_thread, is_cancelled_here
from longhaul.agent.plain.errors import BadSetup
from longhaul.stores.loading import found_at, names_in

log = logging.getLogger(__name__)

HOOK_SECONDS = 30.0
"""A hook that takes longer has failed: the reply waits for it."""


@dataclass(frozen=True, slots=True)
class PromptContext:
    """The call that the system prompt is for."""

    agent: str
    user_id: str | None
    session_id: str
    model: str
    call_number: int
    """Number of model calls that the session made before this one."""


PromptHook = Callable[[str, PromptContext], str | Awaitable[str]]


class HookSetupError(BadSetup):
    """A mistake in the worker's settings: a hook that can't be loaded."""


class PromptHooks:
    """The hooks of one worker by their names, in the order in which they are run."""

    def __init__(self, hooks: Mapping[str, PromptHook] | None = None) -> None:
        self._hooks = dict(hooks or {})

    async def apply(self, system_prompt: str, context: PromptContext) -> str:
        """What the last hook gives back. Raises SetupError, naming the hook that failed."""
        for name, hook in self._hooks.items():
            try:
                async with asyncio.timeout(HOOK_SECONDS):
                    system_prompt = _text(await _run(hook, system_prompt, context))
            except BaseException as error:  # hooks are anybody's; a prompt without what one adds is not what was wanted
                if is_cancelled_here(error):
                    raise
                log.warning("the prompt hook %r failed", name, exc_info=error)
                # Its own words go to the worker's log alone: they may quote what is not for whoever asks.
                too_long = f"it took longer than {HOOK_SECONDS:.0f} s"
                why = too_long if isinstance(error, TimeoutError) else type(error).__name__
                raise SetupError(f"The prompt hook {name!r} on the worker failed: {why}.") from None
        return system_prompt


def load_hooks(names: str) -> PromptHooks:
    """The hooks of `"shop.prompts:greeting, shop.prompts:Policy"`, by those names: functions
    `(system_prompt, context) -> str`, plain or async, or objects with a method `on_system_prompt` that is one.
    A name that comes twice keeps its first place. Raises HookSetupError."""
    return PromptHooks({name: _load(name) for name in names_in(names)})


async def _run(hook: PromptHook, system_prompt: str, context: PromptContext) -> Any:
    if inspect.iscoroutinefunction(hook):
        return await hook(system_prompt, context)
    # A plain function may block, for ever too: the loop's own threads are few, and the worker's stores need them.
    answer = await in_own_thread(lambda _: hook(system_prompt, context))
    return await answer if inspect.isawaitable(answer) else answer


def _text(answer: object) -> str:
    if not isinstance(answer, str):
        raise TypeError(f"it gave back {type(answer).__name__}, and the system prompt is a str")
    return answer


def _load(name: str) -> PromptHook:
    made = found_at(name, "hook", HookSetupError)
    hook = getattr(made, "on_system_prompt", made)
    if not callable(hook):
        raise HookSetupError(f"{name!r} is no hook: it has to be a function, or an object with on_system_prompt")
    return cast(PromptHook, hook)
