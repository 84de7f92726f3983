"""The commands about knowledge bases, with their flags: knowledge add, list, search, delete."""
# ruff: noqa: PLC0415  As in main.py: what a command needs is loaded when it runs.

from pathlib import Path
from typing import Annotated

import typer

from longhaul.starter.cli import options
from longhaul.starter.cli.options import leave_by

app = typer.Typer(help="Documents that agents may search.", no_args_is_help=True)

Base = Annotated[str, typer.Argument(metavar="BASE", help="The knowledge base, as agents name it.")]


@app.command()
def add(
    base: Base,
    paths: Annotated[list[Path], typer.Argument(metavar="PATH...", help="Files, or folders with files.")],
    *,
    called: Annotated[
        str | None, typer.Option("--as", help="What the one file or folder is called, in place of what has that name.")
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Put text files in (Markdown, HTML, source). Those that have not changed since stay as they are.

    Example: longhaul knowledge add handbook docs/
    """
    from longhaul.starter.cli.terminal.screen import Screen
    from longhaul.starter.cli.work import knowledge

    leave_by(lambda: knowledge.add(Screen(as_json=as_json), base, paths, called))


@app.command("list")
def listed(
    base: Annotated[str | None, typer.Argument(metavar="[BASE]", help="Only this one.")] = None,
    *,
    as_json: options.AsJson = False,
) -> None:
    """List the documents of the knowledge bases."""
    from longhaul.starter.cli.terminal.screen import Screen
    from longhaul.starter.cli.work import knowledge

    leave_by(lambda: knowledge.listed(Screen(as_json=as_json), base))


@app.command()
def search(
    base: Base,
    query: Annotated[str, typer.Argument(help="What an agent would ask.")],
    *,
    limit: Annotated[int, typer.Option(min=1, max=50, help="How many passages at most.")] = 5,
    as_json: options.AsJson = False,
) -> None:
    """Show the passages that an agent would find."""
    from longhaul.starter.cli.terminal.screen import Screen
    from longhaul.starter.cli.work import knowledge

    leave_by(lambda: knowledge.search(Screen(as_json=as_json), base, query, limit))


@app.command()
def delete(
    base: Base,
    documents: Annotated[list[str] | None, typer.Argument(metavar="[DOCUMENT]...", help="As `list` has them.")] = None,
    *,
    every: Annotated[bool, typer.Option("--all", help="The whole base.")] = False,
    as_json: options.AsJson = False,
) -> None:
    """Take documents out of a knowledge base, for good."""
    from longhaul.starter.cli.terminal.screen import Screen
    from longhaul.starter.cli.work import knowledge

    leave_by(lambda: knowledge.delete(Screen(as_json=as_json), base, documents or [], every=every))
