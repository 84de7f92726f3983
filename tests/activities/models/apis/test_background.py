"""An answer that OpenAI makes in the background is picked up where a connection or an attempt has ended."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from longhaul.activities.models.model import Delta, KeptAnswer, ModelReply, ModelRequest
from longhaul.activities.models.providers import Providers
from longhaul.agent.values.conversation.messages import TextBlock, UserMsg
from longhaul.agent.values.spec.agent_spec import ModelConfig
from longhaul.agent.values.spec.profiles import ModelProfile
from tests.activities.models.background_answers import WORDS, KeepsAnswers, keeping_answers
from tests.activities.models.sample_requests import KEYS

KEPT = ModelProfile(provider="openai", model="gpt-5.1", background=True)
TOLD = (TextBlock(text="".join(WORDS)),)


@pytest.fixture
async def openai() -> AsyncIterator[KeepsAnswers]:
    async with keeping_answers() as told:
        yield told


@asynccontextmanager
async def worker(by: KeepsAnswers) -> AsyncIterator[Providers]:
    """Its clients are no other worker's."""
    providers = Providers({**KEYS, "OPENAI_BASE_URL": by.url}, profiles={"kept": KEPT})
    yield providers
    await providers.close()


async def ask(
    by: Providers, kept: KeptAnswer | None, said: str = "Tell it", hear: Callable[[Delta], None] = lambda _: None
) -> ModelReply:
    request = ModelRequest("", "Be brief.", [UserMsg("user", said)], [], ModelConfig(), kept=kept)
    return await by.call("kept", request, hear)


async def half_told(openai: KeepsAnswers) -> KeptAnswer:
    """What an attempt leaves behind that ends in the middle of the answer."""
    kept, heard = KeptAnswer(), asyncio.Event()
    async with worker(openai) as first:
        asking = asyncio.create_task(ask(first, kept, hear=lambda _: heard.set()))
        await heard.wait()
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
    openai.goes_on.set()
    return KeptAnswer(kept.request, kept.response)


async def test_a_broken_connection_goes_on_behind_the_last_event(openai: KeepsAnswers) -> None:
    openai.cuts_after = 3
    openai.goes_on.set()

    async with worker(openai) as one:
        reply = await ask(one, KeptAnswer())

    assert (reply.content, reply.usage.input_tokens) == (TOLD, 900)
    assert (len(openai.made), openai.resumed) == (1, ["stream=true&starting_after=2"])
    assert (openai.made[0]["background"], openai.made[0]["store"]) == (True, True)


async def test_the_next_attempt_picks_up_what_the_one_before_has_started(openai: KeepsAnswers) -> None:
    kept = await half_told(openai)

    async with worker(openai) as second:
        reply = await ask(second, kept)

    assert (reply.content, len(openai.made), openai.resumed) == (TOLD, 1, ["stream=true"])
    assert kept.picked_up


async def test_another_request_is_a_new_one(openai: KeepsAnswers) -> None:
    kept = await half_told(openai)

    async with worker(openai) as second:
        await ask(second, kept, "Tell another one")

    assert (len(openai.made), openai.resumed, kept.picked_up, kept.response) == (2, [], False, "resp_2")


async def test_what_nobody_wants_any_more_is_stopped(openai: KeepsAnswers) -> None:
    kept = await half_told(openai)

    async with worker(openai) as second:
        await ask(second, kept)
        assert kept.stop is not None
        await kept.stop()

    assert openai.cancelled == ["resp_1"]


@pytest.mark.parametrize(
    ("keeps_nothing", "kept", "notes"),
    [
        pytest.param(True, True, 1, id="the account keeps nothing"),
        pytest.param(False, False, 0, id="nobody could pick it up"),
    ],
)
async def test_where_nothing_is_kept_the_answer_is_streamed_as_ever(
    openai: KeepsAnswers, keeps_nothing: bool, kept: bool, notes: int
) -> None:
    openai.keeps_nothing = keeps_nothing
    openai.goes_on.set()

    async with worker(openai) as one:
        reply = await ask(one, KeptAnswer() if kept else None)

    made: dict[str, Any] = openai.made[0]
    assert (reply.content, len(reply.notes)) == (TOLD, notes)
    assert ("background" in made, made["store"]) == (False, False)
