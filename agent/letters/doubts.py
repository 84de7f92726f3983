"""Questions about open doubts, and the letter that settles one."""

from longhaul.agent.entries import all_entries as e
from longhaul.agent.entries.doubts import Doubt
from longhaul.agent.letters.bodies import Settle, Unusable
from longhaul.agent.letters.letter import Received
from longhaul.agent.record import Record


def open_doubts(record: Record, reply_id: str | None = None) -> list[Doubt]:
    """Those that nobody has settled, the oldest first; with `reply_id`, those of that reply."""
    return [doubt for doubt in record.doubts.values() if doubt.open and reply_id in (None, doubt.reply_id)]


def to_probe(record: Record) -> Doubt | None:
    """The doubt that its tool is to look into next."""
    return next((doubt for doubt in record.doubts.values() if doubt.due and _can_look(record, doubt)), None)


def _can_look(record: Record, doubt: Doubt) -> bool:
    tool = record.provided.tools.get(doubt.tool)
    return doubt.open and tool is not None and tool.probes


def blocking(record: Record) -> list[Doubt]:
    """The doubts without whose settlement the reply does not go on: none, unless the agent asks a person."""
    reply = record.reply
    if record.spec.on_doubt != "ask" or reply is None or reply.calls or reply.answered or record.interrupted:
        return []
    return [doubt for doubt in open_doubts(record, reply.reply_id) if not (doubt.due and _can_look(record, doubt))]


def settle(record: Record, body: Settle) -> Received:
    doubt = record.doubts.get(body.call_id)
    if doubt is None:
        waiting = [each.call_id for each in open_doubts(record)]
        told = "was never in doubt" if record.had_call(body.call_id) else "is no call here"
        raise Unusable(f"call {body.call_id!r} {told}; in doubt: {waiting or 'none'}")
    if not doubt.open:
        word = "happened" if doubt.happened else "did not happen"
        raise Unusable(f"call {body.call_id!r} is settled: it {word}, on the word of {doubt.by}")
    if body.output and not body.happened:
        raise Unusable(f"output: a call that did not happen ({body.call_id!r}) has none; leave it out")
    entry = e.DoubtSettled(
        call_id=body.call_id, happened=body.happened, output=body.output, by=body.by, reason=body.reason
    )
    return Received((entry,), {"settled": body.call_id, "happened": body.happened})
