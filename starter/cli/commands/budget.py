"""The command about what a session may spend, with its flags."""
# ruff: noqa: PLC0415  As in main.py: what a command needs is loaded when it runs.

from typing import Annotated

import typer

from longhaul.starter.cli import options
from longhaul.starter.cli.options import on_session


def add_to(app: typer.Typer) -> None:
    """Make it known to `longhaul`."""
    app.command()(budget)


def budget(  # noqa: PLR0913  one parameter a flag
    s: options.SessionName,
    *,
    cost: Annotated[float | None, typer.Option("--raise-cost", help="By so many dollars.")] = None,
    tokens: Annotated[int | None, typer.Option("--raise-tokens", help="By so many.")] = None,
    calls: Annotated[int | None, typer.Option("--raise-calls", help="By so many, of models.")] = None,
    steps: Annotated[int | None, typer.Option("--raise-steps", help="By so many.")] = None,
    seconds: Annotated[float | None, typer.Option("--raise-seconds", help="By so many.")] = None,
    stop: Annotated[bool, typer.Option("--stop", help="End the reply that waits for more.")] = False,
    summarise: Annotated[
        bool,
        typer.Option("--summarise", help="The same, after a last call in which the model says where things stand."),
    ] = False,
    child: Annotated[
        str | None, typer.Option("--child", help="Give it to the sub-agent of this call, of what the session has left.")
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
    user: options.User = None,
    agent: options.Agent = None,
    as_json: options.AsJson = False,
) -> None:
    """Show what a session may spend, has spent and has left; raise it, or end a reply that waits for more.

    Example: longhaul budget nightly --raise-cost 2.50
    """
    from longhaul.agent.values.budget import Raise
    from longhaul.starter.cli.work import budget as work

    def more() -> Raise:
        return Raise(tokens=tokens, cost=cost, calls=calls, steps=steps, seconds=seconds)

    on_session(
        s,
        user,
        agent,
        lambda screen, name: work.budget(screen, name, work.BudgetWish(more(), stop, summarise, child, at), approver),
        as_json=as_json,
    )
