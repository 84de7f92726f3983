"""The table of routes, the document that is made from it, and the small parts around requests."""

import json
import re
import socket
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import pytest
from openapi_spec_validator import validate

from longhaul.agent.views.event_types import AgentEvent
from longhaul.starter.cli.commands.serve import ListenPlace, hosts_of, listen
from longhaul.starter.cli.exit_codes import Misuse
from longhaul.starter.dev_server.web_ui import host_name
from longhaul.starter.serve.application import application
from longhaul.starter.serve.event_stream import first_wanted, framed
from longhaul.starter.serve.openapi import document
from longhaul.starter.serve.problems import Problem
from longhaul.starter.serve.request_checks import caller_of
from longhaul.starter.serve.requests import Served, path_values
from longhaul.starter.serve.routes import OF_OPERATIONS, OPERATIONS
from longhaul.starter.serve.tokens import SCOPES, Caller, Tokens, digest_of
from longhaul.starter.settings import Settings

ODD_HOSTS = (
    "",
    ":80",
    "here:",
    "here:0",
    "here:65536",
    "here:+80",
    "here:80:80",
    "here:80@evil",
    "here:٨٠",
    "[::1",
    "[::1]evil",
    "[::1]@evil",
    "[::1]]",
    "[]",
    "::1",
)
RULE = {"tool_name": "Bash", "rule_content": "make:*"}
PAGE = (Path(__file__).parents[3] / "docs" / "people" / "http.md").read_text(encoding="utf-8")


def served(tokens: str = "") -> Served:
    # Nothing here asks a session.
    return Served(None, Tokens.of(tokens), Caller(None, "me", frozenset(SCOPES)), frozenset())  # type: ignore[arg-type]


@cache
def asking(tokens: str) -> httpx.AsyncClient:
    """Of the whole application, as far as it goes without a session."""
    app = application(replace(served(tokens), hosts=frozenset({"here"})))
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://here")


def test_the_document_is_valid_and_has_every_route() -> None:
    described = document(OPERATIONS, "/agents")
    validate(described)
    app = application(served())

    routes = {route.path for route in app.routes} - {"/openapi.json", "/mcp", "/v1/webhooks/{hook}"}  # type: ignore[attr-defined]
    methods = {(path, method.upper()) for path, row in described["paths"].items() for method in row}

    assert set(described["paths"]) == routes
    assert methods == {(one.path, one.method) for one in OPERATIONS}
    assert max(Counter(one.name for one in OPERATIONS).values()) == 1
    assert described["servers"] == [{"url": "/agents"}]
    assert json.dumps(described), "plain JSON"


def test_the_document_wants_tokens_where_the_server_does() -> None:
    guarded, unguarded = document(OPERATIONS), document(OPERATIONS, guarded=False)

    assert guarded["paths"]["/v1/inbox"]["get"]["security"] == [{"token": []}]
    assert "security" not in guarded["paths"]["/health"]["get"]
    assert "the scope `read`, and `admin` too." in guarded["paths"]["/v1/knowledge"]["get"]["description"]
    assert "security" not in json.dumps(unguarded)


def test_the_document_says_what_a_message_may_be() -> None:
    described = document(OPERATIONS)
    body = described["components"]["schemas"]["Submit"]["properties"]["messages"]

    assert {"type": "string", "pattern": r"\S"} in body["anyOf"]


def test_the_document_says_what_each_field_of_a_request_is_for() -> None:
    schemas = document(OPERATIONS)["components"]["schemas"]
    own = ("Submit", "Decision", "Results", "Interrupt", "Edits", "Copy", "Observe", "Resolve", "Compact")
    silent = {
        f"{name}.{place}"
        for name in own
        for place, schema in schemas[name]["properties"].items()
        if "description" not in schema
    }

    assert silent <= {"Resolve.call_id", "Resolve.happened", "Resolve.by", "Resolve.reason", "Compact.by"}
    assert "ISO time" in schemas["Status"]["properties"]["paused_since"]["description"]


def test_a_decision_alone_has_fields_that_want_more() -> None:
    assert {one.name: dict(one.fields) for one in OPERATIONS if one.fields} == {
        "decide": {"input": "edit", "rules": "steer"}
    }


@pytest.mark.parametrize(
    ("field", "value", "scope"),
    [
        ("input", {"command": "make"}, "edit"),
        ("input", "", "edit"),
        ("rules", True, "steer"),
        ("rules", [RULE], "steer"),
    ],
)
async def test_more_than_a_yes_wants_more_than_approve(field: str, value: object, scope: str) -> None:
    client = asking(f"{digest_of('plain')} ana approve; {digest_of('more')} ana approve,{scope}")
    body = {"call_id": "edit-7", "decision": "allow", "digest": "d", field: value}
    url = "/v1/sessions/longhaul/night/decisions"
    plain, more = [
        await client.post(url, json=body, headers={"Authorization": f"Bearer {token}"}) for token in ("plain", "more")
    ]

    assert plain.status_code == 403
    assert plain.json()["detail"] == f"{field}: this needs a token with the scope {scope!r}; leave it out"
    assert more.status_code == 500, "let in, and there is no server here to ask"


NAMED_IN = sorted(one.name for one in OPERATIONS if one.body is not None and "by" in one.body.model_fields)


@pytest.mark.parametrize("name", NAMED_IN)
async def test_nobody_acts_in_another_name_than_the_tokens(name: str) -> None:
    (one,) = (one for one in OPERATIONS if one.name == name)
    bodies: dict[str, dict[str, Any]] = {
        "resolve": {"call_id": "edit-7", "happened": True},
        "notify": {"event": "dusk"},
        "replaceState": {"state": {"context": []}},
    }
    client = asking(f"{digest_of('right')} ana {','.join(SCOPES)}")
    others, own = [
        await client.post(
            re.sub(r"{\w+}", "x", one.path),
            json={**bodies.get(name, {}), "by": by},
            headers={"Authorization": "Bearer right"},
        )
        for by in ("bob", "ana")
    ]

    assert others.status_code == 422
    assert others.json()["errors"][0]["field"] == "by"
    assert "the caller is 'ana', by the token, and cannot act in another name" in others.json()["detail"]
    assert own.status_code != 422 or "errors" not in own.json()


def test_a_body_that_names_nobody_takes_no_name() -> None:
    """What a route takes either has `by`, which the door checks, or refuses it as it refuses any unknown field."""
    bodies = [one.body for one in OPERATIONS if one.body is not None and "by" not in one.body.model_fields]

    assert NAMED_IN == [
        "changeBudget",
        "changeRules",
        "compact",
        "configure",
        "notify",
        "pause",
        "replaceState",
        "resolve",
        "resume",
        "step",
        "stopBackground",
    ]
    for body in bodies:
        assert body.model_config.get("extra") == "forbid", body
        assert not {"approver", "author", "user"} & set(body.model_fields), body


def test_every_route_is_on_the_page() -> None:
    """Operations at least on the page that lists them (tests/codebase/test_operations.py)."""
    shown = {(method, re.sub(r"{\w+}", "*", path)) for method, path in re.findall(r"`(GET|POST) (/\S*)`", PAGE)}
    wanted = {
        (one.method, re.sub(r"{\w+}", "*", one.path.replace("/v1/sessions/{agent}/{session}/", "/…/")))
        for one in OPERATIONS
        if one not in OF_OPERATIONS
    }

    assert wanted - shown == set()


@pytest.mark.parametrize(
    ("header", "status"),
    [
        (None, 401),
        ("", 401),
        ("Bearer", 401),
        ("Basic lh_right", 401),
        ("Bearer lh_wrong", 401),
        ("Bearer lh_right lh_right", 401),
        ("Bearer lh_right", 403),
    ],
)
def test_whoever_is_not_known_or_may_not_is_told_so(header: str | None, status: int) -> None:
    guarded = served(f"{digest_of('lh_right')} ana read")

    with pytest.raises(Problem) as problem:
        caller_of(guarded, header, "answer")

    assert problem.value.status == status
    assert ("WWW-Authenticate" in problem.value.headers) == (status == 401)


def test_a_token_is_good_for_its_scopes() -> None:
    guarded = served(f"{digest_of('lh_right')} ana read")

    assert caller_of(guarded, "bearer  lh_right ", "read").user == "ana"
    assert caller_of(guarded, None, None).name == "me", "a probe needs none"
    assert caller_of(served(), None, "admin").user is None, "without tokens whoever sits here may do everything"


@pytest.mark.parametrize(
    ("last_seen", "start", "first"), [(None, 1, 1), (None, 7, 7), ("", 7, 7), ("0", 7, 1), ("41", 7, 42)]
)
def test_a_stream_goes_on_after_what_was_seen(last_seen: str | None, start: int, first: int) -> None:
    assert first_wanted(last_seen, start) == first


@pytest.mark.parametrize("last_seen", ["-1", "1.5", "x", "²", "9" * 10, "1\u0661"])
def test_what_is_no_id_is_refused(last_seen: str) -> None:
    with pytest.raises(Problem, match="Last-Event-ID"):
        first_wanted(last_seen, 1)


def test_an_event_is_one_frame_whatever_it_says() -> None:
    hostile = "one\ntwo\r\n\nid: 9\ndata: {}\n\n\u2028"

    recorded = framed(AgentEvent(type="TEXT_BLOCK_DELTA", seq=4, delta=hostile)).decode()
    live = framed(AgentEvent(type="TEXT_BLOCK_DELTA", delta=hostile)).decode()

    assert [line.partition(":")[0] for line in recorded.split("\n")] == ["id", "data", "", ""]
    assert [line.partition(":")[0] for line in live.split("\n")] == ["data", "", ""]
    assert "\r" not in recorded
    assert json.loads(recorded.split("\n")[1].removeprefix("data: "))["delta"] == hostile


def test_names_in_paths_are_as_they_were_meant() -> None:
    assert path_values({"session": "a%2Fb%20%E2%98%83%25"}) == {"session": "a/b ☃%"}
    for bad in ("%ff", "%00", "x" * 700):
        with pytest.raises(Problem, match="session"):
            path_values({"session": bad})


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ("LOCALHOST:8000", "localhost"),
        ("[::1]:8000", "[::1]"),
        ("a.example", "a.example"),
        ("a.example.", "a.example."),
        ("a.example:65535", "a.example"),
        *((odd, None) for odd in ODD_HOSTS),
    ],
)
def test_a_host_is_known_without_its_port(header: str, name: str | None) -> None:
    assert host_name(header) == name


def test_a_server_goes_by_its_address_and_the_names_it_is_given() -> None:
    hosts = hosts_of(ListenPlace("::", 0), "Agents.example, agents.example:8443")

    assert hosts == {"localhost", "127.0.0.1", "[::1]", "[::]", "agents.example"}


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7"])  # noqa: S104  the point
def test_other_addresses_than_this_machines_want_tokens(host: str) -> None:
    with pytest.raises(Misuse, match="without tokens only this machine is served"):
        listen(ListenPlace(host, 0), is_guarded=False)


def test_settings_name_no_tokens_hosts_and_pages_of_their_own() -> None:
    settings = Settings()

    assert (settings.serve_tokens, settings.serve_hosts, settings.serve_origins) == ("", "", "")


def test_what_is_listened_on_sends_each_part_of_an_answer_at_once() -> None:
    """asyncio asks for that with sockets of its own alone: else a body waits 40 ms behind its headers."""
    with (
        listen(ListenPlace("127.0.0.1", 0), is_guarded=True) as listening,
        socket.create_connection(listening.getsockname()),
        listening.accept()[0] as accepted,
    ):
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


async def test_web_pages_may_ask_where_they_are_named_and_nowhere_else() -> None:
    page, other = "https://console.example", "https://other.example"
    open_to_one = replace(served(), hosts=frozenset({"agents.example"}), origins=(page,))
    open_to_none = replace(served(), hosts=frozenset({"agents.example"}))

    async def asked(by: Served, origin: str, method: str = "GET") -> httpx.Response:
        transport = httpx.ASGITransport(application(by))
        headers = {"Origin": origin, **({"Access-Control-Request-Method": "POST"} if method == "OPTIONS" else {})}
        async with httpx.AsyncClient(transport=transport, base_url="http://agents.example") as client:
            return await client.request(method, "/health", headers=headers)

    welcome, unknown = await asked(open_to_one, page), await asked(open_to_one, other)
    closed = await asked(open_to_none, page)
    before = await asked(open_to_one, page, "OPTIONS")

    assert (welcome.status_code, welcome.headers["access-control-allow-origin"]) == (200, page)
    assert (before.status_code, before.headers["access-control-allow-origin"]) == (200, page)
    assert (unknown.status_code, closed.status_code) == (403, 403)
    assert "access-control-allow-origin" not in {*unknown.headers, *closed.headers}


def test_a_name_that_no_request_can_come_under_is_told() -> None:
    with pytest.raises(Misuse, match=r"LONGHAUL_SERVE_HOSTS: 'https://agents\.example' is no name of a server"):
        hosts_of(ListenPlace("127.0.0.1", 0), "agents.example https://agents.example")
