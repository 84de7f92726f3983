"""The test kit, as tests of agents use it: on this run's server, in the loop of its plugin for asyncio."""

from datetime import timedelta
from pathlib import Path

import pytest
from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter

from longhaul import AgentSpec, Budget, tool
from longhaul.activities.models.failures.status_table import ScriptError
from longhaul.agent.plain.errors import BadSetup
from longhaul.testing import AgentEnvironment, calls, environment, replay, scripted, settings_for

pytestmark = [pytest.mark.server, pytest.mark.longhaul(tools="tests.test_kit")]

RUN = list[str]()
"""What the tools below did, in this process."""


@tool(effect="once")
def ring(bell: str) -> str:
    """Ring a bell."""
    RUN.append(bell)
    return f"{bell} rang"


def ringer(*says: str | dict[str, object], **more: object) -> AgentSpec:
    return AgentSpec.model_validate({"name": "ringer", "model": scripted(says), "tools": ("ring",), **more})


@pytest.mark.proves("X23")
async def test_what_a_session_did_is_told_as_plain_values(longhaul_env: AgentEnvironment, tmp_path: Path) -> None:
    prices = tmp_path / "prices.toml"
    prices.write_text("[scripted]\ninput = 1_000_000\noutput = 0\n")
    longhaul_env.settings.prices = prices
    RUN.clear()
    session = longhaul_env.session(ringer(calls("ring", "I ring.", bell="brass"), calls("ring", bell="tin"), "Done."))

    first = await session.reply("Ring both")
    second = await longhaul_env.approve(session, "ring", by="bo", reason="at noon")
    last = await longhaul_env.deny(session, by="ana")
    seen = await longhaul_env.seen(session)

    assert (first.finished_reason, second.finished_reason, last.get_text_content()) == (None, None, "Done.")
    assert RUN == ["brass"]
    assert [(c.tool, c.arguments, c.state, c.effect, c.approvers) for c in seen.calls] == [
        ("ring", '{"bell": "brass"}', "success", "once", ("bo",)),
        ("ring", '{"bell": "tin"}', "denied", "", ()),
    ]
    assert seen.calls[0].output == "brass rang"
    assert [(one.decision, one.approver, one.reason) for one in seen.decisions] == [
        ("allow", "bo", "at noon"),
        ("deny", "ana", ""),
    ]
    assert seen.transcript == ("user: Ring both", "assistant: I ring.", "assistant: Done.")
    assert seen.cost == seen.usage.input_tokens > 0
    assert seen.status.model_calls == 3


async def test_a_wrong_expectation_says_what_there_is(longhaul_env: AgentEnvironment) -> None:
    session = longhaul_env.session(ringer(calls("ring", bell="brass"), "Done."))
    await session.reply("Ring it")

    with pytest.raises(AssertionError, match=r"0 calls wait instead of one; the session waits for: ring.*brass"):
        await longhaul_env.approve(session, "order")
    with pytest.raises(AssertionError, match="0 calls of 'order' instead of one; the session's calls: ring"):
        (await longhaul_env.seen(session)).call("order")
    with pytest.raises(BadSetup, match="longhaul_time_env"):
        await longhaul_env.move_time(timedelta(days=1))


@pytest.mark.proves("X23")
async def test_days_pass_when_the_test_says_so(longhaul_time_env: AgentEnvironment) -> None:
    deadline = {"remind_after": "1d", "expire_after": "30d"}
    session = longhaul_time_env.session(
        ringer(calls("ring", bell="late"), "Nobody came.", permission={"deadline": deadline})
    )
    waiting = await session.reply("Ring it")

    await longhaul_time_env.move_time(timedelta(days=29))
    (call,) = await session.pending()
    await longhaul_time_env.move_time(timedelta(days=2))
    reply = await session.wait(waiting.id)

    assert call.reminded_at != ""
    assert reply.get_text_content() == "Nobody came."
    assert (await longhaul_time_env.seen(session)).call("ring").state == "denied"


async def test_a_recorded_session_is_replayed_and_one_that_would_break_is_named(
    longhaul_env: AgentEnvironment, tmp_path: Path
) -> None:
    session = longhaul_env.session(ringer("Hello."))
    await session.reply("Hello?")
    saved = await longhaul_env.save(session, tmp_path / "recorded")

    await replay(tmp_path / "recorded")
    saved.write_text(saved.read_text().replace('"longhaul.call_model"', '"longhaul.call_nobody"'))
    with pytest.raises(AssertionError, match=rf"1 of 1 sessions would break:\n{saved.name}: .*call_nobody.*call_model"):
        await replay(saved)
    with pytest.raises(AssertionError, match=r"no recorded session in .*nothing-here"):
        await replay(tmp_path / "nothing-here")


async def test_a_client_of_ones_own_hosts_agents(longhaul_server: str, tmp_path: Path) -> None:
    client = await Client.connect(longhaul_server, data_converter=pydantic_data_converter)

    async with environment(client, settings_for(tmp_path)) as env:
        session = env.session(AgentSpec(name="greeter"), ["Hello."], user="ana", name="first")
        reply = await session.reply("Hello?")
        listed = [(card.session_id, card.user_id) for card in await env.app.sessions(user="ana")]

    assert reply.get_text_content() == "Hello."
    assert ("first", "ana") in listed
    assert await session.end() == "terminated"


async def test_a_call_is_waited_for_and_a_profile_may_name_a_script(longhaul_server: str, tmp_path: Path) -> None:
    client = await Client.connect(longhaul_server)
    slow = {**calls("ring", bell="brass"), "delay_ms": 300}
    settings = settings_for(tmp_path, tools="tests.test_kit", models={"team": scripted([slow, "Done."])})

    async with environment(client, settings) as env:
        spec = AgentSpec(name="ringer", model="team", tools=("ring",), budget=Budget(max_cost=1))
        session = env.session(spec)
        await session.submit("Ring it")
        reply = await env.approve(session, "ring", by="bo")

    assert reply.get_text_content() == "Done."


def test_a_script_or_a_setting_that_cannot_be_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(ScriptError, match=r"Line 2 of script .*: tex: Extra inputs are not permitted"):
        scripted(["Hello.", {"tex": "Goodbye."}])
    with pytest.raises(BadSetup, match="tolls: there is no such setting"):
        settings_for(tmp_path, tolls="shop_tools")
