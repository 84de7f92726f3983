"""A person as one who takes part: asked as an agent is, and answering from wherever their words come.

`UserAgent.reply(msg)` returns what the person says as a message, which `session.reply` takes. Where the words come from
is a UserInput: the terminal if nothing else is set, for one person (`use`) or for all (`use_for_all`). With a
`structured_model` a value is asked for, and asked for again until it fits.
"""

import asyncio
import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol, cast

import httpx
from pydantic import ValidationError

from longhaul.agent.plain.errors import BadInput, Unavailable
from longhaul.agent.values.conversation.messages import Msg, UserMsg
from longhaul.starter.client.structured_input import InputForm, fill_in
from longhaul.starter.client.wire import Asked
from longhaul.starter.visible import harmless

ANSWER_SECONDS = 3_600.0
MOST_TRIES = 20
"""Of one question: a page that gives the same wrong answer again and again is not asked for ever."""

Said = str | Msg | Mapping[str, Any]
"""Words, a message, or the value of a form."""


class NoAnswer(Unavailable):
    """The person left, or their page did not answer. The sentence says which."""


@dataclass(frozen=True, slots=True)
class UserQuestion:
    """A question to a person."""

    id: str
    name: str
    """The person's name, as the agents know it."""
    messages: tuple[Msg, ...]
    """Messages since the person's last answer."""
    form: InputForm | None = None
    """The form that the answer has to fit. None: the answer is text."""
    problem: str = ""
    """Why the previous answer did not fit, field by field."""


class WrongInput(BadInput, ValueError):
    """A person's answer does not fit the form. The sentence names each field. The question stays open."""


class UserInput(Protocol):
    async def __call__(self, question: UserQuestion) -> Said:
        """What the person says. Of a question with a form the value, as itself, as JSON or as a message's `metadata`.
        Raises NoAnswer."""
        ...


class TerminalInput:
    """Reads a line from the terminal of this process; for a form, a line for each field."""

    async def __call__(self, question: UserQuestion) -> Said:
        for message in question.messages if not question.problem else ():
            print(f"{harmless(message.name)}: {harmless(message.get_text_content() or '')}")
        if question.problem:
            print(harmless(question.problem))
        prompt = f"{harmless(question.name)}> "
        try:
            if question.form is None:
                return await asyncio.to_thread(input, prompt)
            return await asyncio.to_thread(_filled_in, question.form, prompt)
        except EOFError as error:
            raise NoAnswer(f"{question.name} has left the terminal") from error


def _filled_in(form: InputForm, prompt: str) -> dict[str, Any]:
    """Raises EOFError."""
    return fill_in(form.schema, lambda question: input(prompt + question), print)


class HandedInput:
    """Takes answers from code of the same process, such as the handler of a web page. The code lists `open` and calls
    `answer`."""

    def __init__(self) -> None:
        self._open: dict[str, tuple[UserQuestion, asyncio.Future[Said]]] = {}

    @property
    def open(self) -> list[UserQuestion]:
        """Open questions, the oldest first."""
        return [question for question, _ in self._open.values()]

    def answer(self, question_id: str, said: Said) -> None:
        """Answer a question. Raises KeyError if the question is not open, because it was answered or nobody waits any
        more. Raises WrongInput if the value does not fit the form."""
        question, _ = self._open[question_id]
        if question.form is not None and (wrong := question.form.wrong(question.form.value_of(said))):
            raise WrongInput(wrong)
        self._open.pop(question_id)[1].set_result(said)

    async def __call__(self, question: UserQuestion) -> Said:
        answered: asyncio.Future[Said] = asyncio.get_running_loop().create_future()
        self._open[question.id] = (question, answered)
        try:
            return await answered
        finally:
            self._open.pop(question.id, None)


class HttpInput:
    """Asks a server. Longhaul POSTs `{"id", "name", "messages"}`; the server answers `{"text": …}` or `{"message": …}`.
    For a form, the body also has `schema`, and `problem` if an answer did not fit. The server then answers `{"value":
    {…}}`."""

    def __init__(self, url: str, *, token: str = "", patience_seconds: float = ANSWER_SECONDS) -> None:
        self._url = url
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._patience_seconds = patience_seconds

    async def __call__(self, question: UserQuestion) -> Said:
        body: dict[str, Any] = {
            "id": question.id,
            "name": question.name,
            "messages": [message.model_dump(mode="json") for message in question.messages],
        }
        if question.form is not None:
            body |= {"schema": question.form.schema, "problem": question.problem}
        try:
            async with httpx.AsyncClient(timeout=self._patience_seconds, headers=self._headers) as client:
                answer = (await client.post(self._url, json=body)).raise_for_status().json()
            if question.form is not None and isinstance(answer.get("value"), dict):
                return cast(dict[str, Any], answer["value"])
            return Msg.model_validate(answer["message"]) if "message" in answer else str(answer["text"])
        except (httpx.HTTPError, ValidationError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise NoAnswer(f"{self._url} gave no readable answer: {type(error).__name__}: {error}") from error


class UserAgent:
    """One person who takes part like an agent: `reply` and `observe` work as those of a session do."""

    _for_all: ClassVar[UserInput] = TerminalInput()

    def __init__(self, name: str = "user", source: UserInput | None = None) -> None:
        self.name = name
        self._source = source
        self._heard: list[Msg] = []

    @classmethod
    def use_for_all(cls, source: UserInput | None) -> None:
        """Set the input for all people who have no input of their own. None: the terminal."""
        cls._for_all = source or TerminalInput()

    def use(self, source: UserInput | None) -> None:
        """Set the input for this person. None: the input that is set for all."""
        self._source = source

    async def observe(self, messages: Msg | Sequence[Msg]) -> None:
        """Keep messages, and show them with the next question."""
        self._heard += [messages] if isinstance(messages, Msg) else messages

    async def reply(self, messages: Msg | Sequence[Msg] = (), *, structured_model: Asked = None) -> Msg:
        """Ask the person, and return the answer as a message.

        With `structured_model`, a pydantic model or a JSON schema of an object, the answer is a value that fits it. The
        value is in `metadata` (and `structured_output`) of the message. Raises NoAnswer; the messages are kept for the
        next question. Raises Refused if no question can be built from the model.
        """
        form = None if structured_model is None else InputForm(structured_model)
        await self.observe(messages)
        heard = tuple(self._heard)
        said = await self._ask(UserQuestion(uuid.uuid4().hex, self.name, heard, form))
        self._heard = self._heard[len(heard) :]
        return said

    async def _ask(self, question: UserQuestion) -> Msg:
        source = self._source or UserAgent._for_all
        for _ in range(MOST_TRIES):
            said = await source(question)
            if question.form is None:
                return self._message(said)
            value = question.form.value_of(said)
            if not (wrong := question.form.wrong(value)):
                return self._message(said, cast(dict[str, Any], value))
            question = replace(question, problem=wrong)
        raise NoAnswer(f"{self.name} gave {MOST_TRIES} answers, of which none fits: {question.problem}")

    def _message(self, said: Said, value: dict[str, Any] | None = None) -> Msg:
        """In words too, for agents read these."""
        if isinstance(said, Msg):
            made = said.model_copy(update={"name": self.name})
        else:
            text = said if isinstance(said, str) else json.dumps(dict(said), ensure_ascii=False)
            made = UserMsg(self.name, text)
        return made if value is None else made.model_copy(update={"metadata": value, "structured_output": value})
