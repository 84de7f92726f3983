"""Changes the ledger by calls that begin to sleep, and by what ends their sleep."""

from typing import assert_never

from longhaul.agent.entries.sleep import SleepBegun, SleepEntry, WakeUpCame
from longhaul.agent.fold.ledger.agent_state import OpenCall
from longhaul.agent.fold.ledger.ledger import KEPT_REQUESTS, Ledger
from longhaul.agent.fold.ledger.ledger_parts import WakeUps
from longhaul.agent.values.conversation.messages import ToolCallState
from longhaul.agent.values.sleep import Over, Sleep


def apply(ledger: Ledger, entry: SleepEntry) -> None:
    match entry:
        case SleepBegun():
            _begin(ledger, entry)
        case WakeUpCame():
            _came(ledger, entry)
        case _ as never:
            assert_never(never)


def time_reached(ledger: Ledger, at: int) -> None:
    for call in asleep(ledger):
        if call.sleep is not None and call.sleep.until <= at:
            _end(call, "time")


def message_came(ledger: Ledger) -> None:
    """Who says something that the reply is to hear at its next step would else wait for days."""
    for call in asleep(ledger):
        _end(call, "message")


def asleep(ledger: Ledger) -> list[OpenCall]:
    """Calls that sleep and have not been woken."""
    return [call for call in ledger.open_calls.values() if call.sleep is not None and call.waits_for == "wake-up"]


def _begin(ledger: Ledger, entry: SleepBegun) -> None:
    call = ledger.current.calls[entry.call_id]
    call.state, call.asked_at = ToolCallState.SUBMITTED, entry.at
    call.sleep = Sleep(until=entry.until, event=entry.event)
    if ledger.requests.steering:
        _end(call, "message")
        return
    kept = ledger.wake_ups.kept if ledger.wake_ups else []
    if (first := next((one for one in kept if one.event == entry.event), None)) is not None:
        _wake(ledger, call, first)
        ledger.wake_ups = WakeUps([one for one in kept if one is not first], _handled(ledger))


def _came(ledger: Ledger, entry: WakeUpCame) -> None:
    """Of two that are in their own lives the first of an id, and both here when these are joined, one counts."""
    handled = _handled(ledger)
    if entry.request_id in handled:
        return
    handled[entry.request_id] = entry.body_digest
    while len(handled) > KEPT_REQUESTS:
        del handled[next(iter(handled))]
    kept = [*ledger.wake_ups.kept] if ledger.wake_ups else []
    waits = (call for call in asleep(ledger) if call.sleep is not None and call.sleep.event == entry.event)
    if (call := next(waits, None)) is not None:
        _wake(ledger, call, entry)
    else:
        kept.append(entry)
    ledger.wake_ups = WakeUps(kept, handled)


def _handled(ledger: Ledger) -> dict[str, str]:
    return {**ledger.wake_ups.handled} if ledger.wake_ups else {}


def _wake(ledger: Ledger, call: OpenCall, came: WakeUpCame) -> None:
    _end(call, "event")
    if call.sleep is not None:
        call.sleep = call.sleep.model_copy(update={"payload": came.payload, "came_at": came.at, "by": came.by})
    if came.payload and not ledger.state.tainted:
        ledger.state.tainted = f"a notification of {came.event!r} brought in what others wrote"


def _end(call: OpenCall, why: Over) -> None:
    if call.sleep is not None:
        call.sleep = call.sleep.model_copy(update={"over": why})
