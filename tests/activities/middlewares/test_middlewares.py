"""Middlewares by themselves: their order, what they may not do, and what is left when one fails."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from longhaul.activities.middlewares import middleware_chain
from longhaul.activities.middlewares.middleware import (
    Middleware,
    RuntimeContext,
    RunTool,
    Stopped,
    ToolUse,
    as_current,
    runtime_context,
)
from longhaul.activities.middlewares.middleware_chain import (
    MiddlewareFailed,
    Middlewares,
    MiddlewareSetupError,
    around,
    load_middlewares,
)
from longhaul.activities.middlewares.session_middlewares import Wrapped
from longhaul.activities.models.model import ModelReply
from longhaul.activities.tool import NeedsDecision, ToolError, ToolOutput
from longhaul.agent.permission.call_analysis import CallAnalysis
from longhaul.agent.values.conversation.messages import TextBlock, Usage
from longhaul.agent.values.conversation.tools import Effect

CONTEXT = RuntimeContext(agent="lamp", user_id="ana", session_id="s1", attempt=1, given={"ticket": [4711]})
USE = ToolUse("c1", "send", '{"to": "ben"}', Effect.ONCE)


class Around(Middleware):
    """Does what it is told around a tool."""

    def __init__(self, name: str, act: Callable[[ToolUse, RunTool], Any]) -> None:
        self.name = name
        self._act = act

    async def on_acting(self, use: ToolUse, context: RuntimeContext, call_next: RunTool) -> ToolOutput:
        answer: ToolOutput = await self._act(use, call_next)
        return answer


def said(word: str) -> Callable[[ToolUse, RunTool], Any]:
    async def act(use: ToolUse, call_next: RunTool) -> ToolOutput:
        output = await call_next(use)
        return ToolOutput(output=f"{word}({output.output})")

    return act


async def acted(run: Callable[[], Any], *acts: Callable[[ToolUse, RunTool], Any], use: ToolUse = USE) -> ToolOutput:
    middlewares = tuple(Around(f"m{at}", act) for at, act in enumerate(acts))
    return await Wrapped(middlewares, CONTEXT).acting(use, run, judged)


async def judged(arguments: str) -> None:
    if arguments == '{"to": "nobody"}':
        raise Stopped("it does not fit")
    if arguments not in (USE.arguments, "{}"):
        raise NeedsDecision(CallAnalysis(), "other arguments", arguments)


class Ran:
    """A tool that counts its runs, and ends as it is told."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.times = 0
        self._error = error

    async def __call__(self) -> ToolOutput:
        self.times += 1
        if self._error is not None:
            raise self._error
        return ToolOutput(output="sent")


async def test_the_first_is_the_outermost() -> None:
    assert (await acted(Ran(), said("a"), said("b"))).output == "a(b(sent))"


async def test_another_call_than_the_one_that_was_judged_is_not_made() -> None:
    ran = Ran()

    async def forge(_use: ToolUse, call_next: RunTool) -> ToolOutput:
        return await call_next(ToolUse("c1", "send_all", '{"to": "ben"}', Effect.ONCE))

    output = await acted(ran, forge)

    assert (ran.times, output.failed) == (0, True)
    assert "another call than the one that permission has judged can't be made" in str(output.output)


@pytest.mark.parametrize("first", ["nothing", "swallows"])
async def test_other_arguments_are_for_the_session_to_judge(first: str) -> None:
    ran = Ran()

    async def to_eve(use: ToolUse, call_next: RunTool) -> ToolOutput:
        try:
            return await call_next(replace(use, arguments='{"to": "eve"}'))
        except NeedsDecision:
            if first == "swallows":
                return ToolOutput("sent")
            raise

    with pytest.raises(NeedsDecision) as raised:
        await acted(ran, to_eve)

    assert (ran.times, raised.value.arguments) == (0, '{"to": "eve"}')


async def test_other_arguments_that_do_not_fit_run_nothing() -> None:
    ran = Ran()

    async def to_nobody(use: ToolUse, call_next: RunTool) -> ToolOutput:
        return await call_next(replace(use, arguments='{"to": "nobody"}'))

    output = await acted(ran, to_nobody)

    assert (ran.times, output.failed, output.output) == (0, True, "it does not fit The tool did not run.")


async def test_what_has_run_is_not_made_again_with_other_arguments() -> None:
    ran = Ran()

    async def then_eve(use: ToolUse, call_next: RunTool) -> ToolOutput:
        await call_next(use)
        return await call_next(replace(use, arguments='{"to": "eve"}'))

    output = await acted(ran, then_eve, use=replace(USE, effect=Effect.READ))

    assert (ran.times, output.failed) == (1, True)
    assert str(output.output).startswith("a call that has run can't be made again with other arguments")


@pytest.mark.parametrize(("effect", "times"), [(Effect.ONCE, 1), (Effect.READ, 2)])
async def test_a_once_call_is_made_once(effect: Effect, times: int) -> None:
    ran = Ran()

    async def twice(use: ToolUse, call_next: RunTool) -> ToolOutput:
        await call_next(use)
        return await call_next(use)

    output = await acted(ran, twice, use=ToolUse("c1", "send", "{}", effect))

    assert ran.times == times
    assert output.failed is (effect is Effect.ONCE)


async def test_a_failure_says_whose_it_is_and_whether_the_tool_ran() -> None:
    async def before(_use: ToolUse, _next: RunTool) -> ToolOutput:
        raise ValueError("secret words")

    async def after(use: ToolUse, call_next: RunTool) -> ToolOutput:
        await call_next(use)
        raise ValueError("secret words")

    async def stops(_use: ToolUse, _next: RunTool) -> ToolOutput:
        raise Stopped("not on Sundays")

    failed = "The middleware 'm0' on the worker failed: ValueError."
    assert (await acted(Ran(), before)).output == f"{failed} The tool did not run."
    assert (await acted(Ran(), after)).output == (
        f"{failed} The tool had run by then: what it did stays done, and what it answered is withheld."
    )
    stopped = "The middleware 'm0' stopped this: not on Sundays."
    assert (await acted(Ran(), stops)).output == f"{stopped} The tool did not run."


async def test_one_that_hangs_is_given_up_and_the_tools_own_time_does_not_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(middleware_chain, "OWN_SECONDS", 0.4)

    async def slow() -> ToolOutput:
        await asyncio.sleep(0.6)
        return ToolOutput(output="slowly")

    async def hangs(_use: ToolUse, _next: RunTool) -> ToolOutput:
        await asyncio.sleep(60)
        return ToolOutput(output="never")

    assert (await acted(slow, said("a"))).output == "a(slowly)"
    assert "it took longer than" in str((await acted(Ran(), hangs)).output)


async def test_a_tools_error_is_a_result_to_middlewares_and_a_changed_world_none_of_their_business() -> None:
    async def hides(use: ToolUse, call_next: RunTool) -> ToolOutput:
        try:
            return await call_next(use)
        except Exception:  # noqa: BLE001  what a careless author writes
            return ToolOutput(output="all is well")

    assert (await acted(Ran(ToolError("no such box")), said("a"))).output == "a(no such box)"
    with pytest.raises(NeedsDecision):
        await acted(Ran(NeedsDecision(CallAnalysis(), "it moved")), hides)


async def test_what_gives_back_something_else_has_failed() -> None:
    async def nothing(_use: ToolUse, _next: RunTool) -> None:
        return None

    middlewares = (Around("odd", nothing),)

    async def innermost(_: ToolUse) -> ToolOutput:
        return ToolOutput(output="sent")

    with pytest.raises(MiddlewareFailed, match="'odd' on the worker failed: TypeError"):
        await around(middlewares, "on_acting", USE, CONTEXT, innermost, ToolOutput)


SAID = ModelReply((TextBlock(text="said"),), Usage(), "fake:m")


@pytest.mark.parametrize(
    "answer",
    [
        replace(SAID, content=None),  # type: ignore[arg-type]
        replace(SAID, content=("said",)),  # type: ignore[arg-type]
        replace(SAID, usage=None),  # type: ignore[arg-type]
        replace(SAID, stop_reason=7),  # type: ignore[arg-type]
    ],
)
async def test_an_answer_that_could_not_be_recorded_is_whose_it_is(answer: ModelReply) -> None:
    class Odd(Middleware):
        name = "odd"

        async def on_model_call(self, request: Any, context: Any, call_next: Any) -> ModelReply:
            return answer

    with pytest.raises(MiddlewareFailed, match="'odd' on the worker failed: TypeError"):
        await around([Odd()], "on_model_call", "ask", CONTEXT, innermost=said("x"), kind=ModelReply)  # type: ignore[arg-type]


async def test_what_hands_on_something_else_has_failed() -> None:
    async def garbles(_use: ToolUse, call_next: RunTool) -> ToolOutput:
        return await call_next("send")  # type: ignore[arg-type]

    ran = Ran()

    output = (await acted(ran, garbles, said("b"))).output

    assert (output, ran.times) == ("The middleware 'm0' on the worker failed: TypeError. The tool did not run.", 0)


def test_the_workers_own_come_first_and_an_unknown_one_is_refused_with_the_nearest() -> None:
    one, two, three = (Around(name, said(name)) for name in ("guard", "redactor", "notes"))
    workers = Middlewares({"guard": one}, {"redactor": two, "notes": three})

    assert workers.chosen() == (one,)
    assert workers.chosen(("notes", "guard", "redactor")) == (one, three, two)
    with pytest.raises(ApplicationError, match=r"no middleware is named 'redacter' .* did you mean 'redactor'\?"):
        workers.chosen(("redacter",))


@pytest.mark.proves("C2")
def test_the_same_name_replaces_and_keeps_its_place() -> None:
    here = "tests.activities.middlewares.test_middlewares"
    loaded = load_middlewares(f"{here}:FIRST, {here}:SECOND, {here}:FIRST_AGAIN")

    assert loaded.chosen() == (FIRST_AGAIN, SECOND)


@pytest.mark.parametrize("place", ["no.such.module:x", "json:loads", "json"])
def test_what_is_no_middleware_is_refused_at_start(place: str) -> None:
    with pytest.raises(MiddlewareSetupError, match=place):
        load_middlewares(place)


@pytest.mark.proves("E8")
def test_a_context_keeps_things_by_name_and_by_type() -> None:
    context = RuntimeContext(agent="lamp", user_id=None, session_id="s1", attempt=2, given={"ticket": 4711})
    context.put(Path("/srv"))
    context.put("ticket", 8)
    context.put(True)

    assert (context.get("ticket"), context.get("nothing"), context.get("nothing", 3)) == (8, None, 3)
    assert (context.get(Path), context.get(int), context.get(dict)) == (Path("/srv"), True, None)
    with pytest.raises(TypeError, match="a name and a value"):
        context.put()


@pytest.mark.proves("E8")
def test_what_came_with_the_request_can_not_be_changed_for_others() -> None:
    CONTEXT.get("ticket").append(1)

    assert CONTEXT.get("ticket") == [4711]


async def test_tools_reach_the_context_also_in_threads_and_nobody_else_does() -> None:
    with as_current(CONTEXT):
        assert await asyncio.to_thread(runtime_context) is CONTEXT
    with pytest.raises(RuntimeError, match="is for tools and middlewares"):
        runtime_context()


FIRST, SECOND, FIRST_AGAIN = (Around(name, said(name)) for name in ("first", "second", "first"))
