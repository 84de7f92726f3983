"""Requests, messages and settings from outside, and what is refused of them."""

import json
from typing import Any

import pytest

from longhaul.agent import entries as e
from longhaul.agent.operations.all_operations import read
from longhaul.agent.operations.bodies import Unusable
from longhaul.agent.steps import Idle, TakeIn
from longhaul.agent.values.conversation.messages import ToolResultState, UserMsg
from longhaul.agent.values.permission import PermissionMode
from tests.agent.play import SPEC, Play, asking, calls, carried_over, spoken, text


def test_the_same_request_sent_again_gets_the_same_receipt_and_starts_nothing() -> None:
    play = Play([text("Done.")])
    play.say("First", "r0")
    first = play.say("Build", "r1")

    assert play.say("Build", "r1") == first == {"request_id": "r1", "reply_id": "reply-of-r1", "position": 1}
    assert len(play.journal.requests.queue) == 2


def test_a_request_that_is_done_gets_its_receipt_again() -> None:
    play = Play([text("Done.")])
    play.say("Build", "r1")
    play.run()

    assert play.say("Build", "r1") == {"request_id": "r1", "reply_id": "reply-of-r1", "position": 0}
    assert play.run() == Idle()
    assert len(play.ends()) == 1


def test_another_message_under_a_used_id_is_refused() -> None:
    play = Play()
    play.say("Build", "r1")

    assert play.say("Tear down", "r1") == "request_id 'r1' was used before for another message; take a new id"


def test_a_request_without_id_gets_a_fresh_one_each_time() -> None:
    play = Play()

    first, second = (play.tell("submit", {"messages": "Build"}) for _ in range(2))

    assert isinstance(first, dict)
    assert isinstance(second, dict)
    assert (first["request_id"], second["request_id"]) == ("fresh-1", "fresh-2")


def test_a_full_queue_refuses_more() -> None:
    play = Play()
    for number in range(500):
        play.say("Build", f"r{number}")

    assert play.say("One more", "last") == "500 requests wait already; send this one again when some are done"


def queued() -> Play:
    """A session that asks about a call while the largest queue waits."""
    play = Play([calls("a Paint"), text("Stopped."), text("Read.")], keeps=True)
    play.say("Paint", "r1")
    play.run()
    large = (UserMsg("user", "x" * 32_000_000),)
    play.write(e.RequestAccepted(request_id="large", reply_id="large", body_digest="d", messages=large))
    return play


def test_requests_that_wait_have_a_limit_in_bytes() -> None:
    play = queued()

    refusal = play.say("One more", "last")
    play.tell("interrupt", {"message": "Stop"})
    play.run()

    assert refusal == (
        "the requests that wait have 32000 kB, and from 32000 kB on none is added; send this one again when some are "
        "done, and put large content into files that you name"
    )
    assert [why for _, why in play.ends()] == ["interrupted", "completed", "completed"]
    assert isinstance(play.say("One more", "last"), dict)


def test_an_interrupt_of_another_reply_is_refused() -> None:
    play = asking("a Paint")

    assert play.tell("interrupt", {"reply_id": "old"}) == (
        "reply_id: 'old' is not the reply being made; that is 'reply-of-r1'"
    )


def test_a_second_interrupt_is_refused() -> None:
    play = asking("a Paint")
    play.tell("interrupt", {"reply_id": "reply-of-r1"})

    assert play.tell("interrupt") == "reply 'reply-of-r1' has been interrupted already"


def test_configure_changes_what_is_named_and_nothing_else() -> None:
    play = Play()

    play.tell("configure", {"mode": "bypass", "rules": [{"tool_name": "Paint"}], "by": "ana"})
    play.tell("configure", {"max_iters": 7})
    play.tell("configure", {"model": "scripted:other"})

    journal = play.journal
    assert journal.state.permission_context.mode is PermissionMode.BYPASS
    added = play.journal.state.permission_context.rules[-1]
    assert (added.tool_name, added.behavior.value, added.author) == ("Paint", "allow", "ana")
    assert (journal.spec.react_config.max_iters, journal.spec.model) == (7, "scripted:other")
    assert journal.spec.system_prompt == SPEC.system_prompt


@pytest.mark.proves("A8")
@pytest.mark.parametrize(
    "messages",
    [
        "It rains.",
        {"name": "user", "role": "user", "content": "It rains."},
        [{"name": "user", "role": "user", "content": [{"type": "text", "text": "It rains."}]}],
    ],
)
def test_messages_may_be_a_text_a_message_or_a_list(messages: object) -> None:
    play = Play()

    assert play.tell("observe", {"messages": messages}) == {"observed": 1}

    assert spoken(play.journal.state.context) == ["It rains."]


def test_what_only_the_record_may_say_is_dropped_from_a_message() -> None:
    play = Play()
    claimed = {
        "name": "eve",
        "role": "user",
        "content": "Hello",
        "id": "reply-of-r1",
        "created_at": "1999-01-01T00:00:00",
        "usage": {"input_tokens": 10**6},
        "finished_reason": "error",
        "structured_output": {"a": 1},
        "metadata": {"mood": "good"},
    }

    play.tell("observe", {"messages": claimed})

    (message,) = play.journal.state.context
    assert message.model_dump(mode="json") == {
        "name": "eve",
        "role": "user",
        "content": [{"type": "text", "text": "Hello"}],
        "id": "m2.0",
        "created_at": "2025-11-25T12:00:00.001+00:00",
        "metadata": {"mood": "good"},
    }


def test_a_body_that_nests_too_deeply_to_be_carried_is_refused() -> None:
    play = Play()
    deep: dict[str, Any] = {}
    for _ in range(5_000):
        deep = {"in": [deep]}

    answer = play.tell("observe", {"messages": {"name": "eve", "role": "user", "content": "x", "metadata": deep}})

    assert answer == "observe: the body nests deeper than 50 levels; send a flatter JSON object"


def test_a_body_that_nests_as_deeply_as_allowed_can_be_carried() -> None:
    play = Play()
    deep: dict[str, Any] = {}
    for _ in range(46):
        deep = {"in": deep}

    answer = play.tell("observe", {"messages": {"name": "eve", "role": "user", "content": "x", "metadata": deep}})

    assert answer == {"observed": 1}
    play.continue_as_new()
    assert play.journal.state.context[0].metadata == deep


def test_a_refusal_is_cut_so_that_malformed_input_cannot_fill_a_session() -> None:
    play = asking("a Paint")

    answer = play.allow("x" * 1_000_000)

    assert isinstance(answer, str)
    assert len(answer) == 500
    assert answer.endswith("xxx…")


def test_refusals_of_the_largest_kind_leave_the_session_light_enough_to_carry() -> None:
    play = Play()
    for number in range(120):
        play.tell("confirm" if number else "\U0001f9f1" * 200, {"decisions": "\U0001f9f1" * 100_000})

    left = carried_over(play.journal, all_of_it=True)

    assert len(left.model_dump_json().encode()) < 250_000


@pytest.mark.proves("A8")
@pytest.mark.parametrize("value", [None, 1, 2.5, "x", [], [[]], True])
@pytest.mark.parametrize("name", ["submit", "confirm", "external_result", "interrupt", "observe", "configure", ""])
def test_no_value_in_place_of_a_body_does_more_than_raise_unusable(name: str, value: object) -> None:
    try:
        read(name, [value])
    except Unusable as refusal:
        assert str(refusal)  # noqa: PT017  some are taken: submit(None) and interrupt(None)
    else:
        assert (name, value) in [("submit", None), ("interrupt", None)]


def test_arguments_given_as_an_object_become_json_text() -> None:
    _, body = read("confirm", [{"decisions": [{"call_id": "a", "decision": "allow", "input": {"where": "süd"}}]}])

    assert json.loads(body.model_dump()["decisions"][0]["input"]) == {"where": "süd"}


def test_an_outside_error_is_an_error_to_the_model() -> None:
    play = asking("a Order")

    play.tell("external_result", {"results": [{"id": "a", "output": "sold out", "state": "error"}], "by": "shop"})

    assert play.journal.state.context[-1].get_tool_results()[0].state is ToolResultState.ERROR


def test_a_long_result_from_outside_is_looked_at_by_a_worker_before_it_is_taken_in() -> None:
    play = Play([calls("o Order"), text("Thanks.")])
    play.say("Order bricks")
    play.run()

    answer = play.tell("external_result", {"results": [{"id": "o", "output": "brick " * 2_000}]})
    again = play.tell("external_result", {"results": [{"id": "o", "output": "more"}]})
    step = play.begin()
    play.complete()
    play.run()

    assert answer == {"received": ["o"]}
    assert "waits for nothing of the kind" in str(again)
    assert step == TakeIn("o")
    assert [result[0] for result in play.results()] == ["o"]
    assert play.ends() == [("reply-of-r1", "completed")]


def test_a_request_for_an_idle_session_alone_is_left_out_while_something_is_at_work() -> None:
    play = Play([calls("a Paint"), text("Painted.")])
    operation = {"messages": "Build", "request_id": "r2", "unless_busy": True}
    play.say("Paint", "r1")
    queued = play.tell("submit", operation)
    play.run()
    waiting = play.tell("submit", operation)
    before = len(play.kinds())
    play.allow("a")
    play.run()

    taken = play.tell("submit", operation)

    assert queued == waiting == {"request_id": "r2", "busy": True}
    assert before == len(play.kinds()[:before])
    assert taken == {"request_id": "r2", "reply_id": "reply-of-r2", "position": 0}
    assert play.tell("submit", operation) == taken
    assert "refused" not in play.kinds()
