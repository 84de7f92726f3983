"""Servers that have a model asked (sampling): by both versions of the protocol, within the agent's bounds, masked."""

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from temporalio.testing import ActivityEnvironment

from longhaul.activities.contract import SamplingLeave
from longhaul.activities.mcp.allowed_servers import BadMCPSetting, open_servers
from longhaul.activities.models.model import ModelReply, ModelRequest
from longhaul.activities.models.providers import Providers
from longhaul.activities.models.side_model import SideModel
from longhaul.activities.tool import ToolError, ToolOutput
from longhaul.activities.tools.registry import Toolbox
from longhaul.agent.values.spec.agent_spec import ModelConfig
from longhaul.agent.values.spec.mcp import MCPClient, Sampling
from tests.activities.mcp.serving import SECRETS, servers, serving, small, used
from tests.activities.tools.calls import called, place_at
from tests.e2e.processes import ROOT
from tests.servers.local import free_port

ALLOWED = MCPClient(name="harbour", sampling=Sampling())
KEY = "tide-token-moss"
OLDER = small()


@pytest.fixture(scope="module")
async def address() -> AsyncIterator[dict[str, Any]]:
    port = free_port()
    async with serving("streamable-http", port):
        yield {"url": f"http://127.0.0.1:{port}/mcp"}


class Asked:
    """A scripted model that says which requests it was sent."""

    def __init__(self, folder: Path, *lines: dict[str, Any], calls: int = 5, tokens: int = 20_000) -> None:
        script = folder / "guess.jsonl"
        script.write_text("\n".join(json.dumps(line) for line in lines))
        self.requests = list[ModelRequest]()
        leave = SamplingLeave(model=f"scripted:{script}", config=ModelConfig(), calls=calls, tokens=tokens)
        self.model = SideModel(leave, self._ask)
        self._providers = Providers()

    async def _ask(self, model: str, request: ModelRequest) -> ModelReply:
        self.requests.append(request)
        return await self._providers.call(model, request, lambda _: None)


async def run(
    config: dict[str, Any],
    tool: str,
    asked: Asked,
    arguments: dict[str, Any] | None = None,
    client: MCPClient = ALLOWED,
) -> ToolOutput:
    async with used(servers(config)) as mcp:
        found = (await mcp.beside(Toolbox(()), (client,))).get(f"mcp__harbour__{tool}")
        assert found is not None
        call = called(arguments or {}, place_at(ROOT), await found.examine({}, place_at(ROOT)))
        ready = replace(call, model=asked.model, masker=SECRETS.masker)

        async def ran() -> ToolOutput:
            return await found.run(ready)

        output: ToolOutput = await ActivityEnvironment().run(ran)
        return output


@pytest.mark.proves("X19")
async def test_a_server_has_a_model_asked_and_goes_on_with_the_answer(address: dict[str, Any], tmp_path: Path) -> None:
    asked = Asked(tmp_path, {"text": "seven"}, {"text": f"eight {KEY}"})

    output = await run(address, "divine", asked, {"times": 2})

    first, second = asked.requests
    assert output.output == "1: seven, 2: eight [secret TIDE_TOKEN]"
    assert first.system == "You know the sea."
    assert [(one.role, one.get_text_content()) for one in second.messages] == [("user", "2: how deep?")]
    assert (first.purpose, first.tools, first.config.max_output_tokens) == ("sampling", (), 40)
    assert [one["answered"] for one in output.metadata["sampled"]] == ["seven", "eight [secret TIDE_TOKEN]"]
    taken = asked.model.taken
    assert taken is not None
    assert (taken.calls, taken.usage.output_tokens > 0) == (2, True)


async def test_so_does_one_of_an_older_version_while_its_call_runs(tmp_path: Path) -> None:
    asked = Asked(tmp_path, {"text": "seven", "faults": [{"kind": "overloaded", "retry_after": 0.01}]})

    output = await run(OLDER, "sound", asked, {"words": f"how deep, {KEY}?"})

    assert output.output == "seven (endTurn)"
    assert [one.attempt for one in asked.requests] == [1, 2]
    assert asked.requests[0].messages[0].get_text_content() == "how deep, [secret TIDE_TOKEN]?"


@pytest.mark.parametrize(
    ("bounds", "why"),
    [
        ({"calls": 1}, "it may have a model asked 1 times during this call, and asks once more"),
        ({"tokens": 24}, "of 24 tokens that models may take for it during this call"),
    ],
)
async def test_it_goes_no_further_than_its_bounds(
    address: dict[str, Any], tmp_path: Path, bounds: dict[str, int], why: str
) -> None:
    asked = Asked(tmp_path, {"text": "seven"}, {"text": "eight"}, **bounds)

    with pytest.raises(ToolError, match=f"'harbour' did not go on with this call: {why}.*stays done"):
        await run(address, "divine", asked, {"times": 2})
    assert len(asked.requests) == 1


async def test_a_provider_that_fails_for_good_is_told_to_the_server(tmp_path: Path) -> None:
    asked = Asked(tmp_path, {"faults": [{"kind": "auth"}]})

    output = await run(OLDER, "sound", asked, {"words": "how deep?"})

    assert "refused: its model could not be asked" in str(output.output)
    assert asked.model.taken is not None


async def test_without_its_agents_word_nothing_is_asked_and_a_person_is_told_where_it_may(
    address: dict[str, Any], tmp_path: Path
) -> None:
    asked = Asked(tmp_path, {"text": "seven"})
    forbidden = MCPClient(name="harbour")

    with pytest.raises(ToolError, match=r"it wants that a model is asked.*which its agent does not allow"):
        await run(address, "guess", asked, client=forbidden)
    older = await run(OLDER, "sound", asked, {"words": "how deep?"}, client=forbidden)
    async with used(servers(OLDER)) as mcp:
        tool = (await mcp.beside(Toolbox(()), (ALLOWED,))).get("mcp__harbour__sound")
        assert tool is not None
        analysis = await tool.examine({}, place_at(ROOT))

    assert str(older.output).startswith("refused")
    assert asked.requests == []
    assert analysis.notice == "The server may have a model asked in its name while it runs."


async def test_what_is_no_words_is_not_asked(address: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="or with none of 1 to 100 messages"):
        await run(address, "guess", Asked(tmp_path, {"text": "seven"}))


def test_it_is_not_the_operators_to_allow() -> None:
    with pytest.raises(BadMCPSetting, match=r"mcp\.harbour: sampling is the agents' to allow"):
        open_servers({"harbour": {"mcp_config": OLDER, "sampling": {}}}, "", SECRETS)
