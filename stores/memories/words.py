"""Words as the full-text index knows them, of texts and of questions."""

import re

MOST_WORDS = 60
"""Of a question: each is a search of its own."""

_SPACELESS = re.compile(r"([\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\u0e00-\u0e7f])")
_WORD = re.compile(r"\w+")
_SAY_NOTHING = frozenset(
    _WORD.findall(
        "a about after all also am an and any are as at be because been before but by can could did do does for from"
        " had has have he her here him his how i if in into is it its just me more most my no not of on one or our out"
        " over please she should so some than that the their them then there these they this those to too up us use"
        " user was we were what when where which who whom whose why will with would you your"
    )
)
"""Words that stand in most texts; found by them, each memory would fit each request."""


def indexed(text: str) -> str:
    """The text for the index: scripts that put no spaces between words are found by their signs."""
    return _SPACELESS.sub(r" \1 ", text).replace("\0", " ")


def query_of(question: str) -> str:
    """Any text as a query of FTS5 for each of its words that says something; empty when none does. Nothing in it is
    taken for an operator."""
    words = dict.fromkeys(_WORD.findall(indexed(question).casefold()))
    telling = [word for word in words if word not in _SAY_NOTHING][:MOST_WORDS]
    return " OR ".join(f'"{word}"' for word in telling)
