"""The reasons why a model stopped speaking, the same for every provider."""

from enum import StrEnum

from longhaul.agent.values.conversation.messages import FinishedReason


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
