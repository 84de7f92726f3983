"""What a server has a model asked counts to the session, and goes no further than its agent and its budget allow."""

from typing import Any

import pytest

from longhaul.agent import entries as e
from longhaul.agent.decisions.model_turn import room_for
from longhaul.agent.values.budget import Budget, Price, Tariff
from longhaul.agent.values.conversation.messages import (
    ServerAsked,
    ServerQuestion,
    ToolResultBlock,
    ToolResultState,
    Usage,
)
from longhaul.agent.values.spec.mcp import Sampled, Sampling
from tests.agent.play import SPEC, Play, calls, text

GUESS = "scripted:guess"
TAKEN = Sampled(model=GUESS, calls=2, usage=Usage(input_tokens=300, output_tokens=50))
RESULT = ToolResultBlock(id="a", name="Look", output="seven", state=ToolResultState.SUCCESS)
ASKED = ServerAsked(server="harbour", questions={"q": ServerQuestion(message="Which?")})


def played(*outcomes: Any, budget: Budget | None = None, **tariffs: Tariff) -> Play:
    spec = SPEC.model_copy(update={"budget": budget})
    known = {GUESS: Tariff(), SPEC.model: Tariff(), **tariffs}
    play = Play([calls("a Look"), text("Seven.")], spec=spec, outcomes={"a": list(outcomes)}, tariffs=known)
    play.say("Guess")
    play.run()
    return play


def test_what_a_server_has_asked_is_spent_by_the_session_and_its_reply() -> None:
    play = played(e.ToolReturned(result=RESULT, sampled=TAKEN), budget=Budget(max_tokens=10_000))

    spent = play.journal.spent
    assert play.journal.account is not None
    assert (spent.usage.input_tokens, spent.usage.output_tokens, spent.samples) == (320, 56, 2)
    assert (spent.by_model[GUESS].calls, spent.by_model[GUESS].usage) == (2, TAKEN.usage)
    held = play.journal.account.spending.held
    assert (held.tokens, held.calls) == (350 + 26, 4)


def test_what_it_had_asked_before_it_asks_a_person_counts_too() -> None:
    play = played(e.InputAsked(call_id="a", asked=ASKED, sampled=TAKEN), e.ToolReturned(result=RESULT, sampled=TAKEN))
    before = play.journal.spent.samples
    play.continue_as_new()
    play.tell("external_result", {"results": [{"id": "a", "output": "decline"}]})
    play.run()

    assert (before, play.journal.spent.samples) == (2, 4)
    assert play.journal.spent.usage.input_tokens == 20 + 600


@pytest.mark.parametrize(
    ("budget", "room"),
    [
        (None, (5, 2_000_000)),
        (Budget(max_tokens=1_000_000), (5, 1_000_000 - 26)),
        (Budget(max_calls=4), (2, 2_000_000)),
        (Budget(max_cost=100), (5, 999_920)),
        (Budget(max_seconds=60), (5, 2_000_000)),
    ],
)
def test_the_room_is_the_agents_and_what_the_budget_leaves(budget: Budget | None, room: tuple[int, int]) -> None:
    price = Tariff(price=Price(input=10, output=100))
    play = played(budget=budget, **{GUESS: price, SPEC.model: Tariff(price=Price(input=100, output=1_000))})

    found = room_for(play.journal, Sampling(model=GUESS, max_tokens=2_000_000), GUESS)

    assert found == room


def test_a_model_without_a_price_is_not_asked_where_money_is_counted() -> None:
    play = played(budget=Budget(max_cost=1.0), **{SPEC.model: Tariff(price=Price(input=1, output=1))})

    assert room_for(play.journal, Sampling(model=GUESS), GUESS) == (5, 0)
