"""record_memory: a reply that is about to end, written down in the long-term memory of its user; once, however often
it is tried, for its id is the key."""

import asyncio

from temporalio import activity

from longhaul.activities.attempt.heartbeat import beating
from longhaul.activities.attempt.secrets import WorkerSecrets
from longhaul.activities.contract import RECORD_MEMORY, MemoryInput
from longhaul.activities.process.cancelled_here import is_cancelled_here
from longhaul.activities.process.output_truncation import words_of
from longhaul.agent.entries import MemoryRecorded
from longhaul.agent.values.spec.knowledge import dialogue
from longhaul.stores.memories.memories import MOST_CHARS, Memories, MemoryOwner, NewMemory

TRIES = 3
ANSWER_SECONDS = 20.0


class Memorising:
    def __init__(self, memories: Memories, secrets: WorkerSecrets) -> None:
        self._memories, self._masker = memories, secrets.masker

    @activity.defn(name=RECORD_MEMORY)
    async def record_memory(self, ask: MemoryInput) -> MemoryRecorded:
        """A store that fails is asked again, and then the reply ends without: somebody waits for it."""
        text = self._masker.masked(dialogue(ask.asked, ask.agent, ask.answered))[:MOST_CHARS]
        if not text:
            return MemoryRecorded(reply_id=ask.reply_id)
        new = NewMemory(f"{ask.session_id}/{ask.reply_id}", text, ask.session_id)
        try:
            async with beating(), asyncio.timeout(ANSWER_SECONDS):
                await self._memories.record(MemoryOwner(ask.user_id, ask.agent), [new])
        except BaseException as error:  # A store may be the operator's own and raise anything: the reply has been made.
            if activity.info().attempt < TRIES or is_cancelled_here(error):
                raise
            return MemoryRecorded(reply_id=ask.reply_id, error=self._masker.masked(words_of(error)))
        return MemoryRecorded(reply_id=ask.reply_id, memories=1)
