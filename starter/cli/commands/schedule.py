"""`longhaul schedule`: requests at times that are set."""

import dataclasses
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Annotated, get_args

import typer
from rich.text import Text

from longhaul.agent.values.deadlines import LONGEST_SECONDS, seconds_in
from longhaul.agent.values.scheduled_request import Overlap
from longhaul.starter import render, render_session
from longhaul.starter.cli import options
from longhaul.starter.cli.exit_codes import Misuse
from longhaul.starter.cli.session_lookup import connected
from longhaul.starter.cli.session_start import Wishes, agent_to_begin
from longhaul.starter.cli.terminal.screen import Screen
from longhaul.starter.client.agent_files import find_sections
from longhaul.starter.client.client import Longhaul
from longhaul.starter.client.file_sections import apply_schedules
from longhaul.starter.client.schedule_cards import PastScheduledRun, ScheduleCard
from longhaul.starter.client.schedules import Schedules
from longhaul.starter.visible import one_line, visible

group = options.SubjectCommands(no_args_is_help=True)

ScheduleName = Annotated[str, typer.Argument(metavar="NAME", help="Of the schedule.")]


@group.command()
async def add(
    screen: Screen,
    name: ScheduleName,
    prompt: Annotated[str, typer.Argument(help="The request of each scheduled run.")],
    *,
    cron: Annotated[str, typer.Option(help="When: five fields, or a word such as @daily.")] = "",
    zone: Annotated[str, typer.Option(help="Time zone of --cron, such as Europe/Berlin; default UTC.")] = "",
    every: Annotated[str | None, typer.Option(help="How often: 90s, 30m, 4h, 2d.")] = None,
    session: Annotated[str, typer.Option(help="All runs use this session; default: a new session for each run.")] = "",
    overlap: Annotated[
        str | None,
        typer.Option(
            help="If the previous run still works: `skip`, or `beside`; with --session `queue`, `now`, `interrupt`."
        ),
    ] = None,
    catch_up: Annotated[str, typer.Option(help="How late a missed run may start after the server was down.")] = "1d",
    paused: Annotated[bool, typer.Option("--paused", help="Create it paused: no run before it is resumed.")] = False,
    agent: options.Agent = None,
    model: options.Model = None,
    user: options.User = None,
    workspace: options.Workspace = None,
    mode: options.Mode = None,
) -> int:
    """Send a request at the times of a cron expression, or at an interval.

    Example: longhaul schedule add morning "What changed since yesterday?" --cron "0 7 * * 1-5" --zone Europe/Berlin
    """
    known = next((one for one in get_args(Overlap) if one == overlap), None)
    if overlap is not None and known is None:
        raise Misuse(f"--overlap: there is no {overlap!r}; there are: {', '.join(get_args(Overlap))}")
    span = None if every is None else _span("--every", every)
    async with connected() as app:
        spec = await agent_to_begin(app, Wishes(agent, model, session or None, user, workspace, mode))
        card = await app.schedules.add(
            name,
            prompt,
            agent=spec,
            user=user,
            session=session,
            cron=cron,
            zone=zone,
            every=span,
            overlap=known,
            catch_up=_span("--catch-up", catch_up),
            paused=paused,
        )
    screen.document(_row(card))
    screen.show_folded(*_describe(card))
    return 0


@group.command()
async def apply(
    screen: Screen,
    agent: Annotated[str, typer.Argument(metavar="AGENT", help="The agent's name, or the path of its file.")],
    *,
    remove: Annotated[bool, typer.Option("--remove", help="Remove schedules that are no longer in the file.")] = False,
    model: options.Model = None,
    user: options.User = None,
    workspace: options.Workspace = None,
    mode: options.Mode = None,
) -> int:
    """Create or update the schedules of an agent file; may be repeated.

    Example: longhaul schedule apply agents/harbour.toml
    """
    tables = find_sections(agent or "longhaul").schedules
    async with connected() as app:
        spec = await agent_to_begin(app, Wishes(agent, model, None, user, workspace, mode))
        applied = await apply_schedules(app.schedules, spec, tables, user=user, remove=remove)
    screen.document([dataclasses.asdict(one) for one in applied])
    if not applied:
        screen.show(Text("the file has no schedules"))
    for one in applied:
        hint = (
            f"; it stays until `longhaul schedule remove {one.name}`" if one.outcome == "no longer in the file" else ""
        )
        screen.show_folded(Text(one_line(visible(f"{one.name}: {one.outcome}{hint}"))))
    return 0


def _span(flag: str, text: str) -> timedelta:
    seconds = seconds_in(text)
    if seconds is None:
        raise Misuse(f"{flag}: {text!r} is no span; write a number with its unit, as in 90s, 30m, 4h, 2d")
    if seconds > LONGEST_SECONDS:
        raise Misuse(f"{flag}: {LONGEST_SECONDS / 86_400:g}d is the most")
    return timedelta(seconds=seconds)


@group.command("list")
async def list_all(screen: Screen) -> int:
    """List the schedules, with the next time of each."""
    async with Longhaul.connect() as app:
        cards = await app.schedules.list()
    screen.document([_row(card) for card in cards])
    if not cards:
        screen.show(Text("no schedules"))
    for card in cards:
        screen.show_folded(*_describe(card))
    return 0


@group.command()
async def show(screen: Screen, name: ScheduleName) -> int:
    """Show one schedule, and the results of its newest runs."""
    async with Longhaul.connect() as app:
        card, scheduled_runs = await app.schedules.show(name), await app.schedules.scheduled_runs(name)
    screen.document(
        {**_row(card), "scheduled_runs": [dataclasses.asdict(scheduled_run) for scheduled_run in scheduled_runs]}
    )
    screen.show_folded(*_describe(card))
    for scheduled_run in scheduled_runs:
        screen.show_folded(_past(scheduled_run))
    return 0


@group.command()
async def pause(
    screen: Screen,
    name: ScheduleName,
    *,
    why: Annotated[str, typer.Option(help="The reason, for others who look at it.")] = "",
) -> int:
    """Pause a schedule until it is resumed; what it has started continues."""
    return await _done(screen, name, "paused", lambda schedules: schedules.pause(name, why=why))


@group.command()
async def resume(screen: Screen, name: ScheduleName) -> int:
    """Resume a paused schedule; missed runs stay missed."""
    return await _done(screen, name, "resumed", lambda schedules: schedules.resume(name))


@group.command()
async def trigger(screen: Screen, name: ScheduleName) -> int:
    """Start a scheduled run now."""
    return await _done(screen, name, "triggered", lambda schedules: schedules.trigger(name))


@group.command()
async def remove(screen: Screen, name: ScheduleName) -> int:
    """Remove a schedule; its sessions stay."""
    return await _done(screen, name, "removed", lambda schedules: schedules.remove(name))


async def _done(
    screen: Screen, name: str, word: str, act: Callable[[Schedules], Awaitable[PastScheduledRun | None]]
) -> int:
    async with Longhaul.connect() as app:
        scheduled_run = await act(app.schedules)
    screen.document(
        {"schedule": name, word: True} | ({"scheduled_run": dataclasses.asdict(scheduled_run)} if scheduled_run else {})
    )
    screen.show_folded(Text(one_line(f"{name} is {word}")), *([_past(scheduled_run)] if scheduled_run else []))
    return 0


def _row(card: ScheduleCard) -> dict[str, object]:
    return {
        "name": card.name,
        **card.terms.model_dump(mode="json"),
        "in_words": card.terms.in_words(),
        "paused": card.paused,
        "note": card.note,
        "next_at": card.next_at,
    }


def _describe(card: ScheduleCard) -> list[Text]:
    state = (
        "paused" if card.paused else f"next {render_session.until(card.next_at)}" if card.next_at else "no further run"
    )
    head = Text(f"{one_line(card.name)}, {state}", style="bold")
    head.append(f": {one_line(visible(card.note))}" if card.note else "", "yellow")
    whom = card.terms.agent + (f" for {card.terms.user}" if card.terms.user else "")
    return [
        head,
        Text(f"  {one_line(visible(card.terms.in_words()))}"),
        Text(f"  asks {one_line(visible(whom))}: ", "dim").append(one_line(visible(card.terms.prompt))),
    ]


def _past(scheduled_run: PastScheduledRun) -> Text:
    what = f"{scheduled_run.session} {scheduled_run.reply_id}" if scheduled_run.state == "asked" else scheduled_run.why
    return Text(f"  {render.when(scheduled_run.at)}  {scheduled_run.state:<9}  {one_line(visible(what))}")
