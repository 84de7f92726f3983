"""The letter that tells a session of an event: it wakes the call that waits for it, or is kept until one does."""

from longhaul.agent.entries.sleep import WakeUpCame
from longhaul.agent.fold.sleep import asleep
from longhaul.agent.letters.bodies import Notify, Unusable
from longhaul.agent.letters.letter import Letter, Received
from longhaul.agent.plain.canonical import digest_of
from longhaul.agent.record import Record
from longhaul.agent.values.sleep import KEPT_WAKE_UPS


def notify(record: Record, body: Notify, letter: Letter) -> Received:
    """Whoever sends the same id again changes nothing, and is told so."""
    request_id = body.request_id or letter.fresh_id
    digest = digest_of([body.event, body.payload])
    known = record.wake_ups.handled.get(request_id) if record.wake_ups else None
    if known is not None and known != digest:
        raise Unusable(f"request_id {request_id!r} was used before for another notification; take a new id")
    wakes = any(call.sleep is not None and call.sleep.event == body.event for call in asleep(record))
    answer = {"event": body.event, "request_id": request_id, "woken": wakes, "already": known is not None}
    if known is not None:
        return Received((), {**answer, "woken": False})
    kept = len(record.wake_ups.kept) if record.wake_ups else 0
    if kept >= KEPT_WAKE_UPS and not wakes:
        raise Unusable(
            f"event {body.event!r}: nobody waits for it, and {kept} notifications are kept already, which is the most; "
            "send it again when the session waits for it"
        )
    entry = WakeUpCame(event=body.event, request_id=request_id, body_digest=digest, payload=body.payload, by=body.by)
    return Received((entry,), answer)
