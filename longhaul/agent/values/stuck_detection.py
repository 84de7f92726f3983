"""The watch tells whether an agent goes round in circles: what a user sets about it, what is remembered of its turns,
and when it is told or stopped.

Of each turn a digest is kept, made when it ends, and compared with the two before it: the work of a step does not
grow with the session. The counts are OpenHands' own, over turns instead of single calls.
"""

from typing import Literal

from pydantic import Field, model_validator

from longhaul.agent.plain.values import Many, OpenValue, Value, digest_of, sparse
from longhaul.agent.values.conversation.messages import (
    DataBlock,
    ErrorInfo,
    Msg,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    ToolResultState,
)

DIGEST_CHARS = 16
_FAILURES = (ToolResultState.ERROR, ToolResultState.DENIED)

Pattern = Literal["", "same_result", "same_error", "ping_pong", "monologue", "empty_replies"]


class StuckConfig(Value):
    """How often in a row something may happen before the reply ends as stuck. A turn is a model call and its
    results."""

    enabled: bool = sparse(True)
    same_result: int = sparse(4, ge=2, le=1_000)
    """Turns with the same calls and the same results."""
    same_error: int = sparse(4, ge=2, le=1_000)
    """Turns with the same calls, all of which fail, whatever the errors say."""
    ping_pong: int = sparse(6, ge=4, le=1_000)
    """Turns that alternate between the same two turns, with the same results."""
    monologue: int = sparse(3, ge=2, le=1_000)
    """Replies without any call, each to a request without a message."""
    empty_replies: int = sparse(3, ge=1, le=1_000)
    """Messages of the model without text and calls. After each of them but the last, the model is called again."""
    warn_after: int = sparse(3, ge=2, le=1_000)
    """Turns of a pattern after which a reminder names the pattern; at the latest one turn before the limit."""
    polling: Many[str] = sparse((), max_length=100)
    """Tools that are called repeatedly on purpose. A turn that only calls these tools does not count."""

    @model_validator(mode="after")
    def _tools_have_names(self) -> "StuckConfig":
        if not all(self.polling):
            raise ValueError("polling: an empty name; list names of tools")
        return self


class Turn(OpenValue):
    """Digests of what was called and of what came of it, in no order: calls of one turn end in any."""

    calls: str
    results: str
    failed: bool = sparse(False)
    polls: bool = sparse(False)


class Watch(OpenValue):
    """How often what has happened in a row. Each count begins again with other turns, and with words of somebody."""

    open: tuple[Turn, ...] = sparse(())
    """Of the turn under way, one for each call that has ended."""
    last: Turn | None = sparse(None)
    before: Turn | None = sparse(None)
    same_result: int = sparse(0, ge=0)
    same_error: int = sparse(0, ge=0)
    ping_pong: int = sparse(0, ge=0)
    monologue: int = sparse(0, ge=0)
    """Replies that only speak, to requests that say nothing."""
    unasked: bool = sparse(False)
    """The reply that is being made is to such a request."""
    empty_replies: int = sparse(0, ge=0)
    owed: Pattern = sparse("")
    """What the model is to be told before it is asked again."""


UNWATCHED = Watch()


class Seen(OpenValue):
    """A pattern, and how often it came in a row."""

    pattern: Pattern
    times: int = Field(ge=1)


def with_call(watch: Watch, config: StuckConfig, call: ToolCallBlock, result: ToolResultBlock) -> Watch:
    """After a call has its result."""
    output = result.output if isinstance(result.output, str) else [each.model_dump() for each in result.output]
    ended = Turn(
        calls=_digest([call.name, call.input]),
        results=_digest([result.state.value, output]),
        failed=result.state in _FAILURES,
        polls=call.name in config.polling,
    )
    return watch.model_copy(update={"open": (*watch.open, ended)})


def with_turn(watch: Watch, config: StuckConfig) -> Watch:
    """After every call of the turn has its result."""
    if not watch.open or all(call.polls for call in watch.open):
        return Watch(monologue=watch.monologue, unasked=watch.unasked)
    turn, last = _turn_of(watch.open), watch.last
    again, failed_again = last == turn, last is not None and last.failed and last.calls == turn.calls
    counted = Watch(
        last=turn,
        before=last,
        same_result=watch.same_result + 1 if again else 1,
        same_error=watch.same_error + 1 if turn.failed and failed_again else int(turn.failed),
        ping_pong=_ping_pong(watch, turn),
        unasked=watch.unasked,
    )
    return counted.model_copy(update={"owed": _owed(counted, config)})


def with_words(watch: Watch, message: Msg) -> Watch:
    """After the model has spoken."""
    if message.get_tool_calls():
        return watch.model_copy(update={"empty_replies": 0, "monologue": 0})
    if says_nothing(message):
        return watch.model_copy(update={"empty_replies": watch.empty_replies + 1, "owed": "empty_replies"})
    return watch.model_copy(update={"empty_replies": 0, "monologue": watch.monologue + int(watch.unasked)})


def with_request(watch: Watch, config: StuckConfig, *, says_something: bool) -> Watch:
    """When a reply begins: what was asked for is new, unless the request says nothing."""
    if says_something:
        return UNWATCHED
    owed: Pattern = "monologue" if 0 < watch.monologue == config.monologue - 1 else ""
    return Watch(monologue=watch.monologue, owed=owed, unasked=True)


def says_nothing(message: Msg) -> bool:
    """Neither a call nor a word nor a picture; thoughts are for nobody."""
    return not any(
        (isinstance(block, TextBlock) and block.text.strip()) or isinstance(block, DataBlock | ToolCallBlock)
        for block in message.content
    )


def stuck(watch: Watch, config: StuckConfig) -> Seen | None:
    """The pattern for which the reply ends now."""
    limits: tuple[tuple[Pattern, int, int], ...] = (
        ("empty_replies", watch.empty_replies, config.empty_replies),
        ("monologue", watch.monologue, config.monologue),
        ("same_error", watch.same_error, config.same_error),
        ("same_result", watch.same_result, config.same_result),
        ("ping_pong", watch.ping_pong, config.ping_pong),
    )
    return next((Seen(pattern=pattern, times=times) for pattern, times, limit in limits if times >= limit), None)


def why(seen: Seen) -> ErrorInfo:
    """The end of a reply that goes round in circles, for a person."""
    return ErrorInfo(
        type="stuck",
        message=f"The agent was stuck ({seen.pattern}): {_WHAT[seen.pattern].format(times=seen.times)}. Tell it "
        "what to do differently, or change the limits in [stuck] of its file.",
    )


def _owed(watch: Watch, config: StuckConfig) -> Pattern:
    """One turn before the limit at the latest, where there is a pattern by then."""
    told_at = min(config.warn_after, config.same_error - 1)
    if watch.same_error == told_at >= 2:
        return "same_error"
    if watch.same_result == min(config.warn_after, config.same_result - 1) >= 2:
        return "same_result"
    # Three turns to and fro are no pattern yet: looking, changing and looking again is how work is done.
    return "ping_pong" if watch.ping_pong == max(4, min(config.warn_after, config.ping_pong - 1)) else ""


def _ping_pong(watch: Watch, turn: Turn) -> int:
    if watch.last is None or watch.last == turn:
        return 1
    return watch.ping_pong + 1 if watch.before == turn else 2


def _turn_of(calls: tuple[Turn, ...]) -> Turn:
    return Turn(
        calls=_digest(sorted(call.calls for call in calls)),
        results=_digest(sorted(call.calls + call.results for call in calls)),
        failed=all(call.failed for call in calls),
    )


def _digest(value: object) -> str:
    return digest_of(value)[:DIGEST_CHARS]


_WHAT: dict[Pattern, str] = {
    "same_result": "it made the same calls {times} times in a row, with the same results",
    "same_error": "it made the same calls {times} times in a row, and they failed each time",
    "ping_pong": "it went to and fro between the same two steps for {times} turns, with the same results",
    "monologue": "it answered {times} requests to go on without doing anything",
    "empty_replies": "it answered {times} times in a row with nothing",
}

HINTS: dict[Pattern, str] = {
    "same_result": "You keep making the same calls and get the same results. Another repetition will not change them, "
    "and the reply will be stopped. Use what you know, try another way, or say what keeps you from going on.",
    "same_error": "You keep making the same calls, and they keep failing. Do not repeat them as they are, or the reply "
    "will be stopped: read why they failed, try another way, or say what keeps you from going on.",
    "ping_pong": "You go to and fro between the same two steps, with the same results. If that goes on, the reply will "
    "be stopped. Try another way, or say what keeps you from going on.",
    "monologue": "You were asked to go on, and have only spoken. Use your tools to go on with the work; if it is done "
    "or can't be done, say so in one sentence.",
    "empty_replies": "Your last message was empty. Call a tool, or answer in words.",
}
