"""The rules of a hub: numbers, operations that come twice, members that come and go while words are under way."""

import pytest

from longhaul.agent.hub_membership import (
    AwaitHeard,
    End,
    HubState,
    JoinHub,
    LeaveHub,
    Member,
    NewMember,
    Say,
    Switch,
    behind,
    delivered,
    due,
    member_said,
    read,
    received,
)
from longhaul.agent.operations.bodies import Unusable
from longhaul.agent.operations.peer_operations import HubSays
from longhaul.agent.plain.values import Value
from longhaul.agent.values.conversation.messages import UserMsg
from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.agent.views.session_views import MemberSaid

LIFE = "life-1"


def new(*names: str) -> JoinHub:
    members = [
        NewMember(name=name, session_id=f"s-{name}", workflow_id=f"w-{name}", spec=AgentSpec(name="lamp"))
        for name in names
    ]
    return JoinHub(members=tuple(members))


def after(hub: HubState, *bodies: Value) -> HubState:
    for body in bodies:
        hub, _ = received(hub, body)
    return hub


def says(hub: HubState, name: str, text: str, reply: str = "") -> HubState:
    said = MemberSaid(workflow_id=f"w-{name}", incarnation=LIFE, reply_id=reply or text, text=text)
    return member_said(hub, said, LIFE)


def operation(hub: HubState, name: str) -> HubSays | None:
    return due(hub, member(hub, name), LIFE, "hub-1")


def member(hub: HubState, name: str) -> Member:
    return next(one for one in hub.members if one.name == name)


def told(hub: HubState, name: str) -> tuple[HubState, list[str]]:
    """Deliver all that the member is to hear; the texts, and `in` and `out` for the ends of its stay."""
    texts = list[str]()
    while any(one.name == name for one in hub.members) and (next_one := operation(hub, name)) is not None:
        texts += ["in"] if member(hub, name).heard < member(hub, name).joined else []
        texts += [word.message.get_text_content() for word in next_one.words] + (["out"] if next_one.left else [])
        hub = delivered(hub, name, next_one)
    return hub, texts


def test_everybody_hears_all_others_in_the_order_of_the_hub_and_nobody_himself() -> None:
    hub = after(HubState(name="jury"), new("ana", "ben", "cleo"))

    for name, text in (("ana", "a"), ("ben", "b"), ("cleo", "c"), ("ana", "d")):
        hub = says(hub, name, text)

    for name, words in (("ana", "bc"), ("ben", "acd"), ("cleo", "abd")):
        hub, texts = told(hub, name)
        assert texts == ["in", *words]
    assert hub.words == ()


def test_a_reply_that_is_told_twice_and_words_of_strangers_change_nothing() -> None:
    hub = says(after(HubState(name="jury"), new("ana", "ben")), "ana", "once")
    stranger = MemberSaid(workflow_id="w-zoe", incarnation=LIFE, reply_id="r", text="let me in")
    old = MemberSaid(workflow_id="w-ana", incarnation="life-0", reply_id="r", text="from before")

    assert says(hub, "ana", "once") == hub
    assert member_said(hub, stranger, LIFE) == hub
    assert member_said(hub, old, LIFE) == hub


def test_who_comes_hears_nothing_from_before_and_who_goes_nothing_from_after() -> None:
    hub = says(after(HubState(name="jury"), new("ana", "ben")), "ana", "one")
    hub = says(after(hub, new("cleo")), "ana", "two")
    hub = says(after(hub, LeaveHub(members=("ben",))), "ana", "three")

    hub, of_ben = told(hub, "ben")
    hub, of_cleo = told(hub, "cleo")

    assert of_ben == ["in", "one", "two", "out"]
    assert of_cleo == ["in", "two", "three"]
    assert [one.name for one in hub.members] == ["ana", "cleo"]


def test_an_operation_that_was_under_way_when_its_member_was_put_out_says_nothing_of_the_next_of_that_name() -> None:
    hub = says(after(HubState(name="jury"), new("ana", "ben")), "ana", "old")
    stale = operation(hub, "ben")
    assert stale is not None
    gone = member(hub, "ben")
    hub = after(hub.model_copy(update={"members": (member(hub, "ana"),)}), new("ben"))

    hub = delivered(hub, "ben", stale)

    assert member(hub, "ben").joined > gone.joined
    assert told(hub, "ben")[1] == ["in"]


def test_what_is_answered_while_the_switch_is_off_is_never_told_and_yet_known() -> None:
    hub = says(after(HubState(name="jury"), new("ana", "ben"), Switch(on=False)), "ana", "quiet")
    hub = says(says(after(hub, Switch(on=True)), "ana", "loud"), "ana", "", reply="r-silent")

    hub, _ = told(hub, "ana")

    assert behind(hub, AwaitHeard(reply_id="never")) is None
    assert behind(hub, AwaitHeard(reply_id="loud")) == ["ben"]
    assert told(hub, "ben")[1] == ["in", "loud"]
    assert (hub.replies["quiet"], hub.replies["r-silent"]) == (0, 0)


def test_the_same_request_counts_once_and_another_one_of_its_id_is_refused() -> None:
    hub = after(HubState(name="jury"), new("ana", "ben"))
    first = after(hub, Say(messages=(UserMsg("Host", "Who?"),), request_id="r"))

    assert after(first, Say(messages=(UserMsg("Host", "Who?"),), request_id="r")) == first
    with pytest.raises(Unusable, match="request_id 'r' was used before for another message; take a new id"):
        after(first, Say(messages=(UserMsg("Host", "Why?"),), request_id="r"))
    older = first.model_copy(update={"digests": {}})
    assert after(older, Say(messages=(UserMsg("Host", "Why?"),), request_id="r")) == older


def test_long_words_go_in_several_operations_and_whoever_leaves_hears_them_all_first() -> None:
    hub = after(HubState(name="jury"), new("ana", "ben"))
    texts = [str(number) * (200_000 // 3) for number in range(5)]
    for number, text in enumerate(texts):
        hub = after(hub, Say(messages=(UserMsg("Host", text),), request_id=f"r{number}"))
    hub = after(hub, LeaveHub(members=("ben",)))

    first = operation(hub, "ben")
    hub, heard = told(hub, "ben")

    assert first is not None
    assert 0 < len(first.words) < 5
    assert not first.left
    assert heard == ["in", *texts, "out"]


def test_a_member_that_takes_nothing_is_put_out_before_the_hub_grows_without_end() -> None:
    hub, _ = told(after(HubState(name="jury"), new("ana", "ben", "cleo")), "ana")
    for number in range(1_001):
        hub = says(hub, "ana", f"word {number}")
        hub, _ = told(hub, "cleo")

    assert [one.name for one in hub.members] == ["ana", "cleo"]
    assert "words wait for it, and its session takes none" in hub.notes[0]
    assert hub.words == ()


def test_the_end_lets_all_members_go_and_takes_nothing_more() -> None:
    hub = after(HubState(name="jury"), new("ana", "ben"), End())

    for name in ("ana", "ben"):
        hub, texts = told(hub, name)
        assert texts == ["in", "out"]
    assert hub.members == ()
    with pytest.raises(Unusable, match="has ended; start it again"):
        received(hub, new("cleo"))


@pytest.mark.parametrize(
    ("name", "body", "sentence"),
    [
        ("shout", {}, "a hub has no update 'shout'; there are: join, leave, say"),
        ("say", {"messages": "", "request_id": "r"}, "say: messages: "),
        ("say", {"messages": {"name": "x", "role": "system", "content": "y"}, "request_id": "r"}, "role 'system'"),
        ("join", {"members": [{"name": "a b", "session_id": "s", "workflow_id": "w", "spec": {}}]}, "it takes 1 to 64"),
        ("join", {"members": []}, "join: members: "),
        ("heard", {"number": -1}, "heard: number: "),
        ("auto_broadcast", {"on": {}}, "auto_broadcast: on: "),
    ],
)
def test_bad_bodies_get_a_sentence(name: str, body: object, sentence: str) -> None:
    with pytest.raises(Unusable) as refusal:
        read(name, [body])

    assert sentence in str(refusal.value)


def test_of_a_hub_the_newest_twenty_words_are_shown_and_each_to_300_characters() -> None:
    hub = after(HubState(name="jury"), new("ana"))
    for number in range(21):
        hub = says(hub, "ana", f"{number} " + "x" * 400)

    assert (len(hub.newest), hub.newest[-1].text[:3]) == (20, "20 ")
    assert {len(shown.text) for shown in hub.newest} == {300}


def test_a_hub_knows_the_five_hundred_replies_that_it_has_told_last() -> None:
    hub = after(HubState(name="jury"), new("ana"))
    for number in range(501):
        hub = says(hub, "ana", f"r{number}")

    assert len(hub.replies) == 500
    assert "r0" not in hub.replies
