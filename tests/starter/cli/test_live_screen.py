"""What stands below the printed text: the paragraph that grows, what runs, how far it is."""

import io
from typing import Any

import pytest
from rich.console import Console
from rich.text import Text

from longhaul.agent.views.event_types import AgentEvent
from longhaul.starter.cli.terminal.reply_printer import ProgressLine, RunningCalls, seconds
from longhaul.starter.cli.terminal.screen import BottomLines, Screen
from longhaul.starter.cli.terminal.streamed_text import MarkdownWriter
from longhaul.starter.cli.terminal.text_layout import MarkdownText

AT = "2026-11-21T09:00:{:02}+00:00"
NINE = 1795251600.0


class Terminal(Screen):
    """One that a test can read; nothing is painted by itself."""

    def __init__(self, width: int = 60, height: int = 12) -> None:
        super().__init__()
        self.file = io.StringIO()
        self.out = self.err = Console(
            file=self.file, force_terminal=True, no_color=True, width=width, height=height, legacy_windows=False
        )

    @property
    def text(self) -> str:
        return plain(self.file.getvalue())

    @property
    def standing(self) -> str:
        with self.out.capture() as drawn:
            self.out.print(self.below)
        return plain(drawn.get())


def plain(drawn: str) -> str:
    lines = Text.from_ansi(drawn).plain.splitlines()
    return "\n".join(line.rstrip() for line in lines).strip("\n")


def event(kind: str, **more: Any) -> AgentEvent:
    return AgentEvent.model_validate({"type": kind, "seq": 1, **more})


@pytest.mark.proves("C4")
def test_a_finished_paragraph_is_printed_and_the_growing_one_stands_below() -> None:
    screen = Terminal()
    writer = MarkdownWriter(screen)

    writer.say("TEXT_BLOCK_DELTA", "The **tide** comes in.\n\n")
    assert (screen.text, screen.standing) == ("", "The tide comes in.")
    writer.say("TEXT_BLOCK_DELTA", "The tide\ngoes")
    assert (screen.text, screen.standing) == ("The tide comes in.", "The tide goes")
    writer.end()

    assert (screen.text, screen.standing) == ("The tide comes in.\n\nThe tide goes", "")


def test_what_does_not_count_any_more_is_taken_away() -> None:
    screen = Terminal()
    writer = MarkdownWriter(screen)

    writer.say("TEXT_BLOCK_DELTA", "Fif")
    writer.drop()
    writer.say("TEXT_BLOCK_DELTA", "Forty")
    writer.end()

    assert screen.text == "Forty"


def test_thinking_ends_where_text_begins() -> None:
    screen = Terminal()
    writer = MarkdownWriter(screen)

    writer.say("THINKING_BLOCK_DELTA", "# hm")
    writer.say("TEXT_BLOCK_DELTA", "Forty")

    assert (screen.text, screen.standing) == ("# hm", "Forty")


@pytest.mark.parametrize(
    "hostile",
    ["a\x1b]0;owned\x07b", "a&#x202e;b", "a&#27;[2Jb", "[a](javascript:\u202eb)", "```\n\x1b[2J\u2066\n```", "a\rb"],
)
@pytest.mark.parametrize("kind", ["TEXT_BLOCK_DELTA", "THINKING_BLOCK_DELTA"])
def test_no_text_can_steer_the_terminal_or_hide_in_it(hostile: str, kind: str) -> None:
    screen = Terminal()
    writer = MarkdownWriter(screen)

    writer.say(kind, hostile)
    with screen.out.capture() as drawn:
        screen.out.print(screen.below)
    writer.end()

    written = drawn.get() + screen.file.getvalue()
    assert [bad for bad in ("\x07", "\x1b]", "\x1b[2J", "\u202e", "\u2066", "\r") if bad in written] == []


def test_a_link_says_where_it_leads() -> None:
    screen = Terminal()

    screen.show(MarkdownText("[your bank](https://evil.example)"))

    assert screen.text == "your bank (https://evil.example)"
    assert "\x1b]8" not in screen.file.getvalue()


def test_a_call_that_runs_shows_its_time_and_its_last_lines() -> None:
    now = [NINE]
    screen = Terminal(width=40)
    running = RunningCalls(lambda: now[0])
    running.started("a", "Bash", '{"command": "make a very long thing of it all, and more"}', AT.format(0))
    screen.below.put("running", running)

    running.said("a", "".join(f"line {number}\n" for number in range(9)) + "\x1b[2Jhalf")
    running.said("b", "of nobody\n")
    now[0] += 125

    lines = screen.standing.splitlines()
    assert lines[0].startswith("| ") or lines[0][0] in "/-\\"
    assert "2:05 Bash make a very" in lines[0]
    assert lines[1:] == ["  | line 6", "  | line 7", "  | line 8", "  | \\x1b[2Jhalf"]
    assert max(map(len, lines)) < 40
    assert running.ended("a", AT.format(12)) == " 12 s"
    assert running.ended("a", AT.format(13)) == ""


def test_an_endless_line_is_not_kept() -> None:
    running = RunningCalls(lambda: NINE)
    running.started("a", "Bash", "{}", "no moment")
    for _ in range(100):
        running.said("a", "x" * 1_000)

    shown = io.StringIO()
    Console(file=shown, width=2_000).print(running)

    assert shown.getvalue().count("x") == 1_000


def test_the_pace_counts_steps_tokens_and_tasks() -> None:
    screen, pace = Terminal(), ProgressLine(lambda: NINE + 7)
    screen.below.put("pace", pace)
    tasks = [{"subject": "Look", "state": "completed"}, {"subject": "Mend\x1b it", "state": "in_progress"}]

    pace.take(event("REPLY_START", created_at=AT.format(0)))
    pace.take(event("MODEL_CALL_END", input_tokens=1_200, output_tokens=80))
    pace.take(event("CUSTOM", name="tasks_changed", value={"tasks": tasks}))

    assert screen.standing == "step 2 · 7 s · 1,200 in 80 out · tasks 1/2 Mend\\x1b it"
    assert pace.ended(AT.format(9)).plain == "1 step, 1,200 tokens in, 80 out, 9 s"


def test_the_end_of_what_grows_is_shown_when_the_screen_is_low() -> None:
    screen = Terminal(height=12)
    screen.below.put("pace", Text("the pace"))
    screen.below.put("text", Text("\n".join(f"line {number}" for number in range(99))))

    lines = screen.standing.splitlines()

    assert lines == [*(f"line {number}" for number in range(91, 99)), "the pace"]


def test_nothing_below_draws_nothing() -> None:
    below = BottomLines()
    below.put("pace", Text("x"))
    below.put("pace", None)

    assert not below


@pytest.mark.parametrize(("took", "shown"), [(-3, "0 s"), (59.9, "59 s"), (60, "1:00"), (3_725, "1:02:05")])
def test_times_are_short(took: float, shown: str) -> None:
    assert seconds(took) == shown
