"""Headings of Markdown pages, and the anchors by which links lead to them."""

import re


def anchor_of(heading: str) -> str:
    """As the forges make it: small letters, blanks as hyphens, no other marks."""
    kept = (letter for letter in heading.lower() if letter.isalnum() or letter in " -_")
    return "".join(kept).replace(" ", "-")


def anchors(page: str) -> set[str]:
    """Of all headings in a page's text."""
    fenceless = re.sub(r"(?ms)^```.*?^```", "", page)
    return {
        anchor_of(re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading))
        for heading in re.findall(r"(?m)^#+ (.+?)\s*$", fenceless)
    }
