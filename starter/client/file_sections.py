"""Schedules and hubs of agent files: each is started, or brought up to its file, as often as somebody asks for it."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from longhaul.agent.plain.values import digest_of
from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.starter.client.agent_files import HubTable, ScheduleTable
from longhaul.starter.client.client import Longhaul
from longhaul.starter.client.schedule_cards import BadSchedule, ScheduleTerms, WantedSchedule, wanted_schedule
from longhaul.starter.client.schedules import Schedules
from longhaul.starter.client.session import Session


@dataclass(frozen=True, slots=True)
class AppliedHub:
    """What happened to a hub."""

    name: str
    members: tuple[str, ...]
    gone_from_the_file: tuple[str, ...] = ()
    """Members that the file does not name. They stay, unless `remove` is set."""
    removed: tuple[str, ...] = ()


async def apply_hubs(
    app: Longhaul,
    tables: Mapping[str, HubTable],
    agent_of: Callable[[str], Awaitable[AgentSpec]],
    *,
    user: str | None = None,
    remove: bool = False,
) -> list[AppliedHub]:
    """Begin those that are not there, and let in the members that are missing; each is a session of its own,
    `HUB-MEMBER`. The announcement is told once. `agent_of`: an agent as a table names it.

    Raises BadHub, and Refused where a name in the hub is another session's.
    """
    wanted = list[tuple[str, HubTable, dict[str, Session]]]()
    for name, table in tables.items():
        members = {
            member: app.session(f"{name}-{member}", user=user, agent=await agent_of(agent))
            for member, agent in table.members.items()
        }
        app.hub(name, user=user)  # a name that can't be is refused before the first hub begins
        wanted.append((name, table, members))
    return [await _applied(app, name, table, members, user, remove=remove) for name, table, members in wanted]


async def _applied(
    app: Longhaul, name: str, table: HubTable, members: dict[str, Session], user: str | None, *, remove: bool
) -> AppliedHub:
    hub = app.hub(name, members, enable_auto_broadcast=not table.quiet, user=user)
    await hub.start()
    await hub.set_auto_broadcast(not table.quiet)
    if table.announcement.strip():
        await hub.broadcast(table.announcement, request_id=f"file-{digest_of(table.announcement)}")
    present = [member.name for member in (await hub.show()).members if not member.leaving]
    gone = tuple(member for member in present if member not in members)
    if gone and remove:
        await hub.delete(*gone)
        return AppliedHub(name, tuple(members), removed=gone)
    return AppliedHub(name, tuple(present), gone_from_the_file=gone)


@dataclass(frozen=True, slots=True)
class Applied:
    """What happened to one schedule."""

    name: str
    outcome: Literal["added", "changed", "unchanged", "no longer in the file", "removed"]


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
    wanted: list[WantedSchedule] = []
    for name, table in tables.items():
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
            wanted.append(wanted_schedule(name, table.prompt, agent, terms, paused=table.paused))
        except BadSchedule as error:
            raise BadSchedule(f"schedules.{name[:100]}: {error}") from error
    there = {card.name: card for card in await schedules.list()}
    for one in wanted:
        await schedules.terms_before(one)
    applied = [Applied(one.name, await schedules.put(one)) for one in wanted]
    for name, card in there.items():
        if name in tables or (card.terms.file, card.terms.user) != (agent.name, user):
            continue
        if remove:
            await schedules.remove(name)
        applied.append(Applied(name, "removed" if remove else "no longer in the file"))
    return applied
