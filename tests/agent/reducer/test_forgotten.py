"""Call ids of long ago: what is kept of them stays small, and none is ever used twice."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longhaul.agent import entries as e
from longhaul.agent.decisions.call_rulings import with_own_call_ids
from longhaul.agent.incarnation.continued_state import Carried, carry
from longhaul.agent.journal import Journal
from longhaul.agent.reducer.session_state import Forgotten, forget, was_there
from longhaul.agent.values.conversation.messages import AssistantMsg, ToolCallBlock
from longhaul.agent.views.event_types import EventsSoFar
from tests.agent.play import SPEC

OPENED = e.SessionOpened(seq=1, session_id="s", spec=SPEC)


def ids(first: int, last: int) -> dict[str, str]:
    return {f"toolu_{number:024}": "fetch" for number in range(first, last)}


def continued_as_new(journal: Journal) -> Journal:
    """As the next run begins, through JSON."""
    carried = carry(journal, EventsSoFar(), journal.seq, journal.messages_total)
    return Journal.over(Carried.model_validate_json(carried.model_dump_json()).session)


@given(st.lists(st.text(st.characters(exclude_categories=()), max_size=30), unique=True, max_size=400))
def test_no_id_that_was_used_is_taken_for_a_new_one(used: list[str]) -> None:
    names, forgotten = forget(dict.fromkeys(used, "fetch"), (), {})

    assert all(call_id in names or was_there(forgotten, call_id) for call_id in used)
    assert list(names) == used[-200:]


def test_few_new_ids_are_taken_for_used_ones() -> None:
    _, forgotten = forget(ids(0, 8_200), (), {})

    wrong = sum(was_there(forgotten, call_id) for call_id in ids(50_000, 60_000))

    assert [filled.calls for filled in forgotten] == [8_000]
    assert 0 < wrong < 50


def test_what_is_carried_does_not_grow_with_each_call() -> None:
    journal = Journal.of([OPENED])
    sizes = []
    for run in range(40):
        journal.calls.names |= ids(run * 200, (run + 1) * 200)
        journal = continued_as_new(journal)
        sizes.append(len(Carried(session=journal).model_dump_json()))

    assert max(sizes[2:]) - sizes[2] < 100
    assert all(journal.had_call(call_id) for call_id in ids(0, 40 * 200))


def test_a_model_that_uses_an_id_of_long_ago_again_gets_another_one() -> None:
    journal = Journal.of([OPENED])
    journal.calls.names |= ids(0, 300)
    journal = continued_as_new(journal)
    again, new = "toolu_" + "0" * 23 + "7", "toolu_new"
    message = AssistantMsg("lamp", [ToolCallBlock(id=call_id, name="fetch", input="{}") for call_id in (again, new)])

    own = with_own_call_ids(e.ModelSaid(message=message), journal)

    assert again not in journal.calls.names
    assert [block.id for block in own.message.get_tool_calls()] == [f"{again}-2-0", new]


@pytest.mark.parametrize("forgotten", [(), (Forgotten(0, "A" * 21_848),)])
def test_an_open_call_keeps_its_name(forgotten: tuple[Forgotten, ...]) -> None:
    names, _ = forget(ids(0, 1_000), forgotten, {f"toolu_{3:024}": None})

    assert next(iter(names)) == f"toolu_{3:024}"
    assert len(names) == 201
