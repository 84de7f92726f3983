"""Text on a terminal while it is made, and what the record makes of it."""

import io
from typing import Any

import pytest
from rich.console import Console

from longhaul.agent.views.event_types import AgentEvent, Live
from longhaul.starter.cli.terminal.screen import Screen
from longhaul.starter.cli.terminal.streamed_text import LINES_SHOWN, StreamedText


class Terminal(Screen):
    """Shows on a terminal that a test can read, or in a pipe."""

    def __init__(self, *, terminal: bool = True) -> None:
        super().__init__()
        self.file = io.StringIO()
        self.out = self.err = Console(file=self.file, force_terminal=terminal, no_color=True, width=80)

    @property
    def text(self) -> str:
        return self.file.getvalue().replace("\x1b[2;3m", "").replace("\x1b[2m", "").replace("\x1b[0m", "")


def live(kind: str, delta: str = "", block: str = "b0", **more: Any) -> AgentEvent:
    told = {"type": kind, "delta": delta, "block_id": block, "live": Live(call="model:0"), **more}
    return AgentEvent.model_validate(told)


def recorded(delta: str, kind: str = "TEXT_BLOCK_DELTA") -> AgentEvent:
    return AgentEvent.model_validate({"type": kind, "seq": 7, "delta": delta})


def show(screen: Screen, *events: AgentEvent) -> None:
    speech = StreamedText(screen)
    for event in events:
        if event.seq:
            speech.recorded(event)
        else:
            speech.live(event)


def test_what_was_shown_whole_is_not_shown_again() -> None:
    screen = Terminal()

    show(screen, live("TEXT_BLOCK_DELTA", "For"), live("TEXT_BLOCK_DELTA", "ty"), recorded("Forty"))
    screen.show("next")

    assert screen.text == "Forty\nnext\n"


def test_of_what_was_shown_in_part_the_rest_follows() -> None:
    screen = Terminal()

    show(screen, live("TEXT_BLOCK_DELTA", "For"), recorded("Forty-two"))

    assert screen.text == "Forty-two\n"


def test_thinking_and_text_stand_in_lines_of_their_own() -> None:
    screen = Terminal()

    show(
        screen,
        live("THINKING_BLOCK_DELTA", "hm", "b0"),
        live("TEXT_BLOCK_DELTA", "Forty", "b1"),
        recorded("hm", "THINKING_BLOCK_DELTA"),
        recorded("Forty"),
    )

    assert screen.text == "hm\nForty\n"


def test_what_was_started_again_does_not_count() -> None:
    screen = Terminal()

    show(
        screen,
        live("TEXT_BLOCK_DELTA", "Fif"),
        live("CUSTOM", name="restarted"),
        live("TEXT_BLOCK_DELTA", "Forty", "b9"),
        recorded("Forty"),
    )

    assert screen.text == "Fif\n(started again: what was shown of it does not count)\nForty\n"


def test_what_the_record_says_otherwise_is_said_again() -> None:
    screen = Terminal()

    show(screen, live("TEXT_BLOCK_DELTA", "Fifty"), recorded("Forty"))

    assert screen.text == "Fifty\n(not as it was shown; this counts:)\nForty\n"


def test_output_is_shown_by_lines_and_only_its_first_ones() -> None:
    screen = Terminal()
    lines = "".join(f"line {number}\n" for number in range(LINES_SHOWN + 5))

    show(
        screen,
        *(live("TOOL_RESULT_TEXT_DELTA", piece, tool_call_id="a") for piece in (lines[:9], lines[9:], "more\n")),
    )

    shown = screen.text.splitlines()
    assert shown[:2] == ["  │ line 0", "  │ line 1"]
    assert shown[LINES_SHOWN:] == ["  │ …"]


def test_a_pipe_gets_whole_blocks_alone() -> None:
    screen = Terminal(terminal=False)

    show(
        screen,
        live("TEXT_BLOCK_DELTA", "Fif"),
        live("CUSTOM", name="restarted"),
        live("TOOL_RESULT_TEXT_DELTA", "x\n", tool_call_id="a"),
        recorded("Forty"),
    )

    assert screen.text == "Forty\n"


@pytest.mark.parametrize("kind", ["TEXT_BLOCK_DELTA", "THINKING_BLOCK_DELTA", "TOOL_RESULT_TEXT_DELTA"])
def test_nothing_live_can_steer_the_terminal(kind: str) -> None:
    screen = Terminal()

    show(screen, live(kind, "a\x1b]0;owned\x07\u202eb\n", tool_call_id="a"))

    assert "\x1b]" not in screen.file.getvalue()
    assert "\u202e" not in screen.file.getvalue()
