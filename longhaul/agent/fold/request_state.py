"""Changes the ledger by requests, from their arrival to the end of their replies, and by pauses, single steps and
hubs.
"""

from itertools import takewhile
from typing import Any, assert_never

from longhaul.agent import entries as e
from longhaul.agent.entries import Pause
from longhaul.agent.fold import call_state, context_state, notification_state, reminder_state, subagent_state
from longhaul.agent.fold.agent_state import ReplyContext
from longhaul.agent.fold.ledger import KEPT_REQUESTS, Finished, Handled, Ledger
from longhaul.agent.fold.reminder_state import stamped, standing_hints
from longhaul.agent.plain.measures import iso
from longhaul.agent.values.conversation.messages import FinishedReason, Msg, TextBlock, Usage
from longhaul.agent.values.hubs import MOST_HUBS, Membership

END_A_STEP = (
    e.ModelSaid,
    e.ModelFailed,
    e.ContextCompressed,
    e.NotCompressed,
    e.ToolReturned,
    e.CallAnswered,
    e.SleepBegun,
    e.CallUnsettled,
    e.ReplyFinished,
)
"""What comes of a model call, of a compression, of the first of some calls; or nothing, for the reply has ended."""


def apply_pause(ledger: Ledger, entry: e.PauseEntry) -> None:
    match entry:
        case e.PauseBegun():
            before = ledger.pause
            ledger.pause = (
                before.model_copy(update={"step": ""}) if before else Pause(at=entry.at, by=entry.by, why=entry.why)
            )
        case e.PauseEnded():
            ledger.pause = None
        case e.StepAsked():
            _set_step(ledger, "asked")
        case e.StepBegun():
            _set_step(ledger, "begun")
        case _ as never:
            assert_never(never)


def end_of_step(ledger: Ledger, entry: e.AnyEntry) -> None:
    """To be called behind each entry."""
    if ledger.pause is not None and ledger.pause.step == "begun" and isinstance(entry, END_A_STEP):
        _set_step(ledger, "")


def _set_step(ledger: Ledger, step: str) -> None:
    if ledger.pause is not None:
        ledger.pause = ledger.pause.model_copy(update={"step": step})


def apply_hub(ledger: Ledger, entry: e.HubEntry) -> None:
    match entry:
        case e.HubHeard():
            _heard(ledger, entry)
        case e.HubTold():
            known = ledger.hubs.get(entry.hub)
            if known is not None:
                owed = () if entry.error else tuple(one for one in known.owed if one != entry.reply_id)
                _change(ledger, entry.hub, owed=owed, left=known.left or bool(entry.error))
        case _ as never:
            assert_never(never)


def heard_before(ledger: Ledger, hub: str, life: str) -> int:
    """Up to which number; 0 of a hub that this session has never been in."""
    known = ledger.hubs.get(hub)
    return known.heard if known is not None and known.life == life else 0


def reply_ended(ledger: Ledger, reply_id: str) -> None:
    """Each hub is told, or hears that there is nothing to tell: clients wait there for it."""
    for hub, known in ledger.hubs.items():
        if not known.left:
            _change(ledger, hub, owed=(*known.owed, reply_id))


def _heard(ledger: Ledger, entry: e.HubHeard) -> None:
    """A letter may come twice, and before an earlier life of the session is found that has had it already."""
    before = heard_before(ledger, entry.hub, entry.life)
    if entry.through <= before:
        return
    pairs = zip(entry.numbers, entry.messages, strict=True)
    if new := tuple(message for number, message in pairs if number > before):
        ledger.hear(stamped(new, entry))
        reminder_state.note_observed(ledger)
    if entry.tainted and not ledger.state.tainted:
        ledger.state.tainted = entry.tainted
    known = ledger.hubs.get(entry.hub)
    owed = known.owed if known is not None and known.life == entry.life and not entry.left else ()
    now = Membership(
        life=entry.life, name=entry.name, member=entry.member, heard=entry.through, owed=owed, left=entry.left
    )
    _keep_membership(ledger, entry.hub, now)


def _change(ledger: Ledger, hub: str, **fields: Any) -> None:
    _keep_membership(ledger, hub, ledger.hubs[hub].model_copy(update=fields))


def _keep_membership(ledger: Ledger, hub: str, known: Membership) -> None:
    """A new table: a copy of the ledger has the same one."""
    kept = {**ledger.hubs, hub: known}
    left = [one for one, each in kept.items() if each.left]
    for one in left[: max(len(left) - MOST_HUBS, 0)]:
        del kept[one]
    ledger.hubs = kept


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


def apply_request(ledger: Ledger, entry: RequestEntry) -> None:
    match entry:
        case e.RequestAccepted():
            _accept(ledger, entry)
        case e.RequestDropped():
            ledger.requests.queue = [request for request in ledger.requests.queue if request.reply_id != entry.reply_id]
            ledger.requests.steering = [
                request for request in ledger.requests.steering if request.reply_id != entry.reply_id
            ]
            here = ledger.messages_total
            ended = Finished(
                entry.reply_id,
                entry.request_id,
                FinishedReason.INTERRUPTED,
                entry.at,
                None,
                Usage(),
                here,
                here,
                entry.at,
            )
            _keep_finished(ledger, ended)
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
        notification_state.message_came(ledger)
    else:
        _put_in_front(ledger, [entry])
    ledger.requests.handled[entry.request_id] = Handled(entry.reply_id, entry.body_digest)
    while len(ledger.requests.handled) > KEPT_REQUESTS:
        del ledger.requests.handled[next(iter(ledger.requests.handled))]


def _put_in_front(ledger: Ledger, requests: list[e.RequestAccepted]) -> None:
    """Before all that can wait, behind what was in a hurry earlier."""
    urgent = sum(1 for _ in takewhile(lambda request: request.when != "queue", ledger.requests.queue))
    ledger.requests.queue[urgent:urgent] = requests


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
    reminder_state.note_request(ledger, says_something=True)
    # An answer that was given before them is no answer to them.
    reply.answered, reply.structured_output, reply.response = False, None, ""
    reply.memorised = False


def _start(ledger: Ledger, entry: e.ReplyStarted) -> None:
    request = ledger.requests.queue.pop(0)
    ledger.compaction.asked = None
    ledger.requests.reply_start, ledger.requests.request_context = ledger.messages_total, request.context
    ledger.requests.interrupted = False
    ledger.append(stamped(request.messages, entry))
    reminder_state.note_request(ledger, says_something=bool(request.messages))
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
    subagent_state.stop_commands(ledger, ledger.commands)
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
        call_state.close(ledger, reply.calls[result.id], result, entry)
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
    _keep_finished(ledger, ended)
    if context_state.leaves_out_refused(ledger, entry.reason):
        context_state.leave_out_unanswered(ledger)
        ledger.context.reminders = standing_hints(ledger)
    reply_ended(ledger, reply.reply_id)
    _put_in_front(ledger, ledger.requests.steering)
    ledger.requests.steering = []
    ledger.requests.ended = entry.seq
    reminder_state.note_end(ledger, entry.reason)
    call_state.end_of_reply(ledger)
    ledger.state.reply_context = None


def _keep_finished(ledger: Ledger, ended: Finished) -> None:
    ledger.requests.finished[ended.reply_id] = ended
    while len(ledger.requests.finished) > KEPT_REQUESTS:
        del ledger.requests.finished[next(iter(ledger.requests.finished))]


def follow_up_id(reply_id: str, seq: int) -> str:
    """Reply id of the request that an interrupt's message becomes; no longer for the tenth in a row than for one."""
    return f"{reply_id.partition('.')[0]}.{seq}"
