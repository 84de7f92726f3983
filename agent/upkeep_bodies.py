"""Bodies of letters about a session as a whole."""

from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from agent.permission.rules import Analyzers, Confirming, PermissionMode, PermissionRule, only_known_keys
from agent.settings import ContextConfig, Middlewares
from agent.values import Value

MAX_ID_CHARS = 1_000
Rules = Annotated[tuple[PermissionRule, ...], BeforeValidator(only_known_keys)]

LEAVING = "Leaving"
"""Error type of an activity whose worker is shut down: it is repeated elsewhere."""
WORKER_LEFT = "worker_left"
"""The signal with which it says so."""


class Configure(Value):
    mode: PermissionMode | None = None
    rules: Rules = ()
    max_iters: int | None = Field(default=None, ge=1, le=1_000_000)
    model: str | None = Field(default=None, min_length=1, max_length=1_000)
    confirm: Confirming | None = None
    analyzers: Analyzers | None = None
    middlewares: Middlewares | None = None
    by: str = Field(default="", max_length=MAX_ID_CHARS)


class ChangeRules(Value):
    """Add rules to a session and revoke others, both at once or not at all."""

    add: Rules = ()
    revoke: tuple[str, ...] = ()
    """Ids, as the list of rules gives them."""
    by: str = Field(default="", max_length=MAX_ID_CHARS)
    why: str = Field(default="", max_length=2_000)


class PauseSession(Value):
    """Begin nothing new until somebody resumes."""

    by: str = Field(default="", max_length=MAX_ID_CHARS)
    why: str = Field(default="", max_length=2_000)


class TakeStep(Value):
    """Let a paused session take one step."""

    by: str = Field(default="", max_length=MAX_ID_CHARS)


class Resume(Value):
    """Let a session go on that is paused, or held because somebody has to look first."""

    by: str = Field(default="", max_length=MAX_ID_CHARS)


class ReplaceState(Value):
    """Put another state in the place of an idle session's."""

    state: dict[str, Any]
    """AgentState as JSON."""
    expected_seq: int | None = None
    """As `status` gave it: when something has been recorded since, nothing is replaced. None = whatever it is."""
    by: str = Field(default="", max_length=MAX_ID_CHARS)
    why: str = Field(default="", max_length=20_000)


class Settle(Value):
    """Say whether a call happened whose outcome is unknown."""

    call_id: str
    happened: bool
    output: str = Field(default="", max_length=20_000)
    """What it answered, if that is known; the model reads it."""
    by: str = Field(default="", max_length=MAX_ID_CHARS)
    reason: str = Field(default="", max_length=2_000)


class Compact(Value):
    """Make the context shorter at the next step boundary, if it is above its threshold."""

    context_config: ContextConfig | None = None
    """For this once; None = the session's own."""
    instructions: str = Field(default="", max_length=20_000)
    """What the summary should look after."""
    by: str = Field(default="", max_length=MAX_ID_CHARS)


class WorkerLeft(Value):
    """A worker was shut down while it worked for this session. Workers send it."""

    worker: str = Field(max_length=MAX_ID_CHARS)
    """As Temporal knows it: its process and host."""
    doing: str = Field(default="", max_length=MAX_ID_CHARS)
    """The activity that was cut short: a tool, or one of ours."""
    call_id: str = Field(default="", max_length=MAX_ID_CHARS)
    """Of a tool's call."""
