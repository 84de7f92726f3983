"""Rules over time: which of them count at a moment, how one is named, added and revoked, and how many there may be."""

from longhaul.agent.permission.rule_checks import BadRule, check_rules
from longhaul.agent.plain.canonical import digest_of
from longhaul.agent.plain.times import iso
from longhaul.agent.values.permission import Behavior, PermissionContext, PermissionRule, Scope

MAX_RULES = 200
"""Of a session, and of a user. Each call is held against all of them."""
MAX_BYTES = 200_000
"""Of all of them together, as JSON: a session carries them."""
_ID_CHARS = 8


def id_of(rule: PermissionRule) -> str:
    """The rule's own id, or one that follows from what it says: it is the same wherever it is worked out."""
    if rule.id:
        return rule.id
    scope = rule.scope.value if rule.scope else ""
    says = [rule.tool_name, rule.rule_content or "", rule.behavior.value, scope, rule.expires_at]
    return digest_of(says)[:_ID_CHARS].replace("-", "x").replace("_", "y")


def named(rules: tuple[PermissionRule, ...]) -> tuple[PermissionRule, ...]:
    """The same rules, each with its id written out."""
    return tuple(rule.model_copy(update={"id": id_of(rule)}) for rule in rules)


def counts(rule: PermissionRule, at_ms: int) -> bool:
    """Whether it holds at this time; one without an end always does."""
    return not rule.expires_at or iso(at_ms) < rule.expires_at


def in_force(context: PermissionContext, at_ms: int) -> PermissionContext:
    """The context with the rules that count at this time. Among those of all scopes the engine lets deny win."""
    rules = tuple(rule for rule in context.rules if counts(rule, at_ms))
    return context if rules == context.rules else context.model_copy(update={"rules": rules})


def stamped(
    rules: tuple[PermissionRule, ...], scope: Scope, *, author: str = "", reason: str = "", at_ms: int = 0
) -> tuple[PermissionRule, ...]:
    """As they are kept: by whom, why, when and for what is never left to what was sent."""
    created = iso(at_ms) if at_ms else ""
    return tuple(
        rule.model_copy(
            update={
                "scope": scope,
                "author": author,
                "reason": rule.reason or reason,
                "created_at": created,
                "no_tool": False,
            }
        )
        for rule in rules
    )


def of_agent(context: PermissionContext) -> PermissionContext:
    """A session begins with its agent's rules."""
    rules = tuple(rule.model_copy(update={"scope": Scope.AGENT}) for rule in context.rules)
    return context.model_copy(update={"rules": rules})


def accepted(rules: tuple[PermissionRule, ...], approver: str, reason: str, at_ms: int) -> tuple[PermissionRule, ...]:
    """Suggested rules as they are kept when somebody has taken them along with a call."""
    source = f"{approver or 'somebody'} at an approval"
    taken = tuple(rule.model_copy(update={"source": source}) for rule in rules)
    return stamped(taken, Scope.SUGGESTED, author=approver, reason=reason, at_ms=at_ms)


def granted(
    suggested: tuple[PermissionRule, ...], wanted: tuple[PermissionRule, ...], call_id: str
) -> tuple[PermissionRule, ...]:
    """Of what was suggested, the wanted ones, with the end and the reason that the approver gave them.

    Raises BadRule for any other: a rule that nobody was shown must not come in with an approval.
    """
    offered = {_meaning(rule): rule for rule in suggested}
    for rule in wanted:
        if _meaning(rule) not in offered:
            shown = ", ".join(f"{tool}({content or '*'})" for tool, content, _ in offered) or "none"
            what = f"{rule.tool_name}({rule.rule_content or '*'})"
            raise BadRule(f"rules: {what} was not suggested for {call_id!r}; suggested: {shown}")
    return tuple(
        offered[_meaning(rule)].model_copy(update={"expires_at": rule.expires_at, "reason": rule.reason})
        for rule in wanted
    )


def _meaning(rule: PermissionRule) -> tuple[str, str | None, Behavior]:
    return rule.tool_name, rule.rule_content, rule.behavior


def added(
    present: tuple[PermissionRule, ...], new: tuple[PermissionRule, ...], at_ms: int
) -> tuple[PermissionRule, ...]:
    """`present` with the rules that are not there yet; what has expired makes room."""
    kept = [rule for rule in present if counts(rule, at_ms)]
    known = {_name_and_meaning(rule) for rule in kept}
    for rule in new:
        if (named := _name_and_meaning(rule)) not in known:
            known.add(named)
            kept.append(rule)
    return tuple(kept)


def without(present: tuple[PermissionRule, ...], ids: tuple[str, ...]) -> tuple[PermissionRule, ...]:
    gone = set(ids)
    return tuple(rule for rule in present if id_of(rule) not in gone)


def changed(
    present: tuple[PermissionRule, ...], new: tuple[PermissionRule, ...], revoked: tuple[str, ...], at_ms: int
) -> tuple[PermissionRule, ...]:
    """What comes of both at once. Raises BadRule for an id that is unknown or taken, and for too many rules."""
    for field, given in (("revoke", revoked), ("rules", new)):
        check_count(field, len(given))
    known = {id_of(rule): rule for rule in present}
    for rule_id in revoked:
        if rule_id not in known:
            shown = ", ".join(list(known)[:20]) or "none"
            raise BadRule(f"revoke: there is no rule {rule_id[:100]!r}; there are: {shown}")
    left = without(present, revoked)
    check_room(left, new, at_ms)
    taken = {id_of(rule): rule for rule in left}
    for rule in new:
        other = taken.setdefault(id_of(rule), rule)
        if rule.id and not _says_the_same(other, rule):
            raise BadRule(f"id: {rule.id[:100]!r} is another rule's; take another id, or leave it out")
    return added(left, new, at_ms)


def check_book(rules: tuple[PermissionRule, ...]) -> None:
    """Raises BadRule for rules that come all at once and can't be meant so."""
    check_count("rules", len(rules))
    check_rules(rules)
    check_room((), rules, 0)
    ids = [rule.id for rule in rules if rule.id]
    if twice := next((rule_id for rule_id in ids if ids.count(rule_id) > 1), ""):
        raise BadRule(f"rules: id {twice!r} names two rules; give each an id of its own, or none")


def check_count(field: str, count: int) -> None:
    """Raises BadRule for more than can be at once, before anything is done with them."""
    if count > MAX_RULES:
        raise BadRule(f"{field}: {count} came at once, and there can't be more than {MAX_RULES} rules")


def check_room(present: tuple[PermissionRule, ...], new: tuple[PermissionRule, ...], at_ms: int) -> None:
    """Raises BadRule for more than MAX_RULES, for rules that would be too long, and for a new one that is over."""
    if over := next((rule for rule in new if not counts(rule, at_ms)), None):
        what = f"{over.tool_name}({over.rule_content or '*'})"
        raise BadRule(f"expires_at: {what} has ended at {over.expires_at}, so it would never count; give a later time")
    after = added(present, new, at_ms) if new else ()
    if len(after) > MAX_RULES:
        raise BadRule(f"there would be more than {MAX_RULES} rules; revoke some that are not needed any more")
    if sum(len(rule.model_dump_json().encode()) for rule in after) > MAX_BYTES:
        raise BadRule(f"the rules would have more than {MAX_BYTES // 1000} kB; revoke some, or say less in `reason`")


def _says_the_same(one: PermissionRule, other: PermissionRule) -> bool:
    return _name_and_meaning(one)[1] == _name_and_meaning(other)[1]


def _name_and_meaning(rule: PermissionRule) -> tuple[str, str]:
    """Its id, and the one that it would have without an id of its own."""
    meaning = id_of(rule.model_copy(update={"id": ""}))
    return rule.id or meaning, meaning
