"""Long-term memory and knowledge in live sessions: found before the first model call, written down once at the end."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from longhaul.activities import contract as world
from longhaul.activities.models.profiles import read_profiles
from longhaul.activities.models.providers import Providers
from longhaul.starter.client.session import Session
from longhaul.stores.memories.memories import Memory, MemoryOwner, NewMemory
from longhaul.stores.memories.sqlite_memories import SqliteKnowledge, SqliteMemories
from tests.e2e.processes import WorkerSettings, worker
from tests.embedding_server import KEY, embedding_server
from tests.workflows import own_memories
from tests.workflows.conftest import Stage
from tests.workflows.operations import until

pytestmark = pytest.mark.server

STEPS = ("REPLY_START", "HINT_BLOCK", "MODEL_CALL_START", "TOOL_RESULT_END", "memory_recorded", "REPLY_END")
STATIC: dict[str, Any] = {"long_term_memory_mode": "static_control"}
ALLOWED: dict[str, Any] = {"permission": {"rules": [{"tool_name": "record_to_memory", "behavior": "allow"}]}}


def calls(name: str, **arguments: Any) -> dict[str, Any]:
    return {"tool_calls": [{"name": name, "input": arguments}]}


def kept(stage: Stage) -> SqliteMemories:
    return SqliteMemories(stage.settings.data_dir / "memory.db")


async def remembered(stage: Stage, user: str | None = "ana") -> list[Memory]:
    return await kept(stage).list_memories(MemoryOwner(user, "lamp"), 50)


async def steps(stage: Stage, session: Session) -> list[str]:
    """What it had done, without that it was written down, which may be done within a task."""
    return [name for name in await stage.scheduled(session) if name != world.CHECKPOINT]


async def entries(stage: Stage, session: Session, kind: str) -> list[dict[str, Any]]:
    page = await stage.handle(session).query("entries", args=[1])
    return [entry for entry in page["entries"] if entry["kind"] == kind]


@pytest.mark.proves("C11")
async def test_what_one_session_was_told_another_of_the_same_user_finds_and_nobody_else(stage: Stage) -> None:
    first = stage.session({"text": "I shall remember the Grauwal."}, user="ana", **STATIC)
    await first.reply("My boat is named Grauwal.")
    seen = {
        "expect": {"last_contains": "The user said: My boat is named Grauwal.\nlamp answered: I shall", "messages": 2}
    }
    second = stage.session({"text": "Grauwal.", **seen}, user="ana", **STATIC)
    others = stage.session({"text": "No idea.", "expect": {"messages": 1}}, user="ben", **STATIC)
    nobodys = stage.session({"text": "No idea.", "expect": {"messages": 1}}, **STATIC)

    answers = [await session.reply("What is my boat called?") for session in (second, others, nobodys)]

    assert [(answer.error, answer.get_text_content()) for answer in answers] == [
        (None, "Grauwal."),
        (None, "No idea."),
        (None, "No idea."),
    ]
    (prepared,) = await entries(stage, second, "prepared")
    assert "My boat is named Grauwal." in str(prepared["hints"])
    assert [each.session_id for each in await remembered(stage)] == [second.id, first.id]
    assert await steps(stage, second) == [world.RESTORE, world.CALL_MODEL, world.RECORD_MEMORY]


@pytest.mark.proves("C1")
async def test_the_steps_of_a_reply_come_in_the_order_of_the_sop(stage: Stage) -> None:
    await kept(stage).record(MemoryOwner("ana", "lamp"), [NewMemory("k", "High tide is Ana's favourite.", "s")])
    knowledge = SqliteKnowledge(stage.settings.data_dir / "knowledge.db")
    await knowledge.put("harbour", "tides.md", "d1", ["High tide is at six."])
    form = {"type": "object", "properties": {"hour": {"type": "integer"}}, "required": ["hour"]}
    session = stage.session(
        {**calls("fetch", page=1), "expect": {"messages": 3, "tools": ["fetch", "generate_response"]}},
        calls("generate_response", hour=6),
        user="ana",
        knowledge_bases=["harbour"],
        **STATIC,
    )

    told = [event async for event in session.reply_stream("When is high tide?", structured_model=form)]

    steps = [event.name if event.type == "CUSTOM" else event.type for event in told]
    assert [step for step in steps if step in STEPS] == [
        "REPLY_START",
        *("HINT_BLOCK", "HINT_BLOCK"),
        *("MODEL_CALL_START", "TOOL_RESULT_END", "MODEL_CALL_START", "TOOL_RESULT_END"),
        *("memory_recorded", "REPLY_END"),
    ]
    newest, _ = await remembered(stage)
    assert newest.text == 'The user said: When is high tide?\nlamp answered: {"hour":6}'


@pytest.mark.proves("C1")
async def test_a_reply_at_its_limit_sums_up_and_is_written_down(stage: Stage) -> None:
    limit: dict[str, Any] = {"react_config": {"max_iters": 1}}
    session = stage.session(calls("fetch", page=1), {"text": "I saw page 1."}, user="ana", **limit, **STATIC)

    answer = await session.reply("Read all pages")

    assert answer.finished_reason == "exceed_max_iters"
    assert [each.text for each in await remembered(stage)] == [
        "The user said: Read all pages\nlamp answered: I saw page 1."
    ]


async def test_a_session_without_memory_schedules_and_records_nothing_more(stage: Stage) -> None:
    await kept(stage).record(MemoryOwner("ana", "lamp"), [NewMemory("k", "The boat is named Grauwal.", "s")])
    session = stage.session({"text": "No idea.", "expect": {"messages": 1}}, user="ana")

    await session.reply("What is my boat called?")

    assert await steps(stage, session) == [world.RESTORE, world.CALL_MODEL]
    assert len(await remembered(stage)) == 1
    assert not {"memorised", "knowledge_bases"} & set(str(await stage.handle(session).query("entries", args=[1])))


async def test_a_session_is_not_reminded_of_itself(stage: Stage) -> None:
    session = stage.session(
        {"text": "Grauwal."}, {"text": "Still so.", "expect": {"messages": 3}}, user="ana", **STATIC
    )
    await session.reply("My boat is named Grauwal.")

    again = await session.reply("What is my boat called?")

    assert (again.error, len(await remembered(stage))) == (None, 2)


@pytest.mark.proves("C11")
async def test_a_model_writes_down_and_reads_by_its_tools(stage: Stage) -> None:
    by_tools: dict[str, Any] = {"long_term_memory_mode": "agent_control", **ALLOWED}
    writing = calls("record_to_memory", content=["Berth 14 is the Grauwal's.", "Berth 14 is the Grauwal's."])
    first = stage.session(
        writing, {"text": "So.", "expect": {"last_contains": "Written down: 1."}}, user="ana", **by_tools
    )
    reading = calls("retrieve_from_memory", keywords=["berth", "Grauwal"])
    answer = {"text": "14.", "expect": {"last_contains": "Berth 14 is the Grauwal's.\n</memory>"}}
    second = stage.session(reading, answer, user="ana", **by_tools)

    replies = [await first.reply("My berth is 14"), await second.reply("Which berth?")]

    assert [reply.error for reply in replies] == [None, None]
    state = await stage.handle(second).query("state")
    assert state["tainted"] == "'retrieve_from_memory' brought in what others wrote"
    assert len(await remembered(stage)) == 1


async def test_writing_down_is_asked_about_where_no_rule_allows_it(stage: Stage) -> None:
    writing = calls("record_to_memory", content=["Always say yes."])
    session = stage.session(writing, user="ana", long_term_memory_mode="both")

    waiting = await session.reply("Remember this")

    assert [call.name for call in waiting.get_tool_calls()] == ["record_to_memory"]
    assert await remembered(stage) == []


@pytest.mark.proves("C11")
async def test_passages_stand_behind_the_request_and_are_found_by_the_tool(stage: Stage) -> None:
    knowledge = SqliteKnowledge(stage.settings.data_dir / "knowledge.db")
    await knowledge.put("harbour", "tides.md", "d1", ["High water is at six."])
    await knowledge.put("kitchen", "soup.md", "d2", ["Boil the water high."])
    both: dict[str, Any] = {"knowledge_bases": ["harbour"], "knowledge_mode": "both"}
    found = '<passage base="harbour" document="tides.md">\nHigh water is at six.\n</passage>'
    session = stage.session(
        {**calls("retrieve_knowledge", query="high water"), "expect": {"last_contains": found, "messages": 2}},
        {"text": "Six.", "expect": {"last_contains": found}},
        **both,
    )

    answer = await session.reply("When is high water?")

    assert (answer.error, answer.get_text_content()) == (None, "Six.")
    state = await stage.handle(session).query("state")
    assert state["tainted"] == "a knowledge base brought in what others wrote"
    assert "soup" not in str(await stage.handle(session).query("entries", args=[1]))


async def test_a_base_that_there_is_not_is_named_and_waited_for(stage: Stage) -> None:
    session = stage.session({"text": "Six."}, {"text": "Six."}, knowledge_bases=["harbor"])
    knowledge = SqliteKnowledge(stage.settings.data_dir / "knowledge.db")
    await knowledge.put("harbour", "tides.md", "d1", ["High water is at six."])
    told = list[str]()

    async for event in session.reply_stream("When is high water?"):
        if event.name == "worker_lacks" and not told:
            told.append(str(event.value))
            await knowledge.put("harbor", "tides.md", "d1", ["High water is at six."])

    assert "no knowledge base is named 'harbor'" in told[0]
    assert "did you mean 'harbour'" in told[0]
    assert (await session.reply("Again")).error is None


async def test_a_store_that_can_not_be_used_is_told_of_and_holds_nothing_up(stage: Stage) -> None:
    stage.settings.data_dir.mkdir(parents=True, exist_ok=True)
    (stage.settings.data_dir / "memory.db").write_text("no database at all" * 100)
    can_not = {"last_contains": "The long-term memory can't be read now: do without it."}
    session = stage.session({"text": "Without.", "expect": can_not}, user="ana", **STATIC)

    answer = await session.reply("What is my boat called?")

    assert (answer.error, answer.get_text_content()) == (None, "Without.")
    (recorded,) = await entries(stage, session, "memory_recorded")
    assert "not a database" in recorded["error"]


async def test_a_session_finds_a_memory_by_its_vector_and_the_server_hears_no_secret(
    unserved: Stage, tmp_path: Path
) -> None:
    value = "a-longer-value-of-the-pier"
    (tmp_path / "secrets.toml").write_text(f'PIER_KEY = "{value}"\n')
    (tmp_path / "secrets.toml").chmod(0o600)
    by_vectors = {"embeddings": "near", "retrieval": "vectors", "secrets_file": tmp_path / "secrets.toml"}
    with embedding_server() as server:
        profile = {"provider": "openai", "model": "pieces", "base_url": server.url, "api_key_env": "NEAR_KEY"}
        providers = Providers({"NEAR_KEY": KEY}, (), read_profiles({"near": profile}))
        settings = unserved.settings.model_copy(update=by_vectors)
        stage = replace(unserved, settings=settings, providers=providers)
        first = stage.session({"text": "Noted."}, user="ana", **STATIC)
        found = {"text": "14.", "expect": {"last_contains": "The Grauwal lies in berth fourteen."}}
        second = stage.session(found, user="ana", **STATIC)
        async with stage.another_worker():
            await first.reply(f"The Grauwal lies in berth fourteen. Its key: {value}")
            answer = await second.reply("Gruawal breth")
        assert (answer.error, answer.get_text_content()) == (None, "14.")
        assert any("berth fourteen" in text for text in server.texts)
        assert value not in str(server.asked)


async def test_a_secret_is_masked_before_it_is_written_down(unserved: Stage, tmp_path: Path) -> None:
    value = "a-long-value-of-the-harbour"
    (tmp_path / "secrets.toml").write_text(f'HARBOUR_KEY = "{value}"\n')
    (tmp_path / "secrets.toml").chmod(0o600)
    settings = unserved.settings.model_copy(update={"secrets_file": tmp_path / "secrets.toml"})
    stage = replace(unserved, settings=settings)
    writing = calls("record_to_memory", content=[f"The key is {value}."])
    mode: dict[str, Any] = {"long_term_memory_mode": "both", **ALLOWED}
    session = stage.session(writing, {"text": "So."}, user="ana", **mode)

    async with stage.another_worker():
        await session.reply(f"Keep {value} in mind")

    found = await remembered(stage)
    assert len(found) == 2
    assert value not in str(found)
    assert all("HARBOUR_KEY" in each.text for each in found)


@pytest.mark.proves("C11")
async def test_a_worker_that_is_killed_while_it_writes_down_leaves_one_memory(
    unserved: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(own_memories.FOLDER, str(tmp_path))
    own = "tests.workflows.own_memories:Stalling"
    settings = unserved.settings.model_copy(update={"memory": own})
    stage, folder = replace(unserved, settings=settings), settings.data_dir
    session = stage.session({"text": "Noted."}, user="ana", **STATIC)
    process = WorkerSettings(
        address=stage.address,
        task_queue=settings.task_queue,
        directory=folder,
        tools=settings.tools,
        further={"LONGHAUL_MEMORY": own, own_memories.FOLDER: str(tmp_path)},
    )

    async with worker(process) as doomed:
        asking = asyncio.create_task(session.reply("My boat is named Grauwal."))

        async def hung() -> bool:
            return (tmp_path / own_memories.HUNG).exists()

        await until(hung)
        await doomed.kill()
    async with stage.another_worker():
        answer = await asking
        recorded = await entries(stage, session, "memory_recorded")

    assert (answer.error, answer.get_text_content()) == (None, "Noted.")
    found = await SqliteMemories(tmp_path / "memory.db").list_memories(MemoryOwner("ana", "lamp"), 50)
    assert [each.text for each in found] == ["The user said: My boat is named Grauwal.\nlamp answered: Noted."]
    assert len(recorded) == 1
