"""Letters that change what a session may do unasked: its mode and limits, and its rules."""

from agent import entries as e
from agent.bodies import Unusable
from agent.letters import Received
from agent.permission.checks import BadRule, check_rules
from agent.permission.rulebook import changed, id_of, named, stamped
from agent.permission.rules import PermissionRule, Scope
from agent.record import Record
from agent.upkeep_bodies import ChangeRules, Configure


def configure(record: Record, body: Configure) -> Received:
    _checked(record, body.rules, ())
    entry = e.Configured(
        mode=body.mode,
        add_rules=body.rules,
        max_iters=body.max_iters,
        model=body.model,
        confirm=body.confirm,
        analyzers=body.analyzers,
        middlewares=body.middlewares,
        by=body.by,
    )
    return Received((entry,), {"configured": True})


def change(record: Record, body: ChangeRules) -> Received:
    """Both halves hold together or not at all; a rule that is there already is no error."""
    if not body.add and not body.revoke:
        raise Unusable("rules: there is nothing to change; give rules to `add`, or ids to `revoke`")
    new = _checked(record, body.add, body.revoke)
    entry = e.RulesChanged(add=body.add, revoked=body.revoke, by=body.by, why=body.why)
    return Received((entry,), {"added": [id_of(rule) for rule in new], "revoked": list(body.revoke)})


def listed(record: Record) -> list[PermissionRule]:
    """All rules that the session goes by, each with its id."""
    return list(named(record.permission.rules))


def _checked(record: Record, new: tuple[PermissionRule, ...], revoke: tuple[str, ...]) -> tuple[PermissionRule, ...]:
    """The new rules as they will be kept, but for the time. Raises Unusable."""
    rules = stamped(new, Scope.SESSION)
    try:
        check_rules(new)
        changed(record.state.permission_context.rules, rules, revoke, record.latest_at)
    except BadRule as bad:
        raise Unusable(str(bad)) from bad
    return rules
