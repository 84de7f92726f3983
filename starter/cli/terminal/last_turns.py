"""The last turns of a session that somebody comes back to, as they were shown."""

from collections.abc import Iterator, Sequence

from rich.text import Text

from longhaul.agent.values.conversation.messages import Msg, TextBlock, title_of
from longhaul.starter import render, render_session
from longhaul.starter.cli.terminal.markdown import MarkdownText
from longhaul.starter.cli.terminal.screen import Screen
from longhaul.starter.client.session import Session
from longhaul.workflows.contract import Status

TURNS = 2
LOOK_BACK_MESSAGES = 60


async def last_turns(session: Session, status: Status) -> list[Msg]:
    """What was asked and answered last; of the reply that the status tells of nothing, for it is shown by its
    events."""
    start = max(status.messages - LOOK_BACK_MESSAGES, 0)
    messages = [message async for message in session.transcript(start)]
    # A copy of another session has its messages in the context alone.
    messages = messages or [message async for message in session.context()]
    return of_turns(messages, status.reply_id)


def of_turns(messages: Sequence[Msg], reply_id: str) -> list[Msg]:
    """From the request before the last one on, up to the reply."""
    begun = next((place for place, one in enumerate(messages) if reply_id and one.id == reply_id), len(messages))
    before = list(messages[:begun])
    asked = [place for place, message in enumerate(before) if _is_request(message)]
    return before[asked[-TURNS] :] if len(asked) >= TURNS else before


def shown_again(messages: Sequence[Msg], screen: Screen) -> Iterator[Text]:
    """Under a heading, if there are any; what is cut can be shown whole by a command of the chat."""

    def laid_out(text: str) -> Text:
        parts = screen.out.render(MarkdownText(text))
        shown = Text.assemble(*((part.text, part.style or "") for part in parts))
        shown.rstrip()
        return shown

    if messages:
        yield Text("what was said last:", "dim")
    yield from render_session.transcript(
        messages,
        width=screen.width,
        whole_by=lambda call_id: f"/output {call_id}",
        said=laid_out if screen.renders else render.said,
    )


async def first_request(session: Session) -> str:
    """How it begins; empty where nothing was asked yet."""
    async for message in session.transcript():
        if title := title_of((message,)):
            return title
    return ""


def _is_request(message: Msg) -> bool:
    return message.role == "user" and bool(_text(message).strip())


def _text(message: Msg) -> str:
    return " ".join(block.text for block in message.content if isinstance(block, TextBlock))
