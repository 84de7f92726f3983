"""One reply from outside until it has ended, or waits for somebody: its events, or the message that it came to."""

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing

from longhaul.agent.values.conversation.messages import Msg
from longhaul.agent.views.event_types import AgentEvent
from longhaul.starter.client.reading.asking import NoReply
from longhaul.starter.client.reading.event_deduplication import ToldOnce
from longhaul.starter.client.reading.following import LONGEST_WITH_STREAM_SECONDS, Following
from longhaul.starter.client.reading.glance import Moves
from longhaul.starter.client.reading.live_stream import LiveStream, ToldEnds
from longhaul.starter.client.reading.questions import Questions, Until
from longhaul.starter.reach.query_retries import Pauses
from longhaul.starter.visible import one_line
from longhaul.workflows.contract import ReplyResult

log = logging.getLogger(__name__)

UNHEARD_SECONDS = 1.0
"""Until a look where a stream has said nothing yet."""
LONGEST_UNHEARD_SECONDS = 5.0
LONGEST_HEARD_SECONDS = 20.0
"""A stream that is heard tells nearly all ends. This is for those that it does not tell."""

Ask = Callable[[str], Awaitable[ReplyResult]]
"""How the reply of an id stands."""


async def events_of(
    reply_id: str, following: Following, questions: Questions, *, once: bool
) -> AsyncGenerator[AgentEvent]:
    """Its own among the events of the session, whose reader is closed with it. `once`: of what was told live, the
    record tells the rest."""
    told, until = ToldOnce(), Until(following, questions)
    async with aclosing(until):
        while not until.over:
            for event in await until.next():
                if event.reply_id == reply_id:
                    for each in told.of(event) if once else (event,):
                        yield each


async def message_of(reply_id: str, result: Ask, stream: LiveStream, moves: Moves, *, just_asked: bool = False) -> Msg:
    """Asks when the stream says that the reply may have ended, or the server that the session has come to rest: a
    question costs the session's worker as much as a step of its own. What its workers lack is logged. `just_asked`: the
    request is a new one, with a reply of its own to come. Raises NoReply for an unknown one."""
    pauses, ends, lacking = Pauses(), ToldEnds(reply_id), ""
    async with aclosing(stream):
        await stream.reach(guess=True)
        if just_asked and not await stream.pass_over(ends):
            await _rest(stream, ends, moves, pauses)
        elif not just_asked:
            await moves.note()
        while True:
            await stream.pass_over(ends)
            found = await result(reply_id)
            if found.message is not None and found.status in ("finished", "waiting"):
                if stream.silent:
                    stream.doubt()
                return found.message
            if found.status == "unknown":
                raise NoReply(f"the session knows no reply {reply_id!r}")
            if found.lacking and found.lacking != lacking:
                lacking = found.lacking
                log.warning("reply %s waits for a worker that can go on: %s", reply_id, one_line(lacking))
            if found.status != "queued":
                ends.is_made(found.message.id if found.message is not None else reply_id)
            if stream.silent and stream.reached:
                await stream.look_again()  # it says nothing of what is recorded
            await _rest(stream, ends, moves, pauses)


async def _rest(stream: LiveStream, ends: ToldEnds, moves: Moves, pauses: Pauses) -> None:
    """Until it is time to ask."""
    while not await stream.rest(_pause(stream, pauses), ends):
        if not stream.heard:
            await stream.make_sure()
        if await moves.due(told=stream.reached and stream.heard and not stream.silent):
            return


def _pause(stream: LiveStream, pauses: Pauses) -> float:
    """Seconds between looks. They cost little, but not nothing: the longer it has been, the less a person minds."""
    if stream.reached and stream.heard:
        return max(pauses.length(LONGEST_HEARD_SECONDS), LONGEST_WITH_STREAM_SECONDS)
    return max(pauses.length(LONGEST_UNHEARD_SECONDS), UNHEARD_SECONDS if stream.reached else 0.0)
