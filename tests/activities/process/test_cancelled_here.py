"""Code of the operator's that raises what is no `Exception`: named as any other failure, wherever it is called; and
whoever waits for it may cancel it."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from longhaul.activities.attempt.workspaces import Workspaces
from longhaul.activities.call_results import _look
from longhaul.activities.compression.condensers import run_chain
from longhaul.activities.context.prompt_hooks import PromptHooks
from longhaul.activities.custom_agents.custom_agent import CustomAgent
from longhaul.activities.custom_agents.custom_agent_registry import CustomAgents
from longhaul.activities.custom_agents.custom_agent_turns import CustomAgentTurns
from longhaul.activities.examine_calls import Examination
from longhaul.activities.memory import _or_said
from longhaul.activities.middlewares.middleware import Middleware
from longhaul.activities.middlewares.middleware_chain import around, bounded
from longhaul.activities.risk_analysis import Analyzers
from longhaul.activities.tool import Place
from longhaul.activities.tools.read import Read
from longhaul.activities.tools.registry import Toolbox
from longhaul.activities.worker_parts import WorkerParts
from longhaul.agent.permission.call_analysis import CallAnalysis
from tests.activities.context.test_prompt_hooks import CONTEXT as PROMPT
from tests.activities.middlewares.test_middlewares import CONTEXT
from tests.activities.risk_analysis.test_chain import case

Act = Callable[[], Awaitable[Any]]


class Panic(BaseException):
    """As those of libraries in Rust."""


ENDS = [
    SystemExit(3),
    KeyboardInterrupt(),
    GeneratorExit(),
    asyncio.CancelledError(),
    Panic(),
    BaseExceptionGroup("all", [Panic()]),
]


class Foreign:
    """Anything that a worker's operator may give it: it does what it is told."""

    def __init__(self, act: Act) -> None:
        self.act = act
        self.name = "foreign"

    async def analyze(self, case: object) -> Any:
        return await self.act()

    condense = probe = analyze


class ForeignMiddleware(Middleware):
    name = "foreign"

    def __init__(self, act: Act) -> None:
        self.act = act

    async def on_model_call(self, request: Any, context: Any, call_next: Any) -> Any:
        return await self.act()


class ForeignAgent(CustomAgent):
    error: BaseException = Panic()

    async def reply(self, msg: Any, session: Any) -> str:
        raise self.error

    async def handle_interrupt(self, message: str, tools: tuple[str, ...]) -> str:
        raise self.error


async def middleware(act: Act) -> Any:
    async def innermost(_: str) -> str:
        return "said"

    return await around([ForeignMiddleware(act)], "on_model_call", "ask", CONTEXT, innermost, str)


async def middleware_around_nothing(act: Act) -> Any:
    return await bounded(ForeignMiddleware(act), act(), str)


async def prompt_hook(act: Act) -> Any:
    async def hook(*_: object) -> str:
        return str(await act())

    return await PromptHooks({"foreign": hook}).apply("Lay.", PROMPT)


async def analyzer(act: Act) -> Any:
    return await Analyzers({"foreign": Foreign(act)}).analyze(case(), ["foreign"], "d")


async def condenser(act: Act) -> Any:
    return await run_chain(None, ["foreign"], {"foreign": Foreign(act)})  # type: ignore[arg-type]


async def store(act: Act) -> Any:
    return await _or_said("The memory", act())


async def probe(act: Act) -> Any:
    return await _look(Foreign(act), None)  # type: ignore[arg-type]


async def examiner(act: Act) -> Any:
    class ForeignRead(Read):
        async def examine(self, arguments: dict[str, Any], place: Place) -> CallAnalysis:
            return await act()  # type: ignore[no-any-return]

    here = Path(__file__).parent
    looking = Examination(WorkerParts(workspaces=Workspaces(here), toolbox=Toolbox([ForeignRead()])))
    return await looking.look("Read", '{"file_path": "a"}', Place(root=here, cwd=here))


TOLD = [analyzer, store, probe, examiner]
"""What they come to says it."""
PLACES = [middleware, middleware_around_nothing, prompt_hook, condenser, *TOLD]


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)
@pytest.mark.parametrize("error", ENDS, ids=lambda error: type(error).__name__)
async def test_whatever_is_raised_is_a_failure(place: Callable[[Act], Awaitable[Any]], error: BaseException) -> None:
    async def act() -> None:
        raise error

    ended: object = (await asyncio.gather(place(act), return_exceptions=True))[0]

    if place in TOLD:
        assert not isinstance(ended, BaseException)
    else:
        assert isinstance(ended, Exception)
        assert re.search(rf"'foreign'.*{type(error).__name__}", str(ended))


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)
async def test_who_waits_may_cancel(place: Callable[[Act], Awaitable[Any]]) -> None:
    started = asyncio.Event()

    async def act() -> None:
        started.set()
        await asyncio.sleep(60)

    waiting = asyncio.create_task(place(act))  # type: ignore[arg-type,var-annotated]
    await asyncio.wait_for(started.wait(), 5)
    waiting.cancel()
    await asyncio.wait({waiting}, timeout=5)

    assert waiting.cancelled()


@pytest.mark.parametrize("error", ENDS, ids=lambda error: type(error).__name__)
async def test_the_code_of_a_custom_agent_may_raise_it_too(error: BaseException) -> None:
    raising = type("Raising", (ForeignAgent,), {"error": error})

    with pytest.raises(Exception, match=rf"custom agent 'foreign' failed: its code raised {type(error).__name__}\."):
        await CustomAgentTurns(CustomAgents({"foreign": raising})).parting("foreign", "", ())
