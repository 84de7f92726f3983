"""The next step of a kind's reply comes from its code and from what is recorded, and from nothing else."""

import asyncio
from typing import Any

import pytest

from longhaul.activities.kinds.kind import AgentKind, Asked, CallResult, KindSession, KindWords, Thought
from longhaul.activities.kinds.next_step import Done, KindAnswer, KindFailed, digest, next_of, parting, told
from longhaul.agent.values.conversation.messages import AssistantMsg, Msg, UserMsg

REQUEST = UserMsg("ana", "Where is my boat?")


class Harbour(AgentKind):
    """Asks, thinks, says, asks for two things at once, and answers with all of it."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    async def observe(self, msg: Msg) -> None:
        self.heard.append(msg.get_text_content())

    async def reply(self, msg: Msg, session: KindSession) -> str:
        found = await session.call("look", quay=7)
        thought = await session.think(f"What is {found.text}?")
        await session.say("A moment.")
        both = await session.together(session.call("look", quay=8), session.ask("clerk", "Who owns it?"))
        return f"{self.heard} {found.ok} {thought} {[result.text for result in both]}"


def took(asked: Asked | KindAnswer, came: Any = None) -> Done:
    assert not isinstance(asked, KindAnswer)
    return Done(digest(asked), told(asked), came)


def step(done: list[Done], kind: type[AgentKind] = Harbour, heard: tuple[Msg, ...] = ()) -> Asked | KindAnswer:
    return next_of(kind, REQUEST, KindSession(heard), "lamp", done)


def test_a_reply_is_made_step_by_step_each_with_what_is_recorded_of_those_before() -> None:
    done: list[Done] = []
    came: list[Any] = [(CallResult("a yawl"),), "A boat.", None, (CallResult("a crane"), CallResult("Ben", "denied"))]
    seen = list[str]()
    for each in came:
        asked = step(done)
        assert not isinstance(asked, KindAnswer)
        seen.append(told(asked))
        done.append(took(asked, each))

    answer = step(done, heard=(UserMsg("ben", "Ahoy"), AssistantMsg("lamp", "mine"), AssistantMsg("buoy", "Ding")))

    assert seen == ["call look", "think", "say", "call look, Agent"]
    assert answer == KindAnswer("['Ahoy', 'Ding'] True A boat. ['a crane', 'Ben']")


def test_what_is_asked_is_told_apart_by_all_that_it_says() -> None:
    session = KindSession()
    asked: list[Asked] = [
        (session.call("look", quay=7),),
        (session.call("look", quay=8),),
        (session.call("look", quay=7), session.call("look", quay=7)),
        Thought("look", ""),
        Thought("look", "You are blind."),
        KindWords("look"),
    ]

    assert len({digest(each) for each in asked}) == len(asked)
    assert digest((session.call("look", a=1, b=2),)) == digest((session.call("look", b=2, a=1),))


def test_code_that_comes_to_another_step_than_the_recorded_one_is_stopped() -> None:
    other = took((KindSession().call("sail"),), (CallResult("gone"),))

    with pytest.raises(KindFailed, match=r"step 1 of this reply was recorded as 'call sail', .* 'call look' there now"):
        step([other])


def test_code_that_ends_sooner_than_what_is_recorded_is_stopped() -> None:
    class Short(AgentKind):
        async def reply(self, msg: Msg, session: KindSession) -> str:
            return "Nothing to do."

    with pytest.raises(KindFailed, match=r"recorded as 'call sail', and the code comes to 'its end'"):
        step([took((KindSession().call("sail"),))], Short)


class Elsewhere(AgentKind):
    async def reply(self, msg: Msg, session: KindSession) -> str:
        await asyncio.sleep(0)
        return ""

    async def observe(self, msg: Msg) -> None:
        await KindSession().call("look")

    async def handle_interrupt(self, message: str, tools: tuple[str, ...]) -> str:
        return f"{message} {tools}"


def test_only_a_reply_waits_and_only_for_its_session() -> None:
    with pytest.raises(KindFailed, match="none of its session's"):
        step([], Elsewhere)
    with pytest.raises(KindFailed, match="observe awaits something"):
        step([], Elsewhere, heard=(REQUEST,))
    assert parting(Elsewhere, "Rather not", ("look",)) == "Rather not ('look',)"


def test_too_much_at_once_is_stopped() -> None:
    class Greedy(AgentKind):
        async def reply(self, msg: Msg, session: KindSession) -> str:
            await session.together(*(session.call("look") for _ in range(257)))
            return ""

    with pytest.raises(KindFailed, match="257 calls together"):
        step([], Greedy)


def test_a_step_that_is_left_open_runs_no_finally_to_its_end() -> None:
    class Tidy(AgentKind):
        async def reply(self, msg: Msg, session: KindSession) -> str:
            try:
                await session.call("look")
            finally:
                await session.say("Bye.")
            return ""

    assert told(step([], Tidy)) == "call look"  # type: ignore[arg-type]


def test_a_thought_that_was_taken_out_of_the_context_is_not_made_up() -> None:
    session = KindSession()
    done = [took((session.call("look", quay=7),), (CallResult("a yawl"),)), took(session.think("What is a yawl?"))]

    with pytest.raises(KindFailed, match="what came of step 2 stands in the context no more"):
        step(done)
