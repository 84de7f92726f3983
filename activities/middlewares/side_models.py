"""The models that tools may have asked: the session's middlewares stand around these calls, and outcomes say what they
took."""

from functools import partial

from longhaul.activities.contract import RunTool
from longhaul.activities.middlewares.wrapping import Wrapped
from longhaul.activities.models.model import Delta, ModelReply, ModelRequest
from longhaul.activities.models.providers import Providers
from longhaul.activities.models.side_model import SideModel
from longhaul.agent.entries import CallOutcome, InputAsked, ToolReturned


class SideModels:
    def __init__(self, providers: Providers | None = None) -> None:
        self._providers = providers or Providers()

    def of(self, ask: RunTool, wrapped: Wrapped) -> SideModel | None:
        """None for a call that has no leave."""
        if ask.sampling is None:
            return None

        async def asked(model: str, request: ModelRequest) -> ModelReply:
            return await wrapped.side_call(request, partial(self._call, model))

        return SideModel(ask.sampling, asked)

    async def _call(self, model: str, request: ModelRequest) -> ModelReply:
        return await self._providers.call(model, request, _unheard)


def with_taken(outcome: CallOutcome, model: SideModel | None) -> CallOutcome:
    """The outcome, with what was asked until then."""
    taken = model.taken if model else None
    if taken is None or not isinstance(outcome, ToolReturned | InputAsked):
        return outcome
    return outcome.model_copy(update={"sampled": taken})


def _unheard(delta: Delta) -> None:
    """Nobody listens: the answer goes to the server that has asked."""
