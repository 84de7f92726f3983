"""A long session in a small window: a model could answer each request that leaves the worker."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

import pytest

from longhaul.activities.models.model import Delta, ModelReply, ModelRequest
from longhaul.activities.models.providers import Providers
from longhaul.agent.values.conversation.messages import outside_tokens, problem
from longhaul.starter.client.session import Session
from tests.activities.models.sample_requests import KEYS
from tests.workflows.conftest import Stage
from tests.workflows.operations import calls, results
from tests.workflows.tools import page_text

pytestmark = pytest.mark.server

CHARS, WINDOW = 1_500, 32_000
FIRST, NEWEST = "Read every page, and remember the word amber", "Read the other half, and remember the word teal"
THIRD = {"from_message": 5, "to_message": 6}
"""The call and the result of the third step: the goal is message 0."""


@dataclass(frozen=True)
class Seen:
    """What one model call was asked with."""

    tokens: int
    unpaired: str
    texts: frozenset[str]
    """Of the user's messages."""


@dataclass
class Watched(Providers):
    """Writes down what each call for a reply is asked with, and passes it on."""

    seen: list[Seen] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(KEYS)

    async def call(self, full_model_name: str, request: ModelRequest, on_delta: Callable[[Delta], None]) -> ModelReply:
        if request.purpose == "reply":
            asked = frozenset(one.get_text_content() for one in request.messages if one.role == "user")
            tokens = -(-len(request.system) // 3) + sum(outside_tokens(message) for message in request.messages)
            self.seen.append(Seen(tokens, problem(request.messages), asked))
        return await super().call(full_model_name, request, on_delta)


@pytest.fixture
async def watching(unserved: Stage) -> AsyncIterator[tuple[Stage, Watched]]:
    """A stage whose worker's model calls are watched."""
    spy = Watched()
    unserved.providers = spy
    async with unserved.another_worker():
        yield unserved, spy


def reading(stage: Stage, steps: int) -> Session:
    half = steps // 2
    pages = [calls("fetch", page=number, chars=CHARS) for number in range(steps)]
    return stage.session(
        *pages[:half],
        {"text": "Half is read."},
        *pages[half:],
        calls("recall", **THIRD),
        {"text": "All is read."},
        tools=["fetch", "recall"],
        model_config={"context_length": WINDOW, "max_output_tokens": 1_000},
        react_config={"max_iters": steps},
    )


@pytest.mark.parametrize("steps", [240, pytest.param(1_000, marks=pytest.mark.chaos)])
async def test_many_steps_in_a_small_window(watching: tuple[Stage, Watched], steps: int) -> None:
    stage, spy = watching
    session = reading(stage, steps)

    first = await session.reply(FIRST)
    newest = await session.reply(NEWEST)
    status = await session.status()

    assert (first.error, first.get_text_content()) == (None, "Half is read.")
    assert (newest.error, newest.get_text_content()) == (None, "All is read.")
    # One that a stalled machine cuts short is asked once more.
    assert len(spy.seen) >= steps + 3
    assert status.compressions >= steps * CHARS // 3 // WINDOW
    assert [asked.unpaired for asked in spy.seen if asked.unpaired] == []
    assert max(asked.tokens for asked in spy.seen) < WINDOW
    assert all(FIRST in asked.texts for asked in spy.seen)
    assert all(NEWEST in asked.texts for asked in spy.seen[-(steps // 2 + 2) :])
    recalled = results(newest)[-1][1]
    assert recalled == (
        f"2 of {2 * steps + 4} messages, the newest first.\n"
        f"--- message 6 · assistant · lamp\n[result of call call_2_0 of fetch: success]\n{page_text(2, CHARS)}\n"
        f'--- message 5 · assistant · lamp\n[call call_2_0 of fetch]\n{{"page": 2, "chars": {CHARS}}}'
    )
