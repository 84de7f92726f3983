"""A misspelt name is heard of, with the nearest that there is: at once where it can be right nowhere, and within
seconds, while the session goes on asking, where another worker may have it."""

import time
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import WorkflowFailureError
from temporalio.exceptions import ApplicationError

from longhaul.agent.values.conversation.messages import FinishedReason
from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.starter.client.agent_files import BadAgent
from longhaul.starter.client.session import Session
from longhaul.starter.client.wire import Refused
from longhaul.workflows.contract import TASK_TIMEOUT, WORKFLOW
from tests.agent.values.test_known_names import BY_WORKERS, MISSPELT
from tests.limits import usual
from tests.workflows.conftest import Stage
from tests.workflows.offered import SHELF
from tests.workflows.operations import until

pytestmark = [pytest.mark.server, pytest.mark.alone]

OFFERED = "tests.workflows.offered"
SECONDS = 2.0


def offering(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Stage:
    """The same stage, whose workers have one of everything that agents may name."""
    monkeypatch.setenv(SHELF, str(stage.folder / "shelf"))
    (stage.folder / "skills").mkdir()
    (stage.folder / "templates").mkdir()
    (stage.folder / "templates" / "harbour.md").write_text("{system_prompt}")
    settings: dict[str, Any] = {
        "tools": f"{stage.settings.tools},tests.workflows.custom_agents.own_agents",
        "offloaders": f"{OFFERED}:shelf",
        "condensers": f"{OFFERED}:Forgetful",
        "analyzers": f"{OFFERED}:Trusting",
        "images": "harbour=podman:harbour",
        "middlewares": "?tests.workflows.middlewares:Marks",
        "prompt_templates": stage.folder / "templates",
        "secrets_file": _secrets(stage.folder / "secrets.toml"),
    }
    return stage.with_settings(**settings)


def _secrets(path: Path) -> Path:
    path.write_text('HARBOUR_KEY = "a-long-value-of-no-use"\n')
    path.chmod(0o600)
    return path


def misspelt(stage: Stage) -> dict[str, tuple[dict[str, Any], str]]:
    """What workers alone can tell, by the setting that names it, with what they answer."""
    group = {"tools": ["fetsh"], "description": "To fetch."}
    return {
        "tools": ({"tools": ["fetsh"]}, "did you mean 'fetch'?"),
        "tool_groups": ({"tool_groups": {"carry": group}}, "did you mean 'fetch'?"),
        "custom_agent": ({"custom_agent": "teler"}, "did you mean 'teller'?"),
        "postprocess": ({"postprocess": {"fetch": "page_alne"}}, "did you mean 'page_alone'?"),
        "middlewares": ({"middlewares": ["mark"]}, "did you mean 'marks'?"),
        "skills": ({"skills": [str(stage.folder / "skils")]}, f"did you mean '{stage.folder}/skills'?"),
        "secrets.allow": ({"secrets": {"allow": ["HARBOR_KEY"]}}, "did you mean 'HARBOUR_KEY'?"),
        "agent_context.prompt_template": (
            {"agent_context": {"prompt_template": "harbor"}},
            "did you mean 'harbour'?",
        ),
        "offloader": ({"offloader": f"{OFFERED}:self"}, f"did you mean '{OFFERED}:shelf'?"),
        "offloader without its store": ({"offloader": "redis"}, "(LONGHAUL_REDIS_URL)"),
        "context_config.condensers": (
            {"context_config": {"condensers": ["summary", f"{OFFERED}:Forgetfull"]}},
            f"did you mean '{OFFERED}:Forgetful'?",
        ),
        "permission.analyzers": (
            {"permission": {"analyzers": [f"{OFFERED}:Thrusting"]}},
            f"did you mean '{OFFERED}:Trusting'?",
        ),
        "knowledge_bases": ({"knowledge_bases": ["harbour"]}, "there is none yet"),
        "workspace.seal.image": (
            {"workspace": {"root": str(stage.workspace), "place": "sandbox", "seal": {"image": "habor"}}},
            "did you mean 'harbour'?",
        ),
        "workspace.root": (
            {"workspace": {"root": str(stage.folder / "workspce")}},
            f"did you mean '{stage.folder}/workspace'?",
        ),
    }


def _profile(**said: str) -> dict[str, Any]:
    return {"models": {"tide": {"provider": "openai", "model": "gpt-x", **said}}}


AT_ONCE: dict[str, tuple[dict[str, Any], str]] = {
    "model_config.base_url": ({"model_config": {"base_url": "models.example"}}, "'models.example' is no address"),
    "model_config.api_key_env": ({"model_config": {"api_key_env": "PATH"}}, "does not send PATH to"),
    "models.base_url": ({"model": "tide", **_profile(base_url="http://127.0.0.1:1")}, "to 'http://127.0.0.1:1'"),
    "models.api_key_env": ({"model": "tide", **_profile(api_key_env="PATH")}, "does not send PATH to"),
    "a schema that is none": (
        {"context_config": {"summary_schema": {"properties": {"mood": {"type": "colour"}}}}},
        "summary_schema: it is no JSON schema",
    ),
}
"""What no waiting fixes, as the first worker can tell."""


def test_everything_that_workers_look_for_is_misspelt_here(unserved: Stage) -> None:
    assert {*misspelt(unserved), *AT_ONCE} - {"offloader without its store", "a schema that is none"} == BY_WORKERS - {
        "tool_groups.tools"
    }


async def lacking(session: Session) -> str:
    async def lacks() -> bool:
        return (await session.status()).lacking != ""

    await until(lacks)
    return (await session.status()).lacking


@pytest.mark.proves("A6")
async def test_what_no_worker_has_is_told_while_others_are_asked(
    unserved: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One after the other: the clock is watched."""
    stage = offering(unserved, monkeypatch)
    told: dict[str, tuple[bool, bool, str]] = {}
    async with stage.another_worker():
        await stage.session({"text": "Warm."}).reply("Warm up")
        for what, (spec, sentence) in misspelt(stage).items():
            session = stage.session({"text": "Here."}, **spec)
            began = time.monotonic()
            await session.submit("Are you there?")
            said = await lacking(session)
            took = time.monotonic() - began
            told[what] = (took < usual(SECONDS), sentence in said, f"{took:.1f} s: {said}")
            await session.interrupt()

    assert {what: (True, True, said) for what, (_, _, said) in told.items()} == told


async def test_a_reader_of_the_reply_is_told_too(unserved: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = offering(unserved, monkeypatch)
    session = stage.session({"text": "Here."}, offloader=f"{OFFERED}:self")
    reason, took = "", SECONDS
    async with stage.another_worker():
        await stage.session({"text": "Warm."}).reply("Warm up")
        began = time.monotonic()
        async for event in session.reply_stream("Are you there?"):
            if event.name == "worker_lacks":
                reason, took = event.value["reason"], time.monotonic() - began
                break

    assert took < usual(SECONDS)
    assert f"no offloader is named '{OFFERED}:self'" in reason
    assert "(worker " in reason


async def test_a_session_goes_on_with_the_first_worker_that_has_what_it_names(
    unserved: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    able = offering(unserved, monkeypatch)
    session = unserved.session({"text": "Here."}, offloader=f"{OFFERED}:shelf")
    async with unserved.another_worker():
        reply = await session.submit("Are you there?")
        said = await lacking(session)
        async with able.another_worker():
            done = await session.wait(reply)
            after = (await session.status()).lacking

    assert "they have: blobs, none, workspace" in said
    assert (done.get_text_content(), after) == ("Here.", "")


async def test_what_no_waiting_fixes_ends_the_reply_at_once(stage: Stage) -> None:
    """One after the other: the clock is watched."""
    told: dict[str, tuple[bool, FinishedReason | None, bool]] = {}
    for what, (spec, sentence) in AT_ONCE.items():
        session = stage.session(**{"model": "openai:gpt-x", **spec})
        began = time.monotonic()
        done = await session.reply("Are you there?")
        why = done.error.message if done.error else ""
        told[what] = (time.monotonic() - began < usual(SECONDS), done.finished_reason, sentence in why)

    assert told == dict.fromkeys(AT_ONCE, (True, FinishedReason.ERROR, True))


def test_what_can_be_right_nowhere_is_refused_by_the_client(unserved: Stage) -> None:
    """Also where a copy of a good agent was given it, which nobody checks."""
    said: dict[str, bool] = {}
    for what, (body, sentence) in MISSPELT.items():
        with pytest.raises(BadAgent) as refusal:
            unserved.app.session("nobody", agent=AgentSpec.model_construct(**_constructed(body)))
        said[what] = sentence in str(refusal.value)

    assert said == dict.fromkeys(MISSPELT, True)


@pytest.mark.proves("A6")
async def test_what_can_be_right_nowhere_starts_no_session_by_hand_either(unserved: Stage) -> None:
    """One worker for all, in a process of its own: the SDK leaves a coroutine behind for each."""
    said: dict[str, tuple[str, bool, bool]] = {}
    async with unserved.worker_process():
        for number, (what, (body, sentence)) in enumerate(MISSPELT.items()):
            began = time.monotonic()
            handle = await unserved.client.start_workflow(
                WORKFLOW,
                {"session_id": "lamp", "spec": {"name": "lamp", **body}},
                id=f"{unserved.name}-by-hand-{number}",
                task_queue=unserved.settings.task_queue,
                task_timeout=TASK_TIMEOUT,
            )
            with pytest.raises(WorkflowFailureError) as failure:
                await handle.result()
            cause = failure.value.cause
            assert isinstance(cause, ApplicationError)
            said[what] = (str(cause.type), sentence in cause.message, time.monotonic() - began < usual(SECONDS))

    assert said == dict.fromkeys(MISSPELT, ("BadStart", True, True))


def _constructed(body: dict[str, Any]) -> dict[str, Any]:
    """As `model_copy(update=…)` would leave it: unchecked."""
    return {**{name: getattr(AgentSpec(), name) for name in AgentSpec.model_fields}, **_by_field(body)}


def _by_field(body: dict[str, Any]) -> dict[str, Any]:
    names = {field.alias or name: name for name, field in AgentSpec.model_fields.items()}
    return {names[key]: value for key, value in body.items()}


async def test_a_misspelt_model_is_refused_by_a_session_that_runs(stage: Stage) -> None:
    session = stage.session({"text": "One."}, {"text": "Two."})
    await session.reply("Begin")
    began = time.monotonic()

    with pytest.raises(Refused, match=r"configure: model: .* did you mean 'openai:gpt-x'\?"):
        await session.configure(model="opnai:gpt-x")

    assert time.monotonic() - began < usual(SECONDS)
    assert (await session.reply("Go on")).get_text_content() == "Two."
