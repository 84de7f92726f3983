"""The agent kinds of one worker, by name: pipelines, and the classes under `@agent_kind` of the modules of
LONGHAUL_TOOLS."""

import inspect
import re
from collections.abc import Mapping

from longhaul.activities.attempt.workspaces import not_here
from longhaul.activities.kinds.kind import AgentKind
from longhaul.activities.kinds.pipelines import PIPELINES
from longhaul.activities.kinds.rules import KindSetupError, check_module
from longhaul.agent.plain.text import LONGEST_NAME, did_you_mean
from longhaul.stores.loading import module_at, names_in, setting_of

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_METHODS = ("reply", "observe", "handle_interrupt")


class Kinds:
    def __init__(self, known: Mapping[str, type[AgentKind]] | None = None) -> None:
        self._known = dict(known or {})

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._known)

    def get(self, name: str) -> type[AgentKind]:
        """Raises NotHere for a kind that this worker does not have."""
        if name not in self._known:
            hint = did_you_mean(name, self._known, "they have")
            shown = name[:LONGEST_NAME]
            raise not_here(f"no agent kind is named {shown!r} on the workers that were asked (LONGHAUL_TOOLS); {hint}")
        return self._known[name]


def is_kind(value: object) -> bool:
    return (
        inspect.isclass(value) and issubclass(value, AgentKind) and "kind_name" in vars(value) and value.kind_name != ""
    )


def load_kinds(names: str) -> Kinds:
    """The pipelines, and in their place those of the modules in `names`, which have been imported for their tools.

    Raises KindSetupError for two of one name, a wrong one, and a module that does what a kind's may not."""
    found = dict[str, type[AgentKind]]()
    for module in names_in(names):
        for value in vars(module_at(module, setting_of("tool"))).values():
            if is_kind(value) and found.setdefault(value.kind_name, value) is not value:
                raise KindSetupError(f"two agent kinds have the name {value.kind_name!r}; rename one")
    for name, kind in found.items():
        _check(name, kind)
    return Kinds({kind.kind_name: kind for kind in PIPELINES} | found)


def _check(name: str, kind: type[AgentKind]) -> None:
    if not NAME.fullmatch(name):
        raise KindSetupError(f"{name!r} can't be the name of an agent kind: it takes letters, digits, `.`, `_` and `-`")
    if kind.reply is AgentKind.reply:
        raise KindSetupError(f"the agent kind {name!r} defines no reply")
    for method in _METHODS:
        if not inspect.iscoroutinefunction(getattr(kind, method)):
            raise KindSetupError(f"the agent kind {name!r}: {method} has to be an async function")
    check_module(kind.__module__)
