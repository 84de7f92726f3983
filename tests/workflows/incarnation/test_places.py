"""Client and worker that do not mean the same place: said before anything is promised, with what to set."""

from pathlib import Path

import pytest
from redis import Redis

from longhaul.agent.values.conversation.messages import ToolResultState
from longhaul.agent.values.permission import Behavior, PermissionRule
from longhaul.starter.client.client import Longhaul
from longhaul.starter.client.wire import Refused
from longhaul.starter.connection.connect import Unreachable, blobs_of, connect, let_go
from longhaul.stores.blobs.blobs import session_prefix
from longhaul.workflows.contract import BlobGone
from tests.workflows.conftest import Stage
from tests.workflows.operations import calls, results, until

pytestmark = pytest.mark.server

NEVER_SEND = PermissionRule(tool_name="send", behavior=Behavior.DENY)
SOMEWHERE_ELSE = ["file", "file-url", "sqlite", pytest.param("redis", marks=pytest.mark.redis)]


def elsewhere(kind: str, folder: Path, request: pytest.FixtureRequest) -> str:
    """A store that no worker of the stage has."""
    match kind:
        case "file":
            return "file"
        case "file-url":
            return f"file://{folder}/kept"
        case "sqlite":
            return f"sqlite:///{folder}/kept.db"
        case _:
            return f"{request.getfixturevalue('redis_url')}?prefix={folder.parent.name}:"


async def from_afar(stage: Stage, **settings: object) -> Longhaul:
    """A client with settings of its own, and with another data directory where nothing else is said."""
    given = {"data_dir": stage.folder / "afar", **settings}
    client = await connect(stage.address, settings=(there := stage.settings.model_copy(update=given)))
    stage.rest.push_async_callback(let_go, client)
    return Longhaul(client, there)


@pytest.mark.parametrize("kind", SOMEWHERE_ELSE)
async def test_a_rule_is_not_taken_where_no_worker_reads_it(
    stage: Stage, kind: str, request: pytest.FixtureRequest
) -> None:
    app = await from_afar(stage, store=elsewhere(kind, stage.folder / "afar", request))
    book = app.rules_of("ana")

    with pytest.raises(Unreachable) as refused:
        await book.change([NEVER_SEND], by="ana")
    with pytest.raises(Unreachable):
        await book.listed()

    said = str(refused.value)
    assert "keeps sessions and users' rules in file:" in said
    assert "in which no worker has ever written" in said
    assert "another place: set LONGHAUL_STORE" in said
    assert (str(stage.folder / "afar") in said) == (kind != "redis")


async def test_a_rule_is_not_taken_from_a_store_of_another_worker(stage: Stage) -> None:
    """The client's own has a mark too: a worker of another queue, or of yesterday, has used it."""
    far = await from_afar(stage, task_queue=f"{stage.name}-other")
    other = Stage(far.client, far.settings, stage.folder, stage.workspace, stage.name, stage.providers)
    async with other.another_worker():
        await far.rules_of("ana").change([NEVER_SEND], by="ana")
    far.settings = far.settings.model_copy(update={"task_queue": stage.name})

    with pytest.raises(Unreachable, match=r"keeps .* in file:([\w-]{4}), .*afar/sessions \(file:(?!\1)[\w-]{4}\)"):
        await far.rules_of("ana").change([NEVER_SEND], by="ana")


async def test_a_store_in_memory_is_nobodys_but_the_workers(stage: Stage) -> None:
    app = await from_afar(stage, store="memory")

    with pytest.raises(Refused, match="'memory' is each process's own"):
        await app.rules_of("ana").change([NEVER_SEND], by="ana")


async def test_a_worker_that_keeps_sessions_in_memory_is_named(unserved: Stage) -> None:
    app = await from_afar(unserved, data_dir=unserved.settings.data_dir)
    unserved.settings = unserved.settings.model_copy(update={"store": "memory"})
    async with unserved.another_worker():
        with pytest.raises(Unreachable, match="keeps sessions and users' rules in memory:"):
            await app.rules_of("ana").change([NEVER_SEND], by="ana")


@pytest.mark.redis
async def test_one_place_may_have_two_addresses(unserved: Stage, redis_url: str) -> None:
    prefix = f"?prefix={unserved.name}:"
    unserved.settings = unserved.settings.model_copy(update={"store": redis_url + prefix})
    app = await from_afar(unserved, store=redis_url.replace("127.0.0.1", "localhost") + prefix)
    async with unserved.another_worker():
        await app.rules_of("ana").change([NEVER_SEND], by="ana")
        done = await unserved.session(calls("send", to="Cy"), {"text": "Denied."}, user="ana").reply("Write to Cy")

    assert [state for state, _ in results(done)] == [ToolResultState.DENIED]


async def test_a_rule_that_one_of_two_workers_would_not_see_is_not_taken(stage: Stage) -> None:
    far = await from_afar(stage)
    other = Stage(far.client, far.settings, stage.folder, stage.workspace, stage.name, stage.providers)
    async with other.another_worker():
        await other.session({"text": "Hello."}).reply("Hi")
        with pytest.raises(Unreachable, match="another place"):
            await stage.app.rules_of("ana").change([NEVER_SEND], by="ana")


async def test_without_a_worker_nobody_can_say_that_a_rule_holds(unserved: Stage) -> None:
    with pytest.raises(Unreachable, match=f"no worker of Longhaul polls '{unserved.name}'"):
        await unserved.app.rules_of("ana").change([NEVER_SEND], by="ana")

    assert await unserved.app.rules_of("ana").listed() == []


@pytest.mark.redis
async def test_a_store_that_was_emptied_under_its_worker_takes_no_rule(unserved: Stage, redis_url: str) -> None:
    prefix = f"{unserved.name}:"
    unserved.settings = unserved.settings.model_copy(update={"store": f"{redis_url}?prefix={prefix}"})
    async with unserved.another_worker():
        await unserved.app.rules_of("ana").change([NEVER_SEND], by="ana")
        with Redis.from_url(redis_url) as redis:
            redis.delete(*redis.keys(f"{prefix}*"))

        with pytest.raises(Unreachable, match="in which no worker has ever written"):
            await unserved.app.rules_of("ana").change([NEVER_SEND], by="ana")


async def test_nothing_is_deleted_where_workers_keep_it_elsewhere(stage: Stage) -> None:
    session = stage.session({"text": "Amber."}, user="ana")
    await session.reply("Which colour?")
    for afar in ({}, {"store": f"file://{stage.settings.data_dir}/sessions"}):
        app = await from_afar(stage, **afar)
        there = app.session(session.id, user="ana", agent=session.spec)

        with pytest.raises(Unreachable, match="LONGHAUL_BLOBS" if afar else "LONGHAUL_STORE"):
            await there.stored.delete(terminate=True)

    assert (await session.status()).status == "idle"


async def test_a_closed_session_is_not_taken_for_none_where_it_is_stored_elsewhere(stage: Stage) -> None:
    session = stage.session({"text": "Amber."}, user="ana")
    app = await from_afar(stage)

    with pytest.raises(Unreachable, match="keeps sessions and users' rules in file:"):
        await app.session(session.id, user="ana", agent=session.spec).stored.export()


async def test_a_long_message_reaches_workers_that_keep_large_values_elsewhere(stage: Stage) -> None:
    app = await from_afar(stage)
    session = app.session(stage.name, agent=stage.agent({"text": "That was long."}))

    done = await session.reply("fog " * 150_000)

    assert done.get_text_content() == "That was long."
    assert await blobs_of(app.settings).keys(session_prefix(app.client.namespace, session.workflow_id)) == []


async def test_a_message_too_long_for_the_history_is_refused_with_both_places(stage: Stage) -> None:
    app = await from_afar(stage)
    session = app.session(stage.name, agent=stage.agent({"text": "That was long."}))

    with pytest.raises(Refused, match=r"keeps large values in file:.*afar/blobs .*set LONGHAUL_BLOBS"):
        await session.reply("fog " * 750_000)


async def test_what_lies_in_other_blobs_is_explained(stage: Stage) -> None:
    app = await from_afar(stage)
    session = app.session(stage.name, agent=stage.agent({"text": "fog " * 200_000}, {"text": "Noted."}))
    reply = await session.submit("Tell me all")

    async def ended() -> bool:
        return (await session.status()).status == "idle"

    await until(ended)
    with pytest.raises(BlobGone, match=r"there is no blob .*; worker .* keeps large values in file:.*LONGHAUL_BLOBS"):
        await session.result(reply)
