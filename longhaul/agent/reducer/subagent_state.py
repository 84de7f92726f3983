"""Changes the session state by sub-agents: those that were started, and what the one that started this session knows.

Changes the session state by commands in the background, and by requests to stop what works there.
"""

from collections.abc import Iterable, Mapping
from typing import Any, assert_never

from longhaul.agent import entries as e
from longhaul.agent.entries import BackgroundEntry, CommandEnded, CommandStarted, StopAsked
from longhaul.agent.reducer.session_state import SessionState
from longhaul.agent.values.conversation.messages import ToolCallState
from longhaul.agent.values.subagents import (
    KEPT_ASKERS,
    KEPT_COMMANDS,
    MOST_CHILDREN,
    SOMEBODY,
    Asker,
    BackgroundCommand,
    Child,
)


def apply_subagent(session: SessionState, entry: e.ChildEntry) -> None:
    match entry:
        case e.ChildStarted():
            _started(session, entry)
        case e.ChildrenTold():
            marks = {"interrupt": {"stopped": True}, "pause": {"paused": True}, "resume": {"paused": False}}
            for call_id in entry.call_ids:
                match entry.operation:
                    case "budget":
                        _raises_told(session, call_id, entry.through)
                    case "observe":
                        _words_told(session, call_id, entry.through)
                    case _:
                        _change(session, call_id, **marks[entry.operation])
        case e.ChildEnded():
            _ended(session, entry)
        case e.ParentTold():
            _tell(session, told=True, error=entry.error)
        case e.ReportAsked():
            report_again(session)
        case _ as never:
            assert_never(never)


def raise_later(session: SessionState, entry: e.BudgetAllotted) -> None:
    """It has to be told by how much its limits are raised."""
    child = session.children.get(entry.call_id)
    if child is not None and any(entry.more.given()):
        _keep_child(session, child.model_copy(update={"raises": {**child.raises, str(entry.seq): entry.more}}))


def stop_subagents(session: SessionState, call_ids: Iterable[str], by: str = "") -> None:
    """Those in the background are to stop. `by`: who asks for it from outside."""
    for call_id in call_ids:
        if (child := session.children.get(call_id)) is not None and child.background and not child.outcome:
            _change(session, call_id, unwanted=True, stopped_by=by or child.stopped_by)


def say_later(session: SessionState, seq: int, sent: Mapping[str, str]) -> None:
    for call_id, text in sent.items():
        if child := session.children.get(call_id):
            _change(session, call_id, words={**child.words, str(seq): text})


def _words_told(session: SessionState, call_id: str, through: int) -> None:
    if child := session.children.get(call_id):
        _change(session, call_id, words={key: text for key, text in child.words.items() if int(key) > through})


def _raises_told(session: SessionState, call_id: str, through: int) -> None:
    """What came while others were notified is sent later."""
    if child := session.children.get(call_id):
        later = {number: more for number, more in child.raises.items() if int(number) > through}
        _change(session, call_id, raises=later)


def report_again(session: SessionState) -> None:
    """By operation, because the lead's current run does not wait for what this session's workflow returns."""
    _tell(session, told=False, error="", by_result=False)


def _started(session: SessionState, entry: e.ChildStarted) -> None:
    """Its report may have come before: operations are read before whatever else a task brings."""
    before = session.children.get(entry.child.call_id)
    _keep_child(session, entry.child.model_copy(update={"at": entry.at, "outcome": before.outcome if before else ""}))
    call = session.open_calls.get(entry.child.call_id)
    if call is not None and call.state is ToolCallState.ALLOWED:
        call.state, call.child = ToolCallState.SUBMITTED, True


def _ended(session: SessionState, entry: e.ChildEnded) -> None:
    before = session.children.get(entry.call_id)
    child = before or Child(call_id=entry.call_id, agent="", session_id=entry.session_id)
    _keep_child(session, child.model_copy(update={"outcome": entry.outcome, "words": {}, "raises": {}}))
    if entry.tainted and not session.state.tainted:
        session.state.tainted = entry.tainted


def _change(session: SessionState, call_id: str, **fields: Any) -> None:
    if child := session.children.get(call_id):
        _keep_child(session, child.model_copy(update=fields))


def _keep_child(session: SessionState, child: Child) -> None:
    """A new table: a copy of the session state has the same one."""
    kept = {**session.children, child.call_id: child}
    ended = [call_id for call_id, each in kept.items() if each.outcome]
    for call_id in ended[: max(len(ended) - MOST_CHILDREN, 0)]:
        del kept[call_id]
    session.children = kept


def _tell(session: SessionState, **fields: Any) -> None:
    if session.parent is not None:
        session.parent = session.parent.model_copy(update=fields)


AFTER_A_WAIT = (
    e.HumanDecided,
    e.ResultReceived,
    e.InputAnswered,
    e.DeadlineReached,
    e.ExternalEventReceived,
    e.PauseEnded,
    e.QuarantineEnded,
    e.OutcomeResolved,
)
"""Somebody has kept the session waiting until then, for who knows how long."""


def apply_ask(session: SessionState, entry: e.AskEntry) -> None:
    match entry:
        case e.AskerCame(asker=asker):
            _keep_asker(session, asker)
        case e.AskerTold(request_id=request_id, error=error):
            known = session.askers.get(request_id)
            session.askers = {key: one for key, one in session.askers.items() if key != request_id}
            if known is not None and error:
                _keep_asker(session, known.model_copy(update={"error": error}))
        case _ as never:
            assert_never(never)


def _keep_asker(session: SessionState, asker: Asker) -> None:
    """A new table: a copy of the session state has the same one."""
    kept = {**session.askers, asker.request_id: asker}
    lost = [request_id for request_id, one in kept.items() if one.error]
    for request_id in lost[: max(len(lost) - KEPT_ASKERS, 0)]:
        del kept[request_id]
    session.askers = kept


def note_for_askers(session: SessionState, entry: e.AnyEntry) -> None:
    """What a reply costs is what the session has spent by its end and had not by its beginning. Who has waited for a
    person's time may have ended meanwhile, and hears by a signal: so the session learns whether anybody is there."""
    if isinstance(entry, AFTER_A_WAIT):
        for asker in session.askers.values():
            if asker.by_result:
                _keep_asker(session, asker.model_copy(update={"by_result": False}))
    elif isinstance(entry, e.ReplyStarted | e.ReplyFinished):
        reply_id = entry.reply_id
        for asker in session.askers.values():
            handled = session.requests.handled.get(asker.request_id)
            if handled is not None and handled.reply_id == reply_id:
                spent = sum(model.nanos for model in session.spent.by_model.values())
                nanos = spent if isinstance(entry, e.ReplyStarted) else spent - asker.nanos
                _keep_asker(session, asker.model_copy(update={"nanos": nanos}))


def apply_background(session: SessionState, entry: BackgroundEntry) -> None:
    match entry:
        case CommandStarted(command=command):
            _keep_command(session, command.model_copy(update={"at": entry.at}))
        case CommandEnded(call_id=call_id, fate=fate):
            if known := session.commands.get(call_id):
                _keep_command(session, known.model_copy(update={"fate": fate}))
        case StopAsked(call_ids=call_ids, by=by):
            stop_commands(session, call_ids, by or SOMEBODY)
            stop_subagents(session, call_ids, by or SOMEBODY)
        case _ as never:
            assert_never(never)


def stop_commands(session: SessionState, call_ids: Iterable[str], by: str = "") -> None:
    """They are to stop. `by`: who asks for it from outside."""
    for call_id in call_ids:
        if (command := session.commands.get(call_id)) is not None and not command.fate:
            _keep_command(
                session, command.model_copy(update={"unwanted": True, "stopped_by": by or command.stopped_by})
            )


def _keep_command(session: SessionState, command: BackgroundCommand) -> None:
    """A new table: a copy of the session state has the same one."""
    kept = {**session.commands, command.call_id: command}
    ended = [call_id for call_id, each in kept.items() if each.fate]
    for call_id in ended[: max(len(ended) - KEPT_COMMANDS, 0)]:
        del kept[call_id]
    session.commands = kept
