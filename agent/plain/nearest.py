"""Answers a name that nothing has with the nearest one that there is."""

import difflib
from collections.abc import Iterable

MOST_LISTED = 20
LONGEST_NAME = 100
"""Characters that are compared and shown: what comes from outside may be of any length."""


ALIKE = 0.6
"""As `difflib` measures: 1 is the same name, 0 one without a letter in common."""


def nearest(name: str, known: Iterable[str], alike: float = ALIKE) -> str:
    """The one of `known` that was probably meant; empty when none is near. `alike`: what counts as near."""
    brief, names = name[:LONGEST_NAME], sorted(known)
    for spelt in (brief, brief.lower()):
        if near := difflib.get_close_matches(spelt, names, n=1, cutoff=alike):
            return near[0]
    return ""


def did_you_mean(name: str, known: Iterable[str], otherwise: str = "there are") -> str:
    """`did you mean 'x'?`, or, where none is near, `there are: a, b, c`; the first words of that are `otherwise`."""
    names = sorted(known)
    if near := nearest(name, names):
        return f"did you mean {near!r}?"
    more = f" and {len(names) - MOST_LISTED} more" if len(names) > MOST_LISTED else ""
    return f"{otherwise}: {', '.join(names[:MOST_LISTED]) or 'none'}{more}"
