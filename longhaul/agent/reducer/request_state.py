"""Changes the session state by requests, from their arrival to the end of their replies, and by pauses, single steps
and hubs.
"""

from itertools import takewhile
from typing import Any, assert_never

from longhaul.agent import entries as e
from longhaul.agent.entries import Pause
from longhaul.agent.plain.measures import iso
from longhaul.agent.reducer import call_state, context_state, notification_state, reminder_state, subagent_state
from longhaul.agent.reducer.agent_state import ReplyContext
from longhaul.agent.reducer.reminder_state import stamped, standing_reminders
from longhaul.agent.reducer.session_state import KEPT_REQUESTS, Finished, Handled, SessionState
from longhaul.agent.values.conversation.messages import FinishedReason, Msg, TextBlock, Usage
from longhaul.agent.values.hubs import MOST_HUBS, Membership

END_A_STEP = (
    e.ModelSaid,
    e.ModelFailed,
    e.ContextCompressed,
    e.NotCompressed,
    e.ToolReturned,
    e.CallAnswered,
    e.SleepStarted,
    e.CallUnsettled,
    e.ReplyFinished,
)
"""What comes of a model call, of a compression, of the first of some calls; or nothing, for the reply has ended."""


def apply_pause(session: SessionState, entry: e.PauseEntry) -> None:
    match entry:
        case e.PauseStarted():
            before = session.pause
            session.pause = (
                before.model_copy(update={"step": ""}) if before else Pause(at=entry.at, by=entry.by, why=entry.why)
            )
        case e.PauseEnded():
            session.pause = None
        case e.StepAsked():
            _set_step(session, "asked")
        case e.StepStarted():
            _set_step(session, "started")
        case _ as never:
            assert_never(never)


def end_of_step(session: SessionState, entry: e.AnyEntry) -> None:
    """To be called behind each entry."""
    if session.pause is not None and session.pause.step == "started" and isinstance(entry, END_A_STEP):
        _set_step(session, "")


def _set_step(session: SessionState, step: str) -> None:
    if session.pause is not None:
        session.pause = session.pause.model_copy(update={"step": step})


def apply_hub(session: SessionState, entry: e.HubEntry) -> None:
    match entry:
        case e.HubHeard():
            _heard(session, entry)
        case e.HubTold():
            known = session.hubs.get(entry.hub)
            if known is not None:
                owed = () if entry.error else tuple(one for one in known.owed if one != entry.reply_id)
                _change(session, entry.hub, owed=owed, left=known.left or bool(entry.error))
        case _ as never:
            assert_never(never)


def heard_before(session: SessionState, hub: str, incarnation: str) -> int:
    """Up to which number; 0 of a hub that this session has never been in."""
    known = session.hubs.get(hub)
    return known.heard if known is not None and known.incarnation == incarnation else 0


def reply_ended(session: SessionState, reply_id: str) -> None:
    """Each hub is told, or hears that there is nothing to tell: clients wait there for it."""
    for hub, known in session.hubs.items():
        if not known.left:
            _change(session, hub, owed=(*known.owed, reply_id))


def _heard(session: SessionState, entry: e.HubHeard) -> None:
    """An operation may come twice, and before an earlier incarnation of the session is found that has had it
    already."""
    before = heard_before(session, entry.hub, entry.incarnation)
    if entry.through <= before:
        return
    pairs = zip(entry.numbers, entry.messages, strict=True)
    if new := tuple(message for number, message in pairs if number > before):
        session.hear(stamped(new, entry))
        reminder_state.note_observed(session)
    if entry.tainted and not session.state.tainted:
        session.state.tainted = entry.tainted
    known = session.hubs.get(entry.hub)
    owed = known.owed if known is not None and known.incarnation == entry.incarnation and not entry.left else ()
    now = Membership(
        incarnation=entry.incarnation,
        name=entry.name,
        member=entry.member,
        heard=entry.through,
        owed=owed,
        left=entry.left,
    )
    _keep_membership(session, entry.hub, now)


def _change(session: SessionState, hub: str, **fields: Any) -> None:
    _keep_membership(session, hub, session.hubs[hub].model_copy(update=fields))


def _keep_membership(session: SessionState, hub: str, known: Membership) -> None:
    """A new table: a copy of the session state has the same one."""
    kept = {**session.hubs, hub: known}
    left = [one for one, each in kept.items() if each.left]
    for one in left[: max(len(left) - MOST_HUBS, 0)]:
        del kept[one]
    session.hubs = kept


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


def apply_request(session: SessionState, entry: RequestEntry) -> None:
    match entry:
        case e.RequestAccepted():
            _accept(session, entry)
        case e.RequestDropped():
            session.requests.queue = [
                request for request in session.requests.queue if request.reply_id != entry.reply_id
            ]
            session.requests.steering = [
                request for request in session.requests.steering if request.reply_id != entry.reply_id
            ]
            here = session.messages_total
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
            _keep_finished(session, ended)
        case e.Joined():
            _join(session, entry)
        case e.ReplyStarted():
            _start(session, entry)
        case e.InterruptAsked():
            _interrupted(session, entry)
        case e.InterruptHandled():
            session.requests.parting = entry.said
        case e.MemoryRecorded():
            session.current.memorised = True
        case e.ReplyFinished():
            _finish(session, entry)
        case _ as never:
            assert_never(never)


def _accept(session: SessionState, entry: e.RequestAccepted) -> None:
    if entry.when == "queue":
        session.requests.queue.append(entry)
    elif entry.when == "now" and session.reply is not None and not session.interrupted:
        session.requests.steering.append(entry)
        notification_state.message_came(session)
    else:
        _put_in_front(session, [entry])
    session.requests.handled[entry.request_id] = Handled(entry.reply_id, entry.body_digest)
    while len(session.requests.handled) > KEPT_REQUESTS:
        del session.requests.handled[next(iter(session.requests.handled))]


def _put_in_front(session: SessionState, requests: list[e.RequestAccepted]) -> None:
    """Before all that can wait, behind what was in a hurry earlier."""
    urgent = sum(1 for _ in takewhile(lambda request: request.when != "queue", session.requests.queue))
    session.requests.queue[urgent:urgent] = requests


def _join(session: SessionState, entry: e.Joined) -> None:
    """A reply whose model has said its last word goes on: the model has not heard this yet."""
    reply = session.current
    joining = [request for request in session.requests.steering if request.reply_id in entry.reply_ids]
    session.requests.steering = [
        request for request in session.requests.steering if request.reply_id not in entry.reply_ids
    ]
    session.append(stamped(tuple(message for request in joining for message in request.messages), entry))
    session.requests.joined.update(dict.fromkeys(entry.reply_ids, reply.reply_id))
    while len(session.requests.joined) > KEPT_REQUESTS:
        del session.requests.joined[next(iter(session.requests.joined))]
    reminder_state.note_request(session, says_something=True)
    # An answer that was given before them is no answer to them.
    reply.answered, reply.structured_output, reply.response = False, None, ""
    reply.memorised = False


def _start(session: SessionState, entry: e.ReplyStarted) -> None:
    request = session.requests.queue.pop(0)
    session.compaction.asked = None
    session.requests.reply_start, session.requests.request_context = session.messages_total, request.context
    session.requests.interrupted = False
    session.append(stamped(request.messages, entry))
    reminder_state.note_request(session, says_something=bool(request.messages))
    if request.messages:
        session.context.newest = (session.requests.reply_start, session.messages_total)
        session.context.goal = session.context.goal if session.context.goal[1] else session.context.newest
    session.state.reply_context = ReplyContext(
        reply_id=entry.reply_id,
        request_id=request.request_id,
        started_at=entry.at,
        structured_schema=request.structured_schema,
    )


def _interrupted(session: SessionState, entry: e.InterruptAsked) -> None:
    session.requests.interrupted = True
    subagent_state.stop_commands(session, session.commands)
    if entry.overdue and session.parent is not None:
        session.parent = session.parent.model_copy(update={"overdue": True})
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
        session.requests.queue.insert(0, follow_up)
        session.requests.handled[request_id] = Handled(follow_up.reply_id, "")


def _finish(session: SessionState, entry: e.ReplyFinished) -> None:
    reply = session.current
    for result in entry.closing:
        call_state.close(session, reply.calls[result.id], result, entry)
    if entry.said:
        words = Msg(name=session.spec.name, role="assistant", content=(TextBlock(text=entry.said),), id=reply.reply_id)
        session.append((words.model_copy(update={"created_at": iso(entry.at)}),))
    session.requests.parting = None
    ended = Finished(
        reply_id=reply.reply_id,
        request_id=reply.request_id,
        reason=entry.reason,
        at=entry.at,
        error=entry.error,
        usage=reply.usage,
        start=session.requests.reply_start,
        end=session.messages_total,
        started_at=reply.started_at,
    )
    _keep_finished(session, ended)
    if context_state.leaves_out_refused(session, entry.reason):
        context_state.leave_out_unanswered(session)
        session.context.reminders = standing_reminders(session)
    reply_ended(session, reply.reply_id)
    _put_in_front(session, session.requests.steering)
    session.requests.steering = []
    session.requests.ended = entry.seq
    reminder_state.note_end(session, entry.reason)
    call_state.end_of_reply(session)
    session.state.reply_context = None


def _keep_finished(session: SessionState, ended: Finished) -> None:
    session.requests.finished[ended.reply_id] = ended
    while len(session.requests.finished) > KEPT_REQUESTS:
        del session.requests.finished[next(iter(session.requests.finished))]


def follow_up_id(reply_id: str, seq: int) -> str:
    """Reply id of the request that an interrupt's message becomes; no longer for the tenth in a row than for one."""
    return f"{reply_id.partition('.')[0]}.{seq}"
