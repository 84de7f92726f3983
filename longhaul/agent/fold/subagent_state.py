"""Changes the ledger by sub-agents: those that were started, and what the one that started this session knows.

Changes the ledger by commands in the background, and by whoever wants an end of what works there.
"""

from collections.abc import Iterable, Mapping
from typing import Any, assert_never

from longhaul.agent import entries as e
from longhaul.agent.entries import BackgroundEntry, CommandBegun, CommandEnded, StopAsked
from longhaul.agent.fold.ledger import Ledger
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


def apply_subagent(ledger: Ledger, entry: e.ChildEntry) -> None:
    match entry:
        case e.ChildStarted():
            _started(ledger, entry)
        case e.ChildrenTold():
            marks = {"interrupt": {"stopped": True}, "pause": {"paused": True}, "resume": {"paused": False}}
            for call_id in entry.call_ids:
                match entry.letter:
                    case "budget":
                        _raises_told(ledger, call_id, entry.through)
                    case "observe":
                        _words_told(ledger, call_id, entry.through)
                    case _:
                        _change(ledger, call_id, **marks[entry.letter])
        case e.ChildEnded():
            _ended(ledger, entry)
        case e.ParentTold():
            _tell(ledger, told=True, error=entry.error)
        case e.ReportAsked():
            report_anew(ledger)
        case _ as never:
            assert_never(never)


def raise_later(ledger: Ledger, entry: e.BudgetAllotted) -> None:
    """It has to be told by how much its limits are raised."""
    child = ledger.children.get(entry.call_id)
    if child is not None and any(entry.more.given()):
        _keep_child(ledger, child.model_copy(update={"raises": {**child.raises, str(entry.seq): entry.more}}))


def stop_subagents(ledger: Ledger, call_ids: Iterable[str], by: str = "") -> None:
    """Those in the background are to stop. `by`: who asks for it from outside."""
    for call_id in call_ids:
        if (child := ledger.children.get(call_id)) is not None and child.background and not child.outcome:
            _change(ledger, call_id, unwanted=True, stopped_by=by or child.stopped_by)


def say_later(ledger: Ledger, seq: int, sent: Mapping[str, str]) -> None:
    for call_id, text in sent.items():
        if child := ledger.children.get(call_id):
            _change(ledger, call_id, words={**child.words, str(seq): text})


def _words_told(ledger: Ledger, call_id: str, through: int) -> None:
    if child := ledger.children.get(call_id):
        _change(ledger, call_id, words={key: text for key, text in child.words.items() if int(key) > through})


def _raises_told(ledger: Ledger, call_id: str, through: int) -> None:
    """What came while others were told is told later."""
    if child := ledger.children.get(call_id):
        later = {number: more for number, more in child.raises.items() if int(number) > through}
        _change(ledger, call_id, raises=later)


def report_anew(ledger: Ledger) -> None:
    """By letter, for whoever has started this session is not in the run any more that hears what it returns."""
    _tell(ledger, told=False, error="", by_result=False)


def _started(ledger: Ledger, entry: e.ChildStarted) -> None:
    """Its report may have come before: letters are read before whatever else a task brings."""
    before = ledger.children.get(entry.child.call_id)
    _keep_child(ledger, entry.child.model_copy(update={"at": entry.at, "outcome": before.outcome if before else ""}))
    call = ledger.open_calls.get(entry.child.call_id)
    if call is not None and call.state is ToolCallState.ALLOWED:
        call.state, call.child = ToolCallState.SUBMITTED, True


def _ended(ledger: Ledger, entry: e.ChildEnded) -> None:
    before = ledger.children.get(entry.call_id)
    child = before or Child(call_id=entry.call_id, agent="", session_id=entry.session_id)
    _keep_child(ledger, child.model_copy(update={"outcome": entry.outcome, "words": {}, "raises": {}}))
    if entry.tainted and not ledger.state.tainted:
        ledger.state.tainted = entry.tainted


def _change(ledger: Ledger, call_id: str, **fields: Any) -> None:
    if child := ledger.children.get(call_id):
        _keep_child(ledger, child.model_copy(update=fields))


def _keep_child(ledger: Ledger, child: Child) -> None:
    """A new table: a copy of the ledger has the same one."""
    kept = {**ledger.children, child.call_id: child}
    ended = [call_id for call_id, each in kept.items() if each.outcome]
    for call_id in ended[: max(len(ended) - MOST_CHILDREN, 0)]:
        del kept[call_id]
    ledger.children = kept


def _tell(ledger: Ledger, **fields: Any) -> None:
    if ledger.parent is not None:
        ledger.parent = ledger.parent.model_copy(update=fields)


AFTER_A_WAIT = (
    e.HumanDecided,
    e.ResultReceived,
    e.InputAnswered,
    e.DeadlineReached,
    e.WakeUpCame,
    e.PauseEnded,
    e.HoldEnded,
    e.DoubtSettled,
)
"""Somebody has kept the session waiting until then, for who knows how long."""


def apply_ask(ledger: Ledger, entry: e.AskEntry) -> None:
    match entry:
        case e.AskerCame(asker=asker):
            _keep_asker(ledger, asker)
        case e.AskerTold(request_id=request_id, error=error):
            known = ledger.askers.get(request_id)
            ledger.askers = {key: one for key, one in ledger.askers.items() if key != request_id}
            if known is not None and error:
                _keep_asker(ledger, known.model_copy(update={"error": error}))
        case _ as never:
            assert_never(never)


def _keep_asker(ledger: Ledger, asker: Asker) -> None:
    """A new table: a copy of the ledger has the same one."""
    kept = {**ledger.askers, asker.request_id: asker}
    lost = [request_id for request_id, one in kept.items() if one.error]
    for request_id in lost[: max(len(lost) - KEPT_ASKERS, 0)]:
        del kept[request_id]
    ledger.askers = kept


def note_for_askers(ledger: Ledger, entry: e.AnyEntry) -> None:
    """What a reply costs is what the session has spent by its end and had not by its beginning. Who has waited for a
    person's time may have ended meanwhile, and hears by a signal: so the session learns whether anybody is there."""
    if isinstance(entry, AFTER_A_WAIT):
        for asker in ledger.askers.values():
            if asker.by_result:
                _keep_asker(ledger, asker.model_copy(update={"by_result": False}))
    elif isinstance(entry, e.ReplyStarted | e.ReplyFinished):
        reply_id = entry.reply_id
        for asker in ledger.askers.values():
            handled = ledger.requests.handled.get(asker.request_id)
            if handled is not None and handled.reply_id == reply_id:
                spent = sum(model.nanos for model in ledger.spent.by_model.values())
                nanos = spent if isinstance(entry, e.ReplyStarted) else spent - asker.nanos
                _keep_asker(ledger, asker.model_copy(update={"nanos": nanos}))


def apply_background(ledger: Ledger, entry: BackgroundEntry) -> None:
    match entry:
        case CommandBegun(command=command):
            _keep_command(ledger, command.model_copy(update={"at": entry.at}))
        case CommandEnded(call_id=call_id, fate=fate):
            if known := ledger.commands.get(call_id):
                _keep_command(ledger, known.model_copy(update={"fate": fate}))
        case StopAsked(call_ids=call_ids, by=by):
            stop_commands(ledger, call_ids, by or SOMEBODY)
            stop_subagents(ledger, call_ids, by or SOMEBODY)
        case _ as never:
            assert_never(never)


def stop_commands(ledger: Ledger, call_ids: Iterable[str], by: str = "") -> None:
    """They are to stop. `by`: who asks for it from outside."""
    for call_id in call_ids:
        if (command := ledger.commands.get(call_id)) is not None and not command.fate:
            _keep_command(ledger, command.model_copy(update={"unwanted": True, "stopped_by": by or command.stopped_by}))


def _keep_command(ledger: Ledger, command: BackgroundCommand) -> None:
    """A new table: a copy of the ledger has the same one."""
    kept = {**ledger.commands, command.call_id: command}
    ended = [call_id for call_id, each in kept.items() if each.fate]
    for call_id in ended[: max(len(ended) - KEPT_COMMANDS, 0)]:
        del kept[call_id]
    ledger.commands = kept
