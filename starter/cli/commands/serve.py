"""The command `serve` with its flags: sessions by HTTP, and the tokens of those who may ask."""
# ruff: noqa: PLC0415  As in main.py: what a command needs is loaded when it runs.

from typing import Annotated

import typer

from longhaul.starter.cli.options import leave_by

app = typer.Typer(help="Serve sessions by HTTP until Ctrl-C or SIGTERM.")


@app.callback(invoke_without_command=True)
def serve(
    context: typer.Context,
    *,
    host: Annotated[str, typer.Option(help="Address to listen on; without tokens only this machine's own.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: a free one.")] = 8000,
    root_path: Annotated[str, typer.Option(help="Where a proxy in front has put it, as in /agents.")] = "",
) -> None:
    """Serve sessions by HTTP until Ctrl-C or SIGTERM."""
    if context.invoked_subcommand is not None:
        return
    from longhaul.starter.cli.work import serve as running

    leave_by(lambda: running.serve(running.ListenPlace(host, port, root_path.rstrip("/"))))


def console(
    *,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: a free one.")] = 8001,
) -> None:
    """Serve the web console to this machine's browser, without a login, until Ctrl-C.

    It listens on 127.0.0.1 alone. Everybody who can log in to this machine reaches it, and may do what you may: where
    others can, use `longhaul serve` and its tokens, which has the same pages under /console.
    """
    from longhaul.starter.cli.work import serve as running

    leave_by(lambda: running.serve(running.ListenPlace("127.0.0.1", port), login=False))


@app.command()
def token(
    *,
    user: Annotated[str, typer.Option(help="Whose sessions it opens, and in whose name it decides.")],
    scopes: Annotated[str, typer.Option(help="Of read, answer, approve, edit, steer and admin, comma-separated.")] = (
        "read,answer,approve"
    ),
) -> None:
    """Print a new token once, and add its hash to the file of LONGHAUL_SERVE_TOKENS.

    Example: longhaul serve token --user ana --scopes read,answer
    """
    from longhaul.starter.cli.work import serve as running

    leave_by(lambda: running.make_token(user, scopes))
