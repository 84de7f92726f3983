"""The end of a summary, which no model writes: what is open, what was asked, refused, tried and changed, and where the
messages that left the context can be read.

Code takes these lines from the recorded messages, so they survive whatever the model's words leave out. The next
compression reads them back from here.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from longhaul.agent.plain.text import gist, parsed, tag_of, without
from longhaul.agent.reducer.context_state import MASK
from longhaul.agent.values.conversation.messages import (
    Msg,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    ToolResultState,
    parts_of,
)
from longhaul.agent.values.spec.summary_template import without_our_tags

_BEGIN = '<system-info source="longhaul">'
_END = "</system-info>"
_BEGIN_ANYWHERE = tag_of(r"system-info\s+source")
_POINTER = "Earlier messages, word for word: "
_OPEN = "Still open:"
_NO_SUMMARY = "Earlier messages were left out here without a summary."
_NOT_WRITTEN = "The messages left out last could not be written down for reading; ask for them if they are needed."
KEPT_POINTERS = 20

MOST_CARRIED: Mapping[str, int] = {"Asked: ": 20, "Refused: ": 20, "Failed: ": 30, "Changed: ": 60, "Read: ": 30}
"""Lines of each kind, by how they begin; the newest are kept."""
CARRIED_CHARS = 200
"""Of one line."""
_FILE_ARGUMENTS = ("file_path", "path", "notebook_path")


@dataclass(frozen=True, slots=True)
class Footer:
    still_open: tuple[str, ...] = ()
    carried: tuple[str, ...] = ()
    """As `carried_from` gives them."""
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
        lines += map(without_our_tags, self.carried)
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
    carried = tuple(line for line in lines if line.startswith(tuple(MOST_CARRIED)))
    return body.rstrip(), Footer(carried=carried, pointers=pointers, left_out=_NO_SUMMARY in lines)


def join(body: str, footer: Footer) -> str:
    """The whole summary. Nothing in `body` can pass for a footer."""
    return "\n\n".join(part for part in (without(_BEGIN_ANYWHERE, body), footer.text()) if part)


def missing(must_mention: Sequence[str], texts: Sequence[str]) -> tuple[str, ...]:
    """Those that stand in none of the texts."""
    return tuple(mention for mention in must_mention if not any(mention in text for text in texts))


def carried_from(messages: Iterable[Msg], read_only: AbstractSet[str]) -> tuple[str, ...]:
    """A line for each request of a person, each call that was refused or failed, and each file that a call named.

    `messages`: those that leave the context, or whose results do. `read_only`: tools that change nothing.
    """
    calls: dict[str, ToolCallBlock] = {}
    lines = list[str]()
    for message in messages:
        for block in message.content:
            match block:
                case ToolCallBlock():
                    calls[block.id] = block
                case TextBlock() if message.role == "user":
                    speaker = "" if message.name.lower() == "user" else f"{message.name}: "
                    lines.append(_line("Asked: ", f"{speaker}{block.text}"))
                case ToolResultBlock() if (call := calls.get(block.id)) is not None:
                    lines += _of_result(call, block, read_only)
                case _:
                    pass
    return tuple(lines)


def kept(carried: Sequence[str], most_chars: int) -> tuple[str, ...]:
    """By kind, each line once, the newest of each kind and of all as far as they have room."""
    newest = list(dict.fromkeys(reversed(carried)))
    lines = [line for kind, most in MOST_CARRIED.items() for line in _of(kind, newest)[:most]]
    room = max(most_chars, CARRIED_CHARS)
    while sum(map(len, lines)) > room:
        longest = max(MOST_CARRIED, key=lambda kind: sum(map(len, _of(kind, lines))))
        lines.remove(_of(longest, lines)[-1])
    return tuple(line for kind in MOST_CARRIED for line in reversed(_of(kind, lines)))


def _of(kind: str, lines: Sequence[str]) -> list[str]:
    return [line for line in lines if line.startswith(kind)]


def _of_result(call: ToolCallBlock, result: ToolResultBlock, read_only: AbstractSet[str]) -> Iterator[str]:
    if result.state is ToolResultState.SUCCESS:
        given = parsed(call.input) or {}
        for path in [given[name] for name in _FILE_ARGUMENTS if isinstance(given.get(name), str)][:1]:
            yield _line("Read: " if call.name in read_only else "Changed: ", path)
        return
    said = "\n".join(part for part in parts_of(result) if isinstance(part, str))
    if said == MASK:
        return  # an earlier compression has carried it
    kind = "Refused: " if result.state is ToolResultState.DENIED else "Failed: "
    yield _line(kind, f"{call.name} {' '.join(gist(call.input).split())[: CARRIED_CHARS // 2]}: {said}")


def _line(kind: str, text: str) -> str:
    """On one line, which no text of a model, a tool or a person can leave."""
    line = kind + " ".join(text.split())
    return line if len(line) <= CARRIED_CHARS else f"{line[: CARRIED_CHARS - 1]}…"
