"""`longhaul hub`: rooms of agents in which each hears what the others answer."""

import dataclasses
from collections.abc import Sequence
from typing import Annotated

import typer
from rich.text import Text

from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.starter.cli import options
from longhaul.starter.cli.session_lookup import Name, connected, find_session
from longhaul.starter.cli.session_start import in_workspace, located, with_model
from longhaul.starter.cli.terminal.screen import Screen
from longhaul.starter.client.agent_files import agent_beside, find_sections
from longhaul.starter.client.client import Longhaul
from longhaul.starter.client.file_sections import apply_hubs
from longhaul.starter.client.session import Session
from longhaul.starter.visible import one_line, visible
from longhaul.workflows.contract import HubCard

group = options.SubjectCommands(no_args_is_help=True)

HubName = Annotated[str, typer.Argument(metavar="NAME", help="Name of the hub.")]
Sessions = Annotated[list[str], typer.Argument(metavar="S...", help="Session ids, which are also the members' names.")]


@group.command()
async def start(
    screen: Screen,
    name: HubName,
    sessions: Sessions,
    *,
    announce: Annotated[str, typer.Option(help="Announcement to all members at the start.")] = "",
    quiet: Annotated[bool, typer.Option("--quiet", help="Members' replies are not sent to the others.")] = False,
    agent: options.Agent = None,
    user: options.User = None,
) -> int:
    """Start a hub with existing sessions.

    Example: longhaul hub start jury ana-1 ben-1 --announce "Is the bridge safe? Speak in turn."
    """
    async with connected() as app:
        members = await _sessions(app, sessions, user, agent)
        hub = app.hub(name, *members, announcement=announce or None, enable_auto_broadcast=not quiet, user=user)
        await hub.start()
        _tell(screen, await hub.show())
    return 0


@group.command()
async def apply(
    screen: Screen,
    agent: Annotated[str, typer.Argument(metavar="AGENT", help="The agent's name, or the path of its file.")],
    *,
    remove: Annotated[bool, typer.Option("--remove", help="Remove members that are no longer in the file.")] = False,
    user: options.User = None,
) -> int:
    """Start the hubs of an agent file with new sessions, or update them to the file; may be repeated.

    Example: longhaul hub apply agents/jury.toml
    """
    tables = find_sections(agent).hubs
    async with connected() as app:

        async def agent_of(name: str) -> AgentSpec:
            spec = agent_beside(agent, name)
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


@group.command("list")
async def list_all(screen: Screen, *, user: options.User = None) -> int:
    """List the open hubs; without --user those of all users."""
    async with Longhaul.connect() as app:
        rows = await app.hubs(user=user)
    screen.document([dataclasses.asdict(row) for row in rows])
    if not rows:
        screen.show_folded(Text("no hubs"))
    for row in rows:
        of_user = f" of {row.user}" if row.user is not None else ""
        screen.show_folded(Text(one_line(visible(f"{row.name}{of_user}"))))
    return 0


@group.command()
async def add(
    screen: Screen,
    name: HubName,
    sessions: Sessions,
    *,
    agent: options.Agent = None,
    user: options.User = None,
) -> int:
    """Add sessions to a hub: they receive what is said from now on."""
    async with connected() as app:
        hub = app.hub(name, user=user)
        await hub.add(*await _sessions(app, sessions, user, agent))
        _tell(screen, await hub.show())
    return 0


@group.command()
async def remove(
    screen: Screen,
    name: HubName,
    members: Annotated[list[str], typer.Argument(metavar="MEMBER...", help="As `hub show` names them.")],
    *,
    user: options.User = None,
) -> int:
    """Remove members from a hub: they keep what was said before, and receive nothing after."""
    async with connected() as app:
        hub = app.hub(name, user=user)
        await hub.delete(*members)
        _tell(screen, await hub.show())
    return 0


@group.command()
async def say(
    screen: Screen,
    name: HubName,
    text: Annotated[str, typer.Argument(help="The message, in the user's name.")],
    *,
    user: options.User = None,
) -> int:
    """Send all members of a hub a message, without asking for a reply."""
    async with connected() as app:
        number = await app.hub(name, user=user).broadcast(text)
    screen.document({"hub": name, "number": number})
    screen.show_folded(Text(one_line(f"{name}: sent to all members")))
    return 0


@group.command()
async def show(screen: Screen, name: HubName, *, user: options.User = None) -> int:
    """Show a hub: its members, and what was said last."""
    async with connected() as app:
        _tell(screen, await app.hub(name, user=user).show())
    return 0


@group.command()
async def end(
    screen: Screen,
    name: HubName,
    *,
    delete: Annotated[
        bool,
        typer.Option(
            "--delete", help="After its end, delete everything stored of it, with its key; also works for an ended hub."
        ),
    ] = False,
    user: options.User = None,
) -> int:
    """End a hub; its members' sessions stay."""
    async with connected() as app:
        await app.hub(name, user=user).end(delete=delete)
    screen.document({"hub": name, "ended": True, "deleted": delete})
    deleted = " and deleted" if delete else ""
    screen.show_folded(Text(one_line(f"{name} is over{deleted}; the sessions of its members stay")))
    return 0


async def _sessions(app: Longhaul, ids: Sequence[str], user: str | None, agent: str | None) -> list[Session]:
    return [await find_session(app, Name(one, user, agent)) for one in ids]


def _tell(screen: Screen, card: HubCard) -> None:
    screen.document(card.model_dump(mode="json"))
    switch = "" if card.auto_broadcast else "; replies are not sent to the others"
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
