"""Names, keys and addresses of models."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from longhaul.activities.models.failures.failure_classification import judge
from longhaul.activities.models.failures.status_table import SetupError
from longhaul.activities.models.model import Delta, ModelRequest
from longhaul.activities.models.model_limits import ModelName, context_length, parse_model_name
from longhaul.activities.models.profiles import KeyPlace, read_key_places
from longhaul.activities.models.providers import Providers
from longhaul.agent.values.conversation.messages import TextBlock, UserMsg
from longhaul.agent.values.spec.agent_spec import ModelConfig
from tests.activities.models.wire import Answer, Wire, chat_says, claude_says


def ask(**config: object) -> ModelRequest:
    return ModelRequest("", "", [UserMsg("user", "Hi")], (), ModelConfig.model_validate(config))


def ignore(_: Delta) -> None:
    pass


@pytest.mark.parametrize(
    ("full", "parts"),
    [
        ("anthropic:claude-x", ModelName("anthropic", "claude-x")),
        ("openai-chat:qwen2.5:7b", ModelName("openai-chat", "qwen2.5:7b")),
        ("scripted:/tmp/a b.jsonl", ModelName("scripted", "/tmp/a b.jsonl")),
        ("qwen:qwen-plus", ModelName("qwen", "qwen-plus")),
        ("xai:grok-4.7", ModelName("xai", "grok-4.7")),
        ("ai:ollama:qwen3:8b", ModelName("ai:ollama", "qwen3:8b")),
    ],
)
def test_a_name_is_split_at_its_first_colon(full: str, parts: ModelName) -> None:
    assert parse_model_name(full) == parts


@pytest.mark.parametrize(
    "full", ["claude-x", "", "anthropic:", "anthropic: ", "zebra:large", ":x", "ai:", "ai:google", "ai:google: "]
)
def test_an_unknown_name_is_refused_with_the_known_prefixes(full: str) -> None:
    with pytest.raises(
        SetupError, match=r"is unknown: write anthropic:NAME, openai:NAME .* qwen:NAME, xai:NAME or scripted:FILE"
    ):
        parse_model_name(full)


@pytest.mark.proves("F6")
@pytest.mark.parametrize(
    ("model", "variable"),
    [
        ("anthropic:c", "ANTHROPIC_API_KEY"),
        ("openai:g", "OPENAI_API_KEY"),
        ("openai-chat:g", "OPENAI_API_KEY"),
        ("qwen:q", "DASHSCOPE_API_KEY"),
        ("xai:g", "XAI_API_KEY"),
    ],
)
async def test_a_missing_key_is_named_and_never_retried(model: str, variable: str) -> None:
    with pytest.raises(SetupError, match=f"environment variable {variable} is not set on the worker") as caught:
        await Providers({variable: "  "}).call(model, ask(), ignore)

    assert (judge(caught.value).kind, judge(caught.value).error_type) == ("never", "setup")


async def test_a_key_with_odd_characters_is_not_shown() -> None:
    with pytest.raises(SetupError, match="does not hold a key: odd characters") as caught:
        await Providers({"ANTHROPIC_API_KEY": "schlüssel"}).call("anthropic:c", ask(), ignore)

    assert "schl" not in str(caught.value)


async def test_an_address_without_a_scheme_is_refused() -> None:
    with pytest.raises(SetupError, match="base_url 'localhost:8000' is no address"):
        await Providers({"OPENAI_API_KEY": "k"}).call("openai:g", ask(base_url="localhost:8000"), ignore)


async def test_address_and_key_come_from_the_environment_or_from_the_operators_list(wire: Wire) -> None:
    environ = {"ANTHROPIC_BASE_URL": wire.url, "ANTHROPIC_API_KEY": " sk-usual\n", "TEAM_KEY": "sk-team"}
    providers = Providers(environ, [KeyPlace("TEAM_KEY", wire.url)])
    wire.answers += [Answer(claude_says("a")), Answer(claude_says("b"))]

    await providers.call("anthropic:claude-haiku-4-5", ask(), ignore)
    await providers.call("anthropic:claude-haiku-4-5", ask(api_key_env="TEAM_KEY"), ignore)
    await providers.close()

    assert ["authorization: bearer sk-usual" in head.lower() for head in wire.heads] == [True, False]
    assert ["authorization: bearer sk-team" in head.lower() for head in wire.heads] == [False, True]


def test_no_sdk_is_loaded_before_its_first_use() -> None:
    script = (
        "import sys\nfrom longhaul.activities.models import providers\n"
        "from longhaul.activities.models.failures import failure_classification\n"
        "from longhaul.activities.models import scripted_model\n"
        "print([name for name in ('anthropic', 'openai', 'httpx', 'httpx2') if name in sys.modules])"
    )

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert done.stdout == "[]\n"


def test_a_worker_loads_ahead_what_it_has_keys_for_and_stumbles_over_no_bad_address() -> None:
    script = (
        "import asyncio, sys\nfrom longhaul.activities.models.providers import Providers\n"
        "keys = {'OPENAI_API_KEY': 'k', 'DASHSCOPE_API_KEY': 'k', 'DASHSCOPE_BASE_URL': 'nowhere'}\n"
        "asyncio.run(Providers(keys).warm())\n"
        "print([name for name in ('anthropic', 'openai') if name in sys.modules])"
    )

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert done.stdout == "['openai']\n"


@pytest.mark.parametrize(
    ("model", "tokens"),
    [
        ("anthropic:claude-sonnet-5", 1_000_000),
        ("openai:gpt-4.1-mini", 1_047_576),
        ("openai:gpt-4o", 128_000),
        ("openai-chat:Qwen/Qwen3-Coder-30B", 262_144),
        ("qwen:qwen-max", 32_768),
        ("o3", 200_000),
        ("scripted:/tmp/x.jsonl", 128_000),
        ("openai-chat:my-own", 128_000),
    ],
)
def test_the_window_is_known_from_the_name_or_assumed(model: str, tokens: int) -> None:
    assert context_length(model) == tokens


async def test_only_the_scripted_model_does_without_a_key_that_was_chosen(tmp_path: Path, wire: Wire) -> None:
    file = tmp_path / "demo.jsonl"
    file.write_text('{"text": "Hello"}\n')
    wire.answers += [Answer(chat_says("a")), Answer(chat_says("b"))]
    providers = Providers({"OPENAI_API_KEY": "sk-first"}, read_key_places(f"none={wire.url},TEAM_KEY={wire.url}"))

    scripted = await providers.call(f"scripted:{file}", ask(), ignore)
    calls = [providers.call("openai-chat:m", ask(base_url=wire.url), ignore) for _ in range(2)]
    await asyncio.gather(*calls)
    await providers.close()

    assert scripted.content == (TextBlock(text="Hello"),)
    assert len(wire.bodies) == 2
    with pytest.raises(SetupError, match="TEAM_KEY is not set"):
        await providers.call("openai-chat:m", ask(base_url=wire.url, api_key_env="TEAM_KEY"), ignore)
