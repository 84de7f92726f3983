"""Flags and arguments that several commands share, each worded once; and the class with which a subject declares its
commands: a coroutine function whose parameters are the flags.
"""

from collections.abc import Callable, Coroutine
from inspect import Parameter, Signature, iscoroutinefunction, signature
from typing import Annotated, Any, NoReturn, TypeVar

import typer

from longhaul.starter.cli.exit_codes import perform
from longhaul.starter.cli.session_lookup import Name
from longhaul.starter.cli.terminal.screen import Screen

SessionName = Annotated[str, typer.Argument(metavar="S", help="Session id, as it was given to run or chat.")]
Calls = Annotated[list[str] | None, typer.Argument(metavar="[CALL]...", help="Call ids; default: all that wait.")]
User = Annotated[str | None, typer.Option("--user", help="The session's user.")]
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
        help="A field of model_config, such as max_output_tokens=16000; without a value its default.",
    ),
]
Workspace = Annotated[
    str | None, typer.Option("--workspace", help="Where the tools work; default: the current directory.")
]
Mode = Annotated[
    str | None,
    typer.Option(
        "--mode", help="What it may do without approval: default, accept_edits, explore, bypass, dont_ask, plan."
    ),
]
Session = Annotated[
    str | None, typer.Option("--session", help="Continue this session, or start it; default: a new session.")
]
Priority = Annotated[
    int | None,
    typer.Option(min=1, max=5, help="Of a session that starts: where work waits for workers, 1 goes first, 5 last."),
]
As = Annotated[
    str | None, typer.Option("--as", help="Who decides, which is recorded; default: the user of this terminal.")
]
Play = Annotated[bool, typer.Option("--play", help="Play sound with LONGHAUL_PLAYER, or a player on PATH.")]

Work = TypeVar("Work", bound=Callable[..., Any])


class SubjectCommands(typer.Typer):
    """The commands of one subject.

    A command is a coroutine function that returns the exit code, and its parameters are arguments and flags. Two are
    made of flags that many share: a `Screen` is `--json`, and the `Name` of a session is `S --user --agent`; these
    flags come last.
    """

    def command(self, name: str | None = None, **about: Any) -> Callable[[Work], Work]:
        register = super().command(name, **about)

        def take(work: Work) -> Work:
            register(_with_flags(work) if iscoroutinefunction(work) else work)
            return work  # as it was: tests and other commands call it with a screen

        return take


def _with_flags(work: Callable[..., Coroutine[Any, Any, int]]) -> Callable[..., NoReturn]:
    """What Typer reads its flags from, and calls."""
    own = signature(work, eval_str=True).parameters.values()
    screen = next((one.name for one in own if one.annotation is Screen), None)
    name = next((one.name for one in own if one.annotation is Name), None)

    def command(**flags: Any) -> NoReturn:
        if screen is not None:
            flags[screen] = Screen(as_json=flags.pop("as_json"))
        if name is not None:
            flags[name] = Name(flags.pop("s"), flags.pop("user"), flags.pop("agent"))
        leave_by(lambda: work(**flags))

    shown = [
        Parameter("s", Parameter.POSITIONAL_OR_KEYWORD, annotation=SessionName) if one.name == name else one
        for one in own
        if one.name != screen
    ]
    if name is not None:
        shown += [_flag("user", User), _flag("agent", Agent)]
    if screen is not None:
        shown.append(_flag("as_json", AsJson, default=False))
    command.__signature__ = Signature(shown)  # type: ignore[attr-defined]
    command.__annotations__ = {one.name: one.annotation for one in shown}
    command.__name__, command.__doc__ = work.__name__, work.__doc__
    return command


def _flag(name: str, annotation: Any, *, default: bool | None = None) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


def leave_by(work: Callable[[], Coroutine[Any, Any, int]]) -> NoReturn:
    """Do the work and leave the command with its exit code."""
    raise typer.Exit(perform(work))
