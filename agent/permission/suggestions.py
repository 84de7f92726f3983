"""Rules that an approver may accept along with a call: narrow ones, or none."""

from longhaul.agent.permission.command_chains import need_rules
from longhaul.agent.permission.command_patterns import written
from longhaul.agent.permission.facts import CallFacts, PathFact
from longhaul.agent.permission.interpreters import INTERPRETERS
from longhaul.agent.plain.word_sets import names
from longhaul.agent.values.conversation.tools import ToolDescriptor
from longhaul.agent.values.permission import PermissionRule
from longhaul.agent.values.spec.known_names import FILE_TOOLS

MAX_SUGGESTIONS = 5
MAX_COMMAND_CHARACTERS = 200


_RUN_ANYTHING = INTERPRETERS | names(
    "awk gawk mawk env xargs sudo doas su eval source . exec ssh busybox find parallel watch strace ltrace nohup"
    " setsid npx"
    " bunx script flock chroot unshare systemd-run make-jail gdb expect vim vi ed emacs trap alias"
)


def suggest_rules(tool: ToolDescriptor, facts: CallFacts, workspace_root: str) -> tuple[PermissionRule, ...]:
    """At most five allow rules that together let this call pass; none when it is dangerous or not understood."""
    if facts.not_understood or facts.safety or any(path.danger for path in facts.paths):
        return ()
    if tool.name == "Bash":
        contents = _for_commands(facts)
    elif tool.name in FILE_TOOLS:
        contents = [_for_path(path, workspace_root) for path in facts.paths]
    else:
        return (_rule(tool.name, None),)
    return tuple(_rule(tool.name, content) for content in dict.fromkeys(contents))[:MAX_SUGGESTIONS]


def _rule(tool_name: str, content: str | None) -> PermissionRule:
    return PermissionRule(tool_name=tool_name, rule_content=content, source="suggested")


def _for_commands(facts: CallFacts) -> list[str]:
    """One rule per sub-command that needs one; nothing at all when one of them can't have a narrow rule."""
    reads_are_open = all(path.inside for path in facts.paths if path.access == "read")
    found = [_for_command(words) for words in need_rules(facts.commands, reads_are_open=reads_are_open)]
    narrow = [content for content in found if content]
    return narrow if len(narrow) == len(found) and len(set(narrow)) <= MAX_SUGGESTIONS else []


def _for_command(words: tuple[str, ...]) -> str:
    program = next((word for word in words if "=" not in word), words[0]).rsplit("/", 1)[-1]
    if program in _RUN_ANYTHING or program.startswith("python") or _runs_a_script_of_another(words):
        return ""
    # Never a prefix: `git fetch --upload-pack=…` or `make test --eval=…` would run anything under it.
    exact = written(words)
    return exact if len(exact) <= MAX_COMMAND_CHARACTERS else ""


def _runs_a_script_of_another(words: tuple[str, ...]) -> bool:
    return words[:2] in (("uv", "run"), ("poetry", "run"), ("npm", "exec"), ("bundle", "exec"), ("docker", "run"))


def _for_path(fact: PathFact, workspace_root: str) -> str:
    """The folder and all below when it lies within the workspace, else the one file."""
    root = workspace_root.rstrip("/")
    folder = fact.path.rpartition("/")[0]
    is_below = fact.inside and (folder == root or folder.startswith(root + "/"))
    return f"{folder}/**" if is_below and "*" not in folder and "?" not in folder else fact.path
