"""Letters of workers about themselves: that one leaves, or lacks what a step needs."""

from typing import Any

from longhaul.agent.entries import all_entries as e
from longhaul.agent.letters.bodies import TellWorkerLacks, TellWorkerLeft
from longhaul.agent.letters.letter import Received
from longhaul.agent.record import Record


def worker_left(record: Record, body: TellWorkerLeft) -> Received:
    """Nothing is recorded of a session that is at nothing: there is nothing to go on with."""
    if record.reply is None:
        return Received((), {"recorded": False})
    return Received((e.WorkerLeft(worker=body.worker, doing=body.doing, call_id=body.call_id),), {"recorded": True})


def worker_lacks(record: Record, body: TellWorkerLacks) -> Received:
    """Recorded when it is news for a reply that is being made: workers say it more than once."""
    entry = e.WorkerLacks(worker=body.worker, doing=body.doing, call_id=body.call_id, why=body.why, away=body.away)
    known = record.life.lacking
    what = (entry.doing, entry.call_id, entry.why, entry.away)
    same = known is not None and (known.doing, known.call_id, known.why, known.away) == what
    if record.reply is None or same:
        return Received((), {"recorded": False})
    return Received((entry,), {"recorded": True})


def shutdown(record: Record) -> dict[str, Any]:
    """What a session's status says of a worker that has left it, as far as the log still tells of it."""
    interrupted = record.state.shutdown_interrupted
    left = (entry.worker for entry in reversed(record.log) if interrupted and isinstance(entry, e.WorkerLeft))
    return {"shutdown_interrupted": interrupted, "left_by": next(left, "")}
