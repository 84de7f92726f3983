"""Changes the ledger by how a model's message has ended: one that broke off, and one that is a refusal."""

from longhaul.agent.entries import all_entries as e
from longhaul.agent.fold import context
from longhaul.agent.fold.ledger.agent_state import ReplyContext
from longhaul.agent.fold.ledger.ledger import Ledger
from longhaul.agent.fold.reminders import stamped
from longhaul.agent.permission.facts import CallFacts
from longhaul.agent.values.conversation.hints import NOT_WHOLE, GoOn
from longhaul.agent.values.conversation.messages import ErrorInfo, FinishedReason, Msg, Usage
from longhaul.agent.values.conversation.stop_reasons import BROKEN_OFF, REFUSALS, WHERE, StopReason, ends_as
from longhaul.agent.values.stuck_detection import says_nothing

SHOWN_CHARS = 400
"""Of a refusal, in the error: all of it stands in the transcript."""


def refused(ledger: Ledger, entry: e.ModelSaid) -> None:
    """The model is not asked again in this reply. What it said is for people alone: shown to another model, it would be
    words of that one's own, and providers go on to refuse where a refusal stands in the context."""
    reply, usage, error = ledger.current, entry.message.usage or Usage(), refusal(entry)
    ledger.spent.model_calls += 1
    reply.usage, ledger.spent.usage = reply.usage + usage, ledger.spent.usage + usage
    (shown,) = stamped((entry.message,), entry)
    # With an id of its own: it is no part of the reply, which another model may give.
    ledger.show(shown.model_copy(update={"finished_reason": ends_as(entry.stop), "error": error}))
    model = entry.asked or ledger.spec.model
    reply.model_error = error
    reply.failed_models.append(model)
    reply.refused_by = (*reply.refused_by, model)


def leaves_out_refused(ledger: Ledger, reason: FinishedReason) -> bool:
    """Whether a reply ends with something that a model refused and none has answered: it would be refused with each
    later request."""
    if not ledger.current.refused_by:
        return False
    error = ledger.current.model_error
    # A refusal that another model has answered is none any more, whatever the reply ends with.
    refused_last = error is not None and error.type in {stop.value for stop in REFUSALS}
    return reason is FinishedReason.REFUSED or (reason is FinishedReason.EXCEED_MAX_ITERS and refused_last)


def refusal(entry: e.ModelSaid) -> ErrorInfo:
    """What a person is told of it: the provider's own words, or the model's, where there are some."""
    words = " ".join((entry.refusal or entry.message.get_text_content()).split())[:SHOWN_CHARS]
    what = "did not answer" if entry.stop is StopReason.REFUSED else "was stopped by a content filter"
    why = f": {words}" if words else ", and nothing was said why"
    return ErrorInfo(type=entry.stop.value, message=f"{entry.model or entry.asked} {what} ({entry.stop_reason}){why}")


def broke_off(ledger: Ledger, entry: e.ModelSaid) -> None:
    """Count messages in a row that are not whole; `agent.decision` says how many are too many."""
    reply, stop = ledger.current, entry.stop
    if stop not in BROKEN_OFF:
        reply.broken_off = 0
        return
    reply.broken_off += 1
    wordless = stop is StopReason.LENGTH and says_nothing(entry.message)
    reply.wordless += wordless
    overflow = stop is StopReason.WINDOW
    times = f", {reply.broken_off} times in a row" if reply.broken_off > 1 else ""
    reply.model_error = ErrorInfo(
        type="context_overflow" if overflow else "incomplete",
        message=f"The answer of {entry.model} broke off {WHERE[stop]} ({entry.stop_reason}){times}. {_MEND[stop]}",
    )
    if not entry.message.get_tool_calls():
        reply.to_go_on = "wordless" if wordless else _GO_ON[stop]
    if overflow and ledger.provided.window > 0:
        context.overflowed(ledger)


def mark(entry: e.ModelSaid) -> dict[str, FinishedReason]:
    """What a message that broke off bears in the transcript."""
    return {"finished_reason": ends_as(entry.stop)} if entry.stop in BROKEN_OFF else {}


def facts_of(entry: e.ModelSaid, message: Msg, call_id: str) -> CallFacts | None:
    """What was found out about a call. The last one of a message that broke off is never run: what is missing of its
    arguments may be all of them."""
    calls = message.get_tool_calls()
    if entry.stop in BROKEN_OFF and calls[-1].id == call_id:
        return CallFacts(arguments_error=NOT_WHOLE)
    return entry.facts.get(call_id)


def goes_on(ledger: Ledger, entry: e.ModelSaid) -> bool:
    """Whether the model is asked to go on, as far as its message tells. At the limit of iterations whatever it says is
    the last word."""
    reply = ledger.current
    return (
        (entry.stop in BROKEN_OFF or entry.goes_on)
        and not reply.calls
        and reply.cur_iter < ledger.spec.react_config.max_iters
    )


def lacks_its_form(reply: ReplyContext) -> bool:
    """Of an answer in words: whether it was asked for in a form. Then the model is told so, and asked again."""
    if reply.structured_schema is None:
        return False
    reply.to_go_on = "unstructured"
    reply.unstructured += 1
    return True


_GO_ON: dict[StopReason, GoOn] = {StopReason.LENGTH: "length", StopReason.PAUSED: "paused", StopReason.WINDOW: "window"}

_MEND = {
    StopReason.LENGTH: "Ask for less at a time, or raise max_output_tokens under [model_config] or max_continuations "
    "under [react_config].",
    StopReason.PAUSED: "Ask it to go on, or raise max_continuations under [react_config].",
    StopReason.WINDOW: "Compress the session (`longhaul compact`), or take a model with a larger window.",
}
