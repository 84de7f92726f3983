"""What other rules do to findings: paths are looked at with the folders in mind that deny and ask rules name."""

from agent.ledger import SUPERVISED, Ledger
from agent.messages import ToolCallState
from agent.permission.ruled import ruled_folders
from agent.permission.rules import PermissionRule


def take_rules(ledger: Ledger, rules: tuple[PermissionRule, ...]) -> None:
    """The session's own rules and its agent's are these from now on."""
    before = _folders(ledger)
    ledger.set_rules(rules)
    _doubt_findings(ledger, before)


def take_user_rules(ledger: Ledger, rules: tuple[PermissionRule, ...], digest: str) -> None:
    """The rules of its user are these from now on."""
    before = _folders(ledger)
    ledger.set_user_rules(rules, digest)
    _doubt_findings(ledger, before)


def _folders(ledger: Ledger) -> frozenset[str]:
    return frozenset(ruled_folders(ledger.permission, ledger.workspace_root))


def _doubt_findings(ledger: Ledger, before: frozenset[str]) -> None:
    """A new rule may be written through a link, and whoever looked did not look for that."""
    if ledger.reply is None or ledger.state.behaviour < SUPERVISED or _folders(ledger) <= before:
        return
    for call in ledger.reply.calls.values():
        call.facts_stale |= call.state is not ToolCallState.FINISHED and bool(call.facts.paths)
