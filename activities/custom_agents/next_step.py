"""Finds the next step of a custom agent's reply: its code runs from the beginning, is given what is recorded of each
step, and is stopped at the first one that nobody has taken yet.

No event loop runs it: what it awaits comes from the journal, so that nothing else can be awaited.
"""

from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from longhaul.activities.custom_agents.custom_agent import (
    Asked,
    CustomAgent,
    CustomAgentCall,
    CustomAgentSession,
    CustomAgentWords,
    Thought,
)
from longhaul.agent.plain.values import digest_of
from longhaul.agent.reducer.all_changes import CALLS_OF_A_TURN
from longhaul.agent.values.conversation.messages import Msg

SHOWN_CHARS = 80


class CustomAgentFailed(Exception):
    """The code of a custom agent did what it may not; the text is for everybody."""


@dataclass(frozen=True, slots=True)
class Done:
    """A step that is recorded."""

    digest: str
    told: str
    came: Any
    """What the code gets for it."""


@dataclass(frozen=True, slots=True)
class CustomAgentAnswer:
    """The code has come to its end."""

    value: Any


ANSWERED = "answer in a form"
"""How the step is told by which an answer in a form is given; the reply is over unless the form is not kept."""


def next_of(
    made: Callable[[], CustomAgent], request: Msg, session: CustomAgentSession, own_name: str, done: Sequence[Done]
) -> Asked | CustomAgentAnswer:
    """Raises CustomAgentFailed, and whatever the code does."""
    custom = made()
    for message in session.heard:
        if message.role != "assistant" or message.name != own_name:
            _alone(custom.observe(message), "observe")
    running, came, at = custom.reply(request, session), None, 0
    while True:
        step = done[at] if at < len(done) else None
        try:
            asked = _checked(running.send(came))
        except StopIteration as end:
            if step is not None and step.told != ANSWERED:
                raise CustomAgentFailed(_differs(at, step, "its end")) from None
            return CustomAgentAnswer(end.value)
        if step is None:
            with suppress(Exception):  # a `finally` of its own may await: it is not run to its end here
                running.close()
            return asked
        if digest(asked) != step.digest:
            raise CustomAgentFailed(_differs(at, step, describe_step(asked)))
        if isinstance(asked, Thought) and step.came is None:
            raise CustomAgentFailed(
                f"what came of step {at + 1} stands in the context no more; ask again for a new reply"
            )
        came, at = step.came, at + 1


def parting(made: Callable[[], CustomAgent], message: str, tools: tuple[str, ...]) -> str:
    """Raises CustomAgentFailed, and whatever the code does."""
    return str(_alone(made().handle_interrupt(message, tools), "handle_interrupt") or "")


def digest(asked: Asked) -> str:
    match asked:
        case Thought(prompt, system):
            return digest_of(["think", prompt, system])
        case CustomAgentWords(text):
            return digest_of(["say", text])
        case calls:
            return digest_of(["call", *([call.tool, call.arguments] for call in calls)])


def describe_step(asked: Asked) -> str:
    """One line about a step, for people."""
    match asked:
        case Thought():
            return "think"
        case CustomAgentWords():
            return "say"
        case calls:
            return f"call {', '.join(call.tool for call in calls)}"[:SHOWN_CHARS]


def _alone(running: Coroutine[Any, Any, Any], name: str) -> Any:
    """What code comes to that has nothing to wait for."""
    try:
        running.send(None)
    except StopIteration as end:
        return end.value
    running.close()
    raise CustomAgentFailed(f"{name} awaits something, and only reply may ask the session")


def _checked(asked: Any) -> Asked:
    if isinstance(asked, Thought | CustomAgentWords):
        return asked
    if not isinstance(asked, tuple) or not all(isinstance(call, CustomAgentCall) for call in asked):
        raise CustomAgentFailed(
            "reply awaits something that is none of its session's: a custom agent waits for its session alone"
        )
    if not 0 < len(asked) <= CALLS_OF_A_TURN:
        raise CustomAgentFailed(f"{len(asked)} calls together; it takes 1 to {CALLS_OF_A_TURN}")
    return asked


def _differs(at: int, step: Done, now: str) -> str:
    return (
        f"step {at + 1} of this reply was recorded as {step.told!r}, and the code comes to {now!r} there now. Its code "
        "was changed while the reply was being made, or does not do the same each time; ask again for a new reply"
    )
