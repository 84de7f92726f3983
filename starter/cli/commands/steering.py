"""The commands that answer and steer sessions: approve, deny, result, settle, interrupt, stop, say, observe, notify."""
# ruff: noqa: PLC0415  As in main.py: what a command needs is loaded when it runs.

from typing import Annotated

import typer

from longhaul.starter.cli import options
from longhaul.starter.cli.options import on_session


def add_to(app: typer.Typer) -> None:
    """Make these commands known to `longhaul`."""
    for command in (approve, deny, result, settle, interrupt, stop, say, observe, notify):
        app.command()(command)


def approve(  # noqa: PLR0913  one parameter a flag
    s: options.SessionName,
    calls: options.Calls = None,
    *,
    every: Annotated[
        bool, typer.Option("--all", help="All calls that wait: needed where several do and nobody can be asked.")
    ] = False,
    edit: Annotated[str | None, typer.Option(help="Other arguments, as a JSON object; for one call.")] = None,
    editor: Annotated[
        bool,
        typer.Option(
            "--editor", help="Change the arguments in $EDITOR first, or field by field where none is set; for one call."
        ),
    ] = False,
    accept_rules: Annotated[bool, typer.Option("--accept-rules", help="Take all suggested rules along.")] = False,
    rule: Annotated[list[str] | None, typer.Option(help="A suggested rule to take along, as it is shown.")] = None,
    seen: Annotated[
        str | None, typer.Option(help="How the digest begins of what you looked at, as it was shown.")
    ] = None,
    show: Annotated[bool, typer.Option("--show", help="Show all of what waits, and decide nothing.")] = False,
    until: Annotated[
        str | None, typer.Option(help="When the accepted rules end: a date, a time, or a while as in 8h, 30d.")
    ] = None,
    why: Annotated[str, typer.Option(help="Why the rules are accepted, for the record.")] = "",
    approver: options.As = None,
    user: options.User = None,
    agent: options.Agent = None,
    as_json: options.AsJson = False,
) -> None:
    """Let calls run that wait for a person."""
    from longhaul.starter.cli.work import steering

    if show:
        on_session(s, user, agent, lambda screen, name: steering.show_whole(screen, name, calls or ()), as_json=as_json)
    decision = steering.DecisionFlags(
        allow=True,
        every=every,
        input=edit,
        by_editor=editor,
        accept_rules=accept_rules,
        rules=tuple(rule or ()),
        approver=approver,
        seen=seen,
        until=until,
        why=why,
    )
    on_session(
        s, user, agent, lambda screen, name: steering.decide(screen, name, calls or (), decision), as_json=as_json
    )


def deny(  # noqa: PLR0913  one parameter a flag
    s: options.SessionName,
    calls: options.Calls = None,
    *,
    reason: Annotated[str, typer.Option(help="The model reads it.")] = "",
    approver: options.As = None,
    user: options.User = None,
    agent: options.Agent = None,
    as_json: options.AsJson = False,
) -> None:
    """Refuse calls that wait for a person."""
    from longhaul.starter.cli.work import steering

    decision = steering.DecisionFlags(allow=False, reason=reason, approver=approver)
    on_session(
        s, user, agent, lambda screen, name: steering.decide(screen, name, calls or (), decision), as_json=as_json
    )


def result(  # noqa: PLR0913  one parameter a flag
    s: options.SessionName,
    call: Annotated[str, typer.Argument(metavar="CALL", help="The id of the call that waits.")],
    *,
    output: Annotated[str | None, typer.Option(help="The result as text.")] = None,
    file: Annotated[str | None, typer.Option(help="A file that holds it; `-` is stdin.")] = None,
    error: Annotated[bool, typer.Option("--error", help="The call failed, and this says why.")] = False,
    partial: Annotated[bool, typer.Option("--partial", help="A piece of the text; more will come.")] = False,
    user: options.User = None,
    agent: options.Agent = None,
    as_json: options.AsJson = False,
) -> None:
    """Hand in the result of an external tool, or the answer to an MCP server that asks: by a form, without --output."""
    from longhaul.starter.cli.work import steering

    given = steering.SteeringFlags(call, output, file, failed=error, partial=partial)
    on_session(s, user, agent, lambda screen, name: steering.hand_in(screen, name, given), as_json=as_json)


def settle(  # noqa: PLR0913  one parameter a flag
    s: options.SessionName,
    call: Annotated[str, typer.Argument(metavar="CALL", help="The id of the call in doubt.")],
    *,
    happened: Annotated[bool, typer.Option("--happened/--did-not", help="Whether it ran.", show_default=False)],
    output: Annotated[str, typer.Option(help="What it answered; the model reads it.")] = "",
    reason: Annotated[str, typer.Option(help="How you know; the model reads it.")] = "",
    approver: options.As = None,
    user: options.User = None,
    agent: options.Agent = None,
    as_json: options.AsJson = False,
) -> None:
    """Say whether a call happened whose outcome is unknown."""
    from longhaul.starter.cli.work import steering

    word = steering.DoubtWord(happened=happened, output=output, reason=reason, by=approver)
    on_session(s, user, agent, lambda screen, name: steering.settle(screen, name, call, word), as_json=as_json)


def interrupt(
    s: options.SessionName,
    *,
    message: Annotated[str | None, typer.Option(help="Becomes the next request.")] = None,
    request: Annotated[str | None, typer.Option(help="Of this id alone; one that waits is dropped.")] = None,
    user: options.User = None,
    agent: options.Agent = None,
    as_json: options.AsJson = False,
) -> None:
    """End the reply that is being made, or drop a request that waits."""
    from longhaul.starter.cli.work import steering

    on_session(s, user, agent, lambda screen, name: steering.interrupt(screen, name, message, request), as_json=as_json)


def stop(
    s: options.SessionName,
    call: Annotated[
        str | None, typer.Argument(metavar="[CALL]", help="Id of the call that began it; without one, all.")
    ] = None,
    *,
    approver: options.As = None,
    user: options.User = None,
    agent: options.Agent = None,
    as_json: options.AsJson = False,
) -> None:
    """Stop what works in the background of a session: commands and sub-agents.

    The agent hears of it at its next reply. Exit 0 all of it is over, 3 nobody has heard so of some of it yet.
    Example: longhaul stop nightly toolu_01
    """
    from longhaul.starter.cli.work import steering

    on_session(s, user, agent, lambda screen, name: steering.stop(screen, name, call, approver), as_json=as_json)


def say(  # noqa: PLR0913  one parameter a flag
    s: options.SessionName,
    text: Annotated[str, typer.Argument(help="A request.")],
    *,
    now: Annotated[bool, typer.Option("--now", help="The reply being made hears it at its next step.")] = False,
    interrupt: Annotated[bool, typer.Option("--interrupt", help="The reply being made ends; this is next.")] = False,
    request_id: Annotated[str | None, typer.Option(help="Sent again, it gives the same reply.")] = None,
    user: options.User = None,
    agent: options.Agent = None,
    as_json: options.AsJson = False,
) -> None:
    """Send a session a request without waiting for its reply; it waits for its turn, if no flag says otherwise.

    Example: longhaul say nightly --now "Leave the old branch alone."
    """
    from longhaul.starter.cli.work import steering

    said = steering.Said(text, now=now, interrupt=interrupt, request_id=request_id)
    on_session(s, user, agent, lambda screen, name: steering.say(screen, name, said), as_json=as_json)


def observe(
    s: options.SessionName,
    text: Annotated[str, typer.Argument(help="What the agent shall know.")],
    *,
    user: options.User = None,
    agent: options.Agent = None,
    as_json: options.AsJson = False,
) -> None:
    """Add to a session's context without asking for a reply."""
    from longhaul.starter.cli.work import steering

    on_session(s, user, agent, lambda screen, name: steering.observe(screen, name, text), as_json=as_json)


def notify(  # noqa: PLR0913  one parameter a flag
    s: options.SessionName,
    event: Annotated[str, typer.Argument(help="What the agent waits for; `wake` ends a sleep.")],
    *,
    payload: Annotated[str, typer.Option(help="Text that the agent reads with it, as data from outside.")] = "",
    request_id: Annotated[str | None, typer.Option(help="Sent again, it counts once.")] = None,
    user: options.User = None,
    agent: options.Agent = None,
    as_json: options.AsJson = False,
) -> None:
    """Tell a session of an event, which wakes the call that waits for it.

    Example: longhaul notify nightly deployed --payload "build 81 is out"
    """
    from longhaul.starter.cli.work import steering

    told = steering.EventTold(event, payload, request_id)
    on_session(s, user, agent, lambda screen, name: steering.notify(screen, name, told), as_json=as_json)
