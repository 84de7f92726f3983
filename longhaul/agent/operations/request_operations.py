"""Requests until they start: queued, joined to the reply that is being made, replaced or dropped; and the operations
that pause, resume, step, wake or compact a session.

One step of a paused session is the first of these that there is to do: run the calls that may run together,
compress the context, ask the model. What follows from it without touching the world belongs to it.
"""

from typing import Any

from longhaul.agent import entries as e
from longhaul.agent.decisions.compaction import threshold, too_big_without_context
from longhaul.agent.decisions.continue_as_new import Load, should_save
from longhaul.agent.entries import ExternalEventReceived
from longhaul.agent.journal import Journal
from longhaul.agent.operations.bodies import (
    AskFromWorkflow,
    Compact,
    Interrupt,
    Notify,
    Observe,
    PauseSession,
    Received,
    ReceivedOperation,
    Resume,
    Submit,
    TakeStep,
    Unusable,
)
from longhaul.agent.operations.peer_operations import named_at_work
from longhaul.agent.operations.result_operations import blocking
from longhaul.agent.plain.measures import iso
from longhaul.agent.plain.values import digest_of
from longhaul.agent.reducer.agent_state import ReplyContext
from longhaul.agent.reducer.context_state import tokens
from longhaul.agent.reducer.notification_state import asleep
from longhaul.agent.steps import Act, Answer, BeginStep, Checkpoint, Compress, Park, Prepare, Probe, Remind, Step, Think
from longhaul.agent.values.conversation.messages import ToolCallState
from longhaul.agent.values.deadlines import KEPT_EXTERNAL_EVENTS
from longhaul.agent.values.subagents import BUSY, Asker

MAX_QUEUE = 500
MAX_QUEUE_BYTES = 32_000_000
"""Of the requests that wait, as JSON, before the newest one: each worker that runs the session holds them, and each
continue-as-new carries them."""


def waiting(journal: Journal) -> list[e.RequestAccepted]:
    """Those that join the reply that is being made, then the queue."""
    return [*journal.requests.steering, *journal.requests.queue]


def digest_of_request(body: Submit | AskFromWorkflow) -> str:
    """Tells the same request sent twice from another one under the same id."""
    sent = [message.model_dump(mode="json") for message in body.messages]
    beside = {"context": body.context} if isinstance(body, Submit) and body.context else {}
    beside |= {"structured_schema": body.structured_schema} if body.structured_schema is not None else {}
    return digest_of([*sent, beside] if beside else sent)


def submit(journal: Journal, body: Submit, operation: ReceivedOperation) -> Received:
    request_id = body.request_id or operation.fresh_id
    digest = digest_of_request(body)
    if before := journal.requests.handled.get(request_id):
        if before.body_digest != digest:
            raise Unusable(f"request_id {request_id!r} was used before for another message; take a new id")
        return Received((), _receipt(journal, request_id, before.reply_id))
    if body.unless_busy and (journal.reply is not None or waiting(journal)):
        return Received((), {"request_id": request_id, "busy": True})
    if len(waiting(journal)) >= MAX_QUEUE:
        raise Unusable(f"{MAX_QUEUE} requests wait already; send this one again when some are done")
    _check_room(journal)
    if not body.messages and (body.when == "now" or not journal.state.context):
        raise Unusable("messages: there is nothing to go on from yet; send a first message")
    if body.structured_schema is not None and body.when == "now":
        raise Unusable(
            "structured_schema: a message that joins the reply that is being made can't ask for a form; send it with "
            "when 'queue' or 'interrupt'"
        )
    entry = e.RequestAccepted(
        request_id=request_id,
        reply_id=operation.reply_id_of(request_id),
        body_digest=digest,
        messages=body.messages,
        context=body.context,
        when=body.when,
        structured_schema=body.structured_schema,
    )
    answer = {**_receipt(journal, request_id, entry.reply_id), "position": len(journal.requests.queue)}
    if body.when == "queue":
        return Received((entry,), answer)
    return _urgent(journal, entry, answer)


def ask(journal: Journal, body: AskFromWorkflow, operation: ReceivedOperation) -> Received:
    """Whoever asks hears of a refusal too: a signal has no answer, and nobody may wait for a reply that never comes."""
    asker = Asker(workflow_id=body.workflow_id, request_id=body.request_id)
    request = Submit(
        request_id=body.request_id,
        messages=body.messages,
        structured_schema=body.structured_schema,
        unless_busy=body.unless_busy,
    )
    try:
        received = submit(journal, request, operation)
    except Unusable as why:
        return Received((e.AskerCame(asker=asker.model_copy(update={"refused": str(why)})),), {"refused": str(why)})
    if received.answer.get("busy"):
        return Received((e.AskerCame(asker=asker.model_copy(update={"refused": BUSY})),), received.answer)
    return Received((*received.entries, e.AskerCame(asker=asker)), received.answer)


def observe(_: Journal, body: Observe) -> Received:
    return Received((e.Observed(messages=body.messages),), {"observed": len(body.messages)})


def _urgent(journal: Journal, entry: e.RequestAccepted, answer: dict[str, Any]) -> Received:
    """The answer says which reply it means to join, or has interrupted; empty when it is a request like others."""
    reply = None if journal.interrupted else journal.reply
    answer |= {"position": 0, "when": entry.when}
    if entry.when == "now":
        return Received((entry,), {**answer, "joins": reply.reply_id if reply else ""})
    if reply is None:
        return Received((entry,), {**answer, "interrupted": ""})
    stop = e.InterruptAsked(reply_id=reply.reply_id)
    return Received((entry, stop), {**answer, "interrupted": reply.reply_id})


def _check_room(journal: Journal) -> None:
    size = sum(request.size_bytes for request in waiting(journal))
    if size >= MAX_QUEUE_BYTES:
        raise Unusable(
            f"the requests that wait have {size // 1000} kB, and from {MAX_QUEUE_BYTES // 1000} kB on none is "
            "added; send this one again when some are done, and put large content into files that you name"
        )


def _receipt(journal: Journal, request_id: str, reply_id: str) -> dict[str, Any]:
    queued = [entry.request_id for entry in journal.requests.queue]
    position = queued.index(request_id) if request_id in queued else 0
    return {"request_id": request_id, "reply_id": reply_id, "position": position}


def to_join(journal: Journal, reply: ReplyContext) -> e.Joined | None:
    """What the model is told before it is asked again, or before its answer ends the reply; None: nothing, or not any
    more. What does not join is a request of its own when the reply has ended."""
    if not journal.requests.steering or journal.spec.custom_agent:
        return None  # the code of a custom agent has been given its request
    if reply.cur_iter >= journal.spec.react_config.max_iters:
        return None
    return e.Joined(
        request_ids=tuple(request.request_id for request in journal.requests.steering),
        reply_ids=tuple(request.reply_id for request in journal.requests.steering),
    )


def interrupt(journal: Journal, body: Interrupt) -> Received:
    if found := _aimed_at(journal, body):
        return _drop(found, body)
    reply = journal.reply
    if reply is None:
        raise Unusable(f"there is nothing to interrupt: no reply is being made{_in_background(journal)}")
    if journal.requests.joined.get(body.reply_id or "", body.reply_id) not in (None, reply.reply_id):
        ended = " has ended" if body.reply_id in journal.requests.finished else " is not the reply being made"
        raise Unusable(f"reply_id: {body.reply_id!r}{ended}; that is {reply.reply_id!r}")
    if body.request_id not in (None, reply.request_id):
        raise Unusable(f"request_id: {body.request_id!r} neither waits nor is being answered; {_names(journal)}")
    if journal.interrupted:
        raise Unusable(f"reply {reply.reply_id!r} has been interrupted already")
    entry = e.InterruptAsked(reply_id=reply.reply_id, messages=body.message)
    return Received((entry,), {"interrupted": reply.reply_id})


def _in_background(journal: Journal) -> str:
    """What works all the same, and how it is stopped."""
    named = named_at_work(journal)
    return f"; `stop_background` (`longhaul stop`) is for what works in the background: {named}" if named else ""


def _aimed_at(journal: Journal, body: Interrupt) -> e.RequestAccepted | None:
    """The request that waits and is meant."""
    named = (request for request in waiting(journal) if body.reply_id == request.reply_id)
    return next(named, None) or next((r for r in waiting(journal) if body.request_id == r.request_id), None)


def _drop(request: e.RequestAccepted, body: Interrupt) -> Received:
    if body.message:
        raise Unusable(
            f"message: request {request.request_id!r} has not started, so that it is only dropped; send the message by "
            "`submit`"
        )
    entry = e.RequestDropped(request_id=request.request_id, reply_id=request.reply_id)
    return Received((entry,), {"interrupted": request.reply_id, "dropped": request.request_id})


def _names(journal: Journal) -> str:
    return f"waiting: {[request.request_id for request in waiting(journal)][:20]}"


def notify(journal: Journal, body: Notify, operation: ReceivedOperation) -> Received:
    """Whoever sends the same id again changes nothing, and is told so."""
    request_id = body.request_id or operation.fresh_id
    digest = digest_of([body.event, body.payload])
    known = journal.external_events.handled.get(request_id) if journal.external_events else None
    if known is not None and known != digest:
        raise Unusable(f"request_id {request_id!r} was used before for another notification; take a new id")
    wakes = any(call.sleep is not None and call.sleep.event == body.event for call in asleep(journal))
    answer = {"event": body.event, "request_id": request_id, "woken": wakes, "already": known is not None}
    if known is not None:
        return Received((), {**answer, "woken": False})
    kept = len(journal.external_events.kept) if journal.external_events else 0
    if kept >= KEPT_EXTERNAL_EVENTS and not wakes:
        raise Unusable(
            f"event {body.event!r}: nobody waits for it, and {kept} notifications are kept already, which is the most; "
            "send it again when the session waits for it"
        )
    entry = ExternalEventReceived(
        event=body.event, request_id=request_id, body_digest=digest, payload=body.payload, by=body.by
    )
    return Received((entry,), answer)


TOO_BIG = "too_big"
"""Kind of refusal: no compression could help, for the system prompt and the tools alone are too large."""


def compact(journal: Journal, body: Compact) -> Received:
    config = body.context_config or journal.spec.context_config
    if not journal.provided.window:
        raise Unusable("there is nothing to compact: this session has made no reply yet")
    if too_big := too_big_without_context(journal, config):
        raise Unusable(too_big.message, TOO_BIG)
    used, limit = tokens(journal), threshold(journal, config)
    answer = {"compacting": used > limit, "context_tokens": used, "threshold": limit, "epoch": journal.context.epoch}
    if used <= limit:
        return Received((), answer)
    asked = e.CompressAsked(config=body.context_config, instructions=body.instructions, by=body.by)
    return Received((asked,), answer)


BEGINS = (Prepare, Think, Compress, Act, Answer, Remind, Probe)
"""What a paused session does not do."""


def unless_paused(step: Step, journal: Journal, load: Load) -> Step:
    """The step, or what a paused session does in its place."""
    pause = journal.pause
    if pause is None or not isinstance(step, BEGINS) or pause.step == "started":
        return step
    if load.running:
        return Park("running calls")
    if pause.step == "asked":
        return BeginStep(e.StepStarted())
    return Checkpoint() if should_save(journal, load) else Park("resume")


def pause(journal: Journal, body: PauseSession) -> Received:
    entry = e.PauseStarted(by=body.by, why=body.why)
    if journal.pause is None:
        return Received((entry,), {"paused": True, "already": False})
    # Of a step that was asked for and has not started, whoever pauses again wants to hear no more.
    answer = {"paused": True, "already": True, "since": iso(journal.pause.at), "by": journal.pause.by}
    return Received((entry,) if journal.pause.step == "asked" else (), answer)


def resume(journal: Journal, body: Resume) -> Received:
    """Whatever it stands still for: that it is paused, or held until somebody has looked."""
    entries: list[e.AnyEntry] = []
    if journal.incarnation.quarantine:
        entries.append(e.QuarantineEnded(by=body.by))
    if journal.pause is not None:
        entries.append(e.PauseEnded(by=body.by))
    if not entries:
        raise Unusable("there is nothing to resume: the session is neither quarantined nor paused")
    return Received(tuple(entries), {"resumed": True})


def take_step(journal: Journal, body: TakeStep) -> Received:
    if journal.pause is None:
        raise Unusable("the session is not paused; pause it first, then let it take step after step")
    if journal.pause.step:
        return Received((), {"stepping": True, "already": True})
    if why_not := _why_no_step(journal):
        raise Unusable(f"there is no step to take: {why_not}")
    return Received((e.StepAsked(by=body.by),), {"stepping": True, "already": False})


def _why_no_step(journal: Journal) -> str:
    reply = journal.reply
    if journal.incarnation.quarantine:
        return f"the session is quarantined ({journal.incarnation.quarantine})"
    if reply is None:
        return "" if journal.requests.queue or journal.compaction.asked else "no request waits"
    if blocked := [unknown_outcome.call_id for unknown_outcome in blocking(journal)]:
        return f"somebody has to say whether {blocked} happened; see `resolve`"
    unfinished = [call for call in reply.calls.values() if call.state is not ToolCallState.FINISHED]
    if unfinished and all(call.waits_for for call in unfinished):
        return f"the reply waits for answers to {[call.block.id for call in unfinished]}"
    return ""


def pause_fields(journal: Journal) -> dict[str, Any]:
    """For the status: since when, by whom and why, and whether it takes a step."""
    pause = journal.pause
    if pause is None:
        return {}
    return {
        "paused_since": iso(pause.at),
        "paused_by": pause.by,
        "paused_why": pause.why,
        "stepping": bool(pause.step),
    }
