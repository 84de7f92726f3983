"""Entries about what a session may do: its mode and limits, and its rules."""

from typing import Literal

from longhaul.agent.entries.entry import Entry, Written
from longhaul.agent.plain.values import sparse
from longhaul.agent.values.permission import Confirming, PermissionMode, PermissionRule
from longhaul.agent.values.spec.agent_spec import ModelConfig


class Configured(Entry):
    """Mode, rules or limits changed from outside. None = as before."""

    kind: Literal["configured"] = "configured"
    mode: PermissionMode | None = sparse(None)
    add_rules: tuple[PermissionRule, ...] = sparse(())
    max_iters: int | None = sparse(None)
    model: str | None = sparse(None)
    llm_config: ModelConfig | None = sparse(None)
    """The whole of it."""
    confirm: Confirming | None = sparse(None)
    analyzers: tuple[str, ...] | None = sparse(None)
    middlewares: tuple[str, ...] | None = sparse(None)
    by: str = sparse("")
    no_tool: tuple[str, ...] = sparse(())
    """Tools of the new rules that the agent does not have."""
    anew: bool = sparse(False)
    """The step that waited with another model is begun anew with this one."""


class RulesChanged(Entry):
    """Rules of the session came and went, by somebody's word."""

    kind: Literal["rules_changed"] = "rules_changed"
    add: tuple[PermissionRule, ...] = sparse(())
    """As they were sent: author, time and scope are given to them by the fold."""
    revoked: tuple[str, ...] = sparse(())
    """Ids."""
    by: str = sparse("")
    why: Written = sparse("")
    no_tool: tuple[str, ...] = sparse(())
    """Tools of the new rules that the agent does not have."""
