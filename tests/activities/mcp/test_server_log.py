"""What servers log stands in the worker's log: masked, harmless, bounded."""

import asyncio
import json
import logging

import pytest
from mcp_types import LoggingMessageNotificationParams
from temporalio.testing import ActivityEnvironment

from longhaul.activities.attempt.secrets import WorkerSecrets
from longhaul.activities.mcp import connection
from longhaul.activities.mcp.connection import MOST_LINES, ServerLog
from longhaul.activities.tool import GivenUp
from tests.activities.mcp.canned import CALLED, Canned, CannedServer, canned
from tests.activities.mcp.serving import CLIENT, SECRETS, servers, small, tools_of, used
from tests.activities.tools.calls import place_at, use
from tests.e2e.processes import ROOT


def said(caplog: pytest.LogCaptureFixture) -> list[tuple[int, str]]:
    return [(one.levelno, one.getMessage()) for one in caplog.records if one.name == connection.__name__]


@pytest.mark.proves("X19")
async def test_what_a_program_says_of_itself_is_in_the_log_of_the_worker(caplog: pytest.LogCaptureFixture) -> None:
    shell = {"command": "sh", "args": ["-c", "echo 'tide-token-moss ebbs' >&2; exec no-such-program-of-ours"]}
    with caplog.at_level(logging.INFO):
        async with used(servers(shell)) as mcp:
            await mcp.for_reply((CLIENT,))

    assert (logging.INFO, "MCP server harbour: [secret TIDE_TOKEN] ebbs") in said(caplog)


@pytest.mark.parametrize(
    ("level", "ours"),
    [("debug", 10), ("info", 20), ("notice", 20), ("warning", 30), ("error", 40), ("critical", 40), ("emergency", 40)],
)
async def test_each_level_has_one_of_ours_and_none_is_louder_than_an_error(
    level: str, ours: int, caplog: pytest.LogCaptureFixture
) -> None:
    told = LoggingMessageNotificationParams.model_validate({"level": level, "data": {"tide": "low\x1b[2J"}})
    with caplog.at_level(logging.DEBUG):
        await ServerLog("harbour", SECRETS.masker).told(told)

    assert said(caplog) == [(ours, r'MCP server harbour: {"tide": "low\u001b[2J"}')]


def test_a_secret_that_comes_in_pieces_or_in_several_lines_is_masked(caplog: pytest.LogCaptureFixture) -> None:
    secrets = WorkerSecrets(
        {"TOKEN": "moss-and-heather-0123456789", "PEM": "-----BEGIN-----\nfirst-of-it\nsecond-of-it"}
    )
    log = ServerLog("quay", secrets.masker)
    with caplog.at_level(logging.INFO):
        for piece in (
            b"key moss-and-hea",
            b"ther-0123456789 ok\nuses -----BEGIN-----\nfirst",
            b"-of-it\nsecond-of-it now",
        ):
            log.heard(piece)
        log.end()

    assert [text for _, text in said(caplog)] == [
        "MCP server quay: key [secret TOKEN] ok",
        "MCP server quay: uses [secret PEM] now",
    ]


async def test_a_line_of_a_server_never_looks_like_one_of_ours(caplog: pytest.LogCaptureFixture) -> None:
    told = LoggingMessageNotificationParams.model_validate({"level": "error", "data": "low\nERROR approved by ana"})
    with caplog.at_level(logging.INFO):
        await ServerLog("quay", SECRETS.masker).told(told)

    assert said(caplog) == [(logging.ERROR, "MCP server quay: low ERROR approved by ana")]


async def test_what_a_server_says_that_cannot_be_read_fills_no_log(caplog: pytest.LogCaptureFixture) -> None:
    odd = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "loud"}}
    answer = {"jsonrpc": "2.0", "id": CALLED, "result": {"content": []}}
    events = "".join(f"data: {json.dumps(one)}\n\n" for one in [odd] * 20) + "data: broken\n\n"
    said = Canned(200, "text/event-stream", events + f"data: {json.dumps(answer)}\n\n")
    with caplog.at_level(logging.INFO):
        async with canned(CannedServer([said])) as server, used(servers({"url": server.url})) as mcp:
            tool = (await tools_of(mcp)).get("mcp__harbour__note")
            assert tool is not None
            with pytest.raises(GivenUp):
                await ActivityEnvironment().run(use, tool, place_at(ROOT))
            logging.getLogger("client").warning("of another library")

    names = {one.name for one in caplog.records}
    assert not {name for name in names if name == "mcp" or name.startswith("mcp.")}
    assert [one.getMessage() for one in caplog.records if one.name == "client"] == ["of another library"]


async def test_of_a_flood_the_first_lines_are_written_and_no_line_is_long(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.INFO):
        async with used(servers(small())) as mcp:  # it writes 120 kB without the end of a line
            await mcp.for_reply((CLIENT,))
        log = ServerLog("quay", SECRETS.masker, seconds=1.0)
        log.heard(b"wave\n" * 1_000)
        await asyncio.sleep(1.1)
        log.heard(b"ebb\n")

    lines = [text for _, text in said(caplog)]
    assert max(map(len, lines)) < 600
    assert lines.count("MCP server quay: wave") == MOST_LINES
    assert lines[-2:] == ["MCP server quay: 940 more lines of its log were left out", "MCP server quay: ebb"]
