"""Decides how a reply ends that was asked for in a form: by the finish function, or after bounded attempts without. And
how one ends in words that a tool says for the agent."""

from typing import Any

from longhaul.agent.decisions.session_tools.session_tool import InWorkflowTool, failed, result_of
from longhaul.agent.entries import CallAnswered, CallRuling
from longhaul.agent.journal import Journal
from longhaul.agent.reducer.agent_state import OpenCall, ReplyContext
from longhaul.agent.reducer.session_state import SessionState
from longhaul.agent.steps import Finish
from longhaul.agent.values.conversation.messages import ErrorInfo, FinishedReason
from longhaul.agent.values.conversation.tools import ANSWERED, DESCRIPTION, GENERATE_RESPONSE, LATER, value_of

_ASKED_IN_WORDS = 1
"""Answers in words after which the model is only reminded; after the next one it is made to call."""


def finish_function(schema: dict[str, Any]) -> InWorkflowTool:
    return InWorkflowTool(GENERATE_RESPONSE, DESCRIPTION, schema, answered)


def answered(call: OpenCall, session: SessionState) -> CallAnswered:
    if session.current.structured_output is not None:
        return failed(call, LATER)
    value = value_of(call.block)
    if value is None:
        return failed(call, "the arguments are no JSON object")
    return CallAnswered(result=result_of(call, ANSWERED), structured_output=value)


def ruling_on(call: OpenCall) -> CallRuling:
    """No rule, mode or person is asked: it says something and does nothing. What nobody could check does not count."""
    if why := call.analysis.not_understood:
        return CallRuling(call_id=call.block.id, behavior="invalid", reason=why)
    return CallRuling(call_id=call.block.id, behavior="allow", reason="it gives the answer that was asked for")


def ended(journal: Journal, reply: ReplyContext) -> Finish | None:
    """The end of a reply in a form, or in a tool's words, if it has come to one."""
    if reply.structured_schema is None:
        return Finish(reply.reply_id, FinishedReason.COMPLETED, said=reply.response) if reply.response else None
    if reply.structured_output is not None:
        return Finish(reply.reply_id, FinishedReason.COMPLETED)
    react = journal.spec.react_config
    grace = react.structured_output_grace_iters
    if reply.unstructured >= grace:
        times = "once" if reply.unstructured == 1 else f"{reply.unstructured} times"
        message = f"The model answered {times} in words, and never called {GENERATE_RESPONSE}; what it said stands."
        return Finish(reply.reply_id, FinishedReason.UNSTRUCTURED, ErrorInfo(type="unstructured", message=message))
    if reply.cur_iter >= react.max_iters + grace:
        return Finish(reply.reply_id, FinishedReason.EXCEED_MAX_ITERS)
    return None


def must_call(journal: Journal, reply: ReplyContext) -> bool:
    """Whether the model is made to call the finish function now, where its provider can be told so."""
    return reply.structured_schema is not None and (
        reply.unstructured > _ASKED_IN_WORDS or reply.cur_iter >= journal.spec.react_config.max_iters
    )
