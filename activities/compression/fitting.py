"""Material made to fit a model's window: results lose their middle first, then the older messages lose theirs."""

from collections.abc import Callable, Sequence

from longhaul.activities.compression.rendering import Piece

_RESULT_CAPS = (2_000, 700, 250)
"""Tokens of each result, in turn, until all of it fits."""
_BETWEEN = "\n\n"


def answer_room(window_tokens: int, output_tokens: int) -> int:
    """Tokens of the window that are left for the answer: a tenth, or what the configuration allows a reply.

    A quarter where a reply may take more than half of the window: there would be no room for what it is about.
    """
    wanted = max(window_tokens // 10, output_tokens)
    return wanted if wanted <= window_tokens // 2 else window_tokens // 4


def fitted(pieces: Sequence[Piece], budget: int, count: Callable[[str], int]) -> str:
    """The pieces in order, in at most `budget` tokens; empty when not even a part of them fits."""
    text = _BETWEEN.join(piece.text for piece in pieces)
    if count(text) <= budget:
        return text
    for cap in _RESULT_CAPS:
        texts = [shortened(piece.text, cap, count) if piece.is_result else piece.text for piece in pieces]
        text = _BETWEEN.join(texts)
        if count(text) <= budget:
            return text
    return _without_middle(pieces, budget, count)


def shortened(text: str, cap: int, count: Callable[[str], int]) -> str:
    """Beginning and end of a text that is above `cap` tokens, with a mark between; empty when nothing fits."""
    size = count(text)
    if size <= max(cap, 0):
        return text
    keep = len(text) * max(cap, 0) // size
    while keep > 0:
        head = keep * 2 // 3
        tried = f"{text[:head]}\n[… {len(text) - keep} characters left out here …]\n{text[len(text) - keep + head :]}"
        if count(tried) <= cap:
            return tried
        keep = keep * 3 // 4
    return ""


def _without_middle(pieces: Sequence[Piece], budget: int, count: Callable[[str], int]) -> str:
    """The pieces that stay whole and the first one, then the newest that fit, and how many are missing between."""
    part = budget // 4
    caps = [min(part, _RESULT_CAPS[-1]) if piece.is_result else part for piece in pieces]
    texts = [shortened(piece.text, cap, count) for piece, cap in zip(pieces, caps, strict=True)]
    begins = min(sum(piece.whole for piece in pieces) + 1, len(texts))
    kept, left = len(texts), budget - count(_joined(texts[:begins], len(texts), []))
    while kept > begins and (left := left - count(texts[kept - 1]) - 1) >= 0:
        kept -= 1
    # Counting is not additive with every tokenizer: what was added up is counted again, whole.
    while begins >= 0:
        text = _joined(texts[:begins], kept - begins, texts[kept:])
        if count(text) <= budget:
            return text
        if kept < len(texts):
            kept += 1
        else:
            begins -= 1
    return ""


def _joined(begin: Sequence[str], missing: int, end: Sequence[str]) -> str:
    gap = [f"[{missing} parts of the conversation are left out here: there was no room for them]"] if missing else []
    return _BETWEEN.join([*begin, *gap, *end])
