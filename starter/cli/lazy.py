"""The door from a command's flags to its work, behind which temporalio is loaded."""

from collections.abc import Callable, Coroutine
from typing import Any, NoReturn

import typer


def leave_by(work: Callable[[], Coroutine[Any, Any, int]]) -> NoReturn:
    """Do the work and leave the command with its exit code."""
    # --help and --version must not wait for what this imports.
    from starter.cli.leaving import perform  # noqa: PLC0415

    raise typer.Exit(perform(work))
