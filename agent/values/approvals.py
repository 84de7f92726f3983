"""A decision, once it is made, is kept with who, when, why, and what they had before them."""

from pydantic import Field

from longhaul.agent.plain.values import OpenValue, Value, sparse

KEPT_DECISIONS = 200
"""The newest ones stay in the state; all of them stand in the entries."""


class Approval(OpenValue):
    """One person's yes to a call as it stands, for calls that take more than one."""

    approver: str
    key: str = sparse("")
    """Id of the key that the decision was signed with."""


class DecisionMade(OpenValue):
    """A person's word on one call, for the record."""

    call_id: str
    tool: str
    decision: str
    """`allow`, or `deny`."""
    approver: str = sparse("")
    """Empty: nobody said who they are."""
    at: str
    """ISO 8601 in UTC."""
    reason: str = sparse("")
    digest: str = sparse("")
    """Of what was seen (`PendingCall.digest`); empty: the decision did not say."""
    edited: bool = sparse(False)
    """The approver changed the arguments."""
    rules: tuple[str, ...] = sparse(())
    """Taken along, as `Bash(git add:*)`."""
    key: str = sparse("")
    """Id of the key that it was signed with; empty: it was not signed."""
    counts: str = sparse("")
    """`1 of 2` for an approval that another one has to follow."""


def with_one_more(approvals: tuple[Approval, ...], approver: str, key: str) -> tuple[Approval, ...]:
    """The approvals with this one, or the same object again: the same person, or the same key, counts once."""
    if any(one.approver == approver or (key and one.key == key) for one in approvals):
        return approvals
    return (*approvals, Approval(approver=approver, key=key))


class ToolApproval(Value):
    """How calls of one tool are approved: `[permission.tools.NAME]` in an agent file."""

    approvers: int = Field(default=1, ge=1, le=5)
    """Different people who have to say yes to the same call."""
