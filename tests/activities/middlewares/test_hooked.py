"""A middleware made of functions: it stands where they stand, and nowhere else."""

import pytest

from longhaul.activities.middlewares.middleware import HookedMiddleware, RuntimeContext, defines
from longhaul.activities.middlewares.middleware_chain import Middlewares
from longhaul.activities.middlewares.session_middlewares import Wrapped
from longhaul.agent.plain.hooks import UnknownHook

METHODS = ("on_reply", "on_system_prompt", "on_reasoning", "on_model_call", "on_acting", "handle_interrupt")


def stands_at(hooks: HookedMiddleware) -> list[str]:
    return [method for method in METHODS if defines(hooks, method)]


def test_it_stands_only_where_a_function_was_registered() -> None:
    hooks = HookedMiddleware("shop")
    nowhere = stands_at(hooks)

    hooks.register("pre_acting", "audit", lambda context, use: None)
    hooks.register("post_model_call", "polite", lambda context, request, reply: None)

    assert nowhere == []
    assert stands_at(hooks) == ["on_model_call", "on_acting"]
    hooks.remove("pre_acting", "audit")
    assert stands_at(hooks) == ["on_model_call"]
    hooks.clear()
    assert stands_at(hooks) == []


def test_pieces_are_held_back_only_while_something_may_change_the_answer() -> None:
    hooks = HookedMiddleware()
    wrapped = Wrapped(Middlewares({"hooks": hooks}).chosen(), RuntimeContext("lamp", None, "s", 1))

    hooks.register("pre_model_call", "count", lambda context, request: None)
    before = wrapped.hides_pieces
    hooks.register("post_model_call", "polite", lambda context, request, reply: None)

    assert (before, wrapped.hides_pieces) == (False, True)
    assert not wrapped.adds_reminders


@pytest.mark.proves("C1")
async def test_what_comes_before_a_reply_is_told_to_the_model_and_texts_go_through_in_order() -> None:
    hooks = HookedMiddleware()
    context = RuntimeContext("lamp", None, "s", 1)
    hooks.register("pre_reply", "time", lambda context, request: f"It is noon for {context.agent}.")
    hooks.register("pre_system_prompt", "a", lambda context, text: f"{text}a")
    hooks.register("post_system_prompt", "b", lambda context, given, text: f"{text}b")

    assert await hooks.on_reply("Hello", context) == ["It is noon for lamp."]
    assert await hooks.on_system_prompt("-", context) == "-ab"
    hooks.clear("pre_reply")
    assert await hooks.on_reply("Hello", context) == ()


def test_places_that_are_not_a_workers_are_refused() -> None:
    hooks = HookedMiddleware()

    with pytest.raises(UnknownHook, match="there is no 'pre_print' to stand at"):
        hooks.register("pre_print", "x", lambda context, event: None)
    with pytest.raises(ValueError, match="post_reply: a reply may end anywhere"):
        hooks.register("post_reply", "x", lambda context, given, came: None)
