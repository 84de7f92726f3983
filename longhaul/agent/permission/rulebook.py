"""Says who may let calls run in advance: an approver by the agent's setting `grantable`, a user by rules of their
own.

Rules that an approver may accept along with a call: narrow ones, or none.

Refuses a rule that can't mean what its author means, where it comes in and with a sentence.

A rule that is there already is never checked again: what can't match anything allows nothing.

Rules over time: which of them count at a moment, how one is named, added and revoked, and how many there may be.
"""

import re
from collections.abc import Collection, Iterable

from longhaul.agent.permission.call_analysis import INTERPRETERS, CallAnalysis, PathUse
from longhaul.agent.permission.rule_matching import (
    DOMAIN,
    PREFIX_ENDING,
    host_allowed,
    is_by_argument,
    is_by_host,
    need_rules,
    path_matches,
    rule_words,
    written,
    wrong_domain,
    wrong_pattern,
)
from longhaul.agent.plain.errors import BadInput
from longhaul.agent.plain.measures import iso
from longhaul.agent.plain.text import names
from longhaul.agent.plain.values import digest_of
from longhaul.agent.values.conversation.tools import ToolDescriptor
from longhaul.agent.values.permission import Behavior, PermissionContext, PermissionRule, Scope
from longhaul.agent.values.spec.known_names import FILE_TOOLS, WEB_SEARCH, misspelt_rule

_SPELT = re.compile(r"(?P<tool>[A-Za-z_][A-Za-z0-9_-]*)(?:\((?P<content>.*)\))?", re.DOTALL)


def may_grant(rule: PermissionRule, grantable: tuple[str, ...], workspace_root: str) -> bool:
    """Whether an allow rule is one of `grantable`, or narrower: `Bash(git:*)` grants `Bash(git add:*)` too."""
    return rule.behavior is Behavior.ALLOW and any(_covers(pattern, rule, workspace_root) for pattern in grantable)


def may_come_from_a_store(rule: PermissionRule, context: PermissionContext) -> bool:
    """Whether a user's rule counts. The state store is open to whoever writes to it: an allow rule from there is
    nobody's signature, and no more than one person's word."""
    return rule.behavior is not Behavior.ALLOW or (
        context.approvals != "signed" and context.approvers(rule.tool_name) == 1
    )


def _covers(pattern: str, rule: PermissionRule, workspace_root: str) -> bool:
    spelt = _SPELT.fullmatch(pattern)
    if spelt is None or spelt["tool"] != rule.tool_name:
        return False
    wide, narrow = spelt["content"] or "", rule.rule_content or ""
    if not wide or wide == narrow:
        return True
    if not narrow:
        return False
    if is_by_host(rule.tool_name):
        return host_allowed(wide, narrow.removeprefix(DOMAIN).lower())
    return _command_covers(wide, narrow) if rule.tool_name == "Bash" else _path_covers(wide, narrow, workspace_root)


def _command_covers(wide: str, narrow: str) -> bool:
    words, is_prefix = rule_words(wide)
    others, _ = rule_words(narrow)
    return is_prefix and bool(others) and others[: len(words)] == words


def _path_covers(wide: str, narrow: str, workspace_root: str) -> bool:
    """One path, or a folder with all below it, that the wider pattern matches whatever stands in the place of `**`."""
    exact = narrow.removesuffix("/**")
    if not exact.startswith("/") or any(char in exact for char in "*?[") or ".." in exact.split("/"):
        return False
    if exact != narrow and not wide.endswith("/**"):
        return False
    return path_matches(wide, exact if exact == narrow else f"{exact}/x", workspace_root)


MAX_SUGGESTIONS = 5
MAX_COMMAND_CHARACTERS = 200


_RUN_ANYTHING = INTERPRETERS | names(
    "awk gawk mawk env xargs sudo doas su eval source . exec ssh busybox find parallel watch strace ltrace nohup"
    " setsid npx"
    " bunx script flock chroot unshare systemd-run make-jail gdb expect vim vi ed emacs trap alias"
)


def suggest_rules(tool: ToolDescriptor, analysis: CallAnalysis, workspace_root: str) -> tuple[PermissionRule, ...]:
    """At most five allow rules that together let this call pass; none when it is dangerous or not understood."""
    if analysis.not_understood or analysis.safety or any(path.danger for path in analysis.paths):
        return ()
    if tool.name == "Bash":
        contents = _for_commands(analysis)
    elif tool.name in FILE_TOOLS:
        contents = [_for_path(path, workspace_root) for path in analysis.paths]
    elif is_by_host(tool.name):
        contents = [f"{DOMAIN}{host}" for host in analysis.hosts]
    else:
        return (_rule(tool.name, None),)
    return tuple(_rule(tool.name, content) for content in dict.fromkeys(contents))[:MAX_SUGGESTIONS]


def _rule(tool_name: str, content: str | None) -> PermissionRule:
    return PermissionRule(tool_name=tool_name, rule_content=content, source="suggested")


def _for_commands(analysis: CallAnalysis) -> list[str]:
    """One rule per sub-command that needs one; nothing at all when one of them can't have a narrow rule."""
    reads_are_open = all(path.inside for path in analysis.paths if path.access == "read")
    found = [_for_command(words) for words in need_rules(analysis.commands, reads_are_open=reads_are_open)]
    narrow = [content for content in found if content]
    return narrow if len(narrow) == len(found) and len(set(narrow)) <= MAX_SUGGESTIONS else []


def _for_command(words: tuple[str, ...]) -> str:
    program = next((word for word in words if "=" not in word), words[0]).rsplit("/", 1)[-1]
    if (
        program in _RUN_ANYTHING
        or program.startswith("python")
        or words[:2] in (("uv", "run"), ("poetry", "run"), ("npm", "exec"), ("bundle", "exec"), ("docker", "run"))
    ):
        return ""
    # Never a prefix: `git fetch --upload-pack=…` or `make test --eval=…` would run anything under it.
    exact = written(words)
    return exact if len(exact) <= MAX_COMMAND_CHARACTERS else ""


def _for_path(fact: PathUse, workspace_root: str) -> str:
    """The folder and all below when it lies within the workspace, else the one file."""
    root = workspace_root.rstrip("/")
    folder = fact.path.rpartition("/")[0]
    is_below = fact.inside and (folder == root or folder.startswith(root + "/"))
    return f"{folder}/**" if is_below and "*" not in folder and "?" not in folder else fact.path


MAX_PATTERN_CHARS = 1_000
MAX_REASON_CHARS = 2_000
MAX_NAME_CHARS = 200
_TOOL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_OPERATORS = {";": ";", "&": "&", "|": "|", "`": "`", "(": "(", ")": ")", "<": "<"}


class BadRule(BadInput, ValueError):
    """The rule can't be used. The sentence says what to write."""


def check_rules(rules: Iterable[PermissionRule]) -> None:
    """Raises BadRule for the first one that can't mean what it should."""
    for rule in rules:
        check_rule(rule)


def check_tools_of(rules: Iterable[PermissionRule], tools: Collection[str] = ()) -> None:
    """Raises BadRule for the first one whose tool is none of these, nor of our own, but nearly one."""
    if why := misspelt_rule((rule.tool_name for rule in rules), tools):
        raise BadRule(why)


def check_rule(rule: PermissionRule) -> None:
    name, content = rule.tool_name, rule.rule_content
    if not name:
        raise BadRule("rules: a rule needs a tool_name")
    if not _TOOL_NAME.fullmatch(name) or len(name) > MAX_NAME_CHARS:
        raise BadRule(
            f"rules: tool_name {name[:80]!r} is no tool's name; name one tool as in 'Bash', without a pattern"
        )
    if len(rule.reason) > MAX_REASON_CHARS:
        raise BadRule(f"rules: a reason has at most {MAX_REASON_CHARS} characters, and this one has {len(rule.reason)}")
    for what, text in (("id", rule.id), ("source", rule.source), ("author", rule.author)):
        if len(text) > MAX_NAME_CHARS or not (text.isprintable() or not text):
            raise BadRule(
                f"rules: {what} {text[:80]!r} has to be one printable line of at most {MAX_NAME_CHARS} characters"
            )
    if content is None or content == "":
        return
    if len(content) > MAX_PATTERN_CHARS:
        raise BadRule(
            f"rules: a pattern has at most {MAX_PATTERN_CHARS} characters, and {content[:40]!r}… has {len(content)}"
        )
    if wrong := _wrong_content(name, content, rule.behavior):
        raise BadRule(f"rules: {name}({content[:200]}): {wrong}")


def _wrong_content(tool: str, content: str, behavior: Behavior) -> str:
    if is_by_argument(tool):
        return wrong_pattern(content)
    if is_by_host(tool):
        return wrong_domain(content)
    if tool == WEB_SEARCH:
        return "all queries go to the one search engine; leave rule_content out"
    return _wrong_command(content) if tool == "Bash" else _wrong_path(content, behavior)


def _wrong_command(content: str) -> str:
    text = content.strip().removesuffix(PREFIX_ENDING)
    if not text:
        return "" if content.strip() else "an empty pattern matches nothing; leave rule_content out for every call"
    if not text.isprintable():
        return "a command is one line without control characters"
    unquoted = _unquoted(text)
    if unquoted is None:
        return "a quote is not closed; quote as for a shell"
    if found := next((char for char in unquoted if char in _OPERATORS), ""):
        return f"{found!r} joins commands, and a rule is for one command: write a rule for each, or quote it"
    if "$" in unquoted:
        return "'$' is never expanded in a rule; write the command as it runs, or quote it"
    if "*" in unquoted:
        return "'*' has no meaning in a command; end it with ':*' for whatever follows, as in 'git add:*', or quote it"
    if ">" in unquoted.lstrip()[1:]:
        return "a redirection is a rule of its own, as in '> /proj/log'"
    return "" if rule_words(content)[0] else "it names no command; write one as in 'git add:*'"


def _unquoted(text: str) -> str | None:
    """What stands outside quotes and is not escaped; None when a quote is not closed."""
    kept: list[str] = []
    quote = ""
    characters = iter(text)
    for char in characters:
        if char == "\\" and quote != "'":
            if next(characters, None) is None:
                return None
        elif quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        else:
            kept.append(char)
    return None if quote else "".join(kept)


def _wrong_path(content: str, behavior: Behavior) -> str:
    if not content.strip():
        return "an empty pattern matches nothing; leave rule_content out for every call"
    if not content.isprintable():
        return "a path is one line without control characters"
    if content.startswith("~"):
        if not content.startswith("~/"):
            return "'~' stands for any home and is followed by '/', as in '~/.ssh/**'"
        if behavior is Behavior.ALLOW:
            return "'~' is for deny and ask rules, where it means any home; write the absolute path to allow"
    if bad := next((part for part in content.split("/") if "**" in part and part != "**"), ""):
        return f"'**' is a part of its own between slashes, as in '{bad.replace('**', '**/*', 1)}'"
    if content.startswith("\\") or re.match(r"[A-Za-z]:\\", content):
        return "a path is written with '/', as in '/proj/src/**'"
    return ""


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
        if rule.id and not (_name_and_meaning(other)[1] == _name_and_meaning(rule)[1]):
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


def _name_and_meaning(rule: PermissionRule) -> tuple[str, str]:
    """Its id, and the one that it would have without an id of its own."""
    meaning = id_of(rule.model_copy(update={"id": ""}))
    return rule.id or meaning, meaning
