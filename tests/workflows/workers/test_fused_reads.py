"""Reads that cost no activity: along with the answer that calls for them, or within the session's own task. The record
is the same, and what passes a bound goes its own way."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from json import loads
from pathlib import Path
from typing import Any

import pytest
from temporalio.service import RPCError

from longhaul.activities.attempt.call_attempts import MOST_LOST
from longhaul.activities.attempt.fused_reads import LONGEST_ANSWER_BYTES
from longhaul.agent.decisions.call_rulings import MOST_FUSED
from longhaul.agent.entries import AnyEntry
from longhaul.agent.values.conversation.messages import FinishedReason, Msg, ToolResultState, problem
from longhaul.agent.values.permission import PermissionMode
from longhaul.starter.client.reading.queries import SILENCES
from longhaul.starter.client.session import Session
from longhaul.starter.connection.connect import Unreachable
from tests.e2e.processes import worker
from tests.workflows.conftest import Stage, asked_within
from tests.workflows.incarnation.test_flat_history import payload_texts
from tests.workflows.operations import WORDY, calls, recorded, results, until
from tests.workflows.roomy import failure_of_replay
from tests.workflows.tools import page_text

pytestmark = [pytest.mark.server, pytest.mark.timeout(120)]

HERE = "tests.workflows.fused_tools"
UNHURRIED = "tests.workflows.unhurried_tools"
TOOLS = ("peek", "linger", "fatal", "peek_key")
FREE: dict[str, Any] = {"mode": "bypass"}
KEY = "gate-9c41f2-open/sesame+7"
DONE = {"text": "Read."}
FORMS: dict[str, dict[str, Any]] = {
    "along with the answer": {},
    "within the task": {"permission": {**FREE, "rules": WORDY}},
}
both_forms = pytest.mark.parametrize("form", FORMS)
CLOCKED = {"seconds", "digest", "context_digest"}
"""What a call took, and what follows from it."""


@pytest.fixture
async def workerless(unserved: Stage) -> Stage:
    return replace(unserved, settings=unserved.settings.model_copy(update={"tools": HERE}))


@pytest.fixture
async def fused(workerless: Stage) -> AsyncIterator[Stage]:
    async with workerless.another_worker():
        yield workerless


def session_of(stage: Stage, *lines: dict[str, Any], **spec: Any) -> Session:
    return stage.session(*lines, DONE, **{"tools": TOOLS, "permission": FREE, **spec})


async def own_ways(stage: Stage, session: Session) -> list[str]:
    """Tools that ran as activities of their own, in their order."""
    return [name for name in await stage.scheduled(session) if "." not in name]


async def kept(stage: Stage, *lines: dict[str, Any], **spec: Any) -> tuple[Session, Msg]:
    """A session whose reads have kept to the bounds, and its reply. On a machine that stands still for a second one may
    miss them, and then it is right that it goes its own way: three sessions are tried."""
    for _ in range(3):
        session = session_of(stage, *lines, **spec)
        done = await session.reply("Read", request_id="r-read")
        if not await own_ways(stage, session):
            return session, done
    raise AssertionError("whatever is read goes its own way")


async def tried(stage: Stage, session: Session) -> list[str]:
    """What was asked for within a task, without what the session does for itself."""
    return [name for name in await stage.within_tasks(session) if "." not in name]


async def came_along(stage: Stage, session: Session) -> list[str]:
    """Ids of the calls that have read along with the answer, in order."""
    answers = [loads(text) for text in await payload_texts(stage.handle(session)) if '"reads":' in text]
    return [call for answer in answers for call, read in answer.get("reads", {}).items() if read is not None]


async def is_thinking(stage: Stage, session: Session) -> bool:
    return "longhaul.call_model" in await stage.scheduled(session)


def plain(entries: Sequence[AnyEntry]) -> list[dict[str, Any]]:
    """What is recorded, without what differs between any two sessions, and without checkpoints, which come beside."""
    shown = [entry.model_dump(mode="json", exclude={"at", "seq", "spec"}) for entry in entries]
    kept = [entry for entry in shown if entry["kind"] not in {"opened", "accepted", "checkpointed", "prepared"}]
    return [
        _without(entry, {"reply_id", "created_at", "finished_at", "id", "session_id", "request_id"} | CLOCKED)
        for entry in kept
    ]


def _without(value: Any, names: set[str]) -> Any:
    match value:
        case dict():
            return {name: _without(inner, names) for name, inner in value.items() if name not in names}
        case list():
            return [_without(inner, names) for inner in value]
        case _:
            return value


@both_forms
async def test_a_read_is_an_event_at_most_and_recorded_like_any_other(workerless: Stage, form: str) -> None:
    steps, most = 10, 5.5 if form == "along with the answer" else 4.5
    lines = [calls("peek", page=page) for page in range(steps)]
    histories, records = dict[str, int](), dict[str, list[dict[str, Any]]]()
    for tools in (HERE, UNHURRIED):
        stage = replace(workerless, settings=workerless.settings.model_copy(update={"tools": tools}))
        async with stage.another_worker():
            if tools == HERE:
                session, done = await kept(stage, *lines, tools=("peek",), **FORMS[form])
            else:
                session = session_of(stage, *lines, tools=("peek",), **FORMS[form])
                done = await session.reply("Read", request_id="r-read")
            assert await failure_of_replay(stage, session) is None
            histories[tools] = (await stage.handle(session).describe()).history_length
            records[tools] = plain(await recorded(stage, session))
            assert len(await own_ways(stage, session)) == (0 if tools == HERE else steps)
        assert [text for _, text in results(done)] == [page_text(page, 40) for page in range(steps)]

    assert records[HERE] == records[UNHURRIED]
    assert histories[UNHURRIED] - histories[HERE] >= most * steps


@both_forms
async def test_calls_of_one_turn_are_read_together(fused: Stage, form: str) -> None:
    turn = {"tool_calls": [{"name": "peek", "input": {"page": page}} for page in range(MOST_FUSED)]}
    session, done = await kept(fused, turn, **FORMS[form])

    assert [text for _, text in results(done)] == [page_text(page, 40) for page in range(MOST_FUSED)]
    read = await came_along(fused, session) or await tried(fused, session)
    assert len(read) == MOST_FUSED
    assert bool(await tried(fused, session)) == (form == "within the task")


@both_forms
async def test_what_takes_long_goes_its_own_way_and_is_not_tried_again_in_this_reply(fused: Stage, form: str) -> None:
    slow, quick = fused.folder / "slow", fused.folder / "quick"
    quick.write_text("started\n")
    session = session_of(fused, calls("linger", path=str(slow)), calls("linger", path=str(quick)), **FORMS[form])

    done = await session.reply("Read")

    assert results(done) == [(ToolResultState.SUCCESS, "read at last")] * 2
    assert slow.read_text() == "started\n" * 2
    assert await own_ways(fused, session) == ["linger", "linger"]
    assert len(await tried(fused, session)) == int(form == "within the task")
    assert await came_along(fused, session) == []
    assert await failure_of_replay(fused, session) is None


@both_forms
async def test_a_long_answer_goes_its_own_way(fused: Stage, form: str) -> None:
    wide = {"tool_result_limit": 1_000_000}
    short, long = LONGEST_ANSWER_BYTES // 2, LONGEST_ANSWER_BYTES + 1
    session = session_of(
        fused, calls("peek", page=1, chars=short), calls("peek", page=2, chars=long), context_config=wide, **FORMS[form]
    )

    done = await session.reply("Read")

    assert [text for _, text in results(done)] == [page_text(1, short), page_text(2, long)]
    assert await failure_of_replay(fused, session) is None
    assert (await own_ways(fused, session))[-1:] == ["peek"]
    assert len(await tried(fused, session) if form == "within the task" else await came_along(fused, session)) >= 1


async def test_what_came_along_and_is_refused_by_then_is_told_nobody(fused: Stage) -> None:
    """A rule that comes while the model speaks, which its activity does not know."""
    slowly = {"text": "Let me see. " * 8, "delay_ms": 100, **calls("peek", page=1)}
    session = session_of(fused, slowly)
    reply = await session.submit("Read")
    await until(lambda: is_thinking(fused, session))
    await session.configure(rules=[{"tool_name": "peek", "behavior": "deny"}])

    done = await session.wait(reply)

    texts = await payload_texts(fused.handle(session))
    assert [state for state, _ in results(done)] == [ToolResultState.DENIED]
    assert len(await came_along(fused, session)) == 1
    assert [text for text in texts if page_text(1, 40) in text and '"reads":' not in text] == []
    assert await failure_of_replay(fused, session) is None


async def test_calls_whose_ids_were_there_before_are_read_all_the_same(fused: Stage) -> None:
    lines = [{"tool_calls": [{"id": "same", "name": "peek", "input": {"page": page}}]} for page in range(3)]
    session, done = await kept(fused, *lines)

    assert [text for _, text in results(done)] == [page_text(page, 40) for page in range(3)]
    assert problem([message async for message in session.transcript()]) == ""


async def test_an_answer_that_is_cut_is_kept_whole_all_the_same(fused: Stage) -> None:
    _, done = await kept(fused, calls("peek", page=1, chars=60_000))

    ((state, text),) = results(done)
    whole = [path.name for path in fused.folder.rglob("*.txt") if path.stat().st_size >= 60_000]
    assert state is ToolResultState.SUCCESS
    assert any(name in text for name in whole)
    assert len(text) < 20_000


async def test_middlewares_around_calls_see_each_of_them(workerless: Stage) -> None:
    workerless.settings.middlewares = f"{HERE}:Frame"
    session = session_of(workerless, calls("peek", page=1))
    async with workerless.another_worker():
        done = await session.reply("Read")

        assert results(done) == [(ToolResultState.SUCCESS, f"[{page_text(1, 40)}]")]
        assert await own_ways(workerless, session) == ["peek"]


@pytest.mark.parametrize("mode", [PermissionMode.EXPLORE, PermissionMode.PLAN, PermissionMode.DEFAULT])
async def test_what_permission_says_is_said_before(fused: Stage, mode: PermissionMode) -> None:
    path = fused.folder / "never"
    rules = [{"tool_name": "linger", "behavior": "deny"}]
    session = session_of(
        fused, calls("linger", path=str(path)), calls("peek", page=1), permission={"mode": mode.value, "rules": rules}
    )

    done = await session.reply("Read")

    assert [state for state, _ in results(done)] == [ToolResultState.DENIED, ToolResultState.SUCCESS]
    assert not path.exists()


async def test_a_read_that_is_asked_about_waits_for_the_answer(fused: Stage) -> None:
    rules = [{"tool_name": "peek", "behavior": "ask"}]
    session = session_of(fused, calls("peek", page=1), permission={"rules": rules})
    waiting = await session.reply("Read")
    assert len(await tried(fused, session)) == 0

    (call,) = await session.pending()
    await session.confirm(call, allow=True)
    done = await session.wait(waiting.id)

    assert results(done) == [(ToolResultState.SUCCESS, page_text(1, 40))]
    assert len(await tried(fused, session)) == 1


@both_forms
async def test_an_interrupt_in_the_midst_of_a_read_ends_the_reply(fused: Stage, form: str) -> None:
    path = fused.folder / "slow"
    turn = {
        "tool_calls": [
            calls("peek", page=1)["tool_calls"][0],
            calls("linger", path=str(path), times=9)["tool_calls"][0],
        ]
    }
    session = session_of(fused, turn, **FORMS[form])
    reply = await session.submit("Read")

    async def lingers() -> bool:
        return path.exists()

    await until(lingers)
    await session.interrupt("What have you read?")
    interrupted = await session.wait(reply)
    again = await session.reply("Go on")

    assert interrupted.finished_reason is FinishedReason.INTERRUPTED
    assert again.finished_reason is FinishedReason.COMPLETED
    assert [state for state, _ in results(interrupted)][1:] == [ToolResultState.INTERRUPTED]
    assert problem([message async for message in session.transcript()]) == ""
    assert await failure_of_replay(fused, session) is None


@both_forms
async def test_a_tool_that_kills_its_worker_is_read_by_the_next_one(workerless: Stage, form: str) -> None:
    path = workerless.folder / "fatal"
    session = session_of(workerless, calls("fatal", path=str(path)), **FORMS[form])
    async with workerless.worker_process():
        reply = await session.submit("Read")

        async def read() -> bool:
            return path.exists()

        await until(read)
        async with workerless.another_worker():
            done = await session.wait(reply)

    assert results(done) == [(ToolResultState.SUCCESS, "read at last")]
    assert path.read_text().startswith("started\n" * 2)
    assert (await workerless.scheduled(session)).count("longhaul.call_model") == 2
    assert await own_ways(workerless, session) == ["fatal"]
    assert await failure_of_replay(workerless, session) is None


@asynccontextmanager
async def relieved(stage: Stage) -> AsyncIterator[None]:
    """A worker process, and the next one each time that one is killed."""

    async def serve() -> None:
        while True:
            with suppress(RuntimeError):  # it is killed before it can say that it polls
                async with worker(stage.worker_settings) as one:
                    await one.wait()

    serving = asyncio.create_task(serve())
    try:
        yield
    finally:
        serving.cancel()
        await asyncio.wait([serving])


@both_forms
async def test_a_tool_that_kills_each_of_its_workers_is_told_of_after_a_few(workerless: Stage, form: str) -> None:
    path = workerless.folder / "fatal"
    session = session_of(workerless, calls("fatal", path=str(path), times=99), calls("peek", page=1), **FORMS[form])

    async def has_ended() -> bool:
        with suppress(RPCError, Unreachable, *SILENCES):  # no worker is there just now
            return (await session.result(reply)).status == "finished"
        return False

    async with relieved(workerless):
        reply = await session.submit("Read")
        await until(has_ended)
        done = await session.wait(reply)

    (state, told), peeked = results(done)
    assert state is ToolResultState.ERROR
    assert told.startswith("This call could not be run: the worker that ran it was lost each time")
    assert MOST_LOST <= len(path.read_text().splitlines()) <= MOST_LOST + 1
    assert peeked == (ToolResultState.SUCCESS, page_text(1, 40))
    assert (await own_ways(workerless, session))[:1] == ["fatal"]
    assert await failure_of_replay(workerless, session) is None


async def test_no_marker_holds_a_secret(unserved: Stage, tmp_path: Path) -> None:
    file = tmp_path / "secrets.toml"
    file.write_text(f'GATE_KEY = "{KEY}"\n')
    file.chmod(0o600)
    settings = unserved.settings.model_copy(update={"secrets_file": file, "tools": HERE})
    stage = replace(unserved, settings=settings)
    session = session_of(stage, calls("peek_key"), secrets={"allow": ["GATE_KEY"]})
    async with stage.another_worker():
        done = await session.reply("Read")

        texts = await payload_texts(stage.handle(session))
        assert len(await tried(stage, session)) == 1

    assert [text for _, text in results(done)] == ["the key is [secret GATE_KEY]"]
    assert [text for text in texts if KEY in text] == []


async def test_a_later_reply_is_prepared_within_the_task(fused: Stage) -> None:
    session, prepared = session_of(fused, DONE), False
    for _ in range(3):  # as `kept` does
        session = session_of(fused, DONE)
        await session.reply("Read")
        await session.reply("And again")
        if prepared := "longhaul.prepare_reply" not in await fused.scheduled(session):
            break

    assert prepared
    assert (await fused.scheduled(session)).count("longhaul.call_model") == 2
    assert "longhaul.prepare_reply" in await fused.within_tasks(session)
    assert await failure_of_replay(fused, session) is None


async def test_middlewares_that_add_to_a_request_are_asked_by_an_activity(workerless: Stage) -> None:
    workerless.settings.middlewares = f"{HERE}:Hinting"
    session = session_of(workerless, {**DONE, "expect": {"last_contains": "Mind the tide"}})
    async with workerless.another_worker():
        await session.reply("Read")

        assert "longhaul.prepare_reply" in await workerless.scheduled(session)


async def test_the_web_ui_shows_each_read_within_the_task(fused: Stage) -> None:
    session = session_of(fused, calls("peek", page=7), **FORMS["within the task"])

    await session.reply("Read")

    events = (await fused.handle(session).fetch_history()).events
    (marker,) = [event for event in events if asked_within(event) == "peek"]
    assert b"page" in marker.user_metadata.summary.data
