"""A week's session at a provider whose prompt cache keeps the published rules, on a simulated clock: replies two and
thirty minutes apart, calls of twenty seconds, a dozen compressions, and a system prompt that changes.

Its input costs little more than if the cache forgot nothing and served each byte that it had read before.
"""

import pytest

from longhaul.activities.models.profiles import KeyPlace
from longhaul.activities.models.providers import Providers
from longhaul.agent.values.spec.agent_spec import ReActConfig
from tests.activities.models.prompt_caches import NOTHING, READ, WRITTEN, items_of, served
from tests.activities.models.sample_requests import KEYS
from tests.activities.models.strict import Strict
from tests.workflows.conftest import Stage
from tests.workflows.context.hosted import named

pytestmark = [pytest.mark.server, pytest.mark.chaos, pytest.mark.timeout(300)]

REPLIES, ROUNDS, CHARS = 20, 10, 6_000
CALL_SECONDS, SHORT_PAUSE_SECONDS, LONG_PAUSE_SECONDS = 20, 120, 1_800
REPLIES_BETWEEN_PAUSES = 4
DEARER = 1.25
"""Than with a cache that forgets nothing: five pauses outlast Anthropic's five minutes."""


@pytest.mark.proves("F6")
@pytest.mark.parametrize("model", ["anthropic:claude-opus-5-5", "openai:gpt-5.1", "openai-chat:gpt-4o"])
async def test_a_week_costs_little_more_than_its_new_words(unserved: Stage, strict: Strict, model: str) -> None:
    unserved.places += [KeyPlace(name, strict.url) for name in KEYS]
    unserved.providers = Providers(KEYS, unserved.places)
    rules = unserved.workspace / "AGENTS.md"
    session = unserved.session(
        **named(unserved, model, strict.url, context_length=60_000),
        tools=("fetch",),
        agent_context={"repo_skills": True},
        react_config=ReActConfig(max_iters=3 * ROUNDS),
    )
    moments, now = list[float](), 0.0
    async with unserved.another_worker():
        for reply in range(REPLIES):
            rules.write_text("Say little.\n" * 40 + f"Day {reply // REPLIES_BETWEEN_PAUSES}.\n")
            now += SHORT_PAUSE_SECONDS if reply % REPLIES_BETWEEN_PAUSES else LONG_PAUSE_SECONDS
            strict.says = [
                (f"toolu_{reply}_{at}", "fetch", {"page": reply * ROUNDS + at, "chars": CHARS}) for at in range(ROUNDS)
            ]
            done = await session.reply(f"Read chapter {reply}.")
            assert done.error is None
            while len(moments) < len(strict.bodies):
                moments.append(now := now + CALL_SECONDS)
        status = await session.status()

    total = sum(served(strict.bodies, moments), NOTHING)
    every = [item for body in strict.bodies for item in items_of(body)]
    new, all_of_it = (sum(len(item) // 4 for item in items) for items in (set(every), every))
    price = WRITTEN if total.written else 1
    least = new * price + (all_of_it - new) * READ
    print(f"\n{model}: {len(moments)} requests, {status.compressions} compressions: {total}")
    print(f"they cost {total.cost:.0f}, and {least:.0f} with a cache that forgets nothing")
    assert strict.refusals == []
    assert status.compressions >= 10
    assert total.cost <= DEARER * least
