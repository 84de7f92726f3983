"""A person who takes part, wherever their words come from."""

import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from longhaul.agent.values.conversation.messages import AssistantMsg, UserMsg
from longhaul.starter.client.user_agent import HandedInput, HttpInput, NoAnswer, UserAgent, UserQuestion


class Page(BaseHTTPRequestHandler):
    """A server at which somebody answers."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        token = self.headers["Authorization"]
        heard = [block["text"] for message in asked["messages"] for block in message["content"]]
        answers: dict[str, Any] = {
            "/text": {"text": f"{asked['name']} heard {', '.join(heard)}, {token}"},
            "/message": {"message": UserMsg("somebody", "as a message").model_dump(mode="json")},
            "/nonsense": ["?"],
        }
        self.send_response(200 if self.path in answers else 503)
        self.end_headers()
        self.wfile.write(json.dumps(answers.get(self.path)).encode())

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the name in http.server
        pass


@pytest.fixture(scope="module")
def page() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Page) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


async def echo(question: UserQuestion) -> str:
    return "heard " + ", ".join(message.get_text_content() or "" for message in question.messages)


@pytest.mark.proves("C12")
async def test_code_of_the_same_process_may_answer() -> None:
    source = HandedInput()
    ana = UserAgent("ana", source)
    asking = asyncio.create_task(ana.reply(AssistantMsg("bot", "Which port?")))
    await asyncio.sleep(0)
    (question,) = source.open

    source.answer(question.id, "8080")

    said = await asking
    assert (said.name, said.role, said.get_text_content()) == ("ana", "user", "8080")
    assert question.messages[0].get_text_content() == "Which port?"
    assert source.open == []
    with pytest.raises(KeyError):
        source.answer(question.id, "again")


@pytest.mark.proves("C12")
async def test_a_server_may_answer(page: str) -> None:
    ana = UserAgent("ana", HttpInput(f"{page}/text", token="t-1"))

    said = await ana.reply(AssistantMsg("bot", "Which port?"))
    ana.use(HttpInput(f"{page}/message"))
    other = await ana.reply()

    assert said.get_text_content() == "ana heard Which port?, Bearer t-1"
    assert (other.name, other.get_text_content()) == ("ana", "as a message")


@pytest.mark.parametrize("path", ["nonsense", "missing"])
async def test_without_an_answer_nothing_is_forgotten(page: str, path: str) -> None:
    ana = UserAgent("ana", HttpInput(f"{page}/{path}"))

    with pytest.raises(NoAnswer, match=path):
        await ana.reply(AssistantMsg("bot", "One?"))
    ana.use(echo)

    assert (await ana.reply(AssistantMsg("bot", "Two?"))).get_text_content() == "heard One?, Two?"
    assert (await ana.reply()).get_text_content() == "heard "


@pytest.mark.proves("C12")
async def test_one_source_may_hold_for_all_and_another_for_one() -> None:
    async def own(question: UserQuestion) -> str:
        return "mine"

    UserAgent.use_for_all(echo)
    try:
        ana, ben = UserAgent("ana"), UserAgent("ben", own)
        await ana.observe(AssistantMsg("bot", "psst"))
        words = [(await each.reply()).get_text_content() for each in (ana, ben)]
        ben.use(None)
        words.append((await ben.reply()).get_text_content())
    finally:
        UserAgent.use_for_all(None)

    assert words == ["heard psst", "mine", "heard "]
