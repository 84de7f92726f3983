"""`longhaul serve --a2a`: what other agents may not do, malformed requests, and servers without the extra."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from a2a.client.errors import A2AClientError, AgentCardResolutionError
from a2a.types import (
    CancelTaskRequest,
    ListTasksRequest,
    Part,
    SendMessageConfiguration,
    SendMessageRequest,
    Task,
    TaskPushNotificationConfig,
)
from a2a.utils.errors import (
    A2AError,
    ContentTypeNotSupportedError,
    InvalidParamsError,
    PushNotificationNotSupportedError,
    TaskNotFoundError,
    UnsupportedOperationError,
)

from tests.activities.context.test_attachments import png
from tests.e2e.a2a_peers import (
    LONG,
    ROBOT,
    ROBOT_DIGEST,
    Peer,
    data,
    desk_of,
    peer,
    published,
    python,
    refused,
    request,
    text,
    waiting,
    word,
    yes,
)
from tests.e2e.serve.test_revoked import without
from tests.e2e.serve.test_sessions import SLOWLY, WANTS_TO_EDIT, agent
from tests.e2e.serving import TOKENS
from tests.limits import SURE_SECONDS

pytestmark = [pytest.mark.server, pytest.mark.timeout(180)]


@pytest.fixture
def desk(tmp_path: Path, worker: int, cli_environment: dict[str, str]) -> dict[str, str]:
    """The settings of servers in this folder; it holds a greeting, and a worker is there."""
    assert worker
    return desk_of(tmp_path, cli_environment)


async def test_anothers_tasks_are_as_good_as_not_there(tmp_path: Path, desk: dict[str, str]) -> None:
    once = uuid4().hex
    agent(tmp_path, WANTS_TO_EDIT, {"text": "Never mind."})
    async with published(tmp_path, desk) as one, peer(one.url) as ana, peer(one.url, TOKENS["bob"]) as bob:
        asked = await ana.send("Greet", message_id=once)
        (call,) = waiting(asked)
        missing = Task(id=asked.id.replace("a2a-", "a2b-"))
        sentences = [
            [
                await refused(TaskNotFoundError, bob.get(task)),
                await refused(TaskNotFoundError, bob.client.cancel_task(CancelTaskRequest(id=task.id))),
                await refused(TaskNotFoundError, bob.send(yes(call), task_id=task.id)),
                await refused(TaskNotFoundError, bob.send("Mine", task_id=task.id)),
            ]
            for task in (asked, missing)
        ]
        listed = await bob.client.list_tasks(ListTasksRequest(context_id=asked.context_id))
        listed_all = await bob.client.list_tasks(ListTasksRequest())
        own = await bob.send("Greet", message_id=once, return_immediately=True)
        async with asyncio.timeout(SURE_SECONDS):  # the server's index is a moment late
            while asked.id not in await listed_for(ana):  # noqa: ASYNC110  another process does it
                await asyncio.sleep(0.1)
        still = await ana.get(asked)
        async with peer(one.url, TOKENS["eve"]) as eve:
            mute = await refused(UnsupportedOperationError, eve.send("Greet"))
            unseen = await refused(TaskNotFoundError, eve.get(asked))

    assert sentences[0] == [each.replace("a2b-", "a2a-") for each in sentences[1]]
    assert not listed.tasks
    assert asked.context_id not in [each.context_id for each in listed_all.tasks]
    assert own.id != asked.id
    assert still == asked
    assert mute == "SendMessage: this needs a token with the scope 'answer'"
    assert unseen


async def test_text_files_and_data_reach_the_model_and_the_rest_is_refused_by_its_name(
    tmp_path: Path, desk: dict[str, str]
) -> None:
    agent(tmp_path, {"text": "I see.", "expect": {"last_contains": "tides.csv:\nhigh,7"}})
    taken: list[Part | str] = [
        "Look",
        data({"wind": 7, "from": "west"}),
        Part(raw=b"high,7", media_type="text/csv", filename="tides.csv"),
        Part(raw=png(), media_type="image/png", filename="sea.png"),
    ]
    wrong: list[tuple[type[A2AError], Part, str]] = [
        (ContentTypeNotSupportedError, Part(raw=b"MZ", media_type="application/x-msdownload"), "parts[0].mediaType"),
        (ContentTypeNotSupportedError, Part(raw=b"MZ"), "parts[0].mediaType"),
        (ContentTypeNotSupportedError, Part(url="https://lighthouse.example/a.png"), "addresses are not fetched"),
        (InvalidParamsError, Part(raw=b"no png", media_type="image/png"), "it is not image/png"),
        (InvalidParamsError, Part(raw=b"\xff\xfe", media_type="text/plain"), "it is no UTF-8"),
        (InvalidParamsError, Part(text=" "), "needs some text or data"),
        (InvalidParamsError, Part(), "it is empty"),
    ]
    async with published(tmp_path, desk) as one, peer(one.url) as ana:
        said = [await refused(kind, ana.send(part)) for kind, part, _ in wrong]
        done = await ana.send(*taken)
        async with one.client() as client:
            messages = (await client.get(f"/v1/sessions/lamp/{done.context_id}/transcript")).json()["messages"]
        pushed = SendMessageRequest(
            message=request("Hi").message,
            configuration=SendMessageConfiguration(
                task_push_notification_config=TaskPushNotificationConfig(url="https://robot.example")
            ),
        )
        no_push = await refused(PushNotificationNotSupportedError, anext(aiter(ana.client.send_message(pushed))))

    assert [sentence for sentence, (*_, expected) in zip(said, wrong, strict=True) if expected not in sentence] == []
    assert (word(done), text(done)) == ("completed", "I see.")
    blocks = messages[0]["content"]
    assert [block.get("text") for block in blocks[:3]] == [
        "Look",
        '{"from": "west", "wind": 7}' if blocks[1]["text"].startswith('{"from') else '{"wind": 7, "from": "west"}',
        "tides.csv:\nhigh,7",
    ]
    assert (blocks[3]["name"], blocks[3]["source"]["media_type"]) == ("sea.png", "image/png")
    assert "SubscribeToTask" in no_push


async def listed_for(one: Peer) -> list[str]:
    return [each.id for each in (await one.client.list_tasks(ListTasksRequest())).tasks]


def rpc(method: str, params: Any, **more: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params, **more}).encode()


def message(**fields: Any) -> dict[str, Any]:
    return {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "Hi"}], **fields}}


MALFORMED: dict[str, bytes] = {
    "nothing": b"",
    "no JSON": b"{",
    "no object": b"[]",
    "a number": b"7",
    "deep": b'{"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": ' + b"[" * 5_000 + b"]" * 5_000 + b"}",
    "no UTF-8": b'{"jsonrpc": "2.0", "id": 1, "method": "\xff"}',
    "another method": rpc("Launch", {}),
    "an older method": rpc("message/send", message()),
    "no method": b'{"jsonrpc": "2.0", "id": 1}',
    "no version": b'{"id": 1, "method": "GetTask", "params": {"id": "x"}}',
    "params of another kind": rpc("SendMessage", "hello"),
    "no message": rpc("SendMessage", {}),
    "no parts": rpc("SendMessage", message(parts=[])),
    "no message id": rpc("SendMessage", message(messageId="")),
    "a long message id": rpc("SendMessage", message(messageId="m" * 1_001)),
    "an agent's role": rpc("SendMessage", message(role="ROLE_AGENT")),
    "no such role": rpc("SendMessage", message(role="KING")),
    "a lone surrogate": rpc("SendMessage", message(parts=[{"text": "\ud800"}])),
    "NUL in a context": rpc("SendMessage", message(contextId="a\0b")),
    "a long context": rpc("SendMessage", message(contextId="c" * 601)),
    "a task of nobody": rpc("SendMessage", message(taskId="nobody")),
    "a task of another context": rpc("SendMessage", message(taskId="a/" + "0" * 32, contextId="b")),
    "deep data": rpc("SendMessage", message(parts=[{"data": json.loads("[" * 90 + "]" * 90)}])),
    "no number": b'{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m","role":'
    b'"ROLE_USER","parts":[{"data":NaN}]}}}',
    "two contents": rpc("SendMessage", message(parts=[{"text": "a", "url": "b"}])),
    "an empty id": rpc("GetTask", {"id": ""}),
    "an id of slashes": rpc("GetTask", {"id": "//" + "0" * 32}),
    "an id with NUL": rpc("GetTask", {"id": "a\0/" + "0" * 32}),
    "a huge id": rpc("GetTask", {"id": "i" * 100_000}),
    "a negative length": rpc("GetTask", {"id": "a/" + "0" * 32, "historyLength": -1}),
    "a page of nothing": rpc("ListTasks", {"pageSize": 0}),
    "a page of all": rpc("ListTasks", {"pageSize": 101}),
    "no such page": rpc("ListTasks", {"pageToken": "²"}),
    "a stream of nobody": rpc("SubscribeToTask", {"id": "a/" + "0" * 32}),
    "a stream of nothing": rpc("SendStreamingMessage", message(parts=[{}])),
    "answers for nobody": rpc("SendMessage", message(parts=[{"data": {"resolve": {}}}], taskId="a/" + "0" * 32)),
    "a push configuration": rpc("CreateTaskPushNotificationConfig", {"taskId": "x", "url": "https://robot.example"}),
    "an extended card": rpc("GetExtendedAgentCard", {}),
}


async def test_malformed_requests_are_answered_with_an_error_and_leave_no_trace_in_the_log(
    tmp_path: Path, desk: dict[str, str]
) -> None:
    agent(tmp_path, {"text": "Hello."})
    headers = {"Authorization": f"Bearer {TOKENS['ana']}", "A2A-Version": "1.0", "Content-Type": "application/json"}
    async with published(tmp_path, desk) as one:
        async with httpx.AsyncClient(headers=headers, timeout=SURE_SECONDS, trust_env=False) as http:
            answers = {name: await http.post(f"{one.url}/a2a/lamp", content=body) for name, body in MALFORMED.items()}
            older = await http.post(
                f"{one.url}/a2a/lamp", content=rpc("SendMessage", message()), headers={"A2A-Version": "0.3"}
            )
            long = await http.post(f"{one.url}/a2a/lamp", content=b"x" * 2_000_100)
            got = await http.get(f"{one.url}/a2a/lamp")
        async with peer(one.url) as ana:
            done = await ana.send("Hello")
        log = one.log.read_text("utf-8")

    told = {name: answer.json().get("error") for name, answer in answers.items()}
    assert [name for name, error in told.items() if not error or error["code"] > -32000] == []
    assert [name for name, error in told.items() if error["code"] == -32603] == []
    assert older.json()["error"]["code"] == -32009
    assert (long.status_code, got.status_code) == (413, 405)
    assert word(done) == "completed"
    assert "Traceback" not in log


async def test_a_stream_and_a_request_that_waits_end_with_their_token(tmp_path: Path, desk: dict[str, str]) -> None:
    once = uuid4().hex
    agent(tmp_path, {"text": LONG * 30, **SLOWLY})
    file = tmp_path / "tokens"
    file.write_text(file.read_text().replace(f"{ROBOT_DIGEST} ana ", f"{ROBOT_DIGEST} robot "))
    async with (
        published(tmp_path, desk) as one,
        peer(one.url, ROBOT, streaming=True) as robot,
        peer(one.url, ROBOT) as patient,
    ):
        told = aiter(robot.client.send_message(request("How far?", message_id=once)))
        begun = [await anext(told) for _ in range(3)]
        blocked = asyncio.create_task(patient.send("How far?", message_id=once))
        without(file, "robot")
        async with asyncio.timeout(SURE_SECONDS):
            with pytest.raises(A2AClientError):
                _ = [each async for each in told]
            with pytest.raises(A2AClientError, match="401"):
                await blocked
        with pytest.raises(A2AClientError, match="401"):
            await patient.get(begun[0].task)

    assert begun[2].HasField("artifact_update")


async def test_without_the_extra_the_switch_says_what_to_install_and_nothing_else_imports_it(
    tmp_path: Path, desk: dict[str, str]
) -> None:
    agent(tmp_path, {"text": "Hello."})
    lacking = "import sys; sys.modules['a2a'] = None; from longhaul.starter.cli.entry_point import main; main()"
    loaded = (
        "import longhaul, longhaul.nexus, longhaul.starter.cli.commands.serve, sys; "
        "print([name for name in sys.modules if name.split('.')[0] in ('a2a', 'jsonrpc', 'culsans')])"
    )
    switch = ("serve", "--port", "0", "--a2a")
    without_it, imported, unknown = await asyncio.gather(
        python(lacking, *switch, "lamp", folder=tmp_path, environment=desk),
        python(loaded, folder=tmp_path, environment=desk),
        python(lacking, *switch, "lump", folder=tmp_path, environment=desk),
    )

    assert without_it.code != os.EX_OK
    assert "pip install 'longhaul-agents[a2a]'" in without_it.err
    assert "Traceback" not in without_it.err
    assert imported.out.strip() == "[]"
    assert "--a2a: there is no agent 'lump'; did you mean 'lamp'?" in unknown.err


async def test_without_tokens_the_card_asks_for_none(tmp_path: Path, desk: dict[str, str]) -> None:
    agent(tmp_path, {"text": "Hello."})
    open_desk = desk | {"LONGHAUL_SERVE_TOKENS": "", "LONGHAUL_DATA_DIR": str(tmp_path / "own")}
    async with published(tmp_path, open_desk) as one, peer(one.url, "none") as anybody:
        done = await anybody.send("Hello")
        with pytest.raises(AgentCardResolutionError):
            async with peer(one.url, "none", "longhaul"):
                pass

    assert not anybody.card.security_requirements
    assert (word(done), text(done)) == ("completed", "Hello.")
