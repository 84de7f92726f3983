"""The letter with which somebody stops what works in the background: commands and sub-agents, by the calls that began
them.

It changes what is wanted; their end comes later, as any end of theirs. So it can be sent again, also behind it.
"""

from longhaul.agent.decisions import background, subagents
from longhaul.agent.entries import all_entries as e
from longhaul.agent.letters.bodies import StopBackground, Unusable
from longhaul.agent.letters.letter import Received
from longhaul.agent.record import Record
from longhaul.agent.values.background import BackgroundCommand
from longhaul.agent.values.subagents import Child


def stop(record: Record, body: StopBackground) -> Received:
    """The answer names all that is to stop, or was to; `already`: those of which that was known."""
    working = _at_work(record)
    wanted = {body.call_id: _named(record, body.call_id)} if body.call_id else working
    new = tuple(call_id for call_id, one in wanted.items() if not _is_to_stop(one))
    answer = {"call_ids": list(wanted), "already": [call_id for call_id in wanted if call_id not in new]}
    return Received((e.StopAsked(call_ids=new, by=body.by),) if new else (), answer)


def named_at_work(record: Record) -> str:
    """What works in the background, by ids; empty when nothing does."""
    return ", ".join(f"{call_id!r} ({_what(one)})" for call_id, one in _at_work(record).items())


def _at_work(record: Record) -> dict[str, BackgroundCommand | Child]:
    """By call id; commands first, each kind in the order of its beginning."""
    agents = (child for child in subagents.at_work(record) if child.background)
    works: tuple[BackgroundCommand | Child, ...] = (*background.at_work(record), *agents)
    return {one.call_id: one for one in works}


def _named(record: Record, call_id: str) -> BackgroundCommand | Child:
    """What this call has begun and is to stop, or was stopped by such a letter. Raises Unusable."""
    command, child = record.commands.get(call_id), record.children.get(call_id)
    one = command or child
    if one is not None and call_id in _at_work(record):
        return one
    if one is not None and one.stopped_by:
        return one  # whoever has not heard the answer asks again
    now = named_at_work(record)
    there = f"at work there: {now}" if now else "nothing works there now"
    if child is not None and not child.background and not child.outcome:
        raise Unusable(
            f"call_id: {call_id!r} is a task that the reply being made waits for; `interrupt` ends that reply or, sent "
            f"to session {child.session_id!r}, this task alone"
        )
    if one is not None:
        how = command.fate if command is not None else child.outcome if child is not None else ""
        raise Unusable(f"call_id: {call_id!r} is over ({how}) and works no more in the background; {there}")
    raise Unusable(f"call_id: nothing in the background has the id {call_id[:100]!r}; {there}")


def _is_to_stop(one: BackgroundCommand | Child) -> bool:
    return one.unwanted or (isinstance(one, Child) and one.stopped)


def _what(one: BackgroundCommand | Child) -> str:
    return f"sub-agent {one.agent!r}" if isinstance(one, Child) else "command"
