"""`longhaul serve`: the incarnation of a session by HTTP, by a real process that is killed on the way."""

import asyncio
import json
import re
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.starter.client.client import Longhaul
from tests.e2e.conftest import CLI
from tests.e2e.serving import TOKENS, Reader, Serving, serving, tokens_file
from tests.limits import SURE_SECONDS

pytestmark = pytest.mark.server

SLOWLY: dict[str, Any] = {"chunk_chars": 2, "delay_ms": 80}
EDIT = {"file_path": "greeting.txt", "old_string": "world", "new_string": "moon"}
WANTS_TO_EDIT = {"text": "I will greet the moon.", "tool_calls": [{"id": "edit-7", "name": "Edit", "input": EDIT}]}


def agent(folder: Path, *replies: dict[str, Any], name: str = "lamp", more: str = "") -> str:
    """An agent file with a scripted model; returns the path of a new session of it."""
    script = folder / f"{name}.jsonl"
    script.write_text("\n".join(json.dumps(reply) for reply in replies))
    (folder / "agents").mkdir(exist_ok=True)
    workspace = f'[workspace]\nroot = "{folder}"\n'
    (folder / "agents" / f"{name}.toml").write_text(f'model = "scripted:{script}"\n{more}\n{workspace}')
    return f"/v1/sessions/{name}/{uuid4().hex[:8]}"


async def finished(client: httpx.AsyncClient, reply: str) -> Any:
    """The reply's result, once it has ended."""
    async with asyncio.timeout(SURE_SECONDS):
        while True:
            found = (await client.get(reply)).json()
            if found["status"] == "finished":
                return found
            await asyncio.sleep(0.05)


async def listed(client: httpx.AsyncClient, name: str) -> None:
    """Until the inbox has it: the server's index is a moment late."""
    async with asyncio.timeout(SURE_SECONDS):
        while True:
            if name in (await client.get("/v1/inbox")).text:
                return
            await asyncio.sleep(0.1)


@pytest.fixture
def desk(tmp_path: Path, worker: int, cli_environment: dict[str, str]) -> dict[str, str]:
    """The settings of servers in this folder; it holds a greeting, and a worker is there."""
    assert worker
    (tmp_path / "greeting.txt").write_text("hello world\n")
    return cli_environment | {"LONGHAUL_SERVE_TOKENS": str(tokens_file(tmp_path)), "LONGHAUL_TRUST": "1"}


@pytest.fixture
async def served(tmp_path: Path, desk: dict[str, str]) -> AsyncIterator[Serving]:
    async with serving(tmp_path, desk) as one:
        yield one


async def test_a_session_lives_by_http_and_outlives_its_server(tmp_path: Path, desk: dict[str, str]) -> None:
    session = agent(tmp_path, WANTS_TO_EDIT, {"text": "Done."})
    request: dict[str, Any] = {"json": {"messages": "Greet"}, "headers": {"Idempotency-Key": "r-1"}}
    reader = Reader()

    async with serving(tmp_path, desk) as first, first.client() as ana:
        asked = await ana.post(f"{session}/messages", **request)
        await reader.read(ana, f"{session}/events", until="REQUIRE_USER_CONFIRM", params={"deltas": "true"})
        (waiting,) = (await ana.get(f"{session}/pending")).json()["calls"]
        await first.kill()

    async with serving(tmp_path, desk) as second, second.client() as ana:
        again = await ana.post(f"{session}/messages", **request)
        ours = {"from": 1, "until": again.json()["reply_id"]}
        decision = {"call_id": "edit-7", "decision": "allow", "digest": waiting["digest"]}
        decided = await ana.post(f"{session}/decisions", json=decision)
        end = await reader.read(ana, f"{session}/events", last=reader.recorded[-1], params=ours)
        status = (await ana.get(f"{session}/status")).json()

    assert (asked.status_code, again.status_code) == (202, 202)
    assert asked.json()["reply_id"] == again.json()["reply_id"]
    assert decided.status_code == 200, decided.text
    assert reader.recorded == list(range(1, len(reader.recorded) + 1)), "each once, in order"
    assert reader.text == "I will greet the moon.Done."
    assert end is not None
    assert (end.kind, end.data) == ("end", {"why": "finished", "next": reader.recorded[-1] + 1})
    assert (tmp_path / "greeting.txt").read_text() == "hello moon\n"
    assert [(one["approver"], status["user_id"]) for one in status["decisions"]] == [("ana", "ana")]


async def test_an_operator_names_the_priority_of_a_session_that_begins(tmp_path: Path, served: Serving) -> None:
    session, told = agent(tmp_path, {"text": "Done."}), {"messages": "Go"}
    messages, user = f"{session}/messages", {"user": "ana"}
    async with served.client() as ana, served.client("max") as operator:
        forbidden = await ana.post(messages, json=told, params={"priority": 1})
        odd = await operator.post(messages, json=told, params={**user, "priority": 6})
        started = await operator.post(messages, json=told, params={**user, "priority": 1, "wait": 60})
        again = await operator.post(messages, json=told, params={**user, "priority": 1, "wait": 60})
        other = await operator.post(messages, json=told, params={**user, "priority": 2})

    assert [each.status_code for each in (forbidden, odd, started, again, other)] == [403, 422, 200, 200, 409]
    assert "priority: naming one needs a token with the scope 'admin'" in forbidden.text
    assert "priority: " in odd.text
    assert "began with priority 1; leave it out, or take another session" in other.text


async def test_a_stream_until_a_reply_ends_where_the_reply_waits_and_tells_what_for(
    tmp_path: Path, served: Serving
) -> None:
    session = agent(tmp_path, WANTS_TO_EDIT, {"text": "Done."}, {"text": "Good night."})
    allow = {"call_id": "edit-7", "decision": "allow"}
    asked, later, again, after, ended, foreign = (Reader() for _ in range(6))

    async def end_of(reader: Reader, last: int | None = None) -> Any:
        async with asyncio.timeout(SURE_SECONDS):
            end = await reader.read(ana, f"{session}/events", last=last, params={"until": reply})
        assert end
        return end.data

    async with served.client() as ana:
        reply = (await ana.post(f"{session}/messages", json={"messages": "Greet"})).json()["reply_id"]
        ends = [await end_of(asked)]
        seen = asked.recorded[-1]
        ends += [await end_of(later, seen), await end_of(again, seen)]
        (waiting,) = (await ana.get(f"{session}/pending")).json()["calls"]
        await ana.post(f"{session}/decisions", json=allow | {"digest": waiting["digest"]})
        ends += [await end_of(after, seen)]
        last = after.recorded[-1]
        ends += [await end_of(ended, last)]
        unknown = await ana.get(f"{session}/events", params={"until": "reply-4711"})
        reply = (await ana.post(f"{session}/messages", json={"messages": "Sleep"})).json()["reply_id"]
        ends += [await end_of(foreign, last)]

    questions = [
        [frame for frame in reader.frames if frame.data.get("type") == "REQUIRE_USER_CONFIRM"]
        for reader in (asked, later, again, after)
    ]
    assert [[frame.id is not None for frame in found] for found in questions] == [[True], [False], [False], []]
    for (question,) in questions[:3]:
        assert [call["id"] for call in question.data["tool_calls"]] == ["edit-7"]
        assert question.data["value"]["previews"]["edit-7"]["digest"] == waiting["digest"]
    assert [end["why"] for end in ends] == ["waiting", "waiting", "waiting", "finished", "finished", "finished"]
    assert [end["next"] for end in ends[:5]] == [seen + 1, seen + 1, seen + 1, last + 1, last + 1]
    assert ended.recorded == []
    assert asked.recorded + after.recorded == list(range(1, last + 1)), "each once, in order"
    assert (unknown.status_code, unknown.json()["detail"]) == (404, "the session knows no reply 'reply-4711'")


async def test_a_stream_until_a_request_that_joined_another_reply_ends_with_that_one(
    tmp_path: Path, served: Serving
) -> None:
    session = agent(tmp_path, WANTS_TO_EDIT, {"text": "Never mind."})
    readers = [Reader(), Reader()]
    async with served.client() as ana, asyncio.timeout(SURE_SECONDS):
        await ana.post(f"{session}/messages", json={"messages": "Greet"}, params={"wait": 30})
        joined = await ana.post(f"{session}/messages", json={"messages": "Leave it.", "when": "now"})
        until = {"until": joined.json()["reply_id"]}
        reading = asyncio.create_task(readers[0].read(ana, f"{session}/events", params=until))
        await ana.post(f"{session}/decisions", json={"call_id": "edit-7", "decision": "deny"})
        ends = [await reading, await readers[1].read(ana, f"{session}/events", params=until)]

    assert [end.data["why"] for end in ends if end] == ["finished", "finished"]


async def test_what_waits_is_decided_by_who_has_seen_it(tmp_path: Path, served: Serving) -> None:
    session = agent(tmp_path, WANTS_TO_EDIT, {"text": "As you like."})
    allow = {"call_id": "edit-7", "decision": "allow"}
    async with served.client() as ana:
        parked = await ana.post(f"{session}/messages", json={"messages": "Greet"}, params={"wait": 30})
        blind = await ana.post(f"{session}/decisions", json=allow)
        empty = await ana.post(f"{session}/decisions", json=allow | {"digest": ""})
        nobody = await ana.post(f"{session}/decisions", json=allow | {"call_id": ""})
        other = await ana.post(f"{session}/decisions", json=allow | {"digest": "0" * 64})
        steered = [(await ana.post(f"{session}/{way}", json={})).status_code for way in ("pause", "resume", "resume")]
        gone = await ana.post(f"{session}/decisions", json=allow | {"call_id": "edit-8"})
        denied = await ana.post(
            f"{session}/decisions", json={"call_id": "edit-7", "decision": "deny", "reason": "Not today."}
        )
        reply = f"{session}/result/{parked.json()['reply_id']}"
        result = await finished(ana, reply)
        pages = [(await ana.get(f"{session}/transcript", params={"from": n, "limit": 2})).json() for n in (0, 2)]
        whole = (await ana.get(f"{session}/transcript")).json()

    assert (parked.status_code, parked.json()["status"]) == (200, "waiting")
    assert (blind.status_code, blind.json()["errors"][0]["field"]) == (422, "digest")
    assert (empty.status_code, empty.json()["errors"][0]["field"]) == (422, "digest")
    assert (nobody.status_code, nobody.json()["errors"][0]["field"]) == (422, "call_id")
    assert (other.status_code, other.json()["type"]) == (409, "urn:longhaul:refused")
    assert steered == [200, 204, 409], "the second time nothing is paused"
    assert (gone.status_code, "edit-8" in gone.json()["detail"]) == (409, True)
    assert denied.json() == {"call_id": "edit-7", "decision": "deny", "approvals": ""}
    assert result["message"]["content"][-1]["text"] == "As you like."
    assert (tmp_path / "greeting.txt").read_text() == "hello world\n"
    assert pages[0]["messages"] + pages[1]["messages"] == whole["messages"]
    assert [pages[0]["next"], whole["next"]] == [2, None]


@pytest.mark.proves("E5")
async def test_nobody_sees_the_sessions_of_others(tmp_path: Path, served: Serving) -> None:
    session = agent(tmp_path, WANTS_TO_EDIT)
    missing = session.rpartition("/")[0] + "/never-begun"
    name = session.rpartition("/")[2]
    async with served.client("ana") as ana, served.client("bob") as bob, served.client("eve") as eve:
        await ana.post(f"{session}/messages", json={"messages": "Greet"}, params={"wait": 30})
        seen = {
            path: (await bob.get(f"{session}{path}")).status_code
            for path in ("/status", "/pending", "/transcript", "/events", "/rules", "/result/x", "/status?user=ana")
        }
        done = {
            path: (await bob.post(f"{session}{path}", json=body)).status_code
            for path, body in {
                "/decisions": {"call_id": "edit-7", "decision": "deny"},
                "/decisions?user=ana": {"call_id": "edit-7", "decision": "deny"},
                "/interrupt": {},
                "/resume": {},
                "/compact": {},
                "/rules": {"add": []},
                "/resolve": {"call_id": "edit-7", "happened": True},
                "/external-results": {"results": [{"id": "edit-7", "output": "x"}]},
            }.items()
        }
        same = [(await bob.get(f"{path}/status?user=ana")).json() for path in (session, missing)]
        lists = [
            [one["session_id"] for one in (await who.get("/v1/sessions", params={"session": name})).json()["sessions"]]
            for who in (ana, bob, eve)
        ]
        await listed(ana, name)
        inboxes = [
            [one["session"]["session_id"] for one in (await who.get("/v1/inbox")).json()["calls"]]
            for who in (ana, bob, eve)
        ]
        forbidden = await bob.get("/v1/sessions?user=ana")
        looked = await eve.get(f"{session}/status?user=ana")
        touched = await eve.post(f"{session}/interrupt?user=ana", json={})
        mine = (await ana.get(f"{session}/status")).json()

    assert set(seen.values()) == {404}, seen
    assert set(done.values()) == {404}, done
    assert str(same[0]).replace(name, "never-begun") == str(same[1]), "nothing tells what is hidden from what is not"
    assert lists == [[name], [], [name]]
    assert [name in inbox for inbox in inboxes] == [True, False, True]
    assert (forbidden.status_code, looked.status_code, touched.status_code) == (403, 200, 403)
    assert mine["status"] == "waiting"


async def test_whoever_leads_a_team_sees_and_decides_what_its_users_ask(tmp_path: Path, served: Serving) -> None:
    """With a token that names them: it needs no sight of everybody's sessions."""
    hers, his = agent(tmp_path, WANTS_TO_EDIT, {"text": "Done."}), agent(tmp_path, WANTS_TO_EDIT, name="other")
    name, other = hers.rpartition("/")[2], his.rpartition("/")[2]
    async with served.client("ana") as ana, served.client("bob") as bob, served.client("lea") as lea:
        parked = await ana.post(f"{hers}/messages", json={"messages": "Greet"}, params={"wait": 30})
        await bob.post(f"{his}/messages", json={"messages": "Greet"}, params={"wait": 30})
        await listed(ana, name)
        await listed(bob, other)
        lists = [
            {one["session_id"] for one in (await lea.get(f"/v1/sessions{whose}")).json()["sessions"]}
            for whose in ("", "?user=ana", "?user=lea")
        ]
        inbox = (await lea.get("/v1/inbox")).json()["calls"]
        counted = (await lea.get("/v1/standing")).json()
        (call,) = [one["call"] for one in inbox if one["session"]["session_id"] == name]
        page = await lea.get("/console", headers={"Cookie": f"longhaul_token={TOKENS['lea']}"})
        decision = {"call_id": "edit-7", "decision": "allow", "digest": call["digest"]}
        allowed = await lea.post(f"{hers}/decisions?user=ana", json=decision)
        refused = [
            (await lea.get("/v1/sessions?user=bob")).status_code,
            (await lea.get("/v1/sessions?anonymous=true")).status_code,
            (await lea.get(f"{his}/status?user=bob")).status_code,
            (await lea.post(f"{his}/decisions?user=bob", json=decision)).status_code,
            (await lea.post(f"{hers}/messages?user=ana", json={"messages": "Hi"})).status_code,
        ]
        await finished(ana, f"{hers}/result/{parked.json()['reply_id']}")
        decided = (await ana.get(f"{hers}/status")).json()["decisions"]

    assert name in lists[0] & lists[1]
    assert other not in lists[0] | lists[1]
    assert lists[2] == set()
    assert other not in {one["session"]["session_id"] for one in inbox}
    assert counted["waiting"] >= 1
    assert f"/{name}/call?id=edit-7&amp;user=ana" in page.text
    assert allowed.status_code == httpx.codes.OK, allowed.text
    assert refused == [403, 403, 404, 404, 403]
    assert [(one["approver"], one["decision"]) for one in decided] == [("lea", "allow")]


async def test_ten_readers_see_the_same_and_are_told_when_the_server_ends(tmp_path: Path, served: Serving) -> None:
    session = agent(tmp_path, {"text": "Ask."}, {"text": "Forty-two is the answer.", "chunk_chars": 2, "delay_ms": 250})
    readers = [Reader() for _ in range(10)]
    async with served.client() as ana:
        await ana.post(f"{session}/messages", json={"messages": "Hello"})
        ways = [{"deltas": "true"}, {"deltas": "false"}]
        reading = [
            asyncio.create_task(reader.read(ana, f"{session}/events", params=ways[place % 2]))
            for place, reader in enumerate(readers)
        ]
        await asyncio.gather(*(reader.replied(1) for reader in readers))
        await ana.post(f"{session}/messages", json={"messages": "Say it"})
        await asyncio.gather(*(reader.replied(2) for reader in readers))
        served.process.send_signal(signal.SIGTERM)
        ends = await asyncio.gather(*reading)

    assert await served.process.wait() == 0
    assert {end.data["why"] for end in ends if end is not None} == {"shutdown"}
    assert {tuple(reader.recorded) for reader in readers} == {tuple(readers[0].recorded)}
    assert {reader.text for reader in readers} == {"Ask.Forty-two is the answer."}
    assert any(reader.live for reader in readers[::2])
    assert not any(reader.live for reader in readers[1::2]), "nobody has asked for them"


async def test_malformed_input_is_answered_with_what_to_do(tmp_path: Path, served: Serving) -> None:
    session = agent(tmp_path, WANTS_TO_EDIT)
    post = f"{session}/messages"
    as_json = {"Content-Type": "application/json"}
    async with served.client() as ana:
        sent = {
            "malformed": await ana.post(post, content=b'{"messages": ', headers=as_json),
            "not UTF-8": await ana.post(post, content=b'{"messages": "\xff"}', headers=as_json),
            "a list": await ana.post(post, content=b"[]", headers=as_json),
            "deep": await ana.post(post, content=b"[" * 100_000, headers=as_json),
            "a form": await ana.post(post, data={"messages": "Greet"}),
            "large": await ana.post(post, json={"messages": "x" * 3_000_000}),
            "unknown field": await ana.post(post, json={"message": "Greet"}),
            "unknown query": await ana.post(f"{post}?weight=3", json={"messages": "Greet"}),
            "twice": await ana.get(f"{session}/status?user=ana&user=bob"),
            "key": await ana.post(post, json={"messages": "Greet"}, headers={"Idempotency-Key": "k" * 2_000}),
            "nul": await ana.get("/v1/sessions/lamp/a%00b/status"),
            "no text": await ana.get("/v1/sessions/lamp/%ff/status"),
            "no number": await ana.get(f"{session}/events", headers={"Last-Event-ID": "-1"}),
            "no agent": await ana.post("/v1/sessions/nobody/x/messages", json={"messages": "Greet"}),
            "a path": await ana.post("/v1/sessions/..%2Fagents%2Flamp.toml/x/messages", json={"messages": "Greet"}),
            "no route": await ana.get("/v2"),
            "no method": await ana.put(post),
            "another's name": await ana.post(f"{session}/resume", json={"by": "bob"}),
            "host": await ana.get("/v1/sessions", headers={"Host": "rebound.example"}),
            "page": await ana.post(f"{session}/interrupt", headers={"Origin": "https://rebound.example"}),
            "no token": await ana.get("/v1/sessions", headers={"Authorization": "Bearer lh_zoe"}),
        }
        alive = [(await ana.get(path, headers={"Host": "10.0.0.7"})).status_code for path in ("/health", "/ready")]
        odd = agent(tmp_path, {"text": "Hello."}).rpartition("/")[0] + "/a%2Fb%20%E2%98%83"
        slashed = await ana.post(f"{odd}/messages", json={"messages": "Hi"}, params={"wait": 30})

    assert {what: answer.status_code for what, answer in sent.items()} == STATUSES
    for what, answer in sent.items():
        problem = answer.json()
        assert answer.headers["content-type"] == "application/problem+json", what
        assert answer.headers["x-content-type-options"] == "nosniff", what
        assert (problem["status"], bool(problem["detail"])) == (answer.status_code, True), what
        assert re.fullmatch(r"urn:longhaul:[a-z-]+", problem["type"]), what
    assert alive == [200, 200]
    assert slashed.json()["message"]["content"][0]["text"] == "Hello."


STATUSES = {
    "malformed": 400,
    "not UTF-8": 400,
    "a list": 422,
    "deep": 400,
    "a form": 415,
    "large": 413,
    "unknown field": 422,
    "unknown query": 422,
    "twice": 422,
    "key": 422,
    "nul": 422,
    "no text": 422,
    "no number": 422,
    "no agent": 404,
    "a path": 404,
    "no route": 404,
    "no method": 405,
    "another's name": 422,
    "host": 421,
    "page": 403,
    "no token": 401,
}


async def test_without_tokens_only_this_machine_is_served(tmp_path: Path, desk: dict[str, str]) -> None:
    open_to_all = desk | {"LONGHAUL_SERVE_TOKENS": ""}
    session = agent(tmp_path, {"text": "Hello."})
    async with serving(tmp_path, open_to_all) as one, httpx.AsyncClient(base_url=one.url, trust_env=False) as anybody:
        said = await anybody.post(
            f"{session}/messages", json={"messages": "Hi"}, params={"wait": 30}, timeout=SURE_SECONDS
        )
    refused = await asyncio.create_subprocess_exec(
        *CLI, "serve", "--host", "::", "--port", "0", env=open_to_all, cwd=tmp_path, stderr=asyncio.subprocess.PIPE
    )
    _, complaint = await refused.communicate()

    assert said.json()["status"] == "finished"
    assert refused.returncode == 2
    assert b"without tokens only this machine is served" in complaint


async def test_a_reply_in_a_form_is_asked_for_by_http(tmp_path: Path, served: Serving) -> None:
    line = {"tool_calls": [{"name": "generate_response", "input": {"height": 3.5}}]}
    session = agent(tmp_path, line, name="tide-form")
    schema = {"type": "object", "properties": {"height": {"type": "number"}}}
    async with served.client() as client:
        body = {"messages": "How high?", "structured_schema": {"type": "array"}}
        refused = await client.post(f"{session}/messages", json=body)
        body["structured_schema"] = schema
        told = await client.post(f"{session}/messages?wait=30", json=body)

    assert refused.status_code == 422
    assert "structured_schema: $.type: 'array' can't be answered" in refused.text
    assert (told.status_code, told.json()["message"]["metadata"]) == (200, {"height": 3.5})


async def test_whoever_sees_nothing_is_told_whose_sessions_they_do_not_see(
    tmp_path: Path, cli_environment: dict[str, str], app: Longhaul
) -> None:
    """A session begun without a user is nobody's: its beginner's token does not find it."""
    await app.session(f"nobodys-{uuid4().hex[:6]}", agent=AgentSpec(name="lamp", model="scripted:none")).observe("Hi.")
    session = agent(tmp_path, WANTS_TO_EDIT)
    environment = cli_environment | {"LONGHAUL_SERVE_TOKENS": str(tokens_file(tmp_path)), "LONGHAUL_TRUST": "1"}
    async with serving(tmp_path, environment) as server, server.client("bob") as bob, server.client("eve") as eve:
        async with asyncio.timeout(SURE_SECONDS):  # the server's index is a moment late
            while True:
                if "without a user: 0" not in (await bob.get("/v1/inbox?tool=Nothing")).json()["note"]:
                    break
                await asyncio.sleep(0.1)
        listed = (await bob.get("/v1/sessions", params={"session": "nowhere"})).json()
        inbox = (await bob.get("/v1/inbox", params={"tool": "Nothing"})).json()
        missing = await bob.get(f"{session}/status")
        of_an_operator = (await eve.get("/v1/sessions", params={"session": "nowhere"})).json()
        signed_in = {"Cookie": f"longhaul_token={TOKENS['bob']}"}
        page = (await bob.get("/console/sessions?text=nowhere", headers=signed_in)).text

    hint = "this token sees the sessions of user 'bob' only; sessions of others, and those without a user"
    assert listed["note"].startswith(hint)
    assert re.search(r"open sessions without a user: [1-9]\d*$", inbox["note"])
    assert inbox["note"].startswith(hint)
    assert (missing.status_code, hint in missing.json()["detail"]) == (404, True)
    assert (of_an_operator["total"], of_an_operator["note"]) == (0, "")
    assert "those without a user" in page


async def test_what_a_sub_agent_asks_is_listed_and_decided_at_its_lead(tmp_path: Path, served: Serving) -> None:
    task = {"id": "t1", "name": "Agent", "input": {"agent": "scout", "task": "Greet the moon"}}
    script = tmp_path / "scout.jsonl"
    script.write_text("\n".join(json.dumps(line) for line in (WANTS_TO_EDIT, {"text": "Greeted."})))
    below = f'[agents.scout]\nmodel = "scripted:{script}"\ntools = ["Edit"]\n'
    session = agent(tmp_path, {"tool_calls": [task]}, {"text": "Done."}, more=below)
    allow = {"call_id": "edit-7", "decision": "allow"}

    async with served.client() as ana:
        asked = (await ana.post(f"{session}/messages", params={"wait": 60}, json={"messages": "Go"})).json()
        (waiting,) = (await ana.get(f"{session}/pending")).json()["calls"]
        unseen = await ana.post(f"{session}/decisions", json=allow)
        other = await ana.post(f"{session}/decisions", json=allow | {"digest": "0" * len(waiting["digest"])})
        decided = await ana.post(f"{session}/decisions", json=allow | {"digest": waiting["digest"]})
        end = await finished(ana, f"{session}/result/{asked['reply_id']}")

    assert (asked["status"], asked["message"]["metadata"]["waiting_for"]) == ("waiting", ["edit-7"])
    assert waiting["path"] == "lamp › scout › Edit"
    assert (waiting["at"]["agent"], waiting["at"]["session_id"]) == ("scout", f"{session.rsplit('/', 1)[1]}.t1")
    assert (unseen.status_code >= 400, other.status_code >= 400, decided.status_code) == (True, True, 200)
    assert end["message"]["content"][-1]["text"] == "Done."
    assert (tmp_path / "greeting.txt").read_text() == "hello moon\n"
