"""`longhaul budget`: how a session stands with what it may spend, and more of it."""

from typing import Annotated

import typer
from rich.text import Text

from longhaul.agent.values.budget import End, Raise
from longhaul.starter import render_pending
from longhaul.starter.cli import options
from longhaul.starter.cli.exit_codes import Misuse
from longhaul.starter.cli.session_lookup import Name, below, flags_of, opened, out_of_budget
from longhaul.starter.cli.session_start import decider
from longhaul.starter.cli.terminal.screen import Screen
from longhaul.starter.visible import one_line

commands = options.SubjectCommands()


@commands.command()
async def budget(
    screen: Screen,
    name: Name,
    *,
    cost: Annotated[float | None, typer.Option("--raise-cost", help="By so many dollars.")] = None,
    tokens: Annotated[int | None, typer.Option("--raise-tokens", help="By so many.")] = None,
    calls: Annotated[int | None, typer.Option("--raise-calls", help="By so many, of models.")] = None,
    steps: Annotated[int | None, typer.Option("--raise-steps", help="By so many.")] = None,
    seconds: Annotated[float | None, typer.Option("--raise-seconds", help="By so many.")] = None,
    stop: Annotated[bool, typer.Option("--stop", help="End the reply that waits for more.")] = False,
    summarise: Annotated[
        bool,
        typer.Option("--summarise", help="The same, after a last model call that reports the progress."),
    ] = False,
    child: Annotated[
        str | None,
        typer.Option("--child", help="Give it to the sub-agent of this call, from what the session has left."),
    ] = None,
    at: Annotated[
        str,
        typer.Option(
            "--at",
            help="Answer the session of that name below this one, which waits for more: it is raised from here down to "
            "it. Without it, the only one that waits.",
        ),
    ] = "",
    approver: options.As = None,
) -> int:
    """Example: longhaul budget nightly --raise-cost 2.50"""
    more = Raise(tokens=tokens, cost=cost, calls=calls, steps=steps, seconds=seconds)
    if stop and summarise:
        raise Misuse("--stop and --summarise: a reply ends in one way; give one of them")
    end: End = "stop" if stop else "summarise" if summarise else ""
    changes, by = any(more.given()) or bool(end), decider(approver)
    async with opened(name) as session:
        waiting = await out_of_budget(session, at) if at or child is None else None
        if not changes:
            pass
        elif waiting is None:
            await session.change_budget(more, end=end, child=child, by=by)
        elif child is not None:
            raise Misuse("--child and --at: --at finds the way from the root by itself; leave --child out")
        elif end:  # the end of a reply is its own; more is raised from the root down to it
            await waiting.session.change_budget(more, end=end, by=by)
        else:
            await session.tree.raise_budget(waiting, more, by=by)
        standing = (await session.status()).budget
        tree = await session.tree.pending()
    if standing is None and waiting is None:
        raise Misuse(f"session {session.id!r} has no budget; see [budget] in docs/agents/budgets.md")
    for line in standing.lines() if standing is not None else ():
        screen.show(Text(one_line(line)))
    if standing is not None and standing.asks:
        screen.show(Text(one_line(f"waits for more: {standing.asks}"), "yellow"))
    lacking = [each for each in tree if each.above and each.call.waits_for == "budget"]
    for each in lacking:
        screen.show(Text(one_line(f"{each.call.path} waits for more: {each.call.reason}"), "yellow"))
        flags = [*below(each.session.id, each.call, [one.call for one in tree]), *flags_of(session)]
        screen.show(render_pending.how_to_answer(session.id, each.call, flags))
    screen.document({"session": session.id, "budget": standing, "below": [each.session.id for each in lacking]})
    return 0
