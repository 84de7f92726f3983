"""The letter that asks for a shorter context."""

from longhaul.agent.decisions.compaction import threshold, too_big_without_context
from longhaul.agent.entries import all_entries as e
from longhaul.agent.fold.context_tokens import tokens
from longhaul.agent.letters.bodies import Compact, Unusable
from longhaul.agent.letters.letter import Received
from longhaul.agent.record import Record

TOO_BIG = "too_big"
"""Kind of refusal: no compression could help, for the system prompt and the tools alone are too large."""


def compact(record: Record, body: Compact) -> Received:
    config = body.context_config or record.spec.context_config
    if not record.provided.window:
        raise Unusable("there is nothing to compact: this session has made no reply yet")
    if too_big := too_big_without_context(record, config):
        raise Unusable(too_big.message, TOO_BIG)
    used, limit = tokens(record), threshold(record, config)
    answer = {"compacting": used > limit, "context_tokens": used, "threshold": limit, "epoch": record.context.epoch}
    if used <= limit:
        return Received((), answer)
    asked = e.CompressAsked(config=body.context_config, instructions=body.instructions, by=body.by)
    return Received((asked,), answer)
