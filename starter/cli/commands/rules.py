"""The commands about rules, with their flags: rules list, add, revoke."""
# ruff: noqa: PLC0415  As in main.py: what a command needs is loaded when it runs.

from typing import Annotated

import typer

from longhaul.starter.cli import options
from longhaul.starter.cli.options import leave_by

app = typer.Typer(help="What a session, or all sessions of a user, may do unasked.", no_args_is_help=True)

MaybeSession = Annotated[
    str | None, typer.Argument(metavar="[S]", help="Session id; left out with --user: that user's own rules.")
]
Why = Annotated[str, typer.Option(help="For the record.")]


@app.command("list")
def list_rules(
    s: MaybeSession = None,
    *,
    changes: Annotated[bool, typer.Option("--changes", help="Who added and revoked what; of a user's rules.")] = False,
    user: options.User = None,
    agent: options.Agent = None,
    as_json: options.AsJson = False,
) -> None:
    """List the rules that a session goes by, or a user's own.

    Example: longhaul rules list nightly
    """
    from longhaul.starter.cli.terminal.screen import Screen
    from longhaul.starter.cli.work import rules as ruling

    whose = ruling.RuleOwner(s, user, agent)
    leave_by(lambda: ruling.list_rules(Screen(as_json=as_json), whose, changes=changes))


@app.command("add")
def add_rules(  # noqa: PLR0913  one parameter a flag
    s: MaybeSession = None,
    *,
    allow: Annotated[
        list[str] | None, typer.Option(help="As in 'Bash(git push:*)', 'Write(/proj/**)', 'Bash'.")
    ] = None,
    ask: Annotated[list[str] | None, typer.Option(help="Ask a person, whatever else allows it.")] = None,
    deny: Annotated[list[str] | None, typer.Option(help="Never, whatever else allows it.")] = None,
    until: Annotated[
        str | None, typer.Option(help="When they end: a date, a time, or a while as in 90m, 8h, 30d.")
    ] = None,
    why: Why = "",
    approver: options.As = None,
    user: options.User = None,
    agent: options.Agent = None,
    as_json: options.AsJson = False,
) -> None:
    """Add rules to a session, or to all sessions of a user.

    Example: longhaul rules add --user ana --deny 'Bash(git push:*)' --until 2026-12-31 --why "code freeze"
    """
    from longhaul.starter.cli.terminal.screen import Screen
    from longhaul.starter.cli.work import rules as ruling

    given = ruling.TypedRules(tuple(allow or ()), tuple(ask or ()), tuple(deny or ()), until, why, approver)
    leave_by(lambda: ruling.add_rules(Screen(as_json=as_json), ruling.RuleOwner(s, user, agent), given))


@app.command("revoke")
def revoke_rule(
    words: Annotated[
        list[str], typer.Argument(metavar="[S] ID", help="The session and the rule's id; with --user, the id alone.")
    ],
    *,
    why: Why = "",
    approver: options.As = None,
    user: options.User = None,
    agent: options.Agent = None,
    as_json: options.AsJson = False,
) -> None:
    """Take a rule away; calls that wait are held against what is left.

    Example: longhaul rules revoke nightly 3kD9xA2f --why "the migration is done"
    """
    from longhaul.starter.cli.terminal.screen import Screen
    from longhaul.starter.cli.work import rules as ruling

    leave_by(lambda: ruling.revoke_rule(Screen(as_json=as_json), words, user, agent, ruling.RulesSaid(why, approver)))
