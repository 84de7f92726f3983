"""Decides which of an agent's models is asked now, and how a reply ends that none is left for."""

from longhaul.agent.fold.ledger.agent_state import ReplyContext
from longhaul.agent.record import Record
from longhaul.agent.steps import Finish
from longhaul.agent.values.conversation.messages import FinishedReason
from longhaul.agent.values.conversation.stop_reasons import REFUSALS


def next_model(record: Record, reply: ReplyContext) -> str | None:
    """The first of the agent's models that has not failed at this step, nor refused in this reply."""
    models = (record.spec.model, record.spec.llm_config.fallback_model)
    return next((model for model in models if model is not None and not reply.is_passed_over(model)), None)


def without_a_model(reply: ReplyContext) -> Finish:
    """The end of a reply that no model is left for."""
    refused = reply.model_error is not None and reply.model_error.type in REFUSALS
    return Finish(reply.reply_id, FinishedReason.REFUSED if refused else FinishedReason.ERROR, reply.model_error)
