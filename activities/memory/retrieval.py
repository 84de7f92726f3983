"""Looks for what may help with a request, before its reply begins: memories of its user, and passages of knowledge
bases. What is found is recorded with the reply's preparation, so that no retry and no replay looks again."""

import asyncio
import logging
from collections.abc import Awaitable

from temporalio.exceptions import ApplicationError

from longhaul.activities.attempt.workspaces import not_here
from longhaul.activities.contract import PrepareReply
from longhaul.activities.process.cancelled_here import is_cancelled_here
from longhaul.agent.plain.text import did_you_mean
from longhaul.agent.values.conversation.messages import Msg
from longhaul.agent.values.conversation.prompt import hint_message
from longhaul.agent.values.spec.knowledge import (
    KNOWLEDGE_SOURCE,
    MEMORY_SOURCE,
    STATIC_LIMIT,
    found_hint,
    is_static,
    told_memory,
    told_passage,
)
from longhaul.stores.memories.memories import MemoryOwner
from longhaul.stores.memories.open_memories import LongTerm

ANSWER_SECONDS = 20.0
log = logging.getLogger(__name__)


class Retrieval:
    def __init__(self, lasting: LongTerm) -> None:
        self._memories, self._knowledge = lasting.memories, lasting.knowledge

    async def hints(self, ask: PrepareReply) -> tuple[Msg, ...]:
        """What was found, or that a store can't be read now. Raises NotHere for a base that there is not."""
        found: list[Msg | None] = []
        if is_static(ask.spec.long_term_memory_mode):
            found.append(await _or_said("The long-term memory", self._of_memory(ask)))
        if ask.spec.knowledge_bases:
            found.append(await _or_said("The knowledge", self._of_knowledge(ask)))
        return tuple(filter(None, found))

    async def _of_memory(self, ask: PrepareReply) -> Msg | None:
        """Not of the same session: that stands in the conversation."""
        owner = MemoryOwner(ask.user_id, ask.spec.name)
        found = await self._memories.retrieve(owner, ask.request, STATIC_LIMIT, not_of=ask.runtime.session_id)
        return found_hint((told_memory(each.text, each.at) for each in found), MEMORY_SOURCE) if found else None

    async def _of_knowledge(self, ask: PrepareReply) -> Msg | None:
        _check(ask.spec.knowledge_bases, await self._knowledge.bases())
        if not is_static(ask.spec.knowledge_mode):
            return None
        found = await self._knowledge.search(ask.spec.knowledge_bases, ask.request, STATIC_LIMIT)
        told = (told_passage(each.text, each.base, each.document) for each in found)
        return found_hint(told, KNOWLEDGE_SOURCE) if found else None


async def _or_said(what: str, look: Awaitable[Msg | None]) -> Msg | None:
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            return await look
    except ApplicationError:
        raise
    except BaseException as error:  # A store may be the operator's own and raise anything: the reply is made without.
        if is_cancelled_here(error):
            raise
        log.exception("%s can't be read", what)
        return hint_message(f"{what} can't be read now: do without it.", "unavailable")


def _check(named: tuple[str, ...], bases: list[str]) -> None:
    for name in named:
        if name not in bases:
            hint = did_you_mean(name, bases, "there are") if bases else "there is none yet"
            raise not_here(
                f"no knowledge base is named {name!r} on the workers that were asked (`longhaul knowledge add`); {hint}"
            )
