"""Changes the ledger by questions of MCP servers, and by the answers to them."""

import json
from typing import assert_never

from longhaul.agent.entries.server_questions import InputAnswered, InputAsked, InputEntry
from longhaul.agent.fold import mcp_sampling
from longhaul.agent.fold import notices as fold_notices
from longhaul.agent.fold.calls import begin_to_wait
from longhaul.agent.fold.ledger.ledger import Ledger
from longhaul.agent.values.conversation.messages import ToolCallState
from longhaul.agent.values.conversation.server_questions import in_words
from longhaul.agent.values.findings_age import is_too_old


def apply(ledger: Ledger, entry: InputEntry) -> None:
    match entry:
        case InputAsked():
            _asked(ledger, entry)
        case InputAnswered():
            _answered(ledger, entry)
        case _ as never:
            assert_never(never)


def _asked(ledger: Ledger, entry: InputAsked) -> None:
    mcp_sampling.count(ledger, entry.sampled)
    call = ledger.current.calls[entry.call_id]
    call.asked, call.state, call.reason = entry.asked, ToolCallState.SUBMITTED, in_words(entry.asked)
    begin_to_wait(ledger, call, entry.at)
    fold_notices.begin(ledger, [call], entry.seq)


def _answered(ledger: Ledger, entry: InputAnswered) -> None:
    """Judged anew, and not just run: rules may have come while a person thought."""
    call = ledger.current.calls[entry.call_id]
    if call.asked is None:
        raise ValueError("an answer to a question that was never asked")
    before = call.asked.answers if call.asked.from_start else {}
    answers = {**before, **json.loads(entry.answers)}
    call.asked = call.asked.model_copy(update={"waits": False, "answers": answers})
    call.state, call.judged = ToolCallState.PENDING, 0
    call.facts_stale |= is_too_old(call.facts_at, entry.at)
