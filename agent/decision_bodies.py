"""The bodies of `confirm`: what people decide on calls, in our words and in the seed's."""

import json
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from agent.messages import ToolCallBlock
from agent.permission.rules import PermissionRule
from agent.upkeep_bodies import MAX_ID_CHARS, Rules
from agent.values import Guest, Value


def _as_json_text(value: object) -> object:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else value


class CallDecision(Value):
    """`rules`: true takes all that were suggested; a list takes those of them."""

    call_id: str
    decision: Literal["allow", "deny"]
    reason: str = Field(default="", max_length=20_000)
    input: Annotated[str | None, BeforeValidator(_as_json_text)] = None
    rules: bool | Rules = ()
    digest: str | None = None
    signature: str | None = Field(default=None, max_length=300)
    """As `agent.signing` makes it; then the decision counts when a worker has checked it."""


class Confirm(Value):
    reply_id: str | None = None
    decisions: tuple[CallDecision, ...] = Field(min_length=1)
    approver: str = Field(default="", max_length=MAX_ID_CHARS)


class ConfirmResult(Guest):
    """The seed's answer to one call: the block comes back, perhaps with other arguments."""

    confirmed: bool
    tool_call: ToolCallBlock
    rules: tuple[PermissionRule, ...] | None = None


class UserConfirmResultEvent(Guest):
    """The seed's event, valid as it stands (agentscope/event)."""

    type: Literal["USER_CONFIRM_RESULT"] = "USER_CONFIRM_RESULT"
    reply_id: str
    confirm_results: tuple[ConfirmResult, ...] = Field(min_length=1)
