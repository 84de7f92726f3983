"""One reply from outside until it has ended, or waits for somebody: its events, or the message that it came to."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing

from agent.event import AgentEvent
from agent.messages import Msg, ToolResultState
from starter.asking import NoSession
from starter.following import LONGEST_PAUSE_SECONDS, LONGEST_WITH_STREAM_SECONDS
from starter.live_stream import LiveStream
from starter.patience import Pauses
from workflows.contract import ReplyResult

UNHEARD_SECONDS = 1.0
"""Until a question where a stream has said nothing yet."""

Ask = Callable[[str], Awaitable[ReplyResult]]
"""How the reply of an id stands."""


async def events_of(reply_id: str, standing: Ask, following: AsyncGenerator[AgentEvent]) -> AsyncGenerator[AgentEvent]:
    """Its own among the events of the session, which are closed with it."""
    doubted = False
    async with aclosing(following) as events:
        async for event in events:
            if event.reply_id == reply_id:
                yield event
                if event.type == "REPLY_END":
                    return
            doubted = doubted or event.state is ToolResultState.UNKNOWN
            if _may_wait(event, doubted=doubted) and (await standing(reply_id)).status == "waiting":
                return


async def message_of(reply_id: str, result: Ask, stream: LiveStream, *, just_asked: bool = False) -> Msg:
    """Asks when the stream says that a reply has come to something, and after pauses: a question costs the session's
    worker as much as a step of its own. `just_asked`: the reply is hardly made yet. Raises NoSession for an unknown
    one."""
    pauses = Pauses()
    async with aclosing(stream):
        if just_asked and await stream.reach(guess=True) and not await stream.rest(UNHEARD_SECONDS) and stream.heard:
            await stream.rest(LONGEST_WITH_STREAM_SECONDS)
        while True:
            found = await result(reply_id)
            if found.message is not None and found.status in ("finished", "waiting"):
                return found.message
            if found.status == "unknown":
                raise NoSession(f"the session knows no reply {reply_id!r}")
            await stream.make_sure()
            await stream.rest(_longest_rest(stream, pauses))


def _longest_rest(stream: LiveStream, pauses: Pauses) -> float:
    if stream.reached and stream.heard:
        return LONGEST_WITH_STREAM_SECONDS
    shortest = UNHEARD_SECONDS if stream.reached else 0.0
    return max(pauses.length(LONGEST_PAUSE_SECONDS), shortest)


def _may_wait(event: AgentEvent, *, doubted: bool) -> bool:
    """Whether a reply may stand still after this event. `doubted`: the outcome of a call of it is unknown."""
    return event.type.startswith("REQUIRE_") or (doubted and event.type in ("TOOL_RESULT_END", "CUSTOM"))
