"""Messages of a session as a page shows them: each message with its blocks, each call with its result, folded."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from longhaul.agent.plain.text import gist
from longhaul.agent.values.conversation.messages import (
    ContentBlock,
    DataBlock,
    FinishedReason,
    HintBlock,
    Msg,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
    ToolResultState,
)
from longhaul.starter import render
from longhaul.starter.console.console_request import Visit
from longhaul.starter.console.markdown import as_html, fitted
from longhaul.starter.console.waiting_calls import DiffLine, diff_lines
from longhaul.starter.render_calls import LISTS_TASKS, how_it_ran
from longhaul.starter.serve.response_bodies import Page
from longhaul.starter.visible import one_line

PAGE_MESSAGES = 50
MOST_PARTS = 4
"""Answers that a page is put together from. Each ends with the message that makes it too large."""
GIST_CHARS = 200


@dataclass(frozen=True, slots=True)
class SaidBlock:
    """One block. Which fields are set depends on `kind`."""

    kind: str
    """text, plain, thinking, hint, data or call."""
    text: str = ""
    html: str = ""
    """Safe as it is: `Markup`."""
    key: str = ""
    """Names a call on its page: it stays open while the page is renewed."""
    tool: str = ""
    state: str = ""
    mark: str = ""
    arguments: str = ""
    output: str = ""
    change: tuple[DiffLine, ...] = ()
    ran: str = ""
    """Its effect class and how long it took, where a worker ran it."""


@dataclass(frozen=True, slots=True)
class SaidMessage:
    """One message."""

    key: str
    """Names it on its page: it stays the same one while the page is renewed."""
    role: str
    name: str
    at: str
    blocks: tuple[SaidBlock, ...]
    ended: str
    """Why it is no whole answer; else empty."""


async def newest(visit: Visit, messages: int) -> Page:
    """The last of so many messages, up to the very last one: as many as a page has room for, and fewer where many of
    them are too large. Raises Problem."""
    start, following, found = 0, None, list[Msg]()
    for many in (PAGE_MESSAGES, MOST_PARTS):
        start, found = max(messages - many, 0), []
        following = start
        for _ in range(MOST_PARTS):
            part: Page = await visit.ask("transcript", {"from": following, "limit": PAGE_MESSAGES})
            found += part.messages
            following = part.next
            if following is None:
                return Page(start=start, next=None, messages=tuple(found))
    return Page(start=start, next=following, messages=tuple(found))


def said_messages(messages: Sequence[Msg]) -> list[SaidMessage]:
    """In order. A result stands with its call where both are on the page."""
    results = {
        block.id: block for message in messages for block in message.content if isinstance(block, ToolResultBlock)
    }
    called = {block.id for message in messages for block in message.content if isinstance(block, ToolCallBlock)}
    shown = [_message(message, results, called) for message in messages]
    return [one for one in shown if one.blocks or one.ended]


def _message(message: Msg, results: dict[str, ToolResultBlock], called: set[str]) -> SaidMessage:
    blocks = [shown for block in message.content for shown in _block(block, message.role, results, called)]
    ended = ""
    if message.finished_reason is FinishedReason.REFUSED and message.error is not None:
        ended = one_line(message.error.message)
    elif message.finished_reason is FinishedReason.INCOMPLETE:
        ended = "the message broke off here"
    return SaidMessage(message.id, message.role, one_line(message.name), message.created_at, tuple(blocks), ended)


def _block(
    block: ContentBlock, role: str, results: dict[str, ToolResultBlock], called: set[str]
) -> Iterator[SaidBlock]:
    match block:
        case TextBlock() if role == "assistant":
            yield SaidBlock("text", html=as_html(block.text))
        case TextBlock():
            yield SaidBlock("plain", text=fitted(block.text))
        case ThinkingBlock():
            yield SaidBlock("thinking", text=fitted(block.thinking))
        case HintBlock():
            parts = (block.hint,) if isinstance(block.hint, str) else _texts(block.hint)
            yield SaidBlock("hint", text=fitted("\n".join(parts)))
        case DataBlock():
            yield SaidBlock("data", text=one_line(f"{block.source.media_type} {block.name or ''}"))
        case ToolCallBlock():
            yield _call(block.id, block.name, block.input, results.get(block.id))
        case ToolResultBlock() if block.id not in called:
            yield _call(block.id, block.name, "", block)
        case ToolResultBlock():
            return


def _texts(parts: Sequence[TextBlock | DataBlock]) -> tuple[str, ...]:
    return tuple(part.text for part in parts if isinstance(part, TextBlock))


def _call(call_id: str, tool: str, arguments: str, result: ToolResultBlock | None) -> SaidBlock:
    change = result.metadata.get("diff") if result else None
    lists = tool == LISTS_TASKS and result is not None and result.state is ToolResultState.SUCCESS
    about = result.get_text().partition("\n")[0].rstrip(":") if result and lists else gist(arguments)
    return SaidBlock(
        "call",
        text=one_line(about[: GIST_CHARS * 2])[:GIST_CHARS],
        key=call_id,
        tool=one_line(tool),
        state=result.state.value if result else "running",
        mark=render.mark_of(result.state if result else None)[0],
        arguments=fitted(arguments),
        output=fitted(result.get_text()) if result else "",
        change=tuple(diff_lines(fitted(change))) if isinstance(change, str) else (),
        ran=how_it_ran(result) if result else "",
    )
