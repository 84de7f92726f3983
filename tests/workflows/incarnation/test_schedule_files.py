"""Schedules of agent files on the server: brought into being as often as somebody asks, and changed with their file."""

from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import pytest

from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.starter.client.agent_files import BadAgent, find_agent, find_sections
from longhaul.starter.client.file_sections import Applied, apply_schedules
from longhaul.starter.client.schedule_cards import BadSchedule
from tests.limits import SURE_SECONDS
from tests.workflows.conftest import Stage
from tests.workflows.operations import until

pytestmark = pytest.mark.server

NEVER = "0 0 1 1 *"
"""Fires when it is triggered, unless the test runs in the first second of a year."""


class Harbour:
    """An agent file with schedules of the test's own, which are gone afterwards."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        mark = uuid4().hex[:8]
        self.path = stage.folder / f"harbour-{mark}.toml"
        self.high, self.low = f"high-{mark}", f"low-{mark}"

    def write(self, **prompts: str) -> None:
        model = self.stage.script({"text": "2 m."}) if not self.path.exists() else find_agent(str(self.path)).model
        tables = [
            f'[schedules.{getattr(self, name)}]\nprompt = "{prompt}"\ncron = "{NEVER}"\nzone = "Europe/Berlin"'
            for name, prompt in prompts.items()
        ]
        self.path.write_text("\n".join([f'model = "{model}"', "tools = []", *tables]), encoding="utf-8")

    async def apply(self, *, remove: bool = False, agent: AgentSpec | None = None) -> list[Applied]:
        file = str(self.path)
        spec = agent or find_agent(file).model_copy(update={"workspace": self.stage.agent().workspace})
        return await apply_schedules(self.stage.app.schedules, spec, find_sections(file).schedules, remove=remove)

    async def is_listed(self) -> bool:
        names = [card.name for card in await self.stage.app.schedules.list()]
        return self.high in names and self.low in names


@pytest.fixture
async def harbour(unserved: Stage) -> AsyncIterator[Harbour]:
    mine = Harbour(unserved)
    yield mine
    for name in (mine.high, mine.low):
        with suppress(BadSchedule):
            await unserved.app.schedules.remove(name)


@pytest.mark.proves("F4")
async def test_applied_twice_is_one_and_a_changed_file_changes_it_and_one_that_is_gone_is_told(
    stage: Stage, harbour: Harbour
) -> None:
    schedules = stage.app.schedules
    harbour.write(high="How high?", low="How low?")

    first = await harbour.apply()
    again = await harbour.apply()
    await schedules.trigger(harbour.high)
    await schedules.pause(harbour.high, why="no water")
    await until(harbour.is_listed)
    harbour.write(high="How high is it now?")
    told = await harbour.apply()
    (listed,) = [card for card in await schedules.list() if card.name == harbour.high]
    shown = await schedules.show(harbour.high)
    removed = await harbour.apply(remove=True)

    assert first == [Applied(harbour.high, "added"), Applied(harbour.low, "added")]
    assert again == [Applied(harbour.high, "unchanged"), Applied(harbour.low, "unchanged")]
    assert told == [Applied(harbour.high, "changed"), Applied(harbour.low, "no longer in the file")]
    assert (listed.terms.prompt, listed.note) == ("How high is it now?", "no water")
    assert (shown.terms.prompt, shown.paused, shown.terms.zone) == ("How high is it now?", True, "Europe/Berlin")
    assert removed == [Applied(harbour.high, "unchanged"), Applied(harbour.low, "removed")]
    with pytest.raises(BadSchedule, match="there is no schedule"):
        await schedules.show(harbour.low)


async def test_a_scheduled_run_after_a_change_asks_what_the_file_says_now(stage: Stage, harbour: Harbour) -> None:
    harbour.write(high="How high?")
    await harbour.apply()
    harbour.write(high="How high is it now?")
    await harbour.apply()

    scheduled_run = await stage.app.schedules.trigger(harbour.high, within=timedelta(seconds=SURE_SECONDS))
    session = stage.app.session(scheduled_run.session, agent=AgentSpec(name=harbour.path.stem))
    await session.wait(scheduled_run.reply_id)
    said = [message.get_text_content() async for message in session.transcript()]
    assert said[0] == "How high is it now?"


async def test_nothing_is_changed_where_one_of_a_file_cannot_be(unserved: Stage, harbour: Harbour) -> None:
    harbour.write(high="How high?", low=" ")
    with pytest.raises(BadSchedule, match=rf"schedules\.{harbour.low}: prompt: it is empty"):
        await harbour.apply()
    harbour.write(high="How high?", low="How low?")
    await unserved.app.schedules.add(harbour.low, "Mine", agent=unserved.agent(), cron=NEVER)
    with pytest.raises(BadSchedule, match=f"there is a schedule '{harbour.low}' already"):
        await harbour.apply()

    with pytest.raises(BadSchedule, match="there is no schedule"):
        await unserved.app.schedules.show(harbour.high)
    assert (await unserved.app.schedules.show(harbour.low)).terms.prompt == "Mine"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('[schedules.tide]\nprompt = "How high?"\nzon = "UTC"', "schedules.tide.zon"),
        ('[schedules.tide]\nprompt = "How high?"\nevery = "often"', "30m"),
        ('[shedules.tide]\nprompt = "How high?"', "did you mean 'schedules'"),
        ('[hubs.crew]\nmembers = { "no spaces" = "mate" }', "must be 1 to 64 letters"),
    ],
)
def test_what_a_file_cannot_mean_is_refused_whatever_it_is_read_for(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "harbour.toml"
    path.write_text(text, encoding="utf-8")

    for read in (find_agent, find_sections):
        with pytest.raises(BadAgent, match=complaint):
            read(str(path))
