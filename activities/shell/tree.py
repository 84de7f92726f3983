"""The grammar's reading of a command line, and the first thing in it that is not understood."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import tree_sitter
import tree_sitter_bash

SEPARATORS = frozenset({"&&", "||", ";", "|", "|&", "&", "\n"})
WORDS = frozenset(
    {"word", "number", "string", "raw_string", "concatenation", "simple_expansion", "variable_assignment"}
)
_CONTAINERS = frozenset(
    {"program", "list", "pipeline", "command", "command_name", "redirected_statement", "file_redirect"}
    | {"negated_command", "test_command", "unary_expression"}
)
_REDIRECTS = frozenset({"<", ">", ">>", ">|", "&>", "&>>", ">&", "<&"})
_WITHIN_WORDS = frozenset({"string_content", '"', "$", "special_variable_name", "variable_name", "="})
_UNDERSTOOD = (
    SEPARATORS
    | WORDS
    | _CONTAINERS
    | _REDIRECTS
    | _WITHIN_WORDS
    | {"comment", "file_descriptor", "!"}
    | {"[", "]", "test_operator"}
)
_NAMES = {
    "ERROR": "a syntax error",
    "simple_expansion": "a variable",
    "arithmetic_expansion": "an arithmetic expansion",
    "expansion": "a parameter expansion",
    "if_statement": "an `if`",
    "for_statement": "a loop",
    "c_style_for_statement": "a loop",
    "while_statement": "a loop",
    "case_statement": "a `case`",
    "compound_statement": "a group in braces",
    "heredoc_redirect": "a here-document",
    "herestring_redirect": "a here-string",
    "declaration_command": "a declaration",
    "test_command": "a test in brackets",
    "ansi_c_string": "a string with escapes ($'…')",
}

_BASH = tree_sitter.Language(tree_sitter_bash.language())
_BEYOND_LATIN = re.compile("[^\x00-\xff]")
"""The grammar's scanner asks C's `isdigit` about any character, which reads outside of its table from U+0100 on:
garbage or the end of the process, by where memory happens to lie."""


@dataclass(slots=True)
class Node:
    """A node of the syntax tree, apart from the parser's memory; its text is the line's own."""

    type: str
    is_named: bool
    is_missing: bool
    text: str
    children: list["Node"] = field(default_factory=list)


def parse(line: str) -> Node:
    """The syntax tree of `line`. A parser for each line: what a hostile one leaves behind in it meets no other.

    Letters beyond Latin-1 are read as one of it, which bash and the grammar treat alike: as part of a word.
    """
    harmless = _BEYOND_LATIN.sub("\xff", line)
    tree = tree_sitter.Parser(_BASH).parse(harmless.encode("utf-16-le"), encoding="utf16le")
    root = _copied(tree.root_node, line)
    stack = [(tree.root_node, root)]
    while stack:
        theirs, ours = stack.pop()
        for child in theirs.children:
            ours.children.append(_copied(child, line))
            stack.append((child, ours.children[-1]))
    return root


def _copied(node: tree_sitter.Node, line: str) -> Node:
    # Two bytes for each character: all of them are below U+0100 by now.
    text = line[node.start_byte // 2 : node.end_byte // 2]
    return Node(node.type, node.is_named, node.is_missing, text)


def every_node(root: Node) -> Iterator[tuple[Node, int]]:
    """All nodes with their depth, in the order of the text, without recursion: a line may nest thousands deep."""
    stack = [(root, 0)]
    while stack:
        node, depth = stack.pop()
        yield node, depth
        stack.extend((child, depth + 1) for child in reversed(node.children))


def foreign_construct(node: Node) -> str:
    """A phrase for a node that is not understood, empty for one that is."""
    if node.is_missing:
        return "a syntax error"
    if node.type == "simple_expansion" and node.text not in ("$?", "$HOME"):
        return _NAMES["simple_expansion"]
    if node.type in _UNDERSTOOD and node.type != "test_command":
        return ""
    if node.type == "test_command" and node.children[0].type == "[":
        return ""
    named = _NAMES.get(node.type)
    if named is not None:
        return named
    return f"a {node.type.replace('_', ' ')}" if node.is_named else f"an unexpected {node.type!r}"


def groups(root: Node) -> list[list[str]]:
    """The raw words of each simple command, as `shell_words.split` gives them. Only for understood trees."""
    found: list[list[str]] = [[]]
    stack: list[Node | None] = [root]
    while stack:
        node = stack.pop()
        if node is None or node.type in SEPARATORS or node.type == "comment":
            found.append([])
        elif node.type in _CONTAINERS:
            stack.extend(reversed(_children_and_ends(node)))
        else:
            found[-1].append(node.text)
    return [group for group in found if group]


def _children_and_ends(node: Node) -> list[Node | None]:
    """The children; after each statement of a program its end, which a newline marks without a node."""
    if node.type != "program":
        return list(node.children)
    return [item for child in node.children for item in (child, None)]
