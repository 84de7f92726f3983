"""Policies ask about more than the engine's table does: by the agent's confirmation policy, and by how risky a call was
found.

The stricter of the two wins, so nothing here can allow what the engine asks about or denies.
"""

from longhaul.agent.permission.decision_table import PermissionDecision
from longhaul.agent.permission.facts import CallFacts
from longhaul.agent.values.permission import Behavior, PermissionContext, PermissionMode, Risk
from longhaul.agent.values.spec.known_names import ANALYZERS

RULES_ANALYZER, MODEL_ANALYZER = ANALYZERS
_RANKS = {Risk.LOW: 0, Risk.MEDIUM: 1, Risk.HIGH: 2, Risk.UNKNOWN: 3}


def worse(one: Risk, other: Risk) -> Risk:
    """Of two findings the one that lets less run."""
    return max(one, other, key=lambda risk: _RANKS[risk])


def analyzers_of(context: PermissionContext) -> tuple[str, ...]:
    """Which ones look at a call; a policy by risk needs one."""
    if context.analyzers or context.confirm.policy != "risky":
        return context.analyzers
    return (RULES_ANALYZER,)


def stricter(decision: PermissionDecision, context: PermissionContext, facts: CallFacts) -> PermissionDecision:
    """The engine's decision, or an ask in the place of its allow."""
    why = _why_ask(context, facts) if decision.behavior is Behavior.ALLOW else ""
    if not why:
        return decision
    if context.mode is PermissionMode.DONT_ASK:
        why = f"{why}; the mode {context.mode.value!r} does not ask, so it is denied"
        return PermissionDecision(behavior=Behavior.DENY, reason=why, safety=True)
    return PermissionDecision(behavior=Behavior.ASK, reason=why, safety=True)


def risk_of(context: PermissionContext, facts: CallFacts) -> Risk | None:
    """What the agent's analyzers found; unknown where they should have looked and have not. None: nobody is to look."""
    if facts.risk:
        return Risk(facts.risk)
    return Risk.UNKNOWN if analyzers_of(context) else None


def warning_of(context: PermissionContext, facts: CallFacts) -> str:
    """What people are told of a call that runs all the same; empty for most."""
    if not analyzers_of(context) or facts.risk in ("", Risk.LOW):
        return ""
    return facts.risk_reason or f"it was found to be of {facts.risk} risk"


def _why_ask(context: PermissionContext, facts: CallFacts) -> str:
    if context.confirm.policy == "always":
        return "Each call of this agent is confirmed by a person"
    # Nobody has looked: as bad as an analyzer that failed.
    risk = risk_of(context, facts) if analyzers_of(context) else None
    if risk is None:
        return ""
    threshold = context.confirm.threshold if context.confirm.policy == "risky" else Risk.HIGH
    if _RANKS[risk] < _RANKS[threshold]:
        return ""
    reason = facts.risk_reason if facts.risk else "no analyzer has looked at it"
    return f"Its risk was found to be {risk.value}: {reason}"
