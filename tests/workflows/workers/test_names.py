"""Ids of sessions, users and requests: any text is one, no two are the same, and each comes back as it was given."""

import pytest
from temporalio.api.common.v1 import Payload
from temporalio.common import RawValue

from longhaul.workflows.contract import WORKFLOW, SessionStart
from tests.workflows.conftest import Stage
from tests.workflows.operations import until

pytestmark = pytest.mark.server

ODD_IDS = [
    "a/b", "a:b", "..", "../..", "%2F", "%", "_", "*", "~", "=", "#", "a b", " a", "A", "会话-7", "🦊",
    "'; DROP", '"', "x" * 300, "x" * 299 + "y", "ю" * 300, "longhaul/lamp/~/a", "e\u0301", "\u00e9",
]  # fmt: skip


@pytest.mark.proves("E5")
async def test_no_two_ids_are_one_session(stage: Stage) -> None:
    spec = stage.agent({"text": "hello"})
    users = [None, "", "~", "=", "a/b", "會"]
    triples = [(user, name) for user in users for name in (*ODD_IDS, "", "same")]

    sessions = [stage.app.session(name, user=user, agent=spec) for user, name in triples]

    assert len({session.workflow_id for session in sessions}) == len(triples)
    assert max(len(session.workflow_id.encode()) for session in sessions) <= 255


@pytest.mark.parametrize("name", ODD_IDS, ids=[f"name {n}" for n, _ in enumerate(ODD_IDS)])
async def test_a_session_of_an_odd_name_works_and_is_found_again(stage: Stage, name: str) -> None:
    session = stage.session({"text": "hello"}, id=name, user=f"u{name}", name=f"lamp-{stage.name[-6:]}")

    reply = await session.reply("Hi", request_id=f"r{name}")
    status = await session.status()

    assert reply.get_text_content() == "hello"
    assert (status.session_id, status.user_id) == (name, f"u{name}")
    await until(lambda: listed(stage, session.workflow_id, name))


async def listed(stage: Stage, workflow_id: str, name: str) -> bool:
    """Whether the index has the session, under exactly these names."""
    cards = [card for card in await stage.app.sessions() if card.workflow_id == workflow_id]
    assert [(card.session_id, card.user_id) for card in cards] in ([], [(name, f"u{name}")])
    return bool(cards)


async def test_nobody_and_the_empty_name_and_a_tilde_are_three_users(stage: Stage) -> None:
    agent = f"lamp-{stage.name[-6:]}"
    for user in (None, "", "~"):
        await stage.session({"text": f"I know {user!r}"}, id="same", user=user, name=agent).reply("Hi")

    async def found() -> bool:
        mine = [card for card in await stage.app.sessions() if card.agent == agent]
        return sorted(map(str, (card.user_id for card in mine))) == ["", "None", "~"]

    await until(found)


@pytest.mark.parametrize("user", ['Ana "Tea" Pot', "back\\slash", "O'Neil", "two\nlines"])
async def test_the_sessions_of_a_user_are_found_by_any_name(stage: Stage, user: str) -> None:
    mine = stage.session({"text": "hello"}, user=user)
    other = stage.session({"text": "hello"}, user=user.replace('"', '\\"') + "!")
    await mine.reply("Hi")
    await other.reply("Hi")

    async def found() -> bool:
        return [card.workflow_id for card in await stage.app.sessions(user=user, session_id=mine.id)] == [
            mine.workflow_id
        ]

    await until(found)


async def test_a_foreign_workflow_with_a_memo_that_nobody_can_read_hides_no_session(stage: Stage) -> None:
    foreign = RawValue(Payload(metadata={"encoding": b"binary/unheard-of"}, data=b"\xff"))
    session = stage.session({"text": "hello"})
    await session.reply("Hi")
    handle = await stage.client.start_workflow(
        WORKFLOW, SessionStart(session_id="f"), id=stage.name, task_queue=stage.name, memo={"session": foreign}
    )

    async def found() -> bool:
        return {session.workflow_id, stage.name} <= {card.workflow_id for card in await stage.app.sessions()}

    await until(found)
    await handle.terminate()
