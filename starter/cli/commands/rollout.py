"""`longhaul rollout`: would open sessions go on with this build, and which build do they go to."""

import dataclasses
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Annotated

import typer
from rich.text import Text
from temporalio.service import RPCError, RPCStatusCode

from longhaul.starter.cli import options
from longhaul.starter.cli.exit_codes import Exit, Misuse
from longhaul.starter.cli.terminal.screen import Screen
from longhaul.starter.client.client import Longhaul
from longhaul.starter.settings import Settings
from longhaul.starter.visible import one_line, visible
from longhaul.starter.worker_host.deployment import (
    hosts_without,
    keep_with,
    let_move,
    set_current,
    standing_of,
    versions,
)
from longhaul.starter.worker_host.own_build import BadBuild, Build, build_of
from longhaul.starter.worker_host.replay import Replayed, live_sessions, replay

group = options.SubjectCommands(no_args_is_help=True)

Limit = Annotated[
    int | None, typer.Option(min=1, help="Replay no more sessions than these: half the longest, half the newest.")
]


@group.command()
async def check(screen: Screen, *, limit: Limit = None) -> int:
    """Replay all open sessions and hubs with this installation, and report for each whether it would continue.

    Nothing is changed. Exit 0 all would, 1 something would break.
    Example: longhaul rollout check --limit 200
    """
    async with Longhaul.connect() as app:
        replayed, total = await _replayed(app, screen, limit)
    broken = [each for each in replayed if not each.ok]
    build = _build(app.settings)
    screen.document(
        {
            "ok": not broken,
            "build": build.id if build else None,
            "open": total,
            "checked": len(replayed),
            "sessions": [dataclasses.asdict(each) for each in replayed],
        }
    )
    screen.show_folded(_summary(len(replayed), total, len(broken)))
    return Exit.TROUBLE if broken else Exit.DONE


@group.command()
async def promote(
    screen: Screen,
    build: Annotated[str, typer.Argument(help="As `rollout status` names it.")],
    *,
    stay: Annotated[bool, typer.Option("--stay", help="Sessions that would break stay on their build.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Without the check.")] = False,
    limit: Limit = None,
) -> int:
    """Check, then send all sessions of LONGHAUL_DEPLOYMENT to this build. Run it from an installation of that build.

    An older build is promoted the same way: what the newer build has written is replayed with it.
    Exit 0 it is the current one now; 1 something would break, and nothing was changed.
    Example: LONGHAUL_DEPLOYMENT=agents longhaul rollout promote 0.1.0-4f1c2ab09d3e
    """
    async with Longhaul.connect() as app:
        own = _own(app.settings)
        if force and stay:
            raise Misuse("--force checks nothing, so nobody knows which sessions would have to --stay; leave one out")
        replayed, broken = list[Replayed](), list[Replayed]()
        if not force:
            if build != own.id:
                raise Misuse(
                    f"this installation is build {own.id!r}: a check here says nothing about {build!r}. Run this "
                    "from an installation of that build, or with --force, which checks nothing"
                )
            replayed, total = await _replayed(app, screen, limit)
            broken = [each for each in replayed if not each.ok]
            screen.show_folded(_summary(len(replayed), total, len(broken)))
            if broken and not stay:
                told = [dataclasses.asdict(each) for each in broken]
                screen.document({"promoted": False, "build": build, "broken": told})
                screen.remark(f"{build} is not promoted; with --stay these sessions stay on their build")
                return Exit.TROUBLE
        async with _kept(app, own, broken) as staying:
            await _set_current(app, Build(own.deployment, build), force=force)
        moved = [each for each in replayed if each.ok and await let_move(app.client, each.workflow_id)]
    screen.document(
        {
            "promoted": True,
            "build": build,
            "deployment": own.deployment,
            "staying": [{"workflow_id": one, "build": place} for one, place in staying.items()],
            "moved": [each.workflow_id for each in moved],
        }
    )
    screen.show(f"{build} is the current build of {own.deployment}: open sessions continue with it")
    for place in sorted({*staying.values()}):
        number = [*staying.values()].count(place)
        screen.show(f"{number} of them stay{'s' if number == 1 else ''} with {place}: keep its workers running")
    return Exit.DONE


@asynccontextmanager
async def _kept(app: Longhaul, own: Build, broken: list[Replayed]) -> AsyncIterator[dict[str, str]]:
    """Bind these to the builds that they are with, given by workflow id; with an error inside, nobody who was not bound
    before. Raises Misuse where one is with no other build."""
    found = {each.workflow_id: await standing_of(app.client, own.deployment, each.workflow_id) for each in broken}
    for each in broken:
        if (build := found[each.workflow_id].build) in ("", own.id):
            by = f"{own.id!r} itself made" if build else f"no worker of deployment {own.deployment!r} made"
            raise Misuse(
                f"{visible(each.session_id)!r} can't stay: {by} its newest step. End it, or fix the build "
                f"({one_line(each.why)})"
            )
    staying = dict[str, str]()
    try:
        for workflow_id, (build, _) in found.items():
            if await keep_with(app.client, own.deployment, build, workflow_id):
                staying[workflow_id] = build
        yield staying
    except BaseException:
        for workflow_id in staying:
            if not found[workflow_id].bound:
                await let_move(app.client, workflow_id)
        raise


@group.command()
async def status(screen: Screen) -> int:
    """List the builds of LONGHAUL_DEPLOYMENT, which one is current, and how many open sessions each has."""
    async with Longhaul.connect() as app:
        own = _own(app.settings)
        found = await versions(app.client, own.deployment)
    screen.document(
        {"deployment": own.deployment, "own": own.id, "versions": [dataclasses.asdict(each) for each in found]}
    )
    if not found:
        screen.show(f"no worker of deployment {own.deployment} has polled yet")
    for each in found:
        here = ", this installation" if each.build == own.id else ""
        style = "green" if each.status == "current" else ""
        line = Text.assemble((one_line(each.build), "bold"), "  ", (each.status, style))
        screen.show_folded(line.append(f", {each.sessions} open session{'' if each.sessions == 1 else 's'}{here}"))
    if found and not any(each.status == "current" for each in found):
        screen.show_folded(Text(f"none is current, so no worker gets any work: {own.promote_command}", style="yellow"))
    return Exit.DONE


async def _replayed(app: Longhaul, screen: Screen, limit: int | None) -> tuple[list[Replayed], int]:
    """What was found, each shown as it comes; and how many sessions are open."""
    live = await live_sessions(app.client, app.settings.task_queue, limit)
    replayed: list[Replayed] = []
    async for each in replay(app.client, live.chosen):
        replayed.append(each)
        state = ("ok      ", "green") if each.ok else ("BREAKS  ", "red")
        user = f" of {one_line(each.user_id)}" if each.user_id else ""
        line = Text.assemble(state, (one_line(each.session_id), "bold"), f"{user}, {each.events} events")
        screen.show_folded(line if each.ok else line.append(f"\n          {one_line(each.why)}", "dim"))
    return replayed, live.total


def _summary(checked: int, total: int, broken: int) -> Text:
    told = f"{checked} of {total} open sessions replayed against this installation: "
    return Text(
        f"{told}{f'{broken} would break' if broken else 'all continue'}", style="bold red" if broken else "bold"
    )


async def _set_current(app: Longhaul, build: Build, *, force: bool) -> None:
    try:
        await set_current(app.client, build.deployment, build.id, without_hosts=force)
    except RPCError as error:
        if error.status in (RPCStatusCode.NOT_FOUND, RPCStatusCode.FAILED_PRECONDITION):
            hosts = list[str]()
            with suppress(RPCError):  # it is the build itself that is not known
                hosts = await hosts_without(app.client, build.deployment, build.id)
            if hosts:
                raise Misuse(
                    f"no worker of build {build.id!r} has polled on {' and '.join(hosts)}: sessions whose workspace "
                    f"lies there would wait. Start one there with LONGHAUL_HOST={hosts[0]}, or use --force: "
                    "then they wait until one runs there"
                ) from error
            raise Misuse(
                f"the server knows no running worker of build {build.id!r} in {build.deployment!r} ({error.message}); "
                "start one, and see `longhaul rollout status`"
            ) from error
        raise


def _own(settings: Settings) -> Build:
    build = _build(settings)
    if build is None:
        raise Misuse("LONGHAUL_DEPLOYMENT is not set: workers without it are not versioned, and the newest code runs")
    return build


def _build(settings: Settings) -> Build | None:
    try:
        return build_of(settings)
    except BadBuild as error:
        raise Misuse(str(error)) from error
