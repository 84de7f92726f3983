"""What a provider reports of a context's size is believed where it can be true, and else changes nothing."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from longhaul.agent import entries as e
from longhaul.agent.reducer.context_state import tokens
from longhaul.agent.values.conversation.messages import ToolResultBlock, Usage
from tests.agent.play import Play, calls, text

WINDOW, LOOKS, SIZE = 6_000, 45, 300
Report = Callable[[int, int], Usage | None]
"""Of a call's number and its true size: what the provider says of it."""


@dataclass
class Reported(Play):
    """A run whose provider reports as it likes, beside a worker that counts right."""

    report: Report = lambda _, true: Usage(input_tokens=true)
    sizes: list[int] = field(default_factory=list)

    def write(self, entry: e.AnyEntry) -> None:
        if isinstance(entry, e.ModelSaid):
            true = self.journal.provided.fixed_tokens + self.journal.context.tokens
            usage = self.report(len(self.sizes), true)
            message = entry.message.model_copy(update={"usage": usage})
            entry = entry.model_copy(update={"message": message, "input_estimate": true})
            self.sizes.append(true)
        super().write(entry)


def looked(number: int) -> e.ToolReturned:
    result = ToolResultBlock(id=f"look{number}", name="Look", output="x" * SIZE * 3)
    return e.ToolReturned(result=result, digest=f"d{number}", tokens=SIZE)


def reported(report: Report) -> Reported:
    play = Reported(
        lines=[*(calls(f"look{number} Look") for number in range(LOOKS)), text("All seen.")],
        outcomes={f"look{number}": [looked(number)] for number in range(LOOKS)},
        window=WINDOW,
        report=report,
    )
    play.say("Look at the walls")
    play.run()
    return play


REPORTS: dict[str, Report] = {
    "the truth": lambda _, true: Usage(input_tokens=true),
    "nothing": lambda *_: None,
    "zero": lambda *_: Usage(),
    "the worker's own count": lambda _, true: Usage(input_tokens=true, estimated=True),
    "always a hundred": lambda *_: Usage(input_tokens=100),
    "a quarter": lambda _, true: Usage(input_tokens=true // 4),
    "without what was cached": lambda number, true: Usage(input_tokens=max(true // 20, 1) if number else true),
    "by turns far too much and far too little": lambda number, _: Usage(input_tokens=(1, 10**9)[number % 2]),
    "less than nothing": lambda *_: Usage(input_tokens=-500),
}


@pytest.mark.proves("B6")
@pytest.mark.parametrize("kind", REPORTS)
def test_whatever_is_reported_a_context_stays_in_its_window_and_is_not_shortened_for_nothing(kind: str) -> None:
    play = reported(REPORTS[kind])

    assert play.ends() == [("reply-of-r1", "completed")]
    assert WINDOW * 0.6 < max(play.sizes) <= WINDOW
    assert sum(isinstance(entry, e.ContextCompressed) for entry in play.journal.log) < LOOKS / 5


def test_a_report_that_can_not_be_believed_leaves_the_last_one_that_could() -> None:
    play = reported(lambda number, true: Usage(input_tokens=true * 3 // 2 if number < 3 else 9))

    heard = play.journal.context.heard

    assert (heard.estimated, heard.reported) == (play.sizes[2], play.sizes[2] * 3 // 2)
    assert tokens(play.journal) > play.journal.provided.fixed_tokens + play.journal.context.tokens
