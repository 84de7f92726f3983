"""The console script: the commands, or one sentence where something that a command needs is not installed."""

import sys

from longhaul.agent.plain.errors import missing

MISUSE, INTERRUPTED = 2, 130
"""As `exit_codes.Exit`, which needs more than is there."""


def main() -> None:
    """Run one command, which leaves the process."""
    try:
        from longhaul.starter.cli.main import main as run  # noqa: PLC0415  a thin client has no typer

        run()
    except ModuleNotFoundError as error:
        if (why := missing(error)) is error:
            raise
        print(f"longhaul: {why}", file=sys.stderr)
        sys.exit(MISUSE)
    except KeyboardInterrupt:  # while all that is loaded; a command itself takes it
        sys.exit(INTERRUPTED)
