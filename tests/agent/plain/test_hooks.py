"""Hooks: in order, replaced in place, removed and cleared, for all and for one."""

from typing import Any

import pytest

from longhaul.agent.plain.hooks import Hooks, UnknownHook


def adding(letter: str) -> Any:
    """A hook that adds an operation to what was given, or came."""
    return lambda who, *texts: f"{texts[-1]}{letter}"


async def test_hooks_run_in_order_and_each_gets_what_the_one_before_gave_back() -> None:
    hooks = Hooks()

    async def shouting(who: str, given: str) -> str:
        return f"{given.upper()} {who}"

    hooks.register("pre_reply", "loud", shouting)
    hooks.register("pre_reply", "b", adding("b"))
    hooks.register("post_reply", "c", adding("c"))

    assert await hooks.before("reply", "ana", "hi") == "HI anab"
    assert await hooks.after("reply", "ana", "hi", "came") == "camec"


async def test_a_hook_that_gives_back_nothing_changes_nothing() -> None:
    hooks, seen = Hooks(), list[tuple[Any, ...]]()
    hooks.register("pre_observe", "look", lambda *told: seen.append(told))
    hooks.register("post_observe", "look", lambda *told: seen.append(told))

    assert await hooks.before("observe", "who", "given") == "given"
    assert await hooks.after("observe", "who", "given", "came") == "came"
    assert seen == [("who", "given"), ("who", "given", "came")]


@pytest.mark.proves("C2")
async def test_the_same_name_replaces_and_keeps_its_place() -> None:
    hooks = Hooks()
    for name in "abc":
        hooks.register("pre_print", name, adding(name))
    hooks.register("pre_print", "a", adding("A"))

    assert hooks.names("pre_print") == ("a", "b", "c")
    assert await hooks.before("print", None, "") == "Abc"
    hooks.remove("pre_print", "b")
    assert await hooks.before("print", None, "") == "Ac"
    hooks.clear("pre_print")
    assert await hooks.before("print", None, "") == ""


@pytest.mark.proves("C2")
async def test_those_of_all_run_before_those_of_one_and_are_not_cleared_by_it() -> None:
    everybody, one, other = Hooks(), Hooks(), Hooks()
    one.parent = other.parent = everybody
    one.register("pre_reply", "one", adding("1"))
    everybody.register("pre_reply", "all", adding("*"))

    assert (await one.before("reply", None, ""), await other.before("reply", None, "")) == ("*1", "*")
    assert one.names("pre_reply") == ("all", "one")
    one.clear()
    assert (one.stand_at("reply"), one.stand_at("print")) == (True, False)
    everybody.clear()
    assert not one.stand_at("reply")


async def test_a_hook_may_remove_itself() -> None:
    hooks = Hooks()

    def once(who: object, given: str) -> str:
        hooks.remove("pre_reply", "once")
        return f"{given}!"

    hooks.register("pre_reply", "once", once)
    hooks.register("pre_reply", "b", adding("b"))

    assert [await hooks.before("reply", None, ""), await hooks.before("reply", None, "")] == ["!b", "b"]


def test_places_and_names_that_are_not_there_are_named() -> None:
    hooks = Hooks(("reply",))

    with pytest.raises(UnknownHook, match="there is no 'pre_print' to stand at; there are: pre_reply, post_reply"):
        hooks.register("pre_print", "a", adding("a"))
    with pytest.raises(UnknownHook, match="no pre_reply hook is named 'a'; there are: none"):
        hooks.remove("pre_reply", "a")
