"""The grammar's reading of a command line, and the first thing in it that is not understood."""

from collections.abc import Iterator

import tree_sitter_bash
from tree_sitter import Language, Node, Parser

SEPARATORS = frozenset({"&&", "||", ";", "|", "|&", "&", "\n"})
WORDS = frozenset(
    {"word", "number", "string", "raw_string", "concatenation", "simple_expansion", "variable_assignment"}
)
_CONTAINERS = frozenset(
    {"program", "list", "pipeline", "command", "command_name", "redirected_statement", "file_redirect"}
    | {"negated_command"}
)
_REDIRECTS = frozenset({"<", ">", ">>", ">|", "&>", "&>>", ">&", "<&"})
_WITHIN_WORDS = frozenset({"string_content", '"', "$", "special_variable_name", "variable_name", "="})
_UNDERSTOOD = SEPARATORS | WORDS | _CONTAINERS | _REDIRECTS | _WITHIN_WORDS | {"comment", "file_descriptor", "!"}
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

_BASH = Language(tree_sitter_bash.language())


def parse(line: str) -> Node:
    """The syntax tree of `line`. A parser for each line: what a hostile one leaves behind in it meets no other."""
    return Parser(_BASH).parse(line.encode("utf-8", errors="replace")).root_node


def every_node(root: Node) -> Iterator[tuple[Node, int]]:
    """All nodes with their depth, in the order of the text, without recursion: a line may nest thousands deep."""
    stack = [(root, 0)]
    while stack:
        node, depth = stack.pop()
        yield node, depth
        stack.extend((child, depth + 1) for child in reversed(node.children))


def raw(node: Node) -> str:
    return (node.text or b"").decode("utf-8", errors="replace")


def foreign_construct(node: Node) -> str:
    """A phrase for a node that is not understood, empty for one that is."""
    if node.is_missing:
        return "a syntax error"
    if node.type == "simple_expansion" and raw(node) != "$?":
        return _NAMES["simple_expansion"]
    if node.type in _UNDERSTOOD:
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
            found[-1].append(raw(node))
    return [group for group in found if group]


def _children_and_ends(node: Node) -> list[Node | None]:
    """The children; after each statement of a program its end, which a newline marks without a node."""
    if node.type != "program":
        return list(node.children)
    return [item for child in node.children for item in (child, None)]
