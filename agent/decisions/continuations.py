"""Decides how a message that broke off is continued: how often, and with how much room."""

from longhaul.agent.fold.ledger.agent_state import ReplyContext
from longhaul.agent.record import Record
from longhaul.agent.steps import Finish
from longhaul.agent.values.conversation.messages import FinishedReason
from longhaul.agent.values.spec.agent_spec import ModelConfig

MOST_OUTPUT_TOKENS = 128_000
"""More than this no model says at once; a limit that is set higher is left alone."""


def too_often(record: Record, reply: ReplyContext) -> Finish | None:
    """The end of a reply whose model does not come to an end: what it has said stands, and that it is not whole."""
    if reply.broken_off <= record.spec.react_config.max_continuations:
        return None
    return Finish(reply.reply_id, FinishedReason.INCOMPLETE, reply.model_error)


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
