"""What requests do to the ledger from when they come until their replies have ended."""

from typing import assert_never

from agent import entries as e
from agent import fold_calls as calls
from agent import fold_offers as offers
from agent import fold_stuck as circles
from agent.ledger import KEPT_REQUESTS, Ledger
from agent.ledger_values import Finished, Handled
from agent.standing import stamped
from agent.state import ReplyContext


def apply(ledger: Ledger, entry: e.RequestAccepted | e.ReplyStarted | e.InterruptAsked | e.ReplyFinished) -> None:
    match entry:
        case e.RequestAccepted():
            _accept(ledger, entry)
        case e.ReplyStarted():
            _start(ledger, entry)
        case e.InterruptAsked():
            _interrupted(ledger, entry)
        case e.ReplyFinished():
            _finish(ledger, entry)
        case _ as never:
            assert_never(never)


def _accept(ledger: Ledger, entry: e.RequestAccepted) -> None:
    ledger.queue.append(entry)
    ledger.handled[entry.request_id] = Handled(entry.reply_id, entry.body_digest)
    while len(ledger.handled) > KEPT_REQUESTS:
        del ledger.handled[next(iter(ledger.handled))]


def _start(ledger: Ledger, entry: e.ReplyStarted) -> None:
    request = ledger.queue.pop(0)
    ledger.compress_asked = None
    ledger.reply_start, ledger.request_context = ledger.messages_total, request.context
    ledger.append(stamped(request.messages, entry))
    circles.note_request(ledger, says_something=bool(request.messages))
    if request.messages:
        ledger.newest = (ledger.reply_start, ledger.messages_total)
        ledger.goal = ledger.goal if ledger.goal[1] else ledger.newest
    ledger.state.reply_context = ReplyContext(
        reply_id=entry.reply_id, request_id=request.request_id, started_at=entry.at
    )


def _interrupted(ledger: Ledger, entry: e.InterruptAsked) -> None:
    ledger.current.interrupted = True
    if entry.messages:
        request_id = f"interrupt of {entry.reply_id} at {entry.seq}"
        follow_up = e.RequestAccepted(
            seq=entry.seq,
            at=entry.at,
            request_id=request_id,
            reply_id=follow_up_id(entry.reply_id, entry.seq),
            body_digest="",
            messages=entry.messages,
        )
        ledger.queue.insert(0, follow_up)
        ledger.handled[request_id] = Handled(follow_up.reply_id, "")


def _finish(ledger: Ledger, entry: e.ReplyFinished) -> None:
    reply = ledger.current
    for result in entry.closing:
        calls.close(ledger, reply.calls[result.id], result, entry)
    ledger.finished[reply.reply_id] = Finished(
        reply_id=reply.reply_id,
        request_id=reply.request_id,
        reason=entry.reason,
        at=entry.at,
        error=entry.error,
        usage=reply.usage,
        start=ledger.reply_start,
        end=ledger.messages_total,
    )
    while len(ledger.finished) > KEPT_REQUESTS:
        del ledger.finished[next(iter(ledger.finished))]
    ledger.ended = entry.seq
    circles.note_end(ledger, entry.reason)
    offers.end_of_reply(ledger)
    ledger.state.reply_context = None


def follow_up_id(reply_id: str, seq: int) -> str:
    """Reply id of the request that an interrupt's message becomes; no longer for the tenth in a row than for one."""
    return f"{reply_id.partition('.')[0]}.{seq}"
