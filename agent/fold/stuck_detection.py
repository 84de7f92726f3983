"""Changes the watch for circles by entries. Agents without it are not watched."""

from longhaul.agent.fold.ledger.ledger import Ledger
from longhaul.agent.values import stuck_detection
from longhaul.agent.values.conversation.messages import FinishedReason, Msg, ToolCallBlock, ToolResultBlock


def is_watched(ledger: Ledger) -> bool:
    """Code that asks the same again, as one that polls, has been written so."""
    return ledger.spec.stuck.enabled and not ledger.spec.kind


def note_request(ledger: Ledger, *, says_something: bool) -> None:
    """A reply begins."""
    if is_watched(ledger):
        ledger.state.watch = stuck_detection.with_request(
            ledger.state.watch, ledger.spec.stuck, says_something=says_something
        )


def note_observed(ledger: Ledger) -> None:
    """Words of somebody are news: whatever went in circles may end now."""
    if is_watched(ledger):
        ledger.state.watch = ledger.state.watch.model_copy(update={**_BROKEN, "monologue": 0})


def note_words(ledger: Ledger, message: Msg) -> bool:
    """The model has spoken. Returns whether it is to be asked again, because it said nothing."""
    if not is_watched(ledger):
        return False
    ledger.state.watch = stuck_detection.with_words(ledger.state.watch, message)
    if ledger.current.structured_schema is not None:
        # Words where a form was asked for are counted by themselves.
        ledger.state.watch = ledger.state.watch.model_copy(update={"monologue": 0})
    # At the limit of iterations whatever it says is the last word.
    return stuck_detection.says_nothing(message) and ledger.current.cur_iter < ledger.spec.react_config.max_iters


def note_call(ledger: Ledger, call: ToolCallBlock, result: ToolResultBlock) -> None:
    if is_watched(ledger):
        ledger.state.watch = stuck_detection.with_call(ledger.state.watch, ledger.spec.stuck, call, result)


def note_turn(ledger: Ledger) -> None:
    if is_watched(ledger):
        ledger.state.watch = stuck_detection.with_turn(ledger.state.watch, ledger.spec.stuck)


def note_warned(ledger: Ledger) -> None:
    ledger.state.watch = ledger.state.watch.model_copy(update={"owed": ""})


def note_end(ledger: Ledger, reason: FinishedReason) -> None:
    """The next reply begins anew; only that nobody has said anything since is still counted."""
    went_on = ledger.state.watch.monologue if reason is FinishedReason.COMPLETED else 0
    ledger.state.watch = stuck_detection.Watch(monologue=went_on)


_BROKEN = {"last": None, "before": None, "same_result": 0, "same_error": 0, "ping_pong": 0, "owed": ""}
