"""What each model has used up: all of it, under few names, and in money where a price is known."""

from longhaul.agent.incarnation.continued_state import Carried
from longhaul.agent.reducer.budget_state import OTHERS
from longhaul.agent.steps import Idle
from longhaul.agent.values.budget import Budget, ModelSpent, Price, Tariff
from longhaul.agent.values.conversation.messages import StopReason, Usage
from longhaul.agent.values.spec.agent_spec import AgentSpec, ModelConfig
from longhaul.workflows import views
from tests.agent.play import SPEC, Line, Play, Stopped, calls, spec_with, text

WITH_SPARE = SPEC.model_copy(update={"llm_config": ModelConfig(fallback_model="scripted:spare")})


def told(*lines: Line, spec: AgentSpec = SPEC) -> Play:
    play = Play(lines, spec=spec)
    play.say("Tell me all")
    assert play.run() == Idle()
    return play


def test_what_each_model_used_adds_up_to_what_the_session_did() -> None:
    play = told(Stopped(text("No."), StopReason.REFUSED), calls("a Look"), text("Yes."), spec=WITH_SPARE)
    by_model = views.status(play.journal).by_model

    assert {name: one.calls for name, one in by_model.items()} == {"scripted:wall": 1, "scripted:spare": 2}
    assert sum((one.usage for one in by_model.values()), Usage()) == play.journal.spent.usage
    assert play.journal.spent.usage.input_tokens > 0
    assert {one.nanos for one in by_model.values()} == {0}


def test_money_is_counted_by_the_prices_that_were_known_when_it_was_spent() -> None:
    tariffs = {SPEC.model: Tariff(output_tokens=100, price=Price(input=1_000, output=3_000))}
    spec = SPEC.model_copy(update={"budget": Budget(max_cost=9_000)})
    play = Play((calls("a Look"), text("Yes.")), spec=spec, tariffs=tariffs)
    play.say("Tell me all")
    play.run()
    (spent,) = play.journal.spent.by_model.values()
    account = play.journal.account

    assert account is not None
    assert spent.nanos == account.spending.spent.nanos > 0
    assert spent.nanos == round(Price(input=1_000, output=3_000).of(spent.usage) * 1_000_000_000)


def test_a_twin_and_what_is_carried_keep_their_own_counts() -> None:
    play = told(text("Yes."))
    twin = play.journal.twin()
    carried = Carried(session=twin).model_dump_json()
    play.say("And again", "r2")
    play.run()

    assert (twin.spent.by_model["scripted:wall"].calls, play.journal.spent.by_model["scripted:wall"].calls) == (1, 2)
    assert Carried.model_validate_json(carried).session.spent.by_model == twin.spent.by_model
    assert "by_model" not in Carried(session=Play((), spec=SPEC).journal.twin()).model_dump_json()


def test_names_that_a_provider_makes_up_do_not_fill_the_session() -> None:
    play = told(*(calls(f"c{number} Look") for number in range(3)), text("Yes."), spec=spec_with(max_iters=9))
    known = {f"made-up-{number}": ModelSpent() for number in range(50)}
    play.journal.spent.by_model = known
    play.say("And again", "r2")
    play.run()

    assert set(play.journal.spent.by_model) == {*known, OTHERS}


def test_of_a_models_name_two_hundred_characters_are_kept() -> None:
    long = AgentSpec(name="mason", model="scripted:" + "w" * 300)

    assert [len(name) for name in told(text("Yes."), spec=long).journal.spent.by_model] == [200]
