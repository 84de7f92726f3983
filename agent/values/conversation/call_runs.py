"""Call runs: what a worker tells of one in the metadata of its result, for whoever reads the message."""

from pydantic import ValidationError

from longhaul.agent.plain.values import OpenValue, sparse
from longhaul.agent.values.conversation.messages import ToolResultBlock
from longhaul.agent.values.conversation.tools import Effect

_KEY = "ran"


class CallRun(OpenValue):
    """Of a call that a worker ran."""

    effect: Effect
    """As decided: a call proven read-only is `read`, whatever its tool could do."""
    seconds: float | None = sparse(None, ge=0)
    """The attempt that its result comes from; None: that was lost."""


def with_ran(result: ToolResultBlock, ran: CallRun) -> ToolResultBlock:
    return result.model_copy(update={"metadata": {**result.metadata, _KEY: ran.model_dump(mode="json")}})


def ran_in(result: ToolResultBlock) -> CallRun | None:
    """None where no worker ran it."""
    try:
        return CallRun.model_validate(result.metadata.get(_KEY))
    except ValidationError:
        return None
