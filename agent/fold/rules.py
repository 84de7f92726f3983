"""Makes findings old when rules change: paths are looked at with the folders in mind that deny and ask rules name."""

from longhaul.agent.fold.ledger.ledger import Ledger
from longhaul.agent.permission.path_rules import ruled_folders, ruled_paths
from longhaul.agent.values.conversation.messages import ToolCallState
from longhaul.agent.values.permission import PermissionRule


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


def _folders(ledger: Ledger) -> frozenset[str | tuple[str, str]]:
    folders = ruled_folders(ledger.permission, ledger.provided.workspace_root)
    return frozenset((*folders, *ruled_paths(ledger.permission)))


def _doubt_findings(ledger: Ledger, before: frozenset[str | tuple[str, str]]) -> None:
    """A new rule may be written through a link, or speak of a command's words: nobody has looked for that."""
    if ledger.reply is None or _folders(ledger) <= before:
        return
    for call in ledger.reply.calls.values():
        call.facts_stale |= call.state is not ToolCallState.FINISHED and bool(call.facts.paths or call.facts.commands)
