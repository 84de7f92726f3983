"""Flags and arguments that several commands share, each worded once."""

from typing import Annotated

import typer

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
