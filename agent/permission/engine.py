"""The decision table of permission: from recorded facts and rules to allow, ask or deny.

It follows AgentScope's order and modes, with these differences, all of which fail closed:

- Read-only calls pass unasked only as far as they read within the workspace and the working directories, and no
  path that may hold secrets. A read outside goes on down the table: a rule may allow it.
- A call that was not understood, or that names a dangerous path, asks as a dangerous command does.
- An allow rule must cover every sub-command; a deny or ask rule needs to match only one, wherever it stands.
- Deny and ask rules of Read, Write and Edit hold for paths that another tool (Bash) reads or writes as well.
- In `bypass`, where a call was not understood and there are deny or ask rules with content that might speak of it, a
  person is asked: it could not be shown that none of them matches.
- A call whose arguments can't be used is denied.
"""

from enum import StrEnum
from functools import cached_property

from agent.permission.commands import allow_matches, command_text, deny_matches, deny_matches_any, loose_commands
from agent.permission.facts import CallFacts, PathFact, commands_named
from agent.permission.globs import any_matches, path_matches
from agent.permission.rules import Behavior, PermissionContext, PermissionMode, PermissionRule, cited
from agent.permission.suggestions import suggest_rules
from agent.tools import ToolDescriptor
from agent.values import Value

WRITING_TOOLS = frozenset({"Write", "Edit"})
_PATH_RULES = ("Read", "Write", "Edit")
"""Tools whose deny and ask rules hold for the paths of every tool."""


class PermissionDecision(Value):
    """What happens with a call, and why."""

    behavior: Behavior
    reason: str
    """A sentence for people, and for the model when it is denied."""
    suggested_rules: tuple[PermissionRule, ...] = ()
    safety: bool = False
    """Asked, or denied, because of danger: no allow rule changes that."""


class Finding(StrEnum):
    """What can be true of a call, in the order in which it is looked at."""

    DENY_RULE = "a deny rule matches"
    ASK_RULE = "an ask rule matches"
    UNPROVEN = "it can't be shown that no deny or ask rule matches"
    READ_ONLY = "changes nothing and reads only what is open to it"
    SAFETY = "dangerous or not understood"
    EDIT_INSIDE = "edits only files of the workspace or a working directory"
    ALLOW_RULE = "allow rules cover all of it"
    OTHERWISE = "nothing else was found"


ALLOW, ASK, DENY, PASS = Behavior.ALLOW, Behavior.ASK, Behavior.DENY, None
MODES = (
    PermissionMode.DEFAULT,
    PermissionMode.ACCEPT_EDITS,
    PermissionMode.EXPLORE,
    PermissionMode.BYPASS,
    PermissionMode.DONT_ASK,
)
TABLE: dict[Finding, tuple[Behavior | None, ...]] = {
    #                       default accept_edits explore bypass dont_ask
    Finding.DENY_RULE:     (DENY,   DENY,        DENY,   DENY,  DENY),
    Finding.ASK_RULE:      (ASK,    ASK,         ASK,    ASK,   DENY),
    Finding.UNPROVEN:      (PASS,   PASS,        PASS,   ASK,   PASS),
    Finding.READ_ONLY:     (ALLOW,  ALLOW,       ALLOW,  ALLOW, ALLOW),
    Finding.SAFETY:        (ASK,    ASK,         PASS,   PASS,  DENY),
    Finding.EDIT_INSIDE:   (PASS,   ALLOW,       PASS,   PASS,  ALLOW),
    Finding.ALLOW_RULE:    (ALLOW,  ALLOW,       PASS,   ALLOW, ALLOW),
    Finding.OTHERWISE:     (ASK,    ASK,         DENY,   ALLOW, DENY),
}  # fmt: skip
"""The first finding that is true of the call and not passed over in the mode decides."""


def decide_call(
    tool: ToolDescriptor,
    raw_input: str,
    facts: CallFacts,
    context: PermissionContext,
    workspace_root: str,
    *,
    proves: bool = True,
) -> PermissionDecision:
    """Decide one call. Pure. `raw_input` is the call's JSON text; `workspace_root` is absolute and resolved.

    A pending ask must be decided again when rules, mode, arguments or facts change; nothing here remembers.
    `proves=False`: as in sessions before behaviour 3, only deny rules of the tool itself need disproving in bypass.
    """
    if facts.arguments_error:
        return PermissionDecision(behavior=Behavior.DENY, reason=facts.arguments_error)
    case = _Case(tool, raw_input, facts, context, workspace_root, proves=proves)
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
    # `agent.permission.plan_mode` decides in plan mode; who comes here with it all the same gets what is nearest.
    return PermissionMode.EXPLORE if mode is PermissionMode.PLAN else mode


class _Case:
    """One call and all that is known of it."""

    def __init__(
        self,
        tool: ToolDescriptor,
        raw_input: str,
        facts: CallFacts,
        context: PermissionContext,
        workspace_root: str,
        *,
        proves: bool,
    ) -> None:
        self._tool, self._raw_input, self._facts = tool, raw_input, facts
        self._context, self._root, self._proves = context, workspace_root, proves

    def decision(self, finding: Finding, behavior: Behavior, reason: str) -> PermissionDecision:
        dangerous = finding is Finding.SAFETY
        suggests = behavior is not Behavior.ALLOW and finding in (Finding.ASK_RULE, Finding.OTHERWISE)
        if behavior is Behavior.DENY and finding in (Finding.ASK_RULE, Finding.SAFETY, Finding.OTHERWISE):
            reason = f"{reason}; the mode {self._context.mode.value!r} does not ask, so it is denied"
        suggested = suggest_rules(self._tool, self._facts, self._root) if suggests else ()
        return PermissionDecision(behavior=behavior, reason=reason, suggested_rules=suggested, safety=dangerous)

    def reason_for(self, finding: Finding) -> str:
        """Why the finding is true of the call, as a sentence without its full stop; empty when it is not."""
        match finding:
            case Finding.DENY_RULE:
                return self._matching_rule(Behavior.DENY)
            case Finding.ASK_RULE:
                return self._matching_rule(Behavior.ASK)
            case Finding.UNPROVEN:
                return self._unproven()
            case Finding.READ_ONLY:
                return "It changes nothing and reads only within the workspace" if self._is_open_read() else ""
            case Finding.SAFETY:
                return self._safety()
            case Finding.EDIT_INSIDE:
                return "It edits only files within the workspace" if self._is_edit_inside() else ""
            case Finding.ALLOW_RULE:
                return self._allowing_rule()
            case Finding.OTHERWISE:
                return f"No rule allows this call of {self._tool.name!r}"

    def _rules(self, behavior: Behavior, *names: str) -> list[PermissionRule]:
        wanted = names or (self._tool.name,)
        return [rule for rule in self._context.rules if rule.behavior is behavior and rule.tool_name in wanted]

    def _matching_rule(self, behavior: Behavior) -> str:
        for rule in self._rules(behavior):
            if not rule.rule_content or self._touches(rule.rule_content):
                return cited(rule)
        for path in self._facts.paths:
            for rule in self._rules(behavior, *_tools_of(path)):
                if rule.rule_content and any_matches(rule.rule_content, path.names, self._root):
                    return cited(rule)
        return ""

    def _touches(self, content: str) -> bool:
        """Whether a deny or ask rule speaks of any part of the call."""
        if self._tool.name != "Bash":
            return any(any_matches(content, path.names, self._root) for path in self._facts.paths)
        if any(deny_matches(content, words) for words in commands_named(self._facts)):
            return True
        in_doubt = self._facts.not_understood or not self._facts.commands
        return bool(in_doubt) and deny_matches_any(content, self._loose)

    @cached_property
    def _loose(self) -> dict[str, tuple[tuple[str, ...], ...]]:
        return loose_commands(command_text(self._raw_input))

    def _unproven(self) -> str:
        if not self._facts.not_understood:
            return ""
        names = {self._tool.name, *_PATH_RULES} if self._proves else {self._tool.name}
        for behavior in (Behavior.DENY, Behavior.ASK) if self._proves else (Behavior.DENY,):
            if any(rule.rule_content for rule in self._rules(behavior, *names)):
                what = f"no {behavior.value} rule matches"
                return f"It contains {self._facts.not_understood}, so it can't be shown that {what}"
        return ""

    def _is_open_read(self) -> bool:
        claimed = self._tool.read_only or self._facts.read_only
        if not claimed or self._facts.not_understood or self._facts.safety:
            return False
        return all(path.access == "read" and self._is_open(path) for path in self._facts.paths)

    def _is_open(self, path: PathFact) -> bool:
        """Within the workspace or a working directory, and not dangerous."""
        return not path.danger and (path.inside or self._is_in_working_directory(path.path))

    def _is_in_working_directory(self, path: str) -> bool:
        folders = (folder.rstrip("/") for folder in self._context.working_directories)
        return any(path == folder or path.startswith(folder + "/") for folder in folders if folder)

    def _safety(self) -> str:
        if self._facts.not_understood:
            return f"It contains {self._facts.not_understood}, which can't be judged without running it"
        if self._facts.safety:
            return f"It is dangerous: {self._facts.safety}"
        risky = next((path for path in self._facts.paths if path.danger), None)
        return f"It would {risky.access} {risky.path!r}: {risky.danger}" if risky else ""

    def _is_edit_inside(self) -> bool:
        facts = self._facts
        if facts.not_understood or facts.safety or not facts.paths:
            return False
        if not all(self._is_open(path) for path in facts.paths):
            return False
        if self._tool.name in WRITING_TOOLS:
            return True
        is_bash = self._tool.name == "Bash" and bool(facts.commands)
        return is_bash and all(command.read_only or command.edits_only for command in facts.commands)

    def _allowing_rule(self) -> str:
        rules = self._rules(Behavior.ALLOW)
        whole = next((rule for rule in rules if not rule.rule_content), None)
        if whole is not None:
            return cited(whole)
        contents = [rule.rule_content for rule in rules if rule.rule_content]
        covered = self._commands_covered(contents) if self._tool.name == "Bash" else self._paths_covered(contents)
        return "Allow rules cover all of it" if covered else ""

    def _commands_covered(self, contents: list[str]) -> bool:
        """Proven read-only parts need no rule, unless the line reads what is not open: then each part needs one."""
        reads_are_open = all(self._is_open(path) for path in self._facts.paths if path.access == "read")
        needing = [command.words for command in self._facts.commands if not (command.read_only and reads_are_open)]
        understood = bool(self._facts.commands) and not self._facts.not_understood
        return understood and all(any(allow_matches(content, words) for content in contents) for words in needing)

    def _paths_covered(self, contents: list[str]) -> bool:
        # A home can't be told apart from another here: `~` widens only what is denied or asked.
        absolute = [content for content in contents if not content.startswith("~")]
        paths = self._facts.paths
        return bool(paths) and all(
            any(path_matches(content, path.path, self._root) for content in absolute) for path in paths
        )


def _tools_of(path: PathFact) -> tuple[str, ...]:
    return ("Write", "Edit") if path.access == "write" else ("Read",)
