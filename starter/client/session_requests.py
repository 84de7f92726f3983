"""Requests to one session beside its replies: tell it something, stop it, let it stand still, change its settings;
stop what works in its background; make its context shorter.
"""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from pydantic_core import to_jsonable_python

from longhaul.agent.plain.errors import LonghaulError
from longhaul.agent.plain.hooks import Hooks
from longhaul.agent.values.budget import End, Raise
from longhaul.agent.values.conversation.messages import Msg
from longhaul.agent.values.spec.agent_spec import ContextConfig
from longhaul.starter.client.reading.glance import Moves
from longhaul.starter.client.updates import Sending
from longhaul.starter.client.wire import Refused, as_messages, check_given, plain
from longhaul.workflows.contract import Status

if TYPE_CHECKING:
    from longhaul.starter.client.states.state_operations import Stored


class Steering:
    """The part of `Session` that steers. Methods raise Refused with the session's own sentence."""

    hooks: Hooks
    """Functions that run before and after this handle's `reply`, `observe` and `print`. Hooks of `Longhaul.hooks` run
    first."""
    stored: "Stored"
    _sending: Sending

    async def observe(self, messages: str | Msg | Sequence[Msg]) -> None:
        """Add messages to the context without asking for a reply. Raises Refused if there is no message."""
        given = await self.hooks.before("observe", self, messages)
        if not (told := as_messages(given)):
            raise Refused("messages: there is none to observe; send text, a Msg, or a list with at least one Msg")
        await self._sending.update_with_start("observe", {"messages": told})
        await self.hooks.after("observe", self, given, None)

    async def notify(self, event: str, payload: str = "", *, request_id: str | None = None, by: str = "") -> bool:
        """Send an external event. It wakes the call that waits for it (`sleep` waits for `wake`); otherwise the session
        keeps it until a call does.

        `payload`: up to 10,000 characters; the model reads it as untrusted data. The same `request_id` sent again
        counts once. A closed session is opened again and keeps the event. Returns True if the event woke a call. Raises
        Refused, and NoSession if the session never existed.
        """
        body = {"event": event, "payload": payload, "request_id": request_id or uuid.uuid4().hex, "by": by}
        answer = await self.stored.open_or_not(lambda: self._sending.update("notify", body))
        return bool(answer["woken"])

    async def configure(self, **settings: Any) -> None:
        """Change settings from the next model call on: `mode`, `confirm`, `analyzers`, `max_iters`, `model`, or fields
        of `model_config`, as `{"reasoning_effort": "high"}`. `rules` are added to those that exist. `by` says who makes
        the change."""
        if not settings.keys() - {"by"}:
            raise Refused("configure: it changes nothing; give mode, rules, max_iters, model, …")
        await self._sending.update_with_start("configure", to_jsonable_python(settings))

    async def interrupt(
        self,
        message: str | Msg | Sequence[Msg] | None = None,
        *,
        reply_id: str | None = None,
        request_id: str | None = None,
    ) -> str:
        """End the reply that is under way, or only the reply that `reply_id` names. A `message` becomes the next
        request.

        If `reply_id` belongs to a request that has not started, the request never starts; its message is empty and says
        `interrupted`. Returns the reply's id. Raises Refused if there is no such reply or request.
        """
        given = None if message is None else await self.hooks.before("reply", self, message)
        body: dict[str, Any] = {} if given is None else {"message": as_messages(given)}
        if reply_id is not None:
            body["reply_id"] = reply_id
        if request_id is not None:
            body["request_id"] = request_id
        return str((await self._sending.update("interrupt", body))["interrupted"])

    async def pause(self, *, why: str = "", by: str = "") -> bool:
        """Start nothing new until somebody resumes the session; calls that run finish. Returns False if it was paused
        already.

        In an idle session, the next request waits. The session still accepts decisions, results and messages.
        """
        return not (await self._sending.update("pause", {"why": why, "by": by}))["already"]

    async def step(self, *, by: str = "") -> bool:
        """Let a paused session take one step: run calls, compress the context, or call the model. Returns False if it
        is taking a step already. Raises Refused if it is not paused, or if there is no step to take."""
        return not (await self._sending.update("step", {"by": by}))["already"]

    async def change_budget(
        self,
        more: Raise | Mapping[str, float] | None = None,
        *,
        end: End = "",
        child: str | None = None,
        by: str = "",
        request_id: str | None = None,
    ) -> dict[str, float]:
        """Raise the session's limits by these amounts, as in `{"cost": 1.5, "calls": 20}`, or end a reply that waits
        for more budget. `end`: `stop` ends it at once, `summarise` after a last model call. Returns the new limits by
        name.

        `child`: id of the call that started a sub-agent. The sub-agent gets the amounts, out of what this session has
        left. The same `request_id` sent again counts once. Raises Refused if the session has no budget or not that
        limit, or if `end` is given and no reply waits.
        """
        check_given("child", child)
        request = request_id or uuid.uuid4().hex
        body = {"more": plain(more or {}), "end": end, "by": by, "request_id": request}
        body |= {} if child is None else {"child": child}
        return dict((await self._sending.update("budget", body))["limits"])

    async def resume(self, *, by: str = "") -> None:
        """Continue a session that is paused, or quarantined (`Status.quarantine` says why). Raises Refused if the
        session is neither."""
        await self._sending.update("resume", {"by": by})


Ask = Callable[[], Awaitable[Status]]
STOP_SECONDS = 15.0
"""What takes no notice is killed within seconds; a command whose worker is away is given up later."""


async def ends_of(call_ids: list[str], status: Ask, moves: Moves) -> dict[str, str]:
    """By call id the word for how it has ended; empty where nobody has heard of that in time."""
    ends = dict.fromkeys(call_ids, "")
    with suppress(TimeoutError):
        async with asyncio.timeout(STOP_SECONDS):
            while not all(ends.values()):
                await moves.note()
                now = await status()
                known: dict[str, str] = {one.call_id: one.outcome for one in now.children}
                known |= {one.call_id: one.fate for one in now.commands}
                ends = {call_id: known.get(call_id, "unknown") for call_id in call_ids}
                if not all(ends.values()):
                    await moves.rest()
    return ends


class CompressionFailed(LonghaulError):
    """The compression failed and nothing has changed. The sentence comes from the session."""


class CompressionPending(LonghaulError):
    """The compression is requested, but happens only when the session continues: first somebody has to answer or resume
    it."""


async def compact(
    update: Callable[[str, dict[str, Any]], Awaitable[dict[str, Any]]],
    status: Ask,
    moves: Moves,
    context_config: ContextConfig | None,
    instructions: str,
    by: str,
) -> bool:
    """As `Session.compress_context`."""
    before = await status()
    body: dict[str, Any] = {"instructions": instructions, "by": by}
    if context_config is not None:
        body["context_config"] = plain(context_config)
    answer = await update("compact", body)
    return bool(answer["compacting"]) and await _done(status, before, moves)


async def _done(status: Ask, before: Status, moves: Moves) -> bool:
    while True:
        await moves.note()
        now = await status()
        if now.compressions > before.compressions:
            return True
        if now.compression_tries > before.compression_tries:
            raise CompressionFailed(now.compression_error)
        if not now.compressing:
            return False  # by the time that it could have been done there was nothing that could go
        if now.status in ("waiting", "paused"):
            whom = "somebody to resume it" if now.quarantine or now.paused_since else "answers to its open calls"
            raise CompressionPending(
                f"session {now.session_id!r} will do it when it continues; it waits for {whom}, see "
                f"`longhaul show {now.session_id}`"
            )
        await moves.rest()
