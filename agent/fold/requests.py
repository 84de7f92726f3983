"""Changes the ledger by requests, from when they come until their replies have ended."""

from itertools import takewhile
from typing import assert_never

from longhaul.agent.entries import all_entries as e
from longhaul.agent.fold import background, calls, hubs, message_ends, repairs, signed_approvals, sleep
from longhaul.agent.fold import stuck_detection as circles
from longhaul.agent.fold.ledger.agent_state import ReplyContext
from longhaul.agent.fold.ledger.ledger import KEPT_REQUESTS, Ledger
from longhaul.agent.fold.ledger.ledger_values import Finished, Handled
from longhaul.agent.fold.reminders import stamped, standing_hints
from longhaul.agent.plain.times import iso
from longhaul.agent.values.conversation.messages import FinishedReason, Msg, TextBlock, Usage

RequestEntry = (
    e.RequestAccepted
    | e.RequestDropped
    | e.Joined
    | e.ReplyStarted
    | e.InterruptAsked
    | e.InterruptHandled
    | e.MemoryRecorded
    | e.ReplyFinished
)


def apply(ledger: Ledger, entry: RequestEntry) -> None:
    match entry:
        case e.RequestAccepted():
            _accept(ledger, entry)
        case e.RequestDropped():
            _drop(ledger, entry)
        case e.Joined():
            _join(ledger, entry)
        case e.ReplyStarted():
            _start(ledger, entry)
        case e.InterruptAsked():
            _interrupted(ledger, entry)
        case e.InterruptHandled():
            ledger.requests.parting = entry.said
        case e.MemoryRecorded():
            ledger.current.memorised = True
        case e.ReplyFinished():
            _finish(ledger, entry)
        case _ as never:
            assert_never(never)


def _accept(ledger: Ledger, entry: e.RequestAccepted) -> None:
    if entry.when == "queue":
        ledger.requests.queue.append(entry)
    elif entry.when == "now" and ledger.reply is not None and not ledger.interrupted:
        ledger.requests.steering.append(entry)
        sleep.message_came(ledger)
    else:
        _put_in_front(ledger, [entry])
    ledger.requests.handled[entry.request_id] = Handled(entry.reply_id, entry.body_digest)
    while len(ledger.requests.handled) > KEPT_REQUESTS:
        del ledger.requests.handled[next(iter(ledger.requests.handled))]


def _put_in_front(ledger: Ledger, requests: list[e.RequestAccepted]) -> None:
    """Before all that can wait, behind what was in a hurry earlier."""
    urgent = sum(1 for _ in takewhile(lambda request: request.when != "queue", ledger.requests.queue))
    ledger.requests.queue[urgent:urgent] = requests


def _drop(ledger: Ledger, entry: e.RequestDropped) -> None:
    ledger.requests.queue = [request for request in ledger.requests.queue if request.reply_id != entry.reply_id]
    ledger.requests.steering = [request for request in ledger.requests.steering if request.reply_id != entry.reply_id]
    here = ledger.messages_total
    ended = Finished(
        entry.reply_id, entry.request_id, FinishedReason.INTERRUPTED, entry.at, None, Usage(), here, here, entry.at
    )
    _keep(ledger, ended)


def _join(ledger: Ledger, entry: e.Joined) -> None:
    """A reply whose model has said its last word goes on: the model has not heard this yet."""
    reply = ledger.current
    joining = [request for request in ledger.requests.steering if request.reply_id in entry.reply_ids]
    ledger.requests.steering = [
        request for request in ledger.requests.steering if request.reply_id not in entry.reply_ids
    ]
    ledger.append(stamped(tuple(message for request in joining for message in request.messages), entry))
    ledger.requests.joined.update(dict.fromkeys(entry.reply_ids, reply.reply_id))
    while len(ledger.requests.joined) > KEPT_REQUESTS:
        del ledger.requests.joined[next(iter(ledger.requests.joined))]
    circles.note_request(ledger, says_something=True)
    # An answer that was given before them is no answer to them.
    reply.answered, reply.structured_output, reply.response = False, None, ""
    reply.memorised = False


def _start(ledger: Ledger, entry: e.ReplyStarted) -> None:
    request = ledger.requests.queue.pop(0)
    ledger.compaction.asked = None
    ledger.requests.reply_start, ledger.requests.request_context = ledger.messages_total, request.context
    ledger.requests.interrupted = False
    ledger.append(stamped(request.messages, entry))
    circles.note_request(ledger, says_something=bool(request.messages))
    if request.messages:
        ledger.context.newest = (ledger.requests.reply_start, ledger.messages_total)
        ledger.context.goal = ledger.context.goal if ledger.context.goal[1] else ledger.context.newest
    ledger.state.reply_context = ReplyContext(
        reply_id=entry.reply_id,
        request_id=request.request_id,
        started_at=entry.at,
        structured_schema=request.structured_schema,
    )


def _interrupted(ledger: Ledger, entry: e.InterruptAsked) -> None:
    ledger.requests.interrupted = True
    background.not_wanted(ledger, ledger.commands)
    if entry.overdue and ledger.parent is not None:
        ledger.parent = ledger.parent.model_copy(update={"overdue": True})
    if entry.messages:
        request_id = f"interrupt of {entry.reply_id} at {entry.seq}"
        follow_up = e.RequestAccepted(
            seq=entry.seq,
            at=entry.at,
            request_id=request_id,
            reply_id=follow_up_id(entry.reply_id, entry.seq),
            body_digest="",
            messages=entry.messages,
            when="interrupt",
        )
        ledger.requests.queue.insert(0, follow_up)
        ledger.requests.handled[request_id] = Handled(follow_up.reply_id, "")


def _finish(ledger: Ledger, entry: e.ReplyFinished) -> None:
    reply = ledger.current
    for result in entry.closing:
        calls.close(ledger, reply.calls[result.id], result, entry)
    if entry.said:
        words = Msg(name=ledger.spec.name, role="assistant", content=(TextBlock(text=entry.said),), id=reply.reply_id)
        ledger.append((words.model_copy(update={"created_at": iso(entry.at)}),))
    ledger.requests.parting = None
    ended = Finished(
        reply_id=reply.reply_id,
        request_id=reply.request_id,
        reason=entry.reason,
        at=entry.at,
        error=entry.error,
        usage=reply.usage,
        start=ledger.requests.reply_start,
        end=ledger.messages_total,
        started_at=reply.started_at,
    )
    _keep(ledger, ended)
    if message_ends.leaves_out_refused(ledger, entry.reason):
        repairs.leave_out_unanswered(ledger)
        ledger.context.reminders = standing_hints(ledger)
    hubs.reply_ended(ledger, reply.reply_id)
    _put_in_front(ledger, ledger.requests.steering)
    ledger.requests.steering = []
    ledger.requests.ended = entry.seq
    circles.note_end(ledger, entry.reason)
    signed_approvals.end_of_reply(ledger)
    ledger.state.reply_context = None


def _keep(ledger: Ledger, ended: Finished) -> None:
    ledger.requests.finished[ended.reply_id] = ended
    while len(ledger.requests.finished) > KEPT_REQUESTS:
        del ledger.requests.finished[next(iter(ledger.requests.finished))]


def follow_up_id(reply_id: str, seq: int) -> str:
    """Reply id of the request that an interrupt's message becomes; no longer for the tenth in a row than for one."""
    return f"{reply_id.partition('.')[0]}.{seq}"
