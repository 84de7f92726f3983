"""`longhaul hub`: begun, shown, spoken to and ended from a terminal."""

import pytest

from longhaul.agent.values.hubs import MOST_HUBS
from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.starter.client.client import Longhaul
from tests.e2e.conftest import Cli
from tests.workflows.hubs.rooms import heard

pytestmark = pytest.mark.server


async def test_a_hub_is_started_shown_spoken_to_and_ended(cli: Cli, app: Longhaul) -> None:
    spec = AgentSpec(model=cli.script({"text": "Seaworthy."}), tools=())
    pilot, mate = (app.session(name, agent=spec) for name in ("pilot-of-hub", "mate-of-hub"))
    for session in (pilot, mate):
        await session.observe("You are on the bridge.")

    started = cli("hub", "start", "bridge-crew", pilot.id, mate.id, "--announce", "Is she seaworthy?", "--json")
    await app.hub("bridge-crew").heard(await pilot.reply("Say so"))
    listed = cli("hub", "list")
    said = cli("hub", "say", "bridge-crew", "Cast off.")
    removed = cli("hub", "remove", "bridge-crew", mate.id)
    unknown = cli("hub", "remove", "bridge-crew", "cook-of-hub")
    ended = cli("hub", "end", "bridge-crew", "--json")
    deleted = cli("hub", "end", "bridge-crew", "--delete")
    gone = cli("hub", "show", "bridge-crew-of-old")

    assert [member["name"] for member in started.document["members"]] == [pilot.id, mate.id]
    assert "bridge-crew" in listed.out.splitlines()
    assert (said.code, said.out) == (0, "bridge-crew: sent to all members\n")
    assert f"{pilot.id}: Seaworthy." in removed.out
    assert (unknown.code, "'cook-of-hub' is not in the hub 'bridge-crew'" in unknown.err) == (2, True)
    assert ended.document == {"hub": "bridge-crew", "ended": True, "deleted": False}
    assert (deleted.code, deleted.out) == (0, "bridge-crew is over and deleted; the sessions of its members stay\n")
    assert (gone.code, "there is no hub 'bridge-crew-of-old'" in gone.err) == (2, True)
    told = ["user: You are on the bridge.", "user: Is she seaworthy?", f"{pilot.id}: Seaworthy.", "user: Cast off."]
    assert await heard(mate) == told


async def test_a_session_that_refuses_is_named_with_the_reason(cli: Cli, app: Longhaul) -> None:
    spec = AgentSpec(model=cli.script({"text": "-"}), tools=())
    cook, mate = (app.session(name, agent=spec) for name in ("cook-of-hubs", "mate-of-hubs"))
    await mate.observe("You are on the bridge.")
    for number in range(MOST_HUBS):
        await app.hub(f"galley-{number}", cook).start()

    started = cli("hub", "start", "galley-more", mate.id, cook.id)
    added = cli("hub", "add", "galley-more", cook.id, "--json")
    shown = cli("hub", "show", "galley-more")

    for one in (started, added):
        assert one.code == 2
        assert f"hub 'galley-more': {cook.id} was put out: " in one.err
        assert "this session is in 10 hubs, which is the most; take it out of one of them first" in one.err
    assert f"{mate.id}: session" in shown.out
