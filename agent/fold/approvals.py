"""Keeps people's decisions in the state, for whoever asks later."""

from longhaul.agent.entries import all_entries as e
from longhaul.agent.fold.ledger.agent_state import OpenCall
from longhaul.agent.fold.ledger.approval_digest import terms
from longhaul.agent.fold.ledger.ledger import Ledger
from longhaul.agent.plain.times import iso
from longhaul.agent.values.approvals import KEPT_DECISIONS, Approval, DecisionMade, with_one_more


def approvals_with(
    ledger: Ledger, call: OpenCall, decision: e.DecisionGiven, approver: str, key: str
) -> tuple[Approval, ...]:
    """The approvals of the call once this one is in. An edit makes another call of it, that nobody else has approved;
    and what was approved under other rules counts no more."""
    tool = ledger.provided.tools.get(call.block.name)
    now = terms(tool, ledger.permission) if tool else ""
    voided = is_edit(call, decision) or call.approved_terms not in ("", now)
    return with_one_more(() if voided else call.approvals, approver, key)


def is_edit(call: OpenCall, decision: e.DecisionGiven) -> bool:
    return decision.input is not None and decision.input != call.input


def note_decision(ledger: Ledger, call: OpenCall, decision: e.DecisionGiven, entry: e.HumanDecided) -> None:
    """Before the decision is acted on: how many approvals there are is counted with this one."""
    needed = ledger.state.permission_context.approvers(call.block.name)
    count = len(approvals_with(ledger, call, decision, entry.approver, entry.key))
    made = DecisionMade(
        call_id=decision.call_id,
        tool=call.block.name,
        decision="allow" if decision.allow else "deny",
        approver=entry.approver,
        at=iso(entry.at),
        reason=decision.reason,
        digest=decision.digest,
        edited=is_edit(call, decision),
        rules=tuple(rule.spelt() for rule in decision.rules),
        key=entry.key,
        counts=f"{count} of {needed}" if decision.allow and needed > 1 else "",
    )
    ledger.state.decisions = (*ledger.state.decisions[-KEPT_DECISIONS + 1 :], made)
