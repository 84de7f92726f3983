"""What a worker needs for models of other vendors, and when it says that it has it not."""

import subprocess
import sys

import pytest

from longhaul.activities.models.apis.vendors import VENDORS
from longhaul.activities.models.failures.status_table import SetupError
from longhaul.activities.models.providers import Providers
from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.agent.values.spec.known_names import CLOUDS
from tests.activities.models.test_providers import ask, ignore


async def test_a_name_that_its_vendor_cannot_have_is_told() -> None:
    """OpenRouter's begin with the vendor behind it."""
    providers = Providers({"OPENROUTER_API_KEY": "sk-x"})

    with pytest.raises(SetupError, match="OpenRouter model names must be prefixed"):
        await providers.call("ai:openrouter:gpt-5", ask(), ignore)

    await providers.close()


@pytest.mark.parametrize("vendor", [vendor for vendor in VENDORS if f"ai:{vendor}" not in CLOUDS])
def test_a_server_of_ones_own_needs_an_address(vendor: str) -> None:
    providers = Providers({})
    spec = AgentSpec(model=f"ai:{vendor}:some/model")
    if VENDORS[vendor].base_url:
        providers.check(spec)
        return
    with pytest.raises(SetupError, match=f"The base_url of ai:{vendor}, which has none itself, is no address"):
        providers.check(spec)
    Providers({VENDORS[vendor].base_url_env: "https://harbour.example/v1"}).check(spec)


def test_nothing_of_the_library_is_imported_before_a_call() -> None:
    """Not by a worker that has the keys, nor by one whose agents are checked."""
    command = (
        "import asyncio, sys; from longhaul.activities.models.providers import Providers;"
        "from longhaul.activities.models.apis.vendors import VENDORS;"
        "from longhaul.agent.values.spec.agent_spec import AgentSpec;"
        "made = Providers({vendor.key_env: 'sk-some' for vendor in VENDORS.values()});"
        "made.check(AgentSpec(model='ai:google:gemini-3-pro')); asyncio.run(made.warm());"
        "print(sorted({'pydantic_ai', 'boto3', 'cohere', 'groq', 'mistralai', 'google.genai', 'genai_prices'}"
        " & {*sys.modules}))"
    )
    ran = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True, timeout=60)

    assert ran.stdout == "[]\n"


@pytest.mark.proves("F6")
@pytest.mark.parametrize(
    ("vendor", "absent"),
    [("deepseek", "pydantic_ai"), ("groq", "groq"), ("mistral", "mistralai"), ("cohere", "cohere")],
)
def test_what_is_not_installed_is_told_when_an_agent_is_checked(vendor: str, absent: str) -> None:
    command = (
        f"import sys; sys.modules[{absent!r}] = None; from longhaul.activities.models.providers import Providers;"
        "from longhaul.agent.values.spec.agent_spec import AgentSpec;"
        f"Providers({{}}).check(AgentSpec(model='ai:{vendor}:some/model'))"
    )
    ran = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=False, timeout=60)

    assert f"Models of ai:{vendor} need '{absent}', which is not installed on the worker" in ran.stderr
    assert f"pip install 'longhaul-agents[{'cohere' if vendor == 'cohere' else 'ai'}]'" in ran.stderr
