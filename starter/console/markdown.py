"""Makes HTML of the Markdown that models write: by a library that passes no HTML on, and a sanitiser behind it."""

from collections.abc import Sequence
from typing import Any

import nh3
from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup, escape

from longhaul.starter.visible import harmless

MOST_CHARS = 50_000
"""A longer text is shown as it is: to parse it would take seconds."""
_TAGS = {
    "a", "blockquote", "br", "code", "del", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre",
    "s", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul",
}  # fmt: skip


def _no_picture(tokens: Sequence[Token], index: int, options: Any, environment: Any) -> str:
    """A picture would be fetched: its words and address are shown."""
    del options, environment
    token = tokens[index]
    return str(escape(f"[picture: {token.content} {token.attrGet('src') or ''}]"))


_PARSER = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
_PARSER.renderer.rules["image"] = _no_picture  # type: ignore[attr-defined]


def as_html(text: str, *, whole: bool = False) -> Markup:
    """`text` for a page: nothing in it runs, fetches or hides. `whole`: of one that is too long to be laid out nothing
    is left out either."""
    shown = harmless(text)
    if len(shown) > MOST_CHARS:
        return Markup('<pre class="long">{}</pre>').format(shown if whole else fitted(text))
    clean = nh3.clean(
        str(_PARSER.render(shown)),
        tags=_TAGS,
        attributes={"a": {"href"}},
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer nofollow",
    )
    return Markup(clean)  # noqa: S704  it comes from the sanitiser


def fitted(text: str, most: int = 20_000) -> str:
    """Harmless text, of a long one the beginning and the end, around a count of what is left out."""
    if len(text) <= most:
        return harmless(text)
    head, tail = text[: most * 2 // 3], text[-(most // 3) :]
    gone = len(text) - len(head) - len(tail)
    return f"{harmless(head)}\n⟨{gone} characters are not shown here⟩\n{harmless(tail)}"
