"""What is known of a call by what its server, or whoever stands in front of it, answers by HTTP: one row a kind."""

import asyncio
import re
from typing import Literal

import pytest
from temporalio.testing import ActivityEnvironment

from longhaul.activities.mcp.outcomes import HELD_SECONDS, MOST_IN_VAIN
from longhaul.activities.mcp.servers import McpServers
from longhaul.activities.tool import GivenUp, ToolError
from tests.activities.mcp.canned import Canned, CannedServer, canned
from tests.activities.mcp.serving import servers, tools_of, used
from tests.activities.process.pids import until
from tests.activities.tools.calls import place_at, use
from tests.e2e.processes import ROOT

Outcome = Literal["answered", "its own error", "not started", "unknown"]
JSON, STREAM, HTML, PLAIN = "application/json", "text/event-stream", "text/html; charset=utf-8", "text/plain"
PAGE = "<html><body>Sign in</body></html>"
RESULT = '{"jsonrpc": "2.0", "id": @, "result": {"content": [{"type": "text", "text": "first"}]}}'
ERROR = '{"jsonrpc": "2.0", "id": @, "error": {"code": -32602, "message": "no such berth"}}'
LATER = {"retry-after": "1"}
KINDS: list[tuple[Canned, Outcome]] = [
    (Canned(200, JSON, RESULT), "answered"),
    (Canned(201, JSON, RESULT), "answered"),
    (Canned(200, JSON, RESULT.replace("@", '"@"')), "answered"),
    (Canned(200, STREAM, f"data: {RESULT}\n\n"), "answered"),
    (Canned(200, JSON, ERROR), "its own error"),
    (Canned(200, STREAM, f"data: {ERROR}\n\n"), "its own error"),
    (Canned(400, JSON, ERROR), "its own error"),
    (Canned(400, JSON, ERROR.replace("@", "null")), "its own error"),
    # It was asked for what it has refused: before it began.
    *[(Canned(status, HTML, PAGE), "its own error") for status in (307, 308, 400, 401, 403, 405, 406, 413, 415, 422)],
    (Canned(307, headers={"location": "https://elsewhere.example/mcp"}), "its own error"),
    (Canned(429, HTML, PAGE), "not started"),
    (Canned(503, HTML, PAGE, LATER), "not started"),
    # Neither says whether the call has started: those in front of servers say so too, when one has ended under a call.
    *[(Canned(status, HTML, PAGE), "unknown") for status in (404, 408, 500, 501, 502, 503, 504)],
    *[(Canned(status, JSON, '{"error": "no route"}'), "unknown") for status in (404, 408, 500, 502, 503)],
    (Canned(500, JSON, ERROR), "unknown"),
    *[(Canned(status, HTML, PAGE), "unknown") for status in (301, 302, 303)],
    (Canned(302, headers={"location": "https://elsewhere.example/login"}), "unknown"),
    # It says that all is well, and nothing of the call.
    (Canned(202), "unknown"),
    (Canned(202, JSON, RESULT), "unknown"),
    (Canned(204), "unknown"),
    (Canned(200), "unknown"),
    (Canned(200, "", RESULT), "unknown"),
    (Canned(200, HTML, PAGE), "unknown"),
    (Canned(200, PLAIN, RESULT), "unknown"),
    (Canned(200, JSON), "unknown"),
    (Canned(200, JSON, PAGE), "unknown"),
    (Canned(200, JSON, RESULT[:40]), "unknown"),
    (Canned(206, JSON, RESULT[:40]), "unknown"),
    (Canned(200, JSON, RESULT, {"content-encoding": "gzip"}), "unknown"),
    (Canned(200, JSON, '{"status": "ok"}'), "unknown"),
    (Canned(200, JSON, f"[{RESULT}]"), "unknown"),
    (Canned(200, JSON, '{"id": @, "result": {}}'), "unknown"),
    (Canned(200, JSON, '{"jsonrpc": "2.0", "id": @, "result": []}'), "unknown"),
    (Canned(200, JSON, RESULT.replace("@", "4711")), "unknown"),
    (Canned(200, JSON, ERROR.replace("@", "null")), "unknown"),
    (Canned(200, JSON, '{"jsonrpc": "2.0", "method": "notifications/message", "params": {}}'), "unknown"),
    (Canned(200, STREAM), "unknown"),
    (Canned(200, STREAM, PAGE), "unknown"),
    (Canned(200, STREAM, f"data: {PAGE}\n\n"), "unknown"),
    (Canned(200, STREAM, "data: \xff\n\n"), "unknown"),
    (Canned(200, STREAM, f"data: {RESULT[:40]}\n\n"), "unknown"),
    (Canned(200, STREAM, f"event: answer\ndata: {RESULT}\n\n"), "unknown"),
    (Canned(200, STREAM, f"data: {RESULT}"), "unknown"),
    (Canned(200, STREAM, f"data: {'x' * 1_100_000}\n\n"), "unknown"),
]
AT_ONCE_SECONDS = 25
"""All of them are told long before a call may take no longer."""


async def call(mcp: McpServers) -> str:
    tool = (await tools_of(mcp)).get("mcp__harbour__note")
    assert tool is not None

    async def used_so() -> str:
        return str((await use(tool, place_at(ROOT), text="fog")).output)

    async with asyncio.timeout(AT_ONCE_SECONDS):
        output: str = await ActivityEnvironment().run(used_so)
    return output


def _named(kind: object) -> str:
    return f"{kind.status} {kind.content_type} {kind.body[:60]}" if isinstance(kind, Canned) else str(kind)


@pytest.mark.parametrize(("kind", "outcome"), KINDS, ids=_named)
async def test_a_call_that_runs_once_says_what_is_known_of_it(kind: Canned, outcome: Outcome) -> None:
    async with canned(CannedServer([kind])) as server, used(servers({"url": server.url})) as mcp:
        match outcome:
            case "answered":
                assert await call(mcp) == "first"
            case "not started":
                assert await call(mcp) == "noted"
            case "its own error":
                with pytest.raises(ToolError, match="answered with an error"):
                    await call(mcp)
            case "unknown":
                with pytest.raises(GivenUp, match=r"It may have done part of its work, or all of it\."):
                    await call(mcp)

    assert server.calls == (2 if outcome == "not started" else 1)


@pytest.mark.parametrize(("kind", "outcome"), [row for row in KINDS if row[1] == "unknown"], ids=_named)
async def test_one_that_may_run_twice_is_made_again_where_nobody_knows(kind: Canned, outcome: Outcome) -> None:
    is_too_long = len(kind.body) > 1_000_000
    async with (
        canned(CannedServer([kind])) as server,
        used(servers({"url": server.url}, effects={"note": "idempotent"})) as mcp,
    ):
        if is_too_long:
            with pytest.raises(ToolError, match=r"answered with too much.*What the call did stays done"):
                await call(mcp)
        else:
            assert await call(mcp) == "noted", outcome

    assert server.calls == (1 if is_too_long else 2)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (Canned(200, HTML, PAGE), "gave no answer that can be read: HTTP 200 with 'text/html; charset=utf-8'"),
        (Canned(204), "gave no answer that can be read: HTTP 204 with nothing that can be read"),
        (Canned(202), "gave no answer that can be read: HTTP 202, which is no answer"),
        (Canned(200, JSON, RESULT.replace("@", "4711")), "HTTP 200 with 'application/json' which is no answer to it"),
        (
            Canned(302, headers={"location": "https://e.example/in?key=moss"}),
            "302, which leads to https://e.example/in",
        ),
        (Canned(503, HTML, PAGE), "gave no answer that can be read: HTTP 503"),
        (Canned(502, HTML, PAGE), "was lost while the call was under way: HTTP 502"),
    ],
    ids=_named,
)
async def test_the_sentence_says_what_came(kind: Canned, words: str) -> None:
    async with canned(CannedServer([kind])) as server, used(servers({"url": server.url})) as mcp:
        with pytest.raises(GivenUp, match=re.escape(words) + r"\. It may have"):
            await call(mcp)


async def test_a_page_in_the_place_of_answers_leaves_what_a_server_keeps() -> None:
    kinds = [Canned(200, HTML, PAGE), Canned(503, HTML, PAGE)]
    async with (
        canned(CannedServer(kinds)) as server,
        used(servers({"url": server.url}, is_stateful=True, effects={"note": "idempotent"})) as mcp,
    ):
        assert await call(mcp) == "noted", "and nothing of a server that began again"

    assert server.calls == 3


async def test_who_answers_a_question_whether_it_is_there_with_a_page_is_not_there() -> None:
    async with canned(CannedServer([])) as server, used(servers({"url": server.url})) as mcp:
        assert await call(mcp) == "noted"
        server.pages = True
        with pytest.raises(ToolError, match=r"can't be reached.*Nothing was done"):
            await call(mcp)

    assert server.calls == 1


async def test_a_server_that_is_away_after_a_try_of_which_nobody_knows_does_not_say_that_nothing_was_done() -> None:
    async with (
        canned(CannedServer([Canned(200, HTML, PAGE)], is_gone_after=1)) as server,
        used(servers({"url": server.url}, effects={"note": "idempotent"})) as mcp,
    ):
        with pytest.raises(ToolError, match=r"can't be reached.*Of a try before nobody knows: It may have done part"):
            await call(mcp)


@pytest.mark.parametrize(("path", "is_followed"), [("/mcp/", True), ("/mcp/inner", True), ("/other", False)])
@pytest.mark.parametrize("status", [307, 308])
async def test_a_redirection_is_followed_to_the_same_address_and_below_it_alone(
    status: int, path: str, is_followed: bool
) -> None:
    moved = Canned(status, headers={"location": path})
    async with canned(CannedServer([moved])) as server, used(servers({"url": server.url})) as mcp:
        if is_followed:
            assert await call(mcp) == "noted"
        else:
            with pytest.raises(ToolError, match=rf"HTTP {status}, which leads to http://127.0.0.1:\d+/other"):
                await call(mcp)

    assert not server.elsewhere


@pytest.mark.parametrize("kind", [Canned(500, HTML, PAGE), Canned(202, JSON, RESULT), Canned(200, JSON, RESULT[:40])])
async def test_what_came_of_a_redirected_call_is_what_is_said_behind_it(kind: Canned) -> None:
    moved = Canned(307, headers={"location": "/mcp/"})
    async with canned(CannedServer([moved, kind])) as server, used(servers({"url": server.url})) as mcp:
        with pytest.raises(GivenUp):
            await call(mcp)


@pytest.mark.parametrize("pause", ["retry: 10\n", ""])
async def test_a_stream_that_ends_without_a_word_however_often_it_is_asked_for_ends_the_call(pause: str) -> None:
    primed = Canned(200, STREAM, f"{pause}id: 1\ndata:\n\n")
    async with (
        canned(CannedServer([primed], stream=Canned(200, STREAM, ": nothing\n\n"))) as server,
        used(servers({"url": server.url})) as mcp,
    ):
        with pytest.raises(GivenUp, match=r"its stream ended 10 times in a row without a word\. It may have done part"):
            await call(mcp)

    assert (server.calls, server.resumed) == (1, MOST_IN_VAIN)


async def test_a_stream_that_says_something_each_time_is_asked_for_as_long_as_it_does() -> None:
    primed = Canned(200, STREAM, "retry: 10\nid: 1\ndata:\n\n")
    async with canned(CannedServer([primed], stream=primed)) as server, used(servers({"url": server.url})) as mcp:
        calling = asyncio.create_task(call(mcp))
        await until(lambda: server.resumed > 2 * MOST_IN_VAIN)
        server.stream = Canned(200, STREAM, f"data: {RESULT.replace('@', '1')}\n\n")
        assert await calling == "first"


async def test_a_silent_stream_that_somebody_ends_by_and_by_is_asked_for_again() -> None:
    primed = Canned(200, STREAM, "retry: 10\nid: 1\ndata:\n\n")
    streams = CannedServer(
        [primed],
        stream=Canned(200, STREAM, ": nothing\n\n"),
        held={MOST_IN_VAIN: HELD_SECONDS + 0.5},
        last=(2 * MOST_IN_VAIN, Canned(200, STREAM, f"data: {RESULT.replace('@', '1')}\n\n")),
    )
    async with canned(streams) as server, used(servers({"url": server.url})) as mcp:
        assert await call(mcp) == "first"


async def test_a_server_whose_own_stream_ends_at_once_is_not_asked_for_it_without_end() -> None:
    news = Canned(200, STREAM, "retry: 10\n\n")
    async with (
        canned(CannedServer([], stream=news)) as server,
        used(servers({"url": server.url}, is_stateful=True)) as mcp,
    ):
        assert await call(mcp) == "noted"
        asked = server.streams
        await until(lambda: server.streams >= asked + MOST_IN_VAIN - 1)
        await asyncio.sleep(0.5)
        assert await call(mcp) == "noted", "its calls go on"

    assert server.streams <= 2 * MOST_IN_VAIN, "of a connection for its tools and one for calls"
