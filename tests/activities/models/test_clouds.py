"""Models that clouds host, by the SDKs' own clients over HTTP: what each cloud's server demands, and which credentials
go where."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ParamValidationError  # type: ignore[import-untyped]
from google.auth.exceptions import TransportError

from longhaul.activities.models import providers as providers_module
from longhaul.activities.models.apis.sdk_calls import signing_in
from longhaul.activities.models.failures.failure_classification import judge
from longhaul.activities.models.failures.status_table import ProviderError, SetupError
from longhaul.activities.models.model import ModelReply, ModelRequest
from longhaul.activities.models.profiles import NO_VARIABLES, BadProfiles, read_key_places, read_profiles
from longhaul.activities.models.providers import PROVIDERS, Providers
from longhaul.agent.values.conversation.messages import Base64Source, DataBlock, TextBlock, UserMsg
from longhaul.agent.values.spec.agent_spec import AgentSpec, ModelConfig
from longhaul.agent.values.spec.known_names import CLOUDS, unknown_model
from tests.activities.models import strict_clouds
from tests.activities.models.sample_requests import PIXEL, WEATHER
from tests.activities.models.strict_clouds import (
    CLAUDE,
    DEPLOYED,
    GEMINI,
    KEY,
    NOVA,
    SECRET,
    VERSION,
    Asked,
    hosting,
)
from tests.activities.models.test_providers import ignore

AZURE = {"model": DEPLOYED, "family": "gpt-5.1"}
CONVERSE = {"provider": "ai:bedrock", "model": NOVA, "region": "us-east-1"}
GOOGLE = {"provider": "ai:google-vertex", "model": GEMINI, "region": "us-east5", "project": "our-project"}
CLOUDY: dict[str, tuple[dict[str, Any], Callable[[Asked], bytes], str]] = {
    "azure": ({"provider": "azure", **AZURE, "api_version": VERSION}, strict_clouds.azure, ""),
    "azure, v1": ({"provider": "azure", **AZURE, "api_key_env": "identity"}, strict_clouds.azure_v1, ""),
    "azure-chat": (
        {"provider": "azure-chat", **AZURE, "api_version": VERSION, "api_key_env": "identity"},
        strict_clouds.azure_chat,
        "",
    ),
    "bedrock": ({"provider": "bedrock", "model": CLAUDE, "region": "us-east-1"}, strict_clouds.bedrock, ""),
    "bedrock, signed": (
        {"provider": "bedrock", "model": CLAUDE, "region": "us-east-1", "api_key_env": "identity"},
        strict_clouds.bedrock_signed,
        "",
    ),
    "bedrock-mantle": (
        {"provider": "bedrock-mantle", "model": CLAUDE, "region": "us-east-1"},
        strict_clouds.mantle,
        "/anthropic",
    ),
    "bedrock-mantle, signed": (
        {"provider": "bedrock-mantle", "model": CLAUDE, "region": "us-east-1", "api_key_env": "identity"},
        strict_clouds.mantle_signed,
        "/anthropic",
    ),
    "foundry": ({"provider": "foundry", "model": "claude-opus-4-8"}, strict_clouds.foundry, "/anthropic"),
    "foundry, by token": (
        {"provider": "foundry", "model": "claude-opus-4-8", "api_key_env": "identity"},
        strict_clouds.foundry_by_token,
        "/anthropic",
    ),
    "vertex": (
        {"provider": "vertex", "model": CLAUDE, "region": "us-east5", "project": "our-project"}
        | {"api_key_env": "identity"},
        strict_clouds.vertex,
        "/v1",
    ),
    "ai:bedrock": (CONVERSE, strict_clouds.converse, ""),
    "ai:bedrock, signed": ({**CONVERSE, "api_key_env": "identity"}, strict_clouds.converse_signed, ""),
    "ai:google-vertex": (GOOGLE, strict_clouds.gemini, ""),
    "ai:google-vertex, by token": ({**GOOGLE, "api_key_env": "identity"}, strict_clouds.gemini_by_token, ""),
}
"""A profile, what its server demands, and where below the server it is."""
REGIONAL = {
    "bedrock-mantle": "https://bedrock-mantle.us-east-1.api.aws/anthropic",
    "bedrock": "https://bedrock-runtime.us-east-1.amazonaws.com",
    "vertex": "https://us-east5-aiplatform.googleapis.com/v1",
    "ai:bedrock": "https://bedrock-runtime.us-east-1.amazonaws.com",
    "ai:google-vertex": "https://us-east5-aiplatform.googleapis.com",
}
ASKED = UserMsg(
    "user", [TextBlock(text="Fair wind?"), DataBlock(source=Base64Source(data=PIXEL, media_type="image/png"))]
)


@pytest.fixture
def identity(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], None]:
    """What a worker runs as in each cloud, as those set it: in variables of its own, and a server that gives tokens."""

    def at(url: str) -> None:
        subject, google = tmp_path / "subject", tmp_path / "google.json"
        subject.write_text("who-i-am")
        google.write_text(json.dumps({
            "type": "external_account", "audience": "//iam.googleapis.com/locations/global/workforcePools/reef",
            "subject_token_type": "urn:ietf:params:oauth:token-type:jwt", "token_url": f"{url}/token",
            "credential_source": {"file": str(subject)},
        }))  # fmt: skip
        for name, value in {
            "AWS_ACCESS_KEY_ID": "AKIAMOSS", "AWS_SECRET_ACCESS_KEY": SECRET,
            "GOOGLE_APPLICATION_CREDENTIALS": str(google),
            "IDENTITY_ENDPOINT": f"{url}/token", "IDENTITY_HEADER": "gorse",
            "ANTHROPIC_API_KEY": "ambient-anthropic", "ANTHROPIC_AUTH_TOKEN": "ambient-token",
            "OPENAI_API_KEY": "ambient-openai", "OPENAI_ORG_ID": "ambient-org",
            "AWS_BEARER_TOKEN_BEDROCK": "ambient-bedrock", "GOOGLE_API_KEY": "ambient-google",
            "GOOGLE_CLOUD_PROJECT": "ambient-project", "GOOGLE_CLOUD_LOCATION": "ambient-place",
            "ANTHROPIC_CUSTOM_HEADERS": "Authorization: Bearer ambient\nx-of-the-account: ambient",
            "OPENAI_CUSTOM_HEADERS": "Authorization: Bearer ambient\nx-of-the-account: ambient",
        }.items():  # fmt: skip
            monkeypatch.setenv(name, value)

    return at


def profile_of(kind: str, url: str) -> dict[str, Any]:
    table, _, below = CLOUDY[kind]
    return {"api_key_env": "CLOUD_KEY", **table, "base_url": f"{url}{below}"}


async def answered(table: dict[str, Any], **environ: str) -> ModelReply:
    providers = Providers({"CLOUD_KEY": KEY, **environ}, (), read_profiles({"tide": table}))
    request = ModelRequest("", "Be brief.", [ASKED], (WEATHER,), ModelConfig(temperature=0.5))
    try:
        return await providers.call("tide", request, ignore)
    finally:
        await providers.close()


@pytest.mark.proves("F6")
@pytest.mark.parametrize("kind", CLOUDY)
async def test_each_cloud_is_asked_and_signed_in_as_it_demands(kind: str, identity: Callable[[str], None]) -> None:
    async with hosting(CLOUDY[kind][1]) as server:
        identity(server.url)
        reply = await answered(profile_of(kind, server.url))

    assert [block.text for block in reply.content if isinstance(block, TextBlock)] == ["Aye."]
    assert server.asked[0].body.get("tools") or server.asked[0].body["toolConfig"]["tools"]
    by_token = kind in ("azure, v1", "azure-chat", "foundry, by token", "vertex", "ai:google-vertex, by token")
    assert server.tokens == by_token


def test_each_cloud_is_tried_here() -> None:
    assert {table["provider"] for table, *_ in CLOUDY.values()} == {*CLOUDS}


@pytest.mark.parametrize("kind", CLOUDY)
async def test_what_is_signed_in_otherwise_is_refused(kind: str, identity: Callable[[str], None]) -> None:
    """So the servers do look."""
    async with hosting(CLOUDY[kind][1]) as server:
        identity(server.url)
        with pytest.raises(Exception, match=r"signed in with|does not match|Credential") as refused:
            await answered({**profile_of(kind, server.url), "api_key_env": "ANOTHER_KEY"}, ANOTHER_KEY="x=" + "y" * 20)

    assert judge(refused.value).kind in ("never", "fall_back")


@pytest.mark.parametrize("kind", CLOUDY)
def test_an_agents_own_profile_signs_in_nowhere_that_is_not_listed(kind: str) -> None:
    """Not by what the worker runs as either, whether its address is the cloud's own or another."""
    table = profile_of(kind, "https://reef.example")
    own = {name: value for name, value in table.items() if name != "base_url"}
    tables = [table, {**table, "api_key_env": "identity"}]
    tables += [own, {**own, "api_key_env": "identity"}] if "region" in own else []
    for each in tables:
        spec = AgentSpec.model_validate({"model": "reef", "models": {"reef": each}})
        with pytest.raises(SetupError, match=r"does not send (CLOUD_KEY|identity) to 'https://"):
            Providers({"CLOUD_KEY": KEY}).check(spec)
        place = each.get("base_url") or REGIONAL[each["provider"]]
        Providers({"CLOUD_KEY": KEY}, read_key_places(f"{each['api_key_env']}={place}")).check(spec)


def test_the_usual_key_goes_to_the_regions_own_address_by_the_operators_word_alone() -> None:
    table = {"provider": "bedrock", "model": CLAUDE, "region": "eu-west-1"}
    home = "https://bedrock-runtime.eu-west-1.amazonaws.com"
    of_operator = Providers({}, (), read_profiles({"reef": table}))

    called = of_operator.look_up("reef", ModelConfig())
    assert called is not None
    assert of_operator.way(called) == (home, "AWS_BEARER_TOKEN_BEDROCK")
    with pytest.raises(SetupError, match=f"does not send AWS_BEARER_TOKEN_BEDROCK to '{home}'"):
        Providers({}).check(AgentSpec.model_validate({"model": "reef", "models": {"reef": table}}))


def test_the_worker_signs_in_as_itself_to_vertex_where_the_operators_profile_names_no_key() -> None:
    table = {"provider": "vertex", "model": CLAUDE, "region": "global", "project": "ours"}
    providers = Providers({}, (), read_profiles({"reef": table}))

    called = providers.look_up("reef", ModelConfig())
    assert called is not None
    assert providers.way(called) == ("https://aiplatform.googleapis.com/v1", "identity")


async def test_no_number_of_projects_is_too_many_for_a_worker() -> None:
    table = {"provider": "vertex", "model": CLAUDE, "region": "global", "api_key_env": "identity"}
    named = {f"reef-{number}": {**table, "project": f"ours-{number}"} for number in range(4)}
    with pytest.MonkeyPatch.context() as fewer:
        fewer.setattr(providers_module, "CLOUDS_KEPT", 2)
        providers = Providers({}, (), read_profiles(named))
        await providers.warm()

    assert len(providers._models) == 2  # noqa: SLF001  nothing else tells of it
    await providers.close()


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ({"provider": "bedrock"}, "region: bedrock needs one"),
        ({"provider": "bedrock-mantle"}, "region: bedrock-mantle needs one"),
        ({"provider": "vertex", "region": "us-east5"}, "project: vertex needs one"),
        ({"provider": "ai:bedrock"}, "region: ai:bedrock needs one"),
        ({"provider": "ai:google-vertex", "region": "us-east5"}, "project: ai:google-vertex needs one"),
        ({"provider": "ai:google", "api_key_env": "identity"}, "identity is for azure"),
        ({"provider": "azure"}, "base_url: azure needs one"),
        ({"provider": "foundry"}, "base_url: foundry needs one"),
        ({"provider": "anthropic", "region": "us-east-1"}, "region: anthropic has no such thing"),
        ({"provider": "bedrock", "region": "us-east-1.evil.example"}, "it has to be of small letters"),
        ({"provider": "azure", "base_url": "https://x.example", "api_version": "a&b"}, "it has to be a version"),
        ({"provider": "openai", "api_key_env": "identity"}, "identity is for azure"),
    ],
)
def test_what_a_cloud_can_not_be_asked_by_is_told(table: dict[str, Any], told: str) -> None:
    with pytest.raises(BadProfiles, match=told):
        read_profiles({"tide": {"model": "x", **table}})


def test_a_clouds_model_by_name_alone_is_told_to_need_a_profile() -> None:
    assert unknown_model("bedrock:x") == (
        "model 'bedrock:x' needs a profile: write [models.NAME] with provider = \"bedrock\""
    )


@pytest.mark.proves("F6")
@pytest.mark.parametrize(
    ("kind", "absent", "extra"),
    [
        ("bedrock", "boto3", "bedrock"),
        ("bedrock-mantle, signed", "boto3", "bedrock"),
        ("vertex", "google.auth", "vertex"),
        ("foundry, by token", "azure.identity", "azure"),
        ("ai:bedrock", "boto3", "ai,bedrock"),
        ("ai:bedrock, signed", "pydantic_ai", "ai,bedrock"),
        ("ai:google-vertex", "google.genai", "ai"),
    ],
)
def test_what_is_not_installed_is_told_when_an_agent_is_checked(kind: str, absent: str, extra: str) -> None:
    table = profile_of(kind, "https://reef.example")
    command = (
        f"import sys; sys.modules[{absent!r}] = None; from longhaul.activities.models.providers import Providers;"
        "from longhaul.activities.models.profiles import read_profiles;"
        "from longhaul.agent.values.spec.agent_spec import AgentSpec;"
        f"Providers({{}}, (), read_profiles({{'tide': {table!r}}})).check(AgentSpec(model='tide'))"
    )
    ran = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=False, timeout=60)

    assert f"need '{absent}', which is not installed on the worker" in ran.stderr
    assert f"pip install 'longhaul-agents[{extra}]'" in ran.stderr


@pytest.mark.parametrize("kind", ["bedrock, signed", "ai:bedrock, signed"])
async def test_a_worker_that_is_nobody_at_aws_is_told_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kind: str
) -> None:
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    async with hosting(CLOUDY[kind][1]) as server:
        with pytest.raises(SetupError, match="could not sign in to the model's provider") as failed:
            # A region of its own: the SDK keeps what it has found for one.
            await answered({**profile_of(kind, server.url), "region": "eu-west-3"})

    assert judge(failed.value).error_type == "setup"
    assert not server.asked


@pytest.mark.parametrize("kind", ["vertex", "ai:google-vertex, by token"])
async def test_a_worker_that_is_nobody_at_google_is_told_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kind: str
) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "none"))
    async with hosting(CLOUDY[kind][1]) as server:
        with pytest.raises(SetupError, match="could not sign in to the model's provider") as failed:
            await answered(profile_of(kind, server.url))

    assert judge(failed.value).error_type == "setup"
    assert not server.asked


def test_what_may_pass_while_signing_in_is_tried_again() -> None:
    with pytest.raises(ProviderError) as failed, signing_in():
        raise TransportError("no route")  # type: ignore[no-untyped-call]

    assert judge(failed.value).kind == "retry"


def test_a_request_that_boto3_does_not_send_is_no_failure_to_sign_in() -> None:
    with pytest.raises(ParamValidationError) as failed, signing_in():
        raise ParamValidationError(report="messages: wrong type")

    assert (judge(failed.value).kind, judge(failed.value).error_type) == ("never", "invalid_request")


def test_the_word_for_no_variable_is_no_key() -> None:
    assert {*NO_VARIABLES} == {"none", "identity"}
    assert PROVIDERS["vertex"].key_env == "identity"
