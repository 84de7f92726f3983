"""`longhaul hub`: rooms of agents in which each hears what the others answer."""

import dataclasses
from dataclasses import dataclass

from rich.text import Text

from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.starter.cli.session_lookup import Name, connected, find_session
from longhaul.starter.cli.session_start import in_workspace, located, with_model
from longhaul.starter.cli.terminal.screen import Screen
from longhaul.starter.client.agent_files import agent_beside, find_sections
from longhaul.starter.client.client import Longhaul
from longhaul.starter.client.file_sections import apply_hubs
from longhaul.starter.client.session import Session
from longhaul.starter.visible import one_line, visible
from longhaul.workflows.contract import HubCard


@dataclass(frozen=True, slots=True)
class Named:
    """A hub as the user names it, and the sessions or members that are meant."""

    hub: str
    user: str | None = None
    agent: str | None = None
    members: tuple[str, ...] = ()


async def start(screen: Screen, named: Named, announce: str, *, quiet: bool) -> int:
    async with connected() as app:
        members = await _sessions(app, named)
        hub = app.hub(
            named.hub, *members, announcement=announce or None, enable_auto_broadcast=not quiet, user=named.user
        )
        await hub.start()
        _tell(screen, await hub.show())
    return 0


async def apply(screen: Screen, file: str, user: str | None, *, remove: bool) -> int:
    """`file`: the agent whose file it is, by name or path."""
    tables = find_sections(file).hubs
    async with connected() as app:

        async def agent_of(name: str) -> AgentSpec:
            spec = agent_beside(file, name)
            spec = spec.model_copy(update={"model": located(spec.model or app.settings.model)})
            return await in_workspace(app, with_model(spec), None)

        applied = await apply_hubs(app, tables, agent_of, user=user, remove=remove)
    screen.document([dataclasses.asdict(one) for one in applied])
    if not applied:
        screen.show_folded(Text("the file has no hubs"))
    for one in applied:
        screen.show_folded(Text(one_line(visible(f"{one.name}: {', '.join(one.members)}"))))
        if one.gone_from_the_file:
            gone = ", ".join(one.gone_from_the_file)
            screen.show_folded(
                Text(one_line(visible(f"  not in the file: {gone}; `longhaul hub remove {one.name}` lets go")))
            )
        if one.removed:
            screen.show_folded(Text(one_line(visible(f"  let go: {', '.join(one.removed)}"))))
    return 0


async def list_all(screen: Screen, user: str | None) -> int:
    async with Longhaul.connect() as app:
        rows = await app.hubs(user=user)
    screen.document([dataclasses.asdict(row) for row in rows])
    if not rows:
        screen.show_folded(Text("no hubs"))
    for row in rows:
        of_user = f" of {row.user}" if row.user is not None else ""
        screen.show_folded(Text(one_line(visible(f"{row.name}{of_user}"))))
    return 0


async def add(screen: Screen, named: Named) -> int:
    async with connected() as app:
        hub = app.hub(named.hub, user=named.user)
        await hub.add(*await _sessions(app, named))
        _tell(screen, await hub.show())
    return 0


async def remove(screen: Screen, named: Named) -> int:
    async with connected() as app:
        hub = app.hub(named.hub, user=named.user)
        await hub.delete(*named.members)
        _tell(screen, await hub.show())
    return 0


async def say(screen: Screen, named: Named, text: str) -> int:
    async with connected() as app:
        number = await app.hub(named.hub, user=named.user).broadcast(text)
    screen.document({"hub": named.hub, "number": number})
    screen.show_folded(Text(one_line(f"{named.hub}: all members are told it")))
    return 0


async def show(screen: Screen, named: Named) -> int:
    async with connected() as app:
        _tell(screen, await app.hub(named.hub, user=named.user).show())
    return 0


async def end(screen: Screen, named: Named, *, delete: bool) -> int:
    async with connected() as app:
        await app.hub(named.hub, user=named.user).end(delete=delete)
    screen.document({"hub": named.hub, "ended": True, "deleted": delete})
    deleted = " and deleted" if delete else ""
    screen.show_folded(Text(one_line(f"{named.hub} is over{deleted}; the sessions of its members stay")))
    return 0


async def _sessions(app: Longhaul, named: Named) -> list[Session]:
    return [await find_session(app, Name(one, named.user, named.agent)) for one in named.members]


def _tell(screen: Screen, card: HubCard) -> None:
    screen.document(card.model_dump(mode="json"))
    switch = "" if card.auto_broadcast else "; answers are not told to the others"
    screen.show_folded(Text(one_line(f"hub {card.name}, {len(card.members)} members{switch}"), style="bold"))
    for member in card.members:
        leaving = ", leaving" if member.leaving else ""
        screen.show_folded(
            Text(f"  {one_line(visible(f'{member.name}: session {member.session_id} of {member.agent}'))}{leaving}")
        )
    for word in card.newest:
        screen.show_folded(
            Text(f"  {word.number}  {one_line(visible(word.by))}: ", "dim").append(one_line(visible(word.text)))
        )
    for note in card.notes:
        screen.show_folded(Text(f"  {one_line(visible(note))}", "yellow"))
