"""How somebody outside steers one session: tells it something, stops it, lets it stand still, changes its settings."""

from collections.abc import Sequence
from typing import Any

from agent.hooks import Hooks
from agent.messages import Msg
from starter.sending import Sending
from starter.wire import as_messages, plain


class Steering:
    """A part of `starter.session.Session`. Methods raise Refused with the session's own sentence."""

    hooks: Hooks
    """Functions before and after what this handle does: reply, observe, print. Those of `Longhaul.hooks` come first."""
    _sending: Sending

    async def observe(self, messages: str | Msg | Sequence[Msg]) -> None:
        """Add to the context without asking for a reply."""
        given = await self.hooks.before("observe", self, messages)
        await self._sending.update_with_start("observe", {"messages": as_messages(given)})
        await self.hooks.after("observe", self, given, None)

    async def configure(self, **settings: Any) -> None:
        """Change `mode`, `confirm` or `analyzers`, add `rules`, set `max_iters` or `model`; `by` says who."""
        await self._sending.update_with_start("configure", {key: plain(value) for key, value in settings.items()})

    async def interrupt(
        self, message: str | Msg | None = None, *, reply_id: str | None = None, request_id: str | None = None
    ) -> str:
        """End the reply that is being made, or just the named one; a message becomes the next request.

        Of a request that has not begun the named reply never will be; its message is empty, and says `interrupted`.
        Returns the reply's id. Raises Refused when there is no such reply or request.
        """
        body: dict[str, Any] = {} if message is None else {"message": as_messages(message)}
        if reply_id is not None:
            body["reply_id"] = reply_id
        if request_id is not None:
            body["request_id"] = request_id
        return str((await self._sending.update("interrupt", body))["interrupted"])

    async def pause(self, *, why: str = "", by: str = "") -> bool:
        """Begin nothing new until somebody resumes; what runs ends by itself. False: it was paused already.

        Of an idle session the next request waits. Decisions, results and messages are taken all the same.
        """
        return not (await self._sending.update("pause", {"why": why, "by": by}))["already"]

    async def step(self, *, by: str = "") -> bool:
        """Let a paused session take one step: run calls, make the context shorter, or ask the model. False: it takes
        one already. Raises Refused when it is not paused, and when there is no step to take."""
        return not (await self._sending.update("step", {"by": by}))["already"]

    async def resume(self, *, by: str = "") -> None:
        """Let a session go on that is paused, or held (`Status.hold` says why). Raises Refused when it is neither."""
        await self._sending.update("resume", {"by": by})
