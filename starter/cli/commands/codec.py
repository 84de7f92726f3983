"""`longhaul codec`: what encrypted sessions say, for Temporal's Web UI and command line."""

from typing import Annotated

import typer

from longhaul.starter.cli import options
from longhaul.starter.cli.commands.serve import ListenPlace, serve_until_stopped
from longhaul.starter.serve.application import guarded
from longhaul.starter.serve.codec_server import codec_routes

group = options.SubjectCommands(no_args_is_help=True)


@group.command("serve")
async def serve_codec(
    *,
    host: Annotated[str, typer.Option(help="Address to listen on; without tokens only this machine's own.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: a free one.")] = 8081,
    root_path: Annotated[str, typer.Option(help="Where a proxy in front has put it, as in /codec.")] = "",
) -> int:
    """Run a codec server until Ctrl-C or SIGTERM. Tokens are those of `longhaul serve`.

    Example: longhaul codec serve --port 8081
    """
    place = ListenPlace(host, port, root_path.rstrip("/"))
    return await serve_until_stopped(place, lambda served: guarded(served, codec_routes(served)))
