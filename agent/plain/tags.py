"""Finds tags of ours in what models, people and files say, so that theirs can't be taken for ours."""

import re


def tag_of(words: str) -> re.Pattern[str]:
    """The `<` before words that an expression names, at the beginning or the end of an element, in capitals or not.

    What is blank is given back to nobody: a long run of it would else be tried at each of its places.
    """
    return re.compile(rf"<(?=\s*+/?\s*+(?:{words}))", re.IGNORECASE)


def without(tag: re.Pattern[str], text: str) -> str:
    """With words in the place of these tags."""
    return tag.sub("&lt;", text)
