"""A person's input in a form, wherever it comes from: checked before anybody reads it, and asked for until it fits."""

import asyncio
import io
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, ClassVar, Literal

import pytest
from pydantic import BaseModel, Field, field_validator

from longhaul.agent.values.conversation.messages import AssistantMsg, Msg, UserMsg
from longhaul.starter.client.structured_input import InputForm, fields_of, fill_in
from longhaul.starter.client.user_agent import (
    MOST_TRIES,
    HandedInput,
    HttpInput,
    NoAnswer,
    Said,
    TerminalInput,
    UserAgent,
    UserQuestion,
    WrongInput,
)
from longhaul.starter.client.wire import Refused

BERTH = AssistantMsg("bot", "Which berth?")


class Mooring(BaseModel):
    berth: Literal["north", "south"]
    nights: int = Field(ge=1, le=30, description="How long you stay.")
    lights: bool | None = None
    flags: list[str] = []

    @field_validator("nights")
    @classmethod
    def _is_no_friday(cls, nights: int) -> int:
        if nights == 13:
            raise ValueError("nobody stays for 13 nights")
        return nights


SOUTH = {"berth": "south", "nights": 4}


class Harbour(BaseHTTPRequestHandler):
    """A page that gives its answers one by one, and keeps what it was asked."""

    asked: ClassVar[list[dict[str, Any]]] = []
    answers: ClassVar[list[dict[str, Any]]] = []

    def do_POST(self) -> None:
        self.asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(self.answers.pop(0)).encode())

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the name in http.server
        pass


@pytest.fixture
def page() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Harbour) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()
    Harbour.asked, Harbour.answers = [], []


@pytest.mark.proves("C12")
async def test_what_is_typed_field_by_field_is_the_value_of_the_message(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("east\nsouth\nmany\n4\nmaybe\nyes\n\n"))

    said = await UserAgent("ana", TerminalInput()).reply(BERTH, structured_model=Mooring)

    shown = capsys.readouterr().out
    assert said.metadata == {"berth": "south", "nights": 4, "lights": True}
    assert said.structured_output == said.metadata
    assert (said.name, json.loads(said.get_text_content())) == ("ana", said.metadata)
    assert "bot: Which berth?" in shown
    assert "ana> berth (one of north, south): " in shown
    assert "ana> nights (number; How long you stay): " in shown
    assert "ana> lights (yes or no; leave empty to leave it out): " in shown
    assert "berth: 'east' is none of north, south; type one of them" in shown
    assert "nights: 'many' is no number; type it as in JSON" in shown
    assert "lights: 'maybe' is neither yes nor no" in shown


async def test_a_form_that_does_not_fit_is_filled_in_once_more(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO('north\n99\n\n\nnorth\n3\n\n["red"]\n'))

    said = await UserAgent("ana", TerminalInput()).reply(BERTH, structured_model=Mooring)

    shown = capsys.readouterr().out
    assert said.metadata == {"berth": "north", "nights": 3, "flags": ["red"]}
    assert "nights" in shown.partition("does not fit:")[2].splitlines()[1]
    assert shown.count("Which berth?") == 1


@pytest.mark.proves("C12")
@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"berth": "east", "nights": 4}, ["berth", "east"]),
        ({"berth": "south", "nights": 31, "lights": "dim"}, ["nights", "31", "lights", "dim"]),
        ({"berth": "south"}, ["nights"]),
        ({"berth": "south", "nights": 13}, ["- nights: nobody stays for 13 nights (it is 13)"]),
        ("the south one", ["the answer is no JSON object (it is 'the south one'); give one with berth, nights"]),
        ('{"berth": "south", "nights": NaN}', ["a number that is too large"]),
        (UserMsg("web", "[1]"), ["the answer is no JSON object (it is [1])"]),
    ],
)
async def test_code_of_the_same_process_is_told_of_each_field_and_the_question_stays(
    said: Said, why: list[str]
) -> None:
    source = HandedInput()
    asking = asyncio.create_task(UserAgent("ana", source).reply(BERTH, structured_model=Mooring))
    await asyncio.sleep(0)
    (question,) = source.open

    with pytest.raises(WrongInput) as refused:
        source.answer(question.id, said)
    assert source.open == [question]
    source.answer(question.id, SOUTH)

    assert [part for part in why if part not in str(refused.value)] == []
    assert (await asking).metadata == SOUTH


@pytest.mark.parametrize(
    "said", [json.dumps(SOUTH), UserMsg("web", "The south one.").model_copy(update={"metadata": SOUTH})]
)
async def test_a_value_may_come_as_json_or_with_words(said: str | Msg) -> None:
    async def source(question: UserQuestion) -> Said:
        return said

    answer = await UserAgent("ana", source).reply(BERTH, structured_model=Mooring.model_json_schema())

    assert answer.metadata == SOUTH
    assert answer.get_text_content() == (said if isinstance(said, str) else "The south one.")


@pytest.mark.proves("C12")
async def test_a_server_is_sent_the_schema_and_what_did_not_fit(page: str) -> None:
    Harbour.answers += [{"value": {"berth": "east", "nights": 4}}, {"value": SOUTH}]

    said = await UserAgent("ana", HttpInput(page)).reply(BERTH, structured_model=Mooring)

    first, second = Harbour.asked
    assert said.metadata == SOUTH
    assert first["schema"]["properties"]["berth"]["enum"] == ["north", "south"]
    assert (first["problem"], first["id"]) == ("", second["id"])
    assert "berth" in second["problem"]


async def test_who_never_fits_is_not_asked_for_ever() -> None:
    asked = list[str]()

    async def source(question: UserQuestion) -> Said:
        asked.append(question.problem)
        return {"berth": "east", "nights": 1}

    ana = UserAgent("ana", source)
    with pytest.raises(NoAnswer, match=f"ana gave {MOST_TRIES} answers, of which none fits"):
        await ana.reply(BERTH, structured_model=Mooring)

    async def echo(question: UserQuestion) -> Said:
        return question.messages[0].get_text_content()

    ana.use(echo)
    assert len(asked) == MOST_TRIES
    assert (await ana.reply()).get_text_content() == "Which berth?"


def test_what_nothing_can_be_asked_in_is_refused() -> None:
    with pytest.raises(Refused, match=r"structured_model: \$\.type: '?array'? can't be answered"):
        InputForm({"type": "array"})


def test_fields_of_a_strangers_schema_hide_nothing_and_refer_to_each_other() -> None:
    schema: dict[str, Any] = {
        "type": "object",
        "$defs": {"side": {"enum": ["port", "starboard"]}, "loop": {"$ref": "#/$defs/loop"}},
        "properties": {
            "side": {"$ref": "#/$defs/side", "description": "Which\x1b[2J side"},
            "loop": {"$ref": "#/$defs/loop"},
            "odd": 7,
            "any": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
        },
        "required": ["side"],
    }
    told = list[str]()
    lines = iter(["port", "", "[1, 2]", "1e999999", "3"])

    def ask(question: str) -> str:
        told.append(question)
        return next(lines)

    value = fill_in(schema, ask, told.append)

    assert value["side"] == "port"
    assert [field.kind for field in fields_of(schema)] == ["choice", "JSON", "JSON", "JSON"]
    assert "\x1b" not in "".join(told)
