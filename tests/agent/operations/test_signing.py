"""Signed decisions: what counts, and what is refused while the call goes on waiting."""

from typing import Any

import pytest

from longhaul.agent.entries import CallUnsettled
from longhaul.agent.operations.approval_operations import BadKey, Key, keys_of, signed, why_not
from longhaul.agent.operations.bodies import Confirm
from longhaul.agent.reducer.approval_digest import seen_digest
from longhaul.agent.steps import Idle, Park, Step
from longhaul.agent.values.permission import Behavior, PermissionRule, Scope
from longhaul.agent.values.spec.agent_spec import AgentSpec
from tests.agent.play import NOON, SPEC, Play, calls, site, text

ANA, BEN = keys_of("ana:harvest-moon-over-water, ben:nine-lanterns-in-a-row")
ALLOWS_PAINT = (PermissionRule(tool_name="Paint", scope=Scope.USER),)
FORGED = Key("ana", b"somebody else's secret")


def sealed(**permission: Any) -> AgentSpec:
    given = {"approvals": "signed", **permission}
    return SPEC.model_validate({"name": "mason", "model": "scripted:wall", "permission": given})


def painting(spec: AgentSpec | None = None, **more: Any) -> Play:
    """A session that waits for a decision on `a`, and takes signed ones only."""
    play = Play([calls("a Paint"), text("Painted.")], spec=spec or sealed(), keys=(ANA, BEN), **more)
    play.say("Paint it")
    play.run()
    return play


def body_of(play: Play, approver: str = "ana", word: str = "allow", **more: Any) -> dict[str, Any]:
    assert play.journal.reply is not None
    digest = seen_digest(play.journal.reply.calls["a"], play.journal)
    decision = {"call_id": "a", "decision": word, "digest": digest, **more}
    return {"reply_id": play.journal.reply.reply_id, "decisions": [decision], "approver": approver}


def sign(body: dict[str, Any], key: Key = ANA, workflow_id: str = "wall-7") -> dict[str, Any]:
    return signed(Confirm.model_validate(body), key, workflow_id, NOON).model_dump(mode="json", exclude_defaults=True)


def waits(play: Play) -> bool:
    return play.run() == Park("person") and play.results() == []


def last_refusal(play: Play) -> str:
    return play.journal.refused.newest[-1].reason


def test_a_signed_decision_counts_when_it_has_been_checked() -> None:
    play = painting()

    answer = play.tell("confirm", sign(body_of(play, reason="it is grey")))

    assert isinstance(answer, dict)
    assert answer["checking"] == ["a"]
    assert play.results() == []
    assert play.run() == Idle()
    assert play.results() == [("a", "success", "done")]
    assert play.journal.unverified.resolved == {answer["decisions_at"]: ""}
    (made,) = play.journal.state.decisions
    assert (made.approver, made.key, made.reason) == ("ana", "ana", "it is grey")


def test_what_is_not_signed_is_refused_at_once() -> None:
    play = painting()
    block = {"id": "a", "name": "Paint", "input": "{}"}
    seeds = {"reply_id": "reply-of-r1", "confirm_results": [{"confirmed": True, "tool_call": block}]}

    assert "the one on 'a' has no signature" in str(play.tell("confirm", body_of(play)))
    assert "the one on 'a' has no signature" in str(play.deny("a"))
    assert "this event has no signature" in str(play.tell("confirm", seeds))
    assert waits(play)


@pytest.mark.parametrize(
    "tampered",
    [
        {"approver": "ben"},
        {"input": '{"colour": "red"}'},
        {"reason": "another"},
        {"decision": "deny"},
        {"rules": True},
        {"signature": "ana:1:" + "A" * 43},
        {"signature": "nonsense"},
        {"signature": "eve:1:" + "A" * 43},
    ],
)
def test_a_signature_is_of_the_whole_decision(tampered: dict[str, Any]) -> None:
    play = painting()
    body = sign(body_of(play))
    for name, value in tampered.items():
        (body if name == "approver" else body["decisions"][0])[name] = value

    play.tell("confirm", body)

    assert waits(play)
    assert "sign" in last_refusal(play)
    assert play.journal.state.decisions == ()


@pytest.mark.parametrize(("key", "session"), [(FORGED, "wall-7"), (ANA, "wall-8")])
def test_another_key_or_another_session_signs_nothing_here(key: Key, session: str) -> None:
    play = painting()

    play.tell("confirm", sign(body_of(play), key, session))

    assert waits(play)
    assert "not of this decision, in this session, on this question" in last_refusal(play)


def test_a_signature_of_an_older_question_is_refused() -> None:
    moved = [CallUnsettled(call_id="a", analysis=site(f"/site/{name}"), reason="it moved") for name in ("b", "a")]
    play = painting(analysis={"a": [site("/site/a")]}, outcomes={"a": [*moved]})
    first = sign(body_of(play))
    play.tell("confirm", first)
    play.run()
    play.tell("confirm", sign(body_of(play)))
    assert play.run() == Park("person")

    refusal = play.tell("confirm", first)

    assert "(it was asked about again)" in str(refusal)
    assert waits(play)


def test_the_same_operation_twice_decides_once() -> None:
    play = painting()
    body = sign(body_of(play))
    play.tell("confirm", body)
    play.tell("confirm", body)

    assert play.run() == Idle()

    assert len(play.journal.state.decisions) == 1
    assert play.results() == [("a", "success", "done")]


def test_an_interrupt_wins_over_what_is_not_checked_yet() -> None:
    play = painting()
    answer = play.tell("confirm", sign(body_of(play)))
    play.tell("interrupt")

    assert play.run() == Idle()

    assert isinstance(answer, dict)
    assert [state for _, state, _ in play.results()] == ["interrupted"]
    assert play.journal.unverified.resolved == {answer["decisions_at"]: "the reply had ended before it was checked"}


def test_a_continue_as_new_keeps_what_waits_to_be_checked() -> None:
    play = painting(keeps=True)
    play.tell("confirm", sign(body_of(play)))
    play.continue_as_new()

    assert play.run() == Idle()
    assert play.results() == [("a", "success", "done")]


def test_two_people_need_two_keys() -> None:
    play = painting(sealed(tools={"Paint": {"approvers": 2}}))
    play.tell("confirm", sign(body_of(play)))
    assert waits(play)

    play.tell("confirm", sign(body_of(play, "ben")))
    assert waits(play), "one key is one person, whatever name it signs under"
    play.tell("confirm", sign(body_of(play, "ben"), BEN))

    assert play.run() == Idle()


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("configure", {"mode": "bypass"}),
        ("configure", {"rules": [{"tool_name": "Paint"}]}),
        ("rules", {"add": [{"tool_name": "Paint"}]}),
        ("rules", {"revoke": ["x"]}),
        ("configure", {"middlewares": []}),
        ("configure", {"analyzers": []}),
    ],
)
def test_nothing_unsigned_loosens_what_needs_a_signature(name: str, body: dict[str, Any]) -> None:
    play = painting()

    assert "decisions must be signed" in str(play.tell(name, body))
    assert waits(play)


@pytest.mark.parametrize(
    "loosened",
    [
        {"permission_context": {"mode": "bypass"}},
        {"permission_context": {"approvals": "signed", "allow_rules": {"Paint": [{}]}}},
        {"permission_context": {"mode": "bypass", "working_directories": {"/tmp": {"path": "/tmp"}}}},
        {"plan_mode_context": {"active": True, "file": "Makefile"}},
        {"tainted": "read a page"},
    ],
)
def test_a_state_can_not_be_replaced_by_one_that_needs_no_signature(loosened: dict[str, Any]) -> None:
    play = Play([text("Hello.")], spec=sealed())
    play.say("Hi")
    play.run()
    state = play.journal.state.model_dump(mode="json")

    refusal = play.tell("replace_state", {"state": {**state, **loosened}})

    assert f"state.{next(iter(loosened))}: it stays as it is where decisions must be signed" in str(refusal)
    assert play.tell("replace_state", {"state": state}) == {"replaced": True, "messages": 2}


@pytest.mark.parametrize(("approvals", "ends"), [("signed", Park("person")), ("any", Idle())])
def test_an_allow_rule_of_the_user_needs_somebody_to_sign_it(approvals: str, ends: Step) -> None:
    """Whoever writes to the state store can add one."""
    play = Play([calls("a Paint"), text("Painted.")], spec=sealed(approvals=approvals))
    play.journal.rules.of_user = ALLOWS_PAINT
    play.say("Paint it")

    assert play.run() == ends


def test_a_deny_rule_of_the_user_counts_unsigned() -> None:
    never = (PermissionRule(tool_name="Paint", behavior=Behavior.DENY),)
    play = Play([calls("a Paint"), text("Not then.")], spec=sealed())
    play.journal.rules.of_user = (*ALLOWS_PAINT, *never)
    play.say("Paint it")

    assert play.run() == Idle()
    assert [state for _, state, _ in play.results()] == ["denied"]


def test_keys_rotate() -> None:
    play = painting()
    body = Confirm.model_validate(sign(body_of(play)))

    assert why_not(body, (BEN, ANA), "wall-7") == ("", "ana")
    assert why_not(body, (BEN,), "wall-7") == (
        "the decision on 'a' is signed with key 'ana', which this worker has not",
        "",
    )


@pytest.mark.parametrize(
    "setting",
    ["harvest-moon-over-water", "ana:short", "a b:harvest-moon-over-water", f"a:{'x' * 16},a:{'y' * 16}"],
)
def test_a_setting_of_keys_that_can_not_be_meant_so_is_refused_without_its_secret(setting: str) -> None:
    with pytest.raises(BadKey) as refusal:
        keys_of(setting)

    assert "harvest" not in str(refusal.value)


def test_twenty_signed_decisions_may_wait_to_be_checked() -> None:
    play = painting()

    answers = [play.tell("confirm", sign(body_of(play, reason=f"number {number}"))) for number in range(21)]

    assert all(isinstance(answer, dict) for answer in answers[:20])
    assert answers[20] == "20 signed decisions wait to be checked; send this one again in a moment"


def test_of_checked_decisions_the_fifty_newest_outcomes_are_kept() -> None:
    play = painting()

    for number in range(51):
        play.tell("confirm", sign(body_of(play, reason=f"number {number}"), FORGED))
        assert waits(play)

    assert len(play.journal.unverified.resolved) == 50
