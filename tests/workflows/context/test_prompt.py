"""What the model is shown in live sessions: skills, triggers, hooks, and a beginning that stays as it is."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from longhaul.agent.plain.values import digest_of
from longhaul.agent.values.prompt_cache import Missed
from longhaul.agent.values.spec.agent_spec import ContextConfig
from longhaul.starter.client.session import Session
from longhaul.starter.render_session import caching
from tests.activities.models.wire import (
    Answer,
    Wire,
    chat_says,
    claude_calls,
    claude_says,
    events,
    gpt_calls,
    response_event,
    response_says,
)
from tests.workflows.conftest import Line, Stage
from tests.workflows.operations import approve_and_finish, calls

pytestmark = pytest.mark.server

HOOKS = "tests.workflows.prompt_hooks"


def write_skill(folder: Path, name: str, body: str, triggers: str = "[]") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    front = f"name: {name}\ndescription: All about {name}.\ntriggers: {triggers}"
    (folder / "SKILL.md").write_text(f"---\n{front}\n---\n{body}\n")


async def entries(stage: Stage, session: Session, kind: str) -> list[dict[str, Any]]:
    page = await stage.handle(session).query("entries", args=[1])
    return [entry for entry in page["entries"] if entry["kind"] == kind]


async def test_a_skill_stands_in_the_system_prompt_and_a_trigger_brings_its_text(stage: Stage, tmp_path: Path) -> None:
    write_skill(tmp_path / "skills" / "mortar", "mortar", "Three parts of sand.", "[mortar]")
    listed = {"system_contains": "- mortar: All about mortar."}
    session = stage.session(
        {**calls("fetch", page=1), "expect": {**listed, "last_contains": "Three parts of sand.", "messages": 2}},
        {"text": "Mixed.", "expect": {**listed, "last_contains": "page 1", "messages": 4}},
        {"text": "Again.", "expect": {**listed, "last_contains": "More mortar", "messages": 6}},
        tools=["fetch"],
        skills=[str(tmp_path / "skills")],
    )

    done = await session.reply("Mix mortar")
    again = await session.reply("More mortar")

    assert (done.error, done.get_text_content()) == (None, "Mixed.")
    assert (again.error, again.get_text_content()) == (None, "Again.")
    first, second = await entries(stage, session, "prepared")
    assert "system_prompt" in first
    assert not {"system_prompt", "prompt_digest", "tools", "hints"} & set(second)


def load(**arguments: str) -> dict[str, Any]:
    return {"tool_calls": [{"name": "Skill", "input": arguments}]}


async def test_a_skill_is_loaded_by_name_and_an_unknown_one_is_answered_with_the_nearest(
    stage: Stage, tmp_path: Path
) -> None:
    write_skill(tmp_path / "skills" / "mortar", "mortar", "Three parts of sand.", "[cement]")
    (tmp_path / "skills" / "mortar" / "lime.md").write_text("One part.")
    session = stage.session(
        load(skill="mortal"),
        {**load(skill="mortar"), "expect": {"last_contains": "the nearest is 'mortar'"}},
        {**load(skill="mortar", file="lime.md"), "expect": {"last_contains": "Three parts of sand."}},
        {"text": "Mixed.", "expect": {"last_contains": "One part."}},
        tools=["Skill"],
        skills=[str(tmp_path / "skills")],
        permission={"mode": "explore"},
    )

    done = await session.reply("Mix something")

    assert (done.error, done.get_text_content()) == (None, "Mixed.")


async def test_the_projects_instructions_are_followed_as_they_change(stage: Stage) -> None:
    rules = stage.workspace / "AGENTS.md"
    rules.write_text("Use tabs.")
    session = stage.session(
        {"text": "Tabs.", "expect": {"system_contains": "Use tabs."}},
        {"text": "Spaces.", "expect": {"system_contains": "Use spaces."}},
        agent_context={"repo_skills": True, "system_prefix": "You work for Ana."},
    )

    done = [await session.reply("Indent")]
    rules.write_text("Use spaces.")
    done.append(await session.reply("Indent"))

    assert [reply.error for reply in done] == [None, None]
    first, second = await entries(stage, session, "prepared")
    assert "tools" in first
    assert "tools" not in second


async def test_a_prompt_that_changes_behind_a_long_conversation_is_told_at_its_end_and_sent_after_a_compression(
    stage: Stage,
) -> None:
    rules = stage.workspace / "AGENTS.md"
    rules.write_text("Use tabs.")
    before = {"system_contains": "Use tabs."}
    session = stage.session(
        calls("fetch", page=1, chars=5_000),
        {"text": "Read.", "expect": before},
        {"text": "Spaces.", "expect": {**before, "messages": 6, "last_contains": "Use spaces."}},
        {"text": "As before.", "expect": {**before, "messages": 8, "last_contains": "Once more"}},
        {"text": "Short now.", "expect": {"system_contains": "Use spaces."}},
        tools=["fetch"],
        agent_context={"repo_skills": True},
        model_config={"context_length": 8_000},
    )

    done = [await session.reply("Read a page")]
    rules.write_text("Use spaces.")
    done += [await session.reply("Indent"), await session.reply("Once more")]
    assert await session.compress_context(ContextConfig(trigger_ratio=0.1, reserve_ratio=0.05))
    done.append(await session.reply("And now"))

    assert [reply.error for reply in done] == [None, None, None, None]
    prepared = await entries(stage, session, "prepared")
    assert ["system_prompt" in entry for entry in prepared] == [True, True, False, False]


def used(read: int, cached: int, written: int = 0) -> Line:
    return {"usage": {"input_tokens": read, "cache_input_tokens": cached, "cache_creation_input_tokens": written}}


async def test_a_session_says_what_its_providers_cache_did_not_serve_and_why(stage: Stage) -> None:
    session = stage.session(
        {**calls("fetch", page=1), **used(6_000, 0, 6_000)},
        {**calls("fetch", page=2), **used(6_200, 6_000, 200)},
        {**calls("fetch", page=3), **used(6_400, 0, 6_400)},
        {"text": "Read.", **used(6_600, 6_400)},
        {"text": "Harder.", **used(6_800, 2_000)},
        tools=["fetch"],
    )

    await session.reply("Read three pages")
    await session.configure(model_config={"reasoning_effort": "high"})
    await session.reply("Think harder")
    status = await session.status()

    assert status.cache_missed == {
        "provider": Missed(calls=1, tokens=6_200),
        "settings": Missed(calls=1, tokens=4_600),
    }
    assert [line.plain for line in caching(status)] == [
        "prompt cache: 14,400 tokens read (45 % of the input), 12,600 written",
        "  missed 6,200 in 1 call: nothing changed here: the provider had it no more",
        "  missed 4,600 in 1 call: another effort or thinking budget",
    ]


async def test_a_worker_that_comes_in_the_middle_of_a_reply_shows_the_model_what_was_recorded(unserved: Stage) -> None:
    write_skill(unserved.workspace / "skills", "mortar", "Three parts of sand.", "[mortar]")
    told = {"system_contains": "- mortar: All about mortar.", "messages": 4}
    session = unserved.session(
        calls("send", to="Ana"), {"text": "Written.", "expect": {**told, "last_contains": "to Ana"}}, skills=["skills"]
    )
    async with unserved.another_worker():
        waiting = await session.reply("Write to Ana about mortar")
    (unserved.workspace / "skills" / "SKILL.md").unlink()

    async with unserved.another_worker():
        assert (await approve_and_finish(session, waiting.id)).endswith("Written.")


async def test_hooks_change_the_prompt_of_each_call_in_their_order(unserved: Stage) -> None:
    unserved.settings.hooks = f"{HOOKS}:number_calls,{HOOKS}:swear"
    prompt = "Lay bricks.\nThis is call {} of lamp for ana.\nSworn."
    session = unserved.session(
        {**calls("fetch", page=1), "expect": {"system_contains": prompt.format(0)}},
        {"text": "Done.", "expect": {"system_contains": prompt.format(1)}},
        user="ana",
        system_prompt="Lay bricks.",
    )

    async with unserved.another_worker():
        done = await session.reply("Build")
        said = await entries(unserved, session, "model_said")

    assert (done.error, done.get_text_content()) == (None, "Done.")
    assert [entry["sent_digest"] for entry in said] == [digest_of(prompt.format(number)) for number in (0, 1)]


async def test_a_failing_hook_ends_the_reply_by_name_and_the_session_goes_on(unserved: Stage) -> None:
    session = unserved.session({"text": "Well again."})
    unserved.settings.hooks = f"{HOOKS}:fail"
    async with unserved.another_worker():
        failed = await session.reply("Build")
    unserved.settings.hooks = ""
    async with unserved.another_worker():
        done = await session.reply("And now?")

    assert failed.error is not None
    assert failed.error.type == "setup"
    assert failed.error.message == f"The prompt hook '{HOOKS}:fail' on the worker failed: RuntimeError."
    assert (done.error, done.get_text_content()) == (None, "Well again.")


async def test_facts_that_change_come_behind_the_request(stage: Stage) -> None:
    session = stage.session({"text": "Noon.", "expect": {"last_contains": "The time is 20"}}, inject_runtime_state=True)

    done = await session.reply("How late is it?")

    assert (done.error, done.get_text_content()) == (None, "Noon.")
    shown = [message.get_text_content() async for message in session.context()]
    assert shown == ["How late is it?", "", "Noon."]


def response_calls(call_id: str, arguments: str) -> bytes:
    about = {"type": "function_call", "id": "fc_1", "call_id": call_id, "name": "fetch"}
    item = {**about, "arguments": "", "status": "in_progress"}
    usage = {"input_tokens": 21, "output_tokens": 5, "total_tokens": 26}
    piece = {"type": "response.function_call_arguments.delta", "item_id": "fc_1", "delta": arguments}
    return events(
        {"type": "response.output_item.added", "output_index": 0, "item": item, "sequence_number": 2},
        {**piece, "output_index": 0, "sequence_number": 3},
        response_event("response.completed", status="completed", usage=usage),
    )


APIS = {
    "anthropic:claude-haiku-4-5": (claude_calls, claude_says, "messages"),
    "openai:gpt-4.1": (response_calls, response_says, "input"),
    "openai-chat:gpt-4o": (gpt_calls, chat_says, "messages"),
}


@pytest.mark.parametrize("model", APIS)
async def test_each_request_is_the_one_before_with_something_appended(unserved: Stage, wire: Wire, model: str) -> None:
    """Within a reply, in the next one, and on a worker that has seen nothing: so that providers' caches hit."""
    asks, says, _ = APIS[model]
    write_skill(unserved.workspace / "skills", "mortar", "Three parts of sand.", "[mortar]")
    wire.answers = [
        Answer(asks("c1", json.dumps({"page": 1}))),
        Answer(asks("c2", json.dumps({"page": 2}))),
        Answer(says("Read.")),
        Answer(says("Mixed.")),
    ]
    base_url = wire.url if model.startswith("anthropic") else f"{wire.url}/v1"
    session = unserved.session(
        model=model,
        tools=["fetch", "courier"],
        model_config={"base_url": base_url},
        skills=["skills"],
        inject_runtime_state=True,
    )

    async with unserved.another_worker():
        first = await session.reply("Read two pages")
    async with unserved.another_worker():
        second = await session.reply("Mix mortar")

    assert (first.error, second.error) == (None, None)
    assert second.get_text_content() == "Mixed."
    sent = [unmarked(body) for body in wire.bodies]
    growing = APIS[model][2]
    assert [len(body[growing]) for body in sent] == sorted({len(body[growing]) for body in sent})
    assert len(sent) == 4
    for before, after in pairwise(sent):
        assert json.dumps(after[growing]).startswith(json.dumps(before[growing])[:-1] + ",")
        assert json.dumps({**after, growing: None}) == json.dumps({**before, growing: None})


async def test_claude_finds_a_mark_where_the_request_before_had_its_last(unserved: Stage, wire: Wire) -> None:
    model = "anthropic:claude-haiku-4-5"
    wire.answers = [
        Answer(claude_calls("c1", json.dumps({"page": 1}))),
        Answer(claude_says("Read.")),
        Answer(claude_says("Done.")),
    ]
    session = unserved.session(model=model, tools=["fetch"], model_config={"base_url": wire.url})

    async with unserved.another_worker():
        await session.reply("Read a page")
        await session.reply("And then?")

    marks = [marked(body) for body in wire.bodies]
    assert marks == [[0], [0, 2], [2, 4]]
    for body in wire.bodies:
        assert body["system"][-1]["cache_control"] == {"type": "ephemeral"}
        assert body["tools"][-1]["cache_control"] == {"type": "ephemeral"}


def unmarked(value: Any) -> Any:
    """The request without the marks: they move on with each call."""
    match value:
        case dict():
            return {key: unmarked(item) for key, item in value.items() if key != "cache_control"}
        case list():
            return [unmarked(item) for item in value]
        case _:
            return value


def marked(body: dict[str, Any]) -> list[int]:
    """The messages whose last block has a mark."""
    return [place for place, said in enumerate(body["messages"]) if "cache_control" in said["content"][-1]]
