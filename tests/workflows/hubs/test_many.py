"""Twenty members in five hubs while workers are killed: no message is lost, doubled or told in another order."""

import asyncio
import random
import re

import pytest

from longhaul.starter.client.hubs import Hub
from longhaul.starter.client.session import Session
from tests.e2e.processes import WorkerProcess
from tests.workflows.conftest import Stage
from tests.workflows.hubs.rooms import member, read

pytestmark = [pytest.mark.server, pytest.mark.timeout(900)]

MEMBERS, HUBS, WORDS, KILLS = 20, 5, 6, 12
FRAMED = re.compile(r"^<said by='(\w+)' hub='([^']+)'>\n(.*)\n</said>$", re.DOTALL)
Heard = list[tuple[str, str]]
"""Who said what, in the order in which it was heard."""


class Workers:
    """Two of them; whichever is killed is replaced."""

    def __init__(self, stage: Stage) -> None:
        self._settings = stage.worker_settings
        self._alive = list[WorkerProcess]()
        self.kills = 0

    async def __aenter__(self) -> "Workers":
        self._alive = [await WorkerProcess.start(self._settings) for _ in range(2)]
        return self

    async def __aexit__(self, *_: object) -> None:
        for one in self._alive:
            await one.kill()

    async def storm(self, kills: int, chance: random.Random) -> None:
        for _ in range(kills):
            await asyncio.sleep(chance.uniform(0.2, 2))
            await self._alive.pop(0).kill()
            self.kills += 1
            self._alive.append(await WorkerProcess.start(self._settings))


def rooms(stage: Stage, members: list[Session]) -> list[tuple[Hub, dict[str, Session]]]:
    """Each member is in two hubs, and each hub has eight members."""
    found = list[tuple[Hub, dict[str, Session]]]()
    for number in range(HUBS):
        inside = {f"m{place}": session for place, session in enumerate(members) if (place + number) % HUBS in (0, 1)}
        found.append((stage.app.hub(f"room{number}-{stage.name}", inside), inside))
    return found


async def heard_in(hub: Hub, session: Session) -> Heard:
    """What a member was told in this hub: other agents' words by their frames, people's by the hub's name in them."""
    told = Heard()
    for message in await read(session):
        text = message.get_text_content()
        if framed := FRAMED.match(text):
            told += [(framed[1], framed[3])] if framed[2] == hub.name else []
        elif text.startswith(f"{hub.name} "):
            told.append((message.name, text))
    return told


@pytest.mark.proves("C5")
@pytest.mark.chaos
async def test_twenty_members_of_five_hubs_hear_everything_once_in_one_order(unserved: Stage) -> None:
    members = [member(unserved, {"text": f"I am m{place}."}) for place in range(MEMBERS)]
    hubs = rooms(unserved, members)
    async with Workers(unserved) as workers:
        await asyncio.gather(*(hub.start() for hub, _ in hubs))

        storm = asyncio.create_task(workers.storm(KILLS, random.Random(7)))  # noqa: S311  no secret
        said = [
            hub.broadcast(f"{hub.name} word {number}", request_id=str(number))
            for number in range(WORDS)
            for hub, _ in hubs
        ]
        replies, _ = await asyncio.gather(
            asyncio.gather(*(one.reply("Who are you?") for one in members)), asyncio.gather(*said)
        )
        await storm
        for hub, inside in hubs:
            await asyncio.gather(*(hub.heard(replies[members.index(one)]) for one in inside.values()))

        for hub, inside in hubs:
            order = [(word.by, word.text) for word in (await hub.show()).newest]
            of_people = [("user", f"{hub.name} word {number}") for number in range(WORDS)]
            assert sorted(order) == sorted([*of_people, *((name, f"I am {name}.") for name in inside)])
            for name, session in inside.items():
                assert await heard_in(hub, session) == [word for word in order if word[0] != name], (hub.name, name)
    assert workers.kills == KILLS
