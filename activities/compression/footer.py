"""The end of a summary, which no model writes: what is still open, and where the dropped messages can be read."""

from collections.abc import Sequence
from dataclasses import dataclass

from longhaul.agent.plain.text import tag_of, without
from longhaul.agent.values.spec.summary_template import without_our_tags

_BEGIN = '<system-info source="longhaul">'
_END = "</system-info>"
_BEGIN_ANYWHERE = tag_of(r"system-info\s+source")
_POINTER = "Earlier messages, word for word: "
_OPEN = "Still open:"
_NO_SUMMARY = "Earlier messages were left out here without a summary."
_NOT_WRITTEN = "The messages left out last could not be written down for reading; ask for them if they are needed."
KEPT_POINTERS = 20


@dataclass(frozen=True, slots=True)
class Footer:
    still_open: tuple[str, ...] = ()
    pointers: tuple[str, ...] = ()
    """Where earlier messages were written, oldest first."""
    left_out: bool = False
    """Messages went without a summary, now or earlier."""
    not_written: bool = False

    def text(self) -> str:
        """Empty when there is nothing to say."""
        lines = [_NO_SUMMARY] if self.left_out else []
        if self.still_open:
            lines += [_OPEN, *(f"- {without_our_tags(line)}" for line in self.still_open)]
        lines += [_POINTER + without_our_tags(pointer) for pointer in self.pointers[-KEPT_POINTERS:]]
        lines += [_NOT_WRITTEN] if self.not_written else []
        return "\n".join([_BEGIN, *lines, _END]) if lines else ""


def split(summary: str) -> tuple[str, Footer]:
    """A recorded summary without its footer, and of the footer what has to be carried on: all but what was open."""
    body, begin, rest = summary.rpartition(_BEGIN)
    if not begin:
        return summary, Footer()
    lines = rest.splitlines()
    pointers = tuple(line.removeprefix(_POINTER) for line in lines if line.startswith(_POINTER))
    return body.rstrip(), Footer(pointers=pointers, left_out=_NO_SUMMARY in lines)


def join(body: str, footer: Footer) -> str:
    """The whole summary. Nothing in `body` can pass for a footer."""
    return "\n\n".join(part for part in (without(_BEGIN_ANYWHERE, body), footer.text()) if part)


def missing(must_mention: Sequence[str], texts: Sequence[str]) -> tuple[str, ...]:
    """Those that stand in none of the texts."""
    return tuple(mention for mention in must_mention if not any(mention in text for text in texts))
