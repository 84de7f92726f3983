"""Hooks on the system prompt: order, threads, and what becomes of those that fail or can't be loaded."""

import asyncio
import threading

import pytest

from longhaul.activities.context.prompt_hooks import HookSetupError, PromptContext, PromptHook, PromptHooks, load_hooks
from longhaul.activities.models.failures.retry_errors import as_action
from longhaul.activities.models.failures.status_table import SetupError
from longhaul.agent.values.conversation.messages import ErrorInfo

HERE = "tests.activities.context.test_prompt_hooks"
CONTEXT = PromptContext("mason", "ana", "wall", "scripted:x", 3)


def shout(system_prompt: str, context: PromptContext) -> str:
    return f"{system_prompt.upper()} ({context.agent}, {context.user_id}, {context.session_id}, {context.call_number})"


async def greet(system_prompt: str, context: PromptContext) -> str:
    await asyncio.sleep(0)
    return f"Hello {context.model}. {system_prompt}"


def thread_name(_prompt: str, _context: PromptContext) -> str:
    return threading.current_thread().name


class Policy:
    async def on_system_prompt(self, system_prompt: str, _context: PromptContext) -> str:
        return f"{system_prompt} Obey."


class Moody:
    def __call__(self, system_prompt: str, context: PromptContext) -> object:
        return greet(system_prompt, context)


A_NUMBER = 7


@pytest.mark.proves("B1")
async def test_hooks_run_in_order_each_on_what_the_one_before_gave() -> None:
    hooks = load_hooks(f"{HERE}:shout, {HERE}:greet,{HERE}:Policy")

    assert await hooks.apply("Lay.", CONTEXT) == "Hello scripted:x. LAY. (mason, ana, wall, 3) Obey."


async def test_a_name_that_comes_twice_runs_once_at_its_first_place() -> None:
    hooks = load_hooks(f"{HERE}:greet,{HERE}:Policy,{HERE}:greet")

    assert await hooks.apply("Lay.", CONTEXT) == "Hello scripted:x. Lay. Obey."


async def test_without_hooks_the_prompt_is_the_same_object() -> None:
    prompt = "Lay bricks."

    assert await load_hooks(" , ").apply(prompt, CONTEXT) is prompt


async def test_a_plain_function_runs_beside_the_event_loop() -> None:
    assert await PromptHooks({"x": thread_name}).apply("", CONTEXT) != threading.current_thread().name


async def test_an_object_that_gives_back_an_awaitable_is_awaited() -> None:
    hooks = PromptHooks({"x": Moody()})  # type: ignore[dict-item]

    assert await hooks.apply("Lay.", CONTEXT) == "Hello scripted:x. Lay."


def raises(_prompt: str, _context: PromptContext) -> str:
    raise KeyError("sk-lilac")


async def nothing(_prompt: str, _context: PromptContext) -> str:
    return None  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("hook", "why"),
    [(raises, "KeyError"), (nothing, "TypeError"), (lambda: "", "TypeError")],
    ids=["raises", "nothing", "arity"],
)
async def test_a_failing_hook_is_named_and_its_words_stay_on_the_worker(hook: PromptHook, why: str) -> None:
    with pytest.raises(SetupError, match=rf"The prompt hook 'shop:x' on the worker failed: {why}\.") as failure:
        await PromptHooks({"shop:x": hook}).apply("Lay.", CONTEXT)

    verdict = as_action(failure.value)
    assert verdict.non_retryable
    assert verdict.details == (ErrorInfo(type="setup", message=str(failure.value)),)
    assert "sk-lilac" not in str(failure.value)


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("no.such.module:x", "can't be loaded: ModuleNotFoundError"),
        (f"{HERE}:nowhere", "can't be loaded: AttributeError"),
        (f"{HERE}:A_NUMBER", "is no hook: it has to be a function"),
    ],
)
def test_a_hook_that_is_none_is_the_operators_mistake(name: str, complaint: str) -> None:
    with pytest.raises(HookSetupError, match=complaint):
        load_hooks(name)
