"""An offloader keeps the content that leaves the context (seed 001), for the agent to read back.

Opens the offloader that an agent's setting means on this worker, and keeps its content apart by owner.
"""

import asyncio
import inspect
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, cast

from longhaul.agent.plain.errors import BadSetup
from longhaul.agent.values.conversation.messages import Msg, ToolResultBlock
from longhaul.stores.loading import found_at, names_in
from longhaul.stores.names import owner_name, readable_folders, workdir_of
from longhaul.stores.offload.local_workspace import LocalWorkspace
from longhaul.stores.state.store import BadStoreSetting


class Offloader(Protocol):
    """Any object with these two methods is an offloader. Both return a reference that the model reads: a path or an
    address.

    Longhaul may repeat a call with the same arguments, at any time and from two workers at once, because an activity is
    repeated after a crash. Then nothing may be stored twice, and the reference must be the same. Both may raise
    anything; the session then continues without the reference. More keyword arguments may come: take `**kwargs`.
    """

    async def offload_context(self, session_id: str, msgs: Sequence[Msg], **kwargs: Any) -> str:
        """Add messages to the session's offloaded messages. `batch="epoch-2"` names the step that they belong to. A
        message with the same batch and content is the same message."""
        ...

    async def offload_tool_result(self, session_id: str, tool_result: ToolResultBlock, **kwargs: Any) -> str:
        """Store the whole output. Two results with the same id and different output are both stored."""
        ...


log = logging.getLogger(__name__)

OffloaderFor = Callable[[str], Offloader]
"""The offloader of one owner, named `agent/user` (see `names.owner_name`): a folder, a prefix of keys."""

KEPT_OFFLOADERS = 1_000
IN_CLEAR_TEXT = ("workspace", "redis")
"""What these keep, tools and commands read as it lies there."""
METHODS = ("offload_context", "offload_tool_result")


class OffloadSetupError(BadSetup):
    """A mistake of the operator or the agent, as a sentence: this worker has no such offloader."""


class Offloaders:
    """The offloaders of one worker, each opened at its first use."""

    def __init__(
        self,
        data_dir: Path,
        redis_url: str | None = None,
        own: Mapping[str, OffloaderFor] | None = None,
        *,
        of_session: Callable[[], Offloader] | None = None,
        in_clear_text: bool = True,
    ) -> None:
        """`own`: further ones by the names that agents give them, from `load_offloaders`. `of_session` makes the one
        that keeps what the running activity's session offloads among its blobs; it does so for IN_CLEAR_TEXT too where
        nothing may lie so."""
        self._of_session = of_session
        self._in_clear_text = in_clear_text
        self._data_dir = data_dir
        self._redis_url = redis_url
        self._own = own or {}
        self._opened: dict[tuple[str, str], Offloader | None] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """Those that agents may name."""
        shared = ("blobs",) if self._of_session else ()
        return ("workspace", "none", *shared, *(("redis",) if self._redis_url else ()), *self._own)

    async def get(self, setting: str, agent: str, user_id: str | None) -> Offloader | None:
        """None where nothing is to be kept. Raises OffloadSetupError, or what an offloader of the operator's raises."""
        if setting == "blobs" or (setting in IN_CLEAR_TEXT and not self._in_clear_text):
            return self._of_session() if self._of_session else None
        key = (setting, owner_name(agent, user_id))
        if key not in self._opened:
            # In a thread: paths are resolved, and the operator's own code runs.
            opened = await asyncio.to_thread(
                open_offloader, *key, data_dir=self._data_dir, redis_url=self._redis_url, own=self._own
            )
            if len(self._opened) >= KEPT_OFFLOADERS:
                self._opened.clear()
            self._opened[key] = opened
        return self._opened[key]

    async def folders(self, setting: str, agent: str, user_id: str | None, session_id: str) -> tuple[Path, ...]:
        """Where a session's tools may read what an operator's own LocalWorkspace keeps for it; none for an offloader of
        another kind, or one that this worker does not have."""
        if setting not in self._own or not session_id:
            return ()
        try:
            offloader = await self.get(setting, agent, user_id)
        except Exception as error:  # noqa: BLE001  the operator's code; whoever offloads hears of it, and reading asks
            log.warning("offloader %s: %s", setting, error)
            return ()
        return readable_folders(offloader.workdir, session_id) if isinstance(offloader, LocalWorkspace) else ()


def open_offloader(
    setting: str,
    owner: str,
    *,
    data_dir: Path,
    redis_url: str | None = None,
    own: Mapping[str, OffloaderFor] | None = None,
) -> Offloader | None:
    """The offloader that `AgentSpec.offloader` names, for one owner; None for `none`. Raises OffloadSetupError."""
    match setting:
        case "none":
            return None
        case "workspace":
            folder = workdir_of(data_dir.resolve(), owner)
            if folder.resolve() != folder:
                raise OffloadSetupError(f"offloader: {str(folder)!r} leads elsewhere by a link; remove the link")
            return LocalWorkspace(folder)
        case "redis":
            from longhaul.stores.offload.redis_offloader import RedisOffloader  # noqa: PLC0415  only who uses Redis loads it

            if not redis_url:
                raise OffloadSetupError("offloader: 'redis' needs LONGHAUL_REDIS_URL on the workers, and it is not set")
            try:
                return RedisOffloader(redis_url, f"longhaul:offload:{owner}")
            except BadStoreSetting as error:
                raise OffloadSetupError(f"LONGHAUL_REDIS_URL: {str(error).removeprefix('store: ')}") from None
        case _ if own and setting in own:
            return own[setting](owner)
        case _:
            known = ", ".join(("workspace", "blobs", "redis", "none", *sorted(own or {})))
            raise OffloadSetupError(
                f"offloader: this worker has no {setting[:200]!r}; it has {known}. Name one of these, or add "
                "module:name to LONGHAUL_OFFLOADERS on the workers"
            )


def load_offloaders(names: str) -> dict[str, OffloaderFor]:
    """Offloaders of the operator's own, from `"shop.buckets:for_owner, shop.buckets:SHARED"`, by those names.

    Each is an object with the two methods of `Offloader`, or a class or function that makes one when it is called with
    the owner's name. Agents may name only what is loaded here: the modules of a worker are not the choice of whoever
    starts a session. Raises OffloadSetupError.
    """
    return {name: _load(name) for name in names_in(names)}


def _load(name: str) -> OffloaderFor:
    found: object = found_at(name, "offloader", OffloadSetupError, make=False)
    if inspect.isclass(found) or not _is_offloader(found):
        if not callable(found):
            raise OffloadSetupError(f"{name!r} is no offloader: it needs {' and '.join(METHODS)}, both `async def`")
        make = cast("Callable[[str], object]", found)
        return lambda owner: _check_offloader(name, make(owner))
    return lambda _: cast(Offloader, found)


def _check_offloader(name: str, made: object) -> Offloader:
    if not _is_offloader(made):
        raise OffloadSetupError(f"{name!r} makes no offloader: it needs {' and '.join(METHODS)}, both `async def`")
    return cast(Offloader, made)


def _is_offloader(candidate: object) -> bool:
    return all(inspect.iscoroutinefunction(getattr(candidate, method, None)) for method in METHODS)
