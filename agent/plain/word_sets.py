"""Makes sets of words from a text: tables that people read and change."""


def names(text: str) -> frozenset[str]:
    """The words of `text`, for tables of names."""
    return frozenset(text.split())
