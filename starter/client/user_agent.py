"""A person as one who takes part: asked as an agent is, and answering from wherever their words come.

`UserAgent.reply(msg)` returns what the person says as a message, which `session.reply` takes. Where the words come from
is a UserInput: the terminal if nothing else is set, for one person (`use`) or for all (`use_for_all`).
"""

import asyncio
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import httpx
from pydantic import ValidationError

from longhaul.agent.plain.errors import Unavailable
from longhaul.agent.values.messages import Msg, UserMsg
from longhaul.starter.visible import harmless

ANSWER_SECONDS = 3_600.0


class NoAnswer(Unavailable):
    """The person left, or their page did not answer; the sentence says which."""


@dataclass(frozen=True, slots=True)
class UserQuestion:
    """What a person is asked."""

    id: str
    name: str
    """Of the person, as the agents know them."""
    messages: tuple[Msg, ...]
    """Said since they were asked last."""


class UserInput(Protocol):
    async def __call__(self, question: UserQuestion) -> str | Msg:
        """What the person says. Raises NoAnswer."""
        ...


class TerminalInput:
    """A line typed at the terminal of this process."""

    async def __call__(self, question: UserQuestion) -> str:
        for message in question.messages:
            print(f"{harmless(message.name)}: {harmless(message.get_text_content() or '')}")
        try:
            return await asyncio.to_thread(input, f"{harmless(question.name)}> ")
        except EOFError as error:
            raise NoAnswer(f"{question.name} has left the terminal") from error


class HandedInput:
    """Answers handed in by code of the same process, such as the handler of a web page: it lists `open` and calls
    `answer`."""

    def __init__(self) -> None:
        self._open: dict[str, tuple[UserQuestion, asyncio.Future[str | Msg]]] = {}

    @property
    def open(self) -> list[UserQuestion]:
        """The oldest first."""
        return [question for question, _ in self._open.values()]

    def answer(self, question_id: str, said: str | Msg) -> None:
        """Raises KeyError for a question that is not open: it was answered before, or nobody waits any more."""
        self._open.pop(question_id)[1].set_result(said)

    async def __call__(self, question: UserQuestion) -> str | Msg:
        answered: asyncio.Future[str | Msg] = asyncio.get_running_loop().create_future()
        self._open[question.id] = (question, answered)
        try:
            return await answered
        finally:
            self._open.pop(question.id, None)


class HttpInput:
    """Asks a server: POSTs `{"id", "name", "messages"}`, and the answer is `{"text": …}` or `{"message": …}`."""

    def __init__(self, url: str, *, token: str = "", patience_seconds: float = ANSWER_SECONDS) -> None:
        self._url = url
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._patience_seconds = patience_seconds

    async def __call__(self, question: UserQuestion) -> str | Msg:
        body = {
            "id": question.id,
            "name": question.name,
            "messages": [message.model_dump(mode="json") for message in question.messages],
        }
        try:
            async with httpx.AsyncClient(timeout=self._patience_seconds, headers=self._headers) as client:
                answer = (await client.post(self._url, json=body)).raise_for_status().json()
            return Msg.model_validate(answer["message"]) if "message" in answer else str(answer["text"])
        except (httpx.HTTPError, ValidationError, ValueError, KeyError, TypeError) as error:
            raise NoAnswer(f"{self._url} gave no answer that can be read: {type(error).__name__}: {error}") from error


class UserAgent:
    """One person. `reply` and `observe` are what an agent's session has too."""

    _for_all: ClassVar[UserInput] = TerminalInput()

    def __init__(self, name: str = "user", source: UserInput | None = None) -> None:
        self.name = name
        self._source = source
        self._heard: list[Msg] = []

    @classmethod
    def use_for_all(cls, source: UserInput | None) -> None:
        """For everybody who has none of their own; None is the terminal again."""
        cls._for_all = source or TerminalInput()

    def use(self, source: UserInput | None) -> None:
        """For this person; None: what holds for all."""
        self._source = source

    async def observe(self, messages: Msg | Sequence[Msg]) -> None:
        """Shown with the next question."""
        self._heard += [messages] if isinstance(messages, Msg) else messages

    async def reply(self, messages: Msg | Sequence[Msg] = ()) -> Msg:
        """Ask them. Raises NoAnswer; what they were to hear is then kept for the next question."""
        await self.observe(messages)
        heard = tuple(self._heard)
        said = await (self._source or UserAgent._for_all)(UserQuestion(uuid.uuid4().hex, self.name, heard))
        self._heard = self._heard[len(heard) :]
        return UserMsg(self.name, said) if isinstance(said, str) else said.model_copy(update={"name": self.name})
