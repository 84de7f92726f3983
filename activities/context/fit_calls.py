"""A model call of a session that is sent nothing its provider would refuse, as far as anybody can know, and is made
again without what it refuses nevertheless."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from longhaul.activities.context.context_cache import SessionContext
from longhaul.activities.context.repairs import Repairing
from longhaul.activities.models.model import ModelReply, ModelRequest
from longhaul.activities.models.requests.thinking_origin import Beginnings, chain_of, fitting, signed, with_origin
from longhaul.agent.entries import LeftOut, Repair
from longhaul.agent.fold.context_state import rewritten
from longhaul.agent.values.conversation.messages import (
    CONTINUES,
    Msg,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    message_digest,
)
from longhaul.agent.values.conversation.prompt import goes_on
from longhaul.agent.values.spec.agent_spec import ModelConfig

REFUSED_CHARS = 1_000
Said = TextBlock | ThinkingBlock | ToolCallBlock


class FitCall:
    """One call. `told`: the session's context as the agent hears it. `origin`: who answers for the model's thoughts."""

    def __init__(
        self,
        session: SessionContext,
        told: Sequence[Msg],
        model: str,
        origin: Callable[[ModelConfig], str],
        *,
        takes_no_images: bool,
    ) -> None:
        self._origin = origin
        self._session = session
        self._told = told
        self._model = model
        self._repairing = Repairing(model, takes_no_images=takes_no_images)
        self.repair: Repair | None = None
        """What the record is to be told of it. The session's context is repaired when it is set."""

    async def look_into(self, first: int) -> None:
        """Into the messages from that one on: the others have been sent before."""
        await self._repairing.look_into(self._told[first:])

    async def ask(self, request: ModelRequest, call: Callable[[ModelRequest], Awaitable[ModelReply]]) -> ModelReply:
        """The reply, its thoughts with their origin. Raises what `call` does."""
        origin = self._origin(request.config)
        as_recorded = request.messages is self._told  # a middleware may have changed them
        chain = self._session.chain if as_recorded else chain_of(request.messages)
        reply = await self._repairing.asked(fitting(request, origin, Beginnings(request, chain)), call, origin)
        self._note_repair()
        chain = self._session.chain if as_recorded else chain
        behind = Beginnings(request, chain).before(len(chain)) if any(map(signed, reply.content)) else ""
        said = _continued(reply.content) if goes_on(request.messages) else reply.content
        return replace(reply, content=with_origin(said, origin, behind))

    def _note_repair(self) -> None:
        outs = self._repairing.left_out(self._session.messages)
        learned = self._model if self._repairing.learned_no_images else ""
        if not outs and not learned:
            return
        if outs:
            self._rewrite(outs)
        self.repair = Repair(
            left_out=outs,
            takes_no_images=learned,
            refused="; ".join(self._repairing.refused)[:REFUSED_CHARS],
            context_digest=self._session.chain[-1],
            context_length=len(self._session.chain),
        )

    def _rewrite(self, outs: Sequence[LeftOut]) -> None:
        messages = list(self._session.messages)
        for place, message in rewritten(messages, outs):
            messages[place] = message
        self._session.cut(0)
        for message in messages:
            self._session.append(message, message_digest(message))


def _continued(content: Sequence[Said]) -> tuple[Said, ...]:
    """With a mark on the text that belongs to what was said before: whoever reads both parts breaks no line there."""
    at = next((at for at, block in enumerate(content) if not isinstance(block, ThinkingBlock)), -1)
    first = content[at] if content else None
    if not isinstance(first, TextBlock):
        return tuple(content)
    marked = first.model_copy(update={"extras": {**first.extras, CONTINUES: True}})
    return (*content[:at], marked, *content[at + 1 :])
