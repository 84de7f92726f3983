"""A running `longhaul serve` against its own users: each of them has a token that is good for something, and asks for
what is another's, by every route (tests/starter/serve/who_may.py), page and tool."""

import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl
from uuid import uuid4

import httpx
import pytest

from longhaul.starter.serve.mcp_tools import TOOLS
from longhaul.starter.serve.routes import OPERATIONS
from longhaul.starter.serve.tokens import SCOPES, digest_of
from longhaul.stores.memories.memories import MemoryOwner, NewMemory
from longhaul.stores.memories.open_memories import open_memories
from tests.e2e.serve.test_routes import BODIES
from tests.e2e.serve.test_sessions import agent, listed
from tests.e2e.serving import serving
from tests.limits import SURE_SECONDS
from tests.starter.serve.who_may import ROWS, Row

pytestmark = pytest.mark.server

SECRET = "pelican"
MARK = uuid4().hex[:8]
ANA, BOB = f"ana.{MARK}", f"bob.{MARK}"
NOT_ADMIN: list[str] = [scope for scope in SCOPES if scope != "admin"]
PEOPLE: dict[str, tuple[str, list[str]]] = {
    "bob": (BOB, NOT_ADMIN),
    "ana": (ANA, NOT_ADMIN),
    "eve": (f"eve.{MARK}", ["read", "admin"]),
    **{f"ana-without-{scope}": (ANA, [other for other in NOT_ADMIN if other != scope]) for scope in NOT_ADMIN},
}
"""Who has each token, and what it is good for."""
TOKENS = {name: f"lh_{name}_{MARK}" for name in PEOPLE}
BODY_OF = {f"{one.method} {one.path}": BODIES.get(one.name, {}) for one in OPERATIONS}
FORM = dict(
    parse_qsl(
        "agent=lead&session=x&text=hi&call_id=w-1&decision=deny&happened=yes&event=dusk&output=x&id=r&every=yes&call-0=none+w-1"
    )
)
MCP = {"Accept": "application/json, text/event-stream"}


@dataclass(frozen=True)
class Ana:
    """What is hers at a server."""

    url: str
    lead: str
    scribe: str
    """A sub-agent of that session, which waits for somebody."""
    schedule: str
    hub: str
    memory: str

    def client(self, name: str) -> httpx.AsyncClient:
        """Of whoever has that token, as a program and as a browser."""
        headers = {"Authorization": f"Bearer {TOKENS[name]}", "Cookie": f"longhaul_token={TOKENS[name]}"}
        return httpx.AsyncClient(
            base_url=self.url, headers={**headers, "Origin": self.url}, timeout=SURE_SECONDS, trust_env=False
        )

    def places(self, row: Row) -> Iterator[tuple[str, str]]:
        """Paths to what is hers, and to what would look the same and is nobody's."""
        found = [{"agent": "lead", "session": self.lead}, {"agent": "scribe", "session": self.scribe}]
        for names in found if "{session}" in row.path else found[:1]:
            hers = {**names, "schedule": self.schedule, "hub": self.hub}
            yield row.at(**hers), row.at(**{kind: self.as_nobodys(name) for kind, name in hers.items()})

    def as_nobodys(self, text: str) -> str:
        """With other names, of the same form, in the place of hers."""
        for name in (self.lead, self.scribe, self.schedule, self.hub):
            text = text.replace(name, name[::-1])
        return text

    async def standing(self) -> Any:
        """All that somebody could have changed."""
        async with self.client("ana") as ana:
            sessions = f"/v1/sessions/lead/{self.lead}", f"/v1/sessions/scribe/{self.scribe}"
            paths = [f"{path}/{part}" for path in sessions for part in ("status", "pending", "transcript", "rules")]
            paths += [f"/v1/schedules/{self.schedule}", f"/v1/hubs/{self.hub}", "/v1/memories"]
            return {path: (await ana.get(path)).raise_for_status().json() for path in paths}


@asynccontextmanager
async def of_ana(folder: Path, environment: dict[str, str]) -> AsyncIterator[Ana]:
    file = folder / "tokens"
    file.touch(0o600)
    file.write_text(
        "\n".join(f"{digest_of(TOKENS[name])} {user} {','.join(may)}" for name, (user, may) in PEOPLE.items())
    )
    writes = {"tool_calls": [{"id": "w-1", "name": "Write", "input": {"file_path": "moon", "content": SECRET}}]}
    agent(folder, writes, name="scribe", more='tools = ["Write"]')
    task = {"tool_calls": [{"id": "t1", "name": "Agent", "input": {"agent": "scribe", "task": SECRET}}]}
    model = (folder / "agents" / "scribe.toml").read_text().splitlines()[0]
    agent(folder, task, name="lead", more=f'tools = []\n[agents.scribe]\n{model}\ntools = ["Write"]')
    memories = open_memories("sqlite", Path(environment["LONGHAUL_DATA_DIR"]))
    await memories.record(MemoryOwner(ANA, "lead"), [NewMemory("k", SECRET, "x")])
    ((memory,), lead) = await memories.list_memories(MemoryOwner(ANA, None), 9), f"lead-{MARK}"
    await memories.close()
    async with serving(folder, environment | {"LONGHAUL_SERVE_TOKENS": str(file), "LONGHAUL_TRUST": "1"}) as one:
        there = Ana(one.url, lead, "", f"dusk-{MARK}", f"club-{MARK}", memory.id)
        async with there.client("ana") as ana:
            await ana.post(f"/v1/sessions/lead/{lead}/messages", json={"messages": SECRET})
            new = {"name": there.schedule, "agent": "lead", "prompt": SECRET, "cron": "0 7 * * *", "paused": True}
            (await ana.post("/v1/schedules", json=new)).raise_for_status()
            await listed(ana, "scribe")
            member = {"members": [{"agent": "lead", "session": lead}], "announcement": SECRET}
            (await ana.post("/v1/hubs", json={"name": there.hub, **member})).raise_for_status()
            (waiting,) = (await ana.get("/v1/inbox")).json()["calls"]
        yield Ana(**{**vars(there), "scribe": waiting["session"]["session_id"]})
        log = one.log.read_text()
        assert not [name for name, token in TOKENS.items() if token in log]


@pytest.fixture(scope="module")
async def hers(
    worker: int, cli_environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Ana]:
    """After each test all of it has to be as it was."""
    assert worker
    async with of_ana(tmp_path_factory.mktemp("authorisation"), cli_environment) as ana:
        yield ana


@pytest.fixture(autouse=True)
async def untouched(hers: Ana) -> AsyncIterator[None]:
    before = await hers.standing()
    yield
    assert await hers.standing() == before


def said(answer: httpx.Response) -> str:
    """The text of an answer, without the moment at which a page was made."""
    assert SECRET not in answer.text
    return re.sub(r'data-now="\d+"', "", answer.text)


async def form_of(client: httpx.AsyncClient) -> dict[str, str]:
    """Filled in, with the key that its owner was shown."""
    start = (await client.get("/console/sessions")).text
    return {**FORM, "form_key": start.partition('name="form_key" value="')[2].partition('"')[0]}


async def test_what_is_anothers_is_told_of_as_what_is_not_there(hers: Ana) -> None:
    """With and without its owner's name in the address. Without it a session's name means one's own, so that such a
    path is only read here."""
    async with hers.client("bob") as bob:
        form = await form_of(bob)
        for row in (row for row in ROWS if re.search("{(session|schedule|hub)}", row.path)):
            body = {"data": form} if row.is_page else {"json": BODY_OF[f"{row.method} {row.path}"]}
            sent: dict[str, Any] = body if row.method == "POST" else {"headers": {"Last-Event-ID": "0"}}
            may_begin = row.method == "POST" and "{session}" in row.path
            for there, nowhere in hers.places(row):
                for query in (f"?user={ANA}", "?anonymous=true", *(() if may_begin else ("",))):
                    real, none = [await bob.request(row.method, place + query, **sent) for place in (there, nowhere)]
                    assert (real.status_code, none.status_code) == (404, 404), (row, query)
                    assert hers.as_nobodys(said(real)) == said(none), (row, query)


async def test_no_list_or_search_tells_of_anothers(hers: Ana) -> None:
    """`peli`: pages show what was looked for."""
    searches = ("", f"session={hers.lead}", "agent=scribe", "text=peli", "tool=Write", "status=waiting", "limit=1000")
    hostile = ("session=' OR LonghaulUser != '", "tool=') OR ('1'='1", f"query={SECRET}", "team=%22%20OR%20%22")
    async with hers.client("bob") as bob:
        for row in (row for row in ROWS if row.method == "GET" and row.scopes == ("read",) and "{" not in row.path):
            answers = [await bob.get(f"{row.path}?{query}") for query in (*searches, *hostile)]
            found = "".join(said(answer) for answer in answers if answer.status_code == httpx.codes.OK)
            assert not [name for name in (hers.lead, hers.schedule, hers.hub, ANA) if name in found], row
            assert {answer.status_code for answer in answers} <= {200, 422}, row
            for whose in (f"user={ANA}", "anonymous=true", "user="):
                others = await bob.get(f"{row.path}?{whose}")
                assert others.status_code == (200 if row.path == "/console/start" else 403), (row, whose)
                assert hers.lead not in said(others)


async def test_nothing_is_started_or_deleted_in_anothers_name(hers: Ana) -> None:
    bodies: dict[str, dict[str, Any]] = {
        "/v1/schedules": {"name": f"bobs-{MARK}", "agent": "lead", "prompt": "x", "every": 60, "session": hers.lead},
        "/v1/hubs": {"name": f"bobs-{MARK}", "members": [{"agent": "lead", "session": hers.lead}]},
        "/v1/memories/delete": {"all": True},
    }
    async with hers.client("bob") as bob:
        for path, body in bodies.items():
            for whose in (f"?user={ANA}", "?anonymous=true"):
                assert (await bob.post(path + whose, json=body)).status_code == httpx.codes.FORBIDDEN, path
            named = await bob.post(path, json={**body, "user": ANA})
            assert named.status_code == httpx.codes.UNPROCESSABLE_ENTITY, path
        deleted = await bob.post("/v1/memories/delete", json={"ids": [hers.memory]})
        everything = await bob.post("/v1/memories/delete", json={"all": True})
        started = await bob.post(f"/console/start?user={ANA}", data={**await form_of(bob), "session": hers.lead})
        taken = await bob.post("/v1/schedules", json={**bodies["/v1/schedules"], "name": hers.schedule})

    assert (deleted.json(), everything.json()) == ({"deleted": 0}, {"deleted": 0})
    assert started.status_code == httpx.codes.NOT_FOUND
    assert taken.status_code == httpx.codes.UNPROCESSABLE_ENTITY
    assert ANA not in said(taken)


async def test_each_form_wants_each_of_its_scopes(hers: Ana) -> None:
    """Of one's own session. A form that somebody else was shown counts as little as none."""
    async with hers.client("bob") as bob:
        anothers = await form_of(bob)
    for row in (row for row in ROWS if row.is_page and row.method == "POST" and not row.is_open):
        place = row.at(agent="scribe", session=hers.scribe)
        for scope in row.scopes:
            async with hers.client(f"ana-without-{scope}") as ana:
                own = await ana.post(place, data=await form_of(ana))
                forged = await ana.post(place, data=anothers)
            assert (own.status_code, forged.status_code) == (403, 403), (row, scope)
    async with hers.client("eve") as eve:
        looked_at = (await eve.get(f"/v1/sessions/scribe/{hers.scribe}/pending?user={ANA}")).json()["calls"]

    assert len(looked_at) == 1


async def test_no_tool_of_mcp_reaches_what_is_anothers(hers: Ana) -> None:
    usual = {"text": "hi", "call_id": "w-1", "decision": "deny", "request_id": MARK, "user": ANA, "agent": "lead"}

    async def told(client: httpx.AsyncClient, tool: str, session: str) -> str:
        wanted = TOOLS[tool].arguments.model_fields
        given = {name: value for name, value in {**usual, "session": session}.items() if name in wanted}
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": given}}
        result = (await client.post("/mcp", json=call, headers=MCP)).json()["result"]
        assert result["isError"], result
        return str(result["content"][0]["text"])

    async with hers.client("bob") as bob, hers.client("eve") as eve:
        for tool, row in TOOLS.items():
            real, none = await told(bob, tool, hers.lead), await told(bob, tool, hers.as_nobodys(hers.lead))
            assert hers.as_nobodys(real) == none
            assert "there is no open session" in real or "need a token with the scope 'admin'" in real, tool
            assert row.reads or f"scope {row.scope!r}" in await told(eve, tool, hers.lead), tool


async def test_a_name_is_never_more_than_a_name(hers: Ana) -> None:
    """Nor is that of an agent, before a session's name that is hers."""
    odd = ("..", ".%2f..", "%2e%2e%2f%2e%2e", "~", "%7E", "%3D", "%23", "%e2%80%ae", "%00", "%27%3B--", "x" * 600)
    async with hers.client("bob") as bob:
        for row in (row for row in ROWS if row.method == "GET" and re.search("{(session|schedule|hub)}", row.path)):
            for name in odd:
                for place in (row.at(session=name, schedule=name, hub=name), row.at(agent=name, session=hers.lead)):
                    url = httpx.URL(hers.url).copy_with(raw_path=place.encode())
                    answer = await bob.send(bob.build_request("GET", url))
                    assert answer.status_code in (404, 422), (row, place)
                    said(answer)
