"""Schedules of agent files: what a file says is brought into being, as often as somebody asks for it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.starter.client.agent_files.agent_sections import ScheduleTable
from longhaul.starter.client.agent_files.wanted_schedule import BadSchedule, WantedSchedule, wanted_schedule
from longhaul.starter.client.schedule_cards import ScheduleTerms
from longhaul.starter.client.schedules import Schedules


@dataclass(frozen=True, slots=True)
class Applied:
    """What became of one schedule."""

    name: str
    outcome: Literal["added", "changed", "unchanged", "gone from the file", "removed"]


async def apply_schedules(
    schedules: Schedules,
    agent: AgentSpec,
    tables: Mapping[str, ScheduleTable],
    *,
    user: str | None = None,
    remove: bool = False,
) -> list[Applied]:
    """Add those that are not there, and change those that an earlier file of this agent and user has said otherwise.
    All are looked at before the first is changed. One that no file of theirs says any more stays, and is told; with
    `remove` it goes.

    Raises BadSchedule: for one that can't be meant, and one whose name is taken by what is not of this agent's file.
    """
    wanted = [_wanted(name, table, agent, user) for name, table in tables.items()]
    there = {card.name: card for card in await schedules.list()}
    for one in wanted:
        await schedules.terms_before(one)
    applied = [Applied(one.name, await schedules.put(one)) for one in wanted]
    for name, card in there.items():
        if name in tables or (card.terms.file, card.terms.user) != (agent.name, user):
            continue
        if remove:
            await schedules.remove(name)
        applied.append(Applied(name, "removed" if remove else "gone from the file"))
    return applied


def _wanted(name: str, table: ScheduleTable, agent: AgentSpec, user: str | None) -> WantedSchedule:
    terms = ScheduleTerms(
        cron=table.cron,
        zone=table.zone,
        every_seconds=table.every or 0.0,
        overlap=table.overlap,
        catch_up_seconds=table.catch_up,
        user=user,
        session=table.session,
        file=agent.name,
    )
    try:
        return wanted_schedule(name, table.prompt, agent, terms, paused=table.paused)
    except BadSchedule as error:
        raise BadSchedule(f"schedules.{name[:100]}: {error}") from error
