"""`longhaul mcp serve`: an MCP server over stdin and stdout, until its client closes them."""

import logging
import signal
import sys
from importlib.util import find_spec
from pathlib import Path

from longhaul.starter.cli.exit_codes import Exit, Misuse
from longhaul.starter.cli.session_start import whoami
from longhaul.starter.client.agent_files import agent_names
from longhaul.starter.client.client import Longhaul
from longhaul.starter.folder_trust import trusted
from longhaul.starter.hosting.own_process import keep_to_itself
from longhaul.starter.serve.requests import Served
from longhaul.starter.serve.tokens import BadTokens, Caller, scopes_of
from longhaul.starter.settings import Settings


async def serve(scopes: str) -> int:
    """`scopes`: as of a token. Raises Misuse, Unreachable and Untrusted."""
    if find_spec("mcp") is None:
        raise Misuse("MCP is not installed here: pip install 'longhaul-agents[mcp]'")
    from longhaul.starter.serve.mcp_server import serve_lines, server_for  # noqa: PLC0415  needs the extra

    try:
        caller = Caller(None, whoami(), scopes_of(scopes, "--scopes"))
    except BadTokens as error:
        raise Misuse(str(error)) from error
    keep_to_itself()
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s")
    if agent_names():
        trusted(Path.cwd())  # now, while somebody sees what is said: later a call would fail for it
    # Nothing is kept here that could be lost, and a thread that waits for a line can't be told to end.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    async with Longhaul.connect(settings=Settings()) as app:
        await serve_lines(server_for(Served(app=app, tokens=None, local=caller, hosts=frozenset()), caller))
    return Exit.DONE
