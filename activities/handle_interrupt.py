"""handle_interrupt: what an agent's kind, or the middlewares of a session, say when its reply was interrupted."""

from temporalio import activity

from longhaul.activities.attempt.heartbeat import beating
from longhaul.activities.attempt.secrets import WorkerSecrets
from longhaul.activities.contract import HANDLE_INTERRUPT, InterruptInput
from longhaul.activities.kinds.kind_turns import KindTurns
from longhaul.activities.middlewares.chain import MiddlewareFailed
from longhaul.activities.middlewares.middleware import Interruption
from longhaul.activities.middlewares.wrapping import Wrapping
from longhaul.agent.decisions.model_turn import LONGEST_WORDS
from longhaul.agent.entries import InterruptHandled


class Interrupting:
    def __init__(self, wrapping: Wrapping, secrets: WorkerSecrets, turns: KindTurns | None = None) -> None:
        self._wrapping = wrapping
        self._turns = turns or KindTurns()
        self._masker = secrets.masker

    @activity.defn(name=HANDLE_INTERRUPT)
    async def handle_interrupt(self, ask: InterruptInput) -> InterruptHandled:
        """A hook that fails is told of, and ends the reply no less. Raises NotHere for one that this worker lacks,
        and ModelFailed for a kind whose code fails."""
        async with beating():
            wrapped = self._wrapping.of_interrupt(ask)
            try:
                said = await self._turns.parting(ask.kind, ask.message, ask.tools) if ask.kind else ""
                said = said or await wrapped.parting(Interruption(ask.message, ask.tools))
            except MiddlewareFailed as error:
                return InterruptHandled(reply_id=ask.reply_id, error=str(error))
        # Lone surrogates can't be recorded.
        words = said[:LONGEST_WORDS].encode("utf-8", "replace").decode()
        return InterruptHandled(reply_id=ask.reply_id, said=self._masker.masked(words))
