"""The worker's own keys, which no agent is given: a tool that prints them prints their names."""

import json

import pytest

from longhaul.activities.attempt.secrets import WorkerSecrets
from longhaul.activities.attempt.worker_capabilities import own_keys
from longhaul.activities.masker import Masker
from longhaul.activities.models.apis.vendors import VENDORS
from longhaul.activities.models.profiles import read_key_places
from longhaul.activities.models.providers import PROVIDERS
from longhaul.agent.values.spec.profiles import IDENTITY
from tests.e2e.processes import WorkerSettings, worker
from tests.workflows.conftest import Stage
from tests.workflows.operations import calls, results

KEYS = {
    "ANTHROPIC_API_KEY": "sk-ant-lilac-71",
    "OPENAI_API_KEY": "sk-proj-heather-72",
    "DASHSCOPE_API_KEY": "sk-dash-fern-73",
    "XAI_API_KEY": "xai-clover-87",
    "ANTHROPIC_AUTH_TOKEN": "auth-token-moss-74",
    "OPENAI_ADMIN_KEY": "sk-admin-thyme-75",
    "TEMPORAL_API_KEY": "temporal-rowan-76",
    "TEAM_KEY": "sk-team-sorrel-77",
    "LONGHAUL_ID_KEY": "id-key-sedge-78",
    "AWS_BEARER_TOKEN_BEDROCK": "bedrock-key-heath-83",
    "AWS_SECRET_ACCESS_KEY": "aws-secret-broom-84",
    "ANTHROPIC_FOUNDRY_API_KEY": "foundry-key-furze-85",
    "AZURE_CLIENT_SECRET": "azure-secret-ling-86",
    **{vendor.key_env: f"sk-{name}-of-some-length" for name, vendor in VENDORS.items() if vendor.key_env != IDENTITY},
}
SIGNING = {"LONGHAUL_APPROVAL_KEY": "a1:first-signer-79-of-enough-characters,a2:second-signer-80-of-enough-characters"}
SPOKEN = {
    **KEYS,
    "LONGHAUL_APPROVAL_KEY": "first-signer-79-of-enough-characters",
    "LONGHAUL_APPROVAL_KEY_1": "second-signer-80-of-enough-characters",
}
PLACES = "TEAM_KEY=https://models.example"


def test_each_providers_key_is_a_secret_of_the_worker() -> None:
    found = own_keys(
        {**KEYS, **SIGNING, "LONGHAUL_REDIS_URL": "redis://ana:red-gorse-81@h"}, read_key_places(PLACES), {}
    )

    assert found == {**SPOKEN, "LONGHAUL_REDIS_URL_PASSWORD": "red-gorse-81"}
    assert {provider.key_env for provider in PROVIDERS.values()} - {"", IDENTITY} <= set(found)


def test_what_could_be_a_word_is_not_cut_out_of_texts() -> None:
    keys = own_keys(
        {"OPENAI_API_KEY": "none", "ANTHROPIC_API_KEY": " "}, read_key_places("none=http://127.0.0.1:1"), {}
    )

    assert keys == {}
    assert WorkerSecrets({}, keys).masker.masked("none of it") == "none of it"


def test_own_keys_are_masked_and_given_to_nobody() -> None:
    secrets = WorkerSecrets({"GATE_KEY": "gate-9c41f2"}, KEYS)

    assert secrets.masker.masked("sk-ant-lilac-71 gate-9c41f2") == "[secret ANTHROPIC_API_KEY] [secret GATE_KEY]"
    assert secrets.missing(["GATE_KEY", "ANTHROPIC_API_KEY"]) == ["ANTHROPIC_API_KEY"]


@pytest.mark.server
async def test_a_command_that_prints_the_workers_own_keys_prints_their_names(unserved: Stage) -> None:
    stage = unserved
    (stage.workspace / "kept").write_text("\n".join(SPOKEN.values()))
    settings = WorkerSettings(
        address=stage.address,
        task_queue=stage.name,
        directory=stage.settings.data_dir,
        tools="",
        # With TEMPORAL_API_KEY it would look for a server with TLS.
        further={
            **{name: key for name, key in KEYS.items() if name != "TEMPORAL_API_KEY"},
            **SIGNING,
            "LONGHAUL_MODEL_KEYS": PLACES,
        },
    )
    session = stage.session(
        calls("Bash", command="cat kept"),
        calls("Read", file_path="kept"),
        {"text": "Done."},
        tools=["Bash", "Read"],
        permission={"mode": "bypass"},
    )
    async with worker(settings) as process:
        done = await session.reply("Look around")
        history = (await stage.handle(session).fetch_history()).to_json()
        process.ask_to_stop()
        await process.wait()

    printed = [text for _, text in results(done)]
    for name in set(SPOKEN) - {"TEMPORAL_API_KEY"}:
        assert all(f"[secret {name}]" in text for text in printed), name
    masker = Masker({name: value for name, value in SPOKEN.items() if name != "TEMPORAL_API_KEY"})
    assert not masker.found(json.dumps(history) + process.log.read_text() + await process.rest_of_stdout())
