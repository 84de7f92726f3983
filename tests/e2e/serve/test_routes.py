"""Every route of `longhaul serve`: what it gives when all is well, and that it refuses malformed input."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import pytest
from jsonschema import Draft202012Validator

from longhaul.agent.values.hubs import MOST_HUBS
from longhaul.starter.serve.openapi import document
from longhaul.starter.serve.requests import Operation
from longhaul.starter.serve.routes import OPERATIONS
from tests.e2e.serve.test_sessions import agent, listed
from tests.e2e.serving import Reader, Serving, serving, tokens_file
from tests.limits import SURE_SECONDS

pytestmark = pytest.mark.server

NAMED = {one.name: one for one in OPERATIONS}
EDIT = {"file_path": "greeting.txt", "old_string": "world", "new_string": "moon"}
WANTS_TO_EDIT = {"text": "I will.", "tool_calls": [{"id": "edit-7", "name": "Edit", "input": EDIT}]}
ASKS_OUTSIDE = {"tool_calls": [{"id": "price-1", "name": "price_of", "input": {"article": "a lamp"}}]}
ENGRAVES = {"tool_calls": [{"id": "ring-1", "name": "engrave", "input": {"text": "Ana"}}]}
BODIES: dict[str, dict[str, Any]] = {
    "notify": {"event": "dusk"},
    "message": {"messages": "Greet"},
    "decide": {"call_id": "edit-7", "decision": "deny"},
    "decideAll": {"calls": [{"call_id": "edit-7", "digest": "none"}], "decision": "deny"},
    "externalResults": {"results": [{"id": "edit-7", "output": "x"}]},
    "resolve": {"call_id": "edit-7", "happened": True},
    "observe": {"messages": "The sun sets."},
    "configure": {"max_iters": 7},
    "changeBudget": {"more": {"calls": 5}},
    "replaceState": {"state": {"context": []}},
    "editState": {"changes": {"summary": "Nothing yet."}},
    "copy": {"session": "another"},
    "addSchedule": {"name": "nightly", "prompt": "Look"},
    "beginHub": {"name": "club", "members": [{"session": "ana-1"}]},
    "sayInHub": {"messages": "Hello"},
    "joinHub": {"members": [{"session": "ana-1"}]},
    "leaveHub": {"members": ["ana-1"]},
    "forget": {"all": True},
    "discard": {"base": "harbour", "all": True},
}


NIGHTLY = "routes-nightly"
CLUB = "routes-club"


@cache
def described() -> dict[str, Any]:
    """The page of OpenAPI; not made by each process that only collects these tests."""
    return document(OPERATIONS)


@dataclass
class Caller:
    """Who calls routes by their names, and checks what comes back against the document."""

    client: httpx.AsyncClient
    session: str
    called: set[str] = field(default_factory=set[str])

    async def __call__(self, name: str, body: Any = None, /, *, status: int = 0, reply: str = "", **query: Any) -> Any:
        operation = NAMED[name]
        url = path_of(operation, self.session, reply)
        answer = await self.client.request(operation.method, url, json=body, params=query)
        assert answer.status_code == (status or min(operation.answers)), (name, answer.text)
        self.called.add(name)
        model = operation.answers[answer.status_code]
        if not isinstance(model, type):
            return None
        responses = described()["paths"][operation.path][operation.method.lower()]["responses"]
        schema = responses[str(answer.status_code)]["content"]["application/json"]["schema"]
        Draft202012Validator({**schema, "components": described()["components"]}).validate(answer.json())
        return answer.json()


def path_of(operation: Operation, session: str, reply: str = "none") -> str:
    path = operation.path.replace("/v1/sessions/{agent}/{session}", session)
    return path.replace("{reply_id}", reply).replace("{schedule}", NIGHTLY).replace("{hub}", CLUB)


@pytest.fixture
async def served(tmp_path: Path, worker: int, cli_environment: dict[str, str]) -> AsyncIterator[Serving]:
    assert worker
    (tmp_path / "greeting.txt").write_text("hello world\n")
    async with serving(
        tmp_path, cli_environment | {"LONGHAUL_SERVE_TOKENS": str(tokens_file(tmp_path)), "LONGHAUL_TRUST": "1"}
    ) as one:
        yield one


async def test_each_route_answers_as_the_document_says(tmp_path: Path, served: Serving) -> None:
    may_ask_outside = (
        'tools = ["Edit", "price_of"]\n[[permission.rules]]\ntool_name = "price_of"\n[budget]\nmax_calls = 90'
    )
    session = agent(tmp_path, WANTS_TO_EDIT, ASKS_OUTSIDE, {"text": "Done."}, more=may_ask_outside)
    async with served.client() as client:
        ask = Caller(client, session)
        await asyncio.gather(ask("health"), ask("ready"))
        taken = await ask("message", {"messages": "Greet", "context": {"ticket": 7}}, status=200, wait=30)
        (call,) = (await ask("pending"))["calls"]
        await listed(client, session.rpartition("/")[2])
        await asyncio.gather(ask("inbox"), ask("standing"), ask("lastDay"))
        await asyncio.gather(ask("tools"), ask("tasks"), ask("wouldPass", call_id="edit-7"))
        await ask("decide", {"call_id": "edit-7", "decision": "allow", "digest": call["digest"]})
        reader = Reader()
        async with asyncio.timeout(SURE_SECONDS):
            await reader.read(client, f"{session}/events", until="REQUIRE_EXTERNAL_EXECUTION")
        ask.called.add("events")
        await ask("externalResults", {"results": [{"id": "price-1", "output": "7 francs"}]})
        await reader.read(client, f"{session}/events", last=reader.recorded[-1], params={"until": taken["reply_id"]})
        found = await ask("result", reply=taken["reply_id"])
        await stand_and_go_on(ask)
        await change(ask)
        parts = [await ask(name, limit=2) for name in ("transcript", "context", "history")]
        rest = (await client.get(f"{session}/history?from=2")).json()
        await look_at_pages_and_workers(ask, served, [*parts[2]["events"], *rest["events"]])
        await keep(ask)

    others = (
        await one_outcome_unknown(tmp_path, served)
        | await decided_together(tmp_path, served)
        | await what_lasts(served)
    )

    assert found["message"]["content"][-1]["text"] == "Done."
    assert reader.recorded == list(range(1, len(reader.recorded) + 1))
    assert [part["next"] for part in parts] == [2, 2, 2]
    assert rest["events"][0]["seq"] >= parts[2]["events"][-1]["seq"]
    assert ask.called | others == set(NAMED)


async def look_at_pages_and_workers(ask: Caller, served: Serving, steps: list[Any]) -> None:
    """The same steps in pages of three that each begin at an entry; who works, for eve; and what is asked at times."""
    found = list[Any]()
    asked: dict[str, Any] = {"entry": 1, "limit": 3}
    while asked:
        page = await ask("history", **asked)
        found += page["events"]
        asked = {} if page["next"] is None else {"entry": page["entry"], "from": page["next"], "limit": 3}
    await ask("sessions")
    assert (await ask("run"))["spans"]
    async with served.client("eve") as eve:
        working = await Caller(eve, ask.session, ask.called)("workers")

    await at_times(ask, served)
    await in_a_hub(ask, served)
    assert found == steps
    assert [one["store"] for one in working["workers"]]


async def one_outcome_unknown(tmp_path: Path, served: Serving) -> set[str]:
    """A call of which somebody has to say whether it happened."""
    more = 'tools = ["engrave"]\non_unknown_outcome = "ask"\n[permission]\nmode = "bypass"'
    session = agent(tmp_path, ENGRAVES, {"text": "I see."}, name="smith", more=more)
    async with served.client() as client:
        ask = Caller(client, session)
        await ask("message", {"messages": "Engrave"}, status=200, wait=30)
        await ask("resolve", {"call_id": "ring-1", "happened": False})
    return ask.called


async def decided_together(tmp_path: Path, served: Serving) -> set[str]:
    session = agent(tmp_path, WANTS_TO_EDIT, {"text": "Never mind."}, name="twin")
    async with served.client() as client:
        ask = Caller(client, session)
        await ask("message", {"messages": "Greet"}, status=200, wait=30)
        (call,) = (await ask("pending"))["calls"]
        await ask("decideAll", {"calls": [{"call_id": "edit-7", "digest": call["digest"]}], "decision": "deny"})
    return ask.called


async def what_lasts(served: Serving) -> set[str]:
    """Memories of one's own, and the bases, which are the operator's."""
    async with served.client() as ana, served.client("max") as operator:
        own, all_bases = Caller(ana, ""), Caller(operator, "")
        assert await own("memories", query="tides") == {"memories": []}
        assert await own("forget", {"all": True}) == {"deleted": 0}
        assert await all_bases("documents") == {"documents": []}
        assert await all_bases("passages", base="harbour", query="tides") == {"passages": []}
        assert await all_bases("discard", {"base": "harbour", "documents": ["tides.md"]}) == {"deleted": 0}
        for path in ("knowledge", "knowledge/passages", "memories?user=ben", "memories?anonymous=true"):
            assert (await ana.get(f"/v1/{path}")).status_code == httpx.codes.FORBIDDEN, path
    return own.called | all_bases.called


async def stand_and_go_on(ask: Caller) -> None:
    """Paused with a request that waits, which is dropped; one step of another one, and on."""
    assert (await ask("pause", {"why": "the tide"})) == {"changed": True}
    waiting = await ask("message", {"messages": "Again"}, status=202)
    status = await ask("status")
    assert (status["status"], status["paused_by"], status["paused_why"]) == ("paused", "ana", "the tide")
    assert (await ask("interrupt", {"reply_id": waiting["reply_id"]}))["interrupted"] == waiting["reply_id"]
    await ask("message", {"messages": "Once more"}, status=202)
    assert (await ask("step", {})) == {"changed": True}
    await ask("resume", {})


async def change(ask: Caller) -> None:
    await ask("observe", {"messages": "The sun sets."})
    assert (await ask("notify", {"event": "dusk", "payload": "at 6"})) == {"woken": False}
    await ask("configure", {"max_iters": 7})
    assert (await ask("changeBudget", {"more": {"calls": 9}})) == {"limits": {"calls": 99.0}}
    rule = {"tool_name": "Bash", "rule_content": "make:*", "behavior": "allow"}
    (added,) = (await ask("changeRules", {"add": [rule]}))["added"]
    assert added in [one["id"] for one in (await ask("rules"))["rules"]]
    assert (await ask("compact", {})) == {"compacted": False}
    assert (await ask("stopBackground", {})) == {"ends": {}}


async def at_times(ask: Caller, served: Serving) -> None:
    """A schedule that never fires by itself, in the name of who has added it."""
    await ask("sessions")
    agent_name = ask.session.split("/")[-2]
    new = {"name": NIGHTLY, "agent": agent_name, "prompt": "Look at it", "cron": "0 7 * * *", "zone": "Europe/Berlin"}
    added = await ask("addSchedule", {**new, "paused": True})
    assert (added["terms"]["user"], added["paused"]) == ("ana", True)
    assert (await ask.client.post("/v1/schedules", json=new)).status_code == 422
    assert (await ask.client.post("/v1/schedules", json={**new, "agent": "nobody"})).status_code == 404
    async with served.client("bob") as bob:
        assert (await bob.get("/v1/schedules")).json() == {"schedules": []}
        assert (await bob.get(f"/v1/schedules/{NIGHTLY}")).status_code == 404
        assert (await bob.post(f"/v1/schedules/{NIGHTLY}/remove")).status_code == 404
    await ask("resumeSchedule")
    await ask("pauseSchedule", {"why": "holidays"})
    fired = await ask("triggerSchedule")
    assert (fired["state"], fired["session"].startswith(f"{NIGHTLY}-20")) == ("asked", True)
    async with asyncio.timeout(SURE_SECONDS):
        while not (await ask("schedules"))["schedules"]:  # noqa: ASYNC110  the server lists it in a moment
            await asyncio.sleep(0.1)
    assert (await ask("schedule"))["schedule"]["note"] == "holidays"
    await ask("removeSchedule")
    assert (await ask.client.get(f"/v1/schedules/{NIGHTLY}")).status_code == 404


async def in_a_hub(ask: Caller, served: Serving) -> None:
    """Two sessions of who begins it; nobody else finds it, or gets another session in."""
    agent_name, session = ask.session.split("/")[-2:]
    first, second = {"agent": agent_name, "session": session}, {"agent": agent_name, "session": f"{session}-two"}
    new = {"name": CLUB, "members": [{**first, "name": "host"}], "announcement": "Welcome"}
    started = [await ask("beginHub", {**new, "request_id": "welcome"}) for _ in range(2)]
    assert [[word["text"] for word in card["newest"]] for card in started] == [["Welcome"]] * 2
    assert [one["name"] for one in (await ask("joinHub", {"members": [second]}))["members"]] == [
        "host",
        second["session"],
    ]
    assert await ask("sayInHub", {"messages": "Vote", "request_id": "vote"}) == await ask(
        "sayInHub", {"messages": "Vote", "request_id": "vote"}
    )
    async with served.client("bob") as bob:
        assert (await bob.get("/v1/hubs")).json() == {"hubs": []}
        for path, body in (("", None), ("/say", BODIES["sayInHub"]), ("/leave", {"members": ["host"]}), ("/end", None)):
            method = "POST" if path else "GET"
            assert (await bob.request(method, f"/v1/hubs/{CLUB}{path}", json=body)).status_code == 404, path
            assert (await bob.request(method, f"/v1/hubs/{CLUB}{path}?user=ana", json=body)).status_code == 404, path
    async with asyncio.timeout(SURE_SECONDS):
        while (await ask("hubs"))["hubs"] != [{"name": CLUB, "user": "ana"}]:  # noqa: ASYNC110  as above
            await asyncio.sleep(0.1)
    nobody = {"members": [{"agent": "nobody", "session": "x"}]}
    assert (await ask.client.post(f"/v1/hubs/{CLUB}/join", json=nobody)).status_code == 404
    assert (await ask.client.post("/v1/hubs", json={**new, "name": "no spaces"})).status_code == 422
    assert (await ask.client.post("/v1/hubs", json={**new, "members": [first, first]})).status_code == 422
    assert (await ask.client.post(f"/v1/hubs/{CLUB}/leave", json={"members": ["cook"]})).status_code == 409
    await in_too_many_hubs(ask, {"agent": agent_name, "session": f"{session}-three"}, second)
    left = await ask("leaveHub", {"members": [second["session"]]})
    assert "Vote" in [word["text"] for word in left["newest"]]
    assert (await ask("hub"))["name"] == CLUB
    await ask("endHub")
    gone = await ask.client.post(f"/v1/hubs/{CLUB}/say", json=BODIES["sayInHub"])
    assert gone.status_code in (404, 409), "it may still be telling its members that it is over"


async def in_too_many_hubs(ask: Caller, one: dict[str, str], other: dict[str, str]) -> None:
    """Who begins a hub is told of the session that refuses, and why."""
    for number in range(MOST_HUBS):
        (await ask.client.post("/v1/hubs", json={"name": f"{CLUB}-{number}", "members": [one]})).raise_for_status()
    out = await ask.client.post("/v1/hubs", json={"name": f"{CLUB}-more", "members": [other, one]})
    assert out.status_code == 409
    assert f"{one['session']} was put out: Refused: hub: this session is in 10 hubs" in out.json()["detail"]


async def keep(ask: Caller) -> None:
    """The state out and in, changed in a place, and in another session."""
    await ask("editState", {"changes": {"summary": "The moon was greeted."}, "why": "told again"})
    state = await ask("state")
    assert state["summary"] == "The moon was greeted."
    name = f"{ask.session.rpartition('/')[2]}-copy"
    copied = await ask("copy", {"session": name})
    assert copied["session_id"] == name
    assert "same files" in copied["files"]
    other = Caller(ask.client, f"{ask.session}-import", ask.called)
    await other("replaceState", {"state": state, "why": "moved"})
    assert (await other("state"))["summary"] == "The moon was greeted."


async def test_each_route_refuses_malformed_input(tmp_path: Path, served: Serving) -> None:
    session = agent(tmp_path, WANTS_TO_EDIT)
    async with served.client("ana") as ana, served.client("max") as operator:
        await ana.post(f"{session}/messages", json={"messages": "Greet"}, params={"wait": 30})

        async def status(one: Operation, query: str = "", body: Any = None) -> int:
            usual = BODIES.get(one.name, {}) if one.method == "POST" else None
            client = operator if "admin" in (one.scope, one.also) else ana
            answer = await client.request(one.method, path_of(one, session) + query, json=body or usual)
            assert answer.json()["type"].startswith("urn:longhaul:"), one.name
            return answer.status_code

        malformed_input = {one.name: await status(one, "?weight=3") for one in OPERATIONS}
        method = {one.name: (await ana.delete(path_of(one, session))).status_code for one in OPERATIONS}
        unread = {one.name: await status(one, body={"weight": 3}) for one in OPERATIONS if one.body is not None}
        mine = (await ana.get(f"{session}/status")).json()

    assert set(malformed_input.values()) == {422}, malformed_input
    assert set(method.values()) == {405}, method
    assert set(unread.values()) == {422}, unread
    assert (mine["status"], mine["refused"]) == ("waiting", 0)


@pytest.mark.proves("E8")
async def test_words_by_http_reach_a_reply_in_its_midst_and_tools_get_their_context(
    tmp_path: Path, served: Serving
) -> None:
    session = agent(
        tmp_path,
        {"tool_calls": [{"name": "ticket"}, {"id": "edit-7", "name": "Edit", "input": EDIT}]},
        {"text": "Heard.", "expect": {"last_contains": "Leave it."}},
        {"text": "Later.", "expect": {"last_contains": "Good night."}},
        more='tools = ["Edit", "ticket"]',
    )
    async with served.client() as ana:
        first = await ana.post(
            f"{session}/messages", json={"messages": "Greet", "context": {"ticket": 4711}}, params={"wait": 30}
        )
        queued = await ana.post(f"{session}/messages", json={"messages": "Never mind."})
        dropped = await ana.post(f"{session}/messages", json={"messages": "Good night.", "request_id": "night"})
        now = await ana.post(f"{session}/messages", json={"messages": "Leave it.", "when": "now"})
        wrong = await ana.post(f"{session}/messages", json={"messages": "x", "when": "soon"})
        large = await ana.post(f"{session}/messages", json={"messages": "x", "context": {"all": "x" * 5_000}})
        gone = await ana.post(f"{session}/interrupt", json={"reply_id": queued.json()["reply_id"]})
        waiting = (await ana.get(f"{session}/status")).json()["requests"]
        await ana.post(f"{session}/decisions", json={"call_id": "edit-7", "decision": "deny"})
        reader = Reader()
        await reader.read(ana, f"{session}/events", params={"until": dropped.json()["reply_id"]})
        joined = (await ana.get(f"{session}/result/{now.json()['reply_id']}")).json()

    assert first.json()["status"] == "waiting"
    assert [one["when"] for one in waiting] == ["now", "queue"]
    assert [one.get("joins", False) for one in waiting] == [True, False]
    assert (wrong.status_code, wrong.json()["errors"][0]["field"]) == (422, "when")
    assert (large.status_code, gone.status_code) == (422, 200)
    assert joined["message"]["id"] == first.json()["reply_id"]
    said = json.dumps(joined["message"]["content"])
    assert "ticket 4711" in said
    assert "Heard." in said
    assert reader.text == "Heard.Later."
