"""What OpenAI's Responses API wants back: a message's phase, and reasoning that its server has encrypted."""

import json
from typing import Any

import pytest

from longhaul.agent.values.conversation.messages import Msg, ThinkingBlock, UserMsg
from tests.activities.models.loops import assert_each_goes_on_where_the_last_one_ended, step
from tests.activities.models.sample_requests import Caller
from tests.activities.models.wire import Answer, Wire, events, response_event, response_says, response_turn

GO: list[Msg] = [UserMsg("user", "How is the weather?")]


def spoken(phase: str | None, *, added: bool, call_id: str = "") -> Answer:
    """Words of that phase, which is told when they begin or only when they are whole, and a call."""
    item: dict[str, Any] = {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "in_progress",
        "content": [],
    }
    done = {**item, "status": "completed", "content": [{"type": "output_text", "text": "I look.", "annotations": []}]}
    told = {} if phase is None else {"phase": phase}
    call = {"type": "function_call", "id": "fc_1", "call_id": call_id, "name": "weather", "arguments": "{}"}
    calls = [{"type": "response.output_item.done", "output_index": 1, "item": call, "sequence_number": 4}]
    return Answer(
        events(
            {
                "type": "response.output_item.added",
                "output_index": 0,
                "item": {**item, **(told if added else {})},
                "sequence_number": 2,
            },
            {
                "type": "response.output_item.done",
                "output_index": 0,
                "item": {**done, **({} if added else told)},
                "sequence_number": 3,
            },
            *(calls if call_id else []),
            response_event("response.completed", status="completed"),
        )
    )


@pytest.mark.proves("F6")
@pytest.mark.parametrize("added", [True, False])
async def test_the_phase_of_each_message_goes_back_with_it(by_wire: Caller, wire: Wire, added: bool) -> None:
    phases = ("commentary", None, "commentary", "final_answer")
    wire.answers = [spoken(phase, added=added, call_id=f"c{n}") for n, phase in enumerate(phases[:3])]
    wire.answers += [spoken(phases[3], added=added), Answer(response_says("ok"))]
    messages = GO
    for number in range(5):
        messages = await step(by_wire, "openai:gpt-5.5", messages)
        messages += [UserMsg("user", "And now?")] if number == 3 else []

    said = [item for item in wire.bodies[-1]["input"] if item.get("role") == "assistant"]
    assert [item.get("phase") for item in said] == list(phases)
    assert_each_goes_on_where_the_last_one_ended(wire.bodies)


async def test_an_unknown_phase_is_not_kept(by_wire: Caller, wire: Wire) -> None:
    wire.answers = [spoken("overture", added=False, call_id="c1"), Answer(response_says("ok"))]

    await step(by_wire, "openai:gpt-5.5", await step(by_wire, "openai:gpt-5.5", GO))

    assert "overture" not in json.dumps(wire.bodies[1])


DEPLOYMENT = "openai:our-own-deployment"
INCLUDED = ["reasoning.encrypted_content"]


async def test_reasoning_of_a_deployment_with_a_name_of_its_own_goes_back(by_wire: Caller, wire: Wire) -> None:
    """Azure's deployments are called as their owner likes."""
    calls = [("c1", "weather", {"city": "Oslo"}), ("c2", "weather", {"city": "Bergen"}), None]
    wire.answers = [Answer(response_turn(f"gAAA{number}", "Rain.", call)) for number, call in enumerate(calls)]
    messages = GO
    for _ in range(3):
        messages = await step(by_wire, DEPLOYMENT, messages)

    assert [body["include"] for body in wire.bodies] == [INCLUDED] * 3
    sent = [item["encrypted_content"] for item in wire.bodies[2]["input"] if item.get("type") == "reasoning"]
    assert sent == ["gAAA0", "gAAA1"]
    assert_each_goes_on_where_the_last_one_ended(wire.bodies)


REFUSALS = {
    "Azure": (
        400,
        {"message": "Encrypted content is not supported with this model.", "param": "include", "code": None},
    ),
    "a proxy": (
        400,
        {"message": "OpenAIException - Encrypted content is not supported with this model.", "code": "400"},
    ),
    "a server that knows no such field": (422, {"message": "Unknown field 'include'", "code": "unknown"}),
}


@pytest.mark.parametrize("server", REFUSALS)
async def test_a_server_that_gives_none_out_is_asked_without_from_then_on(
    by_wire: Caller, wire: Wire, server: str
) -> None:
    status, error = REFUSALS[server]
    refusal = Answer(json.dumps({"error": error}).encode(), status, {"content-type": "application/json"})
    wire.answers = [refusal, Answer(response_says("One")), Answer(response_says("Two")), Answer(response_says("Three"))]

    first = await by_wire.call(DEPLOYMENT, "Hi")
    second = await by_wire.call(DEPLOYMENT, "Hi")
    await by_wire.call("openai:another-deployment", "Hi")

    assert [body.get("include") for body in wire.bodies] == [INCLUDED, None, None, INCLUDED]
    assert [note[:36] for note in first.notes] == ["The provider has refused 'encrypted'"]
    assert second.notes == ()


async def test_another_refusal_is_no_reason_to_ask_again(by_wire: Caller, wire: Wire) -> None:
    error = {"error": {"message": "The request must include a user message.", "code": "invalid"}}
    wire.answers = [Answer(json.dumps(error).encode(), 400, {"content-type": "application/json"})]

    with pytest.raises(Exception, match="user message"):
        await by_wire.call(DEPLOYMENT, "Hi")

    assert len(wire.bodies) == 1


@pytest.mark.parametrize("model", ["gpt-4.1", "gpt-4o", "gpt-5-chat-latest"])
async def test_a_model_that_is_known_not_to_reason_is_not_asked(by_wire: Caller, wire: Wire, model: str) -> None:
    wire.answers = [Answer(response_says("ok"))]

    await by_wire.call(f"openai:{model}", "Hi")

    assert "include" not in wire.bodies[0]


UNVERIFIED = {
    "message": "Your organization must be verified to generate reasoning summaries. Please go to: "
    "https://platform.openai.com/settings/organization/general and click on Verify Organization.",
    "type": "invalid_request_error",
    "param": "reasoning.summary",
    "code": "unsupported_value",
}
"""github.com/OpenHands/software-agent-sdk/issues/987, 2026-11-24."""


@pytest.mark.proves("F6")
async def test_what_a_model_thinks_is_asked_for_in_summary_and_shown(by_wire: Caller, wire: Wire) -> None:
    wire.answers = [Answer(response_turn("gAAA", "Rain.", None, summary=["Clouds.", "So rain."]))]

    reply = await by_wire.call("openai:gpt-5.1", "Hi", reasoning_effort="low")

    assert wire.bodies[0]["reasoning"] == {"effort": "low", "summary": "auto"}
    assert [block.thinking for block in reply.content if isinstance(block, ThinkingBlock)] == ["Clouds.\n\nSo rain."]


async def test_an_organisation_that_is_not_verified_is_asked_without_from_then_on(by_wire: Caller, wire: Wire) -> None:
    refusal = Answer(json.dumps({"error": UNVERIFIED}).encode(), 400, {"content-type": "application/json"})
    wire.answers = [refusal, Answer(response_says("One")), Answer(response_says("Two"))]

    first = await by_wire.call("openai:gpt-5.1", "Hi")
    second = await by_wire.call("openai:gpt-5.1", "Hi")

    assert [body.get("reasoning") for body in wire.bodies] == [{"summary": "auto"}, None, None]
    assert [body["include"] for body in wire.bodies] == [INCLUDED] * 3
    assert [note[:34] for note in first.notes] == ["The provider has refused 'summary' "[:34]]
    assert second.notes == ()


@pytest.mark.parametrize(("model", "effort"), [("gpt-4.1", None), ("our-own-deployment", "low"), ("gpt-5.1", "none")])
async def test_no_summary_is_asked_of_what_does_not_reason(
    by_wire: Caller, wire: Wire, model: str, effort: str | None
) -> None:
    wire.answers = [Answer(response_says("ok"))]

    await by_wire.call(f"openai:{model}", "Hi", reasoning_effort=effort)

    assert "summary" not in wire.bodies[0].get("reasoning", {})
