"""Letters that change what a session may do unasked: its mode and limits, and its rules."""

from pydantic import ValidationError

from longhaul.agent.entries import all_entries as e
from longhaul.agent.letters.bodies import ChangeRules, Configure, Unusable
from longhaul.agent.letters.letter import Received
from longhaul.agent.permission.rule_checks import BadRule, check_rules, check_tools_of
from longhaul.agent.permission.rulebook import changed, check_count, id_of, named, stamped
from longhaul.agent.plain.mistakes import what_is_wrong
from longhaul.agent.record import Record
from longhaul.agent.values.permission import PermissionRule, Scope
from longhaul.agent.values.spec.agent_spec import ModelConfig, check_config
from longhaul.agent.values.spec.known_names import without_tool


def configure(record: Record, body: Configure) -> Received:
    new = _checked(record, body.rules, ())
    entry = e.Configured(
        mode=body.mode,
        add_rules=body.rules,
        max_iters=body.max_iters,
        model=body.model,
        llm_config=_called_otherwise(record, body),
        confirm=body.confirm,
        analyzers=body.analyzers,
        middlewares=body.middlewares,
        by=body.by,
        no_tool=_without_tool(record, new),
    )
    return Received((entry,), {"configured": True})


def _called_otherwise(record: Record, body: Configure) -> ModelConfig | None:
    """The whole of it, as it holds from now on. Raises Unusable."""
    if body.llm_config is None and body.model is None:
        return None
    try:
        config = record.spec.llm_config
        if body.llm_config is not None:
            config = config.called_otherwise(body.llm_config)
        # Each alone fits what there was; a model and a way to call it that do not fit can be read by no later run.
        check_config(body.model or record.spec.model, config)
    except ValidationError as error:
        raise Unusable(f"model_config.{what_is_wrong(error)}") from error
    except ValueError as error:
        raise Unusable(str(error)) from error
    return config if body.llm_config is not None else None


def change(record: Record, body: ChangeRules) -> Received:
    """Both halves hold together or not at all; a rule that is there already is no error."""
    if not body.add and not body.revoke:
        raise Unusable("rules: there is nothing to change; give rules to `add`, or ids to `revoke`")
    new = _checked(record, body.add, body.revoke)
    missing = _without_tool(record, new)
    entry = e.RulesChanged(add=body.add, revoked=body.revoke, by=body.by, why=body.why, no_tool=missing)
    return Received((entry,), {"added": [id_of(rule) for rule in new], "revoked": list(body.revoke)})


def listed(record: Record) -> list[PermissionRule]:
    """All rules that the session goes by, each with its id, and whether its tool is none of the agent's."""
    rules = named(record.permission.rules)
    missing = _without_tool(record, rules)
    return [rule.model_copy(update={"no_tool": True}) if rule.tool_name in missing else rule for rule in rules]


def _without_tool(record: Record, rules: tuple[PermissionRule, ...]) -> tuple[str, ...]:
    return without_tool((rule.tool_name for rule in rules), (*record.spec.all_tools, *record.provided.tools))


def _checked(record: Record, new: tuple[PermissionRule, ...], revoke: tuple[str, ...]) -> tuple[PermissionRule, ...]:
    """The new rules as they will be kept, but for the time. Raises Unusable."""
    try:
        check_count("rules", len(new))
        rules = stamped(new, Scope.SESSION)
        check_rules(new)
        check_tools_of(new, record.spec.all_tools)
        changed(record.state.permission_context.rules, rules, revoke, record.latest_at)
    except BadRule as bad:
        raise Unusable(str(bad)) from bad
    return rules
