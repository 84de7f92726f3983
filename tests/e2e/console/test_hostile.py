"""The console against what a model, a page elsewhere or a stranger may send: nothing runs, nothing leaves."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest
from playwright.async_api import Page, expect

from longhaul.starter.console.site import FILLED_IN, LOOKED_AT, S
from tests.e2e.console.conftest import SURE_MILLISECONDS, SignedIn
from tests.e2e.console.test_deciding import waiting
from tests.e2e.serve.test_sessions import agent
from tests.e2e.serving import TOKENS, Address
from tests.starter.serve.who_may import ROWS, headers_wrong

pytestmark = pytest.mark.server

expect.set_options(timeout=SURE_MILLISECONDS)

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
)
NO_PAGES = ("state", "events")
PAGES_OF_A_SESSION = tuple(
    f"{below}?id=edit-7" if below in ("/call", "/edit") else below
    for below in (path.removeprefix(S) for path in LOOKED_AT if path.startswith(S))
    if below[1:] not in NO_PAGES
)
LONG = 50_000
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@dataclass
class Beacon:
    """Somebody else's server, which hears when a page fetches anything of it."""

    url: str = ""
    heard: list[bytes] = field(default_factory=list[bytes])


@pytest.fixture
async def beacon() -> AsyncIterator[Beacon]:
    one = Beacon()

    async def hear(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        one.heard.append(await reader.readline())
        writer.close()

    async with await asyncio.start_server(hear, "127.0.0.1", 0) as server:
        one.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield one


def poison(url: str) -> list[str]:
    """Each way in that a text has, as far as we know any."""
    return [
        f"<script>window.struck = 1; fetch('{url}/script')</script>",
        f"<img src='{url}/img' onerror='window.struck = 2'>",
        f"<svg xmlns='http://www.w3.org/2000/svg' onload='window.struck = 3'><image href='{url}/svg'/></svg>",
        f"<style>body {{ background: url({url}/css) }} main {{ display: none }}</style>",
        f"<iframe src='{url}/frame'></iframe><object data='{url}/object'></object>",
        f"<link rel=stylesheet href='{url}/link'><base href='{url}/'><meta http-equiv=refresh content='0;url={url}'>",
        f"<form action='{url}/form'><button autofocus onfocus='window.struck = 4'>Allow</button></form>",
        f"![a picture]({url}/markdown.png) ![data](data:image/svg+xml,<svg/onload=alert(1)>)",
        "[click](javascript:window.struck=5) [click](data:text/html,<script>1</script>) [click](vbscript:x)",
        "[click](JaVaScRiPt&colon;window.struck=6) <javascript:window.struck=7> [x]: javascript:window.struck=8",
        f'[x]({url}/quote" onclick="window.struck=9) `</code><script>window.struck=10</script>`',
        "\u202eevig\u202c \u2066hidden\u2069 \x1b]8;;http://evil\x07link\x1b]8;;\x07 \x1b[2J",
        "p\u0430ypal.example \uff21\u200b",
        "{{ 7 * 7 }} {% for x in y %} ${7*7} </pre></details></main><script>window.struck=11</script>",
    ]


async def hostile(served: Address, folder: Path, texts: list[str]) -> str:
    """A session in which all of this is said, thought, called, answered and asked about."""
    text = "\n\n".join(texts)
    (folder / "poison.txt").write_text(text)
    (folder / "long.txt").write_text("x" * 5_000_000)
    path = agent(
        folder,
        {"text": text, "thinking": text, "tool_calls": [{"name": "Read", "input": {"file_path": "poison.txt"}}]},
        {
            "text": "y" * 1_000_000,
            "chunk_chars": 5_000,
            "tool_calls": [{"name": "Read", "input": {"file_path": "long.txt"}}],
        },
        {
            "tool_calls": [
                {
                    "id": "edit-7",
                    "name": "Bash",
                    "input": {"command": f"touch a; {text}", "description": text + "z" * LONG},
                }
            ]
        },
        more="[model_config]\ncontext_length = 2_000_000",
    )
    async with served.client() as ana:
        answer = await ana.post(f"{path}/messages?wait=30", json={"messages": text})
        assert answer.json()["status"] == "waiting", answer.text[-500:]
    return path.rpartition("/")[2]


async def struck(page: Page) -> object:
    return await page.evaluate("window.struck ?? null")


@pytest.mark.proves("X15")
async def test_a_hostile_transcript_runs_nothing_and_fetches_nothing(
    served: Address, signed_in: SignedIn, tmp_path: Path, beacon: Beacon
) -> None:
    name = await hostile(served, tmp_path, poison(beacon.url))
    page = await signed_in("ana")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    seen = {}
    there, session = f"{served.url}/console", f"{served.url}/console/s/lamp/{name}"
    own = {below: f"{session}{below}" for below in PAGES_OF_A_SESSION}
    for below, address in {**own, "inbox": there, "sessions": f"{there}/sessions"}.items():
        await page.goto(address)
        await page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
        await page.wait_for_load_state()
        seen[below] = await page.locator("main").inner_text()
        seen[below] += "".join(await page.locator("textarea").evaluate_all("all => all.map((one) => one.value)"))
        assert await struck(page) is None
        assert (
            await page.locator(
                "main :is(script, img, svg:not(.icon, .run, .run *), iframe, object, style, link, base, meta)"
            ).count()
            == 0
        )
        links = await page.locator("main a").evaluate_all(
            "all => all.map((one) => new URL(one.getAttribute('href'), location).href)"
        )
        assert [link for link in links if not link.startswith(("http://", "https://", "mailto:"))] == []
        wide = await page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
        assert not wide, "a long line must not move the buttons out of sight"
        assert "\u202e" not in seen[below]
        assert "\x1b" not in seen[below]

    assert "\\u202eevig" in seen[""]
    assert "⟨U+202E⟩evig" in seen["/call?id=edit-7"]
    assert "p⟨U+0430⟩ypal.example ⟨U+FF21⟩⟨U+200B⟩" in seen["/call?id=edit-7"], "an approver is told look-alikes apart"
    assert "\\u202eevig" in seen["/edit?id=edit-7"]
    assert "<script>window.struck" in seen["/timeline"]
    assert "characters are not shown here" in seen[""]
    assert (name in seen["inbox"], name in seen["sessions"]) == (True, True)
    assert "{{ 7 * 7 }}" in seen[""]
    assert [url for url in asked if not url.startswith((f"{served.url}/", "data:,"))] == []
    assert beacon.heard == []


async def test_the_page_would_run_nothing_even_if_markup_came_through(
    served: Address, signed_in: SignedIn, beacon: Beacon
) -> None:
    """The second wall: what the policy forbids, the browser refuses, whoever wrote it."""
    page = await signed_in("ana")
    refused = """url => new Promise((told) => {
        const seen = [];
        document.addEventListener("securitypolicyviolation", (one) => {
            seen.push(one.effectiveDirective);
            if (seen.length === 3) told(seen.sort());
        });
        document.querySelector("main").insertAdjacentHTML("beforeend",
            `<img src="${url}/x"><button onclick="window.struck = 1">x</button><style>main { display: none }</style>`);
        document.querySelector("main > button").click();
    })"""

    assert await page.evaluate(refused, beacon.url) == ["img-src", "script-src-attr", "style-src-elem"]
    assert await struck(page) is None
    assert beacon.heard == []


async def test_every_page_has_the_policy_and_is_kept_by_nobody(served: Address, tmp_path: Path) -> None:
    """Refusals have it too (tests/starter/serve/test_authorisation.py)."""
    names = {"agent": "lamp", "session": await waiting(served, tmp_path)}
    pages = [row for row in ROWS if row.is_page and row.method == "GET" and not row.path.endswith("/events")]
    async with httpx.AsyncClient(base_url=served.url, trust_env=False) as client:
        client.cookies.set("longhaul_token", TOKENS["ana"])
        answers = {row: await client.get(row.at(**names), params={"id": "edit-7"}) for row in pages}

    assert {row: wrong for row, answer in answers.items() if (wrong := headers_wrong(row, dict(answer.headers)))} == {}
    assert {answer.headers["content-security-policy"] for answer in answers.values()} == {POLICY}
    assert {row.path: answer.status_code for row, answer in answers.items() if answer.status_code != 200} == {
        "/console/sign-in": 303,
        "/console/workers": 403,
    }


async def test_whoever_is_not_signed_in_sees_and_changes_nothing(served: Address, tmp_path: Path) -> None:
    path = agent(tmp_path, {"text": "Hello."})
    name = path.rpartition("/")[2]
    origin = {"Origin": served.url, **FORM}
    async with httpx.AsyncClient(base_url=served.url, trust_env=False) as client:
        for cookie in ("", "lh_wrong", "x" * 5_000):
            client.cookies.set("longhaul_token", cookie)
            looked = await client.get(f"/console/s/lamp/{name}")
            events = await client.get(f"/console/s/lamp/{name}/events")
            started = await client.post("/console/start", headers=origin, content="agent=lamp&session=x&text=hi")
            assert (looked.status_code, looked.headers["location"]) == (303, "/console/sign-in")
            assert (events.status_code, started.status_code) == (401, 401)
        client.cookies.clear()
        wrong = await client.post("/console/sign-in", headers=origin, content="token=lh_wrong")
        right = await client.post("/console/sign-in", headers=origin, content=f"token={TOKENS['ana']}")
        behind_tls = {**origin, "X-Forwarded-Proto": "https"}
        secure = await client.post("/console/sign-in", headers=behind_tls, content=f"token={TOKENS['ana']}")

    assert wrong.status_code == 401
    assert "set-cookie" not in wrong.headers
    cookie = right.headers["set-cookie"].lower()
    assert all(word in cookie for word in ("httponly", "samesite=strict", "path=/console"))
    assert "secure" not in cookie
    assert "secure" in secure.headers["set-cookie"].lower()


FORMS: tuple[tuple[dict[str, str], str, int], ...] = (
    ({}, "own", 403),
    ({"Origin": "null"}, "own", 403),
    ({"Origin": "https://evil.example"}, "own", 403),
    ({"Origin": "{url}", "Host": "evil.example"}, "own", 421),
    ({"Origin": "{url}"}, "", 403),
    ({"Origin": "{url}"}, "0" * 64, 403),
    ({"Origin": "{url}"}, "another's", 403),
    ({"Origin": "{url}", "Content-Type": "text/plain"}, "own", 415),
    ({"Origin": "{url}"}, "own", 303),
)
"""Headers, whose key, and what is answered: the last one is as it should be."""


@pytest.mark.proves("X15")
async def test_a_form_counts_from_its_own_page_alone(served: Address, tmp_path: Path) -> None:
    path = agent(tmp_path, {"text": "Hello."})
    keys = {"own": await form_key(served, "ana"), "another's": await form_key(served, "bob")}
    answered: list[tuple[int, int]] = []
    async with served.client() as api, httpx.AsyncClient(base_url=served.url, trust_env=False) as client:
        client.cookies.set("longhaul_token", TOKENS["ana"])
        for headers, key, _ in FORMS:
            sent = {**FORM, **{name: value.format(url=served.url) for name, value in headers.items()}}
            filled_in = f"form_key={keys.get(key, key)}&agent=lamp&session={path.rpartition('/')[2]}&text=hi"
            answer = await client.post("/console/start", headers=sent, content=filled_in)
            answered.append((answer.status_code, (await api.get(f"{path}/status")).status_code))

        forged = {"form_key": keys["another's"], "call_id": "x", "text": "hi"}
        places = [place.format(agent="lamp", session=path.rpartition("/")[2]) for place in FILLED_IN]
        refused = [await client.post(place, headers={"Origin": served.url}, data=forged) for place in places]

    assert answered == [(status, 200 if status == 303 else 404) for _, _, status in FORMS]
    assert {answer.status_code for answer in refused} == {403}
    assert all("this form is not yours" in answer.text for answer in refused)


async def form_key(served: Address, user: str) -> str:
    async with httpx.AsyncClient(base_url=served.url, trust_env=False) as client:
        client.cookies.set("longhaul_token", TOKENS[user])
        text = (await client.get("/console/start")).text
    return text.partition('name="form_key" value="')[2].partition('"')[0]
