"""Decides how a reply ends that was asked for in a form: by the finish function, or after bounded attempts without. And
how one ends in words that a tool says for the agent."""

from typing import Any

from longhaul.agent.decisions.session_tools.session_tool import InsideTool, failed, told
from longhaul.agent.entries import CallAnswered, Verdict
from longhaul.agent.fold.agent_state import OpenCall, ReplyContext
from longhaul.agent.fold.ledger import Ledger
from longhaul.agent.record import Record
from longhaul.agent.steps import Finish
from longhaul.agent.values.conversation.messages import ErrorInfo, FinishedReason
from longhaul.agent.values.conversation.tools import ANSWERED, DESCRIPTION, GENERATE_RESPONSE, LATER, value_of

_ASKED_IN_WORDS = 1
"""Answers in words after which the model is only reminded; after the next one it is made to call."""


def finish_function(schema: dict[str, Any]) -> InsideTool:
    return InsideTool(GENERATE_RESPONSE, DESCRIPTION, schema, answered)


def answered(call: OpenCall, ledger: Ledger) -> CallAnswered:
    if ledger.current.structured_output is not None:
        return failed(call, LATER)
    value = value_of(call.block)
    if value is None:
        return failed(call, "the arguments are no JSON object")
    return CallAnswered(result=told(call, ANSWERED), structured_output=value)


def verdict_on(call: OpenCall) -> Verdict:
    """No rule, mode or person is asked: it says something and does nothing. What nobody could check does not count."""
    if why := call.facts.not_understood:
        return Verdict(call_id=call.block.id, behavior="invalid", reason=why)
    return Verdict(call_id=call.block.id, behavior="allow", reason="it gives the answer that was asked for")


def ended(record: Record, reply: ReplyContext) -> Finish | None:
    """The end of a reply in a form, or in a tool's words, if it has come to one."""
    if reply.structured_schema is None:
        return Finish(reply.reply_id, FinishedReason.COMPLETED, said=reply.response) if reply.response else None
    if reply.structured_output is not None:
        return Finish(reply.reply_id, FinishedReason.COMPLETED)
    react = record.spec.react_config
    grace = react.structured_output_grace_iters
    if reply.unstructured >= grace:
        times = "once" if reply.unstructured == 1 else f"{reply.unstructured} times"
        message = f"The model answered {times} in words, and never called {GENERATE_RESPONSE}; what it said stands."
        return Finish(reply.reply_id, FinishedReason.UNSTRUCTURED, ErrorInfo(type="unstructured", message=message))
    if reply.cur_iter >= react.max_iters + grace:
        return Finish(reply.reply_id, FinishedReason.EXCEED_MAX_ITERS)
    return None


def must_call(record: Record, reply: ReplyContext) -> bool:
    """Whether the model is made to call the finish function now, where its provider can be told so."""
    return reply.structured_schema is not None and (
        reply.unstructured > _ASKED_IN_WORDS or reply.cur_iter >= record.spec.react_config.max_iters
    )
