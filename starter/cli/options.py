"""Flags and arguments that several commands share, each worded once; and the door from them to the work, behind which
temporalio is loaded.
"""

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

if TYPE_CHECKING:
    from longhaul.starter.cli.session_lookup import Name
    from longhaul.starter.cli.terminal.screen import Screen

SessionName = Annotated[str, typer.Argument(metavar="S", help="Session id, as it was given to run or chat.")]
Calls = Annotated[list[str] | None, typer.Argument(metavar="[CALL]...", help="Call ids; without any, all that wait.")]
User = Annotated[str | None, typer.Option("--user", help="Whose session.")]
Agent = Annotated[str | None, typer.Option("--agent", help="The agent's name, or the path of an agent file.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON document on stdout, and nothing else.")]
Model = Annotated[
    str | None, typer.Option("--model", help="anthropic:NAME, openai:NAME, openai-chat:NAME, scripted:FILE.")
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="A field of model_config, as max_output_tokens=16000; without a value its default.",
    ),
]
Workspace = Annotated[str | None, typer.Option("--workspace", help="Where the tools work; else the current directory.")]
Mode = Annotated[
    str | None,
    typer.Option("--mode", help="What it may do unasked: default, accept_edits, explore, bypass, dont_ask, plan."),
]
Session = Annotated[
    str | None, typer.Option("--session", help="Go on with this session, or begin it; else a fresh one.")
]
As = Annotated[str | None, typer.Option("--as", help="Who decides, for the record; else the user of this terminal.")]
Play = Annotated[bool, typer.Option("--play", help="Play sound that comes, with LONGHAUL_PLAYER or one on PATH.")]


def leave_by(work: Callable[[], Coroutine[Any, Any, int]]) -> NoReturn:
    """Do the work and leave the command with its exit code."""
    # --help and --version must not wait for what this imports.
    from longhaul.starter.cli.exit_codes import perform  # noqa: PLC0415

    raise typer.Exit(perform(work))


def on_session(
    s: str,
    user: str | None,
    agent: str | None,
    work: Callable[["Screen", "Name"], Coroutine[Any, Any, int]],
    *,
    as_json: bool,
) -> NoReturn:
    """The same with a screen and the name of a session."""
    from longhaul.starter.cli.session_lookup import Name  # noqa: PLC0415  loads temporalio
    from longhaul.starter.cli.terminal.screen import Screen  # noqa: PLC0415

    leave_by(lambda: work(Screen(as_json=as_json), Name(s, user, agent)))
