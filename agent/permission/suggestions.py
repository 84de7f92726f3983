"""Rules that an approver may accept along with a call: narrow ones, or none."""

import re

from agent.permission.commands import written
from agent.permission.facts import CallFacts, PathFact
from agent.permission.rules import PermissionRule
from agent.tools import ToolDescriptor


def names(text: str) -> frozenset[str]:
    """The words of `text`, for tables of names."""
    return frozenset(text.split())


MAX_SUGGESTIONS = 5
MAX_COMMAND_CHARACTERS = 200
FILE_TOOLS = frozenset({"Read", "Write", "Edit", "Grep", "Glob"})

INTERPRETERS = names(
    "sh bash dash zsh ksh ash fish csh tcsh python python2 python3 pypy pypy3 node nodejs deno bun perl ruby php lua"
    " Rscript osascript pwsh tclsh"
)
"""Programs whose arguments or input are code."""

_RUN_ANYTHING = INTERPRETERS | names(
    "awk gawk mawk env xargs sudo doas su eval source . exec ssh busybox find parallel watch strace ltrace nohup"
    " setsid npx"
    " bunx script flock chroot unshare systemd-run make-jail gdb expect vim vi ed emacs trap alias"
)
_WITH_SUBCOMMANDS: dict[str, frozenset[str]] = {
    "git": names(
        "add am apply archive bundle checkout cherry-pick clone commit fetch init merge mv notes pull push rm"
        " restore revert"
        " stash switch tag worktree"
    ),
    "npm": names("run test ci install audit outdated view build start"),
    "pnpm": names("run test install build"),
    "yarn": names("run test install build"),
    "pip": names("install download check wheel"),
    "pip3": names("install download check wheel"),
    "uv": names("sync lock add pip venv tree"),
    "poetry": names("install lock add check build"),
    "cargo": names("build check test clippy fmt doc bench"),
    "go": names("build test vet fmt mod list"),
    "docker": names("build ps images logs inspect pull"),
    "kubectl": names("get describe logs"),
    "gh": names("pr issue run repo release"),
}
"""For these programs the second word says what is done, and is narrow enough for a rule."""
_TARGET = re.compile(r"[a-z][a-z0-9_-]{0,40}", re.ASCII)


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
    all_read = all(command.read_only for command in facts.commands)
    found = [_for_command(command.words) for command in facts.commands if all_read or not command.read_only]
    narrow = [content for content in found if content]
    return narrow if len(narrow) == len(found) and len(set(narrow)) <= MAX_SUGGESTIONS else []


def _for_command(words: tuple[str, ...]) -> str:
    program = next((word for word in words if "=" not in word), words[0]).rsplit("/", 1)[-1]
    if program in _RUN_ANYTHING or program.startswith("python") or _runs_a_script_of_another(words):
        return ""
    first_two = words[:2]
    if len(first_two) == 2:
        name, what = first_two
        is_target = name == "make" and _TARGET.fullmatch(what) is not None
        if is_target or what in _WITH_SUBCOMMANDS.get(name, frozenset()):
            return f"{name} {what}:*"
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
