"""`longhaul approve` and `deny` where several calls wait, or several people have to say yes."""

import asyncio
import json
from dataclasses import replace

import pytest

from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.agent.values.spec.workspace import Workspace
from longhaul.starter.client.client import Longhaul
from longhaul.starter.client.session import Session
from longhaul.starter.client.wire import Refused
from tests.e2e.conftest import Cli
from tests.limits import SURE_SECONDS
from tests.workflows.operations import until
from tests.workflows.paying import paid

pytestmark = pytest.mark.server


def paying(cli: Cli, app: Longhaul, name: str, *whom: str, **permission: object) -> Session:
    """A session whose model pays these in one turn; the call has the name of whom it pays."""
    ledger = str(cli.folder / "ledger")
    batch = [{"id": one, "name": "pay", "input": {"to": one, "ledger": ledger}} for one in whom]
    given = {
        "model": cli.script({"tool_calls": batch}, {"text": "Done."}),
        "workspace": Workspace(root=str(cli.folder)),
        "tools": ("pay",),
        "permission": permission,
    }
    return app.session(name, agent=AgentSpec.model_validate(given))


async def test_calls_of_a_batch_are_decided_one_by_one_and_the_rest_together(cli: Cli, app: Longhaul) -> None:
    ledger = cli.folder / "ledger"
    session = paying(cli, app, "wages", "ana", "bo", "cy", "dot")
    waiting = await session.reply("Pay them")

    one = cli("approve", "wages", "bo", "--as", "eve", "--json")

    async def is_paid() -> bool:
        return paid(ledger) == ["bo"]

    await until(is_paid)
    denied = cli("deny", "wages", "ana", "--reason", "she is away", "--as", "eve")
    unclear = cli("approve", "wages", "--edit", "{}")
    unknown = cli("approve", "wages", "nobody")
    twice = cli("approve", "wages", "bo")
    shown = cli("show", "wages", "--json")
    assert paid(ledger) == ["bo"]
    rest = cli("approve", "wages", "--all", "--as", "eve")
    done = await session.wait(waiting.id)

    assert one.document == {"session": "wages", "decision": "allow", "decided": ["bo"]}
    assert denied.out == "denied pay ana\n"
    assert (unclear.code, "--edit is for one call, and 2 were chosen: cy, dot" in unclear.err) == (2, True)
    assert (unknown.code, "'nobody' is no call here" in unknown.err) == (2, True)
    assert (twice.code, "'bo' is finished, decided by eve" in twice.err) == (2, True)
    assert [call["call_id"] for call in shown.document["pending"]] == ["cy", "dot"]
    assert rest.out == "approved pay cy\napproved pay dot\n"
    assert sorted(paid(ledger)) == ["bo", "cy", "dot"]
    texts = {result.id: result.get_text() for result in done.get_tool_results()}
    assert texts["ana"] == "This call was denied by eve and did not run: she is away"


async def test_nothing_is_approved_by_saying_nothing_of_what_was_seen(cli: Cli, app: Longhaul) -> None:
    """By a flag, by the client and by a bare signal."""
    ledger = cli.folder / "ledger"
    session = paying(cli, app, "drawer", "ana")
    await session.reply("Pay her")
    (call,) = await session.pending()
    unseen = {"call_id": "ana", "decision": "allow", "digest": ""}

    typed = cli("approve", "drawer", "ana", "--seen", "", "--as", "eve")
    with pytest.raises(Refused, match=r"digest.*at least 1 character"):
        await session.confirm(call.model_copy(update={"digest": ""}), allow=True, approver="eve")
    before = (await session.status()).refused
    await app.client.get_workflow_handle(session.workflow_id).signal("confirm", {"decisions": [unseen]})
    async with asyncio.timeout(SURE_SECONDS):
        while (status := await session.status()).refused == before:  # noqa: ASYNC110  a signal tells nobody that it was taken
            await asyncio.sleep(0.05)

    for command in (("stop", "drawer", ""), ("budget", "drawer", "--raise-calls", "1", "--child", "")):
        nothing = cli(*command)
        assert (nothing.code, "'' names nothing" in nothing.err) == (2, True), nothing
    assert (typed.code, "--seen ''" in typed.err) == (2, True), typed
    assert "digest" in status.last_refusals[-1]["reason"]
    assert (status.pending, paid(ledger)) == (1, [])


async def test_two_people_have_to_approve_and_an_edit_begins_again(cli: Cli, app: Longhaul) -> None:
    ledger = cli.folder / "ledger"
    session = paying(cli, app, "vault", "ana", tools={"pay": {"approvers": 2}})
    waiting = await session.reply("Pay her")
    other = json.dumps({"to": "bo", "ledger": str(ledger)})

    first = cli("approve", "vault", "ana", "--as", "eve", "--json")
    again = cli("approve", "vault", "ana", "--as", "eve")
    nameless = cli("approve", "vault", "ana", "--as", "")
    shown = cli("show", "vault")
    edited = cli("approve", "vault", "ana", "--edit", other, "--as", "fay")
    assert paid(ledger) == []
    second = cli("approve", "vault", "ana", "--as", "gus", "--json")
    await session.wait(waiting.id)

    assert first.document == {
        "session": "vault", "decision": "allow", "decided": ["ana"], "approvals": {"ana": "1 of 2"},
    }  # fmt: skip
    assert (again.code, "'eve' has approved 'ana' already; somebody else has to" in again.err) == (2, True)
    assert (nameless.code, "takes 2 approvals; say who you are" in nameless.err) == (2, True)
    assert "1 of 2 (by eve)" in shown.out
    assert edited.out == "approved pay ana (1 of 2; another person must approve it too)\n"
    assert second.document == {"session": "vault", "decision": "allow", "decided": ["ana"]}
    assert paid(ledger) == ["bo"]


async def test_arguments_from_the_editor_are_held_against_the_schema_first(cli: Cli, app: Longhaul) -> None:
    ledger = cli.folder / "ledger"
    session = paying(cli, app, "desk", "ana")
    waiting = await session.reply("Pay her")

    def with_editor(command: str) -> Cli:
        return replace(cli, environment=cli.environment | {"EDITOR": command, "VISUAL": ""})

    misfit = with_editor("""sed -i 's/"to"/"whom"/'""")("approve", "desk", "ana", "--editor", "--as", "eve")
    seen = await session.status()
    paying_another = with_editor("""sed -i 's/: "ana"/: "bo"/'""")("approve", "desk", "--editor", "--as", "eve")
    await session.wait(waiting.id)

    assert (misfit.code, "'ana' waits as it was" in misfit.err) == (2, True), misfit
    assert "does not fit 'pay'" in misfit.out + misfit.err
    assert (seen.pending, seen.refused) == (1, 0)
    assert paying_another.code == 0, paying_another
    assert paid(ledger) == ["bo"]


async def test_several_calls_are_approved_unasked_with_all_alone(cli: Cli, app: Longhaul) -> None:
    session = paying(cli, app, "purse", "ana", "bo")
    waiting = await session.reply("Pay them")

    bare = cli("approve", "purse", "--as", "eve")
    with_rules = cli("approve", "purse", "--accept-rules", "--as", "eve")
    both = cli("approve", "purse", "bo", "--all", "--as", "eve")
    assert (await session.status()).pending == 2
    every = cli("approve", "purse", "--all", "--as", "eve")
    await session.wait(waiting.id)

    for several in (bare, with_rules):
        assert several.code == 2
        assert "2 calls wait, and there is no terminal to ask about each: ana, bo" in several.err
        assert "--all" in several.err
    assert (both.code, "--all is for all calls that wait" in both.err) == (2, True)
    assert every.out == "approved pay ana\napproved pay bo\n"


async def test_one_call_that_nobody_has_named_or_seen_is_not_approved_without_a_terminal(
    cli: Cli, app: Longhaul
) -> None:
    session = paying(cli, app, "till", "ana")
    waiting = await session.reply("Pay her")
    (call,) = await session.pending()

    bare = cli("approve", "till", "--as", "eve")
    with_rules = cli("approve", "till", "--accept-rules", "--as", "eve")
    before = (await session.status()).pending
    seen = cli("approve", "till", "--seen", call.digest[:12], "--as", "eve")
    await session.wait(waiting.id)

    for silent in (bare, with_rules):
        assert silent.code == 2
        assert "1 call waits, and there is no terminal to ask about each: ana" in silent.err
    assert before == 1
    assert seen.out == "approved pay ana\n"


async def test_one_denial_is_enough(cli: Cli, app: Longhaul) -> None:
    session = paying(cli, app, "safe", "ana", tools={"pay": {"approvers": 3}})
    waiting = await session.reply("Pay her")
    cli("approve", "safe", "--all", "--as", "eve")

    cli("deny", "safe", "--as", "fay")
    done = await session.wait(waiting.id)

    assert [result.state.value for result in done.get_tool_results()] == ["denied"]
    assert paid(cli.folder / "ledger") == []
