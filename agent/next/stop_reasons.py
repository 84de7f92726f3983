"""Decides what comes after messages that broke off, and after refusals: how many are enough, and who is asked."""

from longhaul.agent.fold.ledger.state import ReplyContext
from longhaul.agent.record import Record
from longhaul.agent.steps import Finish
from longhaul.agent.values.conversation.messages import FinishedReason
from longhaul.agent.values.conversation.stops import REFUSALS
from longhaul.agent.values.spec.agent_spec import ModelConfig

MOST_OUTPUT_TOKENS = 128_000
"""More than this no model says at once; a limit that is set higher is left alone."""


def too_often(record: Record, reply: ReplyContext) -> Finish | None:
    """The end of a reply whose model does not come to an end: what it has said stands, and that it is not whole."""
    if reply.broken_off <= record.spec.react_config.max_continuations:
        return None
    return Finish(reply.reply_id, FinishedReason.INCOMPLETE, reply.model_error)


def next_model(record: Record, reply: ReplyContext) -> str | None:
    """The first of the agent's models that has not failed at this step, nor refused in this reply."""
    models = (record.spec.model, record.spec.llm_config.fallback_model)
    return next((model for model in models if model is not None and not reply.is_passed_over(model)), None)


def without_a_model(reply: ReplyContext) -> Finish:
    """The end of a reply that no model is left for."""
    refused = reply.model_error is not None and reply.model_error.type in REFUSALS
    return Finish(reply.reply_id, FinishedReason.REFUSED if refused else FinishedReason.ERROR, reply.model_error)


def config_for(record: Record, model: str) -> ModelConfig:
    """How the model is called now: with twice the room each time that it used all of it to think, for asked with the
    same it would do the same."""
    config, reply = record.spec.call_config.for_model(model, record.spec.model), record.reply
    if reply is None or not reply.wordless:
        return config
    limit = config.max_output_tokens
    # Never shifted further than it takes: the setting allows a hundred continuations.
    wanted = limit << min(reply.wordless, 17)
    return config.model_copy(update={"max_output_tokens": min(wanted, max(limit, MOST_OUTPUT_TOKENS))})
