"""Finds out what a Bash command would do, as far as that can be proven without running it.

Two independent readings (the bash grammar and a strict splitter) must agree, and every program, subcommand and flag
must stand on a positive list, before a command counts as read-only. Anything else is listed for the rules and asks.
This decides whether a person is asked; the sandbox, not this, is the boundary.
"""

from pathlib import Path

from longhaul.activities.shell import tree as shell_tree
from longhaul.activities.shell.environment_variables import reads_as_utf8
from longhaul.activities.shell.findings import MAX_PARSED_CHARACTERS, Findings
from longhaul.activities.shell.proving import Prover
from longhaul.activities.shell.tree import Node
from longhaul.activities.shell.walk import Walk
from longhaul.activities.shell.words import Unreadable, hidden_character, split
from longhaul.agent.permission.call_facts import CallFacts

MAX_CHARACTERS = 10_000
MAX_COMMANDS = 50
MAX_DEPTH = 100


def examine_command(
    command: str, cwd: Path, root: Path, ruled: tuple[str, ...] = (), closed: tuple[tuple[str, str], ...] = ()
) -> CallFacts:
    """Findings about `command` run by bash in `cwd`. Reads directories and links, changes nothing, never raises.

    `cwd` and `root` are absolute; `root` is resolved; `ruled` and `closed` as in `Place`. `read_only` is proven;
    `not_understood` names the first construct that prevents a proof of anything, and the sub-commands found inside of
    it are still listed for deny rules.
    """
    findings = Findings(root, str(cwd), ruled=ruled, closed=closed)
    findings.foreign = _limits(command)
    if len(command) <= MAX_PARSED_CHARACTERS:
        tree = shell_tree.parse(command)
        findings.foreign = findings.foreign or _foreign_in(tree) or _disagreement(command, tree)
        if findings.foreign:
            findings.list_loosely(tree)
        else:
            Walk(findings, Prover(findings)).statement(tree, (str(cwd),))
    return findings.facts()


def _limits(command: str) -> str:
    if not command.strip():
        return "an empty command"
    if len(command) > MAX_CHARACTERS:
        return f"a command of more than {MAX_CHARACTERS:,} characters"
    if not command.isascii() and not reads_as_utf8():
        return "a letter beyond ASCII, which this locale may split"
    hidden = hidden_character(command)
    return f"an invisible or control character ({hidden})" if hidden else ""


def _foreign_in(tree: Node) -> str:
    commands, foreign = 0, ""
    for node, depth in shell_tree.every_node(tree):
        commands += node.type in ("command", "variable_assignment")
        foreign = foreign or shell_tree.foreign_construct(node)
        if depth > MAX_DEPTH:
            return foreign or "too deep nesting"
    return foreign or (f"more than {MAX_COMMANDS} sub-commands" if commands > MAX_COMMANDS else "")


def _disagreement(command: str, tree: Node) -> str:
    """Why the line can't be trusted although the grammar accepts it."""
    try:
        if split(command) != shell_tree.groups(tree):
            return "words that can be split in two ways"
    except Unreadable as unreadable:
        return str(unreadable)
    return ""
