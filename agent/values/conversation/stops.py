"""The reasons why a model stopped speaking, the same for every provider, and what it is told then."""

from enum import StrEnum
from typing import Literal

from longhaul.agent.values.conversation.messages import FinishedReason
from longhaul.agent.values.conversation.structured_output import GENERATE_RESPONSE


class StopReason(StrEnum):
    """Of one message of a model."""

    END = "end"
    """It has said what it wanted to say, calls included."""
    LENGTH = "length"
    """The limit of output tokens: the message is not whole."""
    PAUSED = "paused"
    """The provider has stopped it in the midst and wants to be asked again."""
    WINDOW = "window"
    """The model's window is full: the message is not whole."""
    REFUSED = "refused"
    """The model, or a classifier of its provider, does not answer this."""
    FILTERED = "filtered"
    """A content filter has stopped it."""
    UNKNOWN = "unknown"
    """A word of the provider's that we do not know; the message is taken as it came."""


BROKEN_OFF = frozenset({StopReason.LENGTH, StopReason.PAUSED, StopReason.WINDOW})
"""The message is not whole, and the model is asked to go on with it."""
REFUSALS = frozenset({StopReason.REFUSED, StopReason.FILTERED})
"""Another model may answer; the same one would say the same again, and be paid for it."""

GoOn = Literal["", "length", "wordless", "paused", "window", "unstructured"]
"""How a model is told to go on; wordless: it has used all of its tokens to think; unstructured: it has answered in
words where a form was asked for."""

GO_ON: dict[GoOn, str] = {
    "length": "Your answer broke off at the limit of output tokens. Go on exactly where it ends: repeat nothing, "
    "and do not sum up. If much is left, take smaller steps.",
    "wordless": "You used all of your output tokens before you had said a word. Think less, and answer or call a tool.",
    "paused": "Your answer was paused before it was finished. Go on exactly where it ends.",
    "window": "Your answer broke off because your context window was full; what was said long ago may be summed up by "
    "now. Go on exactly where it ends, and be brief.",
    "unstructured": f"Words alone are no answer here. If the work is done, call `{GENERATE_RESPONSE}` with your "
    "answer; if it is not, go on with it.",
}

NOT_WHOLE = (
    "your message broke off while you were writing it, so its arguments may not be whole. Make it again; if it was "
    "long, make it shorter, or several calls of it"
)
"""Why the last call of a message that broke off does not run."""

WHERE = {
    StopReason.LENGTH: "at the limit of output tokens",
    StopReason.PAUSED: "because the provider paused it",
    StopReason.WINDOW: "because the model's window was full",
}
"""Where a message broke off, for a person."""


def ends_as(stop: StopReason) -> FinishedReason:
    """How a model call has ended that stopped so."""
    if stop in BROKEN_OFF:
        return FinishedReason.INCOMPLETE
    return FinishedReason.REFUSED if stop in REFUSALS else FinishedReason.COMPLETED
