"""What a model's API can't express is recorded once in a session, for each model."""

from longhaul.agent import entries as e
from longhaul.agent.decisions.model_turn import with_new_adjustments
from longhaul.agent.values.conversation.messages import AssistantMsg
from longhaul.agent.views.events import EventReducer
from tests.agent.play import Play, text

SEED, EFFORT = "The seed was left out.", "The effort was left out."


def said(model: str, *adjusted: str) -> e.ModelSaid:
    return e.ModelSaid(message=AssistantMsg("mason", "Aye."), model=model, adjusted=adjusted)


def write(play: Play, model: str, *adjusted: str) -> tuple[str, ...]:
    """What is recorded of these."""
    new = with_new_adjustments(said(model, *adjusted), play.journal)
    play.write(new)
    return new.adjusted


def started() -> Play:
    play = Play([text("Well.")])
    play.say("Go")
    while play.journal.reply is None:
        play.begin()
        play.complete() if play.asked else None
    play.asked = None
    return play


def test_the_same_of_the_same_model_is_recorded_once() -> None:
    play = started()

    told = [write(play, model, *notes) for model, notes in (
        ("gull", (SEED, SEED)), ("gull", (SEED, EFFORT)), ("tern", (SEED,)), ("gull", (EFFORT, SEED)), ("tern", ())
    )]  # fmt: skip

    assert told == [(SEED,), (EFFORT,), (SEED,), (), ()]
    events = EventReducer().catch_up(play.journal.log)
    assert [(event.model_name, event.value["adjusted"]) for event in events if event.name == "request_adjusted"] == [
        ("gull", [SEED]),
        ("gull", [EFFORT]),
        ("tern", [SEED]),
    ]


def test_an_endless_list_is_forgotten_from_its_beginning() -> None:
    play = started()
    for number in range(201):
        write(play, "gull", f"The field {number} was left out.")

    assert len(play.journal.context.adjusted) == 200
    assert write(play, "gull", "The field 1 was left out.", "The field 0 was left out.") == (
        "The field 0 was left out.",
    )
