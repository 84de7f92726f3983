"""Rules on a real server: they come, go and end while a session runs, and hold for their own user alone."""

from datetime import UTC, datetime, timedelta

import pytest

from longhaul.agent.values.conversation.messages import ToolResultState
from longhaul.agent.values.permission import Behavior, PermissionRule
from longhaul.starter.client.wire import Refused
from tests.workflows.conftest import Stage
from tests.workflows.operations import calls, next_call, results

pytestmark = pytest.mark.server

SEND = PermissionRule(tool_name="send")
NEVER_SEND = PermissionRule(tool_name="send", behavior=Behavior.DENY)


@pytest.mark.proves("X5")
async def test_rules_of_a_session_come_and_go_with_who_and_why(stage: Stage) -> None:
    lines = [calls("send", to="Ana"), calls("send", to="Cy"), calls("send", to="Di"), {"text": "All."}]
    session = stage.session(*lines)
    waiting = await session.reply("Write to all")
    (first,) = await session.pending()
    soon = (datetime.now(UTC) + timedelta(hours=1)).isoformat()

    (short, _) = await session.rules.change(
        [SEND.model_copy(update={"expires_at": soon}), SEND], by="ana", why="letters"
    )
    (_, lasting) = [rule.id for rule in await session.rules.listed()]
    with pytest.raises(Refused, match="there is no rule 'nowhere'"):
        await session.rules.change(revoke=["nowhere"], by="eve")
    await session.rules.change(revoke=[lasting, short], by="ben", why="enough operations")
    await session.confirm(first, allow=True, approver="bo")
    second = await next_call(session, first)
    await session.rules.change([NEVER_SEND], by="cy", why="not to me")
    with pytest.raises(Refused, match="other rules hold now"):
        await session.confirm(second, allow=True, approver="bo")
    await session.confirm(second.call_id, allow=True, approver="bo")
    done = await session.wait(waiting.id)

    assert [state for state, _ in results(done)] == [
        ToolResultState.SUCCESS,
        ToolResultState.DENIED,
        ToolResultState.DENIED,
    ]
    told = [event.value for event in (await session.events()).events if event.name == "rules_changed"]
    assert [(change["by"], change["why"], len(change["added"]), len(change["revoked"])) for change in told] == [
        ("ana", "letters", 2, 0),
        ("ben", "enough operations", 0, 2),
        ("cy", "not to me", 1, 0),
    ]


@pytest.mark.proves("E5")
async def test_two_users_with_the_same_session_id_and_agent_share_nothing(stage: Stage) -> None:
    """Sessions, files, rules and inbox."""
    lines = [calls("send", to="Cy"), {"text": "Written."}]
    ana = stage.session(*lines, id="shared", user="ana", workspace=None)
    ben = stage.session(*lines, id="shared", user="ben", workspace=None)
    await stage.app.rules_of("ana").change([NEVER_SEND], by="ana", why="I write myself")

    denied, waiting = await ana.reply("Write to Cy"), await ben.reply("Write to Cy")

    assert [state for state, _ in results(denied)] == [ToolResultState.DENIED]
    assert waiting.metadata == {"waiting_for": ["call_0_0"]}
    assert [rule.author for rule in await ana.rules.listed()] == ["ana"]
    assert await ben.rules.listed() == []
    assert await stage.app.rules_of("ben").listed() == []
    assert ana.workflow_id != ben.workflow_id
    roots = {(await ana.status()).workspace_root, (await ben.status()).workspace_root}
    assert len(roots) == 2
    mine = [card.user_id for card, _ in (await stage.app.inbox(user="ben")).calls if card.session_id == "shared"]
    theirs = [card.user_id for card, _ in (await stage.app.inbox(user="ana")).calls if card.session_id == "shared"]
    assert (mine, theirs) == (["ben"], [])


@pytest.mark.proves("X5")
async def test_a_users_rule_holds_in_each_session_from_its_next_reply_on(stage: Stage) -> None:
    first = stage.session(calls("send", to="Ana"), {"text": "Done."}, user="dora")
    second = stage.session(calls("send", to="Ana"), {"text": "Done."}, user="dora")
    book = stage.app.rules_of("dora")

    (rule_id,) = await book.change([SEND], by="dora")
    sent = await first.reply("Write")
    await book.change(revoke=[rule_id], by="dora", why="no more")
    asks = await second.reply("Write")

    assert results(sent) == [(ToolResultState.SUCCESS, "sent '' to Ana")]
    assert asks.metadata == {"waiting_for": ["call_0_0"]}
    assert [change.why for change in await book.changes()] == ["", "no more"]


@pytest.mark.proves("X5")
async def test_a_rule_about_a_tool_that_no_worker_has_is_told_once_and_listed_so(stage: Stage) -> None:
    rules = [{"tool_name": "curier", "behavior": "deny"}, {"tool_name": "courier", "behavior": "deny"}]
    session = stage.session(
        {"text": "One."}, {"text": "Two."}, user="elsa", tools=["send"], permission={"rules": rules}
    )
    await stage.app.rules_of("elsa").change([PermissionRule(tool_name="telegraph", behavior=Behavior.DENY)])

    await session.reply("Go")
    await session.reply("On")

    told = [event.value for event in (await session.events()).events if event.name == "rules_without_tool"]
    assert told == [{"tools": ["curier", "telegraph"]}]
    marks = {rule.tool_name: rule.no_tool for rule in await session.rules.listed()}
    assert marks == {"curier": True, "courier": True, "telegraph": True}


async def test_a_slip_in_a_users_rule_is_refused(stage: Stage) -> None:
    with pytest.raises(Refused, match=r"did you mean 'Bash'\?"):
        await stage.app.rules_of("fay").change([PermissionRule(tool_name="Bsh", behavior=Behavior.DENY)])

    assert await stage.app.rules_of("fay").listed() == []
