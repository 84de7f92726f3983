"""Who may name an MCP server: each way to name one, and what the operator has to have said before it is spoken to."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from longhaul.activities.attempt.secrets import WorkerSecrets
from longhaul.activities.mcp.allowed_servers import BadMCPSetting, NotOffered, OfferedServers, open_servers
from longhaul.agent.values.conversation.tools import Effect
from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.agent.values.spec.mcp import HttpMCPConfig, MCPClient, MCPConfig, StdioMCPConfig

SECRETS = WorkerSecrets({"TIDE_TOKEN": "tide-token-moss", "OTHER_TOKEN": "other-token-fern"})
SERVERS = {
    "files": {"mcp_config": {"command": "mcp-files", "args": ["/srv"]}, "disable_tools": ["erase"], "trusted": True},
    "wiki": {
        "mcp_config": {"url": "https://wiki.example/mcp", "headers": {"Authorization": "Bearer [secret TIDE_TOKEN]"}},
        "execution_timeout": 60,
        "effects": {"page": "read"},
    },
}
ALLOWED = ["none=https://open.example/mcp", "TIDE_TOKEN=https://tide.example", "command:mcp-clock --zone 'the sea'"]


PAGE = (Path(__file__).parents[3] / "docs" / "agents" / "mcp.md").read_text(encoding="utf-8")


def offered() -> OfferedServers:
    return open_servers(SERVERS, ALLOWED, SECRETS)


def http(url: str, **headers: str) -> HttpMCPConfig:
    return HttpMCPConfig(url=url, headers=headers)


CLOCK = StdioMCPConfig(command="mcp-clock", args=("--zone", "the sea"))
TIDE = "Bearer [secret TIDE_TOKEN]"


@pytest.mark.parametrize(
    "config",
    [
        CLOCK,
        CLOCK.model_copy(update={"env": {"VERBOSE": "1"}}),
        http("https://open.example/mcp"),
        http("https://open.example/mcp/deeper", Accept_Language="de"),
        http("https://tide.example/mcp", Authorization=TIDE),
    ],
)
def test_what_the_operator_has_listed_may_be_described(config: MCPConfig) -> None:
    assert offered().server(MCPClient(name="own", mcp_config=config)).config == config


@pytest.mark.parametrize(
    ("config", "why"),
    [
        (StdioMCPConfig(command="sh", args=("-c", "id")), "operator lists `command:sh -c id`"),
        (StdioMCPConfig(command="mcp-clock"), "operator lists `command:mcp-clock`"),
        (StdioMCPConfig(command="mcp-clock", args=("--zone", "the", "sea")), "may not name the command"),
        (StdioMCPConfig(command="mcp-clock --zone 'the sea'"), "may not name the command"),
        (CLOCK.model_copy(update={"cwd": "/tmp"}), "may not give cwd"),
        (CLOCK.model_copy(update={"env": {"LD_PRELOAD": "x.so"}}), "may not give env.LD_PRELOAD"),
        (CLOCK.model_copy(update={"env": {"PYTHONSTARTUP": "x.py"}}), "may not give env.PYTHONSTARTUP"),
        (CLOCK.model_copy(update={"env": {"path": "/tmp"}}), "may not give env.path"),
        (CLOCK.model_copy(update={"env": {"T": "[secret TIDE_TOKEN]"}}), "may not give the secret TIDE_TOKEN"),
        (http("http://open.example/mcp"), "operator lists `none=http://open.example/mcp`"),
        (http("https://open.example/mcpx"), "may not name the address"),
        (http("https://open.example:8443/mcp"), "may not name the address"),
        (http("https://open.example/mcp/../admin"), "may not name the address"),
        (http("http://127.0.0.1:8000/mcp"), "may not name the address"),
        (http("http://169.254.169.254/latest"), "may not name the address"),
        (http("https://open.example/mcp", Authorization=TIDE), "operator lists `TIDE_TOKEN=https://open.example/mcp`"),
        (http("https://tide.example/mcp", Authorization="Bearer [secret OTHER_TOKEN]"), "OTHER_TOKEN=https://tide"),
        (http("https://tide.example/mcp"), "operator lists `none=https://tide.example/mcp`"),
    ],
)
def test_anything_else_is_refused_with_what_the_operator_would_have_to_say(config: MCPConfig, why: str) -> None:
    with pytest.raises(NotOffered) as refused:
        offered().server(MCPClient(name="own", mcp_config=config))

    assert why in str(refused.value)
    assert "moss" not in str(refused.value)


def test_the_examples_of_the_page_are_agents_and_servers_of_workers_that_let_them_be_named() -> None:
    blocks = re.findall(r"```(toml|python)\n(.*?)```", PAGE, re.DOTALL)
    in_file, operators = [tomllib.loads(text) for kind, text in blocks if kind == "toml"][:2]
    code = next(text for kind, text in blocks if kind == "python").replace("AgentSpec(\n", "agent = AgentSpec(\n")
    made: dict[str, Any] = {}
    exec(code, made)  # noqa: S102  the page's own
    secrets = WorkerSecrets({"WIKI_TOKEN": "wiki-token-kelp"})
    listed = ["WIKI_TOKEN=https://wiki.example", "command:mcp-clock --zone UTC"]
    workers = open_servers(operators["mcp"], listed, secrets)

    for agent in (AgentSpec.model_validate({"model": "scripted:x", **in_file}), made["agent"]):
        servers = {client.name: workers.server(client) for client in agent.mcps}
        assert {"files", "wiki"} <= set(servers)
        assert [servers["files"].offers(tool) for tool in ("read", "erase")] == [True, False]
        assert dict(servers["files"].effects) == {"append": Effect.IDEMPOTENT}


def test_nothing_at_all_may_be_named_where_the_operator_has_said_nothing() -> None:
    nobody = open_servers("", "", SECRETS)

    for client in (MCPClient(name="files"), MCPClient(name="own", mcp_config=CLOCK)):
        with pytest.raises(NotOffered):
            nobody.server(client)


def test_an_agent_takes_less_of_the_operators_server_and_never_more() -> None:
    client = MCPClient(name="files", enable_tools=("read", "erase"), disable_tools=("list",), execution_timeout=5)

    server = offered().server(client)

    assert [server.offers(tool) for tool in ("read", "erase", "list", "write")] == [True, False, False, False]
    assert (server.timeout_seconds, server.trusted) == (5, True)
    wiki = offered().server(MCPClient(name="wiki"))
    assert (wiki.timeout_seconds, wiki.trusted, dict(wiki.effects)) == (60, False, {"page": Effect.READ})


def test_an_agent_cannot_put_a_server_of_its_own_under_an_operators_name() -> None:
    with pytest.raises(NotOffered, match="have an MCP server 'files' of their own"):
        offered().server(MCPClient(name="files", mcp_config=CLOCK))


def test_a_server_nearly_named_is_answered_with_the_right_name() -> None:
    with pytest.raises(NotOffered, match="did you mean 'files'"):
        offered().server(MCPClient(name="file"))


def test_a_secret_that_the_worker_lacks_is_named() -> None:
    servers = {"wiki": {"mcp_config": {"url": "https://w.example", "headers": {"X-Key": "[secret GONE]"}}}}

    with pytest.raises(NotOffered, match="no secret is named 'GONE'"):
        open_servers(servers, "", SECRETS).server(MCPClient(name="wiki"))


@pytest.mark.parametrize(
    ("servers", "allowed", "why"),
    [
        ("{", "", "write \\[mcp.NAME\\]"),
        ("[]", "", "write \\[mcp.NAME\\]"),
        ({"files": {}}, "", "mcp_config is missing"),
        ({"files": 3}, "", "write \\[mcp.NAME\\]"),
        ({"a__b": {"mcp_config": {"command": "x"}}}, "", "mcp__NAME__TOOL"),
        ({"files": {"mcp_config": {"command": "x"}, "trust": True}}, "", "files.trust"),
        ({"files": {"mcp_config": {"command": "x"}, "effects": {"a": "twice"}}}, "", "files.effects"),
        ({"files": {"mcp_config": {"url": "https://w.example"}, "sandbox": True}}, "", "sandbox is for programs"),
        ({"files": {"mcp_config": {"command": "x"}, "sandbox_network": True}}, "", "with sandbox = true"),
        ({"files": {"mcp_config": {"command": "x"}, "sandbox_reads": ["/opt"]}}, "", "sandbox_reads is for a server"),
        ({"files": {"mcp_config": {"command": "x"}, "sandbox": True, "sandbox_reads": ["~/x"]}}, "", "absolute path"),
        ("", "https://no.pair.example", "LONGHAUL_MCP_ALLOW"),
        ("", "command:", "followed by a program"),
        ("", "command:'open", "can't be read"),
    ],
)
def test_a_setting_that_cannot_be_read_is_told_with_its_place(servers: object, allowed: str, why: str) -> None:
    given = servers if isinstance(servers, str) else json.loads(json.dumps(servers))

    with pytest.raises(BadMCPSetting, match=why):
        open_servers(given, allowed, SECRETS)


def test_two_sandboxes_of_one_program_are_two_servers() -> None:
    sandboxed = {"sandbox": True}
    ways: list[dict[str, Any]] = [
        {},
        sandboxed,
        {**sandboxed, "sandbox_network": True},
        {**sandboxed, "sandbox_reads": ["/opt"]},
    ]
    tables = [{"files": {"mcp_config": {"command": "x"}, **way}} for way in ways]

    assert len({open_servers(table, "", SECRETS).server(MCPClient(name="files")).key for table in tables}) == len(ways)


def test_two_servers_are_one_only_where_all_of_them_is_the_same() -> None:
    ways = [
        MCPClient(name="own", mcp_config=CLOCK),
        MCPClient(name="other", mcp_config=CLOCK),
        MCPClient(name="own", mcp_config=CLOCK, is_stateful=True),
        MCPClient(name="own", mcp_config=CLOCK, enable_tools=("now",)),
        MCPClient(name="own", mcp_config=CLOCK, disable_tools=("now",)),
        MCPClient(name="own", mcp_config=CLOCK, execution_timeout=3),
        MCPClient(name="own", mcp_config=http("https://open.example/mcp")),
        MCPClient(name="wiki"),
    ]

    assert len({offered().server(client).key for client in ways}) == len(ways)
