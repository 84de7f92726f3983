"""handle_interrupt: what the middlewares of a session say when its reply was interrupted."""

from temporalio import activity

from activities.contract import HANDLE_INTERRUPT, HandleInterrupt
from activities.heartbeat import beating
from activities.middlewares.chain import MiddlewareFailed
from activities.middlewares.middleware import Interruption
from activities.middlewares.wrapping import Wrapping
from activities.secrets import Secrets
from agent.entries import InterruptHandled
from agent.interrupting import LONGEST_WORDS


class Interrupting:
    def __init__(self, wrapping: Wrapping, secrets: Secrets) -> None:
        self._wrapping = wrapping
        self._masker = secrets.masker

    @activity.defn(name=HANDLE_INTERRUPT)
    async def handle_interrupt(self, ask: HandleInterrupt) -> InterruptHandled:
        """A hook that fails is told of, and ends the reply no less. Raises NotHere for one that this worker lacks."""
        async with beating():
            wrapped = self._wrapping.of_interrupt(ask)
            try:
                said = await wrapped.parting(Interruption(ask.message, ask.tools))
            except MiddlewareFailed as error:
                return InterruptHandled(reply_id=ask.reply_id, error=str(error))
        # Lone surrogates can't be recorded.
        words = said[:LONGEST_WORDS].encode("utf-8", "replace").decode()
        return InterruptHandled(reply_id=ask.reply_id, said=self._masker.masked(words))
