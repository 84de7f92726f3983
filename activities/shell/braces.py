"""Lists in braces, `src/{a,b}.py`: the words that bash makes of one, before it reads any of them.

Only plain ones are expanded: no quotes, no escapes and no variables anywhere in the word, where bash's own order
would have to be followed; no ranges (`{1..9}`), and no braces that stand for themselves.
"""

import re

from longhaul.activities.shell.words import Unreadable, is_brace_expansion

MAX_WORDS = 64
MAX_PIECES = 100
_PLAIN = re.compile(r"(?:--?[a-z-]+=)?[\w./@%:*?+,{}-]+", re.ASCII)
"""`--include=*.{ts,tsx}` is a word like others; `name={a,b}` may be an assignment, which bash does not expand."""
_PIECE = re.compile(r"[{},]|[^{},]+")


def braced(raw: str) -> list[str]:
    """The raw words that bash puts in the place of `raw`, in its order; `[raw]` for one that is not plain.

    Raises Unreadable for braces that this reading does not understand.
    """
    if not is_brace_expansion(raw) or not _PLAIN.fullmatch(raw):
        return [raw]
    pieces = _PIECE.findall(raw)
    words = _sequence(pieces, inside=False) if len(pieces) <= MAX_PIECES else []
    if pieces or not all(words):
        # An empty word is none for bash.
        raise Unreadable("a brace expansion")
    return words


def _sequence(pieces: list[str], *, inside: bool) -> list[str]:
    """Takes pieces up to a `,` or `}` of the list that is around them, or up to the end."""
    words = [""]
    while pieces and not (inside and pieces[0] in ",}"):
        piece = pieces.pop(0)
        if piece in ",}":
            raise Unreadable("a brace expansion")
        ends = _list(pieces) if piece == "{" else [piece]
        if len(words) * len(ends) > MAX_WORDS:
            raise Unreadable("a brace expansion")
        words = [start + end for start in words for end in ends]
    return words


def _list(pieces: list[str]) -> list[str]:
    """Takes what stands behind a `{` with its `}`. A list has at least two members; a range or `{}` has one."""
    members: list[list[str]] = []
    end = ","
    while end == ",":
        members.append(_sequence(pieces, inside=True))
        end = pieces.pop(0) if pieces else ""
    if end != "}" or len(members) < 2:
        raise Unreadable("a brace expansion")
    return [word for member in members for word in member]
