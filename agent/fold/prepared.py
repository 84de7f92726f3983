"""Changes the ledger by what a worker has found for a reply: before it begins, or in its midst for the tools alone."""

from longhaul.agent.entries import all_entries as e
from longhaul.agent.fold.ledger.ledger import Ledger
from longhaul.agent.fold.reminders import stamped, standing_hints
from longhaul.agent.fold.rules import take_user_rules
from longhaul.agent.values.spec.memory import brought_by


def apply(ledger: Ledger, entry: e.Prepared) -> None:
    _take_tools(ledger, entry)
    if ledger.current.prepared:  # in the midst of the reply, for the tools alone
        _take_hints(ledger, entry, anew=True)
        return
    ledger.current.prepared = True
    ledger.state.behaviour = entry.behaviour
    if entry.user_rules is not None:
        take_user_rules(ledger, entry.user_rules, entry.user_rules_digest)
    ledger.provided.indexed = max(ledger.provided.indexed, entry.indexed)
    ledger.provided.window = entry.context_length
    ledger.provided.liveness = entry.liveness
    ledger.provided.workspace_root, ledger.provided.workspace_nonce = entry.workspace_root, entry.workspace_nonce
    ledger.state.tool_context.cwd = ledger.state.tool_context.cwd or entry.workspace_root
    ledger.provided.wrapped, ledger.provided.hooked_interrupts = entry.wrapped, entry.hooked_interrupts
    _take_hints(ledger, entry)
    ledger.context.reminders = standing_hints(ledger)


def _take_hints(ledger: Ledger, entry: e.Prepared, *, anew: bool = False) -> None:
    """`anew`: they are about tools that are listed once more, and what the model has read of them is not said again."""
    read = [message.content for message in ledger.state.context] if anew else []
    hints = tuple(hint for hint in entry.hints if hint.content not in read)
    ledger.append(stamped(hints, entry))
    if not ledger.state.tainted:
        ledger.state.tainted = brought_by(entry.hints)


def _take_tools(ledger: Ledger, entry: e.Prepared) -> None:
    ledger.provided.outdated = ()
    ledger.provided.spec_digest, ledger.provided.fixed_tokens = entry.spec_digest, entry.fixed_tokens
    if entry.system_prompt is not None:
        ledger.provided.system_prompt, ledger.provided.prompt_digest = entry.system_prompt, entry.prompt_digest
    if entry.tools is not None:
        ledger.provided.tools = {tool.name: tool for tool in entry.tools}
