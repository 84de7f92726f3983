"""Where settings come from: what a folder may say, and what its user alone."""

from pathlib import Path

import pytest

from longhaul.starter.folder_trust import BadSettingsFile, Untrusted, look
from longhaul.starter.settings import OF_A_FOLDER, BadVariable, Settings, SettingsOfTheUser

OF_THE_USER = frozenset(
    {
        *("codec", "keys", "master_key"),
        *("activities_per_second", "activity_pollers", "activity_slots", "queue_activities_per_second"),
        *("target_cpu", "target_memory"),
        *("analyzers", "approval_key", "blobs", "client_hooks", "condensers", "data_dir", "hooks", "host", "id_key"),
        *(
            "limit_cpu_seconds",
            "limit_file_mb",
            "limit_memory_mb",
            "limit_processes",
            "mcp",
            "mcp_allow",
            "metrics",
            "middlewares",
        ),
        *(
            "model_keys",
            "models",
            "notify",
            "offloaders",
            "opaque_ids",
            "otel_content",
            "player",
            "prices",
            "prompt_templates",
        ),
        *("images", "project", "redis_url", "sandbox", "sandbox_network", "secrets", "secrets_file"),
        *("serve_hosts", "serve_origins", "serve_tokens", "shared", "store", "tools", "memory", "knowledge"),
        *("embeddings", "retrieval", "web_private", "web_robots", "web_search"),
        *("notifications", "trace_url", "web_ui"),
    }
)
"""Through each of these code runs, keys or conversations go somewhere, something is kept elsewhere, or a wall falls."""


NO_NUMBER = (
    "LONGHAUL_ACTIVITY_SLOTS: Input should be a valid integer, unable to parse string as an integer (it is 'many'); "
    "set another value, or leave it out for the default, which is 100"
)
NO_WAY = (
    "LONGHAUL_RETRIEVAL: Input should be 'hybrid' or 'vectors' (it is 'slow'); set another value, or leave it out for "
    "the default, which is 'hybrid'"
)


@pytest.mark.parametrize(
    ("variable", "value", "sentence"),
    [("LONGHAUL_ACTIVITY_SLOTS", "many", NO_NUMBER), ("longhaul_retrieval", "slow", NO_WAY)],
)
def test_a_bad_value_is_refused_by_its_variable_with_the_value_and_a_remedy(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, sentence: str
) -> None:
    monkeypatch.setenv(variable, value)

    with pytest.raises(BadVariable) as refusal:
        Settings()

    assert str(refusal.value) == sentence


def test_a_bad_value_of_a_file_or_an_argument_is_refused_by_its_setting(here: Path) -> None:
    with pytest.raises(BadVariable) as of_argument:
        Settings(activity_slots=0)
    users_own(here, "master_key = 5\n")
    with pytest.raises(BadVariable) as of_file:
        Settings()

    assert str(of_file.value) == (
        "master_key: Input should be a valid string; set another value, or leave it out for the default"
    )
    assert str(of_argument.value).startswith("activity_slots: Input should be greater than or equal to 1 (it is 0);")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, which may say something of itself."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.delenv("LONGHAUL_TRUST")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return folder


def users_own(folder: Path, text: str) -> Path:
    file = folder.parent / "config" / "longhaul" / "longhaul.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def test_of_every_setting_it_is_said_who_may_set_it() -> None:
    everything = set(Settings.model_fields)

    assert everything == OF_A_FOLDER | OF_THE_USER
    assert OF_A_FOLDER.isdisjoint(OF_THE_USER)


@pytest.mark.parametrize("trusts", ["", "1"])
@pytest.mark.parametrize("key", sorted(OF_THE_USER))
def test_what_is_the_users_is_refused_in_a_folder_trusted_or_not(
    here: Path, monkeypatch: pytest.MonkeyPatch, key: str, trusts: str
) -> None:
    monkeypatch.setenv("LONGHAUL_TRUST", trusts)
    for spelt in (key, key.upper()):
        (here / "longhaul.toml").write_text(f'model = "openai:x"\n{spelt} = "command:/bin/sh evil.sh"\n')
        look(here).remember()

        with pytest.raises(
            BadSettingsFile, match=rf"longhaul.toml' sets '{spelt}', which no folder may.*set LONGHAUL_{key.upper()},"
        ):
            Settings()


@pytest.mark.parametrize("key", sorted(OF_A_FOLDER))
def test_what_a_folder_may_say_counts_when_it_is_trusted(here: Path, key: str) -> None:
    odd = {"graceful_shutdown_timeout": "7.0", "search_attributes": "false", "grpc_compression": "'gzip'"}
    value = odd.get(key, "'roof'")
    (here / "longhaul.toml").write_text(f"{key} = {value}\n")

    with pytest.raises(Untrusted, match=f"`longhaul trust {here}`"):
        Settings()
    look(here).remember()

    assert getattr(Settings(), key) in (7.0, False, "gzip", "roof")
    assert getattr(SettingsOfTheUser(), key) == Settings.model_fields[key].default


@pytest.mark.parametrize("key", ["notfy", "longhaul_notify", "env", "roof", "LONGHAUL_TRUST"])
def test_what_is_no_setting_is_named(here: Path, key: str) -> None:
    (here / "longhaul.toml").write_text(f"{key} = 1\n")

    with pytest.raises(BadSettingsFile, match=f"there is no setting '{key}'; "):
        Settings()


def test_the_users_own_file_may_say_everything_and_asks_nothing(here: Path) -> None:
    users_own(here, 'notify = "maildir:/srv/post?to=ana"\ntools = "shop.tools"\nmodel = "openai:own"\n')

    settings = Settings()

    assert (settings.notify, settings.tools, settings.model) == (
        "maildir:/srv/post?to=ana",
        "shop.tools",
        "openai:own",
    )


def test_flags_win_then_the_environment_then_the_folder_then_the_user(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    users_own(here, 'model = "own"\ntask_queue = "own"\nbuild = "own"\ndeployment = "own"\n')
    (here / "longhaul.toml").write_text('task_queue = "folder"\nbuild = "folder"\ndeployment = "folder"\n')
    look(here).remember()
    monkeypatch.setenv("LONGHAUL_BUILD", "environment")
    monkeypatch.setenv("LONGHAUL_DEPLOYMENT", "environment")

    settings = Settings(deployment="flag")

    assert settings.model == "own"
    assert settings.task_queue == "folder"
    assert settings.build == "environment"
    assert settings.deployment == "flag"


@pytest.mark.parametrize(("text", "sentence"), [("tols = 1", "did you mean 'tools'"), ("= 1", "is no TOML")])
def test_a_mistake_in_the_users_own_file_is_named(here: Path, text: str, sentence: str) -> None:
    file = users_own(here, text)

    with pytest.raises(BadSettingsFile, match=f"{file}'.* {sentence}"):
        Settings()


def test_in_the_folder_of_the_users_own_file_it_is_no_folders_file(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(users_own(here, 'tools = "shop.tools"').parent)

    assert Settings().tools == "shop.tools"


def test_a_folder_that_is_left_out_says_nothing_and_refuses_nothing(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "longhaul.toml").write_text('notify = "command:/bin/sh evil.sh"\nmodel = "openai:theirs"\n')
    monkeypatch.setenv("LONGHAUL_TRUST", "0")

    settings = Settings()

    assert (settings.notify, settings.model) == ("", "")


@pytest.mark.parametrize(
    ("variable", "meant"),
    [("LONGHAUL_TASK_QUEU", "TASK_QUEUE"), ("LONGHAUL_STROE", "STORE"), ("longhaul_model_key", "MODEL_KEYS")],
)
@pytest.mark.usefixtures("here")
def test_a_variable_that_is_misspelt_is_named(variable: str, meant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, "x")

    with pytest.raises(BadVariable, match=f"^{variable} is no setting; did you mean LONGHAUL_{meant}\\?"):
        Settings()


@pytest.mark.parametrize("variable", ["LONGHAUL_SHOP", "LONGHAUL_SECRET_STOR", "LONGHAUL_UID", "LONGHAUL_LOG"])
@pytest.mark.usefixtures("here")
def test_variables_of_others_are_let_be(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, "7")

    assert Settings().task_queue == "longhaul"
