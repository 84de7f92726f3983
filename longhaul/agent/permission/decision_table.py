"""Picks the few command lines that run unasked although no sandbox can hold them to their proof.

The decision table of permission: from recorded facts and rules to allow, ask or deny.

It follows AgentScope's order and modes, with these differences, all of which fail closed:

- Read-only calls pass unasked only as far as they read within the workspace and the working directories, and no
  path that may hold secrets. A read outside goes on down the table: a rule may allow it.
- A call that was not understood, or that names a dangerous path, asks as a dangerous command does.
- An allow rule must cover every sub-command; a deny or ask rule needs to match only one, wherever it stands.
- A line of which rules allow a part runs as they allow it, outside of the sandbox: no proof counts in it, but of what
  is too plain to need a sandbox (`companions`).
- Deny and ask rules of Read, Write and Edit hold for paths that another tool (Bash) reads or writes as well, those of
  Grep for what Bash reads, and all of them for words of an unproven command that name a path.
- A search of Bash that may come by what a deny or ask rule speaks of asks; Grep and Glob leave that out.
- In `bypass`, where a call was not understood and there are deny or ask rules with content that might speak of it, a
  person is asked: it could not be shown that none of them matches.
- A call whose arguments can't be used is denied.
- A call that asks a host on the network is a read that allow rules open, in `explore` too; else it asks.
- Rules about tools of MCP servers speak of their arguments (`server_rules`), and `mcp__NAME` of all tools of a server.
- What would pass because it is proven harmless asks where no sandbox can hold it to that, in `explore` too: a proof may
  be wrong. A few lines that are too plain for that pass.

Permission in plan mode: what is proven to change nothing runs, the plan file may be written, the rest is denied.

Rules of this file: it only ever makes the engine's answer stricter, but for writes to the plan file, which are decided
as an edit within the workspace is.

Policies ask about more than the engine's table does: by the agent's confirmation policy, and by how risky a call was
found.

The stricter of the two wins, so nothing here can allow what the engine asks about or denies.
"""

import re
from enum import StrEnum
from functools import cached_property

from longhaul.agent.permission.call_analysis import CallAnalysis, Confined, PathUse, commands_named
from longhaul.agent.permission.rule_matching import (
    PATH_RULES,
    allow_matches,
    any_matches,
    argument_allowed,
    argument_matches,
    command_text,
    deny_matches,
    deny_matches_any,
    host_allowed,
    host_denied,
    is_by_argument,
    is_by_host,
    loose_commands,
    need_rules,
    path_matches,
    rule_names,
    rule_reached,
    why_searched,
)
from longhaul.agent.permission.rulebook import suggest_rules
from longhaul.agent.plain.values import Value
from longhaul.agent.values.conversation.tools import ToolDescriptor
from longhaul.agent.values.permission import Behavior, PermissionContext, PermissionMode, PermissionRule, Risk, cited
from longhaul.agent.values.plans import IS_ON, PLAN_ENTER, PLAN_EXIT
from longhaul.agent.values.spec.known_names import ANALYZERS

_PLAIN = re.compile(
    r"(?:pwd|date|whoami|id|hostname|uname|nproc|true|false)|(?:echo|ls)(?: [A-Za-z0-9_][A-Za-z0-9_.,/:@%+-]*)*",
    re.ASCII,
)
"""Read off the raw text, so that no mistake in reading a shell counts: no options, quotes, patterns or operators."""


def is_unheld(analysis: CallAnalysis) -> bool:
    """Whether its proof is all that there is."""
    return analysis.boundary == "none"


def is_plain(raw_input: str) -> bool:
    """Whether the call's JSON text is of a command that can do nothing else, however a shell reads it."""
    return _PLAIN.fullmatch(command_text(raw_input).strip(" ")) is not None


WRITING_TOOLS = frozenset({"Write", "Edit"})


class PermissionDecision(Value):
    """What happens with a call, and why."""

    behavior: Behavior
    reason: str
    """A sentence for people, and for the model when it is denied."""
    suggested_rules: tuple[PermissionRule, ...] = ()
    safety: bool = False
    """Asked, or denied, because of danger: no allow rule changes that."""
    confined: Confined = ""
    """Of a call that is allowed: the sandbox that its proof is held to."""


class Circumstance(StrEnum):
    """What can be true of a call, in the order in which it is looked at."""

    DENY_RULE = "a deny rule matches"
    ASK_RULE = "an ask rule matches"
    SEARCHED = "it searches where a deny or ask rule speaks of paths"
    UNPROVEN = "it can't be shown that no deny or ask rule matches"
    READ_ONLY = "changes nothing and reads only what is open to it"
    SAFETY = "dangerous or not understood"
    EDIT_INSIDE = "edits only files of the workspace or a working directory"
    ALLOW_RULE = "allow rules cover all of it"
    UNHELD = "proven harmless, and no sandbox can hold it to that"
    OTHERWISE = "nothing else was found"


ALLOW, ASK, DENY, PASS = Behavior.ALLOW, Behavior.ASK, Behavior.DENY, None
MODES = (
    PermissionMode.DEFAULT,
    PermissionMode.ACCEPT_EDITS,
    PermissionMode.EXPLORE,
    PermissionMode.BYPASS,
    PermissionMode.DONT_ASK,
)
TABLE: dict[Circumstance, tuple[Behavior | None, ...]] = {
    #                       default accept_edits explore bypass dont_ask
    Circumstance.DENY_RULE:     (DENY,   DENY,        DENY,   DENY,  DENY),
    Circumstance.ASK_RULE:      (ASK,    ASK,         ASK,    ASK,   DENY),
    Circumstance.SEARCHED:      (ASK,    ASK,         ASK,    ASK,   DENY),
    Circumstance.UNPROVEN:      (PASS,   PASS,        PASS,   ASK,   PASS),
    Circumstance.READ_ONLY:     (ALLOW,  ALLOW,       ALLOW,  ALLOW, ALLOW),
    Circumstance.SAFETY:        (ASK,    ASK,         PASS,   PASS,  DENY),
    Circumstance.EDIT_INSIDE:   (PASS,   ALLOW,       PASS,   PASS,  ALLOW),
    Circumstance.ALLOW_RULE:    (ALLOW,  ALLOW,       PASS,   ALLOW, ALLOW),
    Circumstance.UNHELD:        (ASK,    ASK,         ASK,    PASS,  DENY),
    Circumstance.OTHERWISE:     (ASK,    ASK,         DENY,   ALLOW, DENY),
}  # fmt: skip
"""The first finding that is true of the call and not passed over in the mode decides."""


def decide_call(
    tool: ToolDescriptor,
    raw_input: str,
    analysis: CallAnalysis,
    context: PermissionContext,
    workspace_root: str,
) -> PermissionDecision:
    """Decide one call. Pure. `raw_input` is the call's JSON text; `workspace_root` is absolute and resolved.

    A pending ask must be decided again when rules, mode, arguments or facts change; nothing here remembers.
    """
    if analysis.arguments_error:
        return PermissionDecision(behavior=Behavior.DENY, reason=analysis.arguments_error)
    case = _Case(tool, raw_input, analysis, context, workspace_root)
    column = MODES.index(_column_of(context.mode))
    for finding, row in TABLE.items():
        behavior = row[column]
        if behavior is None:
            continue
        reason = case.reason_for(finding)
        if reason:
            return case.decision(finding, behavior, reason)
    raise AssertionError("the last row of the table is true of every call")


def _column_of(mode: PermissionMode) -> PermissionMode:
    # `agent.permission.decision_table` decides in plan mode; who comes here with it all the same gets what is nearest.
    return PermissionMode.EXPLORE if mode is PermissionMode.PLAN else mode


class _Case:
    """One call and all that is known of it."""

    def __init__(
        self,
        tool: ToolDescriptor,
        raw_input: str,
        analysis: CallAnalysis,
        context: PermissionContext,
        workspace_root: str,
    ) -> None:
        self._tool, self._raw_input, self._analysis = tool, raw_input, analysis
        self._context, self._root = context, workspace_root

    def decision(self, finding: Circumstance, behavior: Behavior, reason: str) -> PermissionDecision:
        dangerous = finding is Circumstance.SAFETY
        suggests = behavior is not Behavior.ALLOW and finding in (
            Circumstance.ASK_RULE,
            Circumstance.UNHELD,
            Circumstance.OTHERWISE,
        )
        if behavior is Behavior.DENY and finding is not Circumstance.DENY_RULE:
            reason = f"{reason}; the mode {self._context.mode.value!r} does not ask, so it is denied"
        suggested = suggest_rules(self._tool, self._analysis, self._root) if suggests else ()
        holds = self._tool.name == "Bash" and not is_unheld(self._analysis)
        confined = _CONFINED.get(finding, "") if holds else ""
        return PermissionDecision(
            behavior=behavior, reason=reason, suggested_rules=suggested, safety=dangerous, confined=confined
        )

    def reason_for(self, finding: Circumstance) -> str:
        """Why the finding is true of the call, as a sentence without its full stop; empty when it is not."""
        match finding:
            case Circumstance.DENY_RULE | Circumstance.ASK_RULE:
                return self._matching_rule(Behavior.DENY if finding is Circumstance.DENY_RULE else Behavior.ASK)
            case Circumstance.SEARCHED:
                strict = [rule for rule in self._context.rules if rule.behavior is not Behavior.ALLOW]
                return why_searched(strict, self._tool.name, self._analysis, self._root)
            case Circumstance.UNPROVEN:
                return self._unproven()
            case Circumstance.READ_ONLY:
                passes = self._is_open_read() and (not is_unheld(self._analysis) or is_plain(self._raw_input))
                where = (
                    f"asks {', '.join(self._analysis.hosts)}"
                    if self._analysis.hosts
                    else "reads only within the workspace"
                )
                return f"It changes nothing and {where}" if passes else ""
            case Circumstance.SAFETY:
                return self._safety()
            case Circumstance.EDIT_INSIDE:
                passes = self._is_edit_inside() and not is_unheld(self._analysis)
                return "It edits only files within the workspace" if passes else ""
            case Circumstance.ALLOW_RULE | Circumstance.UNHELD:
                return self._allowing_rule() if finding is Circumstance.ALLOW_RULE else self._unheld()
            case Circumstance.OTHERWISE:
                return f"No rule allows this call of {self._tool.name!r}"

    def _rules(self, behavior: Behavior, *names: str) -> list[PermissionRule]:
        wanted = names or rule_names(self._tool.name)
        return [rule for rule in self._context.rules if rule.behavior is behavior and rule.tool_name in wanted]

    def _matching_rule(self, behavior: Behavior) -> str:
        for rule in self._rules(behavior):
            if not rule.rule_content or self._touches(rule.rule_content):
                return cited(rule)
        rules = [rule for rule in self._context.rules if rule.behavior is behavior]
        reached = rule_reached(rules, self._tool.name, self._analysis, self._root)
        return cited(reached) if reached else ""

    def _touches(self, content: str) -> bool:
        """Whether a deny or ask rule speaks of any part of the call."""
        if is_by_argument(self._tool.name):
            return argument_matches(content, self._raw_input)
        if is_by_host(self._tool.name):
            return any(host_denied(content, host) for host in self._analysis.hosts)
        if self._tool.name != "Bash":
            return any(any_matches(content, path.names, self._root) for path in self._analysis.paths)
        if any(deny_matches(content, words) for words in commands_named(self._analysis)):
            return True
        outcome_unknown = self._analysis.not_understood or not self._analysis.commands
        return bool(outcome_unknown) and deny_matches_any(content, self._loose)

    @cached_property
    def _loose(self) -> dict[str, tuple[tuple[str, ...], ...]]:
        return loose_commands(command_text(self._raw_input))

    def _unproven(self) -> str:
        if not self._analysis.not_understood:
            return ""
        names = {self._tool.name, "Grep", *PATH_RULES}
        for behavior in (Behavior.DENY, Behavior.ASK):
            if any(rule.rule_content for rule in self._rules(behavior, *names)):
                what = f"no {behavior.value} rule matches"
                return f"It contains {self._analysis.not_understood}, so it can't be shown that {what}"
        return ""

    def _is_open_read(self) -> bool:
        claimed = self._tool.read_only or self._analysis.read_only
        if not claimed or self._analysis.not_understood or self._analysis.safety:
            return False
        if self._analysis.hosts and not self._allowing_rule():
            return False
        return all(path.access == "read" and self._is_open(path) for path in self._analysis.paths)

    def _is_open(self, path: PathUse) -> bool:
        """Within the workspace or a working directory, and not dangerous."""
        return not path.danger and (path.inside or self._is_in_working_directory(path.path))

    def _is_in_working_directory(self, path: str) -> bool:
        folders = (folder.rstrip("/") for folder in self._context.working_directories)
        return any(path == folder or path.startswith(folder + "/") for folder in folders if folder)

    def _safety(self) -> str:
        if self._analysis.not_understood:
            return f"It contains {self._analysis.not_understood}, which can't be judged without running it"
        if self._analysis.safety:
            return f"It is dangerous: {self._analysis.safety}"
        risky = next((path for path in self._analysis.paths if path.danger), None)
        return f"It would {risky.access} {risky.path!r}: {risky.danger}" if risky else ""

    def _is_edit_inside(self) -> bool:
        analysis = self._analysis
        if analysis.not_understood or analysis.safety or not analysis.paths:
            return False
        if not all(self._is_open(path) for path in analysis.paths):
            return False
        if self._tool.name in WRITING_TOOLS:
            return True
        return self._tool.name == "Bash" and analysis.proven

    def _unheld(self) -> str:
        editing = self._context.mode in (PermissionMode.ACCEPT_EDITS, PermissionMode.DONT_ASK)
        passes = is_unheld(self._analysis) and (self._is_open_read() or (editing and self._is_edit_inside()))
        return f"It is proven harmless, but no sandbox holds it to that: {self._analysis.no_boundary}" if passes else ""

    def _allowing_rule(self) -> str:
        rules = self._rules(Behavior.ALLOW)
        whole = next((rule for rule in rules if not rule.rule_content), None)
        if whole is not None:
            return cited(whole)
        contents = [rule.rule_content for rule in rules if rule.rule_content]
        if is_by_argument(self._tool.name):
            covered = any(argument_allowed(content, self._raw_input) for content in contents)
        elif is_by_host(self._tool.name):
            covered = self._hosts_covered(contents)
        else:
            covered = self._commands_covered(contents) if self._tool.name == "Bash" else self._paths_covered(contents)
        return "Allow rules cover all of it" if covered else ""

    def _commands_covered(self, contents: list[str]) -> bool:
        """The plainest of the proven parts need no rule, unless the line reads what is not open."""
        reads_are_open = all(self._is_open(path) for path in self._analysis.paths if path.access == "read")
        needing = need_rules(self._analysis.commands, reads_are_open=reads_are_open)
        understood = bool(self._analysis.commands) and not self._analysis.not_understood
        return understood and all(any(allow_matches(content, words) for content in contents) for words in needing)

    def _hosts_covered(self, contents: list[str]) -> bool:
        hosts = self._analysis.hosts
        return bool(hosts) and all(any(host_allowed(content, host) for content in contents) for host in hosts)

    def _paths_covered(self, contents: list[str]) -> bool:
        # A home can't be told apart from another here: `~` widens only what is denied or asked.
        absolute = [content for content in contents if not content.startswith("~")]
        paths = self._analysis.paths
        return bool(paths) and all(
            any(path_matches(content, path.path, self._root) for content in absolute) for path in paths
        )


_CONFINED: dict[Circumstance, Confined] = {Circumstance.READ_ONLY: "read", Circumstance.EDIT_INSIDE: "edit"}


REFUSED = (
    f"{IS_ON.lower()}: only calls run that are proven to change nothing and to read within the workspace, "
    "and writes to the plan file"
)
NOBODY_ASKED = "the mode 'dont_ask' asks nobody, and a plan has to be approved by a person"


def decide_planning(
    tool: ToolDescriptor,
    raw_input: str,
    analysis: CallAnalysis,
    context: PermissionContext,
    workspace_root: str,
    plan_file: str,
) -> PermissionDecision:
    """Decide one call in plan mode. `plan_file`: absolute, or empty when none may be written."""
    if _writes_only(plan_file, tool, analysis):
        editing = context.model_copy(update={"mode": PermissionMode.ACCEPT_EDITS})
        return decide_call(tool, raw_input, analysis, editing, workspace_root)
    exploring = context.model_copy(update={"mode": PermissionMode.EXPLORE})
    # What the agent may ask on the network follows from rules alone.
    unruled = exploring if analysis.hosts else exploring.model_copy(update={"rules": ()})
    if decide_call(tool, raw_input, analysis, unruled, workspace_root).behavior is Behavior.DENY:
        return PermissionDecision(behavior=Behavior.DENY, reason=REFUSED)
    return decide_call(tool, raw_input, analysis, exploring, workspace_root)


def decide_plan_tool(tool: ToolDescriptor, mode: PermissionMode, decision: PermissionDecision) -> PermissionDecision:
    """What the engine said, but that a plan is approved by a person in every mode and whatever rules allow."""
    if not tool.inside or tool.name not in (PLAN_ENTER, PLAN_EXIT) or decision.behavior is Behavior.DENY:
        return decision
    if mode is PermissionMode.DONT_ASK:
        return PermissionDecision(behavior=Behavior.DENY, reason=NOBODY_ASKED)
    if tool.name == PLAN_EXIT:
        return PermissionDecision(behavior=Behavior.ASK, reason="A plan has to be approved by a person")
    return decision


def _writes_only(plan_file: str, tool: ToolDescriptor, analysis: CallAnalysis) -> bool:
    return (
        bool(plan_file)
        and tool.name in WRITING_TOOLS
        and [path.path for path in analysis.paths] == [plan_file]
        and not analysis.safety
        and not analysis.not_understood
        and not any(path.danger for path in analysis.paths)
    )


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


def stricter(decision: PermissionDecision, context: PermissionContext, analysis: CallAnalysis) -> PermissionDecision:
    """The engine's decision, or an ask in the place of its allow."""
    why = _why_ask(context, analysis) if decision.behavior is Behavior.ALLOW else ""
    if not why:
        return decision
    if context.mode is PermissionMode.DONT_ASK:
        why = f"{why}; the mode {context.mode.value!r} does not ask, so it is denied"
        return PermissionDecision(behavior=Behavior.DENY, reason=why, safety=True)
    return PermissionDecision(behavior=Behavior.ASK, reason=why, safety=True)


def risk_of(context: PermissionContext, analysis: CallAnalysis) -> Risk | None:
    """What the agent's analyzers found; unknown where they should have looked and have not. None: nobody is to look."""
    if analysis.risk:
        return Risk(analysis.risk)
    return Risk.UNKNOWN if analyzers_of(context) else None


def warning_of(context: PermissionContext, analysis: CallAnalysis) -> str:
    """What people are told of a call that runs all the same; empty for most."""
    if not analyzers_of(context) or analysis.risk in ("", Risk.LOW):
        return ""
    return analysis.risk_reason or f"it was found to be of {analysis.risk} risk"


def _why_ask(context: PermissionContext, analysis: CallAnalysis) -> str:
    if context.confirm.policy == "always":
        return "Each call of this agent is confirmed by a person"
    # Nobody has looked: as bad as an analyzer that failed.
    risk = risk_of(context, analysis) if analyzers_of(context) else None
    if risk is None:
        return ""
    threshold = context.confirm.threshold if context.confirm.policy == "risky" else Risk.HIGH
    if _RANKS[risk] < _RANKS[threshold]:
        return ""
    reason = analysis.risk_reason if analysis.risk else "no analyzer has looked at it"
    return f"Its risk was found to be {risk.value}: {reason}"
