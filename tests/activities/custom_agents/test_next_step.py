"""The next step of a custom agent's reply comes from its code and from what is recorded, and from nothing else."""

import asyncio
from typing import Any

import pytest

from longhaul.activities.custom_agents.custom_agent import (
    Asked,
    CallResult,
    CustomAgent,
    CustomAgentSession,
    CustomAgentWords,
    Thought,
)
from longhaul.activities.custom_agents.next_step import (
    CustomAgentAnswer,
    CustomAgentFailed,
    Done,
    describe_step,
    digest,
    next_of,
    parting,
)
from longhaul.agent.values.conversation.messages import AssistantMsg, Msg, UserMsg

REQUEST = UserMsg("ana", "Where is my boat?")


class Harbour(CustomAgent):
    """Asks, thinks, says, asks for two things at once, and answers with all of it."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    async def observe(self, msg: Msg) -> None:
        self.heard.append(msg.get_text_content())

    async def reply(self, msg: Msg, session: CustomAgentSession) -> str:
        found = await session.call("look", quay=7)
        thought = await session.think(f"What is {found.text}?")
        await session.say("A moment.")
        both = await session.together(session.call("look", quay=8), session.ask("clerk", "Who owns it?"))
        return f"{self.heard} {found.ok} {thought} {[result.text for result in both]}"


def took(asked: Asked | CustomAgentAnswer, came: Any = None) -> Done:
    assert not isinstance(asked, CustomAgentAnswer)
    return Done(digest(asked), describe_step(asked), came)


def step(done: list[Done], kind: type[CustomAgent] = Harbour, heard: tuple[Msg, ...] = ()) -> Asked | CustomAgentAnswer:
    return next_of(kind, REQUEST, CustomAgentSession(heard), "lamp", done)


def test_a_reply_is_made_step_by_step_each_with_what_is_recorded_of_those_before() -> None:
    done: list[Done] = []
    came: list[Any] = [(CallResult("a yawl"),), "A boat.", None, (CallResult("a crane"), CallResult("Ben", "denied"))]
    seen = list[str]()
    for each in came:
        asked = step(done)
        assert not isinstance(asked, CustomAgentAnswer)
        seen.append(describe_step(asked))
        done.append(took(asked, each))

    answer = step(done, heard=(UserMsg("ben", "Ahoy"), AssistantMsg("lamp", "mine"), AssistantMsg("buoy", "Ding")))

    assert seen == ["call look", "think", "say", "call look, Agent"]
    assert answer == CustomAgentAnswer("['Ahoy', 'Ding'] True A boat. ['a crane', 'Ben']")


def test_what_is_asked_is_told_apart_by_all_that_it_says() -> None:
    session = CustomAgentSession()
    asked: list[Asked] = [
        (session.call("look", quay=7),),
        (session.call("look", quay=8),),
        (session.call("look", quay=7), session.call("look", quay=7)),
        Thought("look", ""),
        Thought("look", "You are blind."),
        CustomAgentWords("look"),
    ]

    assert len({digest(each) for each in asked}) == len(asked)
    assert digest((session.call("look", a=1, b=2),)) == digest((session.call("look", b=2, a=1),))


def test_code_that_comes_to_another_step_than_the_recorded_one_is_stopped() -> None:
    other = took((CustomAgentSession().call("sail"),), (CallResult("gone"),))

    with pytest.raises(
        CustomAgentFailed, match=r"step 1 of this reply was recorded as 'call sail', .* 'call look' there now"
    ):
        step([other])


def test_code_that_ends_sooner_than_what_is_recorded_is_stopped() -> None:
    class Short(CustomAgent):
        async def reply(self, msg: Msg, session: CustomAgentSession) -> str:
            return "Nothing to do."

    with pytest.raises(CustomAgentFailed, match=r"recorded as 'call sail', and the code comes to 'its end'"):
        step([took((CustomAgentSession().call("sail"),))], Short)


class Elsewhere(CustomAgent):
    async def reply(self, msg: Msg, session: CustomAgentSession) -> str:
        await asyncio.sleep(0)
        return ""

    async def observe(self, msg: Msg) -> None:
        await CustomAgentSession().call("look")

    async def handle_interrupt(self, message: str, tools: tuple[str, ...]) -> str:
        return f"{message} {tools}"


def test_only_a_reply_waits_and_only_for_its_session() -> None:
    with pytest.raises(CustomAgentFailed, match="none of its session's"):
        step([], Elsewhere)
    with pytest.raises(CustomAgentFailed, match="observe awaits something"):
        step([], Elsewhere, heard=(REQUEST,))
    assert parting(Elsewhere, "Rather not", ("look",)) == "Rather not ('look',)"


def test_too_much_at_once_is_stopped() -> None:
    class Greedy(CustomAgent):
        async def reply(self, msg: Msg, session: CustomAgentSession) -> str:
            await session.together(*(session.call("look") for _ in range(257)))
            return ""

    with pytest.raises(CustomAgentFailed, match="257 calls together"):
        step([], Greedy)


def test_a_step_that_is_left_open_runs_no_finally_to_its_end() -> None:
    class Tidy(CustomAgent):
        async def reply(self, msg: Msg, session: CustomAgentSession) -> str:
            try:
                await session.call("look")
            finally:
                await session.say("Bye.")
            return ""

    assert describe_step(step([], Tidy)) == "call look"  # type: ignore[arg-type]


def test_a_thought_that_was_taken_out_of_the_context_is_not_made_up() -> None:
    session = CustomAgentSession()
    done = [took((session.call("look", quay=7),), (CallResult("a yawl"),)), took(session.think("What is a yawl?"))]

    with pytest.raises(CustomAgentFailed, match="what came of step 2 stands in the context no more"):
        step(done)
