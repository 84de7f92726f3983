"""From when on an agent counts as stuck: what a user may set about it."""

from pydantic import model_validator

from longhaul.agent.plain.values import Many, Value, sparse


class StuckConfig(Value):
    """How often in a row something may happen until the reply ends as stuck. A turn is a model call and its results."""

    enabled: bool = sparse(True)
    same_result: int = sparse(4, ge=2, le=1_000)
    """Turns with the same calls and the same results."""
    same_error: int = sparse(4, ge=2, le=1_000)
    """Turns with the same calls, all of which fail, whatever the errors say."""
    ping_pong: int = sparse(6, ge=4, le=1_000)
    """Turns that go to and fro between the same two, with the same results."""
    monologue: int = sparse(3, ge=2, le=1_000)
    """Replies without any call, each to a request without a message."""
    empty_replies: int = sparse(3, ge=1, le=1_000)
    """Messages of the model without a word or a call; after each one before the last it is asked again."""
    warn_after: int = sparse(3, ge=2, le=1_000)
    """Turns of a pattern after which the model is told of it; one turn before the limit at the latest."""
    polling: Many[str] = sparse((), max_length=100)
    """Tools that are called again and again on purpose: turns with calls of these alone are not counted."""

    @model_validator(mode="after")
    def _tools_have_names(self) -> "StuckConfig":
        if not all(self.polling):
            raise ValueError("polling: an empty name; list names of tools")
        return self
