"""A decision, once it is made, is kept with who, when, why, and what they had before them.

Permission rules and the context they live in.

Says how long it counts what was found out about a call before it runs: what it reads, writes and reaches.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Any, Literal, cast

from pydantic import BeforeValidator, Field, field_validator

from longhaul.agent.plain.measures import moment
from longhaul.agent.plain.values import Given, Many, OpenValue, Value, sparse, stated
from longhaul.agent.values.deadlines import Deadlines
from longhaul.agent.values.spec.known_names import AnalyzerName, FullModelName

KEPT_DECISIONS = 200
"""The newest ones stay in the state; all of them stand in the entries."""


class Approval(OpenValue):
    """One person's approval of a call that needs several approvers."""

    approver: str
    key: str = sparse("")
    """Id of the key that signed the decision."""


class DecisionMade(OpenValue):
    """A person's decision on one call, as the journal records it."""

    call_id: str
    tool: str
    decision: str
    """`allow`, or `deny`."""
    approver: str = sparse("")
    """Who decided. Empty: unknown."""
    at: str
    """ISO 8601 time in UTC."""
    reason: str = sparse("")
    digest: str = sparse("")
    """Digest of what the person saw (`PendingCall.digest`). Empty: the decision did not name it."""
    edited: bool = sparse(False)
    """The approver changed the arguments."""
    rules: tuple[str, ...] = sparse(())
    """Rules that the approver added, as `Bash(git add:*)`."""
    key: str = sparse("")
    """Id of the key that signed the decision. Empty: it was not signed."""
    counts: str = sparse("")
    """`1 of 2` for an approval that needs another person's approval too."""


def with_one_more(approvals: tuple[Approval, ...], approver: str, key: str) -> tuple[Approval, ...]:
    """The approvals with this one, or the same object again: the same person, or the same key, counts once."""
    if any(one.approver == approver or (key and one.key == key) for one in approvals):
        return approvals
    return (*approvals, Approval(approver=approver, key=key))


class ToolApproval(Value):
    """How calls of one tool are approved: `[permission.tools.NAME]` in an agent file."""

    approvers: int = Field(default=1, ge=1, le=5)
    """How many different people must approve the same call."""


class Behavior(StrEnum):
    """What a rule, or Longhaul, says about a call."""

    ALLOW = "allow"
    DENY = "deny"
    ASK = "ask"


class PermissionMode(StrEnum):
    """How much the agent may do without approval."""

    DEFAULT = "default"
    ACCEPT_EDITS = "accept_edits"
    EXPLORE = "explore"
    BYPASS = "bypass"
    DONT_ASK = "dont_ask"
    PLAN = "plan"
    """Asked for like a mode, but it stands above one: `agent.values.plans`."""


ModeName = Literal["default", "accept_edits", "explore", "bypass", "dont_ask", "plan"]


class Scope(StrEnum):
    """Where a rule comes from, and where it counts."""

    AGENT = "agent"
    """The agent file: every session that was started with it."""
    USER = "user"
    """A user's own: every session of that user, and of nobody else."""
    SESSION = "session"
    """Added to this session by hand."""
    SUGGESTED = "suggested"
    """Suggested with a call and accepted by whoever approved it: this session."""


class PermissionRule(OpenValue):
    """One rule. `rule_content=None` (or empty) matches every call of the tool.

    For Bash, `rule_content` is a command (`git status`) or a prefix (`git add:*`), matched against each
    parsed sub-command. For file tools it is a glob on the resolved absolute path (`/proj/src/**`).
    """

    tool_name: str
    """Name of the tool, as an agent has it."""
    rule_content: str | None = sparse(None)
    """Calls that the rule matches: a command or its prefix, or a glob of paths. Empty: all calls."""
    behavior: Given[Behavior, Behavior | Literal["allow", "deny", "ask"]] = stated(Behavior.ALLOW)
    source: str = sparse("")
    """Where the rule comes from, as text for people: "agent file", "ana at approval"."""
    id: str = sparse("")
    """Name by which the rule can be revoked. Longhaul gives an id to each rule that has none."""
    author: str = sparse("")
    """Who added the rule."""
    reason: str = sparse("")
    """The author's reason for the rule."""
    created_at: str = sparse("")
    """ISO 8601 time in UTC; the journal sets it."""
    expires_at: str = sparse("")
    """Time from which the rule no longer counts. A date counts until the end of that day (UTC)."""
    scope: Scope | None = sparse(None)
    """The journal sets it."""
    no_tool: bool = sparse(False)
    """The agent has no such tool, so the rule has no effect. Set in the list of a session's rules."""

    @field_validator("expires_at", mode="before")
    @classmethod
    def _ends_at_a_moment(cls, given: object) -> object:
        return given if given in ("", None) else moment(given)

    def spelt(self) -> str:
        """`Bash(git add:*)`, as commands take it."""
        return f"{self.tool_name}({self.rule_content})" if self.rule_content else self.tool_name


def cited(rule: PermissionRule) -> str:
    """A sentence without its full stop for a rule that matches a call."""
    source = f" of {rule.source}" if rule.source else ""
    return f"The {rule.behavior.value} rule {rule.spelt()}{source} matches"


def only_known_keys(rules: Any) -> Any:
    """Rules as written, or ValueError: a misspelt `behavior` would be left out, and the rule would then allow."""
    for rule in cast(list[object], rules) if isinstance(rules, list | tuple) else ():
        for key in cast(dict[str, object], rule) if isinstance(rule, dict) else ():
            if key not in PermissionRule.model_fields:
                raise ValueError(f"a rule has no {key!r}; it has: {', '.join(PermissionRule.model_fields)}")
    return cast(Any, rules)


class Risk(StrEnum):
    """How risky a security analyzer finds a call."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    UNKNOWN = "unknown"
    """It can't tell: the call is asked about as one of high risk is."""


Policy = Literal["never", "always", "risky"]
Threshold = Literal[Risk.LOW, Risk.MEDIUM, Risk.HIGH]


class Confirmation(Value):
    """When Longhaul asks a person about a call that it would otherwise run. It never runs a call that needs
    approval."""

    policy: Policy = "never"
    """`never`: only if mode, rules or an analyzer ask. `always`: for each call. `risky`: from `threshold` on."""
    threshold: Given[Threshold, Threshold | Literal["low", "medium", "high"]] = sparse(Risk.HIGH)
    """For `risky`: the lowest risk at which a person is asked."""


def _as_confirmation(given: object) -> object:
    return {"policy": given} if isinstance(given, str) else given


Confirming = Annotated[Confirmation, BeforeValidator(_as_confirmation)]
"""As `"always"`, or as a table."""
Analyzers = Annotated[tuple[Annotated[AnalyzerName, Field(min_length=1, max_length=200)], ...], Field(max_length=10)]
"""`rules`, `model`, or `module:name` on the worker."""


class PermissionContext(OpenValue):
    """The agent's mode, its rules, and the directories in which edits need no approval in `accept_edits` and
    `dont_ask`."""

    mode: Given[PermissionMode, PermissionMode | ModeName] = stated(PermissionMode.DEFAULT)
    working_directories: Many[str] = stated(())
    """Absolute resolved paths, besides the workspace root, which always counts."""
    rules: Many[PermissionRule] = stated(())
    deadline: Deadlines | None = sparse(None)
    """Deadlines of calls that wait for a person or an external system."""
    tools: dict[str, ToolApproval] = sparse({})
    """How calls of a tool are approved, by the tool's name."""
    grantable: Many[str] = sparse(())
    """Allow rules that an approver may add although Longhaul did not suggest them, or narrower rules:
    `Bash(make:*)`."""
    confirm: Given[Confirming, Confirmation | Policy] = sparse(Confirmation())
    analyzers: Given[Analyzers, Sequence[str]] = sparse(())
    """Analyzers that rate a call's risk before it runs. Low runs, medium runs with a warning, high asks."""
    analyzer_model: FullModelName = sparse("", max_length=1_000)
    """Model for the analyzer `model`. Empty: the agent's own model."""
    approvals: Literal["any", "signed"] = sparse("any")
    """`signed`: a decision counts only if a worker has checked its signature."""

    def approvers(self, tool: str) -> int:
        """Number of different people who must approve a call of this tool."""
        return self.tools[tool].approvers if tool in self.tools else 1


ANALYSIS_LAST_MS = 60_000
"""Findings older than this are made again before an approved call runs: files change while people think."""


def is_too_old(found_at: int, at: int) -> bool:
    """Both in milliseconds since 1970: the world may have changed, and is to be looked at again."""
    return at - found_at > ANALYSIS_LAST_MS
