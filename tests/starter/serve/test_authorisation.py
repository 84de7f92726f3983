"""Every route of `longhaul serve` and of the console against strangers: who has no token, one that is no good, too
few scopes, or comes from a page or under a name that is not the server's. A route without a row fails."""

from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from longhaul.starter.cli.commands.serve import server_config
from longhaul.starter.client.client import Longhaul
from longhaul.starter.serve.request_checks import MOST_BODY_BYTES, PROBES
from longhaul.starter.serve.requests import Served
from longhaul.starter.serve.routes import OPERATIONS
from longhaul.starter.serve.tokens import SCOPES, Caller, Tokens, digest_of
from longhaul.starter.settings import Settings
from tests.starter.serve.who_may import ROWS, SIGNATURE, TOKEN, Row, headers_wrong, paths_of

HERE = "http://here"
ALL, GONE = "lh_all", "lh_gone"
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND")
GUARDED = [row for row in ROWS if not row.is_open]
SCOPED = [row for row in GUARDED if set(row.scopes) <= set(SCOPES)]
STRANGERS = {
    "no token": "",
    "a token that nobody made": "lh_none",
    "a token that was taken out": GONE,
    "a token's hash": digest_of(ALL),
    "a token in capitals": ALL.upper(),
    "a token twice": f"{ALL} {ALL}",
    "a token and more": f"{ALL},",
    "a long token": ALL * 5_000,
}


def application_of(tokens: Tokens | None) -> Any:
    """What `longhaul serve` and `longhaul console` run, as far as it goes without a session to ask."""
    # Pages name the server that they are of, and nothing here counts what is on it.
    server = SimpleNamespace(
        namespace="none", service_client=SimpleNamespace(config=SimpleNamespace(target_host="none"))
    )
    client = Longhaul(server, Settings(data_dir=Path("/nonexistent"), search_attributes=False))  # type: ignore[arg-type]
    return server_config(Served(client, tokens, Caller(None, "me", frozenset(SCOPES)), frozenset({"here"}))).app


def asking(application: Any) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(application), base_url=HERE)


@pytest.fixture(scope="module")
async def guarded(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[httpx.AsyncClient]:
    """Tokens for everything, for everything but one, for one alone; and one that was good when the server began."""
    file = tmp_path_factory.mktemp("tokens") / "tokens"
    rights = {scope: [other for other in SCOPES if other != scope] for scope in SCOPES}
    lines = [f"{digest_of(ALL)} ana {','.join(SCOPES)}"]
    lines += [f"{digest_of(f'without {scope}'.replace(' ', '-'))} ana {','.join(rights[scope])}" for scope in SCOPES]
    lines += [f"{digest_of('-'.join(row.scopes))} ana {','.join(row.scopes)}" for row in SCOPED]
    file.touch(0o600)
    file.write_text("\n".join([*lines, f"{digest_of(GONE)} ana {','.join(SCOPES)}"]))
    tokens = Tokens.of(str(file))
    assert tokens is not None
    assert tokens.caller_of(GONE) is not None
    file.write_text("\n".join(lines))
    async with asking(application_of(tokens)) as client:
        yield client


def with_token(row: Row, token: str) -> dict[str, str]:
    """As its owner sends it: programs in a header, browsers in the cookie."""
    if not token:
        return {}
    return {"Cookie": f"longhaul_token={token}"} if row.is_page else {"Authorization": f"Bearer {token}"}


async def ask(
    client: httpx.AsyncClient, row: Row, token: str = "", headers: dict[str, str] | None = None, **more: Any
) -> httpx.Response:
    sent = {"Origin": HERE, **with_token(row, token), **(headers or {})}
    answer = await client.request(row.method, row.at(), headers=sent, **more)
    assert headers_wrong(row, dict(answer.headers)) == [], row
    for secret in (ALL, GONE):
        assert secret not in f"{answer.text}{answer.headers}", row
    return answer


async def test_every_route_has_a_row_that_says_who_may_call_it(guarded: httpx.AsyncClient) -> None:
    """By asking: whatever is answered otherwise than with `405 Method Not Allowed` counts."""
    answers = set[tuple[str, str]]()
    for path in paths_of(application_of(None).routes):
        for method in METHODS:
            one = Row(method, path, ())
            sent = {"Origin": HERE, **with_token(one, ALL)}
            if (await guarded.request(method, one.at(), headers=sent)).status_code != httpx.codes.METHOD_NOT_ALLOWED:
                answers.add((method, path))

    assert answers == {(row.method, row.path) for row in ROWS}
    assert len(ROWS) == len(answers)


def test_the_rows_say_what_the_table_of_routes_does() -> None:
    """Programs read of the scopes in the document, which is made from that table."""
    table = {
        (one.method, one.path): tuple(scope for scope in (one.scope, one.also) if scope is not None)
        for one in OPERATIONS
    }
    said = {
        (row.method, row.path): () if row.is_open else row.scopes for row in ROWS if (row.method, row.path) in table
    }

    assert said == table


def turned_away(row: Row, answer: httpx.Response) -> bool:
    """As a stranger: a person is led to where people sign in, and nothing goes along in the address."""
    if row.is_page and row.method != "POST" and not row.path.endswith("/events"):
        return (answer.status_code, answer.headers.get("location")) == (303, "/console/sign-in")
    return answer.status_code == httpx.codes.UNAUTHORIZED


@pytest.mark.parametrize("stranger", STRANGERS)
async def test_strangers_are_let_in_nowhere(
    guarded: httpx.AsyncClient, stranger: str, caplog: pytest.LogCaptureFixture
) -> None:
    let_in = [row for row in GUARDED if not turned_away(row, await ask(guarded, row, STRANGERS[stranger]))]

    assert let_in == []
    assert not any(secret in caplog.text for secret in (ALL, GONE))


async def test_a_token_in_another_place_than_its_own_lets_nobody_in(guarded: httpx.AsyncClient) -> None:
    """A cookie that opened `/v1` would let pages of other sites ask in its owner's name, and addresses are logged."""
    for row in GUARDED:
        swapped = {"Authorization": f"Bearer {ALL}"} if row.is_page else {"Cookie": f"longhaul_token={ALL}"}
        named = {"token": ALL, "access_token": ALL, "longhaul_token": ALL}
        basic = {"Authorization": f"Basic {ALL}", "X-Api-Key": ALL, "Proxy-Authorization": f"Bearer {ALL}"}
        answers = [
            await guarded.request(row.method, row.at(), params=named, headers={"Origin": HERE}),
            await guarded.request(row.method, row.at(), headers={"Origin": HERE, **swapped}),
            await guarded.request(row.method, row.at(), headers={"Origin": HERE, **basic}),
        ]
        assert all(turned_away(row, answer) for answer in answers), row
        assert not any(ALL in answer.text for answer in answers), row


async def test_each_scope_that_a_row_names_is_wanted_and_no_other(guarded: httpx.AsyncClient) -> None:
    """Forms of the console tell of a refusal on the session's page, which needs a session (tests/e2e/serve)."""
    for row in SCOPED:
        if row.is_page and row.method == "POST":
            continue
        lacking = [(await ask(guarded, row, f"without-{scope}")).status_code for scope in row.scopes]
        enough = (await ask(guarded, row, "-".join(row.scopes))).status_code

        assert set(lacking) == {403}, row
        assert enough not in (401, 403), row


@pytest.mark.parametrize("login", [True, False])
async def test_pages_and_names_of_others_reach_nothing(guarded: httpx.AsyncClient, login: bool) -> None:
    """Also with a good token, or where none is wanted: then a name that leads here would be all that a page needs."""
    async with asking(application_of(None)) as unguarded:
        client = guarded if login else unguarded
        for row in ROWS:
            rebound = await ask(client, row, ALL, {"Host": "rebound.example:80", "Origin": "http://rebound.example:80"})
            elsewhere = [
                await ask(client, row, ALL, {"Origin": origin})
                for origin in ("http://evil.example", "null", "", "http://here:81", "http://here.evil.example")
            ]
            assert {answer.status_code for answer in elsewhere} == {403}, row
            assert row.path in PROBES or rebound.status_code == httpx.codes.MISDIRECTED_REQUEST, row


@pytest.mark.parametrize("login", [True, False])
async def test_a_form_without_its_key_or_its_origin_does_nothing(guarded: httpx.AsyncClient, login: bool) -> None:
    async with asking(application_of(None)) as unguarded:
        client = guarded if login else unguarded
        for row in (row for row in ROWS if row.is_page and row.method == "POST"):
            sent = with_token(row, ALL)
            nowhere = await client.post(row.at(), headers=sent, data={"text": "hi"})
            forged = [await ask(client, row, ALL, data={"text": "hi", **key}) for key in ({}, {"form_key": "0" * 64})]
            assert nowhere.status_code == httpx.codes.FORBIDDEN, row
            assert row.is_open or {answer.status_code for answer in forged} == {403}, row


@pytest.mark.parametrize("name", ["an%00a", "x" * 601])
async def test_a_user_that_nobody_can_be_is_refused(guarded: httpx.AsyncClient, name: str) -> None:
    """Of who may name others: it would fail where the session is looked for."""
    asked = [row for row in SCOPED if not row.is_page or (row.method == "GET" and "{session}" in row.path)]
    answers = {
        row: await guarded.request(row.method, f"{row.at()}?user={name}", headers=with_token(row, ALL)) for row in asked
    }

    assert {row: answer.status_code for row, answer in answers.items() if answer.status_code != 422} == {}


async def test_a_form_that_nothing_could_store_is_refused(guarded: httpx.AsyncClient) -> None:
    """A charset of the sender's own makes half a character of it: in a field, its name, or a file's."""
    kind = {"Content-Type": "multipart/form-data; boundary=b; charset=unicode_escape"}
    for part in (
        'name="text"\r\n\r\n\\ud800',
        'name="\\ud800"\r\n\r\nhi',
        'name="files"; filename="\\ud800"\r\n\r\nhi',
    ):
        form = f"--b\r\nContent-Disposition: form-data; {part}\r\n--b--\r\n".encode()
        sent = {"Origin": HERE, "Cookie": f"longhaul_token={ALL}", **kind}
        answer = await guarded.post("/console/start", headers=sent, content=form)
        assert (answer.status_code, "it is no form" in answer.text) == (400, True), part


async def test_no_route_reads_more_than_its_bound_and_none_reads_a_strangers_body(guarded: httpx.AsyncClient) -> None:
    """But where a body is how people say who they are."""
    large = {"content": b"x" * (MOST_BODY_BYTES + 1)}
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    for row in (row for row in ROWS if row.method == "POST"):
        known = await ask(guarded, row, ALL, form, **large)
        stranger = await ask(guarded, row, "", form, **large)
        says_who = row.is_open or row.scopes == (SIGNATURE,)

        assert known.status_code == httpx.codes.REQUEST_ENTITY_TOO_LARGE, row
        assert stranger.status_code == (413 if says_who else 401), row


def test_every_row_that_wants_no_scope_is_meant_to() -> None:
    assert {row.path for row in ROWS if row.scopes in ((SIGNATURE,), (TOKEN,))} == {"/v1/webhooks/{hook}", "/mcp"}
