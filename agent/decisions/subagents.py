"""Decides about sub-agents: which tasks may begin and how, what is passed on to them, and when one has to report."""

from typing import Any, NamedTuple

from pydantic import Field, ValidationError, field_validator

from longhaul.agent.decisions.background import wanted_by, woken
from longhaul.agent.decisions.interrupting import is_stopped
from longhaul.agent.decisions.rollover import Load
from longhaul.agent.decisions.subagent_settings import files_of, inherited, says_when_to_close
from longhaul.agent.entries import all_entries as e
from longhaul.agent.fold.ledger.agent_state import OpenCall
from longhaul.agent.fold.synthetic_results import lost_child, not_a_call
from longhaul.agent.plain.asked_schema import why_unusable
from longhaul.agent.plain.canonical import digest_of
from longhaul.agent.plain.ids import child_session, opaque_child_id, reply_id, workflow_id
from longhaul.agent.plain.mistakes import what_is_wrong
from longhaul.agent.plain.nearest import did_you_mean
from longhaul.agent.plain.values import OpenValue
from longhaul.agent.record import Record
from longhaul.agent.steps import Tell
from longhaul.agent.values.amount import child_key
from longhaul.agent.values.budget import LimitName
from longhaul.agent.values.conversation.hints import hint_message
from longhaul.agent.values.conversation.messages import ToolCallState, ToolResultBlock, UserMsg
from longhaul.agent.values.conversation.tools import ToolDescriptor
from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.agent.values.subagents import AGENT, LONGEST_TASK_CHARS, Child, Parent


class GivenTask(OpenValue):
    """Arguments of a call of `Agent`."""

    agent: str
    task: str = Field(min_length=1, max_length=LONGEST_TASK_CHARS)
    run_in_background: bool = False
    answer_schema: dict[str, Any] | None = None

    @field_validator("answer_schema")
    @classmethod
    def _can_be_asked_for(cls, schema: dict[str, Any] | None) -> dict[str, Any] | None:
        if schema is not None and (why := why_unusable(schema)):
            raise ValueError(why)
        return schema


class Beginning(NamedTuple):
    """A sub-agent's session as it is started."""

    child: Child
    parent: Parent
    spec: AgentSpec
    request: e.RequestAccepted


def why_not(call: OpenCall, tool: ToolDescriptor, record: Record) -> str:
    """Why this task can't be given to a sub-agent; empty when it can, or when the call is of another tool."""
    if not tool.child:
        return ""
    try:
        task = GivenTask.model_validate_json(call.input)
    except ValidationError as error:
        return what_is_wrong(error)
    if task.agent not in record.spec.agents:
        return f"there is no agent {task.agent[:100]!r}; {did_you_mean(task.agent, record.spec.agents)}"
    if task.run_in_background and record.parent is not None:
        return "run_in_background: a sub-agent waits for those that it starts; leave it out"
    if _count(call, record) > record.spec.max_children:
        return f"this reply has started as many sub-agents as it may, and that is {record.spec.max_children}"
    return ""


def _count(call: OpenCall, record: Record) -> int:
    """Which sub-agent of its reply this one would be: from 1 on, in the order of the calls."""
    reply = record.current
    turn = [one for one in reply.calls if reply.calls[one].block.name == AGENT]
    earlier = [one for one in record.children.values() if one.reply_id == reply.reply_id and one.call_id not in turn]
    return len(earlier) + turn.index(call.block.id) + 1


def beginning(record: Record, call: OpenCall, own_workflow: str) -> Beginning:
    """What a call's sub-agent begins with. Its session follows from this one and the call: it is begun once."""
    task = GivenTask.model_validate_json(call.input)
    call_id, state = call.block.id, record.state
    session = child_session(state.session_id, call_id)
    workflow = opaque_child_id(own_workflow, call_id) or workflow_id(task.agent, state.user_id, session)
    reply, own = record.current.reply_id, record.spec.agents[task.agent]
    by_result = not says_when_to_close(own)
    message = UserMsg(record.spec.name, task.task)
    parent = Parent(
        workflow_id=own_workflow,
        session_id=state.session_id,
        call_id=call_id,
        path=(*(record.parent.path if record.parent else ()), record.spec.name),
        tainted=state.tainted,
        allotted=_allotted(record, call_id),
        ends_at=record.latest_at + round(own.task_seconds * 1000) if own.task_seconds else 0,
        by_result=by_result,
    )
    request = e.RequestAccepted(
        request_id=call_id,
        reply_id=reply_id(workflow, call_id),
        body_digest=digest_of([message.model_dump(mode="json")]),
        messages=(message,),
        structured_schema=task.answer_schema,
    )
    child = Child(
        call_id=call_id,
        agent=task.agent,
        session_id=session,
        workflow_id=workflow,
        reply_id=reply,
        at=record.latest_at,
        background=task.run_in_background,
        by_result=by_result,
    )
    return Beginning(child, parent, inherited(record, own, call_id), request)


def _allotted(record: Record, call_id: str) -> tuple[LimitName, ...]:
    """The limits of which something is put aside for it here."""
    budget, account = record.spec.budget, record.account
    if budget is None or account is None or child_key(call_id) not in account.spending.reserved:
        return ()
    return tuple(name for name, _ in budget.limits())


def to_tell(record: Record, load: Load) -> Tell | None:
    """What sub-agents have not heard yet: that nobody waits for them any more, or that everything stands still."""
    at_work = [one for one in record.children.values() if not one.outcome and one.call_id not in load.running]
    if not at_work:
        return None
    reply, calls = record.reply, record.open_calls
    stopped = reply is not None and is_stopped(record, reply)
    if over := [one.call_id for one in at_work if not one.stopped and _is_over(record, one, calls, stopped=stopped)]:
        return Tell("interrupt", tuple(over))
    if addressed := [one.call_id for one in at_work if one.words and not one.stopped]:
        return Tell("observe", tuple(addressed))
    if raised := [one.call_id for one in at_work if one.raises and not one.stopped]:
        return Tell("budget", tuple(raised))
    paused = record.pause is not None
    if others := [one.call_id for one in at_work if not one.stopped and one.paused is not paused]:
        return Tell("pause" if paused else "resume", tuple(others))
    return None


def _is_over(record: Record, child: Child, calls: dict[str, OpenCall], *, stopped: bool) -> bool:
    if child.background:
        return child.unwanted or record.interrupted
    call = calls.get(child.call_id)
    return call is None or call.state is ToolCallState.FINISHED or stopped


def owes_report(record: Record) -> bool:
    """Whether this is a sub-agent whose task has ended, and whoever gave it is to be told by letter."""
    return _is_due(record) and not ends_with_report(record)


def ends_with_report(record: Record) -> bool:
    """Whether it is to close now, and what its workflow returns is the report: nobody waits for anything else of it,
    and it can be written down."""
    parent = record.parent
    return (
        parent is not None
        and parent.by_result
        and _is_due(record)
        and record.reply is None
        and not record.requests.queue
        and record.compaction.asked is None
        and record.pause is None
        and record.keeping.failed is None
        and not any(doubt.open for doubt in record.doubts.values())
        and not at_work(record)
        and all(command.fate for command in record.commands.values())
    )


def says_at_its_end(record: Record) -> bool:
    """Whether what its workflow returns is the report: also that of a letter which found nobody, for whoever asks when
    this session has closed."""
    return ends_with_report(record) or (record.parent is not None and bool(record.parent.error))


def _is_due(record: Record) -> bool:
    """Whether the end of the task has not been reported in any way."""
    return record.parent is not None and not record.parent.told and task_reply(record) is not None


def task_reply(record: Record) -> str | None:
    """The reply that has ended and is to be reported, or that nobody was there to hear of; None while there is none."""
    parent = record.parent
    if parent is None or (parent.told and not parent.error) or parent.call_id not in record.requests.handled:
        return None
    reply = record.requests.handled[parent.call_id].reply_id
    return reply if reply in record.requests.finished else None


def at_work(record: Record) -> tuple[Child, ...]:
    """Sub-agents whose end is not known."""
    return tuple(child for child in record.children.values() if not child.outcome)


def started(record: Record, child: Child) -> tuple[e.AnyEntry, ...]:
    """That it is there; the call of one in the background has its result with that, if it has none yet."""
    begun = e.ChildStarted(child=child)
    call = record.open_calls.get(child.call_id)
    if not child.background or call is None or call.state is ToolCallState.FINISHED:
        return (begun,)
    text = (
        f"The sub-agent {child.agent!r} works on it in the background; its id is {child.call_id!r}. Its last message "
        "comes by itself when it is ready. Go on with other work, or end your turn: you are woken then."
    )
    return (begun, e.ToolReturned(result=ToolResultBlock(id=child.call_id, name=call.block.name, output=text)))


def last_word(child: Child, how: str, words: str, own_workflow: str) -> e.RequestAccepted | e.Observed:
    """What a sub-agent in the background says last; one that somebody has stopped begins no reply with it."""
    head = f"The sub-agent {child.agent!r} (id {child.call_id!r}) has ended its task in the background: {how}."
    message = hint_message(f"{head}{wanted_by(child.stopped_by)}\n{words}", "sub-agent")
    if child.stopped_by:
        return e.Observed(messages=(message,))
    return woken(f"end of sub-agent {child.call_id}", message, own_workflow)


def says_with_its_end(record: Record) -> bool:
    """Whether the end of a sub-agent says if others wrote its long report. By version 1 each long one counts so."""
    return record.state.behaviour >= 2


def not_begun(call: OpenCall, child: Child, why: str) -> e.ToolReturned:
    """The result of a call whose sub-agent could not be started."""
    return e.ToolReturned(result=not_a_call(call.block, f"session {child.session_id!r} could not be started: {why}"))


def lost(record: Record, child: Child, why: str, own_workflow: str = "") -> tuple[e.AnyEntry, ...]:
    """The end of a sub-agent whose session is gone; nothing for one that has said how it ended."""
    known = record.children.get(child.call_id, child)
    if known.outcome:
        return ()
    ended = e.ChildEnded(call_id=child.call_id, outcome="lost", session_id=child.session_id)
    call = record.open_calls.get(child.call_id)
    if known.is_heard and (call is None or call.state is ToolCallState.FINISHED):
        words = f"Its session {child.session_id!r} was ended from outside ({why}). It may have done part of its task."
        words += files_of(record, known)
        return (ended, last_word(known, "lost", words, own_workflow))
    if call is None or call.state is ToolCallState.FINISHED:
        return (ended,)
    return (ended, e.ToolReturned(result=lost_child(call.block, child, why, files_of(record, known))))
